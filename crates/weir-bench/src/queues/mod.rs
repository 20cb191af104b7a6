//! `weir-bench queues`: handlers that help one another, compared with arithmetic.
//!
//! ```text
//!  generator -> veth -> XDP program -> queue 0 -> handler 0: work of a known size
//!                                      queue 1 -> handler 1: nothing comes here; it helps
//! ```
//!
//! The pool is filled before it is measured what one handler can do, what two can, and what a pool holds, so that the
//! generator takes nothing from the handlers. Only losses, in the long run and by a burst, are measured while packets
//! come.

mod burst;
mod drain;
mod field;
mod hand_over;
mod imbalance;
mod load;
mod look;
mod threads;

pub(crate) use self::field::{Check, settle};
pub(crate) use self::threads::Threads;

use std::time::Duration;

use clap::Args;
use weir_lab::Veth;

use self::field::{Field, QUEUES};
use crate::experiment::{
    self, About, Entry, Experiment, Judged, Measure, Outcome, Role, Series, Settings, Taken, Turn,
};
use crate::failure::Failure;
use crate::units;

pub(crate) const EXAMPLES: &str = "\
Examples:
  weir-bench queues
        Run five rounds (about seven minutes).
  weir-bench queues --rounds 1 --duration 60s
        Check that advanced mode loses nothing for a minute.
  weir-bench queues --quick
        Check that the benchmark works; the rates mean little.

All traffic (60-byte frames in 64 flows) arrives on one of two queues. Measures:
  throughput of one handler with a full pool, and the gain from a second;
  loss at 1.6 times the rate one handler can process: basic, advanced, and with --order flow;
  time to hand a chunk to a buddy and back, and to inspect each of its packets for --order flow;
  longest burst without loss, compared with the pool formula C a / (a - s) (room for C packets,
  arrival rate a, service rate s) and with the same memory in cells of 2 KiB.
Requires root and two otherwise idle processors. Runs in a private network that is removed at the end.";

#[derive(Debug, Args)]
pub(super) struct QueuesArgs {
    #[command(flatten)]
    how: experiment::How,

    /// How long to overload the handlers; default: 5s, with --quick 250ms.
    #[arg(long, value_name = "TIME", value_parser = units::duration)]
    duration: Option<Duration>,

    /// Simulated work: filter runs per packet, as in weir count.
    #[arg(long, value_name = "X", default_value = "300", value_parser = clap::value_parser!(u32).range(1..))]
    load: u32,
}

/// Runs the command.
pub(super) fn run(args: &QueuesArgs, all: &'static [Entry]) -> Result<(), Failure> {
    let settings = Settings { duration: args.duration, load: Some(args.load), ..args.how.settings() };
    args.how.run(settings, &["queues"], all)
}

struct Queues {
    field: Field,
    /// Duration of an overload.
    duration: Duration,
}

/// Makes the network.
pub(super) fn make(settings: &Settings) -> Result<Box<dyn Experiment>, Failure> {
    let network = settings.network("queues", Veth::default().queues(QUEUES))?;
    let field = Field::new(network, settings.load.unwrap_or(300), settings.quick)?;
    Ok(Box::new(Queues { field, duration: settings.time(5000) }))
}

/// The parts of a round.
const DRAIN: &str = "two handlers beside one";
const OVERLOAD: &str = "too much for one handler";
const HAND_OVER: &str = "hand-over";
const ORDER: &str = "order of flows";
const BURST: &str = "burst";

impl Experiment for Queues {
    fn about(&self) -> About {
        let names = [drain::series(), imbalance::series(), look::series(), burst::series()].concat();
        let names = names.into_iter().map(str::to_owned).chain(hand_over::series());
        About {
            name: "queues".to_owned(),
            title: "Handlers that help one another".to_owned(),
            method: "All packets arrive on one of two queues, whose handler does work of a known size for each. How fast a full pool \
                     is emptied by one handler and by two, in short turns; what is lost at 1.6 times the rate of one; what a \
                     hand-over and the order of flows take; and the longest burst that a pool holds, beside arithmetic."
                .to_owned(),
            measures: vec![
                Measure::higher("rate", "packets handled", "Mpps"),
                Measure::lower("lost", "packets lost", "packets"),
                Measure::lower("reordered", "packets behind a later one of their flow", "packets"),
                Measure::lower("off", "lost, away from arithmetic", "%"),
                Measure::lower("off-count", "lost, away from what was handled", "%"),
                Measure::lower("chunk", "processor time of a chunk", "ns"),
                Measure::lower("packet", "processor time of a packet", "ns"),
                Measure::higher("longest", "longest burst without loss", "packets"),
                Measure::fact("law", "longest burst by arithmetic", "packets"),
                Measure::fact("law-of-cells", "the same of as much memory in cells", "packets"),
                Measure::fact("sent", "packets that came", "packets"),
                Measure::fact("offloaded", "chunks that another handler took", "chunks"),
                Measure::fact("most-ready", "chunks that waited at once, at most", "chunks"),
                Measure::fact("busy", "part of a processor that the handler of the busy queue had", "%"),
                Measure::fact("helper", "part of a processor that the other had", "%"),
                Measure::fact("stolen", "part of a processor that other guests had", "%"),
                Measure::fact(drain::TIMES, "rate as a multiple of another's", ""),
                Measure::fact(drain::TIMES_BY_CPU, "the same by processor time", ""),
            ],
            series: names.map(|name| Series::new(&name, &name, Role::Ours)).collect(),
            ..About::default()
        }
    }

    fn turns(&self) -> Vec<Turn> {
        [DRAIN, OVERLOAD, HAND_OVER, ORDER, BURST].map(|name| Turn::of(name, None)).to_vec()
    }

    fn take(&mut self, turn: &Turn, _round: u32) -> Result<Taken, Failure> {
        let field = &self.field;
        match turn.name.as_str() {
            DRAIN => drain::measure(field),
            OVERLOAD => imbalance::measure(field, self.duration),
            HAND_OVER => hand_over::measure(field),
            ORDER => look::measure(field),
            _ => burst::measure(field, drain::rate_of_one(field)?),
        }
    }

    fn bars(&self, outcome: &Outcome) -> Vec<Judged> {
        [imbalance::bars(outcome), drain::bars(outcome), hand_over::bars(outcome), burst::bars(outcome)]
            .concat()
    }
}

/// The values of a series in a taken turn.
struct Of<'a> {
    taken: &'a mut Taken,
    series: &'a str,
}

impl Of<'_> {
    fn add(&mut self, measure: &str, value: f64) {
        self.taken.put(self.series, measure, None, value);
    }
}
