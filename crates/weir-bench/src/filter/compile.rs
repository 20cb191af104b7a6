//! What compiling takes, in time and memory: each in a process of its own, whose memory is then known.

use std::env;
use std::fmt::Write as _;
use std::io::{self, Write as _};
use std::process::Command;
use std::time::Instant;

use clap::Args;
use rustix::process::getpid;
use serde::{Deserialize, Serialize};
use weir_filter::Dialect;
use weir_filter::emit::ebpf::{self, Context, Ending};
use weir_judge::{Libpcap, Setup};

use super::compile;
use crate::experiment::{Judged, Outcome, Taken, Turn};
use crate::failure::{Failure, failed};
use crate::process::Memory;
use crate::program::succeeded;
use crate::wanted::Wanted;

/// The process that compiles once.
#[derive(Debug, Args)]
pub(crate) struct OnceArgs {
    hosts: u32,
    /// As a set, not as many terms.
    #[arg(long)]
    set: bool,
    #[arg(long)]
    libpcap: bool,
}

/// What one process has measured of itself.
#[derive(Debug, Serialize, Deserialize)]
struct Once {
    milliseconds: f64,
    mebibytes: f64,
}

/// Compiles an expression of many hosts, to eBPF as the kernel gets it, and prints what it took.
pub(crate) fn run_once(args: &OnceArgs) -> Result<(), Failure> {
    let text = hosts(args.hosts, args.set);
    let before = peak()?;
    let begin = Instant::now();
    if args.libpcap {
        let libpcap = Libpcap::open().map_err(Failure::new)?;
        libpcap.compile(&text, &Setup { optimise: true, ..Setup::new(1) }).map_err(Failure::new)?;
    } else {
        let filter = compile(&text, Dialect::Weir, 1).map_err(Failure::new)?;
        let ending = Ending::Return(&[0, 1]);
        let context = Context::Xdp { fragments: true, interface: None };
        ebpf::emit(&filter.graph, &filter.ast.sets, context, ending).map_err(Failure::new)?;
    }
    let milliseconds = begin.elapsed().as_secs_f64() * 1e3;
    let once = Once { milliseconds, mebibytes: peak()? - before };
    let text = serde_json::to_string(&once).map_err(failed("make JSON"))?;
    writeln!(io::stdout().lock(), "{text}").map_err(failed("write to standard output"))
}

/// Hosts that no prefix joins.
fn hosts(count: u32, set: bool) -> String {
    let mut text = String::from(if set { "host in {" } else { "" });
    for number in 0..count {
        let joint = match (number, set) {
            (0, _) => "",
            (_, true) => ", ",
            (_, false) => " or ",
        };
        // Every second address of 10.0.0.0/8.
        let [_, b, c, d] = (number * 2).to_be_bytes();
        let word = if set { "" } else { "host " };
        let _infallible = write!(text, "{joint}{word}10.{b}.{c}.{d}");
    }
    text + if set { "}" } else { "" }
}

/// The most memory that this process has had, in MiB.
fn peak() -> Result<f64, Failure> {
    let memory = Memory::of(getpid()).map_err(failed("read the memory of this process"))?;
    Ok(memory.peak as f64 / f64::from(1 << 20))
}

/// Who compiles how many hosts. libpcap would need minutes and gigabytes for more.
pub(super) const TURNS: [(&str, u32, &[&str]); 3] =
    [(THOUSAND, 1000, &[]), (LIBPCAP, 1000, &["--libpcap"]), (SET, 100_000, &["--set"])];
const THOUSAND: &str = "1000 hosts";
pub(super) const LIBPCAP: &str = "1000 hosts, libpcap";
const SET: &str = "set of 100,000 hosts";

/// Compiles once in a process of its own.
pub(super) fn measure((_, hosts, options): &(&str, u32, &[&str]), turn: &Turn) -> Result<Taken, Failure> {
    let program = env::current_exe().map_err(failed("find this program"))?;
    let mut command = Command::new(&program);
    command.args(["compile-once", &hosts.to_string()]).args(*options);
    let output = succeeded(format_args!("compiling {}", turn.name), command.output())?;
    let once: Once = serde_json::from_slice(&output.stdout).map_err(failed("read the result"))?;
    let mut taken = Taken::default();
    taken.add(turn, "compile", once.milliseconds);
    taken.add(turn, "memory", once.mebibytes);
    Ok(taken)
}

pub(super) fn bars(outcome: &Outcome) -> Vec<Judged> {
    let of = |series, measure| outcome.values_of(series, measure, None);
    vec![
        Judged::new("1000 hosts compiled", Wanted::AtMost(5.0), "ms", of(THOUSAND, "compile")),
        Judged::worst("1000 hosts compiled, memory", 10.0, "MiB", of(THOUSAND, "memory")),
        Judged::new("set of 100,000 hosts compiled", Wanted::AtMost(200.0), "ms", of(SET, "compile")),
    ]
}
