//! When a run ends: after a number of packets or a time, or on a signal.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use serde::Serialize;

use crate::Error;
use crate::signals::Signals;

/// Longest sleep in `Capture::next`. A signal ends the sleep early, but not one that arrives just before it.
const LONGEST_WAIT: Duration = Duration::from_millis(250);

/// Why a run ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Stop {
    /// All wanted packets are there.
    Count,
    /// The time is over.
    Duration,
    /// SIGINT, SIGTERM or SIGHUP.
    Signal,
    /// All wanted files are written.
    Files,
    /// The files have reached their size.
    Size,
    /// The reader of our output has closed it.
    Pipe,
    /// Nobody confirmed the rules in time.
    Unconfirmed,
    /// Something failed.
    Error,
}

/// The conditions for a run to continue.
#[derive(Debug)]
pub struct Until {
    pub(crate) signals: Signals,
    duration: Option<Duration>,
    deadline: Option<Instant>,
    pub(crate) budget: Budget,
}

impl Until {
    /// Runs until the number of packets or the time is reached, whichever is first, or until a signal. Signals are
    /// handled from here on. `reloads`: SIGHUP does not stop it.
    pub(crate) fn new(
        packets: Option<u64>,
        duration: Option<Duration>,
        reloads: bool,
    ) -> Result<Self, Error> {
        let signals = Signals::install(reloads).map_err(Error::Signals)?;
        Ok(Self { signals, duration, deadline: None, budget: Budget::new(packets) })
    }

    /// Starts the time, when the capture has begun.
    pub(crate) fn begin(&mut self) {
        self.deadline = self.duration.map(|duration| Instant::now() + duration);
    }

    /// Returns the reason to stop now, if there is one.
    pub fn reached(&self, now: Instant) -> Option<Stop> {
        if self.budget.is_spent() {
            Some(Stop::Count)
        } else if self.signals.stop() {
            Some(Stop::Signal)
        } else {
            self.deadline.filter(|deadline| now >= *deadline).map(|_| Stop::Duration)
        }
    }

    /// Returns how long to wait for packets if there is other work at `tick`.
    pub(crate) fn wait(&self, now: Instant, tick: Option<Instant>) -> Duration {
        let times = [self.deadline, tick];
        let waits = times.iter().flatten().map(|time| time.saturating_duration_since(now));
        waits.fold(LONGEST_WAIT, Duration::min)
    }
}

/// The number of packets still wanted, shared by all threads.
#[derive(Clone, Debug)]
pub struct Budget(Option<Arc<AtomicU64>>);

impl Budget {
    /// `None`: no limit.
    pub(crate) fn new(packets: Option<u64>) -> Self {
        Self(packets.map(|packets| Arc::new(AtomicU64::new(packets))))
    }

    /// Returns whether no more packets are wanted.
    pub fn is_spent(&self) -> bool {
        self.0.as_ref().is_some_and(|left| left.load(Ordering::Relaxed) == 0)
    }

    /// Returns how many of `packets` packets are still wanted, and deducts them.
    pub fn take(&self, packets: usize) -> usize {
        let Some(left) = &self.0 else { return packets };
        let all = packets as u64;
        // Relaxed, because each thread only needs a share that no other thread gets.
        let taken = |left: u64| Some(left.saturating_sub(all));
        let before = left.fetch_update(Ordering::Relaxed, Ordering::Relaxed, taken).unwrap_or(0);
        usize::try_from(before).unwrap_or(usize::MAX).min(packets)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_budget_ends_at_the_end_of_a_chunk_or_within() {
        for (last, taken) in [(6, 6), (7, 6)] {
            let budget = Budget::new(Some(10));
            assert_eq!((budget.take(4), budget.is_spent()), (4, false));
            assert_eq!((budget.take(5), budget.is_spent()), (5, false));
            assert_eq!((budget.take(last - 5), budget.is_spent()), (taken - 5, true));
            assert_eq!((budget.take(1), budget.is_spent()), (0, true));
        }
        assert!(Budget::new(Some(0)).is_spent());
        let endless = Budget::new(None);
        assert_eq!((endless.take(4), endless.is_spent()), (4, false));
    }
}
