//! `weir-bench stat`: how fast packets are counted by filter, side by side with an XDP program that only drops, and with
//! libpcap.
//!
//! ```text
//!  processor 1                                    | processor 0
//!  generator -> veth -> NAPI -> program of weir  -|-> weir stat reads counters once a second
//!                            -> packet socket    -|-> a C program counts in user space
//! ```
//!
//! The frames match some filters and not the others. weir's counts have to say so, and be those of all frames sent.

use std::fmt::Write as _;
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};
use std::time::Duration;

use clap::Args;
use serde::{Deserialize, Serialize};
use weir_lab::Verdict;

use crate::bars::{Bar, Wanted};
use crate::contestants::{Contestant, Way};
use crate::experiment::{About, Contest, Experiment, Settings};
use crate::failure::Failure;
use crate::fault::Fault;
use crate::files::SIZE;
use crate::libpcap::counter;
use crate::machine::Machine;
use crate::program::{Counts, Program, WEIR};
use crate::sample::{Lab, Limits, Sample};
use crate::spread::Spread;
use crate::table::{bar_rows, markdown};
use crate::tidy;
use crate::{believable, create, failed, save, two_processors};
use crate::{style, units};

const EXAMPLES: &str = "\
Examples:
  weir-bench stat --json stat.json
        Run everything, five rounds (about two minutes).
  weir-bench stat --quick
        Check that the benchmark works; the rates mean little.

Requires root, two otherwise idle processors, and cc and libpcap-dev, which compile a counting program. Runs in a \
private network that is removed at the end. Tables are Markdown.";

#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(super) struct StatArgs {
    /// Number of rounds; default: 5.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=1000))]
    rounds: Option<u32>,

    /// Sending time per contestant and round; default: 1s.
    #[arg(long, value_name = "TIME", value_parser = units::duration)]
    duration: Option<Duration>,

    /// Run one short round.
    #[arg(long)]
    quick: bool,

    /// Write all measurements to FILE.
    #[arg(long, value_name = "FILE")]
    json: Option<PathBuf>,
}

#[derive(Debug, Serialize)]
struct Report {
    machine: Machine,
    rounds: u32,
    filters: [&'static str; 10],
    samples: Vec<Sample>,
    bars: Vec<Bar>,
    /// Turns that gave no result.
    faults: Vec<Fault>,
}

/// The name of a filter says what it matches of the frames: all of them, or none.
const FILTERS: [&str; 10] = [
    "all of the service: udp dst port 9",
    "all udp: udp",
    "none of dns: port 53",
    "none of the web: tcp port 443",
    "all of the net: dst net 198.19.0.0/16",
    "all to the host: host 198.19.0.1",
    "all small: less 100",
    "none of arp: arp",
    "none of ip6: ip6",
    "none of ping: icmp",
];
/// The first of them, as libpcap gets it.
const FIRST: &str = "udp dst port 9";

const LIMIT: &str = "XDP drop: the limit";
const EXCLUSIVE: [&str; 3] =
    ["weir, exclusive, no filter", "weir, exclusive, 1 filter", "weir, exclusive, 10 filters"];
const STACK: &str = "stack alone";
const PASS: &str = "XDP pass: the limit with a stack";
const XDP: [&str; 2] = ["weir, xdp, 1 filter", "weir, xdp, 10 filters"];
const TC: [&str; 2] = ["weir, tc, 1 filter", "weir, tc, 10 filters"];
const LIBPCAP: &str = "libpcap, 1 filter";

/// All of them, in the order of their turns. `counting`: the C program.
fn contestants(counting: &Path) -> Vec<Contestant> {
    let other = |title, way, stack| Contestant { name: title, title, way, stack };
    let ours = |title, how: &[&'static str], filters: usize| {
        other(title, Way::Program(counting_by(how, &FILTERS[..filters])), !how.contains(&"exclusive"))
    };
    let exclusive: &[&str] = &["--source", "xdp", "--mode", "exclusive"];
    let (xdp, tc): (&[&str], &[&str]) = (&["--source", "xdp"], &["--source", "tc"]);
    let mut libpcap = counter::counting(counting.to_owned(), "loop");
    libpcap.arguments.push(FIRST);
    vec![
        other(LIMIT, Way::Hook(Verdict::Drop), false),
        ours(EXCLUSIVE[0], exclusive, 0),
        ours(EXCLUSIVE[1], exclusive, 1),
        ours(EXCLUSIVE[2], exclusive, 10),
        other(STACK, Way::Stack, true),
        other(PASS, Way::Hook(Verdict::Pass), true),
        ours(XDP[0], xdp, 1),
        ours(XDP[1], xdp, 10),
        ours(TC[0], tc, 1),
        ours(TC[1], tc, 10),
        other(LIBPCAP, Way::Program(libpcap), true),
    ]
}

/// What a user types to count by these filters.
pub(super) fn counting_by(how: &[&'static str], filters: &[&'static str]) -> Program {
    Program {
        name: WEIR,
        package: "",
        place: None,
        environment: Vec::new(),
        arguments: [&["stat", "--json", "-i", "{interface}"], how, filters].concat(),
        ready: "source ",
        batch: Duration::from_millis(50),
        spins: false,
        parse: |stdout, _| Account::read(stdout)?.counted(),
    }
}

/// The last line of `weir stat --json`.
#[derive(Debug, Deserialize)]
struct Account {
    total: Row,
    filters: Vec<Row>,
}

#[derive(Debug, Deserialize)]
struct Row {
    name: Option<String>,
    packets: u64,
    bytes: u64,
}

impl Account {
    fn read(stdout: &str) -> Option<Self> {
        serde_json::from_str(stdout.lines().last()?).ok()
    }

