//! `weir count`: packets, rates and losses per interval, in total and per queue.
//!
//! Packets are read only for `--load` and `--check`, because a chunk knows its number of packets.

mod args;
mod handlers;
mod lines;
mod load;

use std::io;
use std::time::{Duration, Instant};

use serde::Serialize;
use weir::{Builder, Capture, Interface};
use weir_render::json;
use weir_service::Stop;
use weir_service::confine::Confinement;
use weir_service::control::{Change, What};
use weir_service::session::{Policy, Prepared};
use weir_service::summary::Summary;

pub(crate) use self::args::CountArgs;
use self::handlers::{HandlersArgs, Work};
use self::lines::Lines;
use self::load::{LoadArgs, LoadFindings};
use crate::check::Findings;
use crate::failure::{self, Failure};
use crate::opening::{self, Unopened};
use crate::report::Losses;
use crate::workers::{self, Work as _, Workers};
use crate::{interfaces, out, report, style};

/// Runs the command.
pub(crate) fn run(args: &CountArgs) -> Result<(), Failure> {
    args.check().map_err(Failure::usage)?;
    args.live.origin.check()?;
    let filter = args.live.filter()?;
    let prepared = Prepared::new(args.live.settings("count", &args.until), None)?;
    let opened = prepared.open(|until| -> Result<_, Unopened> {
        let chosen = args.live.origin.chosen()?;
        let builder = filter.into_iter().fold(args.builder(&chosen), Builder::filter);
        Ok(builder.open_telling(opening::progress(until, args.quiet))?)
    });
    let (mut capture, opened) = match opened {
        Ok(opened) => opened,
        Err(unopened) => {
            return unopened.end(args.quiet, None, |summary| {
                let report = Report { summary, load: None, check: None };
                if args.json { failure::printed(json::line(out::stdout(), &report)) } else { Ok(()) }
            });
        }
    };
    style::print(&report::started(capture.interfaces(), &opened, args.quiet, args.verbose));
    let interfaces = capture.interfaces().to_vec();
    let work = || Ok(Work::new(opened.budget(), args.load.on(&interfaces)?));
    let mut own = work()?;
    let link_types = || interfaces.iter().map(|interface| interface.link_type).collect();
    own.check = args.check.start().map(|check| (check, link_types()));
    let workers = args
        .handlers
        .plan(args.order.of_handlers())
        .map(|plan| Workers::start(&mut capture, &plan, work))
        .transpose()?;
    let confinement = opened.confinement().cloned();
    let next = Instant::now() + args.interval;
    let run = Run { args, capture, interfaces, confinement, lines: Lines::new(args), next, own, workers };
    opened.serve(run)?.run()
}

/// A running count.
struct Run<'a> {
    args: &'a CountArgs,
    capture: Capture,
    interfaces: Vec<Interface>,
    /// `None`: not confined.
    confinement: Option<Confinement>,
    lines: Lines<'a>,
    /// Time of the next line.
    next: Instant,
    /// The work of this thread.
    own: Work,
    /// The handlers, which receive all packets; `None`: this thread does.
    workers: Option<Workers<Work>>,
}

impl Policy for Run<'_> {
    type Summary = Summary;
    type Error = Failure;

    fn summary(&mut self) -> Result<Summary, Failure> {
        Ok(report::summary(&self.interfaces, &self.capture.stats()?, None))
    }

    fn report(&mut self) -> Result<(), Failure> {
        let summary = self.summary()?;
        style::print(&report::account(&summary, style::stderr()));
        if let Some(findings) = self.findings(&summary) {
            style::print(&findings.text(style::stderr()));
        }
        Ok(())
    }

    fn changed(&mut self, changes: Vec<Change>) -> Result<(), Failure> {
        for change in changes {
            if !self.args.quiet {
                style::say(format_args!("{change}"));
            }
            if let What::Filter(filter) = &change.what {
                self.interfaces.iter_mut().for_each(|interface| interface.filter.clone_from(filter));
            }
        }
        Ok(())
    }

    fn tick(&mut self, now: Instant) -> Result<Option<Stop>, Failure> {
        interfaces::tell_events(&mut self.capture, None);
        if now < self.next {
            return Ok(None);
        }
        // Lines follow the schedule, so that they do not drift; missed ones are skipped.
        let interval = self.args.interval;
        self.next = if now < self.next + interval { self.next + interval } else { now + interval };
        match self.lines.print(&self.capture.stats()?) {
            Ok(()) => Ok(None),
            Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Ok(Some(Stop::Pipe)),
            Err(error) => Err(failure::unprinted(&error)),
        }
    }

    fn due(&self) -> Option<Instant> {
        Some(self.next)
    }

    fn receive(&mut self, longest: Duration) -> Result<(), Failure> {
        if let Some(chunk) = self.capture.next(longest)?.taken() {
            self.own.take(chunk.into());
        }
        Ok(())
    }

    fn finish(
        mut self,
        end: Result<Stop, Failure>,
        _changes: impl FnOnce() -> Vec<Change>,
    ) -> Result<(), Failure> {
        let (others, drained) = workers::drain(&mut self.capture, self.workers.take(), &mut self.own);
        interfaces::tell_events(&mut self.capture, None);
        let account = match self.capture.stats() {
            Ok(account) => account,
            Err(error) => return failure::ended(end, [drained, Err(error.into())]).map(|_| ()),
        };
        // Whoever closed the pipe wants no more output.
        let piped = matches!(end, Ok(Stop::Pipe));
        // The last, shorter interval, so that the intervals add up to the account.
        let printed = if piped { Ok(()) } else { failure::printed(self.lines.print(&account)) };
        let result = failure::ended(end, [drained, printed]);

        let mut summary = report::summary(&self.interfaces, &account, None);
        let check = self.findings(&summary);
        let (handled, load) = self.own.finish(others);
        summary.confinement = self.confinement;
        summary.close(handled, result.as_ref().copied().map_err(Failure::message));
        if !self.args.quiet {
            style::print(&report::account(&summary, style::stderr()));
        }
        style::print(&report::closing(&summary));
        let printed = match &check {
            _ if piped => Ok(()),
            _ if self.args.json => {
                let report = Report { summary: &summary, load, check: check.as_ref() };
                failure::printed(json::line(out::stdout(), &report))
            }
            Some(check) if !self.args.quiet => out::print(check.text(style::stdout()).as_bytes()),
            _ => Ok(()),
        };
        let result = result.and(printed);
        self.args.live.loss.end(result, report::loss(&summary), !self.args.quiet)?;
        check.map_or(Ok(()), |check| check.verdict())
    }
}

impl Run<'_> {
    /// Returns what is known of checked packets, if they are checked.
    fn findings(&self, summary: &Summary) -> Option<Findings> {
        let (check, _) = self.own.check.as_ref()?;
        let lost = Losses::of(summary);
        Some(check.findings(Some(lost.nic + lost.pool)))
    }
}

/// The account with the results of `--load` and `--check`.
#[derive(Serialize)]
struct Report<'a> {
    #[serde(flatten)]
    summary: &'a Summary,
    #[serde(skip_serializing_if = "Option::is_none")]
    load: Option<LoadFindings>,
    #[serde(skip_serializing_if = "Option::is_none")]
    check: Option<&'a Findings>,
}
