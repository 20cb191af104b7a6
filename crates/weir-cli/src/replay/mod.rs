//! `weir replay`: sends the packets of capture files.
//!
//! ```text
//! files -> Source (-c, --from, --to, filter, --snapped) -> Survey: can all be sent? -> queue (--preload)
//!                                                  '------------------------------------------'-> Transmission,
//!                                                                                                 or live frames
//! ```

mod args;
mod kernel;
mod report;
mod source;
mod survey;

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use weir::reader::ReadError;
use weir::send::{Report, SendQueue, Sender, Sent, Transmission};
use weir_service::confine::{self, Needs};
use weir_service::stop_on_signals;

pub(crate) use self::args::ReplayArgs;
use self::report::Summary;
use self::source::{Next, Source};
use self::survey::Survey;
use crate::failure::Failure;
use crate::read::Progress;
use crate::sending::failure;
use crate::{grant, json, read, style, units};

/// Runs the command.
pub(crate) fn run(args: &ReplayArgs) -> Result<(), Failure> {
    args.check()?;
    // Names are looked up while this is allowed.
    let (filter, builder) = (args.filter()?, args.builder()?);
    if args.is_live() && !args.dry_run {
        return kernel::run(args, &builder, filter);
    }
    let sender = if args.dry_run {
        None
    } else {
        grant::more_than_capture("send packets")?;
        Some(builder.open()?)
    };
    let destination = match &sender {
        Some(sender) => sender.destination().clone(),
        None => builder.find()?,
    };
    let stop = sender.as_ref().map(Sender::stop_flag).unwrap_or_default();
    stop_on_signals(&stop).map_err(|error| Failure::new(format_args!("cannot handle signals: {error}")))?;
    let held = args.confine.confine(|| {
        let needs = Needs::to_read(&args.files, None);
        let needs = if filter.is_some() { needs.make_code() } else { needs };
        if sender.is_some() { needs.send() } else { needs }
    })?;
    let filtered = filter.is_some();
    let mut packets = Packets { source: Source::open(args, filter)?, queue: None };
    if filtered {
        confine::end_of_code(held.as_ref())?;
    }

    let mut survey = Survey::new(&destination, args.snapped);
    let surveyed = args.preload || args.dry_run || args.surveys();
    if surveyed {
        packets.survey(&mut survey, args.preload && !args.dry_run, &stop)?;
        survey.refusal()?;
    }
    let Some(sender) = sender else {
        return end(args, dry(args, &survey, &destination.name), Ok(()), packets.source.damage);
    };
    let total = survey.planned.packets.saturating_mul(args.rounds());
    let mut run = Run { args, sender, survey, surveyed, passed: Arc::default() };
    let passed = Arc::clone(&run.passed);
    let known = surveyed && !args.quiet && args.rounds() < u64::MAX;
    let position = move || passed.load(Ordering::Relaxed);
    let mut progress = Progress::of(position, known.then_some(total), false, units::packets);
    let (report, result) = run.send(&mut packets);
    progress.clear();
    let mut summary = Summary::of(&destination.name, &report);
    summary.backend = Some(run.sender.backend().to_string());
    (summary.snapped, summary.skipped) = (run.survey.snapped, run.survey.skipped);
    summary.error = result.as_ref().err().map(|failure| failure.message().to_owned());
    end(args, summary, result, packets.source.damage)
}

/// What is sent in each round.
struct Packets {
    source: Source,
    /// Everything, if it was read ahead.
    queue: Option<SendQueue>,
}

impl Packets {
    /// Reads everything once; with `keep`, into memory.
    fn survey(&mut self, survey: &mut Survey, keep: bool, stop: &AtomicBool) -> Result<(), Failure> {
        let _bar = self.source.progress();
        let mut queue = keep.then(SendQueue::new);
        self.source.each(|next| {
            if let Next::Packet(found) = next {
                survey.add(&found);
                match (&mut queue, found.data, found.time) {
                    (Some(queue), Some(data), Some(time)) => queue.push(time, data),
                    (Some(queue), Some(data), None) => queue.push_timeless(data),
                    _ => {}
                }
            }
            Ok(!stop.load(Ordering::Relaxed))
        })?;
        self.queue = queue;
        Ok(())
    }
}

