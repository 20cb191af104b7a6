//! How packets are spread over sizes and gaps (`spread.h`).

use libbpf_rs::MapHandle;
use weir_sys::CallError;

use super::xdp::skeleton::types::{counter, spread};
use super::{Count, sums};
use crate::layout::width;

/// The largest size of each bucket but the last, as in `size_bucket`.
const SIZES: [u64; 10] = [63, 64, 127, 255, 511, 1023, 1518, 2047, 4095, 9216];
/// Number of buckets of gaps.
const GAPS: usize = width(|of: &spread| &of.gaps) / size_of::<counter>();

/// The counters of a `struct spread` are read as one row.
const _: () = {
    use std::mem::offset_of;
    let sizes = (SIZES.len() + 1) * size_of::<counter>();
    assert!(offset_of!(spread, sizes) == 0 && width(|of: &spread| &of.sizes) == sizes, "sizes come first");
    assert!(offset_of!(spread, gaps) == sizes, "gaps come next");
    assert!(offset_of!(spread, first) == sizes + GAPS * size_of::<counter>(), "`first` comes after the gaps");
};

/// A range of sizes or gaps, and its packets: received, and sent.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Bucket {
    /// The smallest.
    pub from: u64,
    /// The greatest; [`u64::MAX`]: there is no limit.
    pub to: u64,
    /// The packets.
    pub counts: [Count; 2],
}

/// How packets are spread. What was not asked for is 0.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Spread {
    /// By bytes, with the 4 bytes of the checksum.
    pub sizes: Vec<Bucket>,
    /// By nanoseconds since the packet before.
    pub gaps: Vec<Bucket>,
    /// Packets that had none before.
    pub first: [Count; 2],
}

impl Spread {
    /// Returns all buckets, without packets.
    pub fn empty() -> Self {
        let from = [0].into_iter().chain(SIZES.map(|last| last + 1));
        let sizes = from.zip(SIZES.into_iter().chain([u64::MAX]));
        let bucket = |(from, to)| Bucket { from, to, ..Bucket::default() };
        Self {
            sizes: sizes.map(bucket).collect(),
            gaps: (0..GAPS).map(gap).map(bucket).collect(),
            first: Default::default(),
        }
    }

    /// Reads the map.
    pub(super) fn read(map: &MapHandle) -> Result<Self, CallError> {
        let counts = sums(map, SIZES.len() + 1 + GAPS + 1)?;
        let mut spread = Self::empty();
        let buckets = spread.sizes.iter_mut().chain(&mut spread.gaps).map(|bucket| &mut bucket.counts);
        buckets.chain([&mut spread.first]).zip(counts).for_each(|(place, counts)| *place = counts);
        Ok(spread)
    }
}

/// Returns the shortest and the longest gap of a bucket.
fn gap(bits: usize) -> (u64, u64) {
    match bits {
        0 => (0, 0),
        _ if bits == GAPS - 1 => (1 << (bits - 1), u64::MAX),
        _ => (1 << (bits - 1), (1 << bits) - 1),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn gaps_have_no_gaps() {
        assert_eq!((gap(0), gap(1), gap(11)), ((0, 0), (1, 1), (1024, 2047)));
        (1..GAPS).for_each(|bits| assert_eq!(gap(bits).0, gap(bits - 1).1 + 1));
        assert_eq!(gap(GAPS - 1).1, u64::MAX);
    }
}
