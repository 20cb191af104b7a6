//! IP protocols (<https://www.iana.org/assignments/protocol-numbers>): their names in tcpdump, and what they lead to.

use weir_packet::protocol;

use crate::Printer;
use crate::base::bytes::{Bytes, Cut};
use crate::base::segment::Around;
use crate::base::text::put;
use crate::registry::payloads::Payload;

/// Keywords in lower case, from number 0; `?`: none.
const KEYWORDS: &str = "\
    hopopt icmp igmp ggp ipencap st tcp cbt egp igp bbn-rcc-mon nvp-ii pup argus emcon xnet chaos udp mux \
    dcn-meas hmp prm xns-idp trunk-1 trunk-2 leaf-1 leaf-2 rdp irtp iso-tp4 netblt mfe-nsp merit-inp dccp 3pc \
    idpr xtp ddp idpr-cmtp tp++ il ipv6 sdrp ipv6-route ipv6-frag idrp rsvp gre dsr bna esp ah i-nlsp swipe narp \
    mobile tlsp skip ipv6-icmp ipv6-nonxt ipv6-opts ? cftp ? sat-expak kryptolan rvd ippc ? sat-mon visa ipcv \
    cpnx rspf wsn pvp br-sat-mon sun-nd wb-mon wb-expak iso-ip vmtp secure-vmtp vines ttp nsfnet-igp dgp tcf \
    eigrp ospf sprite-rpc larp mtp ax.25 ipip micp scc-sp etherip encap ? gmtp ifmp pnni pim aris scps qnx a/n \
    ipcomp snp compaq-peer ipx-in-ip vrrp pgm ? l2tp ddx iatp stp srp uti smp sm ptp isis fire crtp crudp \
    sscopmce iplt sps pipe sctp fc rsvp-e2e-ignore mobility-header udplite mpls-in-ip manet hip shim6 wesp rohc";

/// Returns the keyword of an IP protocol.
pub(crate) fn keyword(number: u8) -> Option<&'static str> {
    match number {
        253 => Some("exptest-253"),
        254 => Some("exptest-254"),
        255 => Some("reserved"),
        _ => KEYWORDS.split(' ').nth(number.into()).filter(|keyword| *keyword != "?"),
    }
}

/// Returns the name of an IP protocol, as in tcpdump's `-v`.
pub(crate) fn name(number: u8) -> Option<&'static str> {
    Some(match number {
        0 => "Options",
        1 => "ICMP",
        2 => "IGMP",
        4 => "IPIP",
        6 => "TCP",
        9 => "IGRP",
        17 => "UDP",
        33 => "DCCP",
        41 => "IPv6",
        43 => "Routing",
        44 => "Fragment",
        46 => "RSVP",
        47 => "GRE",
        50 => "ESP",
        51 => "AH",
        55 => "Mobile IP",
        58 => "ICMPv6",
        88 => "EIGRP",
        89 => "OSPF",
        103 => "PIM",
        108 => "Compressed IP",
        112 => "VRRP",
        113 => "PGM",
        132 => "SCTP",
        135 => "Mobility",
        _ => return None,
    })
}

impl Printer<'_> {
    /// Prints the payload of an IP packet, after the extension headers. Protocols with ports print the addresses
    /// themselves; for all others, they have been printed already.
    pub(crate) fn ip_payload(&mut self, protocol: u8, around: Around, bytes: Bytes<'_>) -> Result<(), Cut> {
        self.facts.ip_protocol.get_or_insert(protocol);
        match protocol {
            protocol::ICMP => self.icmp(bytes, around.fragment),
            protocol::IGMP => self.igmp(bytes),
            protocol::IPV4 => self.nested(|printer| printer.ip4(bytes)),
            protocol::TCP => self.tcp(around, bytes),
            protocol::UDP => self.udp(around, bytes),
            protocol::IPV6 => self.nested(|printer| printer.ip6(bytes)),
            46 => self.unread("RSVP", bytes),
            protocol::GRE => self.nested(|printer| printer.gre(bytes)),
            50 => self.esp(bytes),
            protocol::AUTHENTICATION => self.authentication(around, bytes),
            protocol::ICMPV6 => self.icmp6(around, bytes),
            protocol::NOTHING => {
                self.text("no next header");
                Ok(())
            }
            #[cfg(feature = "routing")]
            88 => self.eigrp(bytes),
            #[cfg(feature = "routing")]
            protocol::OSPF => self.ospf(bytes, around.source.is_ipv6()),
            #[cfg(feature = "routing")]
            protocol::PIM => self.pim(around, bytes),
            108 => self.unread("Compressed IP", bytes),
            protocol::VRRP if self.options.payload == Some(Payload::Carp) => self.carp(around, bytes),
            protocol::VRRP => self.vrrp(around, bytes),
            113 => self.pgm(around, bytes),
            protocol::SCTP => self.sctp(around, bytes),
            _ => {
                self.text(" ");
                self.ip_protocol(protocol);
                put!(self, " {}", bytes.len);
                Ok(())
            }
        }
    }
}
