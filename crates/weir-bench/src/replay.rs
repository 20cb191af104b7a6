//! `weir-bench replay`: how fast a capture file is sent, and how exactly its gaps are kept, beside tcpreplay.
//!
//! ```text
//!  top speed:    processor 1: program -> tx0 -> rx0: an XDP program counts and drops
//!                processor 0: looks at the count
//!  as recorded:  processor 1: program -> tx0 -> rx0 -> packet socket -> tcpdump on processor 0
//! ```
//!
//! The file looks like the traffic of a border router: packets of mixed sizes, ten thousand flows of very different weight, in
//! bursts. Gaps are those between the time stamps that the receiving kernel gives the packets, each compared with that of
//! the file.

use std::fs;
use std::io::{BufRead as _, BufReader};
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use tempfile::TempDir;
use weir_lab::{Action, Hook, Network, Veth};
use weir_traffic::{Description, Order, Sizes, Tables};

use crate::experiment::{About, Experiment, Judged, Measure, Outcome, Role, Series, Settings, Taken, Turn};
use crate::failure::{Failure, failed};
use crate::program::{READER_CPU, WEIR, find, installed, succeeded};
use crate::sample::GENERATOR_CPU;
use crate::send::{PATIENCE, watched};
use crate::spread::percentile;
use crate::wanted::Wanted;
use crate::{tidy, units};

/// A program and its arguments, without file and interface.
#[derive(Debug)]
struct Contestant {
    name: &'static str,
    program: &'static str,
    arguments: &'static [&'static str],
}

