//! What lines on a terminal cost a capture to a file: at the full rate of the smallest frames, without `--print`, with it, and
//! with it while the terminal's output is stopped.

use std::fs::File;
use std::process::Stdio;

use serde::Serialize;

use super::lines::program;
use super::pty::Terminal;
use super::{Plan, Told};
use crate::bars::{Bar, Wanted};
use crate::failed;
use crate::failure::Failure;
use crate::peers::leading;
use crate::program::{Counts, Program, WEIR};
use crate::sample::Lab;
use crate::spread::Spread;
use crate::tidy;
use crate::units;
use crate::witness::Witness;

/// Bytes of a frame.
const SIZE: usize = 60;
/// How many times as long is sent as at a rate: some seconds.
const LONGER: u32 = 3;

/// What the terminal has to do.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub(super) enum Way {
    /// Nothing: there is no `--print`.
    Quiet,
    /// Lines that are read as fast as they can be.
    Scrolling,
    /// Lines that nobody reads until the last packet has come.
    Stopped,
}

pub(super) const WAYS: [Way; 3] = [Way::Quiet, Way::Scrolling, Way::Stopped];

impl Way {
    pub(super) fn title(self) -> &'static str {
        match self {
            Self::Quiet => "-w, nothing printed",
            Self::Scrolling => "-w --print, scrolling",
            Self::Stopped => "-w --print, output stopped",
        }
    }

    fn program(self) -> Program {
        let mut arguments = vec!["capture", "-i", "{interface}", "-n", "-B", "64MiB", "-w", "{file}"];
        if self != Self::Quiet {
            arguments.push("--print");
        }
        let parse = |_: &str, stderr: &str| {
            let dropped = Some(leading(stderr, "packet dropped by kernel")?);
            Some(Counts { dropped, ..Counts::of(leading(stderr, "packet captured")?) })
        };
        Program { parse, ..program(WEIR, "", "; source ", 50, arguments) }
    }
}

/// One turn.
#[derive(Debug, Serialize)]
pub(super) struct Sample {
    way: Way,
    round: u32,
    /// What a person would type.
    command: String,
    seconds: f64,
    accepted: u64,
    /// Packets in the file.
    written: u64,
    /// Packets in the file, a second of sending.
    rate: f64,
    /// Processor time of a packet in the kernel: making it, receiving it, and giving it to the program.
    kernel_ns: f64,
    /// Lines on the terminal, and packets that the marks between them stand for.
    lines: u64,
    not_printed: u64,
    terminal_bytes: u64,
    pub(super) problem: Option<String>,
}

impl Sample {
    fn lost_percent(&self) -> f64 {
        self.accepted.saturating_sub(self.written) as f64 * 100.0 / self.accepted.max(1) as f64
    }

    /// Packets about which the terminal says too little or too much.
    fn untold(&self) -> u64 {
        (self.lines + self.not_printed).abs_diff(if self.way == Way::Quiet { 0 } else { self.written })
    }
}

pub(super) fn measure(plan: &Plan, lab: &Lab, round: u32, way: Way) -> Result<Sample, Failure> {
    let file = tidy::file_in(plan.dir).map_err(failed("create a file"))?;
    let (terminal, screen) = Terminal::open().map_err(failed("open a terminal"))?;
    let program = way.program();
    let reader = program.start_to(&lab.pair().rx, Some(file.path()), Stdio::from(screen))?;
    let (traffic, mut generator) = lab.generator(SIZE)?;
    terminal.stop(way == Way::Stopped);
    let sent = generator.send_for(plan.duration * LONGER).map_err(failed("send"))?;
    reader.settle()?;
    terminal.stop(false);
    // What lies in the terminal is read, and then what waits behind that is printed.
    reader.settle()?;
    let counts = reader.finish()?;
    let shown = terminal.finish();
    let witness = File::open(file.path()).and_then(Witness::read).map_err(failed("read the file written"))?;

    let seconds = sent.elapsed.as_secs_f64();
    let mut sample = Sample {
        way,
        round,
        command: program.line(),
        seconds,
        accepted: sent.accepted,
        written: witness.packets,
        rate: sent.accepted as f64 / seconds * witness.packets as f64 / sent.accepted.max(1) as f64,
        kernel_ns: sent.cpu_time.as_secs_f64() * 1e9 / sent.accepted.max(1) as f64,
        lines: shown.lines,
        not_printed: shown.not_printed,
        terminal_bytes: shown.bytes,
        problem: None,
    };
    let lost = counts.dropped.unwrap_or(0);
    let whole = sent.refused == 0 && witness.packets == sent.sequences.end - sent.sequences.start;
    sample.problem = if counts.delivered != witness.packets || witness.packets + lost != sent.accepted {
        let (said, accepted) = (counts.delivered, sent.accepted);
        let written = witness.packets;
        Some(format!("{said} captured, {written} in the file and {lost} lost of {accepted} packets"))
    } else if whole && witness != Witness::of(&traffic, sent.sequences) {
        Some(format!("wrong bytes or order: {witness:?}"))
    } else if sample.untold() > 0 {
        let Sample { lines, not_printed, written, .. } = sample;
        Some(format!("{lines} lines and {not_printed} not printed of {written} packets"))
    } else {
        None
    };
    Ok(sample)
}

