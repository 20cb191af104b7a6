//! The block of memory in which a packet's conditions are looked up, and the search in it.
//!
//! `weir-bpf/bpf/rules/classify.h` reads the same block by the same [`Shape`]. Offsets are in bytes; numbers have the machine's
//! byte order; vectors begin at multiples of eight.

use std::net::IpAddr;
use std::ops::RangeInclusive;

use foldhash::{HashMap, HashMapExt as _};

use crate::MOST_CONDITIONS;
use crate::condition::{Condition, Directions, KINDS, Kinds, Prefix, Tags, number};
use crate::dimension::Classes;
use crate::fields::Fields;

/// Bits by which the root of addresses is divided.
const ROOT: u32 = 16;
/// A class number's bytes.
const CLASS: u32 = 2;

/// Where the tables of an address are: those of IPv4, then those of IPv6.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(C)]
pub struct AddressTables {
    /// By the first 16 bits of an address: 65,537 numbers of 32 bits, the run in which such addresses begin. An address is in
    /// that run, or in one up to that of the next 16 bits.
    pub roots: [u32; 2],
    /// Where each run of addresses begins: 32 bits, or the upper and the lower 64.
    pub starts: [u32; 2],
    /// The class of each run: 16 bits.
    pub classes: [u32; 2],
    /// The vectors of the classes.
    pub vectors: u32,
    /// The class of packets without address.
    pub absent: u32,
    /// Whether a condition is about it, so that there are tables.
    pub used: u32,
}

/// Where the tables of a field with few values are.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(C)]
pub struct ValueTable {
    /// The class of each value: 16 bits.
    pub classes: u32,
    /// The vectors of the classes.
    pub vectors: u32,
    /// The class of packets without the field.
    pub absent: u32,
    /// Whether a condition is about it, so that there are tables.
    pub used: u32,
}

/// Where everything is in a block. Its size in bytes is no constant of a program: the map's is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(C)]
pub struct Shape {
    /// The tables of source and destination.
    pub addresses: [AddressTables; 2],
    /// The tables of the source port and of the destination port.
    pub ports: [ValueTable; 2],
    /// Kind times 257, plus 1 and the protocol if there is one.
    pub kinds: ValueTable,
    /// Whether a condition is about the direction: there are `kinds` for received packets then, behind them those for sent ones, and
    /// those for packets of which nobody knows.
    pub directed: u32,
    /// VLAN tags: 0 stands for none, the VLAN ID plus 1 for a tag, 4097 for one that is cut. A packet with several meets the
    /// conditions that one of them meets.
    pub tags: ValueTable,
    /// How many conditions there are.
    pub conditions: u32,
    /// Where a vector of those conditions is that are not enough, without a summary; 0: all are.
    pub rest: u32,
    /// Words of 64 bits in a vector.
    pub words: u32,
    /// Words of 64 bits in a vector's summary, which is in front of it.
    pub summaries: u32,
    /// The last place at which a read may begin: behind it is room for the longest vector.
    pub last: u32,
}

/// Conditions that have no tables.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Error {
    /// There are too many.
    #[error("{0} conditions, but at most {MOST_CONDITIONS} are possible")]
    Conditions(usize),
    /// They take too much memory.
    #[error("the conditions need {needed} bytes of tables, but the limit is {limit}")]
    Memory {
        /// Bytes that they need at least.
        needed: usize,
        /// The limit.
        limit: usize,
    },
}

/// Conditions as tables.
#[derive(Clone, Debug)]
pub struct Tables {
    shape: Shape,
    bytes: Vec<u8>,
}

