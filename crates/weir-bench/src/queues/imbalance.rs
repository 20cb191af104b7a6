//! One queue gets more than its handler can do, while the handler of the other has nothing to do.

use std::time::Duration;

use weir::{Order, Plan};

use super::Of;
use super::drain::rate_of_one;
use super::field::{Check, Field, SIZE, settle};
use super::threads::Threads;
use crate::experiment::{Judged, Outcome, Taken};
use crate::failure::{Failure, failed};
use crate::process::stolen;
use crate::units;
use crate::wanted::Wanted;

/// One turn.
struct Sample {
    /// How long packets came.
    seconds: f64,
    /// The share of a processor that each handler had while packets came: if some were lost, this shows whether anybody
    /// could have done more.
    busy: [f64; 2],
    /// The share of both processors that the hypervisor gave to others.
    stolen: f64,
    /// Packets that the handler of this queue had done by then.
    meanwhile: u64,
    accepted: u64,
    lost: u64,
    reordered: u64,
    offloaded: u64,
    most_ready: u32,
    problem: Option<String>,
}

/// How much more comes than one handler can do.
const TOO_MUCH: f64 = 1.6;
/// Percent; WireCAP's in most of its experiments.
const THRESHOLD: u8 = 60;

const BASIC: &str = "basic";
const ADVANCED: &str = "advanced, T = 60 %";
const IN_ORDER: &str = "advanced, T = 60 %, order flow";

/// Its name, and how the handlers work.
type Mode = (&'static str, fn(&Field) -> Plan);

const MODES: [Mode; 3] = [
    (BASIC, |field| field.plan(2)),
    (ADVANCED, |field| field.plan(2).advanced(THRESHOLD)),
    (IN_ORDER, |field| field.plan(2).advanced(THRESHOLD).order(Order::Flow)),
];

pub(super) fn series() -> Vec<&'static str> {
    MODES.iter().map(|(mode, _)| *mode).collect()
}

pub(super) fn measure(field: &Field, duration: Duration) -> Result<Taken, Failure> {
    let mut taken = Taken::default();
    // Around each, since the machine's speed drifts.
    let mut rate = rate_of_one(field)?;
    let room = field.room(field.chunks) as f64;
    for (mode, plan) in MODES {
        // A pool holds the excess for a while. In three times that long, most of it is lost.
        let full = room / (rate * (TOO_MUCH - 1.0));
        let least = if mode == BASIC { Duration::from_secs_f64(3.0 * full) } else { Duration::ZERO };
        let sample = turn(field, &plan(field), rate, duration.max(least))?;
        let before = std::mem::replace(&mut rate, rate_of_one(field)?);
        taken.problems.extend(sample.problem.iter().map(|problem| format!("{mode}: {problem}")));
        let mut of = Of { taken: &mut taken, series: mode };
        for (measure, value) in [
            ("lost", sample.lost as f64),
            ("reordered", sample.reordered as f64),
            ("sent", sample.accepted as f64),
            ("offloaded", sample.offloaded as f64),
            ("most-ready", f64::from(sample.most_ready)),
            ("busy", sample.busy[0] * 100.0),
            ("helper", sample.busy[1] * 100.0),
            ("stolen", sample.stolen * 100.0),
        ] {
            of.add(measure, value);
        }
        if mode == BASIC {
            // What finds no room by arithmetic: what comes, less what one handler does and what the pool holds. And the same
            // from what it did in this very time, whatever the machine's speed was.
            let by_rate = f64::midpoint(before, rate) * sample.busy[0] * sample.seconds;
            for (measure, handled) in [("off", by_rate), ("off-count", sample.meanwhile as f64)] {
                let wanted = (sample.accepted as f64 - handled - room).max(0.0);
                let off = (sample.lost as f64 / wanted - 1.0).abs() * 100.0;
                // Meaningless where nothing had to be lost.
                if off.is_finite() {
                    of.add(measure, off);
                }
            }
        }
    }
    Ok(taken)
}

/// `rate`: what one handler can do.
fn turn(field: &Field, plan: &Plan, rate: f64, duration: Duration) -> Result<Sample, Failure> {
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
    threads.finish(&mut capture)?;
    let account = capture.stats()?;
    let (total, queue) = (account.total(), account.interfaces[0].queues[0]);
    let (report, problem) = check.finish(&total, sent.accepted);
    let part = |seconds: f64| seconds / sent.elapsed.as_secs_f64();
    let stolen = after.iter().zip(before).map(|(after, before)| after.saturating_sub(before));
    Ok(Sample {
        seconds: sent.elapsed.as_secs_f64(),
        busy: [0, 1].map(|handler| part(meanwhile[handler].busy_seconds)),
        stolen: part(stolen.sum::<Duration>().as_secs_f64()),
        meanwhile: meanwhile[0].packets,
        accepted: sent.accepted,
        lost: total.lost,
        reordered: report.total.reordered,
        offloaded: queue.offloaded,
        most_ready: queue.most_ready,
        problem,
    })
}

pub(super) fn bars(outcome: &Outcome) -> Vec<Judged> {
    let of = |mode, measure| outcome.values_of(mode, measure, None);
    let never = |name: &str, mode, measure| {
        Judged::worst(&format!("{name}, {SIZE} B"), 0.0, "packets", of(mode, measure))
    };
    let off = |name, measure| {
        Judged::new(&format!("{name}, {SIZE} B"), Wanted::AtMost(10.0), "%", of(BASIC, measure))
    };
    vec![
        off("basic: lost, away from arithmetic", "off"),
        off("basic: lost, away from what was handled", "off-count"),
        never(&format!("{ADVANCED}: lost"), ADVANCED, "lost"),
        never(&format!("{IN_ORDER}: lost"), IN_ORDER, "lost"),
        never("order flow: out of order", IN_ORDER, "reordered"),
    ]
}
