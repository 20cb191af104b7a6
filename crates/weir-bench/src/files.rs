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
use tempfile::TempDir;
use weir_lab::Traffic;

use crate::experiment::{
    self, About, Experiment, Judged, Measure, Outcome, Role, Series, Settings, Taken, Turn,
};
use crate::failure::{Failure, failed};
use crate::process::Memory;
use crate::program::{WEIR, find, missing};
use crate::wanted::Wanted;
use crate::witness::Witness;
use crate::{tidy, units};

#[derive(Debug, Args)]
pub(super) struct ReadArgs {
    #[command(flatten)]
    pub(super) how: experiment::How,

    /// Number of 60-byte packets in the file; default: 5,000,000, with --quick 100,000.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..=20_000_000))]
    packets: Option<u64>,

    /// Directory for files; should be a tmpfs with 3 GiB to spare.
    #[arg(long, value_name = "DIR", default_value = "/dev/shm")]
    dir: PathBuf,
}

impl ReadArgs {
    pub(super) fn settings(&self) -> Settings {
        Settings { packets: self.packets, dir: self.dir.clone(), ..self.how.settings() }
    }
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
    /// A name as `find` takes it.
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
    /// It is asked for its memory only.
    Memory,
}

/// A filter that none of the packets matches, and one that all do.
const NONE: &str = "tcp port 443 and net 10.0.0.0/8";
const ALL: &str = "udp and not port 443";

