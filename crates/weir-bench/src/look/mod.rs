//! `weir-bench look`: packets on the screen, as lines and objects.
//!
//! ```text
//!  processor 1                                              | processor 0
//!  generator -> veth -> NAPI -> program or packet socket  --|-> weir, tcpdump, tshark -> file, pipe or terminal
//! ```
//!
//! In each round the programs take turns.

mod lines;
mod lone;
mod pty;
mod terminal;

use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::time::Duration;

use clap::{Args, ValueEnum};
use serde::Serialize;

use crate::bars::Bar;
use crate::failure::Failure;
use crate::fault::Fault;
use crate::machine::Machine;
use crate::program::find;
use crate::sample::Lab;
use crate::table::{bar_rows, markdown};
use crate::{believable, create, failed, save, two_processors};
use crate::{style, units};

const EXAMPLES: &str = "\
Examples:
  weir-bench look --json look.json
        Run everything, three rounds (about ten minutes).
  weir-bench look --only lone --rounds 9
        Run selected parts.
  weir-bench look --quick
        Check that the benchmark works; the figures mean little.

Requires root, tcpdump, tshark and two otherwise idle processors. Runs in a private network that is \
removed at the end. Tables are Markdown.";

#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct LookArgs {
    /// Number of rounds; default: 3.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=1000))]
    rounds: Option<u32>,

    /// Sending time at each rate, three times as long with a terminal; default: 1s.
    #[arg(long, value_name = "TIME", value_parser = units::duration)]
    duration: Option<Duration>,

    /// Run only these parts.
    #[arg(long, value_name = "PART,...", value_delimiter = ',')]
    only: Vec<Part>,

    /// Run one short round.
    #[arg(long)]
    quick: bool,

    /// Directory for files; should be a tmpfs with 2 GiB to spare.
    #[arg(long, value_name = "DIR", default_value = "/dev/shm")]
    dir: PathBuf,

    /// Write all measurements to FILE.
    #[arg(long, value_name = "FILE")]
    json: Option<PathBuf>,
}

/// What can be measured alone.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Part {
    /// The highest rate at which every packet gets its line or object in a file.
    Lines,
    /// The time until a lone packet's line is in a pipe.
    Lone,
    /// What a terminal costs a capture to a file.
    Terminal,
}

/// What will be measured.
struct Plan<'a> {
    parts: Vec<Part>,
    rounds: u32,
    duration: Duration,
    /// Steps to the highest rate.
    steps: u32,
    /// Lone packets for each program.
    lone: usize,
    dir: &'a Path,
}

impl<'a> Plan<'a> {
    fn of(args: &'a LookArgs) -> Self {
        let quick = args.quick;
        let turn = Duration::from_millis(if quick { 100 } else { 1000 });
        let parts = if args.only.is_empty() { Part::value_variants().to_vec() } else { args.only.clone() };
        Self {
            parts,
            rounds: args.rounds.unwrap_or(if quick { 1 } else { 3 }),
            duration: args.duration.unwrap_or(turn),
            steps: if quick { 3 } else { 8 },
            lone: if quick { 20 } else { 400 },
            dir: &args.dir,
        }
    }

    /// Whether all programs are there that take part.
    fn programs(&self) -> Result<(), Failure> {
        let compared = self.parts.iter().any(|part| *part != Part::Terminal);
        for (program, taking_part) in [("tcpdump", compared), ("tshark", self.parts.contains(&Part::Lines))] {
            if taking_part && find(program).is_none() {
                return Err(Failure::new(format_args!("cannot find {program}: it is not installed"))
                    .hint(format!("apt-get install {program}")));
            }
        }
        Ok(())
    }
}

#[derive(Debug, Serialize)]
struct Report {
    machine: Machine,
    /// A debug build is many times slower, and no figure of it is to be shown to anybody.
    debug_build: bool,
    rounds: u32,
    lines: Vec<lines::Sample>,
    lone: Vec<lone::Sample>,
    terminal: Vec<terminal::Sample>,
    bars: Vec<Bar>,
    /// Turns that gave no result.
    faults: Vec<Fault>,
}

