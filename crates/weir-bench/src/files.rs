//! `weir-bench read`: how fast capture files are read and rewritten, side by side with tcpdump, tshark and editcap, and with
//! reading the bytes alone.
//!
//! All programs get the same file of 60-byte packets, in memory (a tmpfs), and do the same work: count, convert, or write to
//! /dev/null what matches a filter. Files that are written
//! are read again, packet by packet, by a reader that shares nothing with weir's.

use std::fs::{self, File};
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use clap::Args;
use rustix::process::Pid;
use serde::Serialize;
use tempfile::TempDir;
use weir_lab::Traffic;

use super::bars::{Bar, Wanted};
use super::machine::Machine;
use super::process::Memory;
use super::program::WEIR;
use super::spread::Spread;
use super::table::{bar_rows, table};
use super::witness::Witness;
use super::{believable, create, failed, save};
use crate::failure::Failure;
use crate::{style, tidy, units};

const EXAMPLES: &str = "\
Examples:
  weir-bench read --json read.json
        Run three rounds with five million packets (about two minutes, with 3 GiB of
        memory for the files).
  weir-bench read --packets 50000 --rounds 1
        Check that the benchmark works; the rates mean little.";

#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(super) struct ReadArgs {
    /// Number of 60-byte packets in the file.
    #[arg(long, value_name = "N", default_value = "5000000", value_parser = clap::value_parser!(u64).range(1..=20_000_000))]
    packets: u64,

    /// Number of rounds.
    #[arg(long, value_name = "N", default_value = "3", value_parser = clap::value_parser!(u32).range(1..=1000))]
    rounds: u32,

    /// Directory for files; should be a tmpfs.
    #[arg(long, value_name = "DIR", default_value = "/dev/shm")]
    dir: PathBuf,

    /// Write all measurements to FILE.
    #[arg(long, value_name = "FILE")]
    json: Option<PathBuf>,
}

/// Bytes of a frame.
pub(super) const SIZE: u32 = 60;
/// The time of the first packet, and from one to the next, nanoseconds.
const BEGIN: u64 = 1_700_000_000_000_000_000;
const STEP: u64 = 1_000;
/// The long file, for the memory that reading takes: this many times the packets.
const LONG: usize = 6;
/// No program takes longer.
const PATIENCE: Duration = Duration::from_secs(300);

/// A program and what it does. `{pcap}`, `{pcapng}` and `{out}` stand for files.
#[derive(Debug)]
struct Contestant {
    name: &'static str,
    /// None is this program itself.
    program: &'static str,
    package: &'static str,
    arguments: &'static [&'static str],
    answer: Answer,
}

/// How it is known that the work was done.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Answer {
    /// It ends well.
    Status,
    /// It prints the number of packets.
    Number,
    /// It writes a file with all packets as they were.
    File,
    /// It says that it has written all packets, or none.
    Taken(bool),
}

/// A filter that none of the packets matches, and one that all do.
const NONE: &str = "tcp port 443 and net 10.0.0.0/8";
const ALL: &str = "udp and not port 443";

const CONTESTANTS: [Contestant; 18] = [
    contestant("bytes-pcap", "dd", "coreutils", &["if={pcap}", "of=/dev/null", "bs=1M"], Answer::Status),
    contestant("weir-count-pcap", WEIR, "", &["read", "--count", "{pcap}"], Answer::Number),
    contestant("tcpdump-pcap", "tcpdump", "tcpdump", &["-r", "{pcap}", "-w", "/dev/null"], Answer::Status),
    contestant("bytes-pcapng", "dd", "coreutils", &["if={pcapng}", "of=/dev/null", "bs=1M"], Answer::Status),
    contestant("weir-count-pcapng", WEIR, "", &["read", "--count", "{pcapng}"], Answer::Number),
    contestant(
        "tcpdump-pcapng",
        "tcpdump",
        "tcpdump",
        &["-r", "{pcapng}", "-w", "/dev/null"],
        Answer::Status,
    ),
    contestant(
        "weir-none-pcap",
        WEIR,
        "",
        &["read", "{pcap}", "-w", "/dev/null", "-f", NONE],
        Answer::Taken(false),
    ),
    contestant(
        "tcpdump-none-pcap",
        "tcpdump",
        "tcpdump",
        &["-r", "{pcap}", "-w", "/dev/null", NONE],
        Answer::Status,
    ),
    contestant(
        "weir-all-pcap",
        WEIR,
        "",
        &["read", "{pcap}", "-w", "/dev/null", "-f", ALL],
        Answer::Taken(true),
    ),
    contestant(
        "tcpdump-all-pcap",
        "tcpdump",
        "tcpdump",
        &["-r", "{pcap}", "-w", "/dev/null", ALL],
        Answer::Status,
    ),
    contestant(
        "weir-none-pcapng",
        WEIR,
        "",
        &["read", "{pcapng}", "-w", "/dev/null", "-f", NONE],
        Answer::Taken(false),
    ),
    contestant(
        "tcpdump-none-pcapng",
        "tcpdump",
        "tcpdump",
        &["-r", "{pcapng}", "-w", "/dev/null", NONE],
        Answer::Status,
    ),
    contestant(
        "weir-all-pcapng",
        WEIR,
        "",
        &["read", "{pcapng}", "-w", "/dev/null", "-f", ALL],
        Answer::Taken(true),
    ),
    contestant(
        "tcpdump-all-pcapng",
        "tcpdump",
        "tcpdump",
        &["-r", "{pcapng}", "-w", "/dev/null", ALL],
        Answer::Status,
    ),
    contestant(
        "weir-convert",
        WEIR,
        "",
        &["read", "{pcapng}", "--format", "pcap", "-w", "{out}"],
        Answer::File,
    ),
    contestant(
        "tcpdump-convert",
        "tcpdump",
        "tcpdump",
        &["-r", "{pcapng}", "-w", "{out}", "-Z", "root"],
        Answer::File,
    ),
    contestant(
        "editcap-convert",
        "editcap",
        "wireshark-common",
        &["-F", "pcap", "{pcapng}", "{out}"],
        Answer::File,
    ),
    contestant(
        "tshark-convert",
        "tshark",
        "tshark",
        &["-r", "{pcapng}", "-F", "pcap", "-w", "{out}"],
        Answer::File,
    ),
];

