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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn they_are_due_at_first_and_whenever_the_time_is_over() {
        let due = |every, times: &[u64]| {
            let mut repeat = Repeat::new(every);
            times.iter().map(|now| repeat.is_due(*now)).collect::<Vec<_>>()
        };
        let every = Some(Duration::from_nanos(10));
        // A clock that goes back changes nothing.
        assert_eq!(due(every, &[5, 14, 15, 3, 24, 25]), [true, false, true, false, false, true]);
        for never in [None, Some(Duration::ZERO)] {
            assert_eq!(due(never, &[5, 5, u64::MAX]), [true, false, false]);
        }
    }
}
