//! `weir-bench libpcap`: unchanged programs on the system's libpcap and on weir's.
//!
//! ```text
//!  processor 1                                                     | processor 0
//!  generator -> veth -> NAPI -> packet socket, or weir's program  -|-> tcpdump, count: on libpcap, or on weir's library
//! ```
//!
//! In each round the libraries take turns with the same program and the same work. Captures are measured as by
//! `weir-bench capture`: a rate is the number of packets that the program got per second of sending.

pub(crate) mod both;
mod compiling;
pub(crate) mod counter;
mod live;
mod saved;

use std::path::PathBuf;

use clap::{Args, ValueEnum};

use self::both::{Both, Library, SYSTEM};
use crate::experiment::{
    self, About, Entry, Experiment, Judged, Measure, Outcome, Role, Series, Settings, Taken, Turn,
};
use crate::failure::{Failure, failed};
use crate::program::{find, missing};
use crate::sample::{Lab, Limits};

pub(crate) const EXAMPLES: &str = "\
Examples:
  weir-bench libpcap --json libpcap.json
        Run everything, five rounds (about ten minutes, one of them for libpcap to
        compile 1000 hosts once).
  weir-bench libpcap --only count,files --rounds 9
        Run selected parts.
  weir-bench libpcap --quick
        Check that the benchmark works; the rates mean little.

Requires cc and libpcap-dev, which compile a counting program. The parts tcpdump and count require \
root and two otherwise idle processors, and run in a private network that is removed at the end.";

#[derive(Debug, Args)]
pub(crate) struct LibpcapArgs {
    #[command(flatten)]
    timed: experiment::Timed,

    /// Number of 60-byte packets in the file that is read; default: 3,000,000, with --quick 100,000.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..=20_000_000))]
    packets: Option<u64>,

    /// Run only these parts.
    #[arg(long, value_name = "PART,...", value_delimiter = ',')]
    only: Vec<LibpcapPart>,

    /// Directory for files; should be a tmpfs with 2 GiB to spare.
    #[arg(long, value_name = "DIR", default_value = "/dev/shm")]
    dir: PathBuf,

    /// Directory for files on a disk, with 2 GiB to spare.
    #[arg(long, value_name = "DIR", default_value = "/var/tmp")]
    disk: PathBuf,

    /// Measure this library instead of libweir_pcap.so beside weir-bench.
    #[arg(long, value_name = "PATH")]
    library: Option<PathBuf>,
}

/// What can be measured alone.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum LibpcapPart {
    /// tcpdump writes packets of a device.
    Tcpdump,
    /// A C program counts packets of a device.
    Count,
    /// tcpdump filters a file, and a C program counts its packets.
    Files,
    /// A filter of 1000 hosts is compiled.
    Compile,
}

/// Runs the command.
pub(crate) fn run(args: &LibpcapArgs, all: &'static [Entry]) -> Result<(), Failure> {
    let settings = Settings {
        packets: args.packets,
        only: experiment::names(&args.only),
        dir: args.dir.clone(),
        disk: Some(args.disk.clone()),
        library: args.library.clone(),
        ..args.timed.settings()
    };
    args.timed.how.run(settings, &["libpcap"], all)
}

/// A program and its work on one library.
struct Job {
    series: String,
    library: &'static Library,
    work: Work,
}

