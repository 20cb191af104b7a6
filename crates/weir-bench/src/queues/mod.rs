//! `weir-bench queues`: handlers that help one another, held against arithmetic.
//!
//! ```text
//!  generator -> veth -> XDP program -> queue 0 -> handler 0: work of a known size
//!                                      queue 1 -> handler 1: nothing comes here; it helps
//! ```
//!
//! What one handler can do, two can, and what a pool holds is measured with the pool filled beforehand, so that the generator takes
//! nothing from the handlers. Only what is lost in the long run, and by a burst, takes traffic at the same time.

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

use std::io::{self, Write};
use std::path::PathBuf;
use std::time::Duration;

use clap::Args;
use serde::Serialize;

use self::field::Field;
use super::bars::Bar;
use super::machine::Machine;
use super::table::{bar_rows, table};
use super::{believable, create, failed, save};
use crate::failure::Failure;
use crate::{style, units};

const EXAMPLES: &str = "\
Examples:
  weir-bench queues
        Run three rounds (about four minutes).
  weir-bench queues --rounds 1 --duration 60s
        Check that advanced mode loses nothing for a minute.
  weir-bench queues --rounds 1 --quick
        Check that the benchmark works; the rates mean little.

All traffic (60-byte frames in 64 flows) arrives on one of two queues. Measures:
  throughput of one handler with a full pool, and the gain from a second;
  loss at 1.6 times the rate one handler can process: basic, advanced, and with --order flow;
  time to hand a chunk to a buddy and back, and to inspect each of its packets for --order flow;
  longest burst without loss, compared with the pool formula C a / (a - s) (room for C packets,
  arrival rate a, service rate s) and with the same memory in cells of 2 KiB.
Requires root and two otherwise idle processors. Runs in a private network that is removed at the end.";

#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(super) struct QueuesArgs {
    /// Number of rounds.
    #[arg(long, value_name = "N", default_value = "3", value_parser = clap::value_parser!(u32).range(1..=1000))]
    rounds: u32,

    /// How long to overload the handlers.
    #[arg(long, value_name = "TIME", value_parser = units::duration, default_value = "5s")]
    duration: Duration,

    /// Simulated work: filter runs per packet, as in weir count.
    #[arg(long, value_name = "X", default_value = "300", value_parser = clap::value_parser!(u32).range(1..))]
    load: u32,

    /// Use a small pool and short rounds.
    #[arg(long)]
    quick: bool,

    /// Write all measurements to FILE.
    #[arg(long, value_name = "FILE")]
    json: Option<PathBuf>,
}

#[derive(Debug, Default, Serialize)]
struct Report {
    machine: Option<Machine>,
    load: u32,
    drains: Vec<drain::Sample>,
    imbalances: Vec<imbalance::Sample>,
    hand_overs: Vec<hand_over::Sample>,
    looks: Vec<look::Sample>,
    bursts: Vec<burst::Sample>,
    bars: Vec<Bar>,
}

/// Runs the command.
pub(super) fn run(args: &QueuesArgs) -> Result<(), Failure> {
    let json = create(args.json.as_deref())?;
    let machine = Machine::describe("/dev/shm".as_ref());
    style::say(format_args!("{machine}"));
    let field = Field::new(args.load, args.quick)?;
    let duration = if args.quick { Duration::from_millis(500) } else { args.duration };
    let mut report = Report { machine: Some(machine), load: args.load, ..Report::default() };
    for round in 1..=args.rounds {
        report.drains.extend(drain::measure(&field, round)?);
        report.imbalances.extend(imbalance::measure(&field, round, duration)?);
        report.hand_overs.extend(hand_over::measure(&field, round)?);
        report.looks.extend(look::measure(&field, round)?);
        report.bursts.extend(burst::measure(&field, round, drain::rate_of_one(&field, round)?)?);
    }
    report.bars.extend(imbalance::bars(&report.imbalances));
    report.bars.extend(drain::bars(&report.drains));
    report.bars.extend(hand_over::bars(&report.hand_overs));
    report.bars.extend(burst::bars(&report.bursts));
    let mut stdout = io::stdout().lock();
    let printed = write!(stdout, "Targets\n{}", table(&bar_rows(&report.bars)));
    printed.and_then(|()| stdout.flush()).map_err(failed("write to standard output"))?;
    if let Some((path, file)) = json {
        save(path, file, &serde_json::to_string_pretty(&report).map_err(failed("make JSON"))?)?;
    }
    believable(report.wrong().count())
}

impl Report {
    /// What makes measurements worthless.
    fn wrong(&self) -> impl Iterator<Item = &String> {
        let drains = self.drains.iter().map(|sample| &sample.problem);
        let imbalances = self.imbalances.iter().map(|sample| &sample.problem);
        let hand_overs = self.hand_overs.iter().map(|sample| &sample.problem);
        let looks = self.looks.iter().map(|sample| &sample.problem);
        let bursts = self.bursts.iter().map(|sample| &sample.problem);
        drains.chain(imbalances).chain(hand_overs).chain(looks).chain(bursts).flatten()
    }
}

/// Says what was measured, and what is wrong with it.
fn say(round: u32, name: &str, what: std::fmt::Arguments<'_>, problem: Option<&str>) {
    let problem = problem.map(|problem| format!("  {}", style::stderr().red(problem))).unwrap_or_default();
    style::say(format_args!("[{round}] {name:<38} {what}{problem}"));
}
