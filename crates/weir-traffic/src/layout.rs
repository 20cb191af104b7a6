//! Where things are in frames of any origin.

use std::net::IpAddr;
use std::ops::Range;

pub(crate) const ETHERNET: u16 = 1;
const RAW_IP: [u16; 4] = [12, 101, 228, 229];
/// Loopback of BSD: a protocol family of four bytes, in the byte order of the host or of the network.
const FAMILY: [u16; 2] = [0, 108];
pub(crate) const COOKED: u16 = 113;
pub(crate) const COOKED_2: u16 = 276;

pub(crate) const IPV4: u16 = 0x0800;
pub(crate) const ARP: u16 = 0x0806;
pub(crate) const IPV6: u16 = 0x86dd;
const TAGS: [u16; 3] = [0x8100, 0x88a8, 0x9100];

pub(crate) const ICMP: u8 = 1;
pub(crate) const TCP: u8 = 6;
pub(crate) const UDP: u8 = 17;
pub(crate) const ICMPV6: u8 = 58;
pub(crate) const IGMP: u8 = 2;
pub(crate) const UDP_LITE: u8 = 136;
const DCCP: u8 = 33;
const AUTHENTICATION: u8 = 51;
const OSPF: u8 = 89;
const PIM: u8 = 103;
const VRRP: u8 = 112;
const MOBILITY: u8 = 135;
const HIP: u8 = 139;

/// Whether the packets in frames of this link type can be found.
pub(crate) fn has_network(link_type: u16) -> bool {
    matches!(link_type, ETHERNET | COOKED | COOKED_2)
        || RAW_IP.contains(&link_type)
        || FAMILY.contains(&link_type)
}

/// Returns the `EtherType` of the packet in a frame, and where it begins.
pub(crate) fn network(link_type: u16, frame: &[u8]) -> Option<(u16, usize)> {
    let ip = |at: usize| Some((if frame.get(at)? >> 4 == 6 { IPV6 } else { IPV4 }, at));
    let (mut kind, mut at) = match link_type {
        ETHERNET => (word(frame, 12)?, 14),
        COOKED => (word(frame, 14)?, 16),
        COOKED_2 => (word(frame, 0)?, 20),
        other if RAW_IP.contains(&other) => return ip(0),
        other if FAMILY.contains(&other) => return ip(4),
        _ => return None,
    };
    while is_tag(kind) {
        kind = word(frame, at + 2)?;
        at += 4;
    }
    Some((kind, at))
}

/// Whether this `EtherType` is that of a VLAN tag.
pub(crate) fn is_tag(kind: u16) -> bool {
    TAGS.contains(&kind)
}

pub(crate) fn word(bytes: &[u8], at: usize) -> Option<u16> {
    bytes.get(at..)?.first_chunk().map(|&word| u16::from_be_bytes(word))
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
        match packet.first()? >> 4 {
            4 => Self::ipv4(packet),
            6 => Self::ipv6(packet),
            _ => None,
        }
    }

    fn ipv4(packet: &[u8]) -> Option<Self> {
        let fixed: &[u8; 20] = packet.first_chunk()?;
        let begin = usize::from(fixed[0] & 0xf) * 4;
        let fragment = u16::from_be_bytes([fixed[6], fixed[7]]);
        let total = usize::from(u16::from_be_bytes([fixed[2], fixed[3]]));
        // From an offload: too long for the field.
        let total = if total == 0 { packet.len() } else { total };
        let end = total.min(packet.len());
        let mut layout = (begin >= 20 && begin <= end).then_some(Self {
            is_ipv6: false,
            protocol: fixed[9],
            transport: begin..end,
            is_whole: total == end,
            is_fragment: fragment & 0x3fff != 0,
            offset: usize::from(fragment & 0x1fff) * 8,
            identification: u16::from_be_bytes([fixed[4], fixed[5]]).into(),
            is_deep: false,
            is_routed: false,
            is_authenticated: false,
        })?;
        if layout.protocol == AUTHENTICATION && !layout.is_later() {
            let header: &[u8; 8] = packet.get(layout.transport.clone())?.first_chunk()?;
            layout.is_authenticated = true;
            layout.is_deep = layout.is_fragment;
            layout.protocol = header[0];
            layout.transport.start += 4 * (usize::from(header[1]) + 2);
        }
        (layout.transport.start <= end).then_some(layout)
    }

    fn ipv6(packet: &[u8]) -> Option<Self> {
        const HOP_BY_HOP: u8 = 0;
        const ROUTING: u8 = 43;
        const FRAGMENT: u8 = 44;
        const DESTINATION: u8 = 60;
        let fixed: &[u8; 40] = packet.first_chunk()?;
        let length = usize::from(u16::from_be_bytes([fixed[4], fixed[5]]));
        let total = if length == 0 { packet.len() } else { 40 + length };
        let end = total.min(packet.len());
        let mut layout = Self {
            is_ipv6: true,
            protocol: fixed[6],
            transport: 40..end,
            is_whole: total == end,
            is_fragment: false,
            offset: 0,
            identification: 0,
            is_deep: false,
            is_routed: false,
            is_authenticated: false,
        };
        while let HOP_BY_HOP | ROUTING | FRAGMENT | AUTHENTICATION | DESTINATION = layout.protocol
            && !layout.is_later()
        {
            let header: &[u8; 8] = packet.get(layout.transport.clone())?.first_chunk()?;
            let units = usize::from(header[1]);
            layout.is_deep |= layout.is_fragment;
            let length = match layout.protocol {
                FRAGMENT => {
                    let fragment = u16::from_be_bytes([header[2], header[3]]);
                    layout.is_fragment |= fragment & !6 != 0;
                    layout.offset = usize::from(fragment & !7);
                    layout.identification = u32::from_be_bytes([header[4], header[5], header[6], header[7]]);
                    8
                }
                AUTHENTICATION => 4 * (units + 2),
                _ => 8 * (units + 1),
            };
            layout.is_routed |= layout.protocol == ROUTING && header[3] > 0;
            layout.is_authenticated |= layout.protocol == AUTHENTICATION;
            layout.protocol = header[0];
            layout.transport.start += length;
            if layout.transport.start > end {
                return None;
            }
        }
        Some(layout)
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

/// Returns the address of these bytes, of IPv4 or IPv6.
pub(crate) fn address(bytes: &[u8]) -> Option<IpAddr> {
    let four = || <[u8; 4]>::try_from(bytes).ok().map(IpAddr::from);
    four().or_else(|| <[u8; 16]>::try_from(bytes).ok().map(IpAddr::from))
}