const fn weir(name: &'static str, arguments: &'static [&'static str]) -> Contestant {
    Contestant { name, program: WEIR, arguments }
}

const fn tcpreplay(name: &'static str, arguments: &'static [&'static str]) -> Contestant {
    Contestant { name, program: TCPREPLAY, arguments }
}

/// As fast as possible. `--loop N` follows.
const TOP: [Contestant; 3] = [
    weir(
        "weir replay --top-speed --backend live",
        &["replay", "--quiet", "--top-speed", "--backend", "live"],
    ),
    weir("weir replay --top-speed --preload", &["replay", "--quiet", "--top-speed", "--preload"]),
    tcpreplay("tcpreplay --topspeed --preload-pcap", &["--topspeed", "--preload-pcap"]),
];

/// With the gaps of the file.
const RECORDED: [Contestant; 3] = [
    weir("weir replay", &["replay", "--quiet"]),
    tcpreplay("tcpreplay", &[]),
    tcpreplay("tcpreplay --timer=nano", &["--timer=nano"]),
];

const TCPREPLAY: &str = "tcpreplay";

/// How far gaps were off, in microseconds, and by how many percent the whole took too long.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Off {
    p50: f64,
    p99: f64,
    max: f64,
    longer_percent: f64,
}

/// Time in microseconds, and bytes.
type Packet = (u64, Vec<u8>);

/// Packets in a burst, on average.
const BURST: f64 = 20.0;
/// Microseconds between packets of a burst, and between bursts, on average.
const GAPS: [f64; 2] = [3.0, 140.0];

/// Returns packets as a border router has them: 100,000 a second on average.
fn trace(packets: usize) -> Result<Vec<Packet>, Failure> {
    let description = Description {
        sizes: Some(Sizes::Imix),
        flows: 10_000,
        order: Order::Zipf(1.1),
        ..Description::new(false)
    };
    let tables = Tables::new(&description).map_err(failed("make packets"))?;
    let mut time = 0.0;
    let mut packet = |number: u64| {
        let mut bytes = Vec::new();
        tables.write(number, 0, 0, &mut bytes);
        let ends = even(2 * number) < 1.0 / BURST;
        // Exponentially distributed, as arrivals that do not know of each other are.
        time -= GAPS[usize::from(ends)] * (1.0 - even(2 * number + 1)).ln();
        (units::whole(time), bytes)
    };
    Ok((0..packets as u64).map(&mut packet).collect())
}

/// Returns a number from 0 to below 1, evenly distributed, the same for the same place.
fn even(place: u64) -> f64 {
    let number = units::mixed(place.wrapping_add(1).wrapping_mul(units::GAMMA));
    (number >> 11) as f64 / (1_u64 << 53) as f64
}

/// Returns a pcap file with times in microseconds.
fn pcap(packets: &[Packet]) -> Vec<u8> {
    /// Some time in 2023: programs may take 0 for "no time".
    const BEGIN: u64 = 1_700_000_000_000_000;
    let words = |words: [u64; 4]| words.map(|word| u32::try_from(word).expect("32 bits").to_le_bytes());
    let mut file = words([0xa1b2_c3d4, 2 | 4 << 16, 0, 0]).concat();
    file.extend(words([262_144, 1, 0, 0]).concat().split_at(8).0);
    for (time, bytes) in packets {
        let (time, length) = (BEGIN + time, bytes.len() as u64);
        file.extend(words([time / 1_000_000, time % 1_000_000, length, length]).concat());
        file.extend_from_slice(bytes);
    }
    file
}

/// Reads a pcap file with times in nanoseconds, as tcpdump on this machine writes it.
fn received(file: &[u8]) -> Option<Vec<Packet>> {
    const NANOSECONDS: u32 = 0xa1b2_3c4d;
    let word = |at: usize| Some(u32::from_ne_bytes(*file.get(at..)?.first_chunk()?));
    if word(0)? != NANOSECONDS {
        return None;
    }
    let (mut packets, mut at) = (Vec::new(), 24);
    while at < file.len() {
        let time = u64::from(word(at)?) * 1_000_000_000 + u64::from(word(at + 4)?);
        let length = word(at + 8)? as usize;
        packets.push((time, file.get(at + 16..)?.get(..length)?.to_vec()));
        at += 16 + length;
    }
    Some(packets)
}

/// Compares gaps; an error where other packets have arrived than were sent.
fn off(sent: &[Packet], arrived: &[Packet]) -> Result<Off, Failure> {
    let same = sent.iter().map(|(_, bytes)| bytes).eq(arrived.iter().map(|(_, bytes)| bytes));
    if !same {
        let [arrived, sent] = [arrived.len(), sent.len()];
        return Err(Failure::new(format_args!(
            "other packets arrived than were sent: {arrived} packets of {sent}"
        )));
    }
    let mut off: Vec<f64> = sent
        .windows(2)
        .zip(arrived.windows(2))
        .map(|(sent, arrived)| {
            let wanted = (sent[1].0 - sent[0].0) as f64;
            (arrived[1].0 as f64 - arrived[0].0 as f64) / 1e3 - wanted
        })
        .map(f64::abs)
        .collect();
    off.sort_by(f64::total_cmp);
    let at = |percent| percentile(&off, percent);
    let span = |packets: &[Packet]| match packets {
        [(first, _), .., (last, _)] => (last - first) as f64,
        _ => 0.0,
    };
    let longer_percent = (span(arrived) / 1e3 / span(sent) - 1.0) * 100.0;
    Ok(Off { p50: at(50), p99: at(99), max: at(100), longer_percent })
}

/// The network, and the file.
struct Replay {
    network: Network,
    directory: TempDir,
    packets: Vec<Packet>,
    quick: bool,
}

/// Makes them.
pub(super) fn make(settings: &Settings) -> Result<Box<dyn Experiment>, Failure> {
    let network = settings.network("replay", Veth::default())?;
    installed(TCPREPLAY, TCPREPLAY)?;
    let directory = tidy::folder_in(&settings.dir).map_err(failed("create a folder"))?;
    let packets = trace(if settings.quick { 50_000 } else { 200_000 })?;
    let replay = Replay { network, directory, packets, quick: settings.quick };
    fs::write(replay.file(), pcap(&replay.packets)).map_err(failed("write packets to replay"))?;
    Ok(Box::new(replay))
}

fn contestants() -> impl Iterator<Item = &'static Contestant> {
    TOP.iter().chain(&RECORDED)
}

