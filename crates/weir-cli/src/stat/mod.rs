//! `weir stat`: packets and bytes by filter, key, size and gap, counted in the kernel.

mod args;
mod label;
mod metrics;
mod named;
mod output;
mod report;
mod summary;
mod top;

use std::io;
use std::time::{Duration, Instant};

use weir::{Change as Happened, Statistics};
use weir_service::Stop;
use weir_service::confine::Confinement;
use weir_service::control::Change;
use weir_service::session::{Policy, Prepared};

pub(crate) use self::args::StatArgs;
use self::output::Output;
use self::summary::Summary;
use crate::failure::Failure;
use crate::{json, style};

/// Runs the command.
pub(crate) fn run(args: &StatArgs) -> Result<(), Failure> {
    let prepared = Prepared::new(args.settings(), None)?;
    let (statistics, opened) = prepared.open(|| -> Result<_, Failure> { Ok(args.builder()?.start()?) })?;
    let paint = style::stderr();
    if !args.quiet {
        style::print(&report::opened(statistics.info(), paint));
    }
    style::print(&report::warnings(statistics.info(), paint));
    style::print(&crate::report::service(&opened, args.quiet, args.verbose));
    let confinement = opened.confinement().cloned();
    let next = Instant::now() + args.every;
    let output = Output::new(args, statistics.info().fields.clone());
    let run = Run { args, statistics, confinement, output, next, intervals: 0 };
    opened.serve(run)?.run()
}

/// Counting that is being watched.
struct Run<'a> {
    args: &'a StatArgs,
    statistics: Statistics,
    /// `None`: not confined.
    confinement: Option<Confinement>,
    output: Output,
    /// End of the interval.
    next: Instant,
    /// Intervals that have been printed.
    intervals: u64,
}

impl Policy for Run<'_> {
    type Account = Summary;
    type Error = Failure;

    fn account(&mut self) -> Result<Summary, Failure> {
        let reading = self.statistics.read()?;
        let mut summary = Summary::new(self.statistics.info(), &reading, self.args.choice());
        summary.confinement.clone_from(&self.confinement);
        Ok(summary)
    }

    fn report(&mut self) -> Result<(), Failure> {
        let summary = self.account()?;
        self.output.leave();
        style::print(&report::account(&summary, style::stderr()));
        Ok(())
    }

    fn changed(&mut self, _changes: Vec<Change>) -> Result<(), Failure> {
        Ok(())
    }

    fn tick(&mut self, now: Instant) -> Result<Option<Stop>, Failure> {
        if now < self.next {
            return Ok(None);
        }
        // Intervals follow the schedule, so that they do not drift; missed ones are skipped.
        let every = self.args.every;
        self.next = if now < self.next + every { self.next + every } else { now + every };
        self.intervals += 1;
        match self.output.print(self.statistics.read()?) {
            Ok(()) => Ok(self.args.count.filter(|&count| self.intervals >= count).map(|_| Stop::Count)),
            Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Ok(Some(Stop::Pipe)),
            Err(error) => Err(cannot_print(error)),
        }
    }

    fn due(&self) -> Option<Instant> {
        Some(self.next)
    }

    fn receive(&mut self, longest: Duration) -> Result<(), Failure> {
        for event in self.statistics.wait(longest)? {
            // That it is gone ends the run, with that message.
            if event.change != Happened::Gone {
                self.output.leave();
                style::say(format_args!("{}: {event}", style::stderr().yellow("notice")));
            }
        }
        Ok(())
    }

    fn finish(
        mut self,
        end: Result<Stop, Failure>,
        _changes: impl FnOnce() -> Vec<Change>,
    ) -> Result<(), Failure> {
        let stopped = self.statistics.stop().map_err(Failure::from);
        // The last, shorter interval, so that the intervals add up to the account; unless enough were printed, or whoever
        // closed the pipe wants no more.
        let piped = matches!(end, Ok(Stop::Pipe));
        let printed = if matches!(end, Ok(Stop::Pipe | Stop::Count)) {
            Ok(())
        } else {
            self.output.print(self.statistics.read()?).map_err(cannot_print)
        };
        let result = end.and_then(|stop| stopped.and(printed).map(|()| stop));
        let mut summary = self.account()?;
        summary.close(result.as_ref().copied().map_err(Failure::message));
        if !self.args.quiet {
            style::print(&report::account(&summary, style::stderr()));
        }
        let printed = if self.args.json && !piped { json::line(io::stdout(), &summary) } else { Ok(()) };
        result.and_then(|_| printed.map_err(cannot_print))
    }
}

fn cannot_print(error: io::Error) -> Failure {
    Failure::new(format_args!("cannot write to standard output: {error}"))
}
