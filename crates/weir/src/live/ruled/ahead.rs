//! Times since the epoch from the kernel's monotonic clock, by which programs note when a rule last decided.

use rustix::time::{ClockId, Timespec, clock_gettime};
use weir_bpf::rules::RuleCount as Counted;

use crate::live::rules::Count;

/// By how much `CLOCK_REALTIME` is ahead of `CLOCK_MONOTONIC`, in nanoseconds.
#[derive(Debug)]
pub(super) struct Ahead(pub(super) u64);

impl Ahead {
    /// Reads both clocks.
    pub(super) fn now() -> Self {
        let nanoseconds = |time: Timespec| {
            let seconds = u64::try_from(time.tv_sec).unwrap_or_default();
            seconds.saturating_mul(1_000_000_000) + u64::try_from(time.tv_nsec).unwrap_or_default()
        };
        let [monotonic, real] =
            [ClockId::Monotonic, ClockId::Realtime].map(|clock| nanoseconds(clock_gettime(clock)));
        Self(real.saturating_sub(monotonic))
    }

    /// Follows a clock that was set. Otherwise a time stays the same each time that it is read.
    pub(super) fn follow(&mut self) {
        /// More than the time between two looks at clocks.
        const SET: u64 = 10_000_000;
        let now = Self::now();
        if now.0.abs_diff(self.0) > SET {
            *self = now;
        }
    }

    /// Returns the packets that a rule has decided about, and those that exact rules have, with times since the epoch. The time of
    /// the last one is that of both.
    pub(super) fn counts(&self, counted: &Counted) -> [Count; 2] {
        let last = (counted.last > 0).then(|| counted.last.saturating_add(self.0));
        let count = |packets, bytes| Count { packets, bytes, last: last.filter(|_| packets > 0) };
        [count(counted.packets, counted.bytes), count(counted.learned_packets, counted.learned_bytes)]
    }

    /// Returns all of these packets.
    pub(super) fn count(&self, counted: &Counted) -> Count {
        let [own, learned] = self.counts(counted);
        own.and(learned)
    }
}