const fn contestant(
    name: &'static str,
    program: &'static str,
    package: &'static str,
    arguments: &'static [&'static str],
    answer: Answer,
) -> Contestant {
    Contestant { name, program, package, arguments, answer }
}

/// One turn.
#[derive(Debug, Serialize)]
struct Sample {
    contestant: &'static str,
    round: u32,
    seconds: f64,
    /// What is not as it has to be.
    problem: Option<String>,
}

#[derive(Debug, Serialize)]
struct Report {
    machine: Machine,
    packets: u64,
    rounds: u32,
    samples: Vec<Sample>,
    /// Most memory that reading the long file took, bytes.
    memory_peak: Option<u64>,
    bars: Vec<Bar>,
}

/// The files, gone when this is dropped.
struct Files {
    dir: TempDir,
    packets: u64,
    traffic: Traffic,
    expected: Witness,
}

/// Runs the command.
pub(super) fn run(args: &ReadArgs) -> Result<(), Failure> {
    let json = create(args.json.as_deref())?;
    let machine = Machine::describe(&args.dir);
    style::say(format_args!("{machine}"));
    let files = Files::make(&args.dir, args.packets).map_err(failed("create the capture files"))?;
    let mut report = Report {
        machine,
        packets: args.packets,
        rounds: args.rounds,
        samples: Vec::new(),
        memory_peak: None,
        bars: Vec::new(),
    };
    for contestant in &CONTESTANTS {
        if contestant.path().is_none() {
            let name = contestant.program;
            style::say(format_args!("{name} is not installed (apt-get install {})", contestant.package));
        }
    }
    let turns = (1..=args.rounds).flat_map(|round| CONTESTANTS.iter().map(move |c| (round, c)));
    for (round, contestant) in turns.filter(|(_, contestant)| contestant.path().is_some()) {
        let sample = files.sample(contestant, round)?;
        let trouble = sample.problem.as_deref().unwrap_or_default();
        style::say(format_args!(
            "[{round}] {:<18} {:>7.3} s  {}",
            sample.contestant,
            sample.seconds,
            style::stderr().red(trouble)
        ));
        report.samples.push(sample);
    }
    report.memory_peak = Some(files.memory()?);
    report.judge();
    report.print().map_err(failed("write to standard output"))?;
    if let Some((path, file)) = json {
        save(path, file, &serde_json::to_string_pretty(&report).map_err(failed("make JSON"))?)?;
    }
    believable(report.samples.iter().filter(|sample| sample.problem.is_some()).count())
}

impl Contestant {
    fn path(&self) -> Option<PathBuf> {
        super::program::find(self.program)
    }
}

impl Files {
    fn make(dir: &Path, packets: u64) -> io::Result<Self> {
        let dir = tidy::folder_in(dir)?;
        let traffic = Traffic::new(SIZE as usize).map_err(io::Error::other)?;
        let expected = Witness::of(&traffic, 0..packets);
        let files = Self { dir, packets, traffic, expected };
        write_pcap(&files.path("pcap"), &files.traffic, packets, 1)?;
        files.write_pcapng()?;
        Ok(files)
    }

    fn path(&self, name: &str) -> PathBuf {
        self.dir.path().join(name)
    }

