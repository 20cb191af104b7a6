//! How fast handlers empty a pool that was filled beforehand: nobody takes processor time from them meanwhile.
//!
//! They do it in turns, a part of the pool each time: when the machine changes its speed, it does so for all of them.

use serde::Serialize;
use weir::{Order, Plan};

use super::field::{Check, Field, SIZE, settle};
use super::say;
use super::threads::{Done, Threads};
use crate::bars::{Bar, Wanted};
use crate::failed;
use crate::failure::Failure;
use crate::spread::Spread;
use crate::units;

/// One turn.
#[derive(Debug, Serialize)]
pub(super) struct Sample {
    contestant: &'static str,
    round: u32,
    /// Of the round.
    turn: u32,
    packets: u64,
    /// From the beginning until the last packet was handled.
    seconds: f64,
    /// Of these, without what others took from the handlers.
    undisturbed_seconds: f64,
    handlers: Vec<Done>,
    /// Chunks that were taken by the handler of another queue, or divided.
    offloaded: u64,
    pub(super) problem: Option<String>,
}

struct Contestant {
    name: &'static str,
    /// How many queues have packets.
    queues: usize,
    plan: fn(&Field) -> Plan,
    keeps_order: bool,
}

/// Turns of a round.
const TURNS: u32 = 4;

/// Percent. Any chunk that waits is too many: who has nothing to do helps to the end.
const AT_ONCE: u8 = 1;

const ONE: &str = "one handler";
const APART: &str = "two handlers, a queue each";
const HELPED: &str = "two handlers, one queue";
const IN_ORDER: &str = "two handlers, one queue, order flow";

const CONTESTANTS: [Contestant; 4] = [
    Contestant { name: ONE, queues: 1, plan: |field| field.plan(1), keeps_order: true },
    Contestant { name: APART, queues: 2, plan: |field| field.plan(2), keeps_order: false },
    Contestant { name: HELPED, queues: 1, plan: |field| field.plan(2).advanced(AT_ONCE), keeps_order: false },
    Contestant {
        name: IN_ORDER,
        queues: 1,
        plan: |field| field.plan(2).advanced(AT_ONCE).order(Order::Flow),
        keeps_order: true,
    },
];

pub(super) fn measure(field: &Field, round: u32) -> Result<Vec<Sample>, Failure> {
    let mut samples = Vec::new();
    for turn in 1..=TURNS {
        for contestant in &CONTESTANTS {
            samples.push(empty(field, round, turn, contestant, field.chunks / TURNS)?);
        }
    }
    for contestant in &CONTESTANTS {
        let of: Vec<&Sample> = samples.iter().filter(|sample| sample.contestant == contestant.name).collect();
        say_together(round, contestant, &of);
    }
    Ok(samples)
}

/// Says what turns of one contestant come to.
fn say_together(round: u32, contestant: &Contestant, samples: &[&Sample]) {
    let packets = samples.iter().map(|sample| sample.packets).sum();
    let seconds: f64 = samples.iter().map(|sample| sample.seconds).sum();
    let problem = samples.iter().find_map(|sample| sample.problem.as_deref());
    let took = format_args!(
        "{}pps: {} packets in {seconds:.3} s",
        units::scaled(packets as f64 / seconds),
        units::grouped(packets)
    );
    say(round, contestant.name, took, problem);
}

/// Fills so many chunks, and has them emptied.
fn empty(
    field: &Field,
    round: u32,
    turn: u32,
    contestant: &Contestant,
    chunks: u32,
) -> Result<Sample, Failure> {
    let traffic = field.traffic()?;
    let mut capture = field.open()?;
    // All chunks but one, so that none is lost.
    let each = field.room(chunks - 1) / contestant.queues as u64;
    let (mut frames, mut accepted) = (0, 0);
    for queue in 0..contestant.queues {
        let sent = field.generator(&traffic, queue, frames)?.send(each).map_err(failed("send"))?;
        frames = sent.sequences.end;
        accepted += sent.accepted;
    }
    settle(&mut capture, accepted)?;
    let check = Check::new(&traffic, frames);
    let handlers = capture.handlers(&(contestant.plan)(field))?;
    let works = field.works(&handlers, &capture, &check)?;
    let threads = Threads::start(handlers, works);
    threads.wait_for(accepted)?;
    let handlers = threads.finish(&mut capture)?;
    let account = capture.account()?;
    let total = account.total();
    let (report, problem) = check.finish(&total, accepted);
    let problem = problem.or_else(|| {
        let wrong = total.lost > 0 || contestant.keeps_order && report.total.reordered > 0;
        wrong.then(|| format!("{} lost, {} out of order", total.lost, report.total.reordered))
    });
    let seconds = handlers.iter().map(|done| done.seconds).fold(0.0, f64::max);
    let waited: f64 = handlers.iter().map(|done| done.waited_seconds).sum();
    Ok(Sample {
        contestant: contestant.name,
        round,
        turn,
        packets: accepted,
        seconds,
        undisturbed_seconds: seconds - waited / handlers.len() as f64,
        handlers,
        offloaded: account.interfaces[0].queues.iter().map(|queue| queue.offloaded).sum(),
        problem,
    })
}

/// Packets that one handler does in a second of processor time, just now.
pub(super) fn rate_of_one(field: &Field, round: u32) -> Result<f64, Failure> {
    let sample = empty(field, round, 1, &CONTESTANTS[0], field.chunks)?;
    say_together(round, &CONTESTANTS[0], &[&sample]);
    let one = sample.handlers[0];
    let rate = one.packets as f64 / one.busy_seconds;
    let is_rate = rate.is_finite() && rate >= 1.0;
    is_rate.then_some(rate).ok_or_else(|| Failure::new("one handler does nothing"))
}

/// Each turn compared with itself; of a round's turns the median. What two handlers with a queue each do is what the machine can:
/// its processors may have less than twice the work of one in them.
pub(super) fn bars(samples: &[Sample]) -> [Bar; 5] {
    let rounds = samples.iter().map(|sample| sample.round).max().unwrap_or(0);
    let ratio = |one: &str, other: &str, seconds: fn(&Sample) -> f64| {
        let rates = |name, round| {
            let of = samples.iter().filter(move |sample| sample.contestant == name && sample.round == round);
            of.map(move |sample| sample.packets as f64 / seconds(sample))
        };
        let ratios = |round| rates(one, round).zip(rates(other, round)).map(|(one, other)| one / other);
        Spread::of((1..=rounds).filter_map(|round| Some(Spread::of(ratios(round))?.median)))
    };
    [
        (APART, ONE, 1.8),
        (HELPED, ONE, 1.8),
        (IN_ORDER, ONE, 1.8),
        (HELPED, APART, 0.9),
        (IN_ORDER, APART, 0.9),
    ]
    .map(|(one, other, least)| Bar {
        undisturbed: ratio(one, other, |sample| sample.undisturbed_seconds),
        ..Bar::new(
            &format!("{one} / {}", other.trim_start_matches("two handlers, ")),
            Some(SIZE),
            Wanted::AtLeast(least),
            "times",
            ratio(one, other, |sample| sample.seconds),
        )
    })
}
