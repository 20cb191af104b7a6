//! EtherTypes (IEEE): their names in tcpdump, and what they lead to.

use weir_packet::ethertype;

use crate::Printer;
use crate::base::bytes::{Bytes, Cut};
use crate::base::text::put;
use crate::registry::Read;

/// Largest value in an Ethernet header that is a length; larger values are types.
pub(crate) const LARGEST_LENGTH: u16 = 1500;

pub(crate) const RARP: u16 = 0x8035;
pub(crate) const PPP: u16 = 0x880b;
pub(crate) const PPPOE_DISCOVERY: u16 = 0x8863;
/// Its header has a length in front of the next EtherType, which the link layer prints with the addresses.
pub(crate) const MACSEC: u16 = 0x88e5;

/// Returns the name and what prints the payload.
fn known(number: u16) -> Option<(&'static str, Option<Read>)> {
    Some(match number {
        0x0200 => ("PUP", None),
        0x0500 => ("Sprite", None),
        0x0600 => ("NS", None),
        0x0707 => ("GeoNet (old)", None),
        ethertype::IPV4 => ("IPv4", Some(|printer, bytes| printer.ip4(bytes))),
        ethertype::ARP => ("ARP", Some(|printer, bytes| printer.arp(bytes))),
        0x1000 => ("Trail", None),
        0x1111 => ("CALM FAST", None),
        0x6001 => ("MOP DL", None),
        0x6002 => ("MOP RC", None),
        0x6003 => ("DN", None),
        0x6004 => ("LAT", None),
        0x6007 => ("SCA", None),
        ethertype::BRIDGED => {
            ("TEB", Some(|printer, bytes| printer.nested(|printer| printer.ethernet(bytes))))
        }
        RARP => ("Reverse ARP", Some(|printer, bytes| printer.arp(bytes))),
        0x8038 => ("Lanbridge", None),
        0x803c => ("DEC DNS", None),
        0x803e => ("DEC DTS", None),
        0x805b => ("VEXP", None),
        0x805c => ("VPROD", None),
        0x809b => ("Appletalk", None),
        0x80f3 => ("Appletalk ARP", None),
        ethertype::VLAN => ("802.1Q", None),
        0x8137 => ("IPX", None),
        ethertype::IPV6 => ("IPv6", Some(|printer, bytes| printer.ip6(bytes))),
        0x8808 => ("MPCP", Some(|printer, bytes| printer.mpcp(bytes))),
        0x8809 => ("Slow Protocols", Some(|printer, bytes| printer.slow(bytes))),
        PPP => ("PPP", Some(|printer, bytes| printer.ppp(bytes))),
        ethertype::MPLS => ("MPLS unicast", Some(|printer, bytes| printer.mpls(bytes))),
        ethertype::MPLS_UPSTREAM => ("MPLS multicast", Some(|printer, bytes| printer.mpls(bytes))),
        PPPOE_DISCOVERY => ("PPPoE D", Some(|printer, bytes| printer.pppoe(PPPOE_DISCOVERY, bytes))),
        ethertype::PPPOE => ("PPPoE S", Some(|printer, bytes| printer.pppoe(ethertype::PPPOE, bytes))),
        0x886f => ("MS NLB heartbeat", None),
        0x888e => ("EAPOL", Some(|printer, bytes| printer.eapol(bytes))),
        0x8899 => ("Realtek protocols", None),
        0x88a2 => ("AoE", Some(|printer, bytes| printer.aoe(bytes))),
        ethertype::SERVICE_VLAN => ("802.1Q-QinQ", None),
        0x88ca => ("TIPC", None),
        0x88cc => ("LLDP", Some(|printer, bytes| printer.lldp(bytes))),
        MACSEC => ("802.1AE MACsec", None),
        0x88f7 => ("PTP", Some(|printer, bytes| printer.ptp(bytes))),
        0x8902 => ("CFM", Some(|printer, bytes| printer.unread("CFM", bytes))),
        0x893a => ("IEEE1905.1", None),
        0x8947 => ("GeoNet", None),
        0x894f => ("NSH", Some(|printer, bytes| printer.nsh(bytes))),
        0x9000 => ("Loopback", Some(|printer, bytes| printer.ctp(bytes))),
        ethertype::OLD_SERVICE_VLAN => ("802.1Q-9100", None),
        ethertype::OLD_SERVICE_VLAN_2 => ("802.1Q-9200", None),
        0xabcd => ("CFM (old)", None),
        0xd28b => ("Arista Vendor Specific Protocol", None),
        0xfefe => ("OSI", None),
        _ => return None,
    })
}

/// Returns the name of an EtherType.
pub(crate) fn name(number: u16) -> Option<&'static str> {
    known(number).map(|(name, _)| name)
}

impl Printer<'_> {
    /// Prints the payload of an EtherType, if it is known.
    pub(crate) fn carried(&mut self, ethertype: u16, bytes: Bytes<'_>) -> Result<bool, Cut> {
        self.facts.ethertype.get_or_insert(ethertype);
        match known(ethertype) {
            Some((_, Some(read))) => read(self, bytes).map(|()| true),
            _ => Ok(false),
        }
    }

    /// Prints the name and the length of a payload that no parser reads.
    pub(crate) fn unread(&mut self, name: &'static str, bytes: Bytes<'_>) -> Result<(), Cut> {
        put!(self, "{name}, length {}", bytes.len);
        self.facts.protocol = Some(name);
        Ok(())
    }
}
