//! `weir capture`: captures packets to a file or a pipe, or just counts them.

use std::io::{self, IsTerminal};
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use weir::writer::Writer;
use weir::{Account, Builder, Capture, Chunk, FileInterface, Filter, Interface};
use weir_service::confine::{Confinement, Needs};
use weir_service::control::{Change, Control, Listening, Marks, What};
use weir_service::keeper::Helpers;
use weir_service::metrics::{Bound, Metrics};
use weir_service::summary::{FilesSummary, Summary};
use weir_service::{Stop, Until};

use crate::args::CaptureArgs;
use crate::failure::Failure;
use crate::live::{self, Live};
use crate::{cut_off, hints, interfaces, json, opening, report, style};

/// Time between checks for losses, which are marked in the file.
const LOSS_PERIOD: Duration = Duration::from_secs(1);

/// Longest wait of SIGUSR2 for packets that are held back for sorting.
const LONGEST_FLUSH: Duration = Duration::from_millis(100);

/// Runs the command.
pub(crate) fn run(args: &CaptureArgs) -> Result<(), Failure> {
    if args.list_interfaces {
        return interfaces::list(&args.live.origin.namespaces);
    }
    args.check().map_err(Failure::usage)?;
    args.live.origin.check()?;
    if to_stdout(args) && io::stdout().is_terminal() {
        return Err(Failure::usage("-w -: standard output is a terminal")
            .hint("pipe it: weir capture -w - | tshark -r -"));
    }
    let filter = args.live.filter.filter(&args.live.words)?;
    let until = args.until.until()?;
    let mut run = Run::start(args, filter, until)?;
    let end = run.until_stopped();
    run.finish(end)
}

fn to_stdout(args: &CaptureArgs) -> bool {
    args.write.as_deref() == Some(Path::new("-"))
}

/// A running capture and the destination of its packets.
struct Run<'a> {
    args: &'a CaptureArgs,
    until: Until,
    capture: Capture,
    interfaces: Vec<Interface>,
    /// `None`: not confined.
    confinement: Option<Confinement>,
    writer: Option<Writer>,
    live: Option<Live>,
    metrics: Option<Metrics>,
    control: Option<Control>,
    /// Last, because dropping it removes the sockets of the fields above.
    _helpers: Option<Arc<Helpers>>,
    /// Filter changes that are not marked in the file yet.
    marks: Marks,
    /// Packets taken from the engine to be kept: written, or counted if there is no file.
    handled: u64,
}

impl<'a> Run<'a> {
    fn start(args: &'a CaptureArgs, filter: Option<Filter>, mut until: Until) -> Result<Self, Failure> {
        let ready = args.live.ready.take()?;
        let metrics = args.live.metrics.bind()?;
        let listening = args.live.control.listen()?;
        let user = args.live.user.find()?;
        // The means to write files, and the process that opens them, must exist before there are other threads and
        // fewer rights.
        let mut options = args.writer_options();
        let sockets = metrics.as_ref().and_then(Bound::path).into_iter();
        let sockets = sockets.chain(listening.iter().map(Listening::path)).map(Path::to_owned).collect();
        let confined = args.live.confine.is_on();
        let file = args.write.as_deref().filter(|_| confined);
        let helpers = if confined || user.asked_for().is_some() {
            Helpers::start(file, &options, user.asked_for(), sockets)?
        } else {
            None
        };
        options.keeper = helpers.as_ref().filter(|_| confined).map(Helpers::keeper);
        user.threads_too();
        let chosen = interfaces::chosen(&args.live.origin)?;
        cut_off::check(&args.live.origin, &chosen)?;
        let builder = args.builder(&chosen);
        let builder = filter.into_iter().fold(builder, Builder::filter);
        let capture = builder.open_telling(opening::progress(args.quiet))?;
        until.begin();
        listening.iter().try_for_each(|listening| listening.prepare(&capture.exchange()))?;
        let interfaces = capture.interfaces().to_vec();
        // Before the first file, so that it can be written in the same way as all later ones.
        let confinement = args.live.confine.confine_as(&user, Needs::to_capture)?;
        let writer = args.write.as_deref().map(|path| {
            let described: Vec<_> = interfaces.iter().map(FileInterface::from).collect();
            Writer::create(path, &described, &options)
        });
        let writer = writer.transpose()?;
        if !args.quiet {
            style::print(&report::opened(&interfaces, style::stderr()));
            metrics.iter().for_each(|bound| style::say(format_args!("metrics: {bound}")));
        } else {
            style::print(&report::lost_tags(&interfaces, style::stderr()));
        }
        if args.verbose {
            if let Some(listening) = &listening {
                style::say(format_args!("control: {}", listening.path().display()));
            }
            style::print(&report::confined(confinement.as_ref()));
        }
        let live = if args.quiet { None } else { Live::on_terminal() };
        let mut run = Self {
            args,
            until,
            capture,
            interfaces,
            confinement,
            writer,
            live,
            metrics: None,
            control: None,
            _helpers: helpers,
            marks: Marks::default(),
            handled: 0,
        };
        let serve = |bound: Bound| -> Result<_, Failure> { Ok(bound.serve(run.summary_so_far()?)?) };
        run.metrics = metrics.map(serve).transpose()?;
        let exchange = run.capture.exchange();
        let serve = |listening: Listening| -> Result<_, Failure> {
            Ok(listening.serve("capture", exchange, run.summary_so_far()?)?)
        };
        run.control = listening.map(serve).transpose()?;
        ready.tell(hints::warn);
        Ok(run)
    }