impl Experiment for Replay {
    fn about(&self) -> About {
        let role = |contestant: &Contestant| {
            if contestant.program == WEIR { Role::Ours } else { Role::Peer }
        };
        let series = |one: &Contestant| Series::new(one.name, one.name, role(one));
        let [live, ring, theirs] = &TOP;
        let bytes: usize = self.packets.iter().map(|(_, bytes)| bytes.len()).sum();
        About {
            name: "replay".to_owned(),
            title: "Replaying".to_owned(),
            method: format!(
                "A file of {} packets of {} bytes on average, with bursts, as fast as possible and with its gaps. At top speed an \
                 XDP program counts packets and drops them; with gaps tcpdump writes a file, of which every packet is compared, \
                 and every gap.",
                units::grouped(self.packets.len() as u64),
                bytes / self.packets.len()
            ),
            measures: vec![
                Measure::higher("rate", "packets that arrived at top speed", "Mpps"),
                Measure::lower("p50", "half of the gaps are off by less than", "us"),
                Measure::lower("p99", "99 % of the gaps are off by less than", "us"),
                Measure::lower("max", "gap that is off most", "us"),
                Measure::lower("longer", "how much too long the whole took", "%"),
            ],
            series: contestants().map(series).collect(),
            versus: [live, ring].map(|ours| [ours, theirs].map(|one| one.name.to_owned())).to_vec(),
            ..About::default()
        }
    }

    fn turns(&self) -> Vec<Turn> {
        contestants().map(|contestant| Turn::of(contestant.name, None)).collect()
    }

    fn take(&mut self, turn: &Turn, _round: u32) -> Result<Taken, Failure> {
        let named = |contestants: &'static [Contestant]| {
            contestants.iter().find(|contestant| contestant.name == turn.series)
        };
        let mut taken = Taken::default();
        if let Some(contestant) = named(&TOP) {
            taken.add(turn, "rate", self.top_speed(contestant)? / 1e6);
        }
        if let Some(contestant) = named(&RECORDED) {
            let Off { p50, p99, max, longer_percent } = self.recorded(contestant)?;
            for (measure, value) in [("p50", p50), ("p99", p99), ("max", max), ("longer", longer_percent)] {
                taken.add(turn, measure, value);
            }
        }
        Ok(taken)
    }

    /// tcpreplay is as good as the better of its timers.
    fn bars(&self, outcome: &Outcome) -> Vec<Judged> {
        let [live, ring, theirs] = &TOP;
        let rate = |ours: &Contestant, least| {
            let pair = [ours.name, theirs.name];
            let ratios = outcome.ratios(pair, "rate", None);
            Judged::new(&pair.join(" / "), Wanted::AtLeast(least), "times", ratios)
        };
        let [ours, others @ ..] = &RECORDED;
        let p99 = |contestant: &Contestant| outcome.rounds_of(contestant.name, "p99", None);
        let theirs: Vec<_> = others.iter().flat_map(p99).collect();
        let ratio = |(round, ours): (u32, f64)| {
            let in_round = theirs.iter().filter(|(other, _)| *other == round);
            Some(ours / in_round.map(|(_, off)| *off).min_by(f64::total_cmp)?)
        };
        let gaps: Vec<f64> = p99(ours).into_iter().filter_map(ratio).collect();
        let name = "gaps off, p99: weir replay / tcpreplay with its better timer";
        vec![rate(live, 3.0), rate(ring, 1.0), Judged::new(name, Wanted::AtMost(0.5), "times", gaps)]
    }
}

impl Replay {
    fn file(&self) -> PathBuf {
        self.directory.path().join("trace.pcap")
    }

