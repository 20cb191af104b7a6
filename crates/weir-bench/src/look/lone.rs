//! A lone packet: the time from the call that sends it until its line is read from a pipe.

use std::io::{BufRead, BufReader, PipeReader, pipe};
use std::process::Stdio;
use std::sync::mpsc::{Receiver, channel};
use std::thread;
use std::time::{Duration, Instant};

use weir_lab::{FrameSender, Traffic};

use super::Look;
use super::lines::program;
use crate::experiment::{Judged, Outcome, Taken, Turn};
use crate::failure::{Failure, failed};
use crate::process::pin;
use crate::program::{Program, WEIR};
use crate::sample::{GENERATOR_CPU, Lab};
use crate::spread::percentile;
use crate::wanted::Wanted;

/// Bytes of a frame.
const SIZE: usize = 60;
/// Time between two packets: long enough for all threads to fall asleep.
const SPACING: Duration = Duration::from_millis(10);
/// Packets before those that count.
const WARM_UP: usize = 10;
/// How long a line may take.
const PATIENCE: Duration = Duration::from_secs(10);

/// A program that prints packets at once.
pub(super) struct Contestant {
    pub(super) title: &'static str,
    program: Program,
}

const OURS: &str = "lone packet, weir -l";
const THEIRS: &str = "lone packet, tcpdump -l";

/// weir holds lines back for 2 ms to sort them by time; not so in its second turn.
pub(super) fn contestants() -> [Contestant; 3] {
    let weir = vec!["capture", "-i", "{interface}", "-l", "-n"];
    let unsorted = [&weir[..], &["--order", "none"]].concat();
    let tcpdump = vec!["-i", "{interface}", "--immediate-mode", "-l", "-n", "-Z", "root"];
    [
        Contestant { title: OURS, program: program(WEIR, "", "; source ", 50, weir) },
        Contestant {
            title: "lone packet, weir, unsorted",
            program: program(WEIR, "", "; source ", 50, unsorted),
        },
        Contestant { title: THEIRS, program: program("tcpdump", "tcpdump", "listening on", 50, tcpdump) },
    ]
}

pub(super) fn measure(look: &Look, contestant: &Contestant, turn: &Turn) -> Result<Taken, Failure> {
    let lab = &look.lab;
    let (output, input) = pipe().map_err(failed("create a pipe"))?;
    let port = &lab.pair().rx;
    let reader = contestant.program.start_to(port, None, Stdio::from(input))?;
    let lines = lines(output);
    // A thread of its own, since it stays on its processor.
    let (times, lines) = thread::scope(|scope| {
        let sending = scope.spawn(move || (times(lab, look.lone, &lines), lines));
        sending.join().expect("sending does not panic")
    });
    let (mut times, mut problem) = times?;
    reader.finish()?;
    // tcpdump prints an empty line on Ctrl-C.
    let more = lines.iter().filter(|(_, line)| line != "\n").count();
    if more > 0 {
        problem.get_or_insert_with(|| format!("{more} lines for no packet"));
    }
    times.sort_unstable();
    let mut taken = Taken { problems: problem.into_iter().collect(), ..Taken::default() };
    for (measure, percent) in [("p50", 50), ("p99", 99), ("longest", 100)] {
        taken.add(turn, measure, percentile(&times, percent).as_secs_f64() * 1e3);
    }
    Ok(taken)
}

/// Reads lines, with the time of each, until there are no more.
fn lines(output: PipeReader) -> Receiver<(Instant, String)> {
    let (sender, lines) = channel();
    thread::spawn(move || {
        let mut output = BufReader::new(output);
        let mut line = String::new();
        while output.read_line(&mut line).is_ok_and(|read| read > 0) {
            if sender.send((Instant::now(), std::mem::take(&mut line))).is_err() {
                return;
            }
        }
    });
    lines
}

/// One packet after another, and what is wrong with a line.
fn times(
    lab: &Lab,
    packets: usize,
    lines: &Receiver<(Instant, String)>,
) -> Result<(Vec<Duration>, Option<String>), Failure> {
    pin(GENERATOR_CPU)?;
    let sender = FrameSender::new(&lab.pair().tx).map_err(failed("prepare to send"))?;
    let (mut times, mut problem) = (Vec::new(), None);
    for number in 0..WARM_UP + packets {
        thread::sleep(SPACING);
        // All of one flow, and each with a length of its own, so that its line is known.
        let size = SIZE + number % 16;
        let frame = Traffic::new(size).map_err(failed("describe frames"))?.frame(0);
        let start = Instant::now();
        sender.send(&frame).map_err(failed("send"))?;
        let (end, line) = lines.recv_timeout(PATIENCE).map_err(failed("wait for a line"))?;
        if !line.ends_with(&format!("UDP, length {}\n", size - 14 - 20 - 8)) {
            problem.get_or_insert_with(|| format!("a wrong line: {}", line.escape_debug()));
        }
        if number >= WARM_UP {
            times.push(end.saturating_duration_since(start));
        }
    }
    Ok((times, problem))
}

pub(super) fn bars(outcome: &Outcome) -> Vec<Judged> {
    let times = outcome.ratios([OURS, THEIRS], "p99", None);
    let ours = outcome.values_of(OURS, "p99", None);
    vec![
        Judged::new("lone packet to line, p99: weir / tcpdump", Wanted::AtMost(1.5), "times", times),
        Judged::worst("lone packet to line, p99: weir", 20.0, "ms", ours),
    ]
}
