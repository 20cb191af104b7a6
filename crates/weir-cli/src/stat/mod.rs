//! `weir stat`: packets and bytes by filter, key, size and gap, counted in the kernel, or in files. `weir top`: the same by
//! conversation.

mod args;
mod conversations;
mod file;
mod file_counter;
mod label;
mod metrics;
mod named;
mod output;
mod output_options;
mod report;
mod rows;
mod summary;
mod talkers;
mod top;

use std::io;
use std::time::{Duration, Instant};

use weir::statistics::StatisticsBuilder;
use weir::{Change as Happened, Statistics};
use weir_render::json;
use weir_service::Stop;
use weir_service::confine::Confinement;
use weir_service::control::Change;
use weir_service::session::{Policy, Prepared, Settings};

pub(crate) use self::args::StatArgs;
pub(crate) use self::named::Named;
use self::output::Output;
use self::output_options::{OutputFormat, OutputOptions};
use self::rows::View;
use self::summary::{Counted, InterfaceReading, Origin, Summary};
pub(crate) use self::talkers::TopArgs;
use crate::failure::{self, Failure};
use crate::opening::{self, Unopened};
use crate::{out, style};

/// Runs the command.
pub(crate) fn run(args: &StatArgs) -> Result<(), Failure> {
    match args.files() {
        [] => live(args.output_options(), args.settings(), || args.builders()),
        files => file::run(files, args.counting()?, &args.output_options()),
    }
}

/// Runs `weir top`.
pub(crate) fn top(args: &TopArgs) -> Result<(), Failure> {
    match args.files() {
        [] => live(args.output_options(), args.settings(), || args.builders()),
        files => file::run(files, args.counting()?, &args.output_options()),
    }
}

/// Counts on interfaces.
fn live(
    output_options: OutputOptions,
    settings: Settings,
    builders: impl FnOnce() -> Result<Vec<StatisticsBuilder>, Failure>,
) -> Result<(), Failure> {
    let prepared = Prepared::new(settings, None)?;
    let opened = prepared.open(|until| -> Result<_, Unopened> {
        let progress = opening::progress(until, output_options.quiet);
        Ok(Statistics::start_all_telling(builders()?, progress)?)
    });
    let (statistics, opened) = match opened {
        Ok(opened) => opened,
        Err(unopened) => {
            unopened.say(output_options.quiet, "counted")?;
            let mut summary = Summary::new(&[], &output_options.view(Vec::new()));
            summary.close(Ok(Stop::Signal));
            let json = output_options.format == OutputFormat::Json && !output_options.conversations;
            return if json { failure::printed(json::line(out::stdout(), &summary)) } else { Ok(()) };
        }
    };
    let paint = style::stderr();
    style::print(&report::opened(&statistics, output_options.quiet, paint));
    style::print(&crate::report::service(&opened, output_options.quiet, output_options.verbose));
    let confinement = opened.confinement().cloned();
    let next = Instant::now() + output_options.every();
    let fields = statistics.first().map(|one| one.info().fields.clone()).unwrap_or_default();
    let view = output_options.view(fields);
    let output = Output::new(&output_options, view.clone());
    let over = vec![false; statistics.len()];
    let run = Run { output_options, statistics, over, view, confinement, output, next, intervals: 0 };
    opened.serve(run)?.run()
}

/// Counting that is being watched.
struct Run {
    output_options: OutputOptions,
    /// Those of each interface.
    statistics: Vec<Statistics>,
    /// Which interfaces are gone, with their last rows printed.
    over: Vec<bool>,
    view: View,
    /// `None`: not confined.
    confinement: Option<Confinement>,
    output: Output,
    /// End of the interval.
    next: Instant,
    /// Intervals that have been printed.
    intervals: u64,
}

impl Policy for Run {
    type Summary = Summary;
    type Error = Failure;

    fn summary(&mut self) -> Result<Summary, Failure> {
        let mut counted = Vec::new();
        for one in &mut self.statistics {
            let reading = one.read()?;
            let origin = Origin::live(one.info(), one.is_gone());
            counted.push(Counted { origin, filters: one.info().filters.clone(), reading });
        }
        let mut summary = Summary::new(&counted, &self.view);
        summary.confinement.clone_from(&self.confinement);
        Ok(summary)
    }

    fn report(&mut self) -> Result<(), Failure> {
        let summary = self.summary()?;
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
        let every = self.output_options.every();
        self.next = if now < self.next + every { self.next + every } else { now + every };
        self.intervals += 1;
        let readings = self.readings()?;
        match self.output.print(readings) {
            Ok(()) => {
                Ok(self.output_options.count.filter(|&count| self.intervals >= count).map(|_| Stop::Count))
            }
            Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Ok(Some(Stop::Pipe)),
            Err(error) => Err(failure::unprinted(&error)),
        }
    }

    fn due(&self) -> Option<Instant> {
        Some(self.next)
    }

    fn receive(&mut self, longest: Duration) -> Result<(), Failure> {
        for event in Statistics::wait_any(&mut self.statistics, longest)? {
            let notice = style::stderr().yellow("notice");
            if event.change != Happened::Gone {
                self.output.leave();
                style::say(format_args!("{notice}: {event}"));
                continue;
            }
            // That the last one is gone ends the run, with that message.
            if self.statistics.len() > 1 {
                self.output.leave();
                style::say(format_args!("{notice}: {} is gone; what was counted on it is kept", event.name));
            }
        }
        Ok(())
    }

    fn finish(
        mut self,
        end: Result<Stop, Failure>,
        _changes: impl FnOnce() -> Vec<Change>,
    ) -> Result<(), Failure> {
        let stopped = self.statistics.iter_mut().map(Statistics::stop).fold(Ok(()), Result::and);
        let stopped = stopped.map_err(Failure::from);
        // The last, shorter interval, so that the intervals add up to the account; unless enough were printed, or whoever
        // closed the pipe wants no more.
        let piped = matches!(end, Ok(Stop::Pipe));
        let conversations = self.output_options.conversations;
        let printed = if piped || (!conversations && matches!(end, Ok(Stop::Count))) {
            Ok(())
        } else {
            self.readings().and_then(|readings| {
                let output = &mut self.output;
                failure::printed(if conversations {
                    output.print_all(readings)
                } else {
                    output.print(readings)
                })
            })
        };
        let result = failure::ended(end, [stopped, printed]);
        if conversations {
            return result.map(|_| ());
        }
        let mut summary = match self.summary() {
            Ok(summary) => summary,
            Err(error) => return failure::ended(result, [Err(error)]).map(|_| ()),
        };
        summary.close(result.as_ref().copied().map_err(Failure::message));
        if !self.output_options.quiet {
            style::print(&report::account(&summary, style::stderr()));
        }
        let printed = if self.output_options.format == OutputFormat::Json && !piped {
            json::line(out::stdout(), &summary)
        } else {
            Ok(())
        };
        result.and_then(|_| failure::printed(printed))
    }
}

impl Run {
    /// Reads the counters, to be printed.
    fn readings(&mut self) -> Result<Vec<InterfaceReading>, Failure> {
        let mut readings = Vec::new();
        for (one, over) in self.statistics.iter_mut().zip(&mut self.over) {
            let is_over = std::mem::replace(over, one.is_gone());
            let reading = one.read()?;
            readings.push(InterfaceReading { name: one.info().name.clone(), is_over, reading });
        }
        Ok(readings)
    }
}
