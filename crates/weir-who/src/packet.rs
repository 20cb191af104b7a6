//! What is asked of a register, and what matters of a packet.

use weir_packet::bytes::{be16, byte};
use weir_packet::{Extent, Ip, Version, ethertype, link, link_type, protocol};

use crate::key::{Address, End};

/// Which end of a packet is asked about.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Side {
    /// Who has sent it.
    Sender,
    /// Who gets it.
    Receiver,
}

/// A packet, as far as it matters whose it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Question<'a> {
    /// When it was captured, in nanoseconds since the Unix epoch.
    pub at: u64,
    /// The namespace of the interface that it was captured on; none asks all.
    pub namespace: Option<u64>,
    /// The link type of the interface (`LINKTYPE_*`).
    pub link_type: u16,
    /// The frame, perhaps cut.
    pub frame: &'a [u8],
}

/// Most packets: of TCP or UDP, to one host, without options, extension headers, or fragments. What is read of them is what is read of
/// others, in less time.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Plain {
    pub(crate) protocol: u8,
    pub(crate) from: End,
    pub(crate) to: End,
}

impl Plain {
    #[inline]
    pub(crate) fn of(link_type: u16, frame: &[u8]) -> Option<Self> {
        let payload = link::outermost_ip(link_type, frame)?;
        let packet = payload.bytes(frame);
        let (protocol, addresses, ports) = match payload.kind {
            ethertype::IPV4 => {
                let head: &[u8; 24] = packet.first_chunk()?;
                // Five words, and nothing but the bit that forbids fragments.
                if head[0] & 15 != 5 || head[6] & 0x3f != 0 || head[7] != 0 {
                    return None;
                }
                let [.., a, b, c, d, e, f, g, h, i, j, k, l] = *head;
                let addresses = [[a, b, c, d], [e, f, g, h]].map(u32::from_be_bytes).map(Address::v4);
                (head[9], addresses, [i, j, k, l])
            }
            _ => {
                let head: &[u8; 44] = packet.first_chunk()?;
                let address = |at: usize| head[at..].first_chunk().map(|bytes| u128::from_be_bytes(*bytes));
                let addresses = [address(8)?, address(24)?].map(Address::v6);
                (head[6], addresses, [head[40], head[41], head[42], head[43]])
            }
        };
        let [source, destination] = addresses;
        let is_to_many = || destination.is_many() || is_to_many(link_type, frame);
        if !matches!(protocol, protocol::TCP | protocol::UDP) || is_to_many() {
            return None;
        }
        let [a, b, c, d] = ports;
        let [from, to] = [[a, b], [c, d]].map(u16::from_be_bytes);
        Some(Self {
            protocol,
            from: End { address: source, port: from },
            to: End { address: destination, port: to },
        })
    }

    /// Returns its ends, the one of this side first.
    #[inline]
    pub(crate) fn ends(&self, side: Side) -> [End; 2] {
        match side {
            Side::Sender => [self.from, self.to],
            Side::Receiver => [self.to, self.from],
        }
    }
}

/// What is in a frame.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Contents<'a> {
    Arp,
    /// Neither IP nor ARP, or cut before that can be told.
    Other,
    Ip(Packet<'a>),
}

/// An IP packet.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Packet<'a> {
    pub(crate) protocol: u8,
    pub(crate) source: Address,
    pub(crate) destination: Address,
    /// The link layer says that it goes to a group or to all hosts of a network.
    is_frame_to_many: bool,
    pub(crate) body: Body<'a>,
}

/// What is behind an IP header.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Body<'a> {
    /// A protocol with ports.
    Ports {
        from: u16,
        to: u16,
        /// The flags of TCP, if they are there.
        flags: Option<u8>,
    },
    EchoRequest(u16),
    EchoReply(u16),
    /// An error of ICMP, and the packet that it is about.
    Error(&'a [u8]),
    /// What else the kernel sends and receives by itself: reports of groups, neighbour discovery, redirects.
    Housekeeping,
    /// What else the kernel receives by itself, but programs send: queries of groups, advertisements of routers, requests that it answers.
    Instruction,
    /// Another protocol, or other messages of ICMP.
    Plain,
    /// It is in another fragment, or cut.
    Missing,
}

/// The flags of TCP (RFC 9293).
pub(crate) mod flag {
    pub(crate) const SYN: u8 = 2;
    pub(crate) const RST: u8 = 4;
}

impl<'a> Contents<'a> {
    #[inline]
    pub(crate) fn of(link_type: u16, frame: &'a [u8]) -> Self {
        if let Some((ip, packet)) = link::outermost_ip(link_type, frame).and_then(|payload| payload.ip(frame))
        {
            let mut packet = Packet::of(&ip, packet);
            packet.is_frame_to_many = is_to_many(link_type, frame);
            return Self::Ip(packet);
        }
        match link::payload(link_type, frame).map(|payload| payload.behind_tags(frame).kind) {
            Some(ethertype::ARP) => Self::Arp,
            _ => Self::Other,
        }
    }
}

/// Returns the source and the destination of the packet with this header.
#[inline]
fn ends(ip: &Ip, packet: &[u8]) -> [Address; 2] {
    let bytes = |at: usize| packet.get(at..).and_then(<[u8]>::first_chunk);
    let six = |at: usize| packet.get(at..).and_then(<[u8]>::first_chunk);
    let ends = match ip.version {
        Version::V4 => [12, 16].map(|at| bytes(at).map(|bytes| Address::v4(u32::from_be_bytes(*bytes)))),
        Version::V6 => [8, 24].map(|at| six(at).map(|bytes| Address::v6(u128::from_be_bytes(*bytes)))),
    };
    ends.map(|end| end.expect("the header was read"))
}

