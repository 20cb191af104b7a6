//! Standard input from another program, which gets the same Ctrl-C and then tells the rest of what it has.

use std::io;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fs::{FileType, fstat};
use weir_service::stop_on_signals;

use super::note;
use crate::failure::Failure;

/// How long the other program may take to end after a signal.
const GRACE: Duration = Duration::from_secs(2);

/// Time between looks for a signal while nothing comes.
const TICK: Duration = Duration::from_millis(250);

/// Reading that a signal ends, but not before the rest has come.
#[derive(Debug)]
pub(crate) struct Piped {
    stop: Arc<AtomicBool>,
    /// When reading ends, since a signal has come.
    end: Option<Instant>,
    /// All that has come was read.
    paused: bool,
}

impl Piped {
    /// Waits for the first bytes. `None`: what is read is not another program's output alone, so that a signal ends the
    /// process.
    pub(crate) fn begin(paths: &[impl AsRef<Path>]) -> Result<Option<Self>, Failure> {
        let is_piped = || {
            let kind = fstat(io::stdin()).map(|there| FileType::from_raw_mode(there.st_mode));
            matches!(kind, Ok(FileType::Fifo | FileType::Socket))
        };
        let is_stdin = matches!(paths, [path] if path.as_ref() == Path::new("-"));
        if !is_stdin || !is_piped() {
            return Ok(None);
        }
        let stop = Arc::default();
        stop_on_signals(&stop)
            .map_err(|error| Failure::new(format_args!("cannot handle signals: {error}")))?;
        let mut piped = Self { stop, end: None, paused: true };
        match piped.goes_on() {
            true => Ok(Some(piped)),
            false => Err(Failure::new("cannot read standard input: interrupted before anything came")),
        }
    }

    /// All that has come was read.
    pub(crate) fn pause(&mut self) {
        self.paused = true;
    }

    /// Waits for more after a pause. Returns whether reading goes on.
    #[inline]
    pub(crate) fn goes_on(&mut self) -> bool {
        let paused = std::mem::take(&mut self.paused);
        // Relaxed: nothing else is told by this.
        if !paused && !self.stop.load(Ordering::Relaxed) {
            return true;
        }
        self.wait(paused)
    }

    #[cold]
    fn wait(&mut self, paused: bool) -> bool {
        loop {
            let mut longest = TICK;
            if self.stop.load(Ordering::Relaxed) {
                let now = Instant::now();
                let end = *self.end.get_or_insert(now + GRACE);
                if now >= end {
                    note(format_args!("interrupted, and standard input did not end: the rest was not read"));
                    return false;
                }
                longest = longest.min(end - now);
            }
            // A signal ends the wait early. What else is wrong with standard input, reading it tells.
            let longest = Timespec::try_from(longest).ok();
            let is_there = || {
                poll(&mut [PollFd::new(&io::stdin(), PollFlags::IN)], longest.as_ref()).map(|ready| ready > 0)
            };
            match if paused { is_there() } else { Ok(true) } {
                Ok(true) => return true,
                Ok(false) | Err(rustix::io::Errno::INTR) => {}
                Err(_) => return true,
            }
        }
    }
}
