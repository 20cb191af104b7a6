//! The classes of a field: values that meet the same conditions.

use std::ops::RangeInclusive;

use foldhash::{HashMap, HashMapExt};

/// Numbers the vectors of a field; equal ones have one number.
#[derive(Debug)]
pub(crate) struct Classes {
    /// Words of a vector.
    words: usize,
    numbers: HashMap<Vec<u64>, u16>,
    vectors: Vec<Vec<u64>>,
}

impl Classes {
    /// Returns the classes of a field, of which the first are those values that no condition is about.
    pub(crate) fn new(conditions: usize) -> Self {
        Self { words: conditions.div_ceil(64), numbers: HashMap::new(), vectors: Vec::new() }
    }

    /// Returns the class with this vector.
    fn of(&mut self, vector: &[u64]) -> u16 {
        if let Some(&number) = self.numbers.get(vector) {
            return number;
        }
        // A condition has two ends: there are fewer classes than twice as many, and a few.
        let number = u16::try_from(self.vectors.len()).expect("few classes");
        self.numbers.insert(vector.to_vec(), number);
        self.vectors.push(vector.to_vec());
        number
    }

    /// Returns the vectors by class.
    pub(crate) fn vectors(&self) -> &[Vec<u64>] {
        &self.vectors
    }

    /// Returns the class of the conditions for which `holds`.
    pub(crate) fn of_conditions(&mut self, conditions: usize, holds: impl Fn(usize) -> bool) -> u16 {
        let mut vector = vec![0; self.words];
        (0..conditions)
            .filter(|&condition| holds(condition))
            .for_each(|condition| set(&mut vector, condition));
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
        let mut vector = vec![0; self.words];
        others.iter().for_each(|&condition| set(&mut vector, condition));
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
                vector[condition / 64] ^= 1 << (condition % 64);
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

fn set(vector: &mut [u64], bit: usize) {
    vector[bit / 64] |= 1 << (bit % 64);
}
