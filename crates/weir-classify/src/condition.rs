//! Conditions on the fields of a packet.

use std::net::IpAddr;
use std::ops::RangeInclusive;

use crate::fields::{Direction, Fields, Kind, Tag};

/// The addresses with the same first bits.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Prefix {
    first: IpAddr,
    length: u8,
}

impl Prefix {
    /// Returns the addresses whose first `length` bits are those of `address`; `None`: it has fewer bits.
    pub fn new(address: IpAddr, length: u8) -> Option<Self> {
        let first: IpAddr = match address {
            IpAddr::V4(address) => {
                let mask = u32::MAX.checked_shl(32_u32.checked_sub(length.into())?).unwrap_or(0);
                std::net::Ipv4Addr::from_bits(address.to_bits() & mask).into()
            }
            IpAddr::V6(address) => {
                let mask = u128::MAX.checked_shl(128_u32.checked_sub(length.into())?).unwrap_or(0);
                std::net::Ipv6Addr::from_bits(address.to_bits() & mask).into()
            }
        };
        Some(Self { first, length })
    }

    /// Returns whether an address is one of these.
    pub fn contains(&self, address: IpAddr) -> bool {
        Self::new(address, self.length) == Some(*self)
    }

    /// Returns whether all addresses of the family are in it.
    pub fn is_all(&self) -> bool {
        self.length == 0
    }

    /// Returns the addresses that are in both, if there are any.
    fn and(self, other: Self) -> Option<Self> {
        let (wide, narrow) = if self.length <= other.length { (self, other) } else { (other, self) };
        (narrow.first.is_ipv4() == wide.first.is_ipv4() && wide.contains(narrow.first)).then_some(narrow)
    }

    /// Returns the first and the last address as numbers, and whether they are of IPv6.
    pub(crate) fn range(&self) -> (RangeInclusive<u128>, bool) {
        let (first, rest, is_ipv6) = match self.first {
            IpAddr::V4(first) => (first.to_bits().into(), 32 - u32::from(self.length), false),
            IpAddr::V6(first) => (first.to_bits(), 128 - u32::from(self.length), true),
        };
        let last = first | 1_u128.checked_shl(rest).map_or(u128::MAX, |bit| bit - 1);
        (first..=last, is_ipv6)
    }
}

/// How many numbers [`Kinds`] distinguishes for each kind: no protocol, and each of them.
pub const PROTOCOLS: usize = 257;
/// How many in all.
pub(crate) const KINDS: usize = 5 * PROTOCOLS;
const WORDS: usize = KINDS.div_ceil(64);
/// The bits of the last word that have a meaning.
const IN_LAST: u64 = u64::MAX >> (64 * WORDS - KINDS);

/// Kinds of packets, with protocols of IP.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Kinds([u64; WORDS]);

impl Kinds {
    /// All packets.
    pub const ALL: Self = Self([u64::MAX; WORDS]);
    /// None.
    pub const NONE: Self = Self([0; WORDS]);

    /// Packets of a kind, whatever their protocol.
    pub fn of(kind: Kind) -> Self {
        const EACH: [Kinds; KINDS / PROTOCOLS] =
            [Kinds::run(0), Kinds::run(1), Kinds::run(2), Kinds::run(3), Kinds::run(4)];
        EACH[kind as usize]
    }

    /// All protocols of a kind.
    const fn run(kind: usize) -> Self {
        let mut words = [0; WORDS];
        let mut number = kind * PROTOCOLS;
        while number < (kind + 1) * PROTOCOLS {
            words[number / 64] |= 1 << (number % 64);
            number += 1;
        }
        Self(words)
    }

    /// Packets of IPv4 and IPv6 with this protocol.
    pub fn of_protocol(protocol: u8) -> Self {
        Self::NONE.with(number(Kind::Ipv4, Some(protocol))).with(number(Kind::Ipv6, Some(protocol)))
    }

    fn with(mut self, number: usize) -> Self {
        self.0[number / 64] |= 1 << (number % 64);
        self
    }

    /// Returns the packets that are in both.
    #[must_use]
    pub fn and(self, other: Self) -> Self {
        Self(std::array::from_fn(|word| self.0[word] & other.0[word]))
    }

    /// Returns the packets that are in either.
    #[must_use]
    pub fn or(self, other: Self) -> Self {
        Self(std::array::from_fn(|word| self.0[word] | other.0[word]))
    }

    /// Returns all other packets.
    #[must_use]
    pub fn complement(self) -> Self {
        Self(self.0.map(|word| !word))
    }

