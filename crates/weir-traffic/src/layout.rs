//! Where things are in frames of any origin.

use std::ops::Range;

use weir_packet::ethertype::is_tag;
use weir_packet::protocol::{
    AUTHENTICATION, DCCP, HIP, ICMP, ICMPV6, IGMP, MOBILITY, OSPF, PIM, ROUTING, TCP, UDP, UDP_LITE, VRRP,
};
use weir_packet::{Extensions, Extent, Ip, Version, link};

/// Returns the `EtherType` of the packet in a frame, and where it begins: behind VLAN tags, and if it is IP, behind MPLS and
/// PPPoE, too. `None`: headers are cut, there are too many tags, or the link type is not known.
pub(crate) fn network(link_type: u16, frame: &[u8]) -> Option<(u16, usize)> {
    let payload = link::payload(link_type, frame)?;
    let found = payload.find_ip(frame).unwrap_or_else(|| payload.behind_tags(frame));
    (!is_tag(found.kind)).then_some((found.kind, found.at))
}

/// The parts of an IP packet, which may be cut.
#[derive(Clone, Debug)]
pub(crate) struct Layout {
    pub(crate) is_ipv6: bool,
    /// What follows the IP headers, as far as it is there.
    pub(crate) protocol: u8,
    pub(crate) transport: Range<usize>,
    /// Nothing is cut.
    pub(crate) is_whole: bool,
    pub(crate) is_fragment: bool,
    /// Where the bytes of a fragment begin in its datagram.
    pub(crate) offset: usize,
    /// What the fragments of a datagram have in common, besides addresses and protocol.
    pub(crate) identification: u32,
    /// In a fragment, other headers come before that of the transport.
    pub(crate) is_deep: bool,
    /// The destination is that of the next hop: checksums cover another one.
    pub(crate) is_routed: bool,
    /// An authentication header covers addresses and everything behind it.
    pub(crate) is_authenticated: bool,
}

impl Layout {
    pub(crate) fn of(packet: &[u8]) -> Option<Self> {
        let ip = Ip::of(packet)?;
        // None: from an offload, too long for the field.
        let total = ip.length.unwrap_or(packet.len());
        let end = total.min(packet.len());
        let mut layout = Self {
            is_ipv6: ip.version == Version::V6,
            protocol: ip.protocol,
            transport: ip.payload..end,
            is_whole: total == end,
            is_fragment: ip.fragment.is_some(),
            offset: ip.fragment.map_or(0, |fragment| fragment.offset),
            identification: ip.fragment.map_or(0, |fragment| fragment.identification),
            is_deep: false,
            is_routed: false,
            is_authenticated: false,
        };
        match ip.version {
            Version::V4 => layout.authentication(packet)?,
            Version::V6 => layout.extensions(&packet[..end])?,
        }
        (layout.transport.start <= end).then_some(layout)
    }

    /// Steps over the authentication header of IPv4.
    fn authentication(&mut self, packet: &[u8]) -> Option<()> {
        if self.transport.start < 20 || self.transport.start > self.transport.end {
            return None;
        }
        if self.protocol == AUTHENTICATION && !self.is_later() {
            let header: &[u8; 8] = packet.get(self.transport.clone())?.first_chunk()?;
            self.is_authenticated = true;
            self.is_deep = self.is_fragment;
            self.protocol = header[0];
            self.transport.start += 4 * (usize::from(header[1]) + 2);
        }
        Some(())
    }

    /// Steps over the extension headers of IPv6, up to one that has a checksum of its own.
    fn extensions(&mut self, packet: &[u8]) -> Option<()> {
        let mut extensions = Extensions::of(packet)?;
        loop {
            (self.protocol, self.transport.start) = extensions.next_header();
            if let MOBILITY | HIP = self.protocol {
                return Some(());
            }
            let is_fragment = extensions.fragment().is_some();
            let Some(extension) = extensions.next() else {
                return (extensions.extent() == Extent::Complete).then_some(());
            };
            self.is_deep |= is_fragment;
            match extension.number {
                ROUTING => self.is_routed |= extension.head[3] > 0,
                AUTHENTICATION => self.is_authenticated = true,
                _ => {}
            }
        }
    }

    /// Whether the packet is a fragment without the transport header.
    pub(crate) fn is_later(&self) -> bool {
        self.offset > 0
    }

