//! A progress bar for work that takes longer than a second.

use std::io::{self, IsTerminal};
use std::sync::mpsc::{self, Receiver, RecvTimeoutError, Sender};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use weir::reader::Meter;

use crate::{style, units};

/// Work shorter than this shows no bar.
const PATIENCE: Duration = Duration::from_secs(1);
/// Time between two updates.
const PERIOD: Duration = Duration::from_millis(100);

/// A progress bar drawn by its own thread, so that it continues while the reader is busy. Nothing is drawn where nobody
/// would see it, or between lines on the same terminal.
#[derive(Debug, Default)]
pub(crate) struct Progress {
    /// The thread that draws, and a sender that stops it when dropped.
    drawer: Option<(Sender<()>, JoinHandle<()>)>,
}

impl Progress {
    /// `meters`: those of all input. `size`: total size in bytes, if known. `lines`: whether text goes to standard
    /// output meanwhile.
    pub(crate) fn new(meters: Vec<Meter>, size: Option<u64>, lines: bool) -> Self {
        Self::of(move || meters.iter().map(Meter::taken).sum(), size, lines, units::bytes)
    }

    /// The same for anything else whose `position` moves to `size`. `named` writes numbers with what they count.
    pub(crate) fn of(
        position: impl Fn() -> u64 + Send + 'static,
        size: Option<u64>,
        lines: bool,
        named: fn(u64) -> String,
    ) -> Self {
        let visible = style::terminal() && style::foreground() && !(lines && io::stdout().is_terminal());
        let Some(size) = size.filter(|_| visible) else { return Self::default() };
        let (end, ended) = mpsc::channel();
        let drawer = thread::Builder::new().name("progress".to_owned());
        let drawer = drawer.spawn(move || draw(position, size, named, &ended));
        Self { drawer: drawer.ok().map(|drawer| (end, drawer)) }
    }

    /// Removes the bar before other output.
    pub(crate) fn clear(&mut self) {
        if let Some((end, drawer)) = self.drawer.take() {
            drop(end);
            // A bar that panicked leaves nothing to remove.
            let _ended = drawer.join();
        }
    }
}

impl Drop for Progress {
    fn drop(&mut self) {
        self.clear();
    }
}

fn draw(position: impl Fn() -> u64, size: u64, named: fn(u64) -> String, ended: &Receiver<()>) {
    let began = Instant::now();
    let goes_on = |time| ended.recv_timeout(time) == Err(RecvTimeoutError::Timeout);
    if !goes_on(PATIENCE) {
        return;
    }
    let bar = ProgressBar::with_draw_target(Some(size), ProgressDrawTarget::stderr_with_hz(10));
    if let Ok(style) = ProgressStyle::with_template("{wide_bar} {percent:>3} %  {msg}") {
        bar.set_style(style.progress_chars(if style::unicode() {
            "█▉▊▋▌▍▎▏ "
        } else {
            "#- "
        }));
    }
    loop {
        let position = position();
        bar.set_position(position);
        bar.set_message(speed(position, size, began.elapsed(), named));
        if !goes_on(PERIOD) {
            break;
        }
    }
    bar.finish_and_clear();
}

/// Returns the speed so far, and the time left at this speed.
fn speed(position: u64, size: u64, elapsed: Duration, named: fn(u64) -> String) -> String {
    let nanoseconds = elapsed.as_nanos().max(1);
    let per_second = u128::from(position) * 1_000_000_000 / nanoseconds;
    let left = u128::from(size.saturating_sub(position)) * nanoseconds / u128::from(position.max(1));
    let left = Duration::from_nanos(u64::try_from(left).unwrap_or(u64::MAX));
    let per_second = u64::try_from(per_second).unwrap_or(u64::MAX);
    format!("{}/s, {} left", named(per_second), units::elapsed(left))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn speed_and_what_is_left() {
        let shown = speed(100 << 20, 400 << 20, Duration::from_secs(2), units::bytes);
        assert_eq!(shown, "50.0 MiB/s, 6.0 s left");
        assert!(speed(0, 0, Duration::ZERO, units::bytes).ends_with("left"));
        assert!(speed(u64::MAX, u64::MAX, Duration::MAX, units::packets).ends_with("left"));
    }
}
