//! `weir count`: packets, rates and losses per interval, in total and per queue.
//!
//! Packets are read only for `--load`, because a chunk knows its number of packets.

use std::io::{self, Write};
use std::time::{Duration, Instant};

use serde::Serialize;
use weir::{Account, Builder, Capture, Interface, Tally};
use weir_service::Stop;
use weir_service::confine::Confinement;
use weir_service::control::{Change, What};
use weir_service::session::{Policy, Prepared};
use weir_service::summary::Summary;

use crate::args::CountArgs;
use crate::failure::Failure;
use crate::handlers::{Crew, Work};
use crate::live::rate;
use crate::load::LoadFindings;
use crate::{cut_off, interfaces, json, opening, report, style, units};

/// Runs the command.
pub(crate) fn run(args: &CountArgs) -> Result<(), Failure> {
    args.check().map_err(Failure::usage)?;
    args.live.origin.check()?;
    let filter = args.live.filter.filter(&args.live.words)?;
    let prepared = Prepared::new(args.live.settings("count", &args.until), None)?;
    let (mut capture, opened) = prepared.open(|| -> Result<_, Failure> {
        let chosen = interfaces::chosen(&args.live.origin)?;
        cut_off::check(&args.live.origin, &chosen)?;
        let builder = filter.into_iter().fold(args.builder(&chosen), Builder::filter);
        Ok(builder.open_telling(opening::progress(args.quiet))?)
    })?;
    style::print(&report::started(capture.interfaces(), &opened, args.quiet, args.verbose));
    let interfaces = capture.interfaces().to_vec();
    let work = || Ok(Work::new(opened.budget(), args.load.on(&interfaces)?));
    let own = work()?;
    let crew = args
        .handlers
        .plan(args.order.of_handlers())
        .map(|plan| Crew::start(&mut capture, &plan, work))
        .transpose()?;
    let confinement = opened.confinement().cloned();
    let next = Instant::now() + args.interval;
    let run = Run { args, capture, interfaces, confinement, lines: Lines::new(args), next, own, crew };
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
    crew: Option<Crew>,
}

impl Policy for Run<'_> {
    type Account = Summary;
    type Error = Failure;

    fn account(&mut self) -> Result<Summary, Failure> {
        Ok(Summary::new(&self.interfaces, &self.capture.account()?, None))
    }

    fn report(&mut self) -> Result<(), Failure> {
        style::print(&report::account(&self.account()?, style::stderr()));
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
        match self.lines.print(&self.capture.account()?) {
            Ok(()) => Ok(None),
            Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Ok(Some(Stop::Pipe)),
            Err(error) => Err(cannot_print(error)),
        }
    }

    fn due(&self) -> Option<Instant> {
        Some(self.next)
    }

    fn receive(&mut self, longest: Duration) -> Result<(), Failure> {
        if let Some(chunk) = self.capture.next(longest)? {
            self.own.take(chunk.into());
        }
        Ok(())
    }

    fn finish(
        mut self,
        end: Result<Stop, Failure>,
        _changes: impl FnOnce() -> Vec<Change>,
    ) -> Result<(), Failure> {
        let (others, drained) = self.drain();
        interfaces::tell_events(&mut self.capture, None);
        let account = self.capture.account()?;
        // Whoever closed the pipe wants no more output.
        let piped = matches!(end, Ok(Stop::Pipe));
        // The last, shorter interval, so that the intervals add up to the account.
        let printed = if piped { Ok(()) } else { self.lines.print(&account).map_err(cannot_print) };
        let result = end.and_then(|stop| drained.and(printed).map(|()| stop));

        let mut summary = Summary::new(&self.interfaces, &account, None);
        let (handled, load) = self.own.finish(others);
        summary.confinement = self.confinement;
        summary.close(handled, result.as_ref().copied().map_err(Failure::message));
        if !self.args.quiet {
            style::print(&report::account(&summary, style::stderr()));
        }
        style::print(&report::closing(&summary));
        let report = Report { summary: &summary, load };
        let printed = if self.args.json && !piped { json::line(io::stdout(), &report) } else { Ok(()) };
        let result = result.and_then(|_| printed.map_err(cannot_print));
        self.args.live.loss.end(result, report::loss(&summary), !self.args.quiet)
    }
}

impl Run<'_> {
    /// Processes what is left. Returns the work of the handlers, if there are any.
    fn drain(&mut self) -> (Vec<Work>, Result<(), Failure>) {
        let stopped = self.capture.stop().map_err(Failure::from);
        let (done, joined) = self.crew.take().map_or((Vec::new(), Ok(())), Crew::join);
        let rest = loop {
            match self.capture.next(Duration::ZERO) {
                Ok(Some(chunk)) => self.own.take(chunk.into()),
                Ok(None) => break Ok(()),
                Err(error) => break Err(error.into()),
            }
        };
        (done, stopped.and(joined).and(rest))
    }
}

/// The account with the results of `--load`.
#[derive(Serialize)]
struct Report<'a> {
    #[serde(flatten)]
    summary: &'a Summary,
    #[serde(skip_serializing_if = "Option::is_none")]
    load: Option<LoadFindings>,
}

fn cannot_print(error: io::Error) -> Failure {
    Failure::new(format_args!("cannot write to standard output: {error}"))
}

