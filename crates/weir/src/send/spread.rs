//! How far gaps between packets were off.

use std::time::Duration;

/// How far the gaps between packets were from what they should have been. Half of them were off by `p50` or less, 99 of
/// 100 by `p99` or less; both are exact to 3 %.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Gaps {
    /// Number of gaps; 0 at top speed.
    pub count: u64,
    /// The median.
    pub p50: Duration,
    /// The 99th percentile.
    pub p99: Duration,
    /// The largest.
    pub max: Duration,
}

/// Each power of two has 32 buckets; the first 32 are for single nanoseconds.
const FINE: u32 = 5;
const BUCKETS: usize = (64 - FINE as usize + 1) << FINE;

/// Counts gaps by how far they are off.
#[derive(Debug)]
pub(super) struct Spread {
    buckets: Box<[u64; BUCKETS]>,
    count: u64,
    max: u64,
    /// When the last packet was due and when it was sent.
    last: Option<(Duration, Duration)>,
}

impl Spread {
    pub(super) fn new() -> Self {
        Self { buckets: Box::new([0; BUCKETS]), count: 0, max: 0, last: None }
    }

    /// Counts the gap before a packet.
    pub(super) fn sent(&mut self, due: Duration, at: Duration) {
        if let Some((last_due, last_at)) = self.last.replace((due, at)) {
            let off = at.saturating_sub(last_at).abs_diff(due.saturating_sub(last_due));
            self.add(u64::try_from(off.as_nanos()).unwrap_or(u64::MAX));
        }
    }

    fn add(&mut self, off: u64) {
        self.buckets[bucket(off)] += 1;
        self.count += 1;
        self.max = self.max.max(off);
    }

    /// Returns the value that `percent` of all values do not exceed.
    fn percentile(&self, percent: u64) -> Duration {
        let wanted = (self.count * percent).div_ceil(100);
        let mut passed = 0;
        let at = self.buckets.iter().position(|&count| {
            passed += count;
            passed >= wanted
        });
        Duration::from_nanos(at.map_or(0, last).min(self.max))
    }

    pub(super) fn gaps(&self) -> Gaps {
        Gaps {
            count: self.count,
            p50: self.percentile(50),
            p99: self.percentile(99),
            max: Duration::from_nanos(self.max),
        }
    }
}

/// Returns the number of a value's bucket.
fn bucket(value: u64) -> usize {
    let shift = (u64::BITS - value.leading_zeros()).saturating_sub(FINE + 1);
    ((shift as usize) << FINE) + usize::try_from(value >> shift).expect("below 64")
}

/// Returns the largest value in a bucket.
fn last(bucket: usize) -> u64 {
    let fine = 1 << FINE;
    let shift = (bucket >> FINE).saturating_sub(1);
    let first = if bucket < fine { bucket } else { (bucket & (fine - 1)) + fine };
    ((first as u64 + 1) << shift).wrapping_sub(1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_value_is_in_a_bucket_of_its_size() {
        for value in (0..2000).chain([1 << 20, (1 << 20) - 1, u64::MAX / 3, u64::MAX]) {
            let last = last(bucket(value));
            assert!(value <= last && last - value <= value / 32, "{value}: {last}");
            assert_eq!(bucket(last), bucket(value), "{value}");
        }
        assert_eq!(bucket(u64::MAX), BUCKETS - 1);
    }

    #[test]
    fn percentiles() {
        let mut spread = Spread::new();
        assert_eq!(spread.gaps(), Gaps::default());
        (1..=100).for_each(|off| spread.add(off * 1000));
        let gaps = spread.gaps();
        let near = |is: Duration, wanted: u64| {
            let is = u64::try_from(is.as_nanos()).unwrap();
            assert!((wanted..wanted + wanted / 30).contains(&is), "{is}, not {wanted}");
        };
        near(gaps.p50, 50_000);
        near(gaps.p99, 99_000);
        assert_eq!((gaps.count, gaps.max), (100, Duration::from_micros(100)));
    }

    #[test]
    fn too_early_is_as_wrong_as_too_late() {
        let mut spread = Spread::new();
        let at = Duration::from_micros;
        for (due, sent) in [(0, 7), (100, 107), (200, 187), (300, 307)] {
            spread.sent(at(due), at(sent));
        }
        let gaps = spread.gaps();
        assert_eq!((gaps.count, gaps.max), (3, at(20)));
    }
}
