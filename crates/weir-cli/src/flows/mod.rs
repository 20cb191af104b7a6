//! `weir flows`: both directions of a conversation in one record, live and of files.
//!
//! ```text
//! chunk -> tables (one for each thread) -> flow -> outlet -> shown, on standard output
//!             |                                   |- outlet -> exporter, to a collector
//!             |                                   |- outlet -> saver, to files
//!             |                                   '- outlet -> publisher, to Kafka
//!             '- now and then: the busiest -> shown, a table
//! ```

mod args;
mod beside;
mod busiest;
mod collector;
mod exporter;
mod exports;
mod file;
mod folder;
mod kafka;
mod line;
mod link;
mod losses;
mod message;
mod options;
mod outlet;
mod publisher;
mod saver;
mod shape;
mod shown;
mod stream;
mod summary;
mod tables;
mod target;
mod tls;
mod written;

use std::io;
use std::mem;
use std::sync::Arc;
use std::time::{Duration, Instant};

use weir::flows::Counted;
use weir::{Builder, Capture, Interface};
use weir_render::json;
use weir_service::Stop;
use weir_service::confine::Confinement;
use weir_service::control::{Change, What};
use weir_service::session::{Policy, Prepared};

pub(crate) use self::args::FlowsArgs;
use self::args::Form;
pub(crate) use self::beside::{BesideArgs, Keeper};
use self::exports::{Exports, Opened};
use self::outlet::{Outlet, Writing};
use self::shown::{Printer, Shown};
pub(crate) use self::summary::{FlowCounts, FlowsSummary};
use self::tables::{Ended, Goals, Shared, Work};
use crate::failure::{self, Failure};
use crate::opening::{self, Unopened};
use crate::workers::{self, Work as _, Workers};
use crate::{interfaces, out, report, style};

/// How far behind the clock packets may be that were taken and not yet added, in nanoseconds.
const BEHIND: Duration = Duration::from_secs(1);
/// Between two looks for flows that are over, though no packet says so, and for losses.
const LOOK: Duration = Duration::from_millis(250);

/// Runs the command.
pub(crate) fn run(args: &FlowsArgs) -> Result<(), Failure> {
    args.check().map_err(Failure::usage)?;
    let filter = args.live.filter()?;
    if !args.read.is_empty() {
        return file::run(args, filter);
    }
    args.live.origin.check()?;
    let mut settings = args.live.settings("flows", &args.until);
    if args.once {
        settings.duration = Some(args.every());
    }
    let prepared = Prepared::new(settings, None)?;
    let destinations = Opened::open(
        &args.to,
        &args.exported(),
        &[],
        |directory| prepared.archive(directory),
        |program| prepared.launcher(program),
    )?;
    let opened = prepared.open(|until| -> Result<_, Unopened> {
        let chosen = args.live.origin.chosen()?;
        let builder = filter.into_iter().fold(args.builder(&chosen), Builder::filter);
        Ok(builder.open_telling(opening::progress(until, args.quiet))?)
    });
    let (mut capture, opened) = match opened {
        Ok(opened) => opened,
        Err(unopened) => {
            return unopened.end(args.quiet, None, |summary| {
                let capture = summary.clone();
                let flows = FlowCounts::new(&weir::flows::Counts::default(), None, Vec::new());
                let summary = FlowsSummary { capture, flows: Some(flows) };
                if args.json { failure::printed(json::line(out::stdout(), &summary)) } else { Ok(()) }
            });
        }
    };
    style::print(&report::started(capture.interfaces(), &opened, args.quiet, args.verbose));
    if !args.quiet && args.has_collector() && capture.interfaces().iter().any(|one| one.name.contains('/')) {
        let note = style::stderr().cyan("note");
        style::say(format_args!(
            "{note}: collectors are reached from here, not from the namespace of the interface"
        ));
    }
    let interfaces = capture.interfaces().to_vec();
    let form = args.form();
    let writing = match form {
        Form::Table | Form::Nothing => None,
        Form::Lines | Form::Json => {
            let names = interfaces.iter().map(|interface| interface.name.clone()).collect();
            Some(Outlet::start(Printer::new(form, names))?)
        }
    };
    let exports = Exports::start(destinations, args.exported(), &interfaces)?;
    let goals = Goals {
        outlets: writing.iter().map(Writing::outlet).chain(exports.outlets()).cloned().collect(),
        ended: (form == Form::Table).then(|| Ended::new(args.top(), args.rank())),
    };
    let link_types: Arc<[u16]> = interfaces.iter().map(|interface| interface.link_type).collect();
    let budget = opened.budget();
    let mut tables = Vec::new();
    let mut work = || -> Result<Work, Failure> {
        let table = Shared::new(&args.table())?;
        tables.push(table.clone());
        Ok(Work::new(table, budget.clone(), Arc::clone(&link_types), goals.clone()))
    };
    let plan = args.plan();
    let workers = plan.map(|plan| Workers::start(&mut capture, &plan, &mut work)).transpose()?;
    // Of this thread, which takes all packets, or what handlers leave.
    let own = work()?;
    let confinement = opened.confinement().cloned();
    let now = Instant::now();
    let run = Run {
        args,
        capture,
        interfaces,
        confinement,
        tables,
        own,
        workers,
        form,
        writing,
        exports,
        goals: goals.clone(),
        shown: if args.once { Shown::default() } else { Shown::repeated() },
        is_redrawn: FlowsArgs::is_redrawn(),
        next: now + args.every(),
        look: now + LOOK,
        losses: losses::Watched::default(),
        counted: Vec::new(),
    };
    opened.serve(run)?.run()
}