    /// What it has counted; none if a filter has counted what it does not match, or missed what it does.
    fn counted(&self) -> Option<Counts> {
        let Row { packets, bytes, .. } = self.total;
        let right = |row: &Row| {
            let name = row.name.as_deref().unwrap_or_default();
            let due = if name.starts_with("all") { (packets, bytes) } else { (0, 0) };
            (row.packets, row.bytes) == due
        };
        let whole = bytes == packets * u64::from(SIZE);
        (whole && self.filters.iter().all(right)).then(|| Counts::of(packets))
    }
}

/// The same in rounds with the other experiments.
pub(super) fn make(settings: &Settings) -> Result<Box<dyn Experiment>, Failure> {
    let dir = tidy::folder().map_err(failed("create a folder"))?;
    let contestants = contestants(&counter::compile(dir.path())?);
    let about = About {
        name: "stat".to_owned(),
        title: "Counting by filter".to_owned(),
        method: "The frames match some filters and not the others; counts have to say so, and be those of all frames sent. \
                 libpcap's program counts in user space what its filter leaves."
            .to_owned(),
        versus: [XDP[0], TC[0]].map(|ours| [ours, LIBPCAP].map(str::to_owned)).to_vec(),
        ..About::default()
    };
    Ok(Box::new(Contest::new(settings, about, contestants, &[60], dir, bars)?))
}

/// Runs the command.
pub(super) fn run(args: &StatArgs) -> Result<(), Failure> {
    let json = create(args.json.as_deref())?;
    two_processors()?;
    let shm = Path::new("/dev/shm");
    let machine = Machine::describe(shm);
    style::say(format_args!("{machine}"));
    let rounds = args.rounds.unwrap_or(if args.quick { 1 } else { 5 });
    let usual = Duration::from_millis(if args.quick { 50 } else { 1000 });
    let limits = Limits::new(args.duration.unwrap_or(usual), shm)?;
    let dir = tidy::folder().map_err(failed("create a folder"))?;
    let contestants = contestants(&counter::compile(dir.path())?);
    let lab = Lab::new()?;
    let (mut samples, mut faults) = (Vec::new(), Vec::new());
    for round in 1..=rounds {
        for contestant in &contestants {
            let head = format!("[{round}] {:<34}", contestant.title);
            match lab.sample(contestant, SIZE as usize, round, &limits) {
                Ok(sample) => {
                    style::say(format_args!("{head} {sample}"));
                    samples.push(sample);
                }
                Err(failure) => {
                    style::say(format_args!("{head} {}", style::stderr().red(failure.message())));
                    faults.push(Fault::new(contestant.name, &failure));
                }
            }
        }
    }
    let bars = bars(&samples);
    let report = Report { machine, rounds, filters: FILTERS, samples, bars, faults };
    report.print(&contestants).map_err(failed("write to standard output"))?;
    if let Some((path, file)) = json {
        save(path, file, &serde_json::to_string_pretty(&report).map_err(failed("make JSON"))?)?;
    }
    believable(report.faults.len() + report.samples.iter().filter(|s| !s.problems.is_empty()).count())
}

fn of<'a>(samples: &'a [Sample], contestant: &str) -> impl Iterator<Item = &'a Sample> {
    samples.iter().filter(move |sample| sample.contestant == contestant)
}

/// What counting adds to the processor time of a packet that goes through the stack, in nanoseconds.
fn added(sample: &Sample, samples: &[Sample]) -> Option<f64> {
    let stack = of(samples, STACK).find(|stack| stack.round == sample.round)?;
    Some(sample.kernel_ns + sample.reader_ns.unwrap_or(0.0) - stack.kernel_ns)
}