    /// Processes chunks until there is a reason to stop.
    fn until_stopped(&mut self) -> Result<Stop, Failure> {
        let start = Instant::now();
        let mut redraw = self.live.is_some().then_some(start);
        let mut look_for_loss = self.writer.is_some().then_some(start + LOSS_PERIOD);
        let mut lost = 0;
        loop {
            let now = Instant::now();
            if let Some(stop) = self.until.reached(now) {
                return Ok(stop);
            }
            if interfaces::tell_events(&mut self.capture, self.live.as_ref()) {
                self.mark()?;
            }
            if self.until.signals.take_account() {
                self.account_so_far()?;
            }
            if self.until.signals.take_flush() {
                self.flush()?;
            }
            if redraw.is_some_and(|time| now >= time) {
                redraw = Some(now + live::PERIOD);
                self.redraw()?;
            }
            if look_for_loss.is_some_and(|time| now >= time) {
                look_for_loss = Some(now + LOSS_PERIOD);
                self.mark_loss(&mut lost)?;
                self.warn();
            }
            if self.metrics.as_ref().is_some_and(|metrics| now >= metrics.due()) {
                self.publish(now)?;
            }
            if self.control.as_mut().is_some_and(|control| control.is_due(now)) {
                let summary = self.summary_so_far()?;
                self.control.iter_mut().for_each(|control| control.publish(now, summary.clone()));
            }
            self.follow_filter(Marks::due)?;
            if self.writer.as_ref().is_some_and(Writer::is_due) {
                self.rotate_by_time()?;
            }
            if self.writer.as_ref().is_some_and(Writer::is_complete) {
                return Ok(Stop::Files);
            }
            if self.writer.as_ref().is_some_and(Writer::is_full) {
                return Ok(Stop::Size);
            }
            let publish = self.metrics.as_ref().map(Metrics::due);
            let rotate = self.writer.as_ref().and_then(Writer::due);
            let control = self.control.as_ref().map(Control::due);
            let tick = [redraw, look_for_loss, publish, control, rotate].into_iter().flatten().min();
            if let Some(chunk) = self.next(self.until.wait(now, tick))? {
                self.take(chunk)?;
            }
        }
    }

    /// Returns the next chunk. Before sleeping, it completes pending writes, so that their chunks return to the pool.
    fn next(&mut self, wait: Duration) -> Result<Option<Chunk>, Failure> {
        if let Some(writer) = &mut self.writer {
            if let Some(chunk) = self.capture.next(Duration::ZERO)? {
                return Ok(Some(chunk));
            }
            writer.flush()?;
        }
        Ok(self.capture.next(wait)?)
    }

    fn take(&mut self, mut chunk: Chunk) -> Result<(), Failure> {
        if let Some(writer) = &self.writer {
            chunk.keep_first(writer.fitting(&chunk));
        }
        chunk.keep_first(self.until.budget.take(chunk.len()));
        self.handled += chunk.len() as u64;
        let Some(writer) = &mut self.writer else { return Ok(()) };
        if writer.ends_with(&chunk) {
            writer.note(&self.capture.account()?);
        }
        Ok(if self.args.is_by_time() { writer.gather(chunk) } else { writer.write(chunk) }?)
    }

    /// Writes everything captured so far to the file.
    fn flush(&mut self) -> Result<(), Failure> {
        let captured = self.capture.account()?.total().captured;
        self.capture.hurry();
        while self.handled < captured && self.until.reached(Instant::now()).is_none() {
            let Some(chunk) = self.capture.next(LONGEST_FLUSH)? else { break };
            self.take(chunk)?;
        }
        self.writer.iter_mut().try_for_each(Writer::flush)?;
        Ok(())
    }

    /// Collects filter changes, and marks those that `due` returns.
    fn follow_filter(&mut self, due: impl Fn(&mut Marks, &Account) -> Option<Change>) -> Result<(), Failure> {
        let changes = self.control.as_ref().map(Control::changes).unwrap_or_default();
        if changes.is_empty() && self.marks.is_empty() {
            return Ok(());
        }
        let account = self.capture.account()?;
        for change in changes {
            if !self.args.quiet {
                self.live.iter().for_each(Live::clear);
                style::say(format_args!("{change}"));
            }
            if let What::Filter(filter) = &change.what {
                self.interfaces.iter_mut().for_each(|interface| interface.filter.clone_from(filter));
            }
            self.marks.wait(&account, change);
        }
        while let Some(change) = due(&mut self.marks, &account) {
            if let Some(writer) = &mut self.writer {
                match &change.what {
                    What::Filter(filter) => {
                        writer.filter_changed(&account, change.time, filter.as_deref())?;
                    }
                    _ => writer.said(&account, change.time, &change.to_string())?,
                }
            }
        }
        Ok(())
    }

