//! Token buckets: which packets are beyond a limit.
//!
//! A bucket holds a second's worth of packets, at least one, and is full at first. Each packet takes one out; a packet that
//! finds none is beyond the limit, and takes none. Without fractions: a bucket counts nanoseconds times packets, so that a
//! packet costs a period, and a nanosecond adds as much as the rate has packets.

use super::key::LimitKey;
use super::table::Table;
use crate::quantity::Rate;

const SECOND: u64 = 1_000_000_000;

/// The action of a rule that has a limit.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Limited {
    Fate,
    Learn,
    Log,
}

/// The buckets of all rules.
#[derive(Debug)]
pub(crate) struct Buckets {
    table: Table<(usize, Limited, LimitKey), Bucket>,
}

#[derive(Debug)]
struct Bucket {
    /// What was in it then.
    level: u64,
    then: u64,
    rate: Rate,
}

impl Bucket {
    fn new(rate: Rate, now: u64) -> Self {
        Self { level: size(rate), then: now, rate }
    }

    /// Returns what is in it now.
    fn level(&self, now: u64) -> u64 {
        let added = now.saturating_sub(self.then).saturating_mul(self.rate.packets);
        self.level.saturating_add(added).min(size(self.rate))
    }

    /// Takes a packet out, and returns whether there was none.
    fn take(&mut self, now: u64) -> bool {
        let level = self.level(now);
        let rest = level.checked_sub(period(self.rate));
        (self.level, self.then) = (rest.unwrap_or(level), self.then.max(now));
        rest.is_none()
    }
}

fn period(rate: Rate) -> u64 {
    u64::try_from(rate.period.as_nanos()).unwrap_or(u64::MAX)
}

fn size(rate: Rate) -> u64 {
    rate.packets.saturating_mul(SECOND).max(period(rate))
}

impl Buckets {
    pub(crate) fn new(most: usize) -> Self {
        Self { table: Table::new(most) }
    }

    /// Counts a packet, and returns whether it is beyond the limit; `None` if there is no room for another bucket.
    pub(crate) fn is_over(
        &mut self,
        rule: usize,
        limited: Limited,
        key: LimitKey,
        rate: Rate,
        now: u64,
    ) -> Option<bool> {
        // One that is full again is like a new one.
        let is_full = |bucket: &Bucket| bucket.level(now) == size(bucket.rate);
        let bucket = self.table.entry((rule, limited, key), now, is_full, || Bucket::new(rate, now))?;
        Some(bucket.take(now))
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    fn over(packets: u64, period: u64, times: &[u64]) -> Vec<bool> {
        let rate = Rate { packets, period: Duration::from_secs(period) };
        let mut buckets = Buckets::new(1);
        let mut take = |&time| buckets.is_over(0, Limited::Fate, LimitKey::NoAddress, rate, time);
        times.iter().map(|time| take(time).expect("there is room")).collect()
    }

    #[test]
    fn a_bucket_holds_a_second_and_at_least_one_packet() {
        let half = SECOND / 2;
        assert_eq!(over(2, 1, &[0, 0, 0, half - 1, half, half]), [false, false, true, true, false, true]);
        assert_eq!(
            over(2, 1, &[0, 0, SECOND * 9, SECOND * 9, SECOND * 9]),
            [false, false, false, false, true]
        );
        // A packet in ten seconds.
        assert_eq!(over(6, 60, &[0, SECOND, SECOND * 10 - 1, SECOND * 10]), [false, true, true, false]);
        // 100 a minute: 1.67 in a second.
        assert_eq!(over(100, 60, &[0, 0, SECOND * 6 / 10]), [false, true, false]);
        let most = [0; 3];
        assert_eq!(over(1_000_000_000, 1, &most), [false; 3]);
        assert_eq!(over(1, 3600, &[5, 5, u64::MAX]), [false, true, false]);
    }

    #[test]
    fn time_that_goes_back_adds_nothing() {
        assert_eq!(over(1, 1, &[SECOND, 0, SECOND, SECOND * 2]), [false, true, true, false]);
    }

    #[test]
    fn without_room_a_bucket_is_not_made() {
        let rate = Rate { packets: 1, period: Duration::from_secs(1) };
        let mut buckets = Buckets::new(1);
        let mut take = |rule, now| buckets.is_over(rule, Limited::Log, LimitKey::NoAddress, rate, now);
        assert_eq!(take(0, 0), Some(false));
        assert_eq!(take(1, 0), None);
        assert_eq!(take(1, 2 * SECOND), Some(false), "the first is full again");
    }
}
