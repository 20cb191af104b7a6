//! `weir gen`: sends test traffic from a description.
//!
//! ```text
//! options -> Description -> Tables, or --template -> Templates: frame n --.
//!         -> Schedule: when is it due? -----------------------------------+-> live frames, Transmission, or file (-w)
//! ```

mod args;
mod file;
mod frames;
mod kernel;
mod report;
mod schedule;

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Instant;

use rustix::time::{ClockId, clock_gettime};
use weir::Namespace;
use weir::send::{Destination, LiveFrames, Report, SendReason, Sender, SenderBuilder};
use weir_service::confine::Needs;
use weir_service::stop_on_signals;
use weir_traffic::{Description, Refusal, Tables};

pub(crate) use self::args::GenArgs;
use self::args::option;
use self::frames::Frames;
use self::report::{Summary, named};
use self::schedule::Schedule;
use crate::failure::Failure;
use crate::read::Progress;
use crate::sending::{Off, SendingArgs, all_taken, failure, print_summary, sent};
use crate::{grant, interfaces, style, units};

/// Runs the command.
pub(crate) fn run(args: &GenArgs) -> Result<(), Failure> {
    args.check()?;
    let mut description = args.description()?;
    let (mut summary, result) = match &args.write {
        Some(path) => to_file(args, path, &description)?,
        None => to_interface(args, &mut description)?,
    };
    summary.stream = args.stream;
    if summary.templates.is_none() {
        (summary.flows, summary.seed) = (Some(description.flows), Some(description.seed));
    }
    summary.error = result.as_ref().err().map(|failure| failure.message().to_owned());
    if !args.quiet {
        style::print(&summary.text());
    }
    let printed = print_summary(args.json, &summary);
    Failure::each(result.err().into_iter().chain(printed.err()).collect())
}

type Outcome = Result<(Summary, Result<(), Failure>), Failure>;

/// Sends on an interface.
fn to_interface(args: &GenArgs, description: &mut Description) -> Outcome {
    let (namespace, name) = args.place()?;
    grant::more_than_capture("send packets")?;
    let mut schedule = args.schedule();
    let builder = args.sending.builder(namespace.as_ref(), &name);
    let destination = builder.find()?;
    description.macs[0] = match args.source_mac {
        Some(mac) => mac,
        None => own_mac(namespace.as_ref(), &name)?.unwrap_or(description.macs[0]),
    };
    let described = if args.template.is_empty() {
        let tables = tables(description)?;
        fits(&tables, &destination)?;
        Some(tables)
    } else {
        None
    };
    let live = described.as_ref().filter(|_| args.sending.is_live() || schedule.is_top());
    let mut backend = Backend::open(&builder, &args.sending, live, args.stream)?;
    if let Backend::Socket(_) = backend {
        args.confine.confine(|| Needs::to_read(&args.files(), None).send())?;
    }
    let frames = match described {
        Some(tables) => Frames::Described(tables),
        None => args.read_templates(Some(&destination), description.macs[0])?,
    };
    // Until now, a signal ends the process: a FIFO may have no writer.
    handle_signals(&backend.stop_flag())?;

    let passed = Arc::new(AtomicU64::new(0));
    let position = Arc::clone(&passed);
    let total = args.count.filter(|_| !args.quiet);
    let position = move || position.load(Ordering::Relaxed);
    let mut progress = Progress::of(position, total, false, units::packets);
    let (mut summary, result) = match (&mut backend, &frames) {
        (Backend::Kernel(live), Frames::Described(tables)) => {
            let (report, result) = kernel::send(live, tables, &mut schedule, &passed);
            let result = result.and_then(|()| all_taken(&destination.name, &report, args.count.is_some()));
            let mut summary = Summary::new(sent(&report), Some(report.elapsed), &schedule);
            (summary.refused, summary.stopped) = (report.made.packets - report.sent, report.stopped);
            (summary, result)
        }
        (Backend::Kernel(_), Frames::Templates { .. }) => unreachable!("templates are sent by a socket"),
        (Backend::Socket(sender), frames) => {
            let (report, result) = send(sender, frames, args.stream, &mut schedule, &passed);
            let mut summary = Summary::new(report.sent, Some(report.elapsed), &schedule);
            (summary.gaps, summary.stopped) = (Off::of(report.gaps), report.stopped);
            (summary, result)
        }
    };
    (summary.templates, summary.unsigned) = (frames.templates(), frames.unsigned());
    progress.clear();
    summary.interface = Some(destination.name);
    summary.backend = Some(backend.name());
    Ok((summary, result))
}

/// How frames reach the driver.
enum Backend {
    /// This process makes them.
    Socket(Sender),
    /// The kernel makes them.
    Kernel(LiveFrames),
}

