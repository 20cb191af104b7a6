//! Where what is made at random takes its decisions from.

/// Decisions, one after the other: of bytes that a fuzzer or a test gives, or of a seed.
///
/// Bytes that are used up go on as zeros, and 0 is always the plainest choice: so shorter bytes make simpler things, and a
/// failing test shrinks.
#[derive(Clone, Debug)]
pub struct Choices<'a> {
    bytes: &'a [u8],
    state: Option<u64>,
}

impl<'a> Choices<'a> {
    /// Of bytes.
    pub fn of(bytes: &'a [u8]) -> Self {
        Self { bytes, state: None }
    }

    /// Without an end, of `seed`: always the same.
    pub fn seeded(seed: u64) -> Self {
        Self { bytes: &[], state: Some(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15)) }
    }

    /// Any byte.
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

    /// Any half word.
    pub fn half(&mut self) -> u16 {
        u16::from_be_bytes([self.byte(), self.byte()])
    }

    /// Any word.
    pub fn word(&mut self) -> u32 {
        u32::from_be_bytes([self.byte(), self.byte(), self.byte(), self.byte()])
    }

    /// Any number of bytes.
    pub fn bytes(&mut self, count: usize) -> Vec<u8> {
        (0..count).map(|_| self.byte()).collect()
    }

    /// A number less than `limit`, which is 256 at most.
    pub fn below(&mut self, limit: usize) -> usize {
        usize::from(self.byte()) % limit
    }

    /// Yes, in one of `times` cases.
    pub fn one_in(&mut self, times: usize) -> bool {
        self.below(times) == times - 1
    }

    /// One of `options`, of which the first is the plainest and the most frequent.
    pub fn pick<T: Copy>(&mut self, options: &[T]) -> T {
        options[self.below(options.len()).min(self.below(options.len()))]
    }

    /// Whether all bytes are used up.
    pub fn is_exhausted(&self) -> bool {
        self.state.is_none() && self.bytes.is_empty()
    }
}