impl Tables {
    /// Makes the tables of these conditions, of at most `limit` bytes. `rest`: those that are not enough, because something else
    /// has to be asked, too.
    ///
    /// # Errors
    ///
    /// There are more than [`MOST_CONDITIONS`], or they need more bytes.
    pub fn new(conditions: &[Condition], rest: &[usize], limit: usize) -> Result<Self, Error> {
        if conditions.len() > MOST_CONDITIONS {
            return Err(Error::Conditions(conditions.len()));
        }
        let words = conditions.len().div_ceil(64);
        let summaries = words.div_ceil(64);
        let shape = Shape {
            conditions: at(conditions.len()),
            words: at(words),
            summaries: at(summaries),
            ..Shape::default()
        };
        // Nothing is at 0, which stands for what is not there.
        let mut tables = Self { shape, bytes: vec![0; size_of::<u64>()] };
        let sources: Vec<_> = conditions.iter().map(|one| one.source).collect();
        let destinations: Vec<_> = conditions.iter().map(|one| one.destination).collect();
        for (index, prefixes) in [sources, destinations].iter().enumerate() {
            tables.shape.addresses[index] = tables.addresses(prefixes, limit)?;
        }
        let from: Vec<_> = conditions.iter().map(|one| one.source_ports.clone()).collect();
        let to: Vec<_> = conditions.iter().map(|one| one.destination_ports.clone()).collect();
        for (index, ranges) in [from, to].iter().enumerate() {
            tables.shape.ports[index] = tables.values(ranges, 1 << 16, limit)?;
        }
        tables.shape.kinds = tables.kinds(conditions, limit)?;
        let tags: Vec<_> = conditions.iter().map(|one| one.tags.as_ref().map(Tags::range)).collect();
        tables.shape.tags = tables.values(&tags, Tags::COUNT, limit)?;
        if !rest.is_empty() {
            let mut vector = vec![0_u64; words];
            rest.iter().for_each(|&condition| vector[condition / 64] |= 1 << (condition % 64));
            tables.shape.rest = tables.append(vector.into_iter().map(u64::to_ne_bytes));
        }
        tables.align();
        tables.shape.last = at(tables.bytes.len());
        // Readers need not check a vector's end, only its beginning.
        let longest = (MOST_CONDITIONS / 64 + MOST_CONDITIONS / 64 / 64) * size_of::<u64>();
        tables.bytes.resize(tables.bytes.len() + longest, 0);
        tables.check(limit)?;
        Ok(tables)
    }

    /// Returns where everything is.
    pub fn shape(&self) -> &Shape {
        &self.shape
    }

    /// Returns the block.
    pub fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    fn check(&self, limit: usize) -> Result<(), Error> {
        let needed = self.bytes.len();
        if needed > limit { Err(Error::Memory { needed, limit }) } else { Ok(()) }
    }

    fn align(&mut self) {
        self.bytes.resize(self.bytes.len().next_multiple_of(size_of::<u64>()), 0);
    }

    /// Appends numbers, from a multiple of eight on. Returns where.
    fn append<const N: usize>(&mut self, numbers: impl Iterator<Item = [u8; N]>) -> u32 {
        self.align();
        let begin = at(self.bytes.len());
        numbers.for_each(|number| self.bytes.extend(number));
        begin
    }

    /// Appends the vectors of a field, each behind its summary.
    fn vectors(&mut self, classes: &Classes, limit: usize) -> Result<u32, Error> {
        let summaries = self.shape.summaries as usize;
        let more = classes.vectors().len() * (summaries + self.shape.words as usize) * size_of::<u64>();
        let needed = self.bytes.len() + more;
        if needed > limit {
            return Err(Error::Memory { needed, limit });
        }
        self.align();
        let begin = at(self.bytes.len());
        self.bytes.reserve(more);
        for vector in classes.vectors() {
            for part in vector.chunks(64) {
                let bits = part.iter().enumerate().filter(|(_, word)| **word != 0);
                let summary: u64 = bits.fold(0, |summary, (bit, _)| summary | 1 << bit);
                self.bytes.extend(summary.to_ne_bytes());
            }
            vector.iter().for_each(|word| self.bytes.extend(word.to_ne_bytes()));
        }
        Ok(begin)
    }

    fn addresses(&mut self, prefixes: &[Option<Prefix>], limit: usize) -> Result<AddressTables, Error> {
        if prefixes.iter().all(Option::is_none) {
            return Ok(AddressTables::default());
        }
        let all: Vec<usize> = indices(prefixes, Option::is_none);
        let mut classes = Classes::new(prefixes.len());
        let mut tables = AddressTables { used: 1, ..AddressTables::default() };
        tables.absent = classes.of_conditions(all.iter().copied()).into();
        for family in [false, true] {
            let ranges = prefixes.iter().enumerate().filter_map(|(condition, prefix)| {
                let (range, is_ipv6) = prefix.as_ref()?.range();
                (is_ipv6 == family).then_some((condition, range))
            });
            let ranges: Vec<_> = ranges.collect();
            let bits = if family { 128 } else { 32 };
            let runs = classes.of_values(&ranges, &all, u128::MAX >> (128 - bits));
            let family = usize::from(family);
            tables.roots[family] = self.append(roots(&runs, bits).map(u32::to_ne_bytes));
            tables.starts[family] = match bits {
                32 => self.append(runs.iter().map(|(start, _)| low_word(*start).to_ne_bytes())),
                _ => self.append(runs.iter().map(|(start, _)| halves(*start))),
            };
            tables.classes[family] = self.append(runs.iter().map(|(_, class)| class.to_ne_bytes()));
        }
        tables.vectors = self.vectors(&classes, limit)?;
        Ok(tables)
    }

