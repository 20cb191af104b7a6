//! Programs that read a capture file.

use std::io;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::Instant;

use tempfile::TempDir;
use weir_lab::Traffic;

use super::Programs;
use super::both::{Both, Library, SYSTEM, WEIR};
use super::counter::Counted;
use crate::experiment::{Judged, Outcome, Taken, Turn};
use crate::failure::{Failure, failed};
use crate::files::{SIZE, write_pcap};
use crate::tidy;
use crate::wanted::Wanted;
use crate::witness::Witness;

/// What a program does with the file.
pub(super) struct Work {
    title: &'static str,
    action: Action,
}

#[derive(Clone, Copy)]
enum Action {
    /// tcpdump writes matching packets, all or none, to `/dev/null`.
    Filter(&'static str, bool),
    /// The C program counts with a function of libpcap.
    Count(&'static str),
}

const fn work(title: &'static str, action: Action) -> Work {
    Work { title, action }
}

const NONE: Work =
    work("tcpdump -r FILE 'udp port 53' -w /dev/null, none match", Action::Filter("udp port 53", false));
const ALL: Work =
    work("tcpdump -r FILE 'udp port 9' -w /dev/null, all match", Action::Filter("udp port 9", true));
const NEXT_EX: Work = work("counting, pcap_next_ex, over a file", Action::Count("next_ex"));
pub(super) const WORKS: [Work; 5] = [
    NONE,
    ALL,
    work("counting, pcap_loop, over a file", Action::Count("loop")),
    work("counting, pcap_dispatch, over a file", Action::Count("dispatch")),
    NEXT_EX,
];

pub(super) const LIBRARIES: [Library; 2] = [SYSTEM, WEIR];

impl Work {
    pub(super) fn series(&self, library: &Library) -> String {
        format!("{}: {}", self.title, library.title)
    }

    pub(super) fn needs_tcpdump(&self) -> bool {
        matches!(self.action, Action::Filter(..))
    }
}

/// One turn of a program. Times are nanoseconds of a packet.
struct Sample {
    ns: f64,
    /// Processor time; the C program's only.
    cpu_ns: Option<f64>,
    /// What is wrong.
    problem: Option<String>,
}

/// The file, removed on drop.
pub(super) struct File {
    dir: TempDir,
    packets: u64,
    expected: Witness,
}

/// One turn of a program on one library.
pub(super) fn measure(
    programs: &Programs,
    work: &Work,
    library: &Library,
    turn: &Turn,
) -> Result<Taken, Failure> {
    let (both, file) = (&programs.both, programs.file.as_ref().expect("there is a file"));
    let Sample { ns, cpu_ns, problem } = match (work.action, &programs.tcpdump) {
        (Action::Filter(filter, all), Some(tcpdump)) => file.filter(tcpdump, filter, all, library, both)?,
        (Action::Filter(..), None) => return Err(Failure::new("tcpdump is not installed")),
        (Action::Count(function), _) => file.count(function, library, both)?,
    };
    let mut taken = Taken { problems: problem.into_iter().collect(), ..Taken::default() };
    if ns.is_finite() {
        taken.add(turn, "file", ns);
    }
    if let Some(time) = cpu_ns {
        taken.add(turn, "file-cpu", time);
    }
    Ok(taken)
}

impl File {
    pub(super) fn make(dir: &Path, packets: u64) -> io::Result<Self> {
        let traffic = Traffic::new(SIZE as usize).map_err(io::Error::other)?;
        let dir = tidy::folder_in(dir)?;
        let file = Self { dir, packets, expected: Witness::of(&traffic, 0..packets) };
        write_pcap(&file.path(), &traffic, packets, 1)?;
        Ok(file)
    }

    fn path(&self) -> PathBuf {
        self.dir.path().join("pcap")
    }

    fn sample(&self, nanoseconds: f64, problem: Option<String>) -> Sample {
        Sample { ns: nanoseconds / self.packets as f64, cpu_ns: None, problem }
    }

    /// Times tcpdump, then runs it once more to see what it writes.
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
        Ok(self.sample(time.as_secs_f64() * 1e9, problem))
    }

    /// The C program, which measures itself.
    fn count(&self, function: &str, library: &Library, both: &Both) -> Result<Sample, Failure> {
        let mut command = both.command(&both.counter(), library);
        let output = command.args([function, "file"]).arg(self.path()).output();
        let output = output.map_err(failed("run the counting program"))?;
        let [said, errors] = [&output.stdout, &output.stderr].map(|text| String::from_utf8_lossy(text));
        let Some(counted) = Counted::parse(&said).filter(|_| output.status.success()) else {
            let problem = format!("{}: {}", output.status, errors.trim());
            return Ok(self.sample(f64::NAN, Some(problem)));
        };
        let right = counted.packets == self.packets && counted.is_right(SIZE);
        let problem = (!right).then(|| format!("wrong packets: {}", said.trim()));
        let cpu_ns = Some(counted.cpu_nanoseconds as f64 / self.packets as f64);
        Ok(Sample { cpu_ns, ..self.sample(counted.nanoseconds as f64, problem) })
    }
}

/// Times as multiples of the other library's.
pub(super) fn bars(outcome: &Outcome) -> Vec<Judged> {
    let ratio = |work: &Work, pair: [&Library; 2], measure| {
        let [slow, fast] = &pair.map(|library| work.series(library));
        outcome.ratios([slow, fast], measure, None)
    };
    let filter = |work: &Work| {
        let name = format!("{}: time, weir / libpcap", work.title);
        Judged::new(&name, Wanted::AtMost(1.0), "times", ratio(work, [&WEIR, &SYSTEM], "file"))
    };
    let next_ex = |measure| ratio(&NEXT_EX, [&SYSTEM, &WEIR], measure);
    let name = format!("{}: weir / libpcap", NEXT_EX.title);
    let speed = Judged::new(&name, Wanted::AtLeast(2.0), "times", next_ex("file"));
    vec![filter(&NONE), filter(&ALL), speed.by_cpu_time(next_ex("file-cpu"))]
}
