//! The experiment: losses and memory of 64 queues by load. All of it is simulation, and is called so.

use std::time::Duration;

use super::engine::Design;
use super::{memory, skewed};
use crate::experiment::{
    About, Axis, Experiment, Judged, Measure, Outcome, Role, Series, Settings, Taken, Turn,
};
use crate::failure::Failure;

const LOST: &str = "lost";
const MEMORY: &str = "memory";
const MIB: f64 = (1 << 20) as f64;

/// Nanoseconds that a handler takes for a packet: 64 handlers do what comes of 60-byte packets at 100 Gbit/s, and 7 % more.
const EACH: f64 = 400.0;
const CELLS: u32 = 256;
const CHUNKS: u32 = 100;
const SKEW: f64 = 1.1;
/// What comes, in percent of what all handlers can do.
const LOADS: [u64; 7] = [2, 10, 25, 50, 75, 93, 110];
const QUICK: [u64; 3] = [2, 50, 110];

/// Who is simulated.
struct Machine {
    name: &'static str,
    title: &'static str,
    queues: u32,
    chunks: u32,
    threshold: Option<u8>,
}

const fn machine(
    name: &'static str,
    title: &'static str,
    queues: u32,
    chunks: u32,
    threshold: Option<u8>,
) -> Machine {
    Machine { name, title, queues, chunks, threshold }
}

const ONE: &str = "one";
const LAW: &str = "law";

const MACHINES: [Machine; 5] = [
    machine("basic", "simulation: 64 queues, basic, R = 100", 64, CHUNKS, None),
    machine("advanced", "simulation: 64 queues, advanced, R = 100, T = 60 %", 64, CHUNKS, Some(60)),
    machine("advanced-500", "simulation: 64 queues, advanced, R = 500, T = 60 %", 64, 500, Some(60)),
    machine("advanced-8", "simulation: 8 queues, advanced, R = 100, T = 60 %", 8, CHUNKS, Some(60)),
    machine(ONE, "simulation: one queue, R = 100", 1, CHUNKS, None),
];

struct Simulate {
    loads: &'static [u64],
    time: Duration,
}

/// Needs nothing of this machine but time.
#[expect(clippy::unnecessary_wraps, reason = "as all experiments are made")]
pub(crate) fn make(settings: &Settings) -> Result<Box<dyn Experiment>, Failure> {
    let loads: &[u64] = if settings.quick { &QUICK } else { &LOADS };
    // In the shorter of them a single queue fills its pool at 110 %, and loses half as much again.
    let time = Duration::from_millis(if settings.quick { 150 } else { 1000 });
    Ok(Box::new(Simulate { loads, time }))
}

impl Experiment for Simulate {
    fn about(&self) -> About {
        let series = MACHINES.iter().map(|machine| (machine.name, machine.title));
        let series = series.chain([(LAW, "arithmetic: one queue, R = 100")]);
        About {
            name: "simulate".to_owned(),
            title: "Simulation: many queues at 100 Gbit/s".to_owned(),
            method: "Not measured but simulated, in virtual time, with the engine's own pool and its own decisions about who helps \
                     whom. Packets come steadily; queue q gets a part in proportion to 1 / q^1.1. A handler takes 400 ns for a \
                     packet. M = 256 cells of 2 KiB. The axis is what comes, in percent of what all handlers can do: 93 % of 64 \
                     handlers is 100 Gbit/s of 60-byte packets. One queue is compared with arithmetic here; experiment imbalance \
                     compares the simulation with measurements."
                .to_owned(),
            differs: vec![
                "A handler is awake the moment there is work, and a chunk is passed on instantly.".to_owned(),
                "The speed of caches and memory is not modelled: what helping costs a handler is not in it.".to_owned(),
            ],
            axis: Some(Axis { title: "load".to_owned(), unit: "%".to_owned(), logarithmic: false }),
            measures: vec![
                Measure::lower(LOST, "packets lost", "%"),
                Measure::lower(MEMORY, "cells in use at once, at most", "MiB"),
                Measure::fact("packets", "packets that came", "packets"),
                Measure::fact("done", "packets that handlers have done", "packets"),
                Measure::fact("helped", "chunks that handlers of other queues took", "chunks"),
            ],
            series: series.map(|(name, title)| Series::new(name, title, Role::Model)).collect(),
            ..About::default()
        }
    }

    fn turns(&self) -> Vec<Turn> {
        Turn::each(self.loads.iter().copied(), MACHINES.iter().map(|machine| machine.name))
    }

    fn take(&mut self, turn: &Turn, _round: u32) -> Result<Taken, Failure> {
        let named = |machine: &&Machine| machine.name == turn.series;
        let machine = MACHINES.iter().find(named).expect("turns are of machines");
        let load = turn.at.expect("turns have a load") as f64;
        let Machine { queues, chunks, threshold, .. } = *machine;
        let design = Design { queues, chunks, cells: CELLS, threshold, each: EACH };
        let rate = load / 100.0 * f64::from(queues) * 1e9 / EACH;
        let came = design.simulate(skewed(queues, SKEW, rate, self.time, CELLS))?;
        let mut taken = Taken::default();
        let percent = |lost: f64| 100.0 * lost / came.packets.max(1) as f64;
        taken.add(turn, LOST, percent(came.lost as f64));
        taken.add(turn, MEMORY, memory(&came, CELLS) / MIB);
        for (measure, number) in [("packets", came.packets), ("done", came.done), ("helped", came.helped)] {
            taken.add(turn, measure, number as f64);
        }
        if came.packets != came.done + came.lost {
            taken.problems.push(format!("{came:?}"));
        }
        if machine.name == ONE {
            let done = self.time.as_secs_f64() * 1e9 / EACH;
            let lost = (came.packets as f64 - done - f64::from(chunks * CELLS)).max(0.0);
            taken.put(LAW, LOST, Some(load), percent(lost));
        }
        Ok(taken)
    }

    fn bars(&self, outcome: &Outcome) -> Vec<Judged> {
        let of = |series: &str, load: u64| outcome.rounds_of(series, LOST, Some(load as f64));
        let loads = || self.loads.iter().copied();
        let off = loads().flat_map(|load| {
            let pairs = of(ONE, load).into_iter().zip(of(LAW, load));
            pairs.map(|((_, lost), (_, law))| (lost - law).abs()).collect::<Vec<_>>()
        });
        let below = loads().filter(|load| *load < 100).flat_map(|load| of("advanced", load));
        vec![
            Judged::worst("simulation, one queue: away from arithmetic", 0.5, "percentage points", off),
            Judged::worst(
                "simulation, 64 queues, advanced: lost below a load of 100 %",
                0.0,
                "%",
                below.map(|(_, lost)| lost),
            ),
        ]
    }
}
