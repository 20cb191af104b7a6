//! The source of decisions for generated material.

/// A sequence of decisions, from a fuzzer's or a test's bytes or from a seed.
///
/// When the bytes are used up, zeros follow, and 0 always makes the simplest choice: shorter input generates simpler
/// things, and a failing test shrinks.
#[derive(Clone, Debug)]
pub struct Choices<'a> {
    bytes: &'a [u8],
    state: Option<u64>,
}

impl<'a> Choices<'a> {
    /// Takes decisions from bytes.
    pub fn of(bytes: &'a [u8]) -> Self {
        Self { bytes, state: None }
    }

    /// Takes endless decisions from `seed`, always the same ones.
    pub fn seeded(seed: u64) -> Self {
        Self { bytes: &[], state: Some(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15)) }
    }

    /// Returns any byte.
    pub fn byte(&mut self) -> u8 {
        if let Some(state) = &mut self.state {
            // splitmix64 (Steele, Lea, Flood: Fast splittable pseudorandom number generators, 2014).
            *state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
            let mixed = (*state ^ (*state >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
            let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
            return mixed.to_be_bytes()[0];
        }
        let Some((&first, rest)) = self.bytes.split_first() else { return 0 };
        self.bytes = rest;
        first
    }

    /// Returns any 16-bit number.
    pub fn half(&mut self) -> u16 {
        u16::from_be_bytes([self.byte(), self.byte()])
    }

    /// Returns any 32-bit number.
    pub fn word(&mut self) -> u32 {
        u32::from_be_bytes([self.byte(), self.byte(), self.byte(), self.byte()])
    }

    /// Returns `count` arbitrary bytes.
    pub fn bytes(&mut self, count: usize) -> Vec<u8> {
        (0..count).map(|_| self.byte()).collect()
    }

    /// Returns a number less than `limit`, which is 256 at most.
    pub fn below(&mut self, limit: usize) -> usize {
        usize::from(self.byte()) % limit
    }

    /// Returns true in one of `times` cases.
    pub fn one_in(&mut self, times: usize) -> bool {
        self.below(times) == times - 1
    }

    /// Returns one of `options`, of which the first is the simplest and most frequent.
    pub fn pick<T: Copy>(&mut self, options: &[T]) -> T {
        options[self.below(options.len()).min(self.below(options.len()))]
    }

    /// Returns whether all bytes are used up.
    pub fn is_exhausted(&self) -> bool {
        self.state.is_none() && self.bytes.is_empty()
    }
}
