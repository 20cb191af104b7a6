//! Rules that are off again unless somebody confirms them, because they may have cut that one off.

use std::io;
use std::io::{IsTerminal as _, Read as _};
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::process::getpgrp;
use rustix::termios::tcgetpgrp;

use crate::failure::Failure;
use crate::{style, units};

/// Time between two looks at the terminal.
const PERIOD: Duration = Duration::from_millis(100);

/// A confirmation that is waited for.
#[derive(Debug)]
pub(super) struct Confirmation {
    until: Instant,
    /// Enter confirms.
    terminal: bool,
}

impl Confirmation {
    /// Asks for confirmation within this time.
    pub(super) fn begin(time: Duration) -> Self {
        let terminal = io::stdin().is_terminal();
        let enter = if terminal { "press Enter, or " } else { "" };
        style::say(format_args!(
            "confirm within {} that you can still reach this host, or the rules are off again: {enter}weir ctl confirm, or kill -USR1 {}",
            units::elapsed(time),
            std::process::id()
        ));
        Self { until: Instant::now() + time, terminal }
    }

    /// Returns whether somebody has pressed Enter.
    pub(super) fn is_given(&mut self) -> bool {
        // Reading in the background would stop the process.
        if !self.terminal || !tcgetpgrp(io::stdin()).is_ok_and(|group| group == getpgrp()) {
            return false;
        }
        let stdin = io::stdin();
        let mut fds = [PollFd::new(&stdin, PollFlags::IN)];
        let at_once = Timespec { tv_sec: 0, tv_nsec: 0 };
        if !poll(&mut fds, Some(&at_once)).is_ok_and(|ready| ready > 0) {
            return false;
        }
        match stdin.lock().read(&mut [0; 256]) {
            Ok(1..) => true,
            // The terminal is gone.
            Ok(0) | Err(_) => {
                self.terminal = false;
                false
            }
        }
    }

    /// Returns how long it is still waited for.
    pub(super) fn left(&self) -> Duration {
        self.until.saturating_duration_since(Instant::now())
    }

    /// Returns whether its time is over.
    pub(super) fn is_over(&self, now: Instant) -> bool {
        now >= self.until
    }

    /// Returns when to look again.
    pub(super) fn due(&self) -> Instant {
        if self.terminal { self.until.min(Instant::now() + PERIOD) } else { self.until }
    }
}

/// Returns the failure of rules that nobody has confirmed.
pub(super) fn missing(time: Option<Duration>, took_over: bool) -> Failure {
    /// Unlike all other failures.
    const STATUS: u8 = 4;
    let time = units::elapsed(time.unwrap_or_default());
    let before = if took_over { ", and those before are in force again" } else { "" };
    Failure::new(format_args!("nobody confirmed the rules within {time}: they are off again{before}"))
        .status(STATUS)
}
