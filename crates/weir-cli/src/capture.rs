//! `weir capture`: packets from interfaces into a file, a pipe, or just a number.

use std::io::{self, IsTerminal};
use std::path::Path;
use std::time::{Duration, Instant};

use weir::writer::{Writer, WriterOptions, Written};
use weir::{Account, Capture, Chunk, FileInterface, Interface};

use crate::args::CaptureArgs;
use crate::confine::{self, Confinement, Needs};
use crate::failure::Failure;
use crate::json::Summary;
use crate::live::{self, Live};
use crate::metrics::{Bound, Metrics};
use crate::stop::{Stop, Until};
use crate::{interfaces, report, style};

/// How often a loss is looked for, to mark it in the file as a point of time.
const LOSS_PERIOD: Duration = Duration::from_secs(1);

/// Runs the command.
pub(crate) fn run(args: &CaptureArgs) -> Result<(), Failure> {
    if args.list_interfaces {
        return interfaces::list();
    }
    args.check().map_err(Failure::usage)?;
    if to_stdout(args) && io::stdout().is_terminal() {
        return Err(Failure::usage("-w -: standard output is a terminal")
            .hint("pipe it: weir capture -w - | tshark -r -"));
    }
    let until = Until::new(args.count, args.duration)?;
    let names = interfaces::chosen(&args.origin.interfaces)?;
    let mut run = Run::start(args, until, &names)?;
    let end = run.until_stopped();
    run.finish(end)
}

fn to_stdout(args: &CaptureArgs) -> bool {
    args.write.as_deref() == Some(Path::new("-"))
}

/// A capture that runs, and what is to become of its packets.
struct Run<'a> {
    args: &'a CaptureArgs,
    until: Until,
    capture: Capture,
    interfaces: Vec<Interface>,
    /// None: not confined.
    confinement: Option<Confinement>,
    writer: Option<Writer>,
    live: Option<Live>,
    metrics: Option<Metrics>,
    /// Packets that were taken from the engine to be kept: written, or counted where no file is asked for.
    handled: u64,
}

impl<'a> Run<'a> {
    fn start(args: &'a CaptureArgs, mut until: Until, names: &[String]) -> Result<Self, Failure> {
        let metrics = args.metrics.bind()?;
        let capture = args.builder(names).open()?;
        until.begin();
        let interfaces = capture.interfaces().to_vec();
        let confinement = args.confine.confine(|| {
            let socket = metrics.as_ref().and_then(Bound::path);
            args.write.as_deref().into_iter().chain(socket).fold(Needs::new(), Needs::write)
        })?;
        let writer = args.write.as_deref().map(|path| {
            let options = WriterOptions {
                format: args.format(),
                flush_each: args.packet_buffered,
                comment: args.comment.clone(),
                user_application: concat!("weir ", env!("CARGO_PKG_VERSION")).to_owned(),
            };
            let described: Vec<_> = interfaces.iter().map(FileInterface::from).collect();
            Writer::create(path, &described, &options)
        });
        let writer = writer.transpose()?;
        if !args.quiet {
            style::print(&report::opened(&interfaces, style::stderr()));
            metrics.iter().for_each(Bound::say);
        }
        if args.verbose {
            confine::say(confinement.as_ref());
        }
        let live = if args.quiet { None } else { Live::on_terminal() };
        let mut run =
            Self { args, until, capture, interfaces, confinement, writer, live, metrics: None, handled: 0 };
        run.metrics = metrics.map(|bound| bound.serve(run.summary_so_far()?)).transpose()?;
        Ok(run)
    }

    /// Takes chunks until there is a reason to stop.
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
            if self.until.signals.take_account() {
                self.account_so_far()?;
            }
            if redraw.is_some_and(|time| now >= time) {
                redraw = Some(now + live::PERIOD);
                self.redraw()?;
            }
            if look_for_loss.is_some_and(|time| now >= time) {
                look_for_loss = Some(now + LOSS_PERIOD);
                self.mark_loss(&mut lost)?;
            }
            if self.metrics.as_ref().is_some_and(|metrics| now >= metrics.due()) {
                self.publish(now)?;
            }
            let publish = self.metrics.as_ref().map(Metrics::due);
            let tick = redraw.into_iter().chain(look_for_loss).chain(publish).min();
            if let Some(chunk) = self.next(self.until.wait(now, tick))? {
                self.take(chunk)?;
            }
        }
    }

    /// The next chunk. Before it sleeps for one, chunks that are on their way to the disk go back to the pool.
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
        self.handled += self.until.take(&mut chunk);
        match &mut self.writer {
            Some(writer) => Ok(writer.write(chunk)?),
            None => Ok(()),
        }
    }

    /// Stops the engine, brings everything that was captured to the file, closes it, and says how it went.
    fn finish(mut self, end: Result<Stop, Failure>) -> Result<(), Failure> {
        let stopped = self.capture.stop().map_err(Failure::from);
        let drained = self.drain();
        let (account, counted) = match self.capture.account() {
            Ok(account) => (account, Ok(())),
            Err(error) => (Account::default(), Err(error.into())),
        };
        let (written, closed) = match self.writer.take() {
            Some(writer) => {
                let (written, result) = writer.finish(&account);
                (Some(written), result.map_err(Failure::from))
            }
            None => (None, Ok(())),
        };
        if let Some(live) = &self.live {
            live.clear();
        }
        // The first thing that went wrong is the reason for the others.
        let result = end.and_then(|stop| stopped.and(drained).and(closed).and(counted).map(|()| stop));
        let mut summary = self.summary(&account, written.as_ref());
        summary.close(self.handled, &result);
        if !self.args.quiet {
            style::print(&report::account(&summary, style::stderr()));
        }
        style::print(&report::closing(&summary));
        let printed = if self.args.json { self.print_json(&summary) } else { Ok(()) };
        result.and(printed)
    }

    /// Takes what is still in the pool: all of it, for what the writer refuses has to be counted, too.
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

    /// Writes the counters into the file when a loss has happened since they were last looked at.
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
        let written = self.writer.as_ref().map(Writer::written);
        Ok(self.summary(&account, written.as_ref()))
    }

    fn summary(&self, account: &Account, written: Option<&Written>) -> Summary {
        let mut summary = Summary::new(&self.interfaces, account, written);
        summary.confinement.clone_from(&self.confinement);
        summary.file = self.args.write.as_ref().map(|path| path.display().to_string());
        summary
    }

    fn print_json(&self, summary: &Summary) -> Result<(), Failure> {
        let result = if to_stdout(self.args) {
            summary.write_to(io::stderr())
        } else {
            summary.write_to(io::stdout())
        };
        result.map_err(|error| Failure::new(format_args!("print the account as JSON: {error}")))
    }
}