const CONTESTANTS: [Contestant; 19] = {
    use Answer::{File, Memory, Number, Status, Taken};
    const fn weir(name: &'static str, arguments: &'static [&'static str], answer: Answer) -> Contestant {
        Contestant { name, program: WEIR, package: "", arguments, answer }
    }
    const fn tcpdump(name: &'static str, arguments: &'static [&'static str], answer: Answer) -> Contestant {
        Contestant { name, program: "tcpdump", package: "tcpdump", arguments, answer }
    }
    const fn bytes(name: &'static str, arguments: &'static [&'static str]) -> Contestant {
        Contestant { name, program: "dd", package: "coreutils", arguments, answer: Status }
    }
    [
        bytes("bytes-pcap", &["if={pcap}", "of=/dev/null", "bs=1M"]),
        weir("weir-count-pcap", &["read", "--count", "{pcap}"], Number),
        tcpdump("tcpdump-pcap", &["-r", "{pcap}", "-w", "/dev/null"], Status),
        bytes("bytes-pcapng", &["if={pcapng}", "of=/dev/null", "bs=1M"]),
        weir("weir-count-pcapng", &["read", "--count", "{pcapng}"], Number),
        tcpdump("tcpdump-pcapng", &["-r", "{pcapng}", "-w", "/dev/null"], Status),
        weir("weir-none-pcap", &["read", "{pcap}", "-w", "/dev/null", "-f", NONE], Taken(false)),
        tcpdump("tcpdump-none-pcap", &["-r", "{pcap}", "-w", "/dev/null", NONE], Status),
        weir("weir-all-pcap", &["read", "{pcap}", "-w", "/dev/null", "-f", ALL], Taken(true)),
        tcpdump("tcpdump-all-pcap", &["-r", "{pcap}", "-w", "/dev/null", ALL], Status),
        weir("weir-none-pcapng", &["read", "{pcapng}", "-w", "/dev/null", "-f", NONE], Taken(false)),
        tcpdump("tcpdump-none-pcapng", &["-r", "{pcapng}", "-w", "/dev/null", NONE], Status),
        weir("weir-all-pcapng", &["read", "{pcapng}", "-w", "/dev/null", "-f", ALL], Taken(true)),
        tcpdump("tcpdump-all-pcapng", &["-r", "{pcapng}", "-w", "/dev/null", ALL], Status),
        weir("weir-convert", &["read", "{pcapng}", "--format", "pcap", "-w", "{out}"], File),
        tcpdump("tcpdump-convert", &["-r", "{pcapng}", "-w", "{out}", "-Z", "root"], File),
        Contestant {
            name: "editcap-convert",
            program: "editcap",
            package: "wireshark-common",
            arguments: &["-F", "pcap", "{pcapng}", "{out}"],
            answer: File,
        },
        Contestant {
            name: "tshark-convert",
            program: "tshark",
            package: "tshark",
            arguments: &["-r", "{pcapng}", "-F", "pcap", "-w", "{out}"],
            answer: File,
        },
        weir(LONG_FILE, &["read", "--count", "{long}"], Memory),
    ]
};

/// Who reads the long file.
const LONG_FILE: &str = "weir-count-long";

/// Pairs of which the first may take so many times as long as the second, or has to.
const TARGETS: [(&str, Wanted, [&str; 2]); 11] = {
    use Wanted::{AtLeast, AtMost};
    [
        ("pcap: count, faster than tcpdump -w /dev/null", AtLeast(5.0), ["tcpdump-pcap", "weir-count-pcap"]),
        (
            "pcapng: count, faster than tcpdump -w /dev/null",
            AtLeast(5.0),
            ["tcpdump-pcapng", "weir-count-pcapng"],
        ),
        ("pcap: count, as long as reading the bytes", AtMost(2.0), ["weir-count-pcap", "bytes-pcap"]),
        ("pcapng: count, as long as reading the bytes", AtMost(2.0), ["weir-count-pcapng", "bytes-pcapng"]),
        (
            "pcap: a filter that nothing matches, faster than tcpdump",
            AtLeast(3.0),
            ["tcpdump-none-pcap", "weir-none-pcap"],
        ),
        (
            "pcapng: a filter that nothing matches, faster than tcpdump",
            AtLeast(3.0),
            ["tcpdump-none-pcapng", "weir-none-pcapng"],
        ),
        (
            "pcap: a filter that all match, faster than tcpdump",
            AtLeast(5.0),
            ["tcpdump-all-pcap", "weir-all-pcap"],
        ),
        (
            "pcapng: a filter that all match, faster than tcpdump",
            AtLeast(5.0),
            ["tcpdump-all-pcapng", "weir-all-pcapng"],
        ),
        ("pcapng to pcap, faster than tcpdump", AtLeast(1.0), ["tcpdump-convert", "weir-convert"]),
        ("pcapng to pcap, faster than editcap", AtLeast(3.0), ["editcap-convert", "weir-convert"]),
        ("pcapng to pcap, faster than tshark", AtLeast(3.0), ["tshark-convert", "weir-convert"]),
    ]
};

/// The files, gone when this is dropped.
struct Files {
    dir: TempDir,
    packets: u64,
    traffic: Traffic,
    expected: Witness,
}

/// Writes the files.
pub(super) fn make(settings: &Settings) -> Result<Box<dyn Experiment>, Failure> {
    settings.without_cards("read")?;
    let packets = settings.packets.unwrap_or(if settings.quick { 100_000 } else { 5_000_000 });
    Ok(Box::new(Files::make(&settings.dir, packets).map_err(failed("create the capture files"))?))
}

impl Experiment for Files {
    fn about(&self) -> About {
        let series = |one: &Contestant| {
            let role = match one.program {
                WEIR => Role::Ours,
                "dd" => Role::Limit,
                _ => Role::Peer,
            };
            Series::new(one.name, one.name, role)
        };
        let absent = CONTESTANTS.iter().filter(|one| one.path().is_none());
        let why = |one: &Contestant| [one.name.to_owned(), missing(one.program, one.package)];
        let faster = TARGETS.iter().filter(|(_, wanted, _)| matches!(wanted, Wanted::AtLeast(_)));
        About {
            name: "read".to_owned(),
            title: "Reading files".to_owned(),
            method: format!(
                "Files of {} packets of {SIZE} bytes in memory. All do the same work: count, convert, or write to /dev/null what \
                 matches a filter. A file that was written is compared packet by packet. The long file is {LONG} times as long.",
                units::grouped(self.packets)
            ),
            measures: vec![
                Measure::lower("time", "time for the file", "s"),
                Measure::higher("rate", "packets read a second", "Mpps"),
                Measure::lower("memory", "most memory while reading", "MiB"),
            ],
            series: CONTESTANTS.iter().map(series).collect(),
            missing: absent.map(why).collect(),
            versus: faster.map(|(.., [slow, fast])| [fast, slow].map(|name| (*name).to_owned())).collect(),
            ..About::default()
        }
    }

    fn turns(&self) -> Vec<Turn> {
        let present = CONTESTANTS.iter().filter(|contestant| contestant.path().is_some());
        present.map(|contestant| Turn::of(contestant.name, None)).collect()
    }

    fn take(&mut self, turn: &Turn, _round: u32) -> Result<Taken, Failure> {
        let contestant = CONTESTANTS.iter().find(|contestant| contestant.name == turn.series);
        let contestant = contestant.expect("turns are of contestants");
        let mut taken = Taken::default();
        if contestant.answer == Answer::Memory {
            taken.add(turn, "memory", self.memory(contestant)? as f64 / f64::from(1 << 20));
            return Ok(taken);
        }
        let (seconds, problem) = self.sample(contestant)?;
        // A time for the wrong work is no time.
        match problem {
            Some(problem) => taken.problems.push(problem),
            None => {
                taken.add(turn, "time", seconds);
                taken.add(turn, "rate", self.packets as f64 / seconds / 1e6);
            }
        }
        Ok(taken)
    }

    fn bars(&self, outcome: &Outcome) -> Vec<Judged> {
        let times = |(name, wanted, pair): (&str, Wanted, [&str; 2])| {
            Judged::new(name, wanted, "times", outcome.ratios(pair, "time", None))
        };
        let peaks = outcome.values_of(LONG_FILE, "memory", None);
        let memory = Judged::worst("memory while reading a long file", 64.0, "MiB", peaks);
        TARGETS.into_iter().map(times).chain([memory]).collect()
    }
}

impl Contestant {
    fn path(&self) -> Option<PathBuf> {
        find(self.program)
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
                let word = word.replace("{pcapng}", &file("pcapng")).replace("{pcap}", &file("pcap"));
                word.replace("{long}", &file("long")).into()
            }
        };
        command.args(contestant.arguments.iter().map(place));
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        Ok(command)
    }

    /// How many seconds it took, and what is wrong with the answer.
    fn sample(&self, contestant: &Contestant) -> Result<(f64, Option<String>), Failure> {
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
        Ok((seconds, problem))
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
            Answer::Status | Answer::Memory => None,
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
    fn memory(&self, contestant: &Contestant) -> Result<u64, Failure> {
        let written = write_pcap(&self.path("long"), &self.traffic, self.packets, LONG);
        written.map_err(failed("create the long file"))?;
        let mut command = self.command(contestant)?;
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

/// Returns the bytes of these numbers.
pub(super) fn words(words: &[u32]) -> Vec<u8> {
    words.iter().flat_map(|word| word.to_ne_bytes()).collect()
}
