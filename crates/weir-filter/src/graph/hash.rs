//! The hash by which a graph finds its values again.
//!
//! The standard library's made up most of what compiling costs. This one mixes a number with one multiplication; its key is
//! random, so that nobody can write an expression whose values all fall together.

use std::hash::{BuildHasher, Hasher, RandomState};

/// Makes hashers that begin with the same random key.
#[derive(Clone, Copy, Debug)]
pub(super) struct Keyed(u64);

impl Default for Keyed {
    fn default() -> Self {
        Self(RandomState::new().hash_one(0))
    }
}

impl BuildHasher for Keyed {
    type Hasher = Mixer;

    fn build_hasher(&self) -> Mixer {
        Mixer(self.0)
    }
}

/// What has been hashed so far.
#[derive(Debug)]
pub(super) struct Mixer(u64);

impl Mixer {
    fn mix(&mut self, number: u64) {
        // An odd number without pattern: the golden ratio's digits, as Knuth proposes for hashing by multiplication.
        const MULTIPLIER: u128 = 0x9e37_79b9_7f4a_7c15;
        let product = u128::from(self.0 ^ number) * MULTIPLIER;
        let [high, low] = [product >> 64, product & u128::from(u64::MAX)];
        self.0 = u64::try_from(high ^ low).expect("both halves have 64 bits");
    }
}

impl Hasher for Mixer {
    fn write(&mut self, bytes: &[u8]) {
        for chunk in bytes.chunks(8) {
            let mut word = [0; 8];
            word[..chunk.len()].copy_from_slice(chunk);
            self.mix(u64::from_le_bytes(word));
        }
    }

    fn write_u32(&mut self, number: u32) {
        self.mix(number.into());
    }

    fn write_isize(&mut self, number: isize) {
        self.mix(number.unsigned_abs() as u64);
    }

    fn finish(&self) -> u64 {
        self.0
    }
}