    fn write_pcapng(&self) -> io::Result<()> {
        let mut file = BufWriter::with_capacity(1 << 20, File::create(self.path("pcapng"))?);
        file.write_all(&words(&[0x0a0d_0d0a, 28, 0x1a2b_3c4d, 1, u32::MAX, u32::MAX, 28]))?;
        // Interface description with nanoseconds (if_tsresol 9).
        file.write_all(&words(&[1, 32, 1, 262_144, 0x0001_0009, 9, 0, 32]))?;
        let total = 32 + SIZE;
        for number in 0..self.packets {
            let time = BEGIN + number * STEP;
            let half = |bits: u64| u32::try_from(bits & u64::from(u32::MAX)).unwrap_or(0);
            let (high, low) = (half(time >> 32), half(time));
            file.write_all(&words(&[6, total, 0, high, low, SIZE, SIZE]))?;
            file.write_all(&self.traffic.frame(number))?;
            file.write_all(&words(&[total]))?;
        }
        file.into_inner()?.sync_data()
    }

    fn command(&self, contestant: &Contestant) -> Result<Command, Failure> {
        let mut command = Command::new(contestant.path().unwrap_or_default());
        let place = |word: &&str| match *word {
            "{out}" => self.path("out").into_os_string(),
            word => {
                let file = |name: &str| self.path(name).display().to_string();
                word.replace("{pcapng}", &file("pcapng")).replace("{pcap}", &file("pcap")).into()
            }
        };
        command.args(contestant.arguments.iter().map(place));
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        Ok(command)
    }

    fn sample(&self, contestant: &Contestant, round: u32) -> Result<Sample, Failure> {
        let out = self.path("out");
        let _absent = fs::remove_file(&out);
        let start = Instant::now();
        let output =
            self.command(contestant)?.output().map_err(failed(format_args!("run {}", contestant.name)))?;
        let seconds = start.elapsed().as_secs_f64();
        let problem = if output.status.success() {
            let [stdout, stderr] = [&output.stdout, &output.stderr].map(|text| String::from_utf8_lossy(text));
            self.check(contestant.answer, &stdout, &stderr, &out)
        } else {
            Some(format!("{}: {}", output.status, String::from_utf8_lossy(&output.stderr).trim()))
        };
        Ok(Sample { contestant: contestant.name, round, seconds, problem })
    }

    /// What is wrong with the answer.
    fn check(&self, answer: Answer, stdout: &str, stderr: &str, out: &Path) -> Option<String> {
        match answer {
            Answer::Taken(all) => {
                let (taken, left) = if all { (self.packets, 0) } else { (0, self.packets) };
                let wanted =
                    format!("{} packets ({} filtered out)", units::grouped(taken), units::grouped(left));
                (!stderr.contains(&wanted)).then(|| format!("reported: {}", stderr.trim()))
            }
            Answer::Status => None,
            Answer::Number => {
                let counted = stdout.split_whitespace().next().and_then(|word| word.parse::<u64>().ok());
                (counted != Some(self.packets)).then(|| format!("reported: {}", stdout.trim()))
            }
            Answer::File => match File::open(out).and_then(Witness::read) {
                Ok(witness) if witness == self.expected => None,
                Ok(witness) => Some(format!("{} packets, or different bytes", witness.packets)),
                Err(error) => Some(error.to_string()),
            },
        }
    }

    /// The most memory that counting the packets of a long file takes.
    fn memory(&self) -> Result<u64, Failure> {
        let written = write_pcap(&self.path("long"), &self.traffic, self.packets, LONG);
        written.map_err(failed("create the long file"))?;
        let mut command = Command::new(super::program::find(WEIR).unwrap_or_default());
        command.args(["read", "--count"]).arg(self.path("long")).stdin(Stdio::null());
        command.stdout(Stdio::null()).stderr(Stdio::null());
        let child = command.spawn().map_err(failed("start weir read"))?;
        let peak = watch(child).map_err(failed("watch weir read"))?;
        let _gone = fs::remove_file(self.path("long"));
        Ok(peak)
    }
}

/// The last peak that was seen before the program ended.
fn watch(mut child: Child) -> io::Result<u64> {
    let (start, pid, mut peak) = (Instant::now(), Pid::from_child(&child), 0);
    while child.try_wait()?.is_none() {
        if let Ok(memory) = Memory::of(pid) {
            peak = peak.max(memory.peak);
        }
        if start.elapsed() > PATIENCE {
            child.kill()?;
            return Err(io::ErrorKind::TimedOut.into());
        }
        thread::sleep(Duration::from_millis(2));
    }
    Ok(peak)
}