    /// Makes the tables of a field with `count` values.
    fn values(
        &mut self,
        ranges: &[Option<RangeInclusive<u16>>],
        count: usize,
        limit: usize,
    ) -> Result<ValueTable, Error> {
        if ranges.iter().all(Option::is_none) {
            return Ok(ValueTable::default());
        }
        let all: Vec<usize> = indices(ranges, Option::is_none);
        let mut classes = Classes::new(ranges.len());
        let absent = classes.of_conditions(all.iter().copied());
        let wanted = ranges.iter().enumerate().filter_map(|(condition, range)| {
            let range = range.as_ref()?;
            Some((condition, u128::from(*range.start())..=u128::from(*range.end())))
        });
        let runs = classes.of_values(&wanted.collect::<Vec<_>>(), &all, count as u128 - 1);
        let values = (0..count).map(|value| class_of(&runs, value as u128).to_ne_bytes());
        let table = self.append(values);
        let vectors = self.vectors(&classes, limit)?;
        Ok(ValueTable { classes: table, vectors, absent: absent.into(), used: 1 })
    }

    fn kinds(&mut self, conditions: &[Condition], limit: usize) -> Result<ValueTable, Error> {
        let directed = conditions.iter().any(|one| !one.directions.is_all());
        if !directed && conditions.iter().all(|one| one.kinds.is_all()) {
            return Ok(ValueTable::default());
        }
        // Few kinds are wanted, and most numbers are in the same ones of them.
        let mut wanted: HashMap<(Kinds, Directions), Vec<usize>> = HashMap::new();
        for (condition, one) in conditions.iter().enumerate() {
            wanted.entry((one.kinds, one.directions)).or_default().push(condition);
        }
        let wanted: Vec<_> = wanted.into_iter().collect();
        let mut classes = Classes::new(conditions.len());
        let mut known: HashMap<Vec<usize>, u16> = HashMap::new();
        let of = |number| {
            let with: Vec<usize> = indices(&wanted, |((kinds, directions), _)| {
                kinds.contains(number % KINDS) && directions.contains(number / KINDS)
            });
            if let Some(&class) = known.get(&with) {
                return class;
            }
            let class = classes.of_conditions(with.iter().flat_map(|&at| wanted[at].1.iter().copied()));
            known.insert(with, class);
            class
        };
        let parts = if directed { Directions::COUNT } else { 1 };
        let values = (0..parts * KINDS).map(of).collect::<Vec<_>>();
        self.shape.directed = directed.into();
        let table = self.append(values.into_iter().map(u16::to_ne_bytes));
        let vectors = self.vectors(&classes, limit)?;
        Ok(ValueTable { classes: table, vectors, absent: 0, used: 1 })
    }

