//! Flows: all packets of a flow, in both directions, have the same hash, and so are in the same group.
//!
//! A flow is defined by its two endpoints and the protocol. An endpoint is an address, and a port if the transport has
//! ports. VLAN tags, MPLS labels and PPPoE session headers are skipped; for a tunnel the outer flow counts. Later
//! fragments, which have no ports, follow the first one. The programs that steer packets use the same definition
//! (`crates/weir-bpf/src/flow.h`).

use std::collections::{HashMap, VecDeque};
use std::hash::BuildHasher;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

// Not `fast`: with one seed in a hundred it leaves groups empty.
use foldhash::SharedSeed;
use foldhash::quality::{RandomState, SeedableRandomState};

/// How many fragmented datagrams are remembered.
const FRAGMENTED: usize = 1024;
/// Maximum number of VLAN tags, MPLS labels, or IPv6 extension headers to skip.
const MOST_HEADERS: usize = 8;

/// Sorts packets into groups. Each sorter assigns flows to groups at random, so that nobody can craft flows that all
/// end up in one group.
#[derive(Debug)]
pub(super) struct Sorter {
    hasher: SeedableRandomState,
    /// The hash of the flow of a datagram's first fragment, by the datagram's hash.
    fragmented: HashMap<u64, u64, RandomState>,
    /// The same datagrams, oldest first.
    remembered: VecDeque<u64>,
}

/// The flow of a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Flow {
    /// Its hash; 0 if headers are cut.
    pub(super) hash: u64,
    /// The packet is a later fragment of a datagram whose first fragment was not seen. The hash is the datagram's.
    pub(super) orphan: bool,
}

/// The group of a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum Place {
    /// The packet belongs to this group.
    Group(u8),
    /// A later fragment of a datagram whose first fragment was not seen; all of these are in this group.
    Orphan(u8),
}

impl Place {
    pub(super) fn group(self) -> u8 {
        match self {
            Self::Group(group) | Self::Orphan(group) => group,
        }
    }
}

/// The fields of a packet that determine its group.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Key {
    pub(super) source: u128,
    pub(super) destination: u128,
    pub(super) protocol: u8,
    pub(super) part: Part,
    /// Where what the header carries begins, from the header on.
    pub(super) next: usize,
}

/// The part of a datagram in a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Part {
    /// A whole datagram, with its ports if it has any.
    Whole(Option<[u16; 2]>),
    /// The first fragment, with its ports and the datagram's identification.
    First(Option<[u16; 2]>, u64),
    /// A later fragment, with the datagram's identification.
    Later(u64),
}

impl Sorter {
    pub(super) fn new() -> Self {
        Self::with(SeedableRandomState::random())
    }

    /// Returns a sorter for which each flow has the same hash as for others of this process with this seed.
    pub(super) fn seeded(seed: u64) -> Self {
        Self::with(SeedableRandomState::with_seed(seed, SharedSeed::global_random()))
    }

    fn with(hasher: SeedableRandomState) -> Self {
        Self { hasher, fragmented: HashMap::default(), remembered: VecDeque::new() }
    }

    /// Forgets all datagrams, because packets were skipped and identifications may have been reused.
    pub(super) fn forget(&mut self) {
        self.fragmented.clear();
        self.remembered.clear();
    }

    /// Returns the place of a packet with this link type (`LINKTYPE_*`).
    pub(super) fn place(&mut self, link_type: u16, packet: &[u8]) -> Place {
        let Flow { hash, orphan } = self.flow(link_type, packet);
        let [group, ..] = hash.to_le_bytes();
        if orphan { Place::Orphan(group) } else { Place::Group(group) }
    }

