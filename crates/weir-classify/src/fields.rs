//! The fields of a packet that conditions are about.

use std::net::{IpAddr, Ipv4Addr};

use weir_packet::bytes::{be16, be32, byte};
use weir_packet::{Ip, ethertype, is_extension, protocol};

/// What the network header is, behind VLAN tags.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Kind {
    /// None of the others.
    Other,
    /// IPv4.
    Ipv4,
    /// IPv6.
    Ipv6,
    /// ARP, whose addresses are taken for those of IPv4.
    Arp,
    /// Reverse ARP.
    ReverseArp,
}

/// Which way a packet goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Direction {
    /// The host has received it.
    Received,
    /// The host sends it.
    Sent,
}

/// A VLAN tag of a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Tag {
    /// There is none.
    None,
    /// With this VLAN ID.
    Of(u16),
    /// The packet ends before the VLAN ID.
    Cut,
}

/// The fields of a packet, as filters of the dialect `weir` see them: a field is there if its bytes are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Fields {
    /// What the network header is.
    pub kind: Kind,
    /// The protocol of IP, behind extension headers.
    pub protocol: Option<u8>,
    /// Source and destination of IP, or sender and target of ARP.
    pub addresses: [Option<IpAddr>; 2],
    /// Source and destination port of TCP, UDP and SCTP, but for later fragments.
    pub ports: [Option<u16>; 2],
    /// VLAN tags, the outermost first.
    pub tags: [Tag; MOST_TAGS],
    /// Which way it goes; `None`: nobody knows.
    pub direction: Option<Direction>,
}

/// Length of an Ethernet header and of a VLAN tag.
const ETHERNET: usize = 14;
const TAG: usize = 4;

/// How many VLAN tags there may be before the network header.
pub const MOST_TAGS: usize = 4;

/// Whether filters look behind such a tag.
fn is_tag(kind: u16) -> bool {
    ethertype::TAGS_OF_LIBPCAP.contains(&kind)
}

impl Fields {
    /// Those of a packet that says nothing.
    pub const NONE: Self = Self {
        kind: Kind::Other,
        protocol: None,
        addresses: [None; 2],
        ports: [None; 2],
        tags: [Tag::None; MOST_TAGS],
        direction: None,
    };

    /// Returns the fields of an Ethernet frame, which does not say its direction.
    pub fn of(frame: &[u8]) -> Self {
        let mut at = ETHERNET;
        let Some(mut kind) = be16(frame, at - 2) else { return Self::NONE };
        let mut tags = [Tag::None; MOST_TAGS];
        for tag in &mut tags {
            if !is_tag(kind) {
                break;
            }
            *tag = be16(frame, at).map_or(Tag::Cut, |control| Tag::Of(control & 0x0fff));
            at += TAG;
            match be16(frame, at - 2) {
                Some(behind) => kind = behind,
                None => return Self { tags, ..Self::NONE },
            }
        }
        Self { tags, ..Self::behind_link(kind, &frame[at..]) }
    }

    fn behind_link(kind: u16, packet: &[u8]) -> Self {
        match kind {
            ethertype::IPV4 => Self::of_ipv4(packet),
            ethertype::IPV6 => Self::of_ipv6(packet),
            ethertype::ARP => Self { kind: Kind::Arp, addresses: ipv4(packet, [14, 24]), ..Self::NONE },
            ethertype::RARP => {
                Self { kind: Kind::ReverseArp, addresses: ipv4(packet, [14, 24]), ..Self::NONE }
            }
            _ => Self::NONE,
        }
    }

    fn of_ipv4(packet: &[u8]) -> Self {
        let protocol = byte(packet, 9);
        let later = be16(packet, 6).is_none_or(|place| place & 0x1fff != 0);
        let transport = byte(packet, 0).map(|first| usize::from(first & 15) * 4);
        let ports = transport.filter(|_| !later);
        let ports = ports.map_or([None; 2], |at| ports_at(protocol, packet, at));
        Self { kind: Kind::Ipv4, protocol, addresses: ipv4(packet, [12, 16]), ports, ..Self::NONE }
    }

    fn of_ipv6(packet: &[u8]) -> Self {
        let addresses = [8, 24].map(|at| packet.get(at..at + 16).and_then(weir_packet::address));
        let Some(ip) = Ip::v6(packet) else {
            let protocol = byte(packet, 6).filter(|&number| !is_extension(number));
            return Self { kind: Kind::Ipv6, protocol, addresses, ..Self::NONE };
        };
        let later = ip.is_later();
        let ports = if later { [None; 2] } else { ports_at(Some(ip.protocol), packet, ip.payload) };
        Self { kind: Kind::Ipv6, protocol: Some(ip.protocol), addresses, ports, ..Self::NONE }
    }
}

fn ipv4(packet: &[u8], at: [usize; 2]) -> [Option<IpAddr>; 2] {
    at.map(|at| be32(packet, at).map(|address| Ipv4Addr::from_bits(address).into()))
}

fn ports_at(protocol: Option<u8>, packet: &[u8], at: usize) -> [Option<u16>; 2] {
    match protocol {
        Some(protocol::TCP | protocol::UDP | protocol::SCTP) => [be16(packet, at), be16(packet, at + 2)],
        _ => [None; 2],
    }
}
