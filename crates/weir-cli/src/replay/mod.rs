//! `weir replay`: sends the packets of capture files.
//!
//! ```text
//! files -> Source (-c, --from, --to, filter, --snapped) -> Editor -> Survey: can all be sent? -> queue (--preload)
//!                                                            '--------------------------------------'-> Exits,
//!                                                                                                or live frames
//! ```

mod args;
mod exits;
mod kernel;
mod report;
mod shift;
mod source;
mod step;
mod survey;

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use weir::reader::ReadError;
use weir::send::{Destination, Report, SendQueue, Sender, SenderBuilder, Sent};
use weir_service::confine::{self, Needs};
use weir_service::stop_on_signals;
use weir_traffic::Copies;

pub(crate) use self::args::ReplayArgs;
use self::exits::Exits;
use self::report::{Second, Summary};
use self::shift::Shift;
use self::source::{Next, Source};
use self::step::Step;
use self::survey::Survey;
use crate::failure::Failure;
use crate::read::Progress;
use crate::sending::print_summary;
use crate::{grant, read, style, units};

/// Runs the command.
pub(crate) fn run(args: &ReplayArgs) -> Result<(), Failure> {
    args.check()?;
    // Names are looked up while this is allowed.
    let (filter, (builder, second)) = (args.filter()?, args.builders()?);
    if args.is_live() && !args.dry_run {
        return kernel::run(args, &builder, filter);
    }
    if !args.dry_run {
        grant::more_than_capture("send packets")?;
    }
    let open = |builder: &SenderBuilder| {
        let sender = (!args.dry_run).then(|| builder.open()).transpose()?;
        let destination = sender.as_ref().map(|sender| Ok(sender.destination().clone()));
        Ok::<_, Failure>((destination.unwrap_or_else(|| builder.find())?, sender))
    };
    let (destination, sender) = open(&builder)?;
    let (other, second) = second.as_ref().map(open).transpose()?.unzip();
    let second = second.flatten();
    let destination = narrower(destination, other.as_ref())?;
    let editor = args.rewriting.editor(&destination)?;
    if !args.quiet {
        args.rewriting.say_odd();
    }
    let held = args.confine.confine(|| {
        let needs = Needs::to_read(&args.files, None);
        let needs = if filter.is_some() { needs.make_code() } else { needs };
        if sender.is_some() { needs.send() } else { needs }
    })?;
    let filtered = filter.is_some();
    let mut packets = Packets { source: Source::open(args, filter, editor)?, queue: None };
    if filtered {
        confine::end_of_code(held.as_ref())?;
    }

    let mut survey = Survey::new(&destination, args);
    survey.sides = args.sides();
    survey.copies = (args.unique_ips && args.rounds() > 1).then(Copies::default);
    let surveyed = args.preload || args.dry_run || args.surveys();
    if surveyed {
        // Nothing was sent yet: a signal may end the process. A FIFO may have no writer.
        packets.survey(&mut survey, args.kept())?;
        survey.refusal()?;
        survey.step(args.rounds())?;
    }
    let Some(sender) = sender else {
        return end(args, dry(args, &survey, &destination.name), Ok(()), packets.source.damage);
    };
    for stop in [sender.stop_flag()].iter().chain(&second.as_ref().map(Sender::stop_flag)) {
        stop_on_signals(stop)
            .map_err(|error| Failure::new(format_args!("cannot handle signals: {error}")))?;
    }
    let total = survey.planned.packets.saturating_mul(args.rounds());
    let mut run = Run { args, sender, second, survey, surveyed, passed: Arc::default() };
    let passed = Arc::clone(&run.passed);
    let known = surveyed && !args.quiet && !args.step && args.rounds() < u64::MAX;
    let position = move || passed.load(Ordering::Relaxed);
    let mut progress = Progress::of(position, known.then_some(total), false, units::packets);
    let (report, second, result) = run.send(&mut packets);
    progress.clear();
    let mut summary = Summary::of(&run.sender, &report);
    summary.asked(args.pace(), &std::iter::once(&report).chain(&second).collect::<Vec<_>>());
    summary.second = run.second.as_ref().zip(second).map(|(sender, report)| Second::of(sender, &report));
    summary.surveyed(&run.survey);
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
    /// Reads everything once, and keeps it in memory if it is no more than so many bytes.
    fn survey(&mut self, survey: &mut Survey, kept: usize) -> Result<(), Failure> {
        let _bar = self.source.progress();
        let mut queue = (kept > 0).then(SendQueue::new);
        self.source.each(|next| {
            if let Next::Packet(found) = next {
                survey.add(&found);
                match (&mut queue, found.data, found.time) {
                    (Some(queue), Some(data), Some(time)) => queue.push(time, data),
                    (Some(queue), Some(data), None) => queue.push_timeless(data),
                    _ => {}
                }
                queue = queue.take().filter(|queue| queue.bytes() <= kept);
            }
            Ok(true)
        })?;
        self.queue = queue;
        Ok(())
    }
}

