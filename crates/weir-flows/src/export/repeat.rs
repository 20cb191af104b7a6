//! When templates are sent.

use std::time::Duration;

/// Templates are due at the beginning, and again after some time.
#[derive(Clone, Copy, Debug)]
pub(super) struct Repeat {
    every: Option<u64>,
    last: Option<u64>,
}

impl Repeat {
    pub(super) fn new(every: Option<Duration>) -> Self {
        let every = every.filter(|every| !every.is_zero());
        let nanoseconds = |every: Duration| u64::try_from(every.as_nanos()).unwrap_or(u64::MAX);
        Self { every: every.map(nanoseconds), last: None }
    }

    /// Returns whether they are due, and takes them for sent if so.
    pub(super) fn is_due(&mut self, now: u64) -> bool {
        let is_over = |last: u64| self.every.is_some_and(|every| now.saturating_sub(last) >= every);
        let is_due = self.last.is_none_or(is_over);
        if is_due {
            self.last = Some(now);
        }
        is_due
    }

    /// They are due.
    pub(super) fn restart(&mut self) {
        self.last = None;
    }
}
