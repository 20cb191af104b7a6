//! Counts over time, in a bounded number of steps.

/// Number of steps kept; at least twice the columns of any picture.
const STEPS: usize = 2048;
/// Initial length of a step in nanoseconds. It doubles when the time exceeds the steps.
const SHORTEST: u64 = 1_000;

/// Counts over time. The start is set with the first count.
#[derive(Clone, Debug, Default)]
pub(crate) struct Timeline {
    start: Option<u64>,
    /// Length of a step in nanoseconds, as a shift of [`SHORTEST`].
    shift: u32,
    counts: Vec<u64>,
}

impl Timeline {
    /// Adds `count` at a time in nanoseconds. A time before the start counts as the start.
    pub(crate) fn add(&mut self, time: u64, count: u64) {
        let after = time.saturating_sub(*self.start.get_or_insert(time));
        let mut step = self.step(after);
        while step >= STEPS {
            self.shift += 1;
            let pairs = self.counts.chunks(2).map(|pair| pair.iter().sum()).collect();
            self.counts = pairs;
            step = self.step(after);
        }
        if self.counts.len() <= step {
            self.counts.resize(step + 1, 0);
        }
        self.counts[step] += count;
    }

    /// Sets the start if nothing has been added yet, so that timelines can be aligned.
    pub(crate) fn start_at(&mut self, time: u64) {
        self.start.get_or_insert(time);
    }

    fn step(&self, after: u64) -> usize {
        usize::try_from((after / SHORTEST) >> self.shift).unwrap_or(usize::MAX)
    }

    /// Returns the counts of `columns` equal intervals from the start to `end`. Each step belongs to the column of its
    /// middle.
    pub(crate) fn columns(&self, end: u64, columns: usize) -> Vec<u64> {
        let mut sums = vec![0; columns];
        let length = u128::from(end.saturating_sub(self.start.unwrap_or(end)).max(1));
        for (step, &count) in self.counts.iter().enumerate() {
            let middle = (step as u128 * 2 + 1) * u128::from(SHORTEST << self.shift) / 2;
            let column = usize::try_from(middle * columns as u128 / length).unwrap_or(usize::MAX);
            if let Some(last) = columns.checked_sub(1) {
                sums[column.min(last)] += count;
            }
        }
        sums
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn any_length_of_time_keeps_its_sum_and_its_shape() {
        for unit in [1, 1_000, 1_000_000_000, 86_400_000_000_000] {
            let mut line = Timeline::default();
            line.start_at(7);
            for step in 0..10_000 {
                line.add(7 + step * unit, if step < 5_000 { 1 } else { 3 });
            }
            let columns = line.columns(7 + 9_999 * unit, 4);
            assert_eq!(columns.iter().sum::<u64>(), 20_000, "{unit}");
            if unit > 1 {
                let even = |column: u64, expected: u64| column.abs_diff(expected) < 20;
                assert!(even(columns[0], 2_500) && even(columns[3], 7_500), "{unit}: {columns:?}");
            }
            assert!(line.counts.len() <= STEPS);
        }
    }

    #[test]
    fn times_at_the_edges() {
        let mut line = Timeline::default();
        line.add(5, 1);
        line.add(0, 1);
        line.add(u64::MAX, 1);
        let columns = line.columns(u64::MAX, 10);
        assert_eq!((columns[0], columns[9]), (2, 1));
        assert_eq!(Timeline::default().columns(9, 3), [0, 0, 0]);
        assert!(line.columns(u64::MAX, 0).is_empty());
    }
}
