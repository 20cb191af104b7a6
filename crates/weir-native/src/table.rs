//! Sets prepared for look-up: sorted, disjoint ranges of keys, and an index into them.
//!
//! A prefix is a range of keys and a host is a range of one; adjacent ranges are merged. The index divides the keys
//! between the first and the last into equal buckets, at least one per range up to [`MOST_BUCKETS`]. Among evenly
//! spread members, a look-up examines one or two; among 100 000 in one bucket, it examines 17.

use weir_filter::set::{Contents, Member, Set};

/// Maximum number of buckets in an index.
const MOST_BUCKETS: usize = 1 << 17;

/// A key of one, two or four words, as one number.
pub(crate) trait Key: Copy + Ord {
    /// Returns the next key, if there is one.
    fn next(self) -> Option<Self>;
    /// Returns the key's bucket, for buckets of `1 << shift` keys counted from `first`.
    fn bucket(self, first: Self, shift: u32) -> usize;
}

macro_rules! keys {
    ($($number:ty),*) => {$(
        impl Key for $number {
            fn next(self) -> Option<Self> {
                self.checked_add(1)
            }

            #[inline]
            fn bucket(self, first: Self, shift: u32) -> usize {
                let bucket = self.wrapping_sub(first).checked_shr(shift).unwrap_or(0);
                usize::try_from(bucket).unwrap_or(usize::MAX)
            }
        }
    )*};
}
keys!(u32, u64, u128);

/// Sorted ranges of keys.
#[derive(Debug)]
pub(crate) struct Ranges<K> {
    /// First key of each range, ascending.
    starts: Vec<K>,
    /// Last key of each range.
    ends: Vec<K>,
    /// For each bucket, the number of ranges that start in an earlier one, with one more entry for the end.
    index: Vec<u32>,
    shift: u32,
}

impl<K: Key> Ranges<K> {
    /// Builds a table of ranges in any order.
    pub(crate) fn new(mut ranges: Vec<(K, K)>) -> Self {
        ranges.sort_unstable();
        let (mut starts, mut ends): (Vec<K>, Vec<K>) = (Vec::new(), Vec::new());
        for (start, end) in ranges {
            match ends.last_mut() {
                Some(last) if last.next().is_none_or(|next| start <= next) => *last = end.max(*last),
                _ => {
                    starts.push(start);
                    ends.push(end);
                }
            }
        }
        let mut table = Self { starts, ends, index: Vec::new(), shift: 0 };
        table.make_index();
        table
    }

    fn make_index(&mut self) {
        let (Some(&first), Some(&last)) = (self.starts.first(), self.ends.last()) else { return };
        let most = (2 * self.starts.len()).next_power_of_two().min(MOST_BUCKETS);
        while last.bucket(first, self.shift) >= most {
            self.shift += 1;
        }
        let mut index = vec![0; last.bucket(first, self.shift) + 2];
        for start in &self.starts {
            index[start.bucket(first, self.shift) + 1] += 1;
        }
        let mut before = 0;
        for count in &mut index {
            before += *count;
            *count = before;
        }
        self.index = index;
    }

    /// Returns the first and last key of each range.
    pub(crate) fn iter(&self) -> impl ExactSizeIterator<Item = (K, K)> {
        self.starts.iter().copied().zip(self.ends.iter().copied())
    }

    /// Returns whether a range contains the key.
    #[inline]
    pub(crate) fn contains(&self, key: K) -> bool {
        let (Some(&first), Some(&last)) = (self.starts.first(), self.ends.last()) else { return false };
        if key < first || key > last {
            return false;
        }
        let bucket = key.bucket(first, self.shift);
        let [from, to] = [self.index[bucket] as usize, self.index[bucket + 1] as usize];
        // The last range that begins at or before the key. The first range does, so there is one.
        let begun = from + self.starts[from..to].partition_point(|&start| start <= key);
        begun > 0 && key <= self.ends[begun - 1]
    }
}

/// A set of any kind, prepared for look-up.
#[derive(Debug)]
pub(crate) enum Table {
    /// One-word keys.
    Words(Ranges<u32>),
    /// Two-word keys.
    Pairs(Ranges<u64>),
    /// Four-word keys.
    Quads(Ranges<u128>),
}

impl Table {
    /// Prepares `set`.
    pub(crate) fn new(set: &Set) -> Self {
        match &set.contents {
            Contents::Numbers(members) => {
                Self::Words(Ranges::new(members.iter().map(|&number| (number, number)).collect()))
            }
            Contents::Macs(members) => {
                Self::Pairs(Ranges::new(members.iter().map(|&mac| (pair(mac), pair(mac))).collect()))
            }
            Contents::Ipv4(members) => Self::Words(Ranges::new(members.iter().map(network4).collect())),
            Contents::Ipv6(members) => Self::Quads(Ranges::new(members.iter().map(network6).collect())),
        }
    }
}