    /// Returns where the source and the destination address are.
    pub(crate) fn addresses(&self) -> [Range<usize>; 2] {
        if self.is_ipv6 { [8..24, 24..40] } else { [12..16, 16..20] }
    }

    /// Returns where the checksum is in the transport header.
    pub(crate) fn checksum(&self) -> Option<usize> {
        match self.protocol {
            TCP => Some(16),
            UDP | UDP_LITE | DCCP => Some(6),
            HIP => Some(4),
            ICMP | IGMP if !self.is_ipv6 => Some(2),
            // Of these, only the ones of IPv6 cover addresses.
            ICMPV6 | PIM if self.is_ipv6 => Some(2),
            OSPF if self.is_ipv6 => Some(12),
            VRRP if self.is_ipv6 => Some(6),
            MOBILITY if self.is_ipv6 => Some(4),
            _ => None,
        }
    }

    /// Whether that checksum covers the addresses of the IP header.
    pub(crate) fn covers_addresses(&self) -> bool {
        self.is_ipv6 || !matches!(self.protocol, ICMP | IGMP)
    }

    /// Whether the packet is an error that quotes another one, and has its transport header.
    pub(crate) fn quotes(&self, packet: &[u8]) -> bool {
        let kind = packet.get(self.transport.start);
        !self.is_later()
            && match self.protocol {
                ICMP if !self.is_ipv6 => matches!(kind, Some(3 | 4 | 5 | 11 | 12)),
                ICMPV6 if self.is_ipv6 => matches!(kind, Some(1..=4)),
                _ => false,
            }
    }
}

#[cfg(test)]
mod tests {
    use weir_packet::ethertype::{ARP, IPV4, IPV6, LLC};

    use super::*;

    /// What a layout says, in short.
    fn told(packet: &[u8]) -> Option<(u8, Range<usize>, String)> {
        let layout = Layout::of(packet)?;
        let flags = [
            (layout.is_whole, "whole"),
            (layout.is_fragment, "fragment"),
            (layout.is_later(), "later"),
            (layout.is_deep, "deep"),
            (layout.is_routed, "routed"),
            (layout.is_authenticated, "authenticated"),
        ];
        let flags: Vec<&str> = flags.iter().filter(|flag| flag.0).map(|flag| flag.1).collect();
        Some((layout.protocol, layout.transport, flags.join(" ")))
    }

    /// A packet of IPv6 with headers of these kinds and contents, and 20 bytes behind them.
    fn ipv6(chain: &[(u8, &[u8])]) -> Vec<u8> {
        let mut kinds = chain.iter().map(|&(kind, _)| kind).chain([TCP]);
        let length: usize = 20 + chain.iter().map(|(_, bytes)| 1 + bytes.len()).sum::<usize>();
        let mut packet = vec![0x60, 0, 0, 0, 0, u8::try_from(length).unwrap(), kinds.next().unwrap(), 64];
        packet.extend([1; 32]);
        for ((_, bytes), next) in chain.iter().zip(kinds) {
            packet.push(next);
            packet.extend(*bytes);
        }
        packet.extend([0; 20]);
        packet
    }

    const OPTIONS: (u8, &[u8]) = (60, &[1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0]);
    const HOPS: (u8, &[u8]) = (0, &[0; 7]);
    const ROUTED: (u8, &[u8]) = (43, &[0, 4, 2, 0, 0, 0, 0]);
    const ARRIVED: (u8, &[u8]) = (43, &[0, 4, 0, 0, 0, 0, 0]);
    const FIRST: (u8, &[u8]) = (44, &[0, 0, 1, 0xa, 0xb, 0xc, 0xd]);
    const SECOND: (u8, &[u8]) = (44, &[0, 0, 8, 0xa, 0xb, 0xc, 0xd]);
    const ATOMIC: (u8, &[u8]) = (44, &[0, 0, 6, 0xa, 0xb, 0xc, 0xd]);
    const SIGNED: (u8, &[u8]) = (51, &[1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0]);

