//! How fast handlers empty a full pool, while nobody else takes processor time.
//!
//! They take turns, a part of the pool each time, so a change of the machine's speed affects all of them.

use weir::{Order, Plan};

use super::Of;
use super::field::{Check, Field, SIZE, settle};
use super::threads::Threads;
use crate::experiment::{Judged, Outcome, Taken};
use crate::failure::{Failure, failed};
use crate::spread::median;
use crate::wanted::Wanted;

/// One turn.
struct Sample {
    packets: u64,
    /// From the beginning until the last packet was handled.
    seconds: f64,
    /// The same, without the time that others took from the handlers.
    undisturbed_seconds: f64,
    /// Processor time of the first handler.
    busy_seconds: f64,
    problem: Option<String>,
}

struct Contestant {
    name: &'static str,
    /// Number of queues that have packets.
    queues: usize,
    plan: fn(&Field) -> Plan,
    keeps_order: bool,
}

/// Turns of a round.
const TURNS: u32 = 4;

/// Percent. Any waiting chunk is too many, so an idle handler helps to the end.
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

/// What is compared, and the ratio it must reach. Two handlers with a queue each show what the machine can do: two
/// processors may do less than twice the work of one.
const TARGETS: [([usize; 2], f64); 5] =
    [([1, 0], 1.8), ([2, 0], 1.8), ([3, 0], 1.8), ([2, 1], 0.9), ([3, 1], 0.9)];

/// Medians of the ratios of turns to the turns beside them: facts of the target.
pub(super) const TIMES: &str = "times";
pub(super) const TIMES_BY_CPU: &str = "times by CPU time";

pub(super) fn series() -> Vec<&'static str> {
    CONTESTANTS.iter().map(|contestant| contestant.name).collect()
}

fn target([one, other]: [usize; 2]) -> String {
    let [one, other] = [one, other].map(|place| CONTESTANTS[place].name);
    format!("{one} / {}, {SIZE} B", other.trim_start_matches("two handlers, "))
}

pub(super) fn measure(field: &Field) -> Result<Taken, Failure> {
    let mut samples: [Vec<Sample>; 4] = Default::default();
    for _ in 0..TURNS {
        for (contestant, samples) in CONTESTANTS.iter().zip(&mut samples) {
            samples.push(empty(field, contestant, field.chunks / TURNS)?);
        }
    }
    let mut taken = Taken::default();
    for (contestant, samples) in CONTESTANTS.iter().zip(&samples) {
        let packets: u64 = samples.iter().map(|sample| sample.packets).sum();
        let seconds: f64 = samples.iter().map(|sample| sample.seconds).sum();
        let problems = samples.iter().filter_map(|sample| sample.problem.as_ref());
        taken.problems.extend(problems.map(|problem| format!("{}: {problem}", contestant.name)));
        Of { taken: &mut taken, series: contestant.name }.add("rate", packets as f64 / seconds / 1e6);
    }
    for (pair, _) in TARGETS {
        let times = |seconds: fn(&Sample) -> f64| {
            let [one, other] = pair.map(|place| &samples[place]);
            let rate = |sample: &Sample| sample.packets as f64 / seconds(sample);
            median(one.iter().zip(other).map(|(one, other)| rate(one) / rate(other)))
        };
        let mut of = Of { taken: &mut taken, series: &target(pair) };
        of.add(TIMES, times(|sample| sample.seconds));
        of.add(TIMES_BY_CPU, times(|sample| sample.undisturbed_seconds));
    }
    Ok(taken)
}

/// Fills this many chunks, then has them emptied.
fn empty(field: &Field, contestant: &Contestant, chunks: u32) -> Result<Sample, Failure> {
    let traffic = field.traffic()?;
    let mut capture = field.open()?;
    // All chunks but one, so that no packet is lost.
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
    let total = capture.stats()?.total();
    let (report, problem) = check.finish(&total, accepted);
    let problem = problem.or_else(|| {
        let wrong = total.lost > 0 || contestant.keeps_order && report.total.reordered > 0;
        wrong.then(|| format!("{} lost, {} out of order", total.lost, report.total.reordered))
    });
    let seconds = handlers.iter().map(|done| done.seconds).fold(0.0, f64::max);
    let waited: f64 = handlers.iter().map(|done| done.waited_seconds).sum();
    Ok(Sample {
        packets: accepted,
        seconds,
        undisturbed_seconds: seconds - waited / handlers.len() as f64,
        busy_seconds: handlers[0].busy_seconds,
        problem,
    })
}

/// Packets that one handler does in a second of processor time, just now.
pub(super) fn rate_of_one(field: &Field) -> Result<f64, Failure> {
    let sample = empty(field, &CONTESTANTS[0], field.chunks)?;
    if let Some(problem) = sample.problem {
        return Err(Failure::new(problem));
    }
    let rate = sample.packets as f64 / sample.busy_seconds;
    let is_rate = rate.is_finite() && rate >= 1.0;
    is_rate.then_some(rate).ok_or_else(|| Failure::new("one handler does nothing"))
}

pub(super) fn bars(outcome: &Outcome) -> Vec<Judged> {
    let bar = |(pair, least)| {
        let name = target(pair);
        let of = |measure| outcome.values_of(&name, measure, None);
        Judged::new(&name, Wanted::AtLeast(least), "times", of(TIMES)).by_cpu_time(of(TIMES_BY_CPU))
    };
    TARGETS.map(bar).to_vec()
}