/// Writes the first packets of `traffic`, `times` times.
pub(super) fn write_pcap(path: &Path, traffic: &Traffic, packets: u64, times: usize) -> io::Result<()> {
    let mut file = BufWriter::with_capacity(1 << 20, File::create(path)?);
    file.write_all(&words(&[0xa1b2_c3d4, 0x0004_0002, 0, 0, 262_144, 1]))?;
    for _ in 0..times {
        for number in 0..packets {
            let time = BEGIN + number * STEP;
            let seconds = u32::try_from(time / 1_000_000_000).unwrap_or(u32::MAX);
            let micro = u32::try_from(time % 1_000_000_000 / 1_000).unwrap_or(0);
            let size = u32::try_from(traffic.size()).unwrap_or(u32::MAX);
            file.write_all(&words(&[seconds, micro, size, size]))?;
            file.write_all(&traffic.frame(number))?;
        }
    }
    file.into_inner()?.sync_data()
}

fn words(words: &[u32]) -> Vec<u8> {
    words.iter().flat_map(|word| word.to_ne_bytes()).collect()
}

impl Report {
    /// How many times as long `slow` takes as `fast`, round by round.
    fn ratio(&self, slow: &str, fast: &str) -> Option<Spread> {
        let seconds = |name: &str, round| {
            let mut turns = self.samples.iter().filter(|s| s.problem.is_none());
            turns.find(|s| s.contestant == name && s.round == round).map(|s| s.seconds)
        };
        let rounds =
            (1..=self.rounds).filter_map(|round| Some(seconds(slow, round)? / seconds(fast, round)?));
        Spread::of(rounds)
    }

    fn judge(&mut self) {
        use Wanted::{AtLeast, AtMost};
        let bar = |name, wanted, slow, fast| Bar::new(name, None, wanted, "times", self.ratio(slow, fast));
        let mut bars = vec![
            bar(
                "pcap: count, faster than tcpdump -w /dev/null",
                AtLeast(5.0),
                "tcpdump-pcap",
                "weir-count-pcap",
            ),
            bar(
                "pcapng: count, faster than tcpdump -w /dev/null",
                AtLeast(5.0),
                "tcpdump-pcapng",
                "weir-count-pcapng",
            ),
            bar("pcap: count, as long as reading the bytes", AtMost(2.0), "weir-count-pcap", "bytes-pcap"),
            bar(
                "pcapng: count, as long as reading the bytes",
                AtMost(2.0),
                "weir-count-pcapng",
                "bytes-pcapng",
            ),
            bar(
                "pcap: a filter that nothing matches, faster than tcpdump",
                AtLeast(3.0),
                "tcpdump-none-pcap",
                "weir-none-pcap",
            ),
            bar(
                "pcapng: a filter that nothing matches, faster than tcpdump",
                AtLeast(3.0),
                "tcpdump-none-pcapng",
                "weir-none-pcapng",
            ),
            bar(
                "pcap: a filter that all match, faster than tcpdump",
                AtLeast(5.0),
                "tcpdump-all-pcap",
                "weir-all-pcap",
            ),
            bar(
                "pcapng: a filter that all match, faster than tcpdump",
                AtLeast(5.0),
                "tcpdump-all-pcapng",
                "weir-all-pcapng",
            ),
            bar("pcapng to pcap, faster than tcpdump", AtLeast(1.0), "tcpdump-convert", "weir-convert"),
            bar("pcapng to pcap, faster than editcap", AtLeast(3.0), "editcap-convert", "weir-convert"),
            bar("pcapng to pcap, faster than tshark", AtLeast(3.0), "tshark-convert", "weir-convert"),
        ];
        let peak = self.memory_peak.map(|bytes| bytes as f64 / f64::from(1 << 20));
        bars.push(Bar::worst("memory while reading a long file", None, 64.0, "MiB", Spread::of(peak)));
        self.bars = bars;
    }

    fn print(&self) -> io::Result<()> {
        let mut rows = vec![["", "seconds", "min..max", "M packets/s"].map(str::to_owned).to_vec()];
        for contestant in &CONTESTANTS {
            let turns = self.samples.iter().filter(|sample| sample.contestant == contestant.name);
            let Some(Spread { median, min, max }) = Spread::of(turns.map(|sample| sample.seconds)) else {
                rows.push(vec![contestant.name.to_owned(), "not measured".to_owned()]);
                continue;
            };
            rows.push(vec![
                contestant.name.to_owned(),
                format!("{median:.3}"),
                format!("{min:.3}..{max:.3}"),
                format!("{:.1}", self.packets as f64 / median / 1e6),
            ]);
        }
        let mut stdout = io::stdout().lock();
        writeln!(stdout, "\n{} packets of {SIZE} bytes\n{}", units::grouped(self.packets), table(&rows))?;
        write!(stdout, "Targets\n{}", table(&bar_rows(&self.bars)))?;
        stdout.flush()
    }
}