    #[test]
    fn headers_of_ipv6_are_passed() {
        for (chain, start, protocol, flags) in [
            (&[][..], 40, TCP, "whole"),
            (&[HOPS, OPTIONS][..], 64, TCP, "whole"),
            (&[ROUTED, HOPS], 56, TCP, "whole routed"),
            (&[ARRIVED, OPTIONS], 64, TCP, "whole"),
            (&[FIRST], 48, TCP, "whole fragment"),
            (&[ATOMIC], 48, TCP, "whole"),
            (&[HOPS, FIRST, OPTIONS], 72, TCP, "whole fragment deep"),
            (&[ATOMIC, OPTIONS], 64, TCP, "whole"),
            // What follows is in the first fragment.
            (&[SECOND, OPTIONS], 48, 60, "whole fragment later"),
            (&[SIGNED, OPTIONS], 68, TCP, "whole authenticated"),
            (&[ROUTED, SIGNED], 60, TCP, "whole routed authenticated"),
        ] {
            let packet = ipv6(chain);
            let expected = Some((protocol, start..packet.len(), flags.to_owned()));
            assert_eq!(told(&packet), expected, "{chain:?}");
            let Some(Layout { offset, identification, .. }) = Layout::of(&packet) else {
                panic!("{chain:?}")
            };
            let has = |header| chain.contains(&header);
            assert_eq!(offset, if has(SECOND) { 8 } else { 0 }, "{chain:?}");
            let identified = has(FIRST) || has(SECOND);
            assert_eq!(identification, if identified { 0x0a0b_0c0d } else { 0 }, "{chain:?}");
            // Cut in what is transported, or in a header.
            let cut = flags.trim_start_matches("whole").trim_start().to_owned();
            assert_eq!(told(&packet[..start]), Some((protocol, start..start, cut)), "{chain:?}");
            assert_eq!(told(&packet[..start - 1]), None, "{chain:?}");
            // With bytes of a trailer.
            let longer = [&packet[..], &[0; 9]].concat();
            assert_eq!(told(&longer), expected, "{chain:?}");
        }
        // A jumbogram says no length.
        let mut jumbo = ipv6(&[]);
        jumbo[5] = 0;
        assert_eq!(told(&jumbo), Some((TCP, 40..60, "whole".to_owned())));
    }

    #[test]
    fn headers_of_ipv4_are_passed() {
        let packet = |words: u8, length: u16, fragment: u16, protocol| {
            let mut packet = vec![0x40 | words, 0, 0, 0, 0xab, 0xcd, 0, 0, 64, protocol];
            packet[2..4].copy_from_slice(&length.to_be_bytes());
            packet[6..8].copy_from_slice(&fragment.to_be_bytes());
            packet.extend([0; 70]);
            // An authentication header of 16 bytes, where one is asked for.
            packet[usize::from(words.max(5)) * 4..][..2].copy_from_slice(&[UDP, 2]);
            packet
        };
        for (words, length, fragment, protocol, expected) in [
            (5, 80, 0x4000, TCP, Some((TCP, 20..80, "whole"))),
            (5, 0, 0, TCP, Some((TCP, 20..80, "whole"))),
            (5, 50, 0, TCP, Some((TCP, 20..50, "whole"))),
            (5, 81, 0, TCP, Some((TCP, 20..80, ""))),
            (15, 80, 0, TCP, Some((TCP, 60..80, "whole"))),
            (4, 80, 0, TCP, None),
            (6, 23, 0, TCP, None),
            (6, 24, 0, TCP, Some((TCP, 24..24, "whole"))),
            (5, 80, 0x2000, TCP, Some((TCP, 20..80, "whole fragment"))),
            (5, 80, 0x2001, TCP, Some((TCP, 20..80, "whole fragment later"))),
            (5, 80, 1, AUTHENTICATION, Some((AUTHENTICATION, 20..80, "whole fragment later"))),
            (5, 80, 0, AUTHENTICATION, Some((UDP, 36..80, "whole authenticated"))),
            (6, 80, 0x2000, AUTHENTICATION, Some((UDP, 40..80, "whole fragment deep authenticated"))),
            (5, 36, 0, AUTHENTICATION, Some((UDP, 36..36, "whole authenticated"))),
            (5, 35, 0, AUTHENTICATION, None),
        ] {
            let packet = packet(words, length, fragment, protocol);
            let expected = expected.map(|(protocol, range, flags)| (protocol, range, flags.to_owned()));
            assert_eq!(told(&packet), expected, "{words} {length} {fragment:#x} {protocol}");
            let Some(layout) = Layout::of(&packet) else { continue };
            let identification = if layout.is_fragment { 0xabcd } else { 0 };
            assert_eq!(
                (layout.identification, layout.offset),
                (identification, usize::from(fragment & 0x1fff) * 8)
            );
        }
        assert!(Layout::of(&[]).is_none() && Layout::of(&[0x50; 80]).is_none());
    }

