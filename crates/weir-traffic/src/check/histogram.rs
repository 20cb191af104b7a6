//! How often a time occurred: exact counts of times that are rounded down by less than 1/32.

use serde::Serialize;

/// Each power of two is divided into as many buckets, as a shift.
const FINE: u32 = 5;

/// Counts of nanoseconds. Buckets are added as far as they are needed, 1,408 at most.
#[derive(Clone, Debug, Default)]
pub(super) struct Histogram {
    counts: Vec<u64>,
    frames: u64,
    min: u64,
    max: u64,
    negative: u64,
    most_negative: i64,
}

/// How long frames were on their way. Those with negative times, of clocks that disagree, count for nothing else.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Latency {
    /// Frames with a time that is not negative. The other fields are about these.
    pub frames: u64,
    /// The shortest, in nanoseconds.
    pub min_ns: u64,
    /// Half of the frames took no longer. Up to 1/32 more than the exact number, but not more than the longest.
    pub p50_ns: u64,
    /// 99 of 100 frames took no longer, as exact as the median.
    pub p99_ns: u64,
    /// The longest.
    pub max_ns: u64,
    /// Frames that arrived before they were sent, by their clocks.
    pub negative: u64,
    /// By how much at most: 0 or less.
    pub most_negative_ns: i64,
}

/// Frames with similar times.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct Bucket {
    /// The shortest time, in nanoseconds.
    pub from_ns: u64,
    /// The longest time.
    pub to_ns: u64,
    /// Frames.
    pub frames: u64,
}

impl Histogram {
    pub(super) fn add(&mut self, time: i64) {
        let Ok(time) = u64::try_from(time) else {
            self.negative += 1;
            self.most_negative = self.most_negative.min(time);
            return;
        };
        let at = position(time);
        if self.counts.len() <= at {
            self.counts.resize(at + 1, 0);
        }
        self.counts[at] += 1;
        self.min = if self.frames == 0 { time } else { self.min.min(time) };
        self.max = self.max.max(time);
        self.frames += 1;
    }

    /// Adds the counts of another one.
    pub(super) fn merge(&mut self, other: &Self) {
        if self.counts.len() < other.counts.len() {
            self.counts.resize(other.counts.len(), 0);
        }
        self.counts.iter_mut().zip(&other.counts).for_each(|(count, other)| *count += other);
        self.min = match (self.frames, other.frames) {
            (0, _) => other.min,
            (_, 0) => self.min,
            _ => self.min.min(other.min),
        };
        self.max = self.max.max(other.max);
        self.frames += other.frames;
        self.negative += other.negative;
        self.most_negative = self.most_negative.min(other.most_negative);
    }

    pub(super) fn latency(&self) -> Latency {
        Latency {
            frames: self.frames,
            min_ns: self.min,
            p50_ns: self.percentile(50),
            p99_ns: self.percentile(99),
            max_ns: self.max,
            negative: self.negative,
            most_negative_ns: self.most_negative,
        }
    }

    /// Returns the buckets that have frames, the shortest times first.
    pub(super) fn buckets(&self) -> Vec<Bucket> {
        let buckets = self.counts.iter().enumerate().filter(|&(_, &frames)| frames > 0);
        buckets.map(|(at, &frames)| Bucket { from_ns: first(at), to_ns: first(at + 1) - 1, frames }).collect()
    }

    /// Returns the longest time of the bucket of the frame that is the last of `percent` percent, by time.
    fn percentile(&self, percent: u64) -> u64 {
        let rank = u128::from(self.frames) * u128::from(percent);
        let mut frames = 0_u128;
        let at = self.counts.iter().position(|&count| {
            frames += u128::from(count);
            frames * 100 >= rank
        });
        at.map_or(0, |at| self.max.min(first(at + 1) - 1))
    }
}

/// Returns the bucket of a time. Below 64 each number has its own.
fn position(time: u64) -> usize {
    let shift = time.checked_ilog2().map_or(0, |bits| bits.saturating_sub(FINE));
    usize::try_from((u64::from(shift) << FINE) + (time >> shift)).expect("less than 2,048")
}

/// Returns the shortest time of a bucket.
fn first(position: usize) -> u64 {
    let shift = (position >> FINE).saturating_sub(1);
    ((position - (shift << FINE)) as u64) << shift
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn of(times: &[i64]) -> Histogram {
        let mut histogram = Histogram::default();
        times.iter().for_each(|&time| histogram.add(time));
        histogram
    }

    proptest! {
        #[test]
        fn each_time_is_in_its_bucket_which_is_narrow(time in 0..1_u64 << 47, shift in 0..47) {
            let time = time >> shift;
            let at = position(time);
            let (from, to) = (first(at), first(at + 1) - 1);
            prop_assert!(from <= time && time <= to, "{from} {to}");
            prop_assert!((to - from) * 32 <= from, "{from} {to}");
        }

        #[test]
        fn percentiles_are_those_of_the_sorted_times(times in prop::collection::vec(-1_000_i64..10_000_000, 1..300), cut: prop::sample::Index) {
            let (one, other) = times.split_at(cut.index(times.len()));
            let mut histogram = of(one);
            histogram.merge(&of(other));
            let mut sorted: Vec<u64> = times.iter().filter_map(|&time| time.try_into().ok()).collect();
            sorted.sort_unstable();
            let latency = histogram.latency();
            prop_assert_eq!(latency.frames, sorted.len() as u64);
            prop_assert_eq!(latency.negative, (times.len() - sorted.len()) as u64);
            prop_assert_eq!(latency.most_negative_ns, times.iter().copied().min().expect("some").min(0));
            prop_assert_eq!(latency.min_ns, sorted.first().copied().unwrap_or(0));
            prop_assert_eq!(latency.max_ns, sorted.last().copied().unwrap_or(0));
            prop_assert_eq!(histogram.buckets().iter().map(|bucket| bucket.frames).sum::<u64>(), latency.frames);
            for (percent, found) in [(50, latency.p50_ns), (99, latency.p99_ns)] {
                let rank = (sorted.len() * percent).div_ceil(100);
                let exact = rank.checked_sub(1).map_or(0, |at| sorted[at]);
                prop_assert!(exact <= found && found - exact <= exact / 32, "{percent}: {exact} {found}");
            }
        }
    }
}
