//! Sets of addresses and ports, which a filter looks up instead of comparing members one by one.
//!
//! A filter refers to its sets by number. In the kernel a set is a map (a hash for exact members, a trie for prefixes),
//! whose members may change while the filter runs.

use std::collections::HashSet;
use std::fmt;

/// The number of a set: an index into [`crate::ast::Ast::sets`], followed by the sets that lowering added.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct SetId(pub u32);

/// A set member: the words of a key, most significant first. Bits after the prefix are zero.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Member<const WORDS: usize> {
    /// The key.
    pub key: [u32; WORDS],
    /// Prefix length in bits, from the most significant bit.
    pub bits: u8,
}

/// The members of a set. They are sorted and unique after [`Contents::normalise`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Contents {
    /// Ports and other small numbers, matched exactly.
    Numbers(Vec<u32>),
    /// MAC addresses, matched exactly: the first two bytes, then the other four.
    Macs(Vec<[u32; 2]>),
    /// IPv4 networks; a host has a prefix length of 32.
    Ipv4(Vec<Member<1>>),
    /// IPv6 networks; a host has a prefix length of 128.
    Ipv6(Vec<Member<4>>),
}

/// How the words in a member list are read.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Holds {
    /// IP addresses and networks; a plain number is an address.
    Hosts,
    /// IP addresses and networks; a plain number is a network: 10 is 10.0.0.0/8.
    Networks,
    /// MAC addresses.
    Macs,
    /// Ports.
    Ports,
    /// TCP ports; service names are looked up for TCP.
    TcpPorts,
    /// UDP ports; service names are looked up for UDP.
    UdpPorts,
    /// SCTP ports; service names are looked up for SCTP.
    SctpPorts,
    /// VLAN IDs.
    Vlans,
}

/// The name of a set, used to change its members.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct SetName {
    /// The name in the expression: `NAME` of `@NAME`.
    pub text: String,
    /// How its members are read.
    pub holds: Holds,
}

impl fmt::Display for SetName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

/// A set used by a filter.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Set {
    /// Name, if any.
    pub name: Option<SetName>,
    /// Members.
    pub contents: Contents,
}

impl Set {
    /// Returns the number of words in a key.
    pub fn words(&self) -> usize {
        match self.contents {
            Contents::Numbers(_) | Contents::Ipv4(_) => 1,
            Contents::Macs(_) => 2,
            Contents::Ipv6(_) => 4,
        }
    }

    /// Returns the number of members.
    pub fn len(&self) -> usize {
        match &self.contents {
            Contents::Numbers(members) => members.len(),
            Contents::Macs(members) => members.len(),
            Contents::Ipv4(members) => members.len(),
            Contents::Ipv6(members) => members.len(),
        }
    }

    /// Returns whether the set has no members.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Returns whether `key`, of [`Set::words`] words, is a member. A linear search: the reference for faster look-ups.
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
    /// Sorts the members and removes duplicates.
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
    /// Returns whether `key` begins with this prefix.
    pub fn covers(&self, key: &[u32]) -> bool {
        masked(&self.key, self.bits.into()) == masked(&key[..WORDS], self.bits.into())
    }
}

/// Returns a mask of the first `bits` bits of a word, at most all of them.
pub fn prefix_mask(bits: u32) -> u32 {
    if bits == 0 { 0 } else { u32::MAX << (32 - bits.min(32)) }
}

/// A set prepared for fast look-up at any size.
#[derive(Clone, Debug)]
pub struct Lookup {
    words: usize,
    /// Members by prefix length; exact sets use the full length.
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

    /// Returns whether `key` is a member.
    pub fn contains(&self, key: &[u32]) -> bool {
        self.lengths.iter().any(|(bits, members)| members.contains(&masked(&key[..self.words], *bits)))
    }
}

/// Returns the first `bits` bits of a key, followed by zeros.
fn masked(key: &[u32], mut bits: u32) -> [u32; 4] {
    let mut masked = [0; 4];
    for (to, from) in masked.iter_mut().zip(key) {
        *to = from & prefix_mask(bits);
        bits = bits.saturating_sub(32);
    }
    masked
}
