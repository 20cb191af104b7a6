//! More than one handler can do comes on one queue, while the handler of the other has nothing to do.

use std::time::Duration;

use serde::Serialize;
use weir::{Order, Plan};

use super::drain::rate_of_one;
use super::field::{Check, Field, SIZE, settle, whole};
use super::say;
use super::threads::{Done, Threads};
use crate::bench::bars::{Bar, Wanted};
use crate::bench::failed;
use crate::bench::spread::Spread;
use crate::failure::Failure;
use crate::units;

/// One turn.
#[derive(Debug, Serialize)]
pub(super) struct Sample {
    mode: &'static str,
    round: u32,
    /// Packets a second that came.
    arriving: f64,
    /// Packets that one handler does in a second of processor time.
    rate_of_one: f64,
    /// How long they came.
    seconds: f64,
    /// The generator's part of one processor.
    generator: f64,
    /// And that of each handler, while packets came: where some were lost, whether anybody could have done more.
    busy: Vec<f64>,
    accepted: u64,
    lost: u64,
    /// In basic mode, those that find no room by arithmetic: what comes, less what one handler does and what the pool holds.
    lost_by_arithmetic: Option<f64>,
    /// Packets that were handled behind a later one of their flow.
    reordered: u64,
    /// Chunks that were taken by the handler of another queue, or divided.
    offloaded: u64,
    /// Chunks that waited at once, at most.
    most_ready: u32,
    /// And on average over time.
    mean_ready: f64,
    handlers: Vec<Done>,
    pub(super) problem: Option<String>,
}

/// How much more comes than one handler can do.
const TOO_MUCH: f64 = 1.6;
/// Percent; WireCAP's in most of its experiments.
const THRESHOLD: u8 = 60;

const BASIC: &str = "basic";
const ADVANCED: &str = "advanced, T = 60 %";
const IN_ORDER: &str = "advanced, T = 60 %, order flow";

/// Its name, and what is asked of the handlers.
type Mode = (&'static str, fn(&Field) -> Plan);

const MODES: [Mode; 3] = [
    (BASIC, |field| field.plan(2)),
    (ADVANCED, |field| field.plan(2).advanced(THRESHOLD)),
    (IN_ORDER, |field| field.plan(2).advanced(THRESHOLD).order(Order::Flow)),
];

pub(super) fn measure(field: &Field, round: u32, duration: Duration) -> Result<Vec<Sample>, Failure> {
    let turn = |(mode, plan): Mode| {
        // Just before, for the machine's speed drifts.
        let rate = rate_of_one(field, round)?;
        turn(field, round, mode, &plan(field), rate, duration)
    };
    MODES.into_iter().map(turn).collect()
}

fn turn(
    field: &Field,
    round: u32,
    mode: &'static str,
    plan: &Plan,
    rate: f64,
    duration: Duration,
) -> Result<Sample, Failure> {
    let (arriving, seconds) = (whole(rate * TOO_MUCH), duration.as_secs_f64());
    let frames = whole(arriving as f64 * seconds);
    let traffic = field.traffic()?;
    let mut generator = field.paced(&traffic, arriving)?;
    let check = Check::new(&traffic, frames);
    let mut capture = field.open()?;
    let handlers = capture.handlers(plan)?;
    let works = field.works(&handlers, &capture, &check)?;
    let threads = Threads::start(handlers, works);
    let sent = generator.send(frames).map_err(failed("send"))?;
    let meanwhile = threads.so_far();
    settle(&mut capture, sent.accepted)?;
    let handlers = threads.finish(&mut capture)?;
    let account = capture.account()?;
    let (total, queue) = (account.total(), account.interfaces[0].queues[0]);
    let (report, problem) = check.finish(&total, sent.accepted);
    let room = rate * meanwhile[0].busy_seconds + field.room(field.chunks) as f64;
    let by_arithmetic = (mode == BASIC).then(|| (sent.accepted as f64 - room).max(0.0));
    let told = by_arithmetic.map(|lost| format!(" ({} by arithmetic)", units::grouped(whole(lost))));
    let part = |seconds: f64| seconds / sent.elapsed.as_secs_f64();
    let sample = Sample {
        mode,
        round,
        arriving: sent.accepted as f64 / sent.elapsed.as_secs_f64(),
        rate_of_one: rate,
        seconds: sent.elapsed.as_secs_f64(),
        generator: part(sent.cpu_time.as_secs_f64()),
        busy: meanwhile.iter().map(|done| part(done.busy_seconds)).collect(),
        accepted: sent.accepted,
        lost: total.lost,
        lost_by_arithmetic: by_arithmetic,
        reordered: report.total.reordered,
        offloaded: queue.offloaded,
        most_ready: queue.most_ready,
        mean_ready: queue.mean_ready,
        handlers,
        problem,
    };
    let line = format_args!(
        "{}pps to one that can do {}pps, {seconds:.1} s: {} of {} lost{}, {} out of order; processors busy with handlers {:.0} % and {:.0} %, the generator {:.0} %",
        units::scaled(sample.arriving),
        units::scaled(rate),
        units::grouped(sample.lost),
        units::grouped(sample.accepted),
        told.unwrap_or_default(),
        units::grouped(sample.reordered),
        sample.busy[0] * 100.0,
        sample.busy[1] * 100.0,
        sample.generator * 100.0
    );
    say(round, mode, line, sample.problem.as_deref());
    Ok(sample)
}

pub(super) fn bars(samples: &[Sample]) -> [Bar; 4] {
    let of = |mode| samples.iter().filter(move |sample| sample.mode == mode);
    let lost = |mode: &'static str| {
        let lost = Spread::of(of(mode).map(|sample| sample.lost as f64));
        Bar::worst(&format!("{mode}: lost"), Some(SIZE), 0.0, "packets", lost)
    };
    // Of no worth where nothing had to be lost.
    let off = |sample: &Sample| Some((sample.lost as f64 / sample.lost_by_arithmetic? - 1.0).abs() * 100.0);
    let off = Spread::of(of(BASIC).filter_map(off));
    let reordered = Spread::of(of(IN_ORDER).map(|sample| sample.reordered as f64));
    [
        Bar::new("basic: lost, away from arithmetic", Some(SIZE), Wanted::AtMost(10.0), "%", off),
        lost(ADVANCED),
        lost(IN_ORDER),
        Bar::worst("order flow: out of order", Some(SIZE), 0.0, "packets", reordered),
    ]
}