    /// Returns the first condition from `from` on that holds for a packet with these fields.
    pub fn find(&self, fields: &Fields, from: usize) -> Option<usize> {
        let shape = &self.shape;
        let stride = (shape.summaries + shape.words) * 8;
        let mut vectors = Vec::new();
        for (tables, address) in shape.addresses.iter().zip(fields.addresses) {
            if tables.used != 0 {
                let class = address.map_or(tables.absent, |address| self.class_of_address(tables, address));
                vectors.push(tables.vectors + class * stride);
            }
        }
        let part = if shape.directed == 0 { 0 } else { Directions::number(fields.direction) };
        let kind = part * KINDS + number(fields.kind, fields.protocol);
        let kind = u16::try_from(kind).expect("there are few kinds");
        let values = [fields.ports[0], fields.ports[1], Some(kind)];
        for (table, value) in [&shape.ports[0], &shape.ports[1], &shape.kinds].into_iter().zip(values) {
            if table.used != 0 {
                let class = value.map_or(table.absent, |value| self.class(table.classes, value.into()));
                vectors.push(table.vectors + class * stride);
            }
        }
        let tags = Tags::numbers(&fields.tags).filter(|_| shape.tags.used != 0);
        let tags: Vec<u32> = tags
            .map(|tag| shape.tags.vectors + self.class(shape.tags.classes, tag.into()) * stride)
            .collect();
        let all = |at: u32| {
            let of_tags = tags.iter().map(|vector| self.word(vector + at * 8)).reduce(|any, word| any | word);
            let of_tags = of_tags.unwrap_or(u64::MAX);
            vectors.iter().fold(of_tags, |all, vector| all & self.word(vector + at * 8))
        };
        for summary in 0..shape.summaries {
            let mut words = all(summary);
            while words != 0 {
                let word = summary * 64 + words.trailing_zeros();
                words &= words - 1;
                let mut found = all(shape.summaries + word);
                while found != 0 {
                    let condition = word as usize * 64 + found.trailing_zeros() as usize;
                    found &= found - 1;
                    // Behind the last condition are bits of no meaning if no field is asked for.
                    if condition >= from && condition < shape.conditions as usize {
                        return Some(condition);
                    }
                }
            }
        }
        None
    }

    fn class_of_address(&self, tables: &AddressTables, address: IpAddr) -> u32 {
        let (family, bits, value) = match address {
            IpAddr::V4(address) => (0, 32, address.to_bits().into()),
            IpAddr::V6(address) => (1, 128, address.to_bits()),
        };
        let root = |at: u32| self.half(tables.roots[family] + at * 4);
        let begin = u32::try_from(value >> (bits - ROOT)).expect("16 bits");
        let (mut low, mut high) = (root(begin), root(begin + 1));
        while low < high {
            let middle = (low + high).div_ceil(2);
            let start = match family {
                0 => self.half(tables.starts[0] + middle * 4).into(),
                _ => {
                    let at = tables.starts[1] + middle * 16;
                    u128::from(self.word(at)) << 64 | u128::from(self.word(at + 8))
                }
            };
            if start <= value {
                low = middle;
            } else {
                high = middle - 1;
            }
        }
        self.class(tables.classes[family], low)
    }

    fn read<const N: usize>(&self, at: u32) -> [u8; N] {
        self.bytes[at as usize..][..N].try_into().expect("of this length")
    }

    fn word(&self, at: u32) -> u64 {
        u64::from_ne_bytes(self.read(at))
    }

    fn half(&self, at: u32) -> u32 {
        u32::from_ne_bytes(self.read(at))
    }

    fn class(&self, table: u32, index: u32) -> u32 {
        u16::from_ne_bytes(self.read(table + index * CLASS)).into()
    }
}

/// The number of a place or of things in a block.
///
/// # Panics
///
/// If it has more than 32 bits: a limit is below that.
fn at(place: usize) -> u32 {
    u32::try_from(place).expect("tables are below 4 GiB")
}

fn indices<T>(values: &[T], wanted: impl Fn(&T) -> bool) -> Vec<usize> {
    values.iter().enumerate().filter(|(_, value)| wanted(value)).map(|(index, _)| index).collect()
}

/// Returns the run in which the addresses of each first 16 bits begin, and the last run.
fn roots(runs: &[(u128, u16)], bits: u32) -> impl Iterator<Item = u32> {
    let mut run = 0;
    let begins = (0..1_u128 << ROOT).map(move |root| {
        while runs.get(run + 1).is_some_and(|(start, _)| *start <= root << (bits - ROOT)) {
            run += 1;
        }
        at(run)
    });
    begins.chain([at(runs.len() - 1)])
}

fn low_word(start: u128) -> u32 {
    u32::try_from(start).expect("an IPv4 address has 32 bits")
}

fn halves(start: u128) -> [u8; 16] {
    let mut bytes = [0; 16];
    let (upper, lower) = bytes.split_at_mut(8);
    upper.copy_from_slice(&u64::try_from(start >> 64).expect("64 bits").to_ne_bytes());
    lower.copy_from_slice(&u64::try_from(start & u128::from(u64::MAX)).expect("64 bits").to_ne_bytes());
    bytes
}

fn class_of(runs: &[(u128, u16)], value: u128) -> u16 {
    runs[runs.partition_point(|(start, _)| *start <= value) - 1].1
}
