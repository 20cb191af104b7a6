//! Compiling a filter of many hosts.

use serde::Deserialize;

use super::Programs;
use super::both::{Library, SYSTEM, WEIR};
use crate::experiment::{Judged, Outcome, Taken, Turn};
use crate::failure::{Failure, failed};
use crate::program::succeeded;
use crate::wanted::Wanted;

/// The target is for this many hosts.
pub(super) const HOSTS: u32 = 1000;

/// The output of the C program.
#[derive(Debug, Deserialize)]
struct Compiled {
    instructions: u32,
    /// Addresses for which the filter is wrong.
    wrong: u32,
    nanoseconds: u64,
    cpu_nanoseconds: u64,
}

pub(super) fn series(hosts: u32, library: &Library) -> String {
    format!("pcap_compile of {hosts} hosts: {}", library.title)
}

/// One compilation.
pub(super) fn measure(programs: &Programs, library: &Library, turn: &Turn) -> Result<Taken, Failure> {
    let (both, hosts) = (&programs.both, programs.hosts);
    let mut command = both.command(&both.counter(), library);
    let output = command.args(["compile", &hosts.to_string()]).output();
    let output = succeeded(format_args!("compiling {hosts} hosts with {}", library.title), output)?;
    let compiled: Compiled = serde_json::from_slice(&output.stdout).map_err(failed("read the result"))?;
    let Compiled { instructions, wrong, nanoseconds, cpu_nanoseconds } = compiled;
    let mut taken = Taken::default();
    taken.add(turn, "compile", nanoseconds as f64 / 1e6);
    taken.add(turn, "compile-cpu", cpu_nanoseconds as f64 / 1e6);
    taken.add(turn, "instructions", f64::from(instructions));
    if wrong > 0 {
        taken.problems.push(format!("the filter errs about {wrong} addresses"));
    }
    Ok(taken)
}

/// The system's one measurement against each of ours. Fewer hosts say nothing about the target.
pub(super) fn bars(outcome: &Outcome) -> Vec<Judged> {
    let ratios = |measure| {
        let [ours, theirs] =
            [&WEIR, &SYSTEM].map(|library| outcome.rounds_of(&series(HOSTS, library), measure, None));
        let theirs = theirs.first().map(|(_, time)| *time);
        ours.into_iter().filter_map(move |(_, ours)| Some(theirs? / ours))
    };
    let name = format!("pcap_compile of {HOSTS} hosts: weir / libpcap");
    let judged = Judged::new(&name, Wanted::AtLeast(1000.0), "times", ratios("compile"));
    vec![judged.by_cpu_time(ratios("compile-cpu"))]
}
