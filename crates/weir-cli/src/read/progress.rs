//! A bar for work that takes longer than a second.

use std::io::{self, IsTerminal};
use std::time::{Duration, Instant};

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};

use crate::style;

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
            let style = ProgressStyle::with_template(
                "{wide_bar} {percent:>3} %  {bytes} of {total_bytes}  {bytes_per_sec}  {eta} left",
            );
            if let Ok(style) = style {
                bar.set_style(style.progress_chars(if style::unicode() {
                    "█▉▊▋▌▍▎▏ "
                } else {
                    "#- "
                }));
            }
            bar.reset_elapsed();
            self.bar = Some(bar);
        }
        if let Some(bar) = &self.bar {
            bar.set_position(position());
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
