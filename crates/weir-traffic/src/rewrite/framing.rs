//! Ethernet headers: one for packets that have none, and other addresses for those that do.

use std::net::{IpAddr, Ipv4Addr};

use weir_packet::bytes::be16;
use weir_packet::ethertype::{ARP, FIRST, LAST_LENGTH, LLC};
use weir_packet::link;
use weir_packet::link_type::{COOKED, COOKED_2, ETHERNET};

use super::{destination, group_mac, trailer};
use crate::layout::network;

const BROADCAST: [u8; 6] = [0xff; 6];

/// The Ethernet header that packets get: those of captures without one (cooked as with `-i any`, raw IP, loopback of BSD,
/// 802.11, PPP and others), and those that have one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Framing {
    /// Who receives packets; those to a group or to everybody keep their destination, or get the one that belongs to it.
    /// `None`: as in the packet; one without an Ethernet header stays as it is.
    pub destination: Option<[u8; 6]>,
    /// Who sends all packets. `None`: as in the packet; cooked ones name their sender.
    pub source: Option<[u8; 6]>,
    /// Who sends packets that do not say.
    pub sender: [u8; 6],
}

impl Framing {
    /// Whether packets of this link type, that of capture files, have no Ethernet header and can have one.
    pub fn can_be(link_type: u16) -> bool {
        link_type != ETHERNET && link::is_known(link_type)
    }

    /// Gives a packet its header; returns its link type from now on. One without a header stays as it is if nobody knows
    /// the receiver, or if there is no header for what it carries.
    pub fn apply(&self, link_type: u16, packet: &mut Vec<u8>) -> u16 {
        if link_type == ETHERNET {
            self.readdress(packet);
            return ETHERNET;
        }
        let Some(receiver) = self.destination else { return link_type };
        let end = trailer::covered(link_type, packet).map_or(packet.len(), |covered| covered.end);
        let Some(told) = LinkFacts::of(link_type, &packet[..end]) else { return link_type };
        packet.truncate(end);
        let source = self.source.or(told.source).unwrap_or(self.sender);
        packet.splice(..told.begin, [&receiver[..], &source, &told.kind.to_be_bytes()].concat());
        if let Some(group) = told.to_all.then_some(BROADCAST).or_else(|| group(packet)) {
            packet[..6].copy_from_slice(&group);
        }
        ETHERNET
    }

    fn readdress(&self, frame: &mut [u8]) {
        let Some(addresses) = frame.first_chunk_mut::<12>() else { return };
        if let Some(destination) = self.destination
            && addresses[0] & 1 == 0
        {
            addresses[..6].copy_from_slice(&destination);
        }
        if let Some(source) = self.source {
            addresses[6..].copy_from_slice(&source);
        }
    }
}

/// What a packet without an Ethernet header tells of the one that it could have.
struct LinkFacts {
    /// `EtherType`, or the length of an 802.2 packet.
    kind: u16,
    /// Where the packet begins that the header would carry.
    begin: usize,
    source: Option<[u8; 6]>,
    /// It was a broadcast.
    to_all: bool,
}

impl LinkFacts {
    fn of(link_type: u16, packet: &[u8]) -> Option<Self> {
        const ARPHRD_ETHER: u16 = 1;
        const PACKET_BROADCAST: u8 = 1;
        // What Linux calls packets without an EtherType (if_ether.h): IPX with an 802.3 length, and 802.2.
        const ETH_P_802_3: u16 = 1;
        // Lengths, or numbers that Ethernet does not have.
        let of_ethernet = |kind, carried: &[u8]| match kind {
            ETH_P_802_3 | LLC => u16::try_from(carried.len()).ok().filter(|&length| length <= LAST_LENGTH),
            kind => Some(kind).filter(|&kind| kind >= FIRST),
        };
        // Where the fields of a cooked header are: packet type, hardware type, length of the address, the address.
        let (fields, begin) = match link_type {
            COOKED => ([1, 2, 5, 6], 16),
            COOKED_2 => ([10, 8, 11, 12], 20),
            _ => {
                let (kind, begin) = network(link_type, packet)?;
                let kind = of_ethernet(kind, packet.get(begin..)?)?;
                let ends = link::ends_of_wlan(link_type, packet);
                let to_all = ends.is_some_and(|[_, destination]| destination == BROADCAST);
                let to_all = to_all || asks(packet, kind, begin);
                return Some(Self { kind, begin, source: ends.map(|[source, _]| source), to_all });
            }
        };
        let [sent_as, hardware, length, address] = fields;
        let carried = packet.get(begin..)?;
        let kind = of_ethernet(be16(packet, if link_type == COOKED { 14 } else { 0 })?, carried)?;
        let is_ethernet = be16(packet, hardware)? == ARPHRD_ETHER;
        let source = packet[address..].first_chunk().copied().filter(|_| is_ethernet && packet[length] == 6);
        let to_all = packet[sent_as] == PACKET_BROADCAST || asks(packet, kind, begin);
        Some(Self { kind, begin, source, to_all })
    }
}

