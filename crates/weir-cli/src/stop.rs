//! When a run ends: after a number of packets or a time, or on a signal.

use std::time::{Duration, Instant};

use crate::failure::Failure;
use crate::handlers::Budget;
use crate::signals::Signals;
use crate::units;
use clap::Args;
use serde::Serialize;

/// Longest sleep in `Capture::next`. A signal ends the sleep early, but not one that arrives just before it.
const LONGEST_WAIT: Duration = Duration::from_millis(250);

/// Why a run ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Stop {
    /// `-c`
    Count,
    /// `--duration`
    Duration,
    /// SIGINT, SIGTERM or SIGHUP
    Signal,
    /// `-G` with `-W`: all files are written.
    Files,
    /// `--size`: the files have reached the requested size.
    Size,
    /// The reader of our output has closed it.
    Pipe,
    /// Something failed.
    Error,
}

/// When to stop, as the command line says it.
#[derive(Debug, Args)]
#[command(next_help_heading = "Stop conditions")]
pub(crate) struct UntilArgs {
    /// Stop after exactly N packets.
    #[arg(short = 'c', long, value_name = "N", value_parser = units::count, allow_hyphen_values = true)]
    pub(crate) count: Option<u64>,

    /// Stop after TIME: 500ms, 10s, 5m, 1h.
    #[arg(long, value_name = "TIME", value_parser = units::duration, allow_hyphen_values = true)]
    duration: Option<Duration>,
}

/// The conditions for a run to continue.
#[derive(Debug)]
pub(crate) struct Until {
    pub(crate) signals: Signals,
    duration: Option<Duration>,
    deadline: Option<Instant>,
    pub(crate) budget: Budget,
}

impl Until {
    /// Runs until the number of packets or the time is reached, whichever is first, or until a signal. Signals are
    /// handled from here on.
    pub(crate) fn new(args: &UntilArgs) -> Result<Self, Failure> {
        let signals = Signals::install()
            .map_err(|error| Failure::new(format_args!("cannot install signal handlers: {error}")))?;
        Ok(Self { signals, duration: args.duration, deadline: None, budget: Budget::new(args.count) })
    }

    /// Runs until the time is over, or until a signal.
    pub(crate) fn for_time(duration: Option<Duration>) -> Result<Self, Failure> {
        Self::new(&UntilArgs { count: None, duration })
    }

    /// Starts the time, when the capture has begun.
    pub(crate) fn begin(&mut self) {
        self.deadline = self.duration.map(|duration| Instant::now() + duration);
    }

    /// Returns the reason to stop now, if there is one.
    pub(crate) fn reached(&self, now: Instant) -> Option<Stop> {
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
