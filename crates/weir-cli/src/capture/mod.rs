//! `weir capture`: prints packets, or captures them to a file or a pipe.

mod args;
mod backlog;
mod printer;
mod who;

use std::io::{self, IsTerminal};
use std::mem;
use std::os::fd::AsFd;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use rustix::fs::FileType;
use weir::filter_control::FilterControl;
use weir::guard::Rules;
use weir::who::News;
use weir::writer::Writer;
use weir::{
    Builder, Capture, CaptureStats, Chunk, Direction, FileInterface, Interface, PoolFill, SourceKind,
};
use weir_render::{Column, json};
use weir_service::confine::Confinement;
use weir_service::control::{Change, Marks, Obeyed, Order, What};
use weir_service::rules::{RulesCounted, RulesSummary};
use weir_service::session::{Engine, Policy, Prepared, Settings};
use weir_service::summary::{FilesSummary, StatisticsSummary, Summary};
use weir_service::{Budget, Stop, Until};

pub(crate) use self::args::CaptureArgs;
use self::backlog::Backlog;
use self::printer::{Outcome, Printer, Whose};
use self::who::Who;
use crate::failure::{self, Failure};
use crate::flows::{FlowsSummary, Keeper};
use crate::interfaces::Chosen;
use crate::live::{self, Live};
use crate::opening::{self, Unopened};
use crate::rules::{self, LiveRules, lifeline};
use crate::{interfaces, out, report, style, unsorted};

/// Time between checks for losses, which are marked in the file.
const LOSS_PERIOD: Duration = Duration::from_secs(1);

/// Longest wait of SIGUSR2 for packets that are held back for sorting.
const LONGEST_FLUSH: Duration = Duration::from_millis(100);

/// Time between looks at the pool while a reader is too slow: it does not fill by half meanwhile.
const ROOM_PERIOD: Duration = Duration::from_millis(1);

/// The file is flushed if nothing comes for this long: several naps of a capture that is awaiting more (`Delivery::Adaptive`).
const LULL: Duration = Duration::from_millis(1);

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
    let filter = args.live.filter()?;
    let rules = args.rules.as_ref().map(|file| LiveRules::read(file, &args.sets)).transpose()?;
    let mut options = args.writer_options();
    let file = args.write.as_deref().map(|path| (path, &mut options));
    let settings = args.live.settings("capture", &args.until);
    let names = args.prints() && args.line.names(args.json);
    let mut prepared = Prepared::new(Settings { names, ..settings }, file)?;
    let collectors = args.flows.open(&args.live.origin, &prepared)?;
    let describer = args.who.then(|| prepared.describer()).transpose()?;
    // The time zone is looked up while this is allowed.
    let own_queries = Arc::default();
    let hosts = prepared.take_resolver();
    let own = Some(&own_queries);
    let text = args.prints().then(|| args.line.text(args.json, args.nano, hosts, own, Column::Several));
    let opened = prepared.open(|until| -> Result<_, Unopened> {
        let chosen = args.live.origin.chosen()?;
        let builder = filter.into_iter().fold(args.builder(&chosen), Builder::filter);
        let builder = match &rules {
            Some(rules) => builder.rules(checked(args, rules, &chosen)?.clone()),
            None => builder,
        };
        // Before there are packets, so that none has a socket that was not seen.
        let who = describer.map(Who::begin).transpose()?;
        let capture = builder.open_telling(opening::progress(until, args.is_quiet()))?;
        let who = who.map(|who| who.located(&chosen, capture.interfaces())).transpose()?;
        Ok(Watched { capture, who })
    });
    let (Watched { capture, who }, opened) = match opened {
        Ok(opened) => opened,
        Err(unopened) => {
            let file = args.write.as_deref();
            return unopened.end(args.is_quiet(), file, |summary| {
                let flows = args.flows.nothing();
                print_json(args, None, &FlowsSummary { capture: summary.clone(), flows })
            });
        }
    };
    let interfaces = capture.interfaces().to_vec();
    // The first file is opened after confinement, in the same way as all later ones.
    let writer = args.write.as_deref().map(|path| {
        let described: Vec<_> = interfaces.iter().map(FileInterface::from).collect();
        Writer::create(path, &described, &options)
    });
    let writer = writer.transpose()?;
    let printer = match text {
        Some(mut text) => {
            interfaces.iter().for_each(|interface| text.interface(&interface.into()));
            let link_types = || interfaces.iter().map(|interface| interface.link_type).collect();
            let whose = |who: &Who| Whose { boot: who.boot(), link_types: link_types(), ..Whose::default() };
            Some(Printer::start(text, who.as_ref().map(whose), args.write.is_some())?)
        }
        None => None,
    };
    let start =
        |collectors| args.flows.start(collectors, &args.live.origin, &interfaces, args.order.held_back());
    let flows = collectors.map(start).transpose()?;
    style::print(&report::started(&interfaces, &opened, args.is_quiet(), args.line.verbose > 0));
    who.iter().for_each(Who::warn);
    if let Some(rules) = &rules {
        warn_of_sent(args, rules, &interfaces);
    }
    // Lines and a status line on one terminal would be in each other's way; a pipe often ends there, too.
    let shows_lines = printer.is_some() && !is_file(&io::stdout());
    let live = if args.is_quiet() || shows_lines { None } else { Live::on_terminal() };
    let now = Instant::now();
    let backlog = Backlog::new(capture.is_by_time());
    let run = Run {
        args,
        capture,
        interfaces,
        confinement: opened.confinement().cloned(),
        redraw: live.is_some().then_some(now),
        look_for_loss: writer.is_some().then_some(now + LOSS_PERIOD),
        lost: 0,
        backlog,
        flows,
        who,
        writer,
        printer,
        printed: Ok(()),
        outcome: None,
        own_queries,
        live,
        budget: opened.budget(),
        marks: Marks::default(),
        replaced: Vec::new(),
        handled: 0,
    };
    opened.serve(run)?.run()
}

