//! Sets of addresses and ports: what a filter can look up rather than compare one by one.
//!
//! A set belongs to a filter under a number; in the kernel it is a map (a hash for exact members, a trie for prefixes), which
//! may change while the filter runs.

use std::collections::HashSet;
use std::fmt;

/// A set of a filter: its index in [`crate::ast::Ast::sets`], or behind those among what lowering added.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct SetId(pub u32);

/// A member: the key's words, most significant first. Of a prefix, the bits behind it are zero.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Member<const WORDS: usize> {
    /// The key.
    pub key: [u32; WORDS],
    /// How many of its bits count, from the most significant on.
    pub bits: u8,
}

/// What is in a set. Members are sorted and unique once [`Contents::normalise`] was called.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Contents {
    /// Ports and other small numbers, exact.
    Numbers(Vec<u32>),
    /// MAC addresses, exact: the first two bytes, then four.
    Macs(Vec<[u32; 2]>),
    /// IPv4 networks; hosts are prefixes of 32 bits.
    Ipv4(Vec<Member<1>>),
    /// IPv6 networks; hosts are prefixes of 128 bits.
    Ipv6(Vec<Member<4>>),
}

/// What the words that list members are.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Holds {
    /// IP addresses and networks; a number without dots is an address.
    Hosts,
    /// The same, where a number without dots is that of a network: 10 is 10.0.0.0/8.
    Networks,
    /// MAC addresses.
    Macs,
    /// Ports.
    Ports,
    /// Ports of TCP, by whose names services are read.
    TcpPorts,
    /// The same of UDP.
    UdpPorts,
    /// The same of SCTP.
    SctpPorts,
    /// VLANs.
    Vlans,
}

/// The name of a set, by which it can be changed.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct SetName {
    /// What the expression calls it: `@NAME` without the sign.
    pub text: String,
    /// How its members are read.
    pub holds: Holds,
}

impl fmt::Display for SetName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

/// A set of a filter.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Set {
    /// Its name, if it has one.
    pub name: Option<SetName>,
    /// What is in it.
    pub contents: Contents,
}

impl Set {
    /// Words of a key.
    pub fn words(&self) -> usize {
        match self.contents {
            Contents::Numbers(_) | Contents::Ipv4(_) => 1,
            Contents::Macs(_) => 2,
            Contents::Ipv6(_) => 4,
        }
    }

    /// Members.
    pub fn len(&self) -> usize {
        match &self.contents {
            Contents::Numbers(members) => members.len(),
            Contents::Macs(members) => members.len(),
            Contents::Ipv4(members) => members.len(),
            Contents::Ipv6(members) => members.len(),
        }
    }

    /// Nothing is in it.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Whether `key`, of [`Set::words`] words, is a member: by looking at each, as the reference for what is faster.
    pub fn contains(&self, key: &[u32]) -> bool {
        match &self.contents {
            Contents::Numbers(members) => members.contains(&key[0]),
            Contents::Macs(members) => members.iter().any(|member| member == key),
            Contents::Ipv4(members) => members.iter().any(|member| member.covers(key)),
            Contents::Ipv6(members) => members.iter().any(|member| member.covers(key)),
        }
    }
}

impl Contents {
    /// Sorts the members and drops those that are there twice.
    pub fn normalise(&mut self) {
        fn sort<T: Ord>(members: &mut Vec<T>) {
            members.sort_unstable();
            members.dedup();
        }
        match self {
            Self::Numbers(members) => sort(members),
            Self::Macs(members) => sort(members),
            Self::Ipv4(members) => sort(members),
            Self::Ipv6(members) => sort(members),
        }
    }
}

impl<const WORDS: usize> Member<WORDS> {
    /// Whether `key` begins with this prefix.
    pub fn covers(&self, key: &[u32]) -> bool {
        masked(&self.key, self.bits.into()) == masked(&key[..WORDS], self.bits.into())
    }
}

/// The first `bits` bits of a word, or all.
pub fn prefix_mask(bits: u32) -> u32 {
    if bits == 0 { 0 } else { u32::MAX << (32 - bits.min(32)) }
}

/// A set that answers fast, whatever its size.
#[derive(Clone, Debug)]
pub struct Lookup {
    words: usize,
    /// Members by the number of bits that count; all bits for exact sets.
    lengths: Vec<(u32, HashSet<[u32; 4]>)>,
}

impl Lookup {
    /// Prepares `set`.
    pub fn new(set: &Set) -> Self {
        let mut lookup = Self { words: set.words(), lengths: Vec::new() };
        let all = 32 * u32::try_from(lookup.words).expect("a key has few words");
        match &set.contents {
            Contents::Numbers(members) => members.iter().for_each(|&number| lookup.add(all, &[number])),
            Contents::Macs(members) => members.iter().for_each(|mac| lookup.add(all, mac)),
            Contents::Ipv4(members) => members.iter().for_each(|net| lookup.add(net.bits.into(), &net.key)),
            Contents::Ipv6(members) => members.iter().for_each(|net| lookup.add(net.bits.into(), &net.key)),
        }
        lookup
    }

    fn add(&mut self, bits: u32, key: &[u32]) {
        let masked = masked(key, bits);
        match self.lengths.iter_mut().find(|(length, _)| *length == bits) {
            Some((_, members)) => _ = members.insert(masked),
            None => self.lengths.push((bits, HashSet::from([masked]))),
        }
    }

    /// Whether `key` is a member.
    pub fn contains(&self, key: &[u32]) -> bool {
        self.lengths.iter().any(|(bits, members)| members.contains(&masked(&key[..self.words], *bits)))
    }
}

/// The first `bits` bits of a key, zeros behind them.
fn masked(key: &[u32], mut bits: u32) -> [u32; 4] {
    let mut masked = [0; 4];
    for (to, from) in masked.iter_mut().zip(key) {
        *to = from & prefix_mask(bits);
        bits = bits.saturating_sub(32);
    }
    masked
}