fn network4(member: &Member<1>) -> (u32, u32) {
    let mask = u32::MAX.checked_shr(member.bits.into()).unwrap_or(0);
    (member.key[0] & !mask, member.key[0] | mask)
}

fn network6(member: &Member<4>) -> (u128, u128) {
    let (key, mask) = (quad(member.key), u128::MAX.checked_shr(member.bits.into()).unwrap_or(0));
    (key & !mask, key | mask)
}

/// Returns a two-word key as a number.
#[inline]
pub(crate) fn pair(words: [u32; 2]) -> u64 {
    u64::from(words[0]) << 32 | u64::from(words[1])
}

/// Returns a four-word key as a number.
#[inline]
pub(crate) fn quad(words: [u32; 4]) -> u128 {
    words.into_iter().fold(0, |number, word| number << 32 | u128::from(word))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn ranges_that_touch_are_one() {
        let table = Ranges::new(vec![(7, 9), (1, 2), (3, 3), (8, 12), (20, u32::MAX), (30, 31)]);
        assert_eq!(table.iter().collect::<Vec<_>>(), [(1, 3), (7, 12), (20, u32::MAX)]);
        assert!(Ranges::<u32>::new(vec![]).iter().next().is_none());
        assert!(!Ranges::<u32>::new(vec![]).contains(0));
        assert!(Ranges::new(vec![(0, u128::MAX)]).contains(u128::MAX));
    }

    /// There are no more buckets from here on; the members of a bucket are searched.
    #[test]
    fn as_many_ranges_as_there_are_buckets_and_more_are_found() {
        for ranges in [MOST_BUCKETS / 2, MOST_BUCKETS / 2 + 1, MOST_BUCKETS, MOST_BUCKETS + 1] {
            // Close together, then far apart: some buckets have many.
            let start =
                |number: usize| u32::try_from(3 * number + number * number / (4 * MOST_BUCKETS)).unwrap();
            let table = Ranges::new((0..ranges).map(|number| (start(number), start(number) + 1)).collect());
            assert_eq!(table.iter().len(), ranges);
            for number in 0..ranges {
                let start = start(number);
                let there = [start, start + 1, start + 2].map(|key| table.contains(key));
                assert_eq!(there, [true, true, false], "{number} of {ranges}");
            }
            assert!(!table.contains(u32::MAX));
        }
    }

    /// Numbers that are close together, far apart, and at either end.
    fn number() -> impl Strategy<Value = u32> {
        prop_oneof![0..50_u32, 1000..1010_u32, Just(u32::MAX), any::<u32>()]
    }

    proptest! {
        #[test]
        fn has_what_was_put_in(pairs in prop::collection::vec((number(), number()), 0..60), keys in prop::collection::vec(number(), 60)) {
            let ranges: Vec<_> = pairs.into_iter().map(|(a, b)| (a.min(b), a.min(b).saturating_add(b % 7))).collect();
            let table = Ranges::new(ranges.clone());
            let ends = ranges.iter().flat_map(|&(start, end)| [start, end, start.wrapping_sub(1), end.wrapping_add(1)]);
            for key in keys.into_iter().chain(ends) {
                let there = ranges.iter().any(|&(start, end)| (start..=end).contains(&key));
                prop_assert_eq!(table.contains(key), there, "{}", key);
                let wide = |number: u32| u128::from(number) << 90;
                let wider = Ranges::new(ranges.iter().map(|&(start, end)| (wide(start), wide(end))).collect());
                prop_assert_eq!(wider.contains(wide(key)), there, "{}", key);
            }
        }

        #[test]
        fn a_prefix_is_a_range(key in any::<[u32; 4]>(), bits in 0..=128_u8, other in any::<[u32; 4]>(), flip in 0..128_u32) {
            let member = Member { key, bits };
            let (start, end) = network6(&member);
            let near = quad(key) ^ 1 << flip;
            let near = [96, 64, 32, 0].map(|shift| u32::try_from(near >> shift & 0xffff_ffff).unwrap());
            for other in [other, key, near] {
                prop_assert_eq!(member.covers(&other), (start..=end).contains(&quad(other)));
            }
            let short = Member { key: [key[0]], bits: bits % 33 };
            let (start, end) = network4(&short);
            for other in [other[0], near[0]] {
                prop_assert_eq!(short.covers(&[other]), (start..=end).contains(&other));
            }
        }
    }
}