/// Returns rules, if they do not cut off this shell.
fn checked<'a>(args: &CaptureArgs, rules: &'a LiveRules, chosen: &[Chosen]) -> Result<&'a Rules, Failure> {
    for one in chosen.iter().filter(|_| !args.live.origin.is_forced()) {
        lifeline::check_login(rules, one, args.ruled_direction())?;
    }
    if !rules.captures() {
        rules::note(rules::CAPTURE_NOTHING);
    }
    if rules.logs() && !args.is_quiet() {
        rules::note(rules::LOG_NOTHING);
    }
    Ok(rules.rules())
}

/// Warns of rules for sent packets on interfaces where none meets them.
fn warn_of_sent(args: &CaptureArgs, rules: &LiveRules, interfaces: &[Interface]) {
    for interface in interfaces {
        let name = style::visible(&interface.name);
        match interface.source {
            source @ (SourceKind::Xdp | SourceKind::AfXdp) => {
                rules.warn_of_sent(&name, &format!("source {source} sees received packets only"));
            }
            _ if args.ruled_direction() == Direction::In => {
                rules.warn_of_sent(&name, "only received packets are captured");
            }
            _ => {}
        }
    }
}

fn is_file(stream: &impl AsFd) -> bool {
    rustix::fs::fstat(stream).is_ok_and(|there| FileType::from_raw_mode(there.st_mode).is_file())
}

fn to_stdout(args: &CaptureArgs) -> bool {
    args.write.as_deref() == Some(Path::new("-"))
}

/// A capture, and what follows the sockets meanwhile.
struct Watched {
    capture: Capture,
    who: Option<Who>,
}

impl Engine for Watched {
    fn filter_control(&self) -> FilterControl {
        self.capture.filter_control()
    }
}

/// A running capture and the destination of its packets.
struct Run<'a> {
    args: &'a CaptureArgs,
    capture: Capture,
    interfaces: Vec<Interface>,
    /// `None`: not confined.
    confinement: Option<Confinement>,
    writer: Option<Writer>,
    /// Chunks that wait for the writer.
    backlog: Backlog,
    /// `None`: nobody counts flows.
    flows: Option<Keeper>,
    /// `None`: nobody asks whose the packets are.
    who: Option<Who>,
    /// `None`: packets are not printed, or no longer.
    printer: Option<Printer>,
    /// What became of a printer that has ended: `Ok` if standard output was closed.
    printed: Result<(), Failure>,
    /// How printing ended; `None`: it goes on, or there never was any.
    outcome: Option<Outcome>,
    /// Packets that are there only because names are printed. Its partner is the printer.
    own_queries: Arc<AtomicU64>,
    live: Option<Live>,
    /// Time of the next update of the live line.
    redraw: Option<Instant>,
    /// Time of the next check for losses.
    look_for_loss: Option<Instant>,
    /// Packets lost before the last check.
    lost: u64,
    budget: Budget,
    /// Filter changes that are not marked in the file yet.
    marks: Marks,
    /// Rules that were replaced since the last round.
    replaced: Vec<Change>,
    /// Packets taken from the engine to be kept: written, or counted if there is no file.
    handled: u64,
}