    /// Returns whether no packet is in it.
    pub fn is_empty(&self) -> bool {
        let [before @ .., last] = &self.0;
        before.iter().all(|word| *word == 0) && last & IN_LAST == 0
    }

    /// Returns whether every packet is in it.
    pub(crate) fn is_all(self) -> bool {
        self.complement().is_empty()
    }

    pub(crate) fn contains(&self, number: usize) -> bool {
        self.0[number / 64] >> (number % 64) & 1 == 1
    }
}

/// The number of a kind with a protocol.
pub(crate) fn number(kind: Kind, protocol: Option<u8>) -> usize {
    kind as usize * PROTOCOLS + protocol.map_or(0, |protocol| usize::from(protocol) + 1)
}

/// Directions of packets; an unknown one is one of its own.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Directions(u8);

impl Directions {
    /// How many there are.
    pub(crate) const COUNT: usize = 3;
    /// All of them.
    pub const ALL: Self = Self((1 << Self::COUNT) - 1);

    /// Returns a known one.
    pub fn of(direction: Direction) -> Self {
        Self(1 << Self::number(Some(direction)))
    }

    /// Returns those that are in both.
    #[must_use]
    pub fn and(self, other: Self) -> Self {
        Self(self.0 & other.0)
    }

    /// Returns all others.
    #[must_use]
    pub fn complement(self) -> Self {
        Self(Self::ALL.0 & !self.0)
    }

    /// Returns whether there are none.
    pub fn is_empty(self) -> bool {
        self.0 == 0
    }

    /// Returns whether all are in it.
    pub(crate) fn is_all(self) -> bool {
        self == Self::ALL
    }

    pub(crate) fn contains(self, number: usize) -> bool {
        self.0 >> number & 1 == 1
    }

    /// The number of a direction.
    pub(crate) fn number(direction: Option<Direction>) -> usize {
        direction.map_or(Self::COUNT - 1, |direction| direction as usize)
    }
}

/// VLAN tags of packets.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Tags {
    /// No tag.
    None,
    /// At least one.
    Any,
    /// At least one whose VLAN ID is one of these.
    Of(RangeInclusive<u16>),
}

/// The number of a tag that is cut: behind that of none, which is 0, and those of all VLAN IDs.
pub const TAG_IS_CUT: u16 = 4097;

impl Tags {
    /// How many numbers a tag can have.
    pub(crate) const COUNT: usize = TAG_IS_CUT as usize + 1;

    /// Returns the numbers of tags of which a packet has to have one; of one without tags, the first counts as a tag, too.
    pub(crate) fn range(&self) -> RangeInclusive<u16> {
        match self {
            Self::None => 0..=0,
            Self::Any => 1..=TAG_IS_CUT,
            Self::Of(ids) => ids.start() + 1..=ids.end() + 1,
        }
    }

    /// The number of a tag.
    pub(crate) fn number(tag: Tag) -> u16 {
        match tag {
            Tag::None => 0,
            Tag::Of(id) => id + 1,
            Tag::Cut => TAG_IS_CUT,
        }
    }

    /// Returns the numbers of a packet's tags.
    pub(crate) fn numbers(tags: &[Tag]) -> impl Iterator<Item = u16> {
        let others = tags.iter().skip(1).filter(|tag| **tag != Tag::None);
        tags.first().into_iter().chain(others).map(|tag| Self::number(*tag))
    }

    fn holds(&self, tags: &[Tag]) -> bool {
        Self::numbers(tags).any(|number| self.range().contains(&number))
    }

    /// Returns the smaller one if the other contains it.
    fn narrower<'a>(&'a self, other: &'a Self) -> Option<&'a Self> {
        let within = |a: &Self, b: &Self| {
            let (a, b) = (a.range(), b.range());
            b.contains(a.start()) && b.contains(a.end())
        };
        if within(self, other) { Some(self) } else { within(other, self).then_some(other) }
    }

    fn and(&self, other: &Self) -> Option<Self> {
        match (self, other) {
            (Self::None, Self::Any | Self::Of(_)) | (Self::Any | Self::Of(_), Self::None) => None,
            // A packet may have a tag of each.
            _ => Some(self.narrower(other).unwrap_or(self).clone()),
        }
    }
}

