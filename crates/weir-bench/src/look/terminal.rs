//! What lines on a terminal cost a capture to a file: at the full rate of the smallest frames, without `--print`, with it, and
//! with it while the terminal's output is stopped.

use std::fs::File;
use std::process::Stdio;

use super::Look;
use super::lines::program;
use super::pty::Terminal;
use crate::experiment::{Judged, Outcome, Taken, Turn};
use crate::failure::{Failure, failed};
use crate::peers::leading;
use crate::program::{Counts, Program, WEIR};
use crate::tidy;
use crate::wanted::Wanted;
use crate::witness::Witness;

/// Bytes of a frame.
const SIZE: usize = 60;
/// How many times as long to send as at a rate: some seconds.
const LONGER: u32 = 3;

/// What the terminal does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Output {
    /// Nothing: there is no `--print`.
    Quiet,
    /// Lines that are read as fast as they can be.
    Scrolling,
    /// Lines that nobody reads until the last packet has come.
    Stopped,
}

pub(super) const OUTPUTS: [Output; 3] = [Output::Quiet, Output::Scrolling, Output::Stopped];

impl Output {
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

pub(super) fn measure(look: &Look, output: Output, turn: &Turn) -> Result<Taken, Failure> {
    let lab = &look.lab;
    let file = tidy::file_in(&look.dir).map_err(failed("create a file"))?;
    let (terminal, screen) = Terminal::open().map_err(failed("open a terminal"))?;
    let program = output.program();
    let reader = program.start_to(&lab.pair().rx, Some(file.path()), Stdio::from(screen))?;
    let (traffic, mut generator) = lab.generator(SIZE)?;
    terminal.stop(output == Output::Stopped);
    let sent = generator.send_for(look.duration * LONGER).map_err(failed("send"))?;
    reader.settle()?;
    terminal.stop(false);
    // What the terminal holds is read, then what waits behind it is printed.
    reader.settle()?;
    let counts = reader.finish()?;
    let shown = terminal.finish();
    let witness = File::open(file.path()).and_then(Witness::read).map_err(failed("read the file written"))?;

    let (accepted, written) = (sent.accepted, witness.packets);
    let (share, told) = (written as f64 / accepted.max(1) as f64, shown.lines + shown.not_printed);
    let unaccounted = told.abs_diff(if output == Output::Quiet { 0 } else { written });
    let mut taken = Taken::default();
    for (measure, value) in [
        ("rate", accepted as f64 / sent.elapsed.as_secs_f64() * share / 1e3),
        ("lost", accepted.saturating_sub(written) as f64 * 100.0 / accepted.max(1) as f64),
        ("kernel", sent.cpu_time.as_secs_f64() * 1e9 / accepted.max(1) as f64),
        ("sent", accepted as f64),
        ("written", written as f64),
        ("lines", shown.lines as f64),
        ("not-printed", shown.not_printed as f64),
        ("unaccounted", unaccounted as f64),
    ] {
        taken.add(turn, measure, value);
    }
    let lost = counts.dropped.unwrap_or(0);
    let whole = sent.refused == 0 && written == sent.sequences.end - sent.sequences.start;
    if counts.delivered != written || written + lost != accepted {
        let said = counts.delivered;
        let problem = format!("{said} captured, {written} in the file and {lost} lost of {accepted} packets");
        taken.problems.push(problem);
    } else if whole && witness != Witness::of(&traffic, sent.sequences) {
        taken.problems.push(format!("wrong bytes or order: {witness:?}"));
    } else if unaccounted > 0 {
        let problem =
            format!("{} lines and {} not printed of {written} packets", shown.lines, shown.not_printed);
        taken.problems.push(problem);
    }
    Ok(taken)
}

/// Compared with the turn of the same round that prints nothing.
pub(super) fn bars(outcome: &Outcome) -> Vec<Judged> {
    let [quiet, scrolling, stopped] = OUTPUTS.map(Output::title);
    let ratios = |pair, measure| outcome.ratios(pair, measure, None);
    let more = |name, output| {
        let lost = outcome.added([output, quiet], "lost", None).into_iter().map(|(_, more)| more.max(0.0));
        Judged::worst(name, 0.0, "% of the packets", lost)
    };
    let unaccounted =
        [scrolling, stopped].into_iter().flat_map(|output| outcome.values_of(output, "unaccounted", None));
    let rate = ratios([scrolling, quiet], "rate");
    let rate = Judged::new("file, scrolling / not printed, 60 B", Wanted::AtLeast(0.97), "times", rate);
    vec![
        rate.by_cpu_time(ratios([quiet, scrolling], "kernel")),
        more("file, scrolling: lost beyond not printed, 60 B", scrolling),
        more("file, output stopped: lost beyond not printed, 60 B", stopped),
        Judged::worst("neither a line nor counted, 60 B", 0.0, "packets", unaccounted),
    ]
}
