//! All that was measured: as JSON for programs, as tables for people.

use std::fmt::Write as _;
use std::io::{self, Write};
use std::time::Duration;

use serde::Serialize;

use super::bars::{self, Bar};
use super::contestants::{Contestant, Way};
use super::fault::Fault;
use super::machine::Machine;
use super::program::Program;
use super::sample::Sample;
use super::spread::Spread;
use super::table::{bar_rows, table};
use super::trials::Trials;
use crate::failure::Failure;
use crate::{style, units, versions};

/// The whole run. Field names are a promise to scripts.
#[derive(Debug, Serialize)]
pub(super) struct Report {
    pub(super) machine: Machine,
    pub(super) rounds: u32,
    seconds_per_turn: f64,
    pub(super) contestants: Vec<About>,
    pub(super) samples: Vec<Sample>,
    /// Absent where only some contestants were asked for.
    pub(super) trials: Option<Trials>,
    bars: Vec<Bar>,
    /// Turns that gave no result.
    pub(super) faults: Vec<Fault>,
}

/// What a contestant is.
#[derive(Debug, Serialize)]
pub(super) struct About {
    pub(super) name: &'static str,
    pub(super) title: &'static str,
    /// What a person would type; absent where no program runs.
    command: Option<String>,
    /// In the words of the program.
    version: Option<String>,
    /// Why it was not measured.
    pub(super) missing: Option<String>,
}

impl About {
    fn of(contestant: &Contestant) -> Self {
        let program = if let Way::Program(program) = &contestant.way { Some(program) } else { None };
        Self {
            name: contestant.name,
            title: contestant.title,
            command: program.map(Program::line),
            version: program.and_then(Program::path).and_then(|path| versions::first_line(&path)),
            missing: contestant.missing(),
        }
    }
}

impl Report {
    pub(super) fn new(machine: Machine, rounds: u32, turn: Duration, contestants: &[&Contestant]) -> Self {
        Self {
            machine,
            rounds,
            seconds_per_turn: turn.as_secs_f64(),
            contestants: contestants.iter().map(|contestant| About::of(contestant)).collect(),
            samples: Vec::new(),
            trials: None,
            bars: Vec::new(),
            faults: Vec::new(),
        }
    }

    /// Holds the measurements against what is wanted.
    pub(super) fn judge(&mut self) {
        self.bars = bars::judge(&self.samples, self.trials.as_ref());
    }

    /// The sizes of frames that were measured, smallest first.
    pub(super) fn sizes(&self) -> Vec<usize> {
        let mut sizes: Vec<usize> = self.samples.iter().map(|sample| sample.size).collect();
        sizes.sort_unstable();
        sizes.dedup();
        sizes
    }

    /// The turns of one contestant with one size.
    pub(super) fn turns(&self, contestant: &str, size: usize) -> Vec<&Sample> {
        let turns = self.samples.iter().filter(|s| s.contestant == contestant && s.size == size);
        turns.collect()
    }

    /// Prints the tables on standard output.
    pub(super) fn print(&self) -> io::Result<()> {
        let mut text = String::new();
        for size in self.sizes() {
            let _infallible = writeln!(text, "\n{size}-byte frames");
            text.push_str(&table(&self.rows(size)));
        }
        text.push_str("\nTargets\n");
        text.push_str(&table(&bar_rows(&self.bars)));
        let mut stdout = io::stdout().lock();
        stdout.write_all(text.as_bytes())?;
        stdout.flush()
    }

    fn rows(&self, size: usize) -> Vec<Vec<String>> {
        let head = ["", "Mpps", "min..max", "kernel ns", "reader ns", "lost", "bytes"];
        let mut rows = vec![head.map(str::to_owned).to_vec()];
        for about in &self.contestants {
            let turns = self.turns(about.name, size);
            let spread = |value: fn(&Sample) -> f64| Spread::of(turns.iter().map(|sample| value(sample)));
            let Some(rate) = spread(|sample| sample.rate).map(|rate| rate.times(1e-6)) else {
                let why = about.missing.as_deref().unwrap_or("no result");
                rows.push(vec![about.title.to_owned(), why.to_owned()]);
                continue;
            };
            let nanoseconds = |time: Option<Spread>| {
                time.map_or_else(|| "-".to_owned(), |time| format!("{:.0}", time.median))
            };
            let all = |good: fn(&Sample) -> bool| turns.iter().all(|sample| good(sample));
            let bytes = if !all(|sample| sample.problems.is_empty()) {
                "WRONG"
            } else if all(|sample| sample.verified) {
                "right"
            } else {
                "-"
            };
            rows.push(vec![
                about.title.to_owned(),
                format!("{:.2}", rate.median),
                format!("{:.2}..{:.2}", rate.min, rate.max),
                nanoseconds(spread(|sample| sample.kernel_ns)),
                nanoseconds(Spread::of(turns.iter().filter_map(|sample| sample.reader_ns))),
                units::grouped(turns.iter().map(|sample| sample.lost).sum()),
                bytes.to_owned(),
            ]);
        }
        rows
    }

    /// Whether the measurements can be believed. A bar that is not met is an answer, not a failure.
    pub(super) fn verdict(&self) -> Result<(), Failure> {
        let met = self.bars.iter().filter(|bar| bar.met == Some(true)).count();
        let judged = self.bars.iter().filter(|bar| bar.met.is_some()).count();
        style::say(format_args!(
            "\n{met} of {judged} targets met, {} not measured",
            self.bars.len() - judged
        ));
        let problems = self.samples.iter().filter(|sample| !sample.problems.is_empty()).count();
        let trials = self.trials.as_ref();
        let burst = trials.and_then(|trials| trials.burst).is_some_and(|burst| !burst.verified);
        let host = trials.and_then(|trials| trials.host).is_some_and(|host| !host.verified);
        let wrong = problems + usize::from(burst) + usize::from(host);
        if wrong + self.faults.len() == 0 {
            return Ok(());
        }
        for sample in &self.samples {
            for problem in &sample.problems {
                let Sample { contestant, size, round, .. } = sample;
                style::say(format_args!("{contestant}, {size} B, round {round}: {problem}"));
            }
        }
        for Fault { what, message } in &self.faults {
            style::say(format_args!("{what}: {message}"));
        }
        let faults = self.faults.len();
        Err(Failure::new(format_args!("wrong measurements: {wrong}, failed: {faults}; see above")))
    }
}
