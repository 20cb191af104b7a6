//! Where things are in frames of any origin.

use std::ops::Range;

use weir_packet::protocol::{
    AUTHENTICATION, DCCP, HIP, ICMP, ICMPV6, IGMP, MOBILITY, OSPF, PIM, ROUTING, TCP, UDP, UDP_LITE, VRRP,
};
use weir_packet::{Extensions, Extent, Ip, Version, link};

/// Returns the `EtherType` of the packet in a frame, and where it begins: behind VLAN tags, and if it is IP, behind MPLS and
/// PPPoE, too.
pub(crate) fn network(link_type: u16, frame: &[u8]) -> Option<(u16, usize)> {
    let behind = link::payload(link_type, frame)?.behind_tags(frame);
    let found = behind.find_ip(frame).unwrap_or(behind);
    Some((found.kind, found.at))
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