    /// Returns the flow of a packet with this link type (`LINKTYPE_*`). For packets other than IP, link-layer addresses
    /// define it, if there are any.
    pub(super) fn flow(&mut self, link_type: u16, packet: &[u8]) -> Flow {
        let known = |hash| Flow { hash, orphan: false };
        let Some((network, rest)) = network(link_type, packet) else {
            let addresses = packet.get(..6).zip(packet.get(6..12)).filter(|_| link_type == ETHERNET);
            let hash = |(one, other): (&[u8], &[u8])| self.hasher.hash_one((one.min(other), one.max(other)));
            return known(addresses.map_or(0, hash));
        };
        let key = network.key(rest);
        // The header is truncated, so the flow is unknown.
        let Some(key) = key else { return known(0) };
        let datagram = |number: u64| self.hasher.hash_one((key.source, key.destination, number));
        match key.part {
            Part::Whole(ports) => known(self.hash(&key, ports)),
            Part::First(ports, number) => {
                let (datagram, hash) = (datagram(number), self.hash(&key, ports));
                self.remember(datagram, hash);
                known(hash)
            }
            Part::Later(number) => {
                let datagram = datagram(number);
                let first = self.fragmented.get(&datagram);
                first.map_or(Flow { hash: datagram, orphan: true }, |&hash| known(hash))
            }
        }
    }

    fn remember(&mut self, datagram: u64, hash: u64) {
        if self.fragmented.insert(datagram, hash).is_none() {
            self.remembered.push_back(datagram);
        }
        if self.remembered.len() > FRAGMENTED
            && let Some(oldest) = self.remembered.pop_front()
        {
            self.fragmented.remove(&oldest);
        }
    }