/// A run that sends.
struct Run<'a> {
    args: &'a ReplayArgs,
    sender: Sender,
    /// What servers have sent leaves here.
    second: Option<Sender>,
    survey: Survey,
    /// The survey is complete.
    surveyed: bool,
    /// Packets so far.
    passed: Arc<AtomicU64>,
}

impl Run<'_> {
    /// Sends everything, as often as was asked for.
    fn send(&mut self, packets: &mut Packets) -> (Report, Option<Report>, Result<(), Failure>) {
        let Self { args, sender, second, survey, surveyed, passed } = self;
        let link_type = sender.destination().link_type;
        let mut sides = std::mem::take(&mut survey.sides).unwrap_or_default();
        let steps = args.step.then(|| Step::new(sender.stop_flag()));
        let shift = args.unique_ips.then(|| Shift::new(link_type));
        let mut exits = Exits::new(sender.begin(args.pace()), passed).steps(steps).shift(shift);
        if let Some(second) = second {
            exits = exits.second(second.begin(args.pace()), &mut sides, link_type);
        }
        let (mut result, mut step) = (Ok(true), 1);
        for round in 0..args.rounds() {
            if round == 1 {
                match survey.step(args.rounds()) {
                    Ok(found) => step = found,
                    Err(failure) => {
                        result = Err(failure);
                        break;
                    }
                }
            }
            if round > 0 {
                exits.again(step.wrapping_mul(u32::try_from(round & 0xffff_ffff).expect("32 bits")));
            }
            result = match &packets.queue {
                Some(queue) => queue_once(queue, &mut exits),
                None => files_once(&mut packets.source, &mut exits, survey, *surveyed),
            };
            // Without packets, no number of rounds sends any.
            if !matches!(result, Ok(true)) || passed.load(Ordering::Relaxed) == 0 {
                break;
            }
        }
        let flushed = exits.flush();
        let (first, second) = exits.reports();
        (first, second, result.map(|_| ()).and(flushed))
    }
}

/// Sends the packets of a queue; returns whether nobody wants to stop.
fn queue_once(queue: &SendQueue, exits: &mut Exits<'_>) -> Result<bool, Failure> {
    for (time, packet) in queue.iter() {
        if !exits.packet(time, packet)? {
            return Ok(false);
        }
    }
    Ok(true)
}

/// Sends the packets of files; returns whether nobody wants to stop.
fn files_once(
    source: &mut Source,
    exits: &mut Exits<'_>,
    survey: &mut Survey,
    surveyed: bool,
) -> Result<bool, Failure> {
    let mut goes_on = true;
    source.each(|next| {
        let found = match next {
            Next::Pause => {
                exits.flush()?;
                return Ok(goes_on);
            }
            Next::Packet(found) => found,
        };
        if !surveyed {
            survey.add(&found);
            survey.refusal()?;
        }
        if let Some(data) = found.data {
            goes_on = exits.packet(found.time, data)?;
        }
        Ok(goes_on)
    })?;
    Ok(goes_on)
}

/// Returns the interface of both that takes the shorter packets, for packets of one link type.
fn narrower(first: Destination, second: Option<&Destination>) -> Result<Destination, Failure> {
    let Some(second) = second else { return Ok(first) };
    if first.link_type != second.link_type {
        let names = [&first, second].map(|destination| style::visible(&destination.name));
        let why = format!("cannot send on `{}` and `{}`: their link types differ", names[0], names[1]);
        return Err(Failure::new(why).hint("try two Ethernet interfaces"));
    }
    Ok(if second.mtu < first.mtu { second.clone() } else { first })
}

/// Returns what would be sent.
fn dry<'a>(args: &ReplayArgs, survey: &Survey, name: &'a str) -> Summary<'a> {
    let rounds = args.rounds();
    let times = |number: u64| number.saturating_mul(rounds);
    let all = Sent { packets: times(survey.planned.packets), bytes: times(survey.planned.bytes) };
    let mut summary = Summary::new(name, all, survey.duration(args.pace(), rounds));
    summary.dry_run = true;
    summary.surveyed(survey);
    summary
}

/// Prints the summary and what is wrong with the files.
fn end(
    args: &ReplayArgs,
    summary: Summary<'_>,
    result: Result<(), Failure>,
    damage: Vec<ReadError>,
) -> Result<(), Failure> {
    if !args.quiet {
        style::print(&summary.text());
    }
    let printed = print_summary(args.json, &summary);
    let damage = damage.into_iter().map(read::failure);
    Failure::each(result.err().into_iter().chain(damage).chain(printed.err()).collect())
}
