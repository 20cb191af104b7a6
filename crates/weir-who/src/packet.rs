//! What is asked of a register, and what matters of a packet.

use std::net::{IpAddr, Ipv4Addr};

use weir_packet::bytes::{be16, byte};
use weir_packet::{Endpoint, Extent, Ip, Version, ethertype, link, link_type, protocol};

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
    pub(crate) source: IpAddr,
    pub(crate) destination: IpAddr,
    /// It goes to a group or to all hosts of a network.
    pub(crate) is_to_many: bool,
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
            packet.is_to_many |= is_to_many(link_type, frame);
            return Self::Ip(packet);
        }
        match link::payload(link_type, frame).map(|payload| payload.behind_tags(frame).kind) {
            Some(ethertype::ARP) => Self::Arp,
            _ => Self::Other,
        }
    }
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
        let [source, destination] = ip.ends(packet);
        let body = match ip.ports(packet) {
            Some([from, to]) => {
                let flags = (ip.protocol == protocol::TCP).then(|| byte(packet, ip.payload + 13)).flatten();
                Body::Ports { from, to, flags }
            }
            None => Self::other(ip, packet),
        };
        let is_to_many = destination.is_multicast() || destination == Ipv4Addr::BROADCAST;
        Self { protocol: ip.protocol, source, destination, is_to_many, body }
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
    pub(crate) fn ends(&self, side: Side) -> Option<[Endpoint; 2]> {
        let (from, to) = match self.body {
            Body::Ports { from, to, .. } => (from, to),
            Body::EchoRequest(id) => (id, 0),
            Body::EchoReply(id) => (0, id),
            _ => return None,
        };
        let from = Endpoint { address: self.source, port: from };
        let to = Endpoint { address: self.destination, port: to };
        Some(match side {
            Side::Sender => [from, to],
            Side::Receiver => [to, from],
        })
    }

    /// Returns its addresses, the one of this side first.
    pub(crate) fn addresses(&self, side: Side) -> [IpAddr; 2] {
        match side {
            Side::Sender => [self.source, self.destination],
            Side::Receiver => [self.destination, self.source],
        }
    }

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
