//! More than one handler can do comes on one queue, while the handler of the other has nothing to do.

use std::time::Duration;

use serde::Serialize;
use weir::{Order, Plan};

use super::drain::rate_of_one;
use super::field::{Check, Field, SIZE, settle};
use super::say;
use super::threads::{Done, Threads};
use crate::bars::{Bar, Wanted};
use crate::failed;
use crate::failure::Failure;
use crate::process::stolen;
use crate::spread::Spread;
use crate::units;

/// One turn.
#[derive(Debug, Serialize)]
pub(super) struct Sample {
    mode: &'static str,
    round: u32,
    /// Packets a second that came.
    arriving: f64,
    /// Packets that one handler does in a second of processor time, alone: just before, and just after.
    rate_of_one: [f64; 2],
    /// How long they came.
    seconds: f64,
    /// The generator's part of one processor.
    generator: f64,
    /// And that of each handler, while packets came: where some were lost, whether anybody could have done more.
    busy: Vec<f64>,
    /// And that of what the hypervisor gave to others, of the processor of each handler.
    stolen: Vec<f64>,
    /// Packets that the handler of this queue has done by then.
    meanwhile: u64,
    accepted: u64,
    lost: u64,
    /// In basic mode, those that find no room by arithmetic: what comes, less what one handler does and what the pool holds.
    lost_by_arithmetic: Option<f64>,
    /// The same from what the handler did in this very time, whatever the machine's speed was.
    lost_by_count: Option<f64>,
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
    let mut samples = Vec::new();
    // Around each, for the machine's speed drifts.
    let mut rate = rate_of_one(field, round)?;
    for (mode, plan) in MODES {
        // A pool holds what is too much for a while. Three times as long, most of it is lost.
        let full = field.room(field.chunks) as f64 / (rate * (TOO_MUCH - 1.0));
        let least = if mode == BASIC { Duration::from_secs_f64(3.0 * full) } else { Duration::ZERO };
        let mut sample = turn(field, round, mode, &plan(field), rate, duration.max(least))?;
        let before = std::mem::replace(&mut rate, rate_of_one(field, round)?);
        sample.rate_of_one = [before, rate];
        if mode == BASIC {
            sample.find_room(field.room(field.chunks) as f64);
        }
        sample.say();
        samples.push(sample);
    }
    Ok(samples)
}

impl Sample {
    /// What should have been lost, where a pool has so much room.
    fn find_room(&mut self, room: f64) {
        let beyond = |handled: f64| Some((self.accepted as f64 - handled - room).max(0.0));
        let rate = self.rate_of_one.iter().sum::<f64>() / 2.0;
        self.lost_by_arithmetic = beyond(rate * self.busy[0] * self.seconds);
        self.lost_by_count = beyond(self.meanwhile as f64);
    }

    fn say(&self) {
        let told = |lost: Option<f64>, how| {
            lost.map(|lost| format!(", {} {how}", units::grouped(units::whole(lost))))
        };
        let line = format_args!(
            "{}pps to one of two handlers that can do {} and {}pps, {:.1} s: {} of {} lost{}{}, {} out of order; CPU time of handlers {:.0} % and {:.0} %, generator {:.0} %, other guests {:.0} % and {:.0} %",
            units::scaled(self.arriving),
            units::scaled(self.rate_of_one[0]),
            units::scaled(self.rate_of_one[1]),
            self.seconds,
            units::grouped(self.lost),
            units::grouped(self.accepted),
            told(self.lost_by_arithmetic, "predicted from rates").unwrap_or_default(),
            told(self.lost_by_count, "from packets handled").unwrap_or_default(),
            units::grouped(self.reordered),
            self.busy[0] * 100.0,
            self.busy[1] * 100.0,
            self.generator * 100.0,
            self.stolen[0] * 100.0,
            self.stolen[1] * 100.0
        );
        say(self.round, self.mode, line, self.problem.as_deref());
    }
}

/// `rate`: what one handler can do.
fn turn(
    field: &Field,
    round: u32,
    mode: &'static str,
    plan: &Plan,
    rate: f64,
    duration: Duration,
) -> Result<Sample, Failure> {
    let (arriving, seconds) = (units::whole(rate * TOO_MUCH), duration.as_secs_f64());
    let frames = units::whole(arriving as f64 * seconds);
    let traffic = field.traffic()?;
    let mut generator = field.paced(&traffic, arriving)?;
    let check = Check::new(&traffic, frames);
    let mut capture = field.open()?;
    let handlers = capture.handlers(plan)?;
    let works = field.works(&handlers, &capture, &check)?;
    let threads = Threads::start(handlers, works);
    let before = field.processors().map(stolen);
    let sent = generator.send(frames).map_err(failed("send"))?;
    let meanwhile = threads.so_far();
    let after = field.processors().map(stolen);
    settle(&mut capture, sent.accepted)?;
    let handlers = threads.finish(&mut capture)?;
    let account = capture.account()?;
    let (total, queue) = (account.total(), account.interfaces[0].queues[0]);
    let (report, problem) = check.finish(&total, sent.accepted);
    let part = |seconds: f64| seconds / sent.elapsed.as_secs_f64();
    Ok(Sample {
        mode,
        round,
        arriving: sent.accepted as f64 / sent.elapsed.as_secs_f64(),
        rate_of_one: [rate; 2],
        seconds: sent.elapsed.as_secs_f64(),
        generator: part(sent.cpu_time.as_secs_f64()),
        busy: meanwhile.iter().map(|done| part(done.busy_seconds)).collect(),
        stolen: after
            .iter()
            .zip(before)
            .map(|(after, before)| part(after.saturating_sub(before).as_secs_f64()))
            .collect(),
        meanwhile: meanwhile[0].packets,
        accepted: sent.accepted,
        lost: total.lost,
        lost_by_arithmetic: None,
        lost_by_count: None,
        reordered: report.total.reordered,
        offloaded: queue.offloaded,
        most_ready: queue.most_ready,
        mean_ready: queue.mean_ready,
        handlers,
        problem,
    })
}

pub(super) fn bars(samples: &[Sample]) -> [Bar; 5] {
    let of = |mode| samples.iter().filter(move |sample| sample.mode == mode);
    let lost = |mode: &'static str| {
        let lost = Spread::of(of(mode).map(|sample| sample.lost as f64));
        Bar::worst(&format!("{mode}: lost"), Some(SIZE), 0.0, "packets", lost)
    };
    // Of no worth where nothing had to be lost.
    let off = |name, wanted: fn(&Sample) -> Option<f64>| {
        let off = |sample: &Sample| Some((sample.lost as f64 / wanted(sample)? - 1.0).abs() * 100.0);
        Bar::new(name, Some(SIZE), Wanted::AtMost(10.0), "%", Spread::of(of(BASIC).filter_map(off)))
    };
    let reordered = Spread::of(of(IN_ORDER).map(|sample| sample.reordered as f64));
    [
        off("basic: lost, away from arithmetic", |sample| sample.lost_by_arithmetic),
        off("basic: lost, away from what was handled", |sample| sample.lost_by_count),
        lost(ADVANCED),
        lost(IN_ORDER),
        Bar::worst("order flow: out of order", Some(SIZE), 0.0, "packets", reordered),
    ]
}