impl Policy for Run<'_> {
    type Summary = FlowsSummary;
    type Error = Failure;

    fn summary(&mut self) -> Result<FlowsSummary, Failure> {
        let account = self.capture.stats()?;
        let statistics = self.statistics()?;
        let rules = self.rules()?;
        let capture = self.summary_of(&account, statistics, rules);
        Ok(FlowsSummary { capture, flows: self.flows.as_ref().map(Keeper::counts) })
    }

    fn report(&mut self) -> Result<(), Failure> {
        if let Some(live) = &self.live {
            live.clear();
        }
        let summary = self.summary()?;
        style::print(&report::account(&summary.capture, style::stderr()));
        style::print(&summary.text());
        Ok(())
    }

    /// Writes everything captured so far to the file.
    fn flush(&mut self, until: &Until) -> Result<(), Failure> {
        let captured = self.capture.stats()?.total().captured;
        self.capture.hurry();
        while self.handled < captured && until.reached(Instant::now()).is_none() {
            let Some(chunk) = self.capture.next(LONGEST_FLUSH)?.taken() else { break };
            self.take(chunk)?;
        }
        if let Some(writer) = &mut self.writer {
            self.backlog.advance(writer)?;
            writer.flush_within(LONGEST_FLUSH)?;
        }
        Ok(())
    }

    fn obey(&mut self, order: Order) -> Result<Obeyed, String> {
        // Without rules it is not confinement that refuses others.
        let is_confined = self.confinement.is_some() && self.args.rules.is_some();
        let rules = rules::ordered(order, "the capture", is_confined)?;
        self.capture.replace_rules(&rules).map_err(|error| error.to_string())?;
        let count = self.capture.rules_in_force().map_or(0, |rules| rules.len());
        let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        let time = u64::try_from(now.as_nanos()).unwrap_or(u64::MAX);
        self.replaced.push(Change { time, by: None, what: What::Rules(count) });
        Ok(Obeyed::Done)
    }

    fn changed(&mut self, mut changes: Vec<Change>) -> Result<(), Failure> {
        changes.append(&mut self.replaced);
        let waits = self.waits_for_reader();
        self.mark_changes(changes, |marks, account| if waits { None } else { marks.due(account) })
    }

    fn tick(&mut self, now: Instant) -> Result<Option<Stop>, Failure> {
        if interfaces::tell_events(&mut self.capture, self.live.as_ref()) {
            self.mark()?;
        }
        if let Some(who) = self.who.as_mut().filter(|who| now >= who.due()) {
            who.round(now);
            self.tell_owners(None)?;
        }
        if let Some(flows) = &mut self.flows {
            flows.tick(now, || self.capture.stats(), || self.live.iter().for_each(Live::clear))?;
        }
        if self.redraw.is_some_and(|time| now >= time) {
            self.redraw = Some(now + live::PERIOD);
            self.redraw()?;
        }
        if self.look_for_loss.is_some_and(|time| now >= time) {
            self.look_for_loss = Some(now + LOSS_PERIOD);
            self.mark_loss()?;
            self.mark_unsorted()?;
            self.warn();
        }
        if let Some(end) = self.printer.as_ref().and_then(Printer::end) {
            if self.writer.is_none() {
                return end.map(|()| Some(Stop::Pipe));
            }
            // The file goes on.
            self.live.iter().for_each(Live::clear);
            let why = end.as_ref().map_or_else(Failure::message, |()| "standard output was closed");
            style::say(format_args!("weir: {why}; no more packets are printed"));
            self.printer = None;
            self.printed = end;
            self.outcome = Some(Outcome::Closed);
        }
        if self.writer.as_ref().is_some_and(Writer::is_due) {
            self.mark_unsorted()?;
        }
        let Some(writer) = &mut self.writer else { return Ok(None) };
        if writer.is_due() {
            // Starts the next file, whose time has come.
            writer.tick(&self.capture.stats()?)?;
        }
        Ok(match writer {
            writer if writer.is_complete() => Some(Stop::Files),
            writer if writer.is_full() => Some(Stop::Size),
            _ => None,
        })
    }

    fn due(&self) -> Option<Instant> {
        let rotate = self.writer.as_ref().and_then(Writer::due);
        let flows = self.flows.as_ref().map(Keeper::due);
        let who = self.who.as_ref().map(Who::due);
        [self.redraw, self.look_for_loss, rotate, flows, who].into_iter().flatten().min()
    }

    fn receive(&mut self, longest: Duration) -> Result<(), Failure> {
        if self.is_held_up(longest)? {
            return Ok(());
        }
        if let Some(writer) = &mut self.writer {
            self.backlog.advance(writer)?;
        }
        match self.next(longest)? {
            Some(chunk) => self.take(chunk),
            None => Ok(()),
        }
    }

    /// Stops the engine, writes everything captured to the file, closes it, and reports the result.
    fn finish(
        mut self,
        end: Result<Stop, Failure>,
        changes: impl FnOnce() -> Vec<Change>,
    ) -> Result<(), Failure> {
        let counting: Vec<bool> = self.capture.statistics().iter().map(StatisticsSummary::is_on).collect();
        let stopped = self.capture.stop().map_err(Failure::from);
        let drained = self
            .drain()
            .and_then(|()| self.finish_owners())
            .and_then(|()| self.finish_backlog())
            .and_then(|()| self.mark_unsorted());
        let changes = changes();
        let drained = drained.and_then(|()| self.mark_changes(changes, |marks, _| marks.last()));
        let (account, counted) = match self.capture.stats() {
            Ok(account) => (account, Ok(())),
            Err(error) => (CaptureStats::default(), Err(error.into())),
        };
        let (statistics, read) = match self.statistics() {
            // The end switches none off.
            Ok(mut statistics) => {
                statistics.iter_mut().zip(counting).for_each(|(one, on)| one.on = on);
                (statistics, Ok(()))
            }
            Err(error) => (Vec::new(), Err(error)),
        };
        let (rules, rules_read) = match self.rules() {
            Ok(rules) => (rules, Ok(())),
            Err(error) => (Vec::new(), Err(error)),
        };
        let closed = match &mut self.writer {
            Some(writer) => writer.close(&account).map_err(Failure::from),
            None => Ok(()),
        };
        // The file is complete by now, whatever becomes of standard output.
        let interrupted = matches!(end, Ok(Stop::Signal));
        let printed = self.finish_printing(interrupted);
        interfaces::tell_events(&mut self.capture, self.live.as_ref());
        if let Some(live) = &self.live {
            live.clear();
        }
        let flows = self.flows.take().map(|flows| flows.finish(&account));
        self.warn();
        let result = failure::ended(end, [stopped, drained, closed, counted, read, rules_read, printed]);
        let mut summary = self.summary_of(&account, statistics, rules);
        summary.close(self.handled, result.as_ref().copied().map_err(Failure::message));
        let paint = style::stderr();
        let is_brief = self.args.line.verbose == 0 && flows.is_none();
        let brief = is_brief.then(|| report::brief(&summary, paint)).flatten();
        let summary = FlowsSummary { capture: summary, flows };
        style::print(&brief.unwrap_or_else(|| {
            let account = match self.args.is_quiet() {
                true => String::new(),
                false => report::account(&summary.capture, paint) + &summary.text(),
            };
            account + &report::closing(&summary.capture)
        }));
        let printed = print_json(self.args, self.outcome, &summary);
        self.args.live.loss.end(result.and(printed), summary.loss(), !self.args.is_quiet())
    }
}

