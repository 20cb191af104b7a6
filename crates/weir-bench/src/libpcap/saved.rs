//! Programs that read a capture file.

use std::io;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::Instant;

use serde::Serialize;
use tempfile::TempDir;
use weir_lab::Traffic;

use super::both::{Both, Library, SYSTEM, WEIR};
use super::counter::Counted;
use super::{Part, Plan};
use crate::bars::{Bar, Wanted};
use crate::failed;
use crate::failure::Failure;
use crate::files::{SIZE, write_pcap};
use crate::spread::Spread;
use crate::style;
use crate::tidy;
use crate::witness::Witness;

/// What a program does with the file.
struct Work {
    name: &'static str,
    title: &'static str,
    action: Action,
}

#[derive(Clone, Copy)]
enum Action {
    /// tcpdump writes to `/dev/null` what matches: all packets, or none.
    Filter(&'static str, bool),
    /// The C program counts with a function of libpcap.
    Count(&'static str),
}

const fn work(name: &'static str, title: &'static str, action: Action) -> Work {
    Work { name, title, action }
}

const NONE: Work = work(
    "filter-none",
    "tcpdump -r FILE 'udp port 53' -w /dev/null, none match",
    Action::Filter("udp port 53", false),
);
const ALL: Work = work(
    "filter-all",
    "tcpdump -r FILE 'udp port 9' -w /dev/null, all match",
    Action::Filter("udp port 9", true),
);
const NEXT_EX: Work = work("count-next_ex", "counting, pcap_next_ex", Action::Count("next_ex"));
const WORKS: [Work; 5] = [
    NONE,
    ALL,
    work("count-loop", "counting, pcap_loop", Action::Count("loop")),
    work("count-dispatch", "counting, pcap_dispatch", Action::Count("dispatch")),
    NEXT_EX,
];

const LIBRARIES: [Library; 2] = [SYSTEM, WEIR];

/// One turn of a program on one library. Times are nanoseconds of a packet.
#[derive(Debug, Serialize)]
pub(super) struct Sample {
    work: &'static str,
    library: &'static str,
    round: u32,
    ns: f64,
    /// Processor time; the C program's only.
    cpu_ns: Option<f64>,
    /// What is not as it has to be.
    pub(super) problem: Option<String>,
}

/// The file, gone when this is dropped.
struct File {
    dir: TempDir,
    packets: u64,
    expected: Witness,
}

/// All rounds.
pub(super) fn measure(plan: &Plan, both: &Both) -> Result<Vec<Sample>, Failure> {
    let mut samples = Vec::new();
    if !plan.parts.contains(&Part::Files) {
        return Ok(samples);
    }
    let file = File::make(plan.dir, plan.packets).map_err(failed("create the capture file"))?;
    let works =
        || WORKS.iter().filter(|work| plan.tcpdump.is_some() || matches!(work.action, Action::Count(_)));
    for round in 1..=plan.rounds {
        for (work, library) in works().flat_map(|work| LIBRARIES.iter().map(move |library| (work, library))) {
            let sample = match (work.action, &plan.tcpdump) {
                (Action::Filter(filter, all), Some(tcpdump)) => {
                    file.filter(tcpdump, filter, all, library, both)?
                }
                (Action::Filter(..), None) => continue,
                (Action::Count(function), _) => file.count(function, library, both)?,
            };
            let sample = Sample { work: work.name, round, ..sample };
            style::say(format_args!(
                "[{round}] {:<58} {:<8} {:>6.1} ns per packet  {}",
                work.title,
                library.title,
                sample.ns,
                style::stderr().red(sample.problem.as_deref().unwrap_or_default())
            ));
            samples.push(sample);
        }
    }
    Ok(samples)
}

impl File {
    fn make(dir: &Path, packets: u64) -> io::Result<Self> {
        let traffic = Traffic::new(SIZE as usize).map_err(io::Error::other)?;
        let dir = tidy::folder_in(dir)?;
        let file = Self { dir, packets, expected: Witness::of(&traffic, 0..packets) };
        write_pcap(&file.path(), &traffic, packets, 1)?;
        Ok(file)
    }

    fn path(&self) -> PathBuf {
        self.dir.path().join("pcap")
    }

    fn sample(&self, library: &Library, nanoseconds: f64, problem: Option<String>) -> Sample {
        let ns = nanoseconds / self.packets as f64;
        Sample { work: "", library: library.name, round: 0, ns, cpu_ns: None, problem }
    }

    /// tcpdump, on the clock; and once more, to see what it writes.
    fn filter(
        &self,
        tcpdump: &Path,
        filter: &str,
        all: bool,
        library: &Library,
        both: &Both,
    ) -> Result<Sample, Failure> {
        let command = |to| {
            let mut command = both.command(tcpdump, library);
            command.arg("-r").arg(self.path()).args([filter, "-w", to]);
            command.stdout(Stdio::piped()).stderr(Stdio::piped());
            command
        };
        let start = Instant::now();
        let output = command("/dev/null").output().map_err(failed("run tcpdump"))?;
        let time = start.elapsed();
        let problem = if output.status.success() {
            let mut child = command("-").spawn().map_err(failed("run tcpdump"))?;
            let written = Witness::read(child.stdout.take().expect("a pipe was asked for"));
            let status = child.wait().map_err(failed("wait for tcpdump"))?;
            let expected = if all { self.expected } else { Witness::default() };
            match written {
                _ if !status.success() => Some(format!("tcpdump -w -: {status}")),
                Ok(witness) if witness == expected => None,
                Ok(witness) => Some(format!("{} packets match, or wrong bytes or order", witness.packets)),
                Err(error) => Some(format!("tcpdump -w -: {error}")),
            }
        } else {
            Some(format!("{}: {}", output.status, String::from_utf8_lossy(&output.stderr).trim()))
        };
        Ok(self.sample(library, time.as_secs_f64() * 1e9, problem))
    }

    /// The C program, which measures itself.
    fn count(&self, function: &str, library: &Library, both: &Both) -> Result<Sample, Failure> {
        let mut command = both.command(&both.counter(), library);
        let output = command.args([function, "file"]).arg(self.path()).output();
        let output = output.map_err(failed("run the counting program"))?;
        let [said, errors] = [&output.stdout, &output.stderr].map(|text| String::from_utf8_lossy(text));
        let Some(counted) = Counted::parse(&said).filter(|_| output.status.success()) else {
            let problem = format!("{}: {}", output.status, errors.trim());
            return Ok(self.sample(library, f64::NAN, Some(problem)));
        };
        let right = counted.packets == self.packets && counted.is_right(SIZE);
        let problem = (!right).then(|| format!("wrong packets: {}", said.trim()));
        let cpu_ns = Some(counted.cpu_nanoseconds as f64 / self.packets as f64);
        Ok(Sample { cpu_ns, ..self.sample(library, counted.nanoseconds as f64, problem) })
    }
}

/// How much longer one takes.
pub(super) fn bars(samples: &[Sample]) -> Vec<Bar> {
    // How many times as long `slow` takes as `fast`, round by round.
    let ratio = |work: &Work, slow: &Library, fast: &Library, time: fn(&Sample) -> Option<f64>| {
        let rounds = of(samples, work, slow).filter_map(|slow| {
            let fast = of(samples, work, fast).find(|fast| fast.round == slow.round)?;
            Some(time(slow)? / time(fast)?)
        });
        Spread::of(rounds)
    };
    let filter = |work: &Work| {
        let name = format!("{}: time, weir / libpcap", work.title);
        Bar::new(&name, None, Wanted::AtMost(1.0), "times", ratio(work, &WEIR, &SYSTEM, |s| Some(s.ns)))
    };
    let next_ex = |time| ratio(&NEXT_EX, &SYSTEM, &WEIR, time);
    let name = format!("{}, over a file: weir / libpcap", NEXT_EX.title);
    let speed = Bar::new(&name, None, Wanted::AtLeast(2.0), "times", next_ex(|sample| Some(sample.ns)));
    vec![filter(&NONE), filter(&ALL), Bar { undisturbed: next_ex(|sample| sample.cpu_ns), ..speed }]
}

fn of<'a>(samples: &'a [Sample], work: &Work, library: &Library) -> impl Iterator<Item = &'a Sample> {
    samples.iter().filter(move |sample| sample.work == work.name && sample.library == library.name)
}

/// A table for people.
pub(super) fn table(samples: &[Sample], packets: u64) -> Option<(String, Vec<Vec<String>>)> {
    let mut rows = vec![["", SYSTEM.title, WEIR.title].map(str::to_owned).to_vec()];
    for work in WORKS.iter().filter(|work| samples.iter().any(|sample| sample.work == work.name)) {
        let cells = LIBRARIES.iter().map(|library| {
            let time = Spread::of(of(samples, work, library).map(|sample| sample.ns));
            time.map_or_else(|| "not measured".to_owned(), |time| format!("{time:.1}"))
        });
        rows.push([work.title.to_owned()].into_iter().chain(cells).collect());
    }
    let packets = crate::units::grouped(packets);
    let title = format!("file of {packets} packets of {SIZE} bytes, ns per packet: median (range)");
    (rows.len() > 1).then_some((title, rows))
}
