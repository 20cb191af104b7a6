//! A bar for work that takes longer than a second.

use std::io::{self, IsTerminal};
use std::time::{Duration, Instant};

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};

use crate::{style, units};

/// Shorter work needs no bar.
const PATIENCE: Duration = Duration::from_secs(1);
/// Packets between two looks at the clock.
const STRIDE: u32 = 8192;

/// Shows how far the reading is. Draws nothing where nobody sees it, or among lines on the same terminal.
#[derive(Debug)]
pub(crate) struct Progress {
    began: Instant,
    /// Bytes in all; `None`: no bar.
    size: Option<u64>,
    countdown: u32,
    bar: Option<ProgressBar>,
}

impl Progress {
    /// `size`: bytes in all, where known. `lines`: text goes to standard output meanwhile.
    pub(crate) fn new(size: Option<u64>, lines: bool) -> Self {
        let visible = style::terminal() && style::foreground() && !(lines && io::stdout().is_terminal());
        Self { began: Instant::now(), size: size.filter(|_| visible), countdown: STRIDE, bar: None }
    }

    /// To be called for each packet; `position` is asked only now and then.
    #[inline]
    pub(crate) fn tick(&mut self, position: impl FnOnce() -> u64) {
        self.countdown -= 1;
        if self.countdown == 0 {
            self.countdown = STRIDE;
            self.look(position);
        }
    }

    #[cold]
    fn look(&mut self, position: impl FnOnce() -> u64) {
        let Some(size) = self.size else { return };
        if self.bar.is_none() && self.began.elapsed() >= PATIENCE {
            let bar = ProgressBar::with_draw_target(Some(size), ProgressDrawTarget::stderr_with_hz(10));
            let style = ProgressStyle::with_template("{wide_bar} {percent:>3} %  {msg}");
            if let Ok(style) = style {
                bar.set_style(style.progress_chars(if style::unicode() {
                    "█▉▊▋▌▍▎▏ "
                } else {
                    "#- "
                }));
            }
            self.bar = Some(bar);
        }
        if let Some(bar) = &self.bar {
            let position = position();
            bar.set_position(position);
            bar.set_message(speed(position, size, self.began.elapsed()));
        }
    }

    /// Takes the bar away, so that other words can follow.
    pub(crate) fn clear(&mut self) {
        if let Some(bar) = self.bar.take() {
            bar.finish_and_clear();
        }
    }
}

impl Drop for Progress {
    fn drop(&mut self) {
        self.clear();
    }
}

/// Speed since the beginning, and what is left at this speed.
fn speed(position: u64, size: u64, elapsed: Duration) -> String {
    let nanoseconds = elapsed.as_nanos().max(1);
    let per_second = u128::from(position) * 1_000_000_000 / nanoseconds;
    let left = u128::from(size.saturating_sub(position)) * nanoseconds / u128::from(position.max(1));
    let left = Duration::from_nanos(u64::try_from(left).unwrap_or(u64::MAX));
    let per_second = u64::try_from(per_second).unwrap_or(u64::MAX);
    format!("{}/s, {} left", units::bytes(per_second), units::elapsed(left))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn speed_and_what_is_left() {
        let shown = speed(100 << 20, 400 << 20, Duration::from_secs(2));
        assert_eq!(shown, "50.0 MiB/s, 6.0 s left");
        assert!(speed(0, 0, Duration::ZERO).ends_with("left"));
        assert!(speed(u64::MAX, u64::MAX, Duration::MAX).ends_with("left"));
    }
}