enum Work {
    Live(&'static live::Work),
    File(&'static saved::Work),
    Compile,
}

/// Everything that is needed to measure.
struct Programs {
    jobs: Vec<Job>,
    both: Both,
    /// The libraries' versions, as they say.
    versions: [String; 2],
    tcpdump: Option<PathBuf>,
    /// Where devices are opened.
    lab: Option<Lab>,
    /// In memory, and on a disk.
    limits: [Limits; 2],
    file: Option<saved::File>,
    hosts: u32,
}

/// Compiles the C program, and makes the network and the file.
pub(crate) fn make(settings: &Settings) -> Result<Box<dyn Experiment>, Failure> {
    settings.without_cards("libpcap")?;
    let both = Both::find(settings.library.as_deref())?;
    both.compile()?;
    let versions = both.versions(&both.counter(), "version")?;
    let tcpdump = find("tcpdump");
    if let Some(tcpdump) = &tcpdump {
        both.versions(tcpdump, "--version")?;
    }
    let hosts = if settings.quick { 200 } else { compiling::HOSTS };
    let jobs = jobs(&settings.parts(), hosts);
    let is_live = jobs.iter().any(|job| matches!(job.work, Work::Live(_)));
    let lab = is_live.then(Lab::new).transpose()?;
    let disk = settings.disk.clone().unwrap_or_else(|| "/var/tmp".into());
    let duration = settings.time(1000);
    let limits = [Limits::new(duration, &settings.dir)?, Limits::new(duration, &disk)?];
    let packets = settings.packets.unwrap_or(if settings.quick { 100_000 } else { 3_000_000 });
    let reads = jobs.iter().any(|job| matches!(job.work, Work::File(_)));
    let file = reads.then(|| saved::File::make(&settings.dir, packets)).transpose();
    let file = file.map_err(failed("create the capture file"))?;
    Ok(Box::new(Programs { jobs, both, versions, tcpdump, lab, limits, file, hosts }))
}

/// In the order of their turns.
fn jobs(parts: &[LibpcapPart], hosts: u32) -> Vec<Job> {
    let mut jobs = Vec::new();
    for work in live::WORKS.iter().filter(|work| parts.contains(&work.part)) {
        let job = |library| Job { series: work.series(library), library, work: Work::Live(work) };
        jobs.extend(live::LIBRARIES.iter().map(job));
    }
    for work in saved::WORKS.iter().filter(|_| parts.contains(&LibpcapPart::Files)) {
        let job = |library| Job { series: work.series(library), library, work: Work::File(work) };
        jobs.extend(saved::LIBRARIES.iter().map(job));
    }
    if parts.contains(&LibpcapPart::Compile) {
        let job = |library| Job { series: compiling::series(hosts, library), library, work: Work::Compile };
        jobs.extend(saved::LIBRARIES.iter().map(job));
    }
    jobs
}

impl Programs {
    fn is_missing(&self, job: &Job) -> bool {
        let needs_tcpdump = match job.work {
            Work::Live(work) => work.part == LibpcapPart::Tcpdump,
            Work::File(work) => work.needs_tcpdump(),
            Work::Compile => false,
        };
        needs_tcpdump && self.tcpdump.is_none()
    }
}

impl Experiment for Programs {
    fn about(&self) -> About {
        let series = |job: &Job| {
            let role = if job.library.name == SYSTEM.name { Role::Peer } else { Role::Ours };
            Series::new(&job.series, &job.series, role)
        };
        let absent = self.jobs.iter().filter(|job| self.is_missing(job));
        let why = |job: &Job| [job.series.clone(), missing("tcpdump", "tcpdump")];
        let [libpcap, weir] = &self.versions;
        About {
            name: "libpcap".to_owned(),
            title: "Programs on libpcap".to_owned(),
            method: format!(
                "The same programs do the same work on both libraries in turn: they capture frames of 60 bytes at full rate, read a \
                 file, and compile a filter of many hosts. What was captured and what was reported as dropped have to be all \
                 packets. The libraries: {libpcap}; {weir}."
            ),
            measures: vec![
                Measure::higher("rate", "packets received", "Mpps"),
                Measure::lower("lost", "packets lost", "%"),
                Measure::lower(
                    "kernel",
                    "processor time of a packet in the kernel, where none was lost",
                    "ns",
                ),
                Measure::lower("reader", "processor time of a packet in the program", "ns"),
                Measure::lower("file", "time for a packet of a file", "ns"),
                Measure::lower("file-cpu", "processor time for a packet of a file", "ns"),
                Measure::lower("compile", "time to compile", "ms"),
                Measure::lower("compile-cpu", "processor time to compile", "ms"),
                Measure::lower("instructions", "instructions of the filter", ""),
                Measure::fact("sent", "packets sent", "packets"),
                Measure::fact("received", "packets received", "packets"),
                Measure::fact("stack", "packets that reached the network stack", "packets"),
                Measure::fact("verified", "whether bytes and order are known to be right", ""),
            ],
            series: self.jobs.iter().map(series).collect(),
            missing: absent.map(why).collect(),
            ..About::default()
        }
    }

    fn turns(&self) -> Vec<Turn> {
        let present = self.jobs.iter().filter(|job| !self.is_missing(job));
        present.map(|job| Turn::of(&job.series, None)).collect()
    }

    fn take(&mut self, turn: &Turn, round: u32) -> Result<Taken, Failure> {
        let job = self.jobs.iter().find(|job| job.series == turn.series).expect("turns are of jobs");
        match job.work {
            Work::Live(work) => live::measure(self, work, job.library, turn),
            Work::File(work) => saved::measure(self, work, job.library, turn),
            // Takes libpcap most of a minute.
            Work::Compile if job.library.name == SYSTEM.name && round != 1 => Ok(Taken::default()),
            Work::Compile => compiling::measure(self, job.library, turn),
        }
    }

    fn bars(&self, outcome: &Outcome) -> Vec<Judged> {
        [live::bars(outcome), saved::bars(outcome), compiling::bars(outcome)].concat()
    }
}