impl Run<'_> {
    /// Returns the next chunk. Before sleeping, it completes pending writes, so that their chunks return to the pool.
    fn next(&mut self, wait: Duration) -> Result<Option<Chunk>, Failure> {
        if let Some(writer) = &mut self.writer {
            if let Some(chunk) = self.capture.next(wait.min(LULL))?.taken() {
                return Ok(Some(chunk));
            }
            writer.flush_within(wait.min(ROOM_PERIOD))?;
            if self.waits_for_reader() {
                return Ok(None);
            }
        }
        Ok(self.capture.next(wait)?.taken())
    }

    /// Returns whether the reader of a FIFO has yet to take packets.
    fn waits_for_reader(&self) -> bool {
        !self.backlog.is_empty() || self.writer.as_ref().is_some_and(Writer::is_behind)
    }

    /// Writes what waits for the reader of a FIFO.
    fn finish_backlog(&mut self) -> Result<(), Failure> {
        let Some(writer) = &mut self.writer else { return Ok(()) };
        let late = || {
            self.live.iter().for_each(Live::clear);
            style::say(format_args!(
                "weir: waiting for the reader of the FIFO; to give up, press Ctrl-C again"
            ));
        };
        Ok(self.backlog.finish(writer, late)?)
    }

    /// If there is no file, waits for a slow standard output as long as the pool has room for what arrives meanwhile. Returns
    /// whether it has waited for nothing.
    fn is_held_up(&self, longest: Duration) -> Result<bool, Failure> {
        let Some(printer) = self.printer.as_ref().filter(|_| self.writer.is_none()) else { return Ok(false) };
        if printer.wait_for_room(Duration::ZERO) {
            return Ok(false);
        }
        let is_half_full = |fill: PoolFill| fill.ready + fill.held >= fill.total / 2;
        let account = self.capture.stats()?;
        let mut queues = account.interfaces.iter().flat_map(|interface| &interface.queues);
        Ok(!queues.any(|queue| is_half_full(queue.pool)) && !printer.wait_for_room(longest.min(ROOM_PERIOD)))
    }

    /// Prints what is left.
    fn finish_printing(&mut self, interrupted: bool) -> Result<(), Failure> {
        let Some(printer) = self.printer.take() else { return mem::replace(&mut self.printed, Ok(())) };
        let outcome = printer.finish(interrupted);
        self.outcome = Some(outcome.as_ref().copied().unwrap_or(Outcome::Closed));
        outcome.map(|_| ())
    }

    fn take(&mut self, mut chunk: Chunk) -> Result<(), Failure> {
        self.tell_owners(Some(&chunk))?;
        if let Some(writer) = &mut self.writer {
            if self.args.files.limits_size() {
                // How much fits is known once nothing waits.
                self.backlog.finish(writer, || ())?;
            }
            chunk.keep_first(writer.fitting(&chunk));
        }
        chunk.keep_first(self.budget.take(chunk.len()));
        self.handled += chunk.len() as u64;
        if let Some(flows) = &mut self.flows {
            flows.add(&chunk);
        }
        if let Some(printer) = &mut self.printer {
            printer.offer(&chunk);
        }
        let file_ends = self.writer.as_ref().is_some_and(|writer| writer.ends_with(&chunk));
        if file_ends {
            self.mark_unsorted()?;
        }
        let Some(writer) = &mut self.writer else { return Ok(()) };
        if file_ends {
            writer.set_stats(&self.capture.stats()?);
        }
        Ok(self.backlog.write(writer, chunk)?)
    }

    /// Tells the file and the printer what is new about sockets: all that concerns the packets of `chunk` and those before.
    fn tell_owners(&mut self, chunk: Option<&Chunk>) -> Result<(), Failure> {
        let Some(who) = &mut self.who else { return Ok(()) };
        if let Some(chunk) = chunk.filter(|_| self.printer.is_some()) {
            who.settle(chunk, self.writer.is_none());
        }
        let news = who.news();
        self.give_news(news)
    }

    fn give_news(&mut self, news: Vec<News>) -> Result<(), Failure> {
        let waits = self.waits_for_reader();
        let Some(who) = &mut self.who else { return Ok(()) };
        if let Some(writer) = &mut self.writer {
            who.keep(news.clone());
            if !waits {
                writer.who(who.boot(), &who.take_kept())?;
            }
        }
        if let Some(printer) = self.printer.as_ref().filter(|_| !news.is_empty()) {
            printer.learn(news);
        }
        Ok(())
    }

    /// Tells what was found out about sockets at the end.
    fn finish_owners(&mut self) -> Result<(), Failure> {
        let Some(who) = &mut self.who else { return Ok(()) };
        let news = who.last();
        who.say();
        self.give_news(news)
    }

    /// Takes note of `changes`, and marks those that `due` returns.
    fn mark_changes(
        &mut self,
        changes: Vec<Change>,
        due: impl Fn(&mut Marks, &CaptureStats) -> Option<Change>,
    ) -> Result<(), Failure> {
        if changes.is_empty() && self.marks.is_empty() {
            return Ok(());
        }
        let account = self.capture.stats()?;
        for change in changes {
            if !self.args.is_quiet() {
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
                    _ => writer.record_event(&account, change.time, &change.to_string())?,
                }
            }
        }
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

    /// Takes everything left in the pool, because packets that the writer rejects must be counted, too.
    fn drain(&mut self) -> Result<(), Failure> {
        let mut result = Ok(());
        while let Some(chunk) = self.capture.next(Duration::ZERO)?.taken() {
            if let Some(printer) = self.printer.as_mut().filter(|_| self.writer.is_none()) {
                printer.wait_patiently();
            }
            let taken = self.take(chunk);
            if result.is_ok() {
                result = taken;
            }
        }
        result
    }

    /// Returns the number of packets known to be lost because the disk was full.
    fn lost_on_disk(&self) -> u64 {
        self.writer.as_ref().map_or(0, |writer| writer.written().lost.values().sum())
    }

    fn redraw(&mut self) -> Result<(), Failure> {
        if let Some(live) = &mut self.live {
            let account = self.capture.stats()?;
            live.draw(&account, self.writer.as_ref().map(Writer::written).as_ref());
        }
        Ok(())
    }

    /// Writes the counters to the file if packets have been lost since the last check.
    fn mark_loss(&mut self) -> Result<(), Failure> {
        if self.waits_for_reader() {
            return Ok(());
        }
        let account = self.capture.stats()?;
        let total = account.total();
        let now = total.lost + total.errors + self.lost_on_disk();
        if now > self.lost
            && let Some(writer) = &mut self.writer
        {
            writer.statistics(&account)?;
        }
        self.lost = now;
        Ok(())
    }

    /// Tells in the file which packets are not in the order of time, if there are any since the last call.
    fn mark_unsorted(&mut self) -> Result<(), Failure> {
        if self.waits_for_reader() {
            return Ok(());
        }
        if let Some(writer) = &mut self.writer
            && let Some(unsorted) = self.capture.unsorted()
        {
            writer.record_event(&self.capture.stats()?, unsorted.last, &unsorted::mark(unsorted))?;
        }
        Ok(())
    }

    /// Writes the current counters to the file, to mark an event, unless that would have to wait.
    fn mark(&mut self) -> Result<(), Failure> {
        if !self.waits_for_reader()
            && let Some(writer) = &mut self.writer
        {
            writer.statistics(&self.capture.stats()?)?;
        }
        Ok(())
    }

    /// Reads what is counted beside the capture.
    fn statistics(&mut self) -> Result<Vec<StatisticsSummary>, Failure> {
        let all = self.capture.statistics().iter_mut().map(StatisticsSummary::read);
        Ok(all.collect::<Result<_, _>>()?)
    }

    /// Returns what rules have counted.
    fn rules(&self) -> Result<Vec<RulesSummary>, Failure> {
        let readings = self.capture.rules()?;
        let summary = |(interface, reading): (&Interface, _)| RulesSummary {
            interface: interface.name.clone(),
            counted: RulesCounted::of(reading),
        };
        Ok(self.interfaces.iter().zip(readings).map(summary).collect())
    }

    fn summary_of(
        &self,
        account: &CaptureStats,
        statistics: Vec<StatisticsSummary>,
        rules: Vec<RulesSummary>,
    ) -> Summary {
        let written = self.writer.as_ref().map(Writer::written);
        let mut summary = report::summary(&self.interfaces, account, written.as_ref());
        summary.statistics = statistics;
        summary.rules = rules;
        summary.files = self.writer.as_ref().map(|writer| FilesSummary::from(writer.files()));
        summary.confinement.clone_from(&self.confinement);
        summary.not_printed = match (&self.printer, self.outcome) {
            (Some(printer), _) => printer.skipped(),
            (None, Some(Outcome::Complete(left) | Outcome::Stuck(left))) => left,
            (None, Some(Outcome::Closed) | None) => 0,
        };
        summary.own_queries = self.own_queries.load(Ordering::Relaxed);
        summary.file = self.args.write.as_ref().map(|path| path.display().to_string());
        summary
    }
}

/// Prints the summary for programs, if that was requested. `outcome`: how printing packets ended.
fn print_json(args: &CaptureArgs, outcome: Option<Outcome>, summary: &FlowsSummary) -> Result<(), Failure> {
    match outcome {
        _ if !args.json => Ok(()),
        Some(Outcome::Closed) => Ok(()),
        Some(Outcome::Stuck(_)) => print_json_beside(summary),
        _ if to_stdout(args) => print_json_beside(summary),
        _ => failure::printed(json::line(out::stdout(), summary)),
    }
}

/// Prints the summary on standard error, since standard output takes no more or has the packets.
fn print_json_beside(summary: &FlowsSummary) -> Result<(), Failure> {
    let printed = json::line(io::stderr(), summary);
    printed.map_err(|error| Failure::new(format_args!("cannot print the JSON summary: {error}")))
}