/// A running probe.
struct Run<'a> {
    args: &'a FlowsArgs,
    capture: Capture,
    interfaces: Vec<Interface>,
    /// `None`: not confined.
    confinement: Option<Confinement>,
    /// Those of all threads.
    tables: Vec<Shared>,
    /// The work of this thread.
    own: Work,
    /// The handlers, which receive all packets; `None`: this thread does.
    workers: Option<Workers<Work>>,
    form: Form,
    /// What prints each flow.
    writing: Option<Writing>,
    exports: Exports,
    goals: Goals,
    shown: Shown,
    /// Each table is drawn over the last one, which is on a terminal.
    is_redrawn: bool,
    /// Time of the next table.
    next: Instant,
    /// Time of the next look for flows that are over, and for losses.
    look: Instant,
    losses: losses::Watched,
    /// What the kernel had counted when it was asked last: packets that were captured before are in the table when it is added.
    counted: Vec<Counted>,
}

impl Policy for Run<'_> {
    type Summary = FlowsSummary;
    type Error = Failure;

    fn summary(&mut self) -> Result<FlowsSummary, Failure> {
        let stats = self.capture.stats()?;
        let capture = report::summary(&self.interfaces, &stats, None);
        let printed = self.writing.as_ref().map(|writing| writing.outlet().counts());
        let counts = tables::counts(&self.tables);
        Ok(FlowsSummary { capture, flows: Some(FlowCounts::new(&counts, printed, self.exports.counts())) })
    }

    fn report(&mut self) -> Result<(), Failure> {
        let summary = self.summary()?;
        self.shown.leave();
        style::print(&report::account(&summary.capture, style::stderr()));
        style::print(&summary.text());
        Ok(())
    }

    fn changed(&mut self, changes: Vec<Change>) -> Result<(), Failure> {
        for change in changes {
            if !self.args.quiet {
                self.shown.leave();
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
        if now >= self.look {
            self.look = now + LOOK;
            self.tell_losses();
            self.take_counted();
            self.end_silent();
            self.exports.tell(|| self.shown.leave());
        }
        if let Some(error) = self.writing.as_ref().and_then(|writing| writing.outlet().failure()) {
            return match error.kind() {
                io::ErrorKind::BrokenPipe => Ok(Some(Stop::Pipe)),
                _ => Err(failure::unprinted(&error)),
            };
        }
        if now < self.next {
            return Ok(None);
        }
        // Tables follow the schedule, so that they do not drift; missed ones are skipped.
        let every = self.args.every();
        self.next = if now < self.next + every { self.next + every } else { now + every };
        if !self.exports.is_empty() {
            self.exports.set_account_of(&self.capture.stats()?, &tables::counts(&self.tables));
        }
        if self.form != Form::Table || self.args.once || (self.is_redrawn && !style::foreground()) {
            return Ok(None);
        }
        match self.show(self.is_redrawn) {
            Ok(()) => Ok(None),
            Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Ok(Some(Stop::Pipe)),
            Err(error) => Err(failure::unprinted(&error)),
        }
    }

    fn due(&self) -> Option<Instant> {
        Some(self.next.min(self.look))
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
        let piped = matches!(end, Ok(Stop::Pipe));
        self.tell_losses();
        self.take_counted();
        self.take_counted();
        let shown =
            if self.form != Form::Table || piped { Ok(()) } else { failure::printed(self.show(false)) };
        let mut handled = self.own.handled;
        for mut work in others {
            work.end_all();
            handled += work.handled;
        }
        self.own.end_all();
        // Whoever closed the pipe wants no more output.
        let (printed, written) = match self.writing.take() {
            Some(mut writing) => {
                let (counts, result) = writing.finish();
                (Some(counts), if piped { Ok(()) } else { failure::printed(result) })
            }
            None => (None, Ok(())),
        };
        let stats = self.capture.stats();
        let counts = tables::counts(&self.tables);
        if let Ok(account) = &stats {
            self.exports.set_account_of(account, &counts);
        }
        let exports = self.exports.finish();
        let account = match stats {
            Ok(account) => account,
            Err(error) => return failure::ended(end, [drained, Err(error.into())]).map(|_| ()),
        };
        let result = failure::ended(end, [drained, shown, written]);
        let mut capture = report::summary(&self.interfaces, &account, None);
        capture.confinement = self.confinement;
        capture.close(handled, result.as_ref().copied().map_err(Failure::message));
        // Whoever closed the pipe has lost nothing that he wanted.
        let flows = FlowCounts::new(&counts, printed.filter(|_| !piped), exports);
        let summary = FlowsSummary { capture, flows: Some(flows) };
        if !self.args.quiet {
            style::print(&report::account(&summary.capture, style::stderr()));
            style::print(&summary.text());
        }
        let said = match self.args.json && !piped {
            true => failure::printed(json::line(out::stdout(), &summary)),
            false => Ok(()),
        };
        let lost = summary.loss();
        self.args.live.loss.end(result.and(said), lost, !self.args.quiet)
    }
}

impl Run<'_> {
    /// Ends flows that are over, though no packet says so.
    fn end_silent(&mut self) {
        let until = losses::before(BEHIND + self.args.order.held_back());
        for table in &self.tables {
            let mut ended = Vec::new();
            table.lock().end_until(until, &mut |flow| ended.push(flow));
            if !ended.is_empty() {
                self.goals.give(ended, Outlet::give);
            }
        }
    }

    /// Adds what the kernel had counted the last time, and asks it again.
    fn take_counted(&mut self) {
        if !self.args.kernel {
            return;
        }
        let counted = mem::take(&mut self.counted);
        self.own.add_counted(&counted);
        self.capture.take_counted(|counted| self.counted.push(counted));
    }

    /// Tells the tables what was lost since the last time. Counters that cannot be read now are read later: that they cannot be read at the
    /// end ends the run with an error.
    fn tell_losses(&mut self) {
        let before = losses::now();
        if let Ok(stats) = self.capture.stats() {
            self.losses.tell(before, &stats, |loss| {
                self.tables.iter().for_each(|table| loss.tell(&mut table.lock()));
            });
        }
    }

    /// Shows the busiest flows, those that have ended since the last table included.
    fn show(&mut self, redrawn: bool) -> io::Result<()> {
        let Some(ended) = &self.goals.ended else { return Ok(()) };
        let flows = tables::busiest(&self.tables, ended);
        ended.clear();
        self.shown.print(&flows, &tables::counts(&self.tables), self.args.rank(), redrawn)
    }
}
