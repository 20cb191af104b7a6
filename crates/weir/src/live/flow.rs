//! Flows: all packets of a flow, in both directions, have the same hash, and so are in the same group.
//!
//! A flow is defined by its two endpoints and the protocol. An endpoint is an address, and a port if the transport has
//! ports. VLAN tags, MPLS labels and PPPoE session headers are skipped; for a tunnel the outer flow counts. Later
//! fragments, which have no ports, follow the first one. `weir_packet` finds all of this; the programs that steer packets
//! use the same definition (`crates/weir-bpf/bpf/packet/hash.h`).

use std::collections::{HashMap, VecDeque};
use std::hash::BuildHasher;

// Not `fast`: with one seed in a hundred it leaves groups empty.
use foldhash::SharedSeed;
use foldhash::quality::{RandomState, SeedableRandomState};
use weir_packet::link_type::ETHERNET;
use weir_packet::{Ip, Version, link};

/// How many fragmented datagrams are remembered.
const FRAGMENTED: usize = 1024;

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
pub(super) enum FlowGroup {
    /// The packet belongs to this group.
    Group(u8),
    /// A later fragment of a datagram whose first fragment was not seen; all of these are in this group.
    Orphan(u8),
}

impl FlowGroup {
    pub(super) fn group(self) -> u8 {
        match self {
            Self::Group(group) | Self::Orphan(group) => group,
        }
    }
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

    /// Returns the group of a packet with this link type (`LINKTYPE_*`).
    pub(super) fn group_of(&mut self, link_type: u16, packet: &[u8]) -> FlowGroup {
        let Flow { hash, orphan } = self.flow(link_type, packet);
        let [group, ..] = hash.to_le_bytes();
        if orphan { FlowGroup::Orphan(group) } else { FlowGroup::Group(group) }
    }

    /// Returns the flow of a packet with this link type (`LINKTYPE_*`). For packets other than IP, link-layer addresses
    /// define it, if there are any.
    pub(super) fn flow(&mut self, link_type: u16, packet: &[u8]) -> Flow {
        let known = |hash| Flow { hash, orphan: false };
        let Some(outer) = link::outermost_ip(link_type, packet) else {
            let addresses = packet.get(..6).zip(packet.get(6..12)).filter(|_| link_type == ETHERNET);
            let hash = |(one, other): (&[u8], &[u8])| self.hasher.hash_one((one.min(other), one.max(other)));
            return known(addresses.map_or(0, hash));
        };
        // The header is truncated, so the flow is unknown.
        let Some((ip, packet)) = outer.ip(packet) else { return known(0) };
        let ends = ip.addresses().map(|place| bits(&packet[place]));
        let Some(fragment) = ip.fragment else { return known(self.hash(&ip, ends, packet)) };
        // In IPv4, each protocol numbers its datagrams separately.
        let protocol = if ip.version == Version::V4 { ip.protocol } else { 0 };
        let datagram = self.hasher.hash_one((ends, fragment.identification, protocol));
        if fragment.is_later() {
            let first = self.fragmented.get(&datagram);
            return first.map_or(Flow { hash: datagram, orphan: true }, |&hash| known(hash));
        }
        let hash = self.hash(&ip, ends, packet);
        self.remember(datagram, hash);
        known(hash)
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

    fn hash(&self, ip: &Ip, [source, destination]: [u128; 2], packet: &[u8]) -> u64 {
        let [from, to] = ip.ports(packet).unwrap_or_default();
        let (one, other) = ((source, from), (destination, to));
        self.hasher.hash_one((one.min(other), one.max(other), ip.protocol))
    }
}

/// Returns the number that the bytes of an address are.
fn bits(address: &[u8]) -> u128 {
    match address.first_chunk() {
        Some(&all) => u128::from_be_bytes(all),
        None => address.first_chunk().map_or(0, |&four| u32::from_be_bytes(four).into()),
    }
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
            let there = sorter.group_of(ETHERNET, &udp(1, 2, [port, 53]));
            assert_eq!(sorter.group_of(ETHERNET, &udp(2, 1, [53, port])), there);
            seen[usize::from(there.group())] = true;
        }
        assert!(seen.iter().filter(|seen| **seen).count() > 240);
    }

    #[test]
    fn tags_labels_sessions_and_link_types_make_no_difference() {
        let mut sorter = Sorter::new();
        for port in 0..100 {
            let plain = udp(1, 2, [port, 53]);
            let group = sorter.group_of(ETHERNET, &plain);
            let tagged = [&plain[..12], &[0x81, 0, 0, 5, 0x81, 0, 0, 6], &plain[12..]].concat();
            assert_eq!(sorter.group_of(ETHERNET, &tagged), group);
            assert_eq!(sorter.group_of(101, &plain[14..]), group);
            let cooked = [&[8, 0], &[0; 18][..], &plain[14..]].concat();
            assert_eq!(sorter.group_of(276, &cooked), group);
            let labelled = [&plain[..12], &[0x88, 0x47, 0, 1, 0, 64, 0, 2, 1, 64], &plain[14..]].concat();
            assert_eq!(sorter.group_of(ETHERNET, &labelled), group);
            let session = [&plain[..12], &[0x88, 0x64, 0x11, 0, 0, 9, 0, 30, 0, 0x21], &plain[14..]].concat();
            assert_eq!(sorter.group_of(ETHERNET, &session), group);
        }
    }

    #[test]
    fn fragments_follow_the_first() {
        let mut sorter = Sorter::new();
        for number in 0..100u16 {
            let whole = sorter.group_of(ETHERNET, &udp(1, 2, [number, 53]));
            let part = |place: u16| {
                let mut packet = udp(1, 2, if place & 0x1fff == 0 { [number, 53] } else { [7, 7] });
                packet[18..20].copy_from_slice(&number.to_be_bytes());
                packet[20..22].copy_from_slice(&place.to_be_bytes());
                packet
            };
            assert!(
                matches!(sorter.group_of(ETHERNET, &part(2)), FlowGroup::Orphan(_)),
                "its first was not seen"
            );
            assert_eq!(sorter.group_of(ETHERNET, &part(0x2000)), whole);
            assert_eq!(sorter.group_of(ETHERNET, &part(0x2001)), whole);
            assert_eq!(sorter.group_of(ETHERNET, &part(2)), whole);
            if number % 2 == 0 {
                sorter.forget();
                assert!(matches!(sorter.group_of(ETHERNET, &part(2)), FlowGroup::Orphan(_)));
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
            let whole = sorter.group_of(229, &packet(None, number));
            assert_eq!(sorter.group_of(229, &packet(Some([0, 1]), number)), whole);
            assert_eq!(sorter.group_of(229, &packet(Some([0, 8]), 99)), whole);
        }
    }

    proptest! {
        #[test]
        fn any_bytes_have_a_group(link_type in prop::sample::select(vec![0u16, 1, 101, 105, 113, 276]), bytes: Vec<u8>) {
            let mut sorter = Sorter::new();
            let group = sorter.group_of(link_type, &bytes);
            prop_assert_eq!(sorter.group_of(link_type, &bytes), group);
        }
    }
}