    /// Starts the next file when its time has come.
    fn rotate_by_time(&mut self) -> Result<(), Failure> {
        let account = self.capture.account()?;
        self.writer.iter_mut().try_for_each(|writer| writer.tick(&account))?;
        Ok(())
    }

    /// Prints the warnings about finished files.
    fn warn(&mut self) {
        let warnings = self.writer.as_mut().map(Writer::warnings).unwrap_or_default();
        if let Some(live) = self.live.as_ref().filter(|_| !warnings.is_empty()) {
            live.clear();
        }
        for warning in warnings {
            style::say(format_args!("weir: {warning}"));
        }
    }

    /// Stops the engine, writes everything captured to the file, closes it, and reports the result.
    fn finish(mut self, end: Result<Stop, Failure>) -> Result<(), Failure> {
        let stopped = self.capture.stop().map_err(Failure::from);
        let drained = self.drain();
        self.control.iter().for_each(Control::settle);
        let drained = drained.and_then(|()| self.follow_filter(|marks, _| marks.last()));
        let (account, counted) = match self.capture.account() {
            Ok(account) => (account, Ok(())),
            Err(error) => (Account::default(), Err(error.into())),
        };
        let closed = match &mut self.writer {
            Some(writer) => writer.close(&account).map_err(Failure::from),
            None => Ok(()),
        };
        interfaces::tell_events(&mut self.capture, self.live.as_ref());
        if let Some(live) = &self.live {
            live.clear();
        }
        self.warn();
        // The first error is the cause of the others.
        let result = end.and_then(|stop| stopped.and(drained).and(closed).and(counted).map(|()| stop));
        let mut summary = self.summary(&account);
        summary.close(self.handled, result.as_ref().copied().map_err(Failure::message));
        if !self.args.quiet {
            style::print(&report::account(&summary, style::stderr()));
        }
        style::print(&report::closing(&summary));
        let printed = if self.args.json { self.print_json(&summary) } else { Ok(()) };
        self.args.live.loss.end(result.and(printed), report::loss(&summary), !self.args.quiet)
    }

    /// Takes everything left in the pool, because packets that the writer rejects must be counted, too.
    fn drain(&mut self) -> Result<(), Failure> {
        let mut result = Ok(());
        while let Some(chunk) = self.capture.next(Duration::ZERO)? {
            let taken = self.take(chunk);
            if result.is_ok() {
                result = taken;
            }
        }
        result
    }

    fn redraw(&mut self) -> Result<(), Failure> {
        if let Some(live) = &mut self.live {
            let account = self.capture.account()?;
            live.draw(&account, self.writer.as_ref().map(|writer| writer.written().bytes));
        }
        Ok(())
    }

    /// Writes the counters to the file if packets have been lost since the last check.
    fn mark_loss(&mut self, lost: &mut u64) -> Result<(), Failure> {
        let account = self.capture.account()?;
        let total = account.total();
        let now = total.lost + total.errors;
        if now > *lost
            && let Some(writer) = &mut self.writer
        {
            writer.statistics(&account)?;
        }
        *lost = now;
        Ok(())
    }

    /// Writes the current counters to the file, to mark an event.
    fn mark(&mut self) -> Result<(), Failure> {
        if let Some(writer) = &mut self.writer {
            writer.statistics(&self.capture.account()?)?;
        }
        Ok(())
    }

    fn account_so_far(&mut self) -> Result<(), Failure> {
        if let Some(live) = &self.live {
            live.clear();
        }
        let summary = self.summary_so_far()?;
        style::print(&report::account(&summary, style::stderr()));
        Ok(())
    }

    fn publish(&mut self, now: Instant) -> Result<(), Failure> {
        let summary = self.summary_so_far()?;
        if let Some(metrics) = &mut self.metrics {
            metrics.publish(now, summary);
        }
        Ok(())
    }

    fn summary_so_far(&mut self) -> Result<Summary, Failure> {
        let account = self.capture.account()?;
        Ok(self.summary(&account))
    }

    fn summary(&self, account: &Account) -> Summary {
        let written = self.writer.as_ref().map(Writer::written);
        let mut summary = Summary::new(&self.interfaces, account, written.as_ref());
        summary.files = self.writer.as_ref().map(|writer| FilesSummary::from(writer.files()));
        summary.confinement.clone_from(&self.confinement);
        summary.file = self.args.write.as_ref().map(|path| path.display().to_string());
        summary
    }

    fn print_json(&self, summary: &Summary) -> Result<(), Failure> {
        let result = if to_stdout(self.args) {
            json::line(io::stderr(), summary)
        } else {
            json::line(io::stdout(), summary)
        };
        result.map_err(|error| Failure::new(format_args!("cannot print the JSON summary: {error}")))
    }
}