impl Told for Sample {
    fn text(&self) -> String {
        let (rate, lost) = (units::scaled(self.rate), self.lost_percent());
        let (lines, not_printed) = (units::grouped(self.lines), units::grouped(self.not_printed));
        format!("{rate}pps to the file, {lost:.2} % lost, {lines} lines, {not_printed} not printed")
    }

    fn problem(&self) -> Option<&str> {
        self.problem.as_deref()
    }
}

pub(super) fn bars(samples: &[Sample]) -> Vec<Bar> {
    let compared = |way: Way, value: fn(&Sample, &Sample) -> f64| {
        let turns = samples.iter().filter(move |sample| sample.way == way);
        Spread::of(turns.filter_map(|turn| {
            let quiet = |other: &&Sample| other.way == Way::Quiet && other.round == turn.round;
            Some(value(turn, samples.iter().find(quiet)?))
        }))
    };
    let lost = |turn: &Sample, quiet: &Sample| (turn.lost_percent() - quiet.lost_percent()).max(0.0);
    let more = |title, way| Bar::worst(title, Some(SIZE), 0.0, "% of the packets", compared(way, lost));
    let rate = compared(Way::Scrolling, |turn, quiet| turn.rate / quiet.rate);
    let undisturbed = compared(Way::Scrolling, |turn, quiet| quiet.kernel_ns / turn.kernel_ns);
    let untold = samples.iter().filter(|sample| sample.way != Way::Quiet);
    let untold = Spread::of(untold.map(|sample| sample.untold() as f64));
    vec![
        Bar {
            undisturbed,
            ..Bar::new("file, scrolling / not printed", Some(SIZE), Wanted::AtLeast(0.97), "times", rate)
        },
        more("file, scrolling: lost beyond not printed", Way::Scrolling),
        more("file, output stopped: lost beyond not printed", Way::Stopped),
        Bar::worst("neither a line nor counted", Some(SIZE), 0.0, "packets", untold),
    ]
}

/// A table for people.
pub(super) fn table(samples: &[Sample]) -> (String, Vec<Vec<String>>) {
    let head = ["", "Mpps to the file: median (range)", "lost, %", "lines", "not printed"];
    let mut rows = vec![head.map(str::to_owned).to_vec()];
    for way in WAYS {
        let spread = |value: fn(&Sample) -> f64| {
            Spread::of(samples.iter().filter(|sample| sample.way == way).map(value))
        };
        if let Some(rate) = spread(|sample| sample.rate / 1e6) {
            let text = |value, digits| spread(value).map_or_else(String::new, |s| format!("{s:.digits$}"));
            rows.push(vec![
                way.title().to_owned(),
                rate.to_string(),
                text(Sample::lost_percent, 2),
                text(|sample| sample.lines as f64, 0),
                text(|sample| sample.not_printed as f64, 0),
            ]);
        }
    }
    (format!("{SIZE}-byte packets at full rate, to a file and to a terminal"), rows)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sample(way: Way, rate: f64, written: u64, lines: u64) -> Sample {
        Sample {
            way,
            round: 1,
            command: String::new(),
            seconds: 1.0,
            accepted: 1000,
            written,
            rate,
            kernel_ns: 1.0,
            lines,
            not_printed: 900,
            terminal_bytes: 0,
            problem: None,
        }
    }

    #[test]
    fn each_turn_is_compared_with_the_one_that_prints_nothing() {
        let samples = [
            sample(Way::Quiet, 10.0, 1000, 0),
            sample(Way::Scrolling, 9.0, 1000, 100),
            sample(Way::Stopped, 9.0, 990, 91),
        ];
        let judged: Vec<_> = bars(&samples).iter().map(|bar| (bar.judged, bar.met)).collect();
        let expected = [
            (Some(0.9), Some(false)),
            (Some(0.0), Some(true)),
            (Some(1.0), Some(false)),
            (Some(1.0), Some(false)),
        ];
        assert_eq!(judged, expected);
        assert!(bars(&samples[1..2]).iter().take(3).all(|bar| bar.met.is_none()));
    }
}
