//! `weir-bench filter`: filters against libpcap's: length, speed, and what compiling them takes; what one adds to XDP, and what it
//! takes to exchange one.

mod compile;
mod ctl;
mod exchange;
mod length;
mod speed;
mod xdp;

use std::io::{self, Write};
use std::path::PathBuf;

use clap::Args;
use serde::Serialize;
use weir_filter::{Dialect, Error, Filter};
use weir_judge::Libpcap;
use weir_judge::compiled::options;

pub(super) use self::compile::OnceArgs;
pub(super) use self::compile::run_once;
use super::bars::Bar;
use super::machine::Machine;
use super::table::{bar_rows, table};
use super::{believable, create, failed, save};
use crate::failure::Failure;
use crate::style;

const EXAMPLES: &str = "\
Examples:
  weir-bench filter
        Run five rounds (two minutes, mostly for libpcap to compile 1000 hosts once).
  weir-bench filter --rounds 1 --quick
        Check that the benchmark works; the times mean little.

Both compilers get the same expressions, and both programs the same packets, in turn. Times apply \
to this build; a debug build is many times slower. Filtering in user space and in XDP is measured in \
processor time. XDP and captures require root.";

#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(super) struct FilterArgs {
    /// Number of rounds.
    #[arg(long, value_name = "N", default_value = "5", value_parser = clap::value_parser!(u32).range(1..=1000))]
    rounds: u32,

    /// Run a shorter benchmark.
    #[arg(long)]
    quick: bool,

    /// Write all measurements to FILE.
    #[arg(long, value_name = "FILE")]
    json: Option<PathBuf>,
}

#[derive(Debug, Serialize)]
struct Report {
    machine: Machine,
    libpcap: String,
    lengths: length::Lengths,
    speeds: Vec<speed::Sample>,
    compiling: Vec<compile::Sample>,
    xdp: Vec<xdp::Sample>,
    exchange: exchange::Exchanges,
    bars: Vec<Bar>,
}

/// Runs the command.
pub(super) fn run(args: &FilterArgs) -> Result<(), Failure> {
    let json = create(args.json.as_deref())?;
    let libpcap = Libpcap::open().map_err(Failure::new)?;
    let machine = Machine::describe("/dev/shm".as_ref());
    style::say(format_args!("{machine}\n{}", libpcap.version()));
    let lengths = length::measure(&libpcap);
    let speeds = speed::measure(&libpcap, args)?;
    let compiling = compile::measure(args)?;
    let xdp = xdp::measure(args)?;
    let exchange = exchange::measure(args)?;
    let mut bars = lengths.bars();
    bars.extend(speed::bars(&speeds));
    bars.extend(compile::bars(&compiling));
    bars.extend(xdp::bars(&xdp));
    bars.extend(exchange.bars());
    let mut stdout = io::stdout().lock();
    let printed = write!(stdout, "{lengths}\nTargets\n{}", table(&bar_rows(&bars)));
    printed.and_then(|()| stdout.flush()).map_err(failed("write to standard output"))?;
    let wrong = speeds.iter().filter(|sample| !sample.same_verdicts).count() + exchange.wrong();
    let report =
        Report { machine, libpcap: libpcap.version(), lengths, speeds, compiling, xdp, exchange, bars };
    if let Some((path, file)) = json {
        save(path, file, &serde_json::to_string_pretty(&report).map_err(failed("make JSON"))?)?;
    }
    believable(wrong)
}

/// As both compilers do it: for files.
fn compile(text: &str, dialect: Dialect, link_type: u16) -> Result<Filter, Error> {
    weir_filter::compile(text, &options(dialect, link_type))
}
