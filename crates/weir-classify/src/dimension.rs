//! The classes of a field: values that meet the same conditions.

use std::ops::RangeInclusive;

use foldhash::{HashMap, HashMapExt};

/// Numbers the vectors of a field; equal ones have one number.
#[derive(Debug)]
pub(crate) struct Classes {
    /// Words of a vector.
    words: usize,
    /// The classes whose vectors have this hash: nearly always one.
    numbers: HashMap<u64, Vec<u16>>,
    /// All vectors, one behind another.
    vectors: Vec<u64>,
}

/// A vector of conditions, with a hash that follows each change: to hash all of it each time would take most of the time.
#[derive(Clone, Debug)]
struct Vector {
    words: Vec<u64>,
    hash: u64,
}

impl Vector {
    fn new(words: usize) -> Self {
        Self { words: vec![0; words], hash: 0 }
    }

    fn flip(&mut self, condition: usize) {
        self.words[condition / 64] ^= 1 << (condition % 64);
        self.hash ^= scattered(condition as u64);
    }
}

/// A number without resemblance to those of other conditions (splitmix64).
fn scattered(condition: u64) -> u64 {
    let mut number = (condition + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    number = (number ^ number >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    number = (number ^ number >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
    number ^ number >> 31
}

impl Classes {
    /// Returns the classes of a field, of which the first are those values that no condition is about.
    pub(crate) fn new(conditions: usize) -> Self {
        Self { words: conditions.div_ceil(64), numbers: HashMap::new(), vectors: Vec::new() }
    }

    /// Returns the class with this vector.
    fn of(&mut self, vector: &Vector) -> u16 {
        let count = self.vectors.len() / self.words.max(1);
        let Self { words, numbers, vectors } = self;
        let same = numbers.entry(vector.hash).or_default();
        let is_it = |&&number: &&u16| vectors[usize::from(number) * *words..][..*words] == vector.words;
        if let Some(&number) = same.iter().find(is_it) {
            return number;
        }
        // A condition has two ends: there are fewer classes than twice as many, and a few.
        let number = u16::try_from(count).expect("few classes");
        same.push(number);
        vectors.extend_from_slice(&vector.words);
        number
    }

    /// Returns the vectors by class.
    pub(crate) fn vectors(&self) -> impl ExactSizeIterator<Item = &[u64]> {
        self.vectors.chunks_exact(self.words.max(1))
    }

    /// Returns the class of these conditions, each of which is there once.
    pub(crate) fn of_conditions(&mut self, conditions: impl IntoIterator<Item = usize>) -> u16 {
        let mut vector = Vector::new(self.words);
        conditions.into_iter().for_each(|condition| vector.flip(condition));
        self.of(&vector)
    }

    /// Returns the classes of all values up to `last`: where each run of values of one class begins, in order, the first at 0. `ranges`: the
    /// conditions that want some values; `others`: those that want all.
    pub(crate) fn of_values(
        &mut self,
        ranges: &[(usize, RangeInclusive<u128>)],
        others: &[usize],
        last: u128,
    ) -> Vec<(u128, u16)> {
        let mut vector = Vector::new(self.words);
        others.iter().for_each(|&condition| vector.flip(condition));
        let mut changes: Vec<(u128, usize)> = Vec::with_capacity(2 * ranges.len());
        for (condition, range) in ranges {
            changes.push((*range.start(), *condition));
            changes.extend((*range.end() < last).then(|| (range.end() + 1, *condition)));
        }
        changes.sort_unstable();
        let mut changes = changes.into_iter().peekable();
        let mut runs: Vec<(u128, u16)> = Vec::new();
        let mut start = 0;
        loop {
            while let Some((_, condition)) = changes.next_if(|&(at, _)| at == start) {
                vector.flip(condition);
            }
            let class = self.of(&vector);
            if runs.last().is_none_or(|&(_, before)| before != class) {
                runs.push((start, class));
            }
            match changes.peek() {
                Some(&(at, _)) => start = at,
                None => return runs,
            }
        }
    }
}