    fn hash(&self, key: &Key, ports: Option<[u16; 2]>) -> u64 {
        let ports = ports.unwrap_or_default();
        let (one, other) = ((key.source, ports[0]), (key.destination, ports[1]));
        self.hasher.hash_one((one.min(other), one.max(other), key.protocol))
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Network {
    V4,
    V6,
}

impl Network {
    /// Reads the outermost header; `None`: it is truncated.
    pub(super) fn key(self, header: &[u8]) -> Option<Key> {
        match self {
            Self::V4 => Key::v4(header),
            Self::V6 => Key::v6(header),
        }
    }

    /// Returns an address of a [`Key`].
    pub(super) fn address(self, bits: u128) -> IpAddr {
        match self {
            Self::V4 => IpAddr::V4(Ipv4Addr::from_bits(u32::try_from(bits).unwrap_or_default())),
            Self::V6 => IpAddr::V6(Ipv6Addr::from_bits(bits)),
        }
    }
}

pub(super) const ETHERNET: u16 = 1;

/// Finds the network header of an IP packet; returns everything from there.
pub(super) fn network(link_type: u16, packet: &[u8]) -> Option<(Network, &[u8])> {
    let (kind, rest) = match link_type {
        ETHERNET => {
            let mut at = 12;
            for _ in 0..MOST_HEADERS {
                match word(packet, at)? {
                    0x8100 | 0x88a8 | 0x9100 => at += 4,
                    kind => return by_kind(kind, packet.get(at + 2..)?),
                }
            }
            return None;
        }
        // LINUX_SLL, LINUX_SLL2
        113 => (word(packet, 14)?, packet.get(16..)?),
        276 => (word(packet, 0)?, packet.get(20..)?),
        // RAW, IPV4, IPV6; in NULL and LOOP the IP version says the same as the address family.
        101 | 228 | 229 => (0, packet),
        0 | 108 => (0, packet.get(4..)?),
        _ => return None,
    };
    if kind == 0 { by_version(rest) } else { by_kind(kind, rest) }
}

fn by_version(rest: &[u8]) -> Option<(Network, &[u8])> {
    match rest.first()? >> 4 {
        4 => Some((Network::V4, rest)),
        6 => Some((Network::V6, rest)),
        _ => None,
    }
}

/// Finds the network header by EtherType.
fn by_kind(kind: u16, rest: &[u8]) -> Option<(Network, &[u8])> {
    match kind {
        0x0800 => Some((Network::V4, rest)),
        0x86dd => Some((Network::V6, rest)),
        // MPLS (RFC 3032): after the label marked as the last.
        0x8847 | 0x8848 => {
            let before = rest.chunks_exact(4).take(MOST_HEADERS).position(|label| label[2] & 1 == 1)?;
            by_version(&rest[(before + 1) * 4..])
        }
        // A PPPoE session (RFC 2516), and the protocol that PPP carries.
        0x8864 => match rest.split_at_checked(8)? {
            ([0x11, 0, _, _, _, _, 0x00, 0x21], packet) => Some((Network::V4, packet)),
            ([0x11, 0, _, _, _, _, 0x00, 0x57], packet) => Some((Network::V6, packet)),
            _ => None,
        },
        _ => None,
    }
}

impl Key {
    fn v4(header: &[u8]) -> Option<Self> {
        let address = |at| Some(u128::from(u32::from_be_bytes(*header.get(at..)?.first_chunk()?)));
        let (number, place) = (word(header, 4)?, word(header, 6)?);
        let protocol = *header.get(9)?;
        let next = usize::from(header[0] & 15) * 4;
        let behind = header.get(next..).unwrap_or_default();
        let (more, later) = (place & 0x2000 != 0, place & 0x1fff != 0);
        // In IPv4, each protocol numbers its datagrams separately.
        let number = u64::from(number) | u64::from(protocol) << 16;
        let part = Part::of(protocol, behind, (more || later).then_some((later, number)));
        Some(Self { source: address(12)?, destination: address(16)?, protocol, part, next })
    }

    fn v6(header: &[u8]) -> Option<Self> {
        let address = |at| Some(u128::from_be_bytes(*header.get(at..)?.first_chunk()?));
        let (source, destination) = (address(8)?, address(24)?);
        let (mut protocol, mut at, mut fragment) = (*header.get(6)?, 40, None);
        for _ in 0..MOST_HEADERS {
            let Some(extension) = header.get(at..).filter(|extension| extension.len() >= 8) else { break };
            let length = match protocol {
                0 | 43 | 60 | 135 => usize::from(extension[1]) * 8 + 8,
                51 => usize::from(extension[1]) * 4 + 8,
                44 => {
                    let place = u16::from_be_bytes([extension[2], extension[3]]);
                    let number = *extension[4..].first_chunk()?;
                    // A fragment that is a whole datagram is not a fragment (RFC 6946).
                    let number = u64::from(u32::from_be_bytes(number));
                    fragment = (place & 0xfff9 != 0).then_some((place & 0xfff8 != 0, number));
                    8
                }
                _ => break,
            };
            protocol = extension[0];
            at += length;
            if fragment.is_some_and(|(later, _)| later) {
                break;
            }
        }
        let part = Part::of(protocol, header.get(at..).unwrap_or_default(), fragment);
        Some(Self { source, destination, protocol, part, next: at })
    }
}

impl Part {
    /// `fragment`: whether this is a later one, and the datagram's identification.
    fn of(protocol: u8, behind: &[u8], fragment: Option<(bool, u64)>) -> Self {
        // TCP, UDP, DCCP, SCTP, UDP-Lite.
        let has_ports = matches!(protocol, 6 | 17 | 33 | 132 | 136);
        let ports = if has_ports { word(behind, 0).zip(word(behind, 2)) } else { None };
        let ports = ports.map(|(source, destination)| [source, destination]);
        match fragment {
            None => Self::Whole(ports),
            Some((false, number)) => Self::First(ports, number),
            Some((true, number)) => Self::Later(number),
        }
    }
}

pub(super) fn word(bytes: &[u8], at: usize) -> Option<u16> {
    Some(u16::from_be_bytes(*bytes.get(at..)?.first_chunk()?))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn udp(source: u8, destination: u8, ports: [u16; 2]) -> Vec<u8> {
        let mut packet = vec![0; 42];
        packet[12..15].copy_from_slice(&[8, 0, 0x45]);
        packet[23] = 17;
        (packet[26], packet[30]) = (source, destination);
        packet[34..36].copy_from_slice(&ports[0].to_be_bytes());
        packet[36..38].copy_from_slice(&ports[1].to_be_bytes());
        packet
    }

    #[test]
    fn both_ways_of_a_flow_are_in_one_group_and_flows_are_spread() {
        let mut sorter = Sorter::new();
        let mut seen = [false; 256];
        for port in 0..2000 {
            let there = sorter.place(ETHERNET, &udp(1, 2, [port, 53]));
            assert_eq!(sorter.place(ETHERNET, &udp(2, 1, [53, port])), there);
            seen[usize::from(there.group())] = true;
        }
        assert!(seen.iter().filter(|seen| **seen).count() > 240);
    }

    #[test]
    fn tags_labels_sessions_and_link_types_make_no_difference() {
        let mut sorter = Sorter::new();
        for port in 0..100 {
            let plain = udp(1, 2, [port, 53]);
            let group = sorter.place(ETHERNET, &plain);
            let tagged = [&plain[..12], &[0x81, 0, 0, 5, 0x81, 0, 0, 6], &plain[12..]].concat();
            assert_eq!(sorter.place(ETHERNET, &tagged), group);
            assert_eq!(sorter.place(101, &plain[14..]), group);
            let cooked = [&[8, 0], &[0; 18][..], &plain[14..]].concat();
            assert_eq!(sorter.place(276, &cooked), group);
            let labelled = [&plain[..12], &[0x88, 0x47, 0, 1, 0, 64, 0, 2, 1, 64], &plain[14..]].concat();
            assert_eq!(sorter.place(ETHERNET, &labelled), group);
            let session = [&plain[..12], &[0x88, 0x64, 0x11, 0, 0, 9, 0, 30, 0, 0x21], &plain[14..]].concat();
            assert_eq!(sorter.place(ETHERNET, &session), group);
        }
    }

    #[test]
    fn fragments_follow_the_first() {
        let mut sorter = Sorter::new();
        for number in 0..100u16 {
            let whole = sorter.place(ETHERNET, &udp(1, 2, [number, 53]));
            let part = |place: u16| {
                let mut packet = udp(1, 2, if place & 0x1fff == 0 { [number, 53] } else { [7, 7] });
                packet[18..20].copy_from_slice(&number.to_be_bytes());
                packet[20..22].copy_from_slice(&place.to_be_bytes());
                packet
            };
            assert!(matches!(sorter.place(ETHERNET, &part(2)), Place::Orphan(_)), "its first was not seen");
            assert_eq!(sorter.place(ETHERNET, &part(0x2000)), whole);
            assert_eq!(sorter.place(ETHERNET, &part(0x2001)), whole);
            assert_eq!(sorter.place(ETHERNET, &part(2)), whole);
            if number % 2 == 0 {
                sorter.forget();
                assert!(matches!(sorter.place(ETHERNET, &part(2)), Place::Orphan(_)));
            }
        }
        // The same in IPv6: header, fragment header, UDP.
        for number in 0..100u8 {
            let packet = |fragment: Option<[u8; 2]>, port: u8| {
                let mut packet = vec![0; 40];
                (packet[0], packet[6], packet[23], packet[39]) = (0x60, 17, 1, 2);
                if let Some(place) = fragment {
                    packet[6] = 44;
                    packet.extend([17, 0, place[0], place[1], 0, 0, 0, number]);
                }
                packet.extend([0, port, 0, 53, 0, 8, 0, 0]);
                packet
            };
            let whole = sorter.place(229, &packet(None, number));
            assert_eq!(sorter.place(229, &packet(Some([0, 1]), number)), whole);
            assert_eq!(sorter.place(229, &packet(Some([0, 8]), 99)), whole);
        }
    }

    proptest! {
        #[test]
        fn any_bytes_have_a_group(link_type in prop::sample::select(vec![0u16, 1, 101, 105, 113, 276]), bytes: Vec<u8>) {
            let mut sorter = Sorter::new();
            let place = sorter.place(link_type, &bytes);
            prop_assert_eq!(sorter.place(link_type, &bytes), place);
        }
    }
}
