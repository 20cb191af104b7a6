//! When a run ends: a number of packets, a time, a signal.

use std::time::{Duration, Instant};

use clap::Args;
use serde::Serialize;
use weir::Chunk;

use crate::failure::Failure;
use crate::signals::Signals;
use crate::units;

/// Longest sleep in `Capture::next`. A signal ends the sleep early; this is for the one that arrives just before it.
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
    /// Whoever read our output has closed it.
    Pipe,
    /// Something failed.
    Error,
}

/// When to stop, as the command line says it.
#[derive(Debug, Args)]
#[command(next_help_heading = "When to stop")]
pub(crate) struct UntilArgs {
    /// Stop after exactly this many packets.
    #[arg(short = 'c', long, value_name = "N", value_parser = units::count, allow_hyphen_values = true)]
    pub(crate) count: Option<u64>,

    /// Stop after this time: 500ms, 10s, 5m, 1h.
    #[arg(long, value_name = "TIME", value_parser = units::duration, allow_hyphen_values = true)]
    duration: Option<Duration>,
}

/// The conditions under which a run goes on.
#[derive(Debug)]
pub(crate) struct Until {
    pub(crate) signals: Signals,
    duration: Option<Duration>,
    deadline: Option<Instant>,
    left: Option<u64>,
}

impl Until {
    /// Until there were so many packets or the time is over, whichever is first, or a signal comes. Signals are heeded from
    /// here on.
    pub(crate) fn new(args: &UntilArgs) -> Result<Self, Failure> {
        let signals =
            Signals::install().map_err(|error| Failure::new(format_args!("take over signals: {error}")))?;
        Ok(Self { signals, duration: args.duration, deadline: None, left: args.count })
    }

    /// Until the time is over, or a signal comes.
    pub(crate) fn for_time(duration: Option<Duration>) -> Result<Self, Failure> {
        Self::new(&UntilArgs { count: None, duration })
    }

    /// The capture has begun: the time runs.
    pub(crate) fn begin(&mut self) {
        self.deadline = self.duration.map(|duration| Instant::now() + duration);
    }

    /// The reason to stop now, if there is one.
    pub(crate) fn reached(&self, now: Instant) -> Option<Stop> {
        if self.left == Some(0) {
            Some(Stop::Count)
        } else if self.signals.stop() {
            Some(Stop::Signal)
        } else {
            self.deadline.filter(|deadline| now >= *deadline).map(|_| Stop::Duration)
        }
    }

    /// How long to wait for packets when there is other work at `tick`.
    pub(crate) fn wait(&self, now: Instant, tick: Option<Instant>) -> Duration {
        let times = [self.deadline, tick];
        let waits = times.iter().flatten().map(|time| time.saturating_duration_since(now));
        waits.fold(LONGEST_WAIT, Duration::min)
    }

    /// Cuts `chunk` to what is still wanted and counts it. The number of packets that stay.
    pub(crate) fn take(&mut self, chunk: &mut Chunk) -> u64 {
        let packets = u64::try_from(chunk.len()).unwrap_or(u64::MAX);
        let Some(left) = self.left else { return packets };
        if packets > left {
            // `left` is less than a usize here.
            chunk.keep_first(usize::try_from(left).unwrap_or(usize::MAX));
        }
        let taken = packets.min(left);
        self.left = Some(left - taken);
        taken
    }
}