/// What a packet's fields must be; `None`: anything, also missing.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Condition {
    /// Kind and protocol.
    pub kinds: Kinds,
    /// The direction.
    pub directions: Directions,
    /// VLAN tags.
    pub tags: Option<Tags>,
    /// The source, or the sender in ARP.
    pub source: Option<Prefix>,
    /// The destination, or the target in ARP.
    pub destination: Option<Prefix>,
    /// The source port.
    pub source_ports: Option<RangeInclusive<u16>>,
    /// The destination port.
    pub destination_ports: Option<RangeInclusive<u16>>,
}

impl Condition {
    /// Every packet.
    pub const ALL: Self = Self {
        kinds: Kinds::ALL,
        directions: Directions::ALL,
        tags: None,
        source: None,
        destination: None,
        source_ports: None,
        destination_ports: None,
    };

    /// Returns what holds where both do, and nowhere else if [they agree](Self::agrees); `None`: there is no such packet.
    pub fn and(&self, other: &Self) -> Option<Self> {
        let kinds = self.kinds.and(other.kinds);
        let directions = self.directions.and(other.directions);
        let ports = |a: &RangeInclusive<u16>, b: &RangeInclusive<u16>| {
            let both = *a.start().max(b.start())..=*a.end().min(b.end());
            (!both.is_empty()).then_some(both)
        };
        let condition = Self {
            kinds,
            directions,
            tags: both(&self.tags, &other.tags, Tags::and)?,
            source: both(&self.source, &other.source, |a, b| a.and(*b))?,
            destination: both(&self.destination, &other.destination, |a, b| a.and(*b))?,
            source_ports: both(&self.source_ports, &other.source_ports, ports)?,
            destination_ports: both(&self.destination_ports, &other.destination_ports, ports)?,
        };
        (!kinds.is_empty() && !directions.is_empty()).then_some(condition)
    }

    /// Returns whether a condition can say what both want. None says of two VLAN IDs that a packet has a tag of each.
    pub fn agrees(&self, other: &Self) -> bool {
        match (&self.tags, &other.tags) {
            (Some(Tags::None), Some(_)) | (Some(_), Some(Tags::None)) => true,
            (Some(one), Some(other)) => one.narrower(other).is_some(),
            _ => true,
        }
    }

    /// Returns conditions of which at least one holds where this one does not, and none where it does. `None`: it is about an address,
    /// a port or a VLAN ID, and no conditions say that these are others or missing.
    pub fn complement(&self) -> Option<Vec<Self>> {
        let Self { kinds, directions, .. } = *self;
        if *self != (Self { kinds, directions, tags: self.tags.clone(), ..Self::ALL }) {
            return None;
        }
        let of_tags = match self.tags {
            None => None,
            Some(Tags::None) => Some(Tags::Any),
            Some(Tags::Any) => Some(Tags::None),
            Some(Tags::Of(_)) => return None,
        };
        let of_tags = of_tags.map(|tags| Self { tags: Some(tags), ..Self::ALL });
        let of_kinds = Self { kinds: kinds.complement(), ..Self::ALL };
        let of_directions = Self { directions: directions.complement(), ..Self::ALL };
        let all = [of_kinds, of_directions].into_iter();
        let all = all.filter(|one| !one.kinds.is_empty() && !one.directions.is_empty());
        Some(all.chain(of_tags).collect())
    }

    /// Returns whether a packet with these fields meets the condition.
    pub fn holds(&self, fields: &Fields) -> bool {
        let address = |wanted: Option<Prefix>, address: Option<IpAddr>| {
            wanted.is_none_or(|prefix| address.is_some_and(|address| prefix.contains(address)))
        };
        let port = |wanted: &Option<RangeInclusive<u16>>, port: Option<u16>| {
            wanted.as_ref().is_none_or(|range| port.is_some_and(|port| range.contains(&port)))
        };
        self.kinds.contains(number(fields.kind, fields.protocol))
            && self.directions.contains(Directions::number(fields.direction))
            && self.tags.as_ref().is_none_or(|tags| tags.holds(&fields.tags))
            && address(self.source, fields.addresses[0])
            && address(self.destination, fields.addresses[1])
            && port(&self.source_ports, fields.ports[0])
            && port(&self.destination_ports, fields.ports[1])
    }
}

/// Combines what two conditions want of a field; the outer `None`: nothing is both.
fn both<T: Clone>(a: &Option<T>, b: &Option<T>, and: impl Fn(&T, &T) -> Option<T>) -> Option<Option<T>> {
    match (a, b) {
        (Some(a), Some(b)) => and(a, b).map(Some),
        (one, other) => Some(one.clone().or_else(|| other.clone())),
    }
}
