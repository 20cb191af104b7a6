//! `weir-bench simulate`, and the experiment of that name: machines that nobody here has.

pub(super) mod engine;
mod experiment;

pub(crate) use experiment::make;

use std::io::{self, Write as _};
use std::time::Duration;

use clap::Args;

use self::engine::{Arrival, Came, Design};
use crate::failure::{Failure, failed};
use crate::table::table;
use crate::units;

const EXAMPLES: &str = "\
Examples:
  weir-bench simulate
        Simulate 64 queues of a 100-Gbit/s card with 60-byte packets.
  weir-bench simulate --queues 8 --rate 14.88Mpps --service 0.5us --skew 1.5 --chunks 500
        Simulate a 10-Gbit/s card with more skew and a larger pool.

The pool, and the decisions about who helps whom, are the engine's own; time is virtual. Queue q gets packets in proportion \
to 1 / q^SKEW. Requires no privileges and no network.";

/// What to simulate.
#[derive(Clone, Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct SimulateArgs {
    /// Number of receive queues, each with a handler.
    #[arg(long, value_name = "N", default_value = "64", value_parser = clap::value_parser!(u32).range(1..=1024))]
    queues: u32,

    /// Highest rate of all queues together; the table shows parts of it, too.
    #[arg(long, value_name = "RATE", default_value = "148.8Mpps", value_parser = units::rate)]
    rate: f64,

    /// How unevenly packets are spread over queues: 0 is evenly.
    #[arg(long, value_name = "S", default_value = "1.1", value_parser = skew)]
    skew: f64,

    /// Time that a handler takes for a packet.
    #[arg(long, value_name = "TIME", default_value = "0.4us", value_parser = units::duration)]
    service: Duration,

    /// Packets of a chunk (WireCAP's M).
    #[arg(long, value_name = "M", default_value = "256", value_parser = clap::value_parser!(u32).range(1..=65536))]
    cells: u32,

    /// Chunks of a queue (WireCAP's R).
    #[arg(long, value_name = "R", default_value = "100", value_parser = clap::value_parser!(u32).range(2..=10000))]
    chunks: u32,

    /// Fill of a queue from which others help, in percent.
    #[arg(long, value_name = "PERCENT", default_value = "60", value_parser = clap::value_parser!(u8).range(1..=99))]
    threshold: u8,

    /// Virtual time for which packets come.
    #[arg(long, value_name = "TIME", default_value = "100ms", value_parser = units::duration)]
    time: Duration,
}

/// Bytes of a cell.
const CELL: f64 = 2048.0;
/// Chunks that may be filled: some minutes of work.
const MOST: f64 = 1e8;
/// Parts of the rate, in percent.
const PARTS: [u32; 6] = [10, 25, 50, 75, 90, 100];

fn skew(text: &str) -> Result<f64, String> {
    let skew = text.parse().ok().filter(|skew| (0.0..=10.0).contains(skew));
    skew.ok_or_else(|| "allowed is a number from 0 to 10".to_owned())
}

/// Prints a table.
pub(crate) fn run(args: &SimulateArgs) -> Result<(), Failure> {
    let chunks = args.rate * args.time.as_secs_f64() / f64::from(args.cells);
    if chunks > MOST {
        return Err(Failure::new(format_args!(
            "cannot simulate {}chunks: more than {}; try a shorter --time",
            units::scaled(chunks),
            units::scaled(MOST)
        )));
    }
    let head = ["", "mode", "lost", "by helpers", "memory"].map(str::to_owned).to_vec();
    let mut rows = vec![head];
    for part in PARTS {
        let rate = args.rate * f64::from(part) / 100.0;
        for (mode, threshold) in [("basic", None), ("advanced", Some(args.threshold))] {
            let design = args.design(threshold);
            let came = design.simulate(skewed(args.queues, args.skew, rate, args.time, args.cells))?;
            rows.push(vec![
                format!("{}pps", units::scaled(rate)),
                mode.to_owned(),
                format!("{:.3} %", 100.0 * came.lost as f64 / came.packets.max(1) as f64),
                format!("{} chunks", units::grouped(came.helped)),
                units::bytes(units::whole(memory(&came, args.cells))),
            ]);
        }
    }
    let SimulateArgs { queues, chunks, cells, .. } = args;
    let pool = units::bytes(units::whole(f64::from(*queues) * f64::from(*chunks) * f64::from(*cells) * CELL));
    let all = f64::from(*queues) / args.service.as_secs_f64();
    let text = format!(
        "Simulation: {queues} queues, whose handlers together can do {}pps; pool of {pool}\n{}",
        units::scaled(all),
        table(&rows)
    );
    io::stdout().lock().write_all(text.as_bytes()).map_err(failed("write to standard output"))
}

impl SimulateArgs {
    fn design(&self, threshold: Option<u8>) -> Design {
        let Self { queues, chunks, cells, service, .. } = *self;
        // A single handler has nobody who could help.
        let threshold = threshold.filter(|_| queues > 1);
        Design { queues, chunks, cells, threshold, each: service.as_secs_f64() * 1e9 }
    }
}

/// Bytes of cells in use, at most.
fn memory(came: &Came, cells: u32) -> f64 {
    f64::from(came.most_in_use) * f64::from(cells) * CELL
}

/// Steady traffic of which queue q (from 1) gets a part in proportion to 1 / q^skew. Packets come a chunk's worth at a time.
pub(super) fn skewed(
    queues: u32,
    skew: f64,
    rate: f64,
    time: Duration,
    cells: u32,
) -> impl Iterator<Item = Arrival> {
    let weights: Vec<f64> = (1..=queues).map(|queue| f64::from(queue).powf(-skew)).collect();
    let all: f64 = weights.iter().sum();
    let end = time.as_secs_f64() * 1e9;
    // By queue: nanoseconds between two chunks, and when the next is full.
    let mut next: Vec<[f64; 2]> = weights
        .iter()
        .map(|weight| f64::from(cells) * 1e9 / (rate * weight / all))
        .map(|between| [between, between])
        .collect();
    std::iter::from_fn(move || {
        let first = next.iter_mut().enumerate().min_by(|(_, a), (_, b)| a[1].total_cmp(&b[1]));
        let (queue, [between, at]) = first.filter(|(_, [_, at])| *at <= end)?;
        let arrival = Arrival { at: *at, queue, packets: u64::from(cells) };
        *at += *between;
        Some(arrival)
    })
}
