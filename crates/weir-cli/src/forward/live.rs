//! The live status line of forwarding.

use std::time::Duration;

use weir::forward::ForwardStats;

use super::rates;
use crate::style::{self, Paint};
use crate::units;

/// Time between two updates.
pub(super) const PERIOD: Duration = Duration::from_millis(500);

/// The line, and the last counters, from which rates are computed.
#[derive(Debug)]
pub(super) struct Live {
    paint: Paint,
    last: ForwardStats,
}

impl Live {
    /// Returns a live line if standard error is a terminal that can redraw one.
    pub(super) fn on_terminal() -> Option<Self> {
        style::terminal().then(|| Self { paint: style::stderr(), last: ForwardStats::default() })
    }

    /// Redraws the line, unless the shell is using the terminal for something else.
    pub(super) fn draw(&mut self, account: &ForwardStats) {
        let line = self.line(account);
        self.last = account.clone();
        // A line that wraps could not be redrawn.
        if style::foreground() && style::columns() > WIDEST {
            style::draw(&format!("\r{line}\x1b[K"));
        }
    }

    /// Clears the line before other output.
    pub(super) fn clear(&self) {
        if style::foreground() {
            style::draw("\r\x1b[K");
        }
    }

    fn line(&self, account: &ForwardStats) -> String {
        let (packets, bits) = rates(&self.last, account);
        let total = account.total();
        let lost = format!("{} lost", units::grouped(total.lost()));
        let lost = if total.lost() > 0 { self.paint.red(lost) } else { self.paint.green(lost) };
        format!(
            "{:>11}  {:>12}  {} forwarded  {lost}  {}",
            format!("{}pps", units::scaled(packets)),
            format!("{}bit/s", units::scaled(bits)),
            units::grouped(total.forwarded),
            self.paint.dim(units::elapsed(account.elapsed)),
        )
    }
}

/// Width of the longest line: two 64-bit numbers, two rates and a time.
const WIDEST: usize = 110;

#[cfg(test)]
mod tests {
    use weir::forward::{DirectionStats, ForwardCounters, ForwardQueue};

    use super::*;

    fn account(seconds: u64, forwarded: u64, no_room: u64) -> ForwardStats {
        let counters = weir::with!(
            ForwardCounters::default(),
            seen = forwarded + no_room,
            forwarded,
            no_room,
            bytes = forwarded.saturating_mul(60)
        );
        let queues = vec![weir::with!(ForwardQueue::default(), queue = 0, counters)];
        let direction = weir::with!(DirectionStats::default(), from = "a".into(), to = "b".into(), queues);
        weir::with!(
            ForwardStats::default(),
            elapsed = Duration::from_secs(seconds),
            directions = vec![direction]
        )
    }

    #[test]
    fn says_rates_since_the_last_time() {
        let live = Live { paint: Paint::PLAIN, last: account(1, 1_000_000, 0) };
        let line = live.line(&account(2, 3_000_000, 7));
        assert_eq!(line, "  2.00 Mpps    960 Mbit/s  3,000,000 forwarded  7 lost  2.0 s");
        assert!(live.line(&account(u64::MAX >> 20, u64::MAX, 0)).len() <= WIDEST);
    }
}