/// Returns whether this is an ARP request: one of this host's own does not say that it went to everybody.
fn asks(packet: &[u8], kind: u16, begin: usize) -> bool {
    kind == ARP && be16(packet, begin + 6) == Some(1)
}

/// Returns the address of the group that the IP packet in a frame goes to.
fn group(frame: &[u8]) -> Option<[u8; 6]> {
    match destination(ETHERNET, frame)? {
        IpAddr::V4(Ipv4Addr::BROADCAST) => Some(BROADCAST),
        other => group_mac(other),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TO: [u8; 6] = [2, 0, 0, 0, 0, 0xaa];
    const OWN: [u8; 6] = [2, 0, 0, 0, 0, 0xbb];
    const NAMED: [u8; 6] = [2, 0, 0, 0, 0, 0xcc];
    const GIVEN: [u8; 6] = [2, 0, 0, 0, 0, 0xdd];

    fn framed(framing: Framing, link_type: u16, packet: &[&[u8]]) -> (u16, Vec<u8>) {
        let mut packet = packet.concat();
        (framing.apply(link_type, &mut packet), packet)
    }

    fn ipv4(to: [u8; 4]) -> Vec<u8> {
        [&[0x45, 0, 0, 20, 0, 0, 0, 0, 64, 17, 0, 0, 10, 0, 0, 1][..], &to].concat()
    }

    fn ipv6(to: [u8; 16]) -> Vec<u8> {
        [&[0x60, 0, 0, 0, 0, 0, 59, 64][..], &[1; 16], &to].concat()
    }

    #[test]
    fn packets_without_an_ethernet_header_get_one() {
        let framing = Framing { destination: Some(TO), source: None, sender: OWN };
        let (single, group) = (ipv4([10, 0, 0, 2]), ipv4([224, 1, 2, 3]));
        let mut all_nodes = [0; 16];
        (all_nodes[0], all_nodes[1], all_nodes[15]) = (0xff, 2, 1);
        // Packet type, ARPHRD_ETHER, length of the address, the address.
        let cooked =
            |sent_as: u8, kind: [u8; 2]| [&[0, sent_as, 0, 1, 0, 6][..], &NAMED, &[0; 2], &kind].concat();
        let cooked_2 = |sent_as: u8, kind: [u8; 2]| {
            [&kind[..], &[0, 0, 0, 0, 0, 7, 0, 1, sent_as, 6], &NAMED, &[0; 2]].concat()
        };
        // To an access point, or from it: the other end is the third.
        let wlan = |way: u8| [&[8, way, 0, 0][..], &BROADCAST, &NAMED, &GIVEN, &[0, 0]].concat();
        let loopback = [&[0, 0, 3, 4, 0, 6][..], &[0; 8], &[8, 0]].concat();
        let tag = [0, 7, 8, 0];
        let asks = [&[0, 1, 8, 0, 6, 4, 0, 1][..], &[0; 20]].concat();
        let group_of = [1, 0, 0x5e, 1, 2, 3];
        for (link_type, packet, to, from, kind, carried) in [
            (101, vec![&single[..]], TO, OWN, [8, 0], &single[..]),
            (228, vec![&single], TO, OWN, [8, 0], &single),
            (12, vec![&ipv6([2; 16])], TO, OWN, [0x86, 0xdd], &ipv6([2; 16])),
            (0, vec![&[2, 0, 0, 0], &single], TO, OWN, [8, 0], &single),
            (108, vec![&[0, 0, 0, 30], &ipv6([2; 16])], TO, OWN, [0x86, 0xdd], &ipv6([2; 16])),
            (9, vec![&[0x21], &group], group_of, OWN, [8, 0], &group),
            (105, vec![&wlan(1), &[0xaa, 0xaa, 3, 0, 0, 0, 8, 6], &asks], BROADCAST, NAMED, [8, 6], &asks),
            (105, vec![&wlan(1), &[0xaa, 0xaa, 3, 0, 0, 0, 8, 0], &single], TO, NAMED, [8, 0], &single),
            (105, vec![&wlan(2), &[0x42, 0x42, 3]], BROADCAST, GIVEN, [0, 3], &[0x42, 0x42, 3]),
            (101, vec![&group], group_of, OWN, [8, 0], &group),
            (101, vec![&ipv4([255; 4])], BROADCAST, OWN, [8, 0], &ipv4([255; 4])),
            (229, vec![&ipv6(all_nodes)], [0x33, 0x33, 0, 0, 0, 1], OWN, [0x86, 0xdd], &ipv6(all_nodes)),
            (COOKED, vec![&cooked(0, [8, 0]), &single], TO, NAMED, [8, 0], &single),
            (COOKED, vec![&loopback, &single], TO, OWN, [8, 0], &single),
            (COOKED, vec![&cooked(1, [8, 0]), &single], BROADCAST, NAMED, [8, 0], &single),
            (COOKED_2, vec![&cooked_2(2, [8, 0]), &group], group_of, NAMED, [8, 0], &group),
            (COOKED_2, vec![&cooked_2(4, [8, 6]), &asks], BROADCAST, NAMED, [8, 6], &asks),
            (
                COOKED,
                vec![&cooked(0, [0x81, 0]), &tag, &group],
                group_of,
                NAMED,
                [0x81, 0],
                &[&tag[..], &group].concat(),
            ),
            (
                COOKED_2,
                vec![&cooked_2(0, [0x81, 0]), &tag, &group],
                group_of,
                NAMED,
                [0x81, 0],
                &[&tag[..], &group].concat(),
            ),
            (COOKED, vec![&cooked(0, [0, 4]), &[0x42, 0x42, 3]], TO, NAMED, [0, 3], &[0x42, 0x42, 3]),
        ] {
            let wanted = (ETHERNET, [&to[..], &from, &kind, carried].concat());
            assert_eq!(framed(framing, link_type, &packet), wanted, "{link_type}: {packet:x?}");
            let given = Framing { source: Some(GIVEN), ..framing };
            let wanted = (ETHERNET, [&to[..], &GIVEN, &kind, carried].concat());
            assert_eq!(framed(given, link_type, &packet), wanted, "{link_type}: {packet:x?}");
            let nowhere = Framing { destination: None, ..given };
            assert_eq!(framed(nowhere, link_type, &packet), (link_type, packet.concat()));
        }
    }

    #[test]
    fn what_ethernet_cannot_carry_stays_as_it_is() {
        let framing = Framing { destination: Some(TO), source: None, sender: OWN };
        let can = [&[0, 0, 1, 24, 0, 0][..], &[0; 8], &[0, 0xc], &[0; 16]].concat();
        let cut = [0, 0, 0, 1, 0, 6, 2, 0, 0, 0, 0, 1, 0, 0, 8];
        for (link_type, packet) in [
            (COOKED, &can[..]),
            (COOKED, &cut),
            (COOKED_2, &cut),
            (105, &[0; 40]),
            (104, &[0x0f, 0, 0, 4]),
            (101, &[]),
        ] {
            assert_eq!(framed(framing, link_type, &[packet]), (link_type, packet.to_vec()));
        }
    }

    #[test]
    fn frames_get_other_addresses_but_stay_with_their_group() {
        let framing = Framing { destination: Some(TO), source: Some(GIVEN), sender: OWN };
        let frame = |to: [u8; 6], from: [u8; 6]| [&to[..], &from, &[8, 0], &[0; 46]].concat();
        for (to, wanted) in
            [(NAMED, TO), (BROADCAST, BROADCAST), ([1, 0, 0x5e, 0, 0, 1], [1, 0, 0x5e, 0, 0, 1])]
        {
            assert_eq!(framed(framing, ETHERNET, &[&frame(to, NAMED)]), (ETHERNET, frame(wanted, GIVEN)));
        }
        let kept = Framing { destination: None, source: None, sender: OWN };
        assert_eq!(framed(kept, ETHERNET, &[&frame(NAMED, NAMED)]), (ETHERNET, frame(NAMED, NAMED)));
        assert_eq!(framed(framing, ETHERNET, &[&[0; 11]]), (ETHERNET, vec![0; 11]));
    }
}