    #[test]
    fn packets_are_found_in_frames_of_each_link_type() {
        let at = |place: usize, bytes: &[u8]| {
            let mut frame = vec![0; 40];
            frame[place..place + bytes.len()].copy_from_slice(bytes);
            frame
        };
        for (link_type, frame, expected) in [
            (1, at(12, &[0x08, 0]), Some((IPV4, 14))),
            (1, at(12, &[0x81, 0, 0, 5, 0x86, 0xdd]), Some((IPV6, 18))),
            (1, at(12, &[0x88, 0xa8, 0, 5, 0x91, 0, 0, 6, 0x81, 0, 0, 7, 8, 6]), Some((ARP, 26))),
            (1, vec![0; 13], None),
            (1, at(12, &[0x81, 0])[..17].to_vec(), None),
            (113, at(14, &[0x86, 0xdd]), Some((IPV6, 16))),
            (113, at(14, &[0x81, 0, 0, 5, 0x08, 0]), Some((IPV4, 20))),
            (276, at(0, &[0x08, 0]), Some((IPV4, 20))),
            (12, at(0, &[0x45]), Some((IPV4, 0))),
            (101, at(0, &[0x60]), Some((IPV6, 0))),
            (228, at(0, &[0x45]), Some((IPV4, 0))),
            (229, at(0, &[0x60]), Some((IPV6, 0))),
            (0, at(4, &[0x60]), Some((IPV6, 4))),
            (108, at(4, &[0x45]), Some((IPV4, 4))),
            (101, vec![], None),
            (9, at(0, &[0xff, 3, 0, 0x57]), Some((IPV6, 4))),
            (105, at(0, &[8, 1]), Some((LLC, 24))),
            (105, at(0, &[8, 0x41]), None),
            (147, at(12, &[0x08, 0]), None),
        ] {
            assert_eq!(network(link_type, &frame), expected, "{link_type} {frame:02x?}");
            assert_eq!(link::is_known(link_type), link_type != 147, "{link_type}");
        }
    }

    /// Where checksums are, and what they cover: RFC 768, 792, 1112, 2328, 3828, 4340, 4443, 5340, 5798, 6275, 7401, 7761, 9293.
    #[test]
    fn each_protocol_has_its_checksum_in_its_place() {
        let layout = |is_ipv6, protocol| {
            let mut layout = Layout::of(&ipv6(&[])).expect("a packet");
            (layout.is_ipv6, layout.protocol) = (is_ipv6, protocol);
            layout
        };
        for (protocol, four, six, covers) in [
            (TCP, Some(16), Some(16), true),
            (UDP, Some(6), Some(6), true),
            (UDP_LITE, Some(6), Some(6), true),
            (33, Some(6), Some(6), true),
            (139, Some(4), Some(4), true),
            (ICMP, Some(2), None, false),
            (IGMP, Some(2), None, false),
            (ICMPV6, None, Some(2), true),
            (103, None, Some(2), true),
            (89, None, Some(12), true),
            (112, None, Some(6), true),
            (135, None, Some(4), true),
            (47, None, None, true),
        ] {
            let layouts = [false, true].map(|is_ipv6| layout(is_ipv6, protocol));
            assert_eq!(layouts.each_ref().map(Layout::checksum), [four, six], "{protocol}");
            assert_eq!(layouts.each_ref().map(Layout::covers_addresses), [covers, true], "{protocol}");
        }
        for (is_ipv6, protocol, kinds) in [
            (false, ICMP, &[3, 4, 5, 11, 12][..]),
            (true, ICMPV6, &[1, 2, 3, 4]),
            (true, ICMP, &[]),
            (false, ICMPV6, &[]),
            (true, TCP, &[]),
        ] {
            for kind in 0..20 {
                let mut layout = layout(is_ipv6, protocol);
                let mut packet = ipv6(&[]);
                packet[40] = kind;
                assert_eq!(layout.quotes(&packet), kinds.contains(&kind), "{protocol} {kind}");
                layout.offset = 8;
                assert!(!layout.quotes(&packet), "a later fragment has no header");
            }
        }
    }
}