/// The numbers of an interval.
#[derive(Debug, Serialize)]
struct Interval {
    /// Always `interval`.
    r#type: &'static str,
    /// Time since the start of the capture.
    elapsed_seconds: f64,
    /// Length of this interval.
    seconds: f64,
    #[serde(flatten)]
    growth: Growth,
    /// Packets missed by the card or its driver.
    nic_lost: u64,
    queues: Vec<QueueGrowth>,
}

/// The packets of an interval.
#[derive(Clone, Copy, Debug, Default, Serialize)]
struct Growth {
    packets: u64,
    bytes: u64,
    packets_per_second: f64,
    bits_per_second: f64,
    /// Packets lost at the hook: no free chunk, or an error.
    lost: u64,
}

#[derive(Debug, Serialize)]
struct QueueGrowth {
    interface: String,
    queue: u32,
    #[serde(flatten)]
    growth: Growth,
    /// Closed chunks that are waiting at the end of the interval.
    ready: u32,
}

impl Growth {
    fn between(before: &Tally, now: &Tally, seconds: f64) -> Self {
        let since = |value: fn(&Tally) -> u64| value(now).saturating_sub(value(before));
        Self {
            packets: since(|tally| tally.captured),
            bytes: since(|tally| tally.bytes),
            packets_per_second: rate(before.captured, now.captured, seconds),
            bits_per_second: rate(before.bytes, now.bytes, seconds) * 8.0,
            lost: since(|tally| tally.lost + tally.errors),
        }
    }
}

/// Prints intervals. It remembers the last counters, from which the growth is computed.
struct Lines<'a> {
    args: &'a CountArgs,
    last: Option<Account>,
    headed: bool,
}

impl<'a> Lines<'a> {
    fn new(args: &'a CountArgs) -> Self {
        Self { args, last: None, headed: false }
    }

    fn print(&mut self, account: &Account) -> io::Result<()> {
        let interval = self.interval(account);
        self.last = Some(account.clone());
        let mut stdout = io::stdout().lock();
        if self.args.json {
            serde_json::to_writer(&mut stdout, &interval)?;
            writeln!(stdout)?;
        } else if !self.args.quiet {
            if !self.headed {
                self.headed = true;
                writeln!(stdout, "{}", row("elapsed", "packets/s", "bit/s", "packets", "lost", "NIC lost"))?;
            }
            self.print_text(&mut stdout, &interval)?;
        }
        stdout.flush()
    }

    fn interval(&self, account: &Account) -> Interval {
        let then = self.last.as_ref().map_or(Duration::ZERO, |last| last.elapsed);
        let seconds = account.elapsed.saturating_sub(then).as_secs_f64();
        let before = self.last.as_ref().map(Account::total).unwrap_or_default();
        let mut queues = Vec::new();
        for (position, interface) in account.interfaces.iter().enumerate() {
            let last = self.last.as_ref().and_then(|last| last.interfaces.get(position));
            for queue in &interface.queues {
                let last = last.and_then(|last| last.queues.iter().find(|last| last.queue == queue.queue));
                let before = last.map(|last| last.tally).unwrap_or_default();
                queues.push(QueueGrowth {
                    interface: interface.name.clone(),
                    queue: queue.queue,
                    growth: Growth::between(&before, &queue.tally, seconds),
                    ready: queue.pool.ready,
                });
            }
        }
        Interval {
            r#type: "interval",
            elapsed_seconds: account.elapsed.as_secs_f64(),
            seconds,
            growth: Growth::between(&before, &account.total(), seconds),
            nic_lost: nic_lost(account).saturating_sub(self.last.as_ref().map_or(0, nic_lost)),
            queues,
        }
    }

    fn print_text(&self, mut output: impl Write, interval: &Interval) -> io::Result<()> {
        let elapsed = Duration::try_from_secs_f64(interval.elapsed_seconds).unwrap_or_default();
        let nic = units::grouped(interval.nic_lost);
        writeln!(output, "{}", growth_row(&units::elapsed(elapsed), &interval.growth, &nic))?;
        if self.args.per_queue {
            for queue in &interval.queues {
                let name = format!("{}:{}", style::visible(&queue.interface), queue.queue);
                writeln!(output, "{}", growth_row(&name, &queue.growth, ""))?;
            }
        }
        Ok(())
    }
}

fn nic_lost(account: &Account) -> u64 {
    account
        .interfaces
        .iter()
        .filter_map(|interface| interface.nic)
        .map(|nic| nic.missed + nic.fifo_errors)
        .sum()
}

fn growth_row(name: &str, growth: &Growth, nic: &str) -> String {
    row(
        name,
        &format!("{}pps", units::scaled(growth.packets_per_second)),
        &format!("{}bit/s", units::scaled(growth.bits_per_second)),
        &units::grouped(growth.packets),
        &units::grouped(growth.lost),
        nic,
    )
}

/// Columns are wide enough for 100 Mpps and interface names of up to 15 bytes, the kernel's limit.
fn row(name: &str, packets_rate: &str, bit_rate: &str, packets: &str, lost: &str, nic: &str) -> String {
    let row = format!("{name:>18}  {packets_rate:>9}  {bit_rate:>12}  {packets:>13}  {lost:>11}  {nic:>11}");
    row.trim_end().to_owned()
}