    /// Sends the file so many times, to its end.
    fn replay(&self, contestant: &Contestant, rounds: u64) -> Result<u64, Failure> {
        let name = contestant.program;
        let program = find(name).ok_or_else(|| Failure::new(format_args!("cannot find {name}")))?;
        let mut command = Command::new("taskset");
        command.args(["-c", &GENERATOR_CPU.to_string()]).arg(program).args(contestant.arguments);
        command.args(["-i", "tx0", "--loop", &rounds.to_string()]).arg(self.file());
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::piped());
        succeeded(name, self.network.tx().run(|| command.output()))?;
        Ok(rounds * self.packets.len() as u64)
    }

    /// A short run, by which the length of the turn is chosen, and the turn: a second of sending.
    fn top_speed(&self, contestant: &Contestant) -> Result<f64, Failure> {
        let hook = Hook::attach(&self.network.pair().rx, Action::Drop).map_err(failed("count packets"))?;
        let (trial, rate) = watched(&hook, || self.replay(contestant, 1))?;
        let rounds = (units::whole(rate) / trial).max(1);
        let (sent, rate) =
            if self.quick { (0, rate) } else { watched(&hook, || self.replay(contestant, rounds))? };
        let arrived = hook.wait_for(trial + sent, PATIENCE);
        if arrived != trial + sent {
            let sent = trial + sent;
            return Err(Failure::new(format_args!("{arrived} of {sent} packets arrived")));
        }
        Ok(rate)
    }

    fn recorded(&self, contestant: &Contestant) -> Result<Off, Failure> {
        let file = self.directory.path().join("arrived.pcap");
        let mut tcpdump = Command::new("taskset");
        tcpdump.args(["-c", &READER_CPU.to_string(), "tcpdump", "-i", "rx0", "-n", "-Z", "root"]);
        tcpdump.args(["-B", "131072", "--time-stamp-precision=nano"]);
        tcpdump.args(["-c", &self.packets.len().to_string(), "-w"]).arg(&file).stderr(Stdio::piped());
        let mut tcpdump = self.network.rx().spawn(&mut tcpdump).map_err(failed("start tcpdump"))?;
        let mut lines = BufReader::new(tcpdump.stderr.take().expect("a pipe was asked for")).lines();
        let listens = lines.any(|line| line.is_ok_and(|line| line.contains("listening on")));
        // What else it says has a reader.
        let rest = thread::spawn(move || lines.count());
        let sent =
            if listens { self.replay(contestant, 1) } else { Err(Failure::new("tcpdump does not start")) };
        let start = Instant::now();
        let mut over = false;
        while sent.is_ok() && !over && start.elapsed() < PATIENCE {
            thread::sleep(Duration::from_millis(5));
            over = tcpdump.try_wait().map_err(failed("wait for tcpdump"))?.is_some();
        }
        // It has ended already if all packets have arrived.
        let _ended = tcpdump.kill().and_then(|()| tcpdump.wait());
        let _lines = rest.join();
        sent?;
        if !over {
            return Err(Failure::new("not all packets arrived at tcpdump"));
        }
        let arrived = fs::read(&file).map_err(failed("read what tcpdump has written"))?;
        let arrived = received(&arrived).ok_or_else(|| Failure::new("unexpected file of tcpdump"))?;
        off(&self.packets, &arrived)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_trace_has_bursts_and_a_mean_rate() {
        let packets = trace(50_000).expect("packets");
        let (last, _) = packets.last().expect("a packet");
        let mean = *last as f64 / 50_000.0;
        assert!((9.0..11.0).contains(&mean), "{mean} us a packet");
        let gaps: Vec<u64> = packets.windows(2).map(|pair| pair[1].0 - pair[0].0).collect();
        let short = gaps.iter().filter(|&&gap| gap < 10).count();
        assert!((40_000..48_500).contains(&short), "{short} gaps are short");
    }

    #[test]
    fn gaps_are_compared_with_those_of_the_file() {
        let packets = |times: [u64; 3]| times.map(|time| (time, vec![7]));
        let (sent, arrived) = (packets([0, 10, 30]), packets([5_000, 16_000, 34_500]));
        let Off { p50, p99, max, longer_percent } = off(&sent, &arrived).expect("the same");
        assert_eq!((p50, p99, max), (1.0, 1.5, 1.5));
        assert!((longer_percent + 100.0 / 60.0).abs() < 1e-9, "29.5 us instead of 30: {longer_percent}");
        assert!(off(&sent, &arrived[..2]).is_err());
        let mut changed = arrived;
        changed[1].1 = vec![8];
        assert!(off(&sent, &changed).is_err());
    }

    #[test]
    fn a_file_is_read_as_it_was_written() {
        let packets = vec![(0, vec![1; 60]), (1_500_000, vec![2; 61])];
        let mut file = pcap(&packets);
        assert_eq!(received(&file), None, "microseconds");
        file[..4].copy_from_slice(&0xa1b2_3c4d_u32.to_le_bytes());
        let read = received(&file).expect("a file");
        assert_eq!(read[1], (1_700_000_001_000_500_000, vec![2; 61]));
    }
}