/// Runs the command.
pub(crate) fn run(args: &LookArgs) -> Result<(), Failure> {
    let json = create(args.json.as_deref())?;
    let plan = Plan::of(args);
    two_processors()?;
    plan.programs()?;
    let debug_build = cfg!(debug_assertions);
    let machine = Machine::describe(plan.dir);
    style::say(format_args!("{machine}"));
    if debug_build {
        let warning = "a debug build: many times slower than weir; the figures mean nothing";
        style::say(format_args!("{}", style::stderr().yellow(warning)));
    }
    let lab = Lab::new()?;
    let mut report = Report {
        machine,
        debug_build,
        rounds: plan.rounds,
        lines: Vec::new(),
        lone: Vec::new(),
        terminal: Vec::new(),
        bars: Vec::new(),
        faults: Vec::new(),
    };
    for round in 1..=plan.rounds {
        report.round(&plan, &lab, round)?;
    }
    report.bars = lines::bars(&report.lines);
    report.bars.extend(lone::bars(&report.lone));
    report.bars.extend(terminal::bars(&report.terminal));
    report.print().map_err(failed("write to standard output"))?;
    if let Some((path, file)) = json {
        save(path, file, &serde_json::to_string_pretty(&report).map_err(failed("make JSON"))?)?;
    }
    believable(report.wrong())
}

impl Report {
    /// A turn that fails does not end the others.
    fn round(&mut self, plan: &Plan, lab: &Lab, round: u32) -> Result<(), Failure> {
        let faults = &mut self.faults;
        if plan.parts.contains(&Part::Lines) {
            let fastest = lines::fastest(lab)?;
            for contestant in lines::contestants() {
                let result = lines::measure(plan, lab, round, &contestant, fastest);
                keep(round, contestant.title, result, &mut self.lines, faults);
            }
        }
        if plan.parts.contains(&Part::Lone) {
            for contestant in lone::contestants() {
                let result = lone::measure(plan, lab, round, &contestant);
                keep(round, contestant.title, result, &mut self.lone, faults);
            }
        }
        if plan.parts.contains(&Part::Terminal) {
            for way in terminal::WAYS {
                let result = terminal::measure(plan, lab, round, way);
                keep(round, way.title(), result, &mut self.terminal, faults);
            }
        }
        Ok(())
    }

    fn print(&self) -> io::Result<()> {
        let mut tables = vec![
            lines::table(&self.lines),
            lone::table(&self.lone),
            terminal::table(&self.terminal),
            ("Targets".to_owned(), bar_rows(&self.bars)),
        ];
        tables.retain(|(_, rows)| rows.len() > 1);
        let mut stdout = io::stdout().lock();
        for (title, rows) in tables {
            write!(stdout, "\n{title}\n\n{}", markdown(&rows))?;
        }
        stdout.flush()
    }

    /// Measurements that cannot be believed, and those that there are not.
    fn wrong(&self) -> usize {
        let lines = self.lines.iter().map(|sample| &sample.problem);
        let lone = self.lone.iter().map(|sample| &sample.problem);
        let terminal = self.terminal.iter().map(|sample| &sample.problem);
        lines.chain(lone).chain(terminal).flatten().count() + self.faults.len()
    }
}

/// A measurement that can be told in a line.
trait Told {
    fn text(&self) -> String;
    fn problem(&self) -> Option<&str>;
}

/// Says what was measured, or why nothing was, and keeps it.
fn keep<T: Told>(
    round: u32,
    title: &'static str,
    result: Result<T, Failure>,
    samples: &mut Vec<T>,
    faults: &mut Vec<Fault>,
) {
    let red = |text: &str| style::stderr().red(text);
    match result {
        Ok(sample) => {
            let problem = sample.problem().map(red).unwrap_or_default();
            style::say(format_args!("[{round}] {title:<28} {}  {problem}", sample.text()));
            samples.push(sample);
        }
        Err(failure) => {
            style::say(format_args!("[{round}] {title:<28} {}", red(failure.message())));
            faults.push(Fault::new(title, &failure));
        }
    }
}