/// Returns whether the link layer says that a frame is for many hosts.
#[inline]
fn is_to_many(link: u16, frame: &[u8]) -> bool {
    /// `PACKET_BROADCAST` and `PACKET_MULTICAST` (packet(7)).
    fn is_many(kind: u16) -> bool {
        matches!(kind, 1 | 2)
    }
    match link {
        link_type::ETHERNET => frame.first().is_some_and(|first| first & 1 == 1),
        link_type::COOKED => be16(frame, 0).is_some_and(is_many),
        link_type::COOKED_2 => byte(frame, 10).is_some_and(|kind| is_many(kind.into())),
        _ => false,
    }
}

impl<'a> Packet<'a> {
    #[inline]
    pub(crate) fn of(ip: &Ip, packet: &'a [u8]) -> Self {
        let [source, destination] = ends(ip, packet);
        let body = match ip.ports(packet) {
            Some([from, to]) => {
                let flags = (ip.protocol == protocol::TCP).then(|| byte(packet, ip.payload + 13)).flatten();
                Body::Ports { from, to, flags }
            }
            None => Self::other(ip, packet),
        };
        Self { protocol: ip.protocol, source, destination, is_frame_to_many: false, body }
    }

    #[inline(never)]
    fn other(ip: &Ip, packet: &'a [u8]) -> Body<'a> {
        let payload = ip.payload_of(packet);
        if ip.is_later() || ip.extent != Extent::Complete || protocol::has_ports(ip.protocol) {
            return Body::Missing;
        }
        let icmp = |version| match ip.version {
            _ if version != ip.version => Body::Plain,
            Version::V4 => icmp(payload),
            Version::V6 => icmp_v6(payload),
        };
        match ip.protocol {
            protocol::ICMP => icmp(Version::V4),
            protocol::ICMPV6 => icmp(Version::V6),
            // A query of members (RFC 3376); reports and leaves are of others.
            protocol::IGMP => match byte(payload, 0) {
                None => Body::Missing,
                Some(0x11) => Body::Instruction,
                Some(_) => Body::Housekeeping,
            },
            _ => Body::Plain,
        }
    }

    /// Returns its ends, the one of this side first, if it has ports or what stands for them.
    #[inline]
    pub(crate) fn ends(&self, side: Side) -> Option<[End; 2]> {
        let (from, to) = match self.body {
            Body::Ports { from, to, .. } => (from, to),
            Body::EchoRequest(id) => (id, 0),
            Body::EchoReply(id) => (0, id),
            _ => return None,
        };
        let from = End { address: self.source, port: from };
        let to = End { address: self.destination, port: to };
        Some(match side {
            Side::Sender => [from, to],
            Side::Receiver => [to, from],
        })
    }

    /// Returns its addresses, the one of this side first.
    pub(crate) fn addresses(&self, side: Side) -> [Address; 2] {
        match side {
            Side::Sender => [self.source, self.destination],
            Side::Receiver => [self.destination, self.source],
        }
    }

    /// Returns whether it goes to a group or to all hosts of a network.
    pub(crate) fn is_to_many(&self) -> bool {
        self.is_frame_to_many || self.destination.is_many()
    }

    #[inline]
    pub(crate) fn has_flag(&self, flag: u8) -> bool {
        matches!(self.body, Body::Ports { flags: Some(flags), .. } if flags & flag != 0)
    }
}

/// Messages of ICMP (<https://www.iana.org/assignments/icmp-parameters>). The kernel answers requests for a timestamp.
fn icmp(message: &[u8]) -> Body<'_> {
    match (byte(message, 0), be16(message, 4)) {
        (Some(0), Some(id)) => Body::EchoReply(id),
        (Some(8), Some(id)) => Body::EchoRequest(id),
        (Some(3..=5 | 11 | 12), Some(_)) => Body::Error(message.get(8..).unwrap_or_default()),
        (Some(14), _) => Body::Housekeeping,
        (Some(13), _) => Body::Instruction,
        (None | Some(0 | 3..=5 | 8 | 11 | 12), _) => Body::Missing,
        _ => Body::Plain,
    }
}

/// Messages of ICMPv6 (<https://www.iana.org/assignments/icmpv6-parameters>).
fn icmp_v6(message: &[u8]) -> Body<'_> {
    match (byte(message, 0), be16(message, 4)) {
        (Some(128), Some(id)) => Body::EchoRequest(id),
        (Some(129), Some(id)) => Body::EchoReply(id),
        (Some(0..=127), Some(_)) => Body::Error(message.get(8..).unwrap_or_default()),
        (None | Some(0..=129), _) => Body::Missing,
        // Reports of groups and their end; solicitations, neighbours' advertisements, redirects.
        (Some(131 | 132 | 143 | 133 | 135..=137), _) => Body::Housekeeping,
        // A query for groups; a router's advertisement.
        (Some(130 | 134), _) => Body::Instruction,
        _ => Body::Plain,
    }
}

impl Body<'_> {
    /// Returns the packet that an error is about.
    pub(crate) fn quoted(&self) -> Option<Packet<'_>> {
        let Self::Error(packet) = self else { return None };
        Some(Packet::of(&Ip::of(packet)?, packet))
    }
}
