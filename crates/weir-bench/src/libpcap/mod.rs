//! `weir-bench libpcap`: unchanged programs on the system's libpcap and on weir's.
//!
//! ```text
//!  processor 1                                                     | processor 0
//!  generator -> veth -> NAPI -> packet socket, or weir's program  -|-> tcpdump, count: on libpcap, or on weir's library
//! ```
//!
//! In each round the libraries take turns with the same program and the same work. What captures is measured as by
//! `weir-bench capture`: a rate is what the program has got of the packets sent, a second of sending.

pub(crate) mod both;
mod compiling;
pub(crate) mod counter;
mod live;
mod saved;

use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::time::Duration;

use clap::{Args, ValueEnum};
use serde::Serialize;

use self::both::Both;
use crate::bars::Bar;
use crate::failure::Failure;
use crate::fault::Fault;
use crate::machine::Machine;
use crate::program::find;
use crate::table::{bar_rows, markdown};
use crate::{believable, create, failed, save, two_processors};
use crate::{style, units};

const EXAMPLES: &str = "\
Examples:
  weir-bench libpcap --json libpcap.json
        Run everything, three rounds (about five minutes, one of them for libpcap to
        compile 1000 hosts once).
  weir-bench libpcap --only count,files --rounds 9
        Run selected parts.
  weir-bench libpcap --quick
        Check that the benchmark works; the rates mean little.

Requires cc and libpcap-dev, which compile a counting program. The parts tcpdump and count require \
root and two otherwise idle processors, and run in a private network that is removed at the end. \
Tables are Markdown.";

#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct LibpcapArgs {
    /// Number of rounds; default: 3.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=1000))]
    rounds: Option<u32>,

    /// Sending time per program, library and round; default: 1s.
    #[arg(long, value_name = "TIME", value_parser = units::duration)]
    duration: Option<Duration>,

    /// Number of 60-byte packets in the file that is read; default: 3000000.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..=20_000_000))]
    packets: Option<u64>,

    /// Run only these parts.
    #[arg(long, value_name = "PART,...", value_delimiter = ',')]
    only: Vec<Part>,

    /// Run one short round, and compile 200 hosts.
    #[arg(long)]
    quick: bool,

    /// Directory for files; should be a tmpfs with 2 GiB to spare.
    #[arg(long, value_name = "DIR", default_value = "/dev/shm")]
    dir: PathBuf,

    /// Directory for files on a disk, with 2 GiB to spare.
    #[arg(long, value_name = "DIR", default_value = "/var/tmp")]
    disk: PathBuf,

    /// Measure this library instead of libweir_pcap.so beside weir-bench.
    #[arg(long, value_name = "PATH")]
    library: Option<PathBuf>,

    /// Write all measurements to FILE.
    #[arg(long, value_name = "FILE")]
    json: Option<PathBuf>,
}

/// What can be measured alone.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Part {
    /// tcpdump writes packets of a device.
    Tcpdump,
    /// A C program counts packets of a device.
    Count,
    /// tcpdump filters a file, and a C program counts its packets.
    Files,
    /// A filter of 1000 hosts is compiled.
    Compile,
}

/// What will be measured.
struct Plan<'a> {
    parts: Vec<Part>,
    rounds: u32,
    duration: Duration,
    packets: u64,
    hosts: u32,
    dir: &'a Path,
    disk: &'a Path,
    tcpdump: Option<PathBuf>,
}

impl<'a> Plan<'a> {
    fn of(args: &'a LibpcapArgs) -> Self {
        let quick = args.quick;
        let turn = Duration::from_millis(if quick { 50 } else { 1000 });
        let mut parts = args.only.clone();
        if parts.is_empty() {
            parts = Part::value_variants().to_vec();
        }
        let tcpdump = find("tcpdump");
        if tcpdump.is_none() && (parts.contains(&Part::Tcpdump) || parts.contains(&Part::Files)) {
            style::say(format_args!("tcpdump is not installed (apt-get install tcpdump)"));
            parts.retain(|part| *part != Part::Tcpdump);
        }
        Self {
            parts,
            rounds: args.rounds.unwrap_or(if quick { 1 } else { 3 }),
            duration: args.duration.unwrap_or(turn),
            packets: args.packets.unwrap_or(if quick { 100_000 } else { 3_000_000 }),
            hosts: if quick { 200 } else { compiling::HOSTS },
            dir: &args.dir,
            disk: &args.disk,
            tcpdump,
        }
    }

    fn is_live(&self) -> bool {
        self.parts.contains(&Part::Tcpdump) || self.parts.contains(&Part::Count)
    }
}

#[derive(Debug, Serialize)]
struct Report {
    machine: Machine,
    libpcap: String,
    weir: String,
    rounds: u32,
    live: Vec<live::Sample>,
    packets_in_file: u64,
    files: Vec<saved::Sample>,
    compiling: Vec<compiling::Sample>,
    bars: Vec<Bar>,
    /// Turns that gave no result.
    faults: Vec<Fault>,
}

/// Runs the command.
pub(crate) fn run(args: &LibpcapArgs) -> Result<(), Failure> {
    let json = create(args.json.as_deref())?;
    let both = Both::find(args.library.as_deref())?;
    both.compile()?;
    let plan = Plan::of(args);
    if plan.is_live() {
        two_processors()?;
    }
    let [libpcap, weir] = both.versions(&both.counter(), "version")?;
    if let Some(tcpdump) = &plan.tcpdump {
        both.versions(tcpdump, "--version")?;
    }
    let machine = Machine::describe(&args.dir);
    style::say(format_args!("{machine}\n{libpcap}\n{weir}"));

    let mut faults = Vec::new();
    let live = live::measure(&plan, &both, &mut faults)?;
    let files = saved::measure(&plan, &both)?;
    let compiling = compiling::measure(&plan, &both)?;
    let mut bars = live::bars(&live);
    bars.extend(saved::bars(&files));
    bars.extend(compiling::bars(&compiling));

    let (rounds, packets_in_file) = (plan.rounds, plan.packets);
    let report =
        Report { machine, libpcap, weir, rounds, live, packets_in_file, files, compiling, bars, faults };
    report.print().map_err(failed("write to standard output"))?;
    if let Some((path, file)) = json {
        save(path, file, &serde_json::to_string_pretty(&report).map_err(failed("make JSON"))?)?;
    }
    believable(report.wrong())
}

impl Report {
    fn print(&self) -> io::Result<()> {
        let mut tables = live::tables(&self.live);
        tables.extend(saved::table(&self.files, self.packets_in_file));
        tables.extend(compiling::table(&self.compiling));
        tables.push(("Targets".to_owned(), bar_rows(&self.bars)));
        let mut stdout = io::stdout().lock();
        for (title, rows) in tables {
            write!(stdout, "\n{title}\n\n{}", markdown(&rows))?;
        }
        stdout.flush()
    }

    /// Measurements that cannot be believed, and those that there are not.
    fn wrong(&self) -> usize {
        let live = self.live.iter().filter(|sample| !sample.turn.problems.is_empty()).count();
        let files = self.files.iter().filter(|sample| sample.problem.is_some()).count();
        let compiling = self.compiling.iter().filter(|sample| sample.problem.is_some()).count();
        live + files + compiling + self.faults.len()
    }
}
