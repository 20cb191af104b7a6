//! Pseudo-random numbers that are the same everywhere.

/// A sequence of numbers that a seed determines (SplitMix64).
#[derive(Clone, Debug)]
pub(crate) struct Random(u64);

impl Random {
    pub(crate) fn new(seed: u64) -> Self {
        Self(seed)
    }

    pub(crate) fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    /// Returns a number of 0 to `last`.
    pub(crate) fn up_to(&mut self, last: u128) -> u128 {
        let drawn = u128::from(self.next()) << 64 | u128::from(self.next());
        // The last numbers are less probable by one in 2^64, except in ranges as large as that.
        last.checked_add(1).map_or(drawn, |count| drawn % count)
    }

    /// Puts the items in random order.
    pub(crate) fn shuffle<T>(&mut self, items: &mut [T]) {
        for last in (1..items.len()).rev() {
            let other = usize::try_from(self.up_to(last as u128)).expect("an index");
            items.swap(last, other);
        }
    }
}