/// Each is a median of ratios within a round.
fn bars(samples: &[Sample]) -> Vec<Bar> {
    let compare =
        |ours: &str, theirs: &str, value: &dyn Fn(&Sample, &Sample) -> Option<f64>| {
            Spread::of(of(samples, ours).filter_map(|ours| {
                value(ours, of(samples, theirs).find(|theirs| theirs.round == ours.round)?)
            }))
        };
    let size = Some(SIZE as usize);
    let rate = |ours: &str, theirs: &str, least| {
        let measured = compare(ours, theirs, &|ours, theirs| Some(ours.rate / theirs.rate));
        Bar::new(&format!("{ours} / {theirs}"), size, Wanted::AtLeast(least), "times", measured)
    };
    let cost = |ours: &str| {
        let ratio = |ours: &Sample, theirs: &Sample| Some(added(ours, samples)? / added(theirs, samples)?);
        let name = format!("CPU time beyond the stack's: {ours} / {LIBPCAP}");
        Bar::new(&name, size, Wanted::AtMost(0.1), "times", compare(ours, LIBPCAP, &ratio))
    };
    vec![
        rate(EXCLUSIVE[1], LIMIT, 0.8),
        rate(EXCLUSIVE[2], LIMIT, 0.6),
        rate(EXCLUSIVE[1], LIBPCAP, 4.0),
        rate(XDP[0], LIBPCAP, 4.0),
        rate(TC[0], LIBPCAP, 4.0),
        cost(XDP[0]),
        cost(TC[0]),
    ]
}

impl Report {
    fn print(&self, contestants: &[Contestant]) -> io::Result<()> {
        let head =
            ["", "Mpps counted: median (range)", "kernel, ns", "program, ns", "beyond the stack, ns", "lost"];
        let mut rows = vec![head.map(str::to_owned).to_vec()];
        for contestant in contestants {
            let turns: Vec<&Sample> = of(&self.samples, contestant.name).collect();
            let number = |values: Option<Spread>| {
                values.map_or_else(|| "-".to_owned(), |values| format!("{:.0}", values.median))
            };
            let rate = Spread::of(turns.iter().map(|turn| turn.rate / 1e6));
            let beyond = turns.iter().filter(|_| contestant.stack && contestant.name != STACK);
            rows.push(vec![
                contestant.title.to_owned(),
                rate.map_or_else(|| "-".to_owned(), |rate| rate.to_string()),
                number(Spread::of(turns.iter().map(|turn| turn.kernel_ns))),
                number(Spread::of(turns.iter().filter_map(|turn| turn.reader_ns))),
                number(Spread::of(beyond.filter_map(|turn| added(turn, &self.samples)))),
                units::grouped(turns.iter().map(|turn| turn.lost).sum()),
            ]);
        }
        let mut text =
            format!("\n{SIZE}-byte frames; processor time is that of a packet\n\n{}", markdown(&rows));
        let _infallible = write!(text, "\nTargets\n\n{}", markdown(&bar_rows(&self.bars)));
        for fault in &self.faults {
            let _infallible = writeln!(text, "{}: {}", fault.what, fault.message);
        }
        let mut stdout = io::stdout().lock();
        stdout.write_all(text.as_bytes())?;
        stdout.flush()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_filter_that_has_counted_wrongly_is_no_count() {
        let counted = |filter: &str| {
            let line = format!(r#"{{"total":{{"name":null,"packets":7,"bytes":420}},"filters":[{filter}]}}"#);
            (counting_by(&[], &[]).parse)(&format!("{{\"type\":\"interval\"}}\n{line}\n"), "")
        };
        let all = r#"{"name":"all udp","packets":7,"bytes":420}"#;
        let none = r#"{"name":"none of dns","packets":0,"bytes":0}"#;
        assert_eq!(counted(&format!("{all},{none}")), Some(Counts::of(7)));
        for wrong in [all.replace('7', "6"), all.replace("420", "421"), none.replace(":0,", ":1,")] {
            assert_eq!(counted(&wrong), None, "{wrong}");
        }
    }

    #[test]
    fn ratios_are_those_of_a_round() {
        let sample = |contestant, round, rate, kernel_ns, reader_ns| Sample {
            rate,
            kernel_ns,
            reader_ns: Some(reader_ns),
            ..Sample::empty(contestant, 60, round)
        };
        let samples = [
            sample(STACK, 1, 5.0, 100.0, 0.0),
            sample(TC[0], 1, 4.0, 110.0, 0.0),
            sample(LIBPCAP, 1, 1.0, 250.0, 50.0),
            sample(TC[0], 2, 8.0, 110.0, 0.0),
        ];
        let bars = bars(&samples);
        let judged = |name: &str| bars.iter().find(|bar| bar.name == name).expect("a bar").judged;
        assert_eq!(judged("weir, tc, 1 filter / libpcap, 1 filter"), Some(4.0));
        let cost = "CPU time beyond the stack's: weir, tc, 1 filter / libpcap, 1 filter";
        assert_eq!(judged(cost), Some(0.05));
        assert_eq!(judged("weir, exclusive, 1 filter / XDP drop: the limit"), None);
    }
}