impl Backend {
    /// Opens the way that is wanted. `live`: what the kernel may make; where the choice is free, it does if it can.
    fn open(
        builder: &SenderBuilder,
        wanted: &SendingArgs,
        live: Option<&Tables>,
        stream: u16,
    ) -> Result<Self, Failure> {
        if let Some(tables) = live.filter(|_| wanted.is_live()) {
            return Ok(Self::Kernel(builder.live(tables, stream)?));
        }
        let live = live.filter(|_| wanted.may_be_live()).and_then(|tables| builder.live(tables, stream).ok());
        let live = live.filter(LiveFrames::is_known_to_work);
        Ok(match live {
            Some(live) => Self::Kernel(live),
            None => Self::Socket(builder.open()?),
        })
    }

    fn stop_flag(&self) -> Arc<AtomicBool> {
        match self {
            Self::Socket(sender) => sender.stop_flag(),
            Self::Kernel(live) => live.stop_flag(),
        }
    }

    fn name(&self) -> String {
        match self {
            Self::Socket(sender) => sender.backend().to_string(),
            Self::Kernel(_) => "live frames".to_owned(),
        }
    }
}

/// Sends the frames of the schedule by the sender.
fn send(
    sender: &mut Sender,
    frames: &Frames,
    stream: u16,
    schedule: &mut Schedule,
    passed: &AtomicU64,
) -> (Report, Result<(), Failure>) {
    let mut transmission = sender.begin(schedule.pace());
    let began = Instant::now();
    let mut frame = Vec::new();
    let mut result = Ok(true);
    while matches!(result, Ok(true))
        && let Some(next) = schedule.next(|sequence| frames.size(sequence), || began.elapsed())
    {
        let (due, frame) = (next.due.map(file::nanoseconds), &mut frame);
        result = transmission.packet_made(due, frames.size(next.sequence) as usize, || {
            frames.write(next.sequence, now(), stream, frame);
            frame
        });
        passed.fetch_add(1, Ordering::Relaxed);
    }
    let flushed = transmission.flush();
    (transmission.report(), result.map(|_| ()).and(flushed).map_err(failure))
}

/// Writes to a file.
fn to_file(args: &GenArgs, path: &Path, description: &Description) -> Outcome {
    let described = args.template.is_empty().then(|| tables(description)).transpose()?;
    args.confine.confine(|| Needs::to_read(&args.files(), Some(path)))?;
    let frames = match described {
        Some(tables) => Frames::Described(tables),
        None => args.read_templates(None, description.macs[0])?,
    };
    let stop = Arc::default();
    handle_signals(&stop)?;
    let mut schedule = args.schedule();
    let (sent, result) = file::write(path, &frames, args.stream, &mut schedule, &stop);
    let mut summary = Summary::new(sent, None, &schedule);
    summary.file = Some(named(path));
    (summary.templates, summary.unsigned) = (frames.templates(), frames.unsigned());
    summary.stopped = stop.load(Ordering::Relaxed);
    Ok((summary, result.map_err(Failure::from)))
}

fn handle_signals(stop: &Arc<AtomicBool>) -> Result<(), Failure> {
    stop_on_signals(stop).map_err(|error| Failure::new(format_args!("cannot handle signals: {error}")))
}

fn tables(description: &Description) -> Result<Tables, Failure> {
    Tables::new(description).map_err(|Refusal { field, why, remedy }| {
        Failure::usage(format!("cannot use {}: {why}", option(field))).hint(format!("try {remedy}"))
    })
}

/// Refuses frames that the interface does not take.
fn fits(tables: &Tables, destination: &Destination) -> Result<(), Failure> {
    let name = style::visible(&destination.name);
    if destination.link_type != 1 {
        let why = "it takes IP packets without an Ethernet header";
        let refused = Failure::new(format_args!("cannot send frames on `{name}`: {why}"));
        return Err(refused.hint("send on an Ethernet interface"));
    }
    let longest = tables.sizes.iter().position(|&size| size == tables.largest()).expect("it is one of them");
    let mut frame = Vec::new();
    tables.write(longest as u64, 0, 0, &mut frame);
    let Err(SendReason::TooLong { bytes, most, mtu }) = destination.check(&frame) else { return Ok(()) };
    let why = format!("frames have up to {bytes} bytes; the interface takes up to {most}");
    let (inside, short) = weir::parts::command::place(&destination.name);
    let hint = format!("try {inside}ip link set {short} mtu {mtu}, or --size up to {most}");
    Err(Failure::new(format_args!("cannot send on `{name}`: {why}")).hint(hint))
}

/// Returns the hardware address of an interface; `None`: it has none.
fn own_mac(namespace: Option<&Namespace>, name: &str) -> Result<Option<[u8; 6]>, Failure> {
    let links = interfaces::links(namespace)?;
    let link = links.iter().find(|link| link.name == name);
    Ok(link.and_then(|link| link.address.as_slice().try_into().ok()))
}

/// Returns the time, in nanoseconds since the Unix epoch.
fn now() -> u64 {
    let time = clock_gettime(ClockId::Realtime);
    let [seconds, nanoseconds] = [time.tv_sec, time.tv_nsec].map(|part| u64::try_from(part).unwrap_or(0));
    seconds * 1_000_000_000 + nanoseconds
}