/// A run that sends.
struct Run<'a> {
    args: &'a ReplayArgs,
    sender: Sender,
    survey: Survey,
    /// The survey is complete.
    surveyed: bool,
    /// Packets so far.
    passed: Arc<AtomicU64>,
}

impl Run<'_> {
    /// Sends everything, as often as was asked for.
    fn send(&mut self, packets: &mut Packets) -> (Report, Result<(), Failure>) {
        let Self { args, sender, survey, surveyed, passed } = self;
        let mut transmission = sender.begin(args.pace());
        let mut result = Ok(true);
        for round in 0..args.rounds() {
            if round > 0 {
                transmission.again();
            }
            result = match &packets.queue {
                Some(queue) => queue_once(queue, &mut transmission, passed),
                None => files_once(&mut packets.source, &mut transmission, survey, *surveyed, passed),
            };
            // Without packets, no number of rounds sends any.
            if !matches!(result, Ok(true)) || passed.load(Ordering::Relaxed) == 0 {
                break;
            }
        }
        let flushed = transmission.flush().map_err(failure);
        (transmission.report(), result.map(|_| ()).and(flushed))
    }
}

/// Sends the packets of a queue; returns whether nobody wants to stop.
fn queue_once(
    queue: &SendQueue,
    transmission: &mut Transmission<'_>,
    passed: &AtomicU64,
) -> Result<bool, Failure> {
    for (time, packet) in queue.iter() {
        if !transmission.packet(time, packet).map_err(failure)? {
            return Ok(false);
        }
        passed.fetch_add(1, Ordering::Relaxed);
    }
    Ok(true)
}

/// Sends the packets of files; returns whether nobody wants to stop.
fn files_once(
    source: &mut Source,
    transmission: &mut Transmission<'_>,
    survey: &mut Survey,
    surveyed: bool,
    passed: &AtomicU64,
) -> Result<bool, Failure> {
    let mut goes_on = true;
    source.each(|next| {
        let found = match next {
            Next::Pause => {
                transmission.flush().map_err(failure)?;
                return Ok(goes_on);
            }
            Next::Packet(found) => found,
        };
        if !surveyed {
            survey.add(&found);
            survey.refusal()?;
        }
        if let Some(data) = found.data {
            goes_on = transmission.packet(found.time, data).map_err(failure)?;
            passed.fetch_add(1, Ordering::Relaxed);
        }
        Ok(goes_on)
    })?;
    Ok(goes_on)
}

/// Returns what would be sent.
fn dry<'a>(args: &ReplayArgs, survey: &Survey, name: &'a str) -> Summary<'a> {
    let rounds = args.rounds();
    let times = |number: u64| number.saturating_mul(rounds);
    let all = Sent { packets: times(survey.planned.packets), bytes: times(survey.planned.bytes) };
    let mut summary = Summary::new(name, all, survey.duration(args.pace(), rounds));
    summary.dry_run = true;
    (summary.snapped, summary.skipped) = (survey.snapped, survey.skipped);
    summary
}

/// Prints the summary and what is wrong with the files.
fn end(
    args: &ReplayArgs,
    summary: Summary<'_>,
    result: Result<(), Failure>,
    mut damage: Vec<ReadError>,
) -> Result<(), Failure> {
    if !args.quiet {
        style::print(&summary.text());
    }
    if args.json {
        let printed = json::line(io::stdout().lock(), &summary);
        printed.map_err(|error| Failure::new(format_args!("cannot write the summary: {error}")))?;
    }
    result?;
    // The caller reports the last error.
    let last = damage.pop();
    for damage in damage {
        read::failure(damage).report();
    }
    last.map_or(Ok(()), |damage| Err(read::failure(damage)))
}
