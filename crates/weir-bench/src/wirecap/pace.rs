//! A processor of a chosen speed for each handler, on a machine that has fewer: a handler waits as long as its work would take.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::thread;
use std::time::{Duration, Instant};

/// Shorter pauses are made together.
const LEAST: Duration = Duration::from_millis(1);
/// Whoever is woken late makes up for so much of it.
const LATE: Duration = Duration::from_millis(5);

/// The work of one handler.
#[derive(Clone, Debug)]
pub(super) struct Pace {
    each: Duration,
    /// When the work so far is done.
    done: Instant,
    over: Over,
}

/// Once set, work takes no time: what is left only has to be counted.
#[derive(Clone, Debug, Default)]
pub(super) struct Over(Arc<AtomicBool>);

impl Over {
    pub(super) fn set(&self) {
        self.0.store(true, Relaxed);
    }

    pub(super) fn is_set(&self) -> bool {
        self.0.load(Relaxed)
    }
}

impl Pace {
    /// So much time for each packet.
    pub(super) fn new(each: Duration, over: &Over) -> Self {
        Self { each, done: Instant::now(), over: over.clone() }
    }

    /// Takes the time of a packet.
    pub(super) fn packet(&mut self) {
        if self.over.is_set() {
            return;
        }
        let now = Instant::now();
        self.done = self.done.max(now.checked_sub(LATE).unwrap_or(now)) + self.each;
        if self.done > now + LEAST {
            thread::sleep(self.done - now);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn work_takes_its_time_until_it_is_over() {
        let over = Over::default();
        let mut pace = Pace::new(Duration::from_micros(100), &over);
        let began = Instant::now();
        (0..500).for_each(|_| pace.packet());
        // What was not paused for yet, and what is made up for.
        assert!(began.elapsed() >= Duration::from_millis(50) - LEAST - LATE);
        over.set();
        let mut pace = Pace::new(Duration::from_secs(3600), &over);
        (0..500).for_each(|_| pace.packet());
    }
}
