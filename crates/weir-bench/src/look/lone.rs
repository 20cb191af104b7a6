//! A lone packet: the time from the call that sends it until its line is read from a pipe.

use std::io::{BufRead, BufReader, PipeReader, pipe};
use std::process::Stdio;
use std::sync::mpsc::{Receiver, channel};
use std::thread;
use std::time::{Duration, Instant};

use rustix::thread::{CpuSet, sched_setaffinity};
use serde::Serialize;
use weir_lab::{FrameSender, Traffic};

use super::lines::program;
use super::{Plan, Told};
use crate::bars::{Bar, Wanted};
use crate::failed;
use crate::failure::Failure;
use crate::program::{Program, WEIR};
use crate::sample::{GENERATOR_CPU, Lab};
use crate::spread::{Spread, percentile};

/// Bytes of a frame.
const SIZE: usize = 60;
/// Time between two packets: long enough for everybody to fall asleep.
const SPACING: Duration = Duration::from_millis(10);
/// Packets before those that count.
const WARM_UP: usize = 10;
/// How long a line may take.
const PATIENCE: Duration = Duration::from_secs(10);

/// A program that prints packets at once.
pub(super) struct Contestant {
    name: &'static str,
    pub(super) title: &'static str,
    program: Program,
}

/// weir holds lines back for 2 ms to sort them by time; not so in its second turn.
pub(super) fn contestants() -> [Contestant; 3] {
    let weir = vec!["capture", "-i", "{interface}", "-l", "-n"];
    let unsorted = [&weir[..], &["--order", "none"]].concat();
    let tcpdump = vec!["-i", "{interface}", "--immediate-mode", "-l", "-n", "-Z", "root"];
    [
        Contestant {
            name: "weir",
            title: "lone packet, weir -l",
            program: program(WEIR, "", "; source ", 50, weir),
        },
        Contestant {
            name: "weir-unsorted",
            title: "lone packet, weir, unsorted",
            program: program(WEIR, "", "; source ", 50, unsorted),
        },
        Contestant {
            name: "tcpdump",
            title: "lone packet, tcpdump -l",
            program: program("tcpdump", "tcpdump", "listening on", 50, tcpdump),
        },
    ]
}

/// One turn.
#[derive(Debug, Serialize)]
pub(super) struct Sample {
    contestant: &'static str,
    round: u32,
    /// What a person would type.
    command: String,
    packets: usize,
    p50_ms: f64,
    p99_ms: f64,
    longest_ms: f64,
    pub(super) problem: Option<String>,
}

pub(super) fn measure(
    plan: &Plan,
    lab: &Lab,
    round: u32,
    contestant: &Contestant,
) -> Result<Sample, Failure> {
    let (output, input) = pipe().map_err(failed("create a pipe"))?;
    let port = &lab.pair().rx;
    let reader = contestant.program.start_to(port, None, Stdio::from(input))?;
    let lines = lines(output);
    // A thread of its own, for it stays on its processor.
    let (times, lines) = thread::scope(|scope| {
        let sending = scope.spawn(move || (times(lab, plan.lone, &lines), lines));
        sending.join().expect("sending does not panic")
    });
    let (mut times, mut problem) = times?;
    reader.finish()?;
    // tcpdump says an empty line to Ctrl-C.
    let more = lines.iter().filter(|(_, line)| line != "\n").count();
    if more > 0 {
        problem.get_or_insert_with(|| format!("{more} lines for no packet"));
    }
    times.sort_unstable();
    let ms = |time: Duration| time.as_secs_f64() * 1e3;
    Ok(Sample {
        contestant: contestant.name,
        round,
        command: contestant.program.line(),
        packets: times.len(),
        p50_ms: ms(percentile(&times, 50)),
        p99_ms: ms(percentile(&times, 99)),
        longest_ms: ms(percentile(&times, 100)),
        problem,
    })
}

/// Reads lines until there are no more, with the time of each.
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
    let mut only = CpuSet::new();
    only.set(GENERATOR_CPU as usize);
    sched_setaffinity(None, &only).map_err(failed("pin to one processor"))?;
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

impl Told for Sample {
    fn text(&self) -> String {
        format!("p50 {:.3} ms, p99 {:.3} ms, longest {:.3} ms", self.p50_ms, self.p99_ms, self.longest_ms)
    }

    fn problem(&self) -> Option<&str> {
        self.problem.as_deref()
    }
}

pub(super) fn bars(samples: &[Sample]) -> Vec<Bar> {
    let of = |name: &'static str| samples.iter().filter(move |sample| sample.contestant == name);
    let times = Spread::of(of("weir").filter_map(|ours| {
        let theirs = of("tcpdump").find(|theirs| theirs.round == ours.round)?;
        Some(ours.p99_ms / theirs.p99_ms)
    }));
    let worst = Spread::of(of("weir").map(|sample| sample.p99_ms));
    vec![
        Bar::new("lone packet to line, p99: weir / tcpdump", None, Wanted::AtMost(1.5), "times", times),
        Bar::worst("lone packet to line, p99: weir", None, 20.0, "ms", worst),
    ]
}

/// A table for people.
pub(super) fn table(samples: &[Sample]) -> (String, Vec<Vec<String>>) {
    let mut rows = vec![["", "p50, ms: median (range)", "p99, ms"].map(str::to_owned).to_vec()];
    for contestant in contestants() {
        let spread = |value: fn(&Sample) -> f64| {
            let of = samples.iter().filter(|sample| sample.contestant == contestant.name);
            Spread::of(of.map(value)).map(|spread| format!("{spread:.3}"))
        };
        if let Some((p50, p99)) = spread(|sample| sample.p50_ms).zip(spread(|sample| sample.p99_ms)) {
            rows.push(vec![contestant.program.line().replace("-i IF ", ""), p50, p99]);
        }
    }
    ("A lone packet until its line is read from a pipe".to_owned(), rows)
}
