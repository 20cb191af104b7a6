//! `weir-bench run flows`: processor time for the flows of a file, beside softflowd, nfpcapd, argus and ndpiReader.
//!
//! All get the same file in memory (a tmpfs): TCP and UDP of many flows, of which few have most of the packets, a fifth over
//! IPv6. weir and softflowd send NetFlow v9 to a socket of this program, the others write files. Time is that of the processor, in all
//! threads.

use std::fs::{self, File};
use std::io::{self, BufWriter, Write};
use std::net::UdpSocket;
use std::path::PathBuf;
use std::process::{Command, Stdio};

use tempfile::TempDir;

use crate::experiment::{About, Experiment, Judged, Measure, Outcome, Role, Series, Settings, Taken, Turn};
use crate::failure::{Failure, failed};
use crate::files::words;
use crate::process::time_of_children;
use crate::program::{WEIR, find, missing};
use crate::wanted::Wanted;
use crate::{tidy, units};

/// Packets for each flow.
const EACH: u64 = 10;

/// A program. `{pcap}`, `{dir}` and `{collector}` stand for what they say.
#[derive(Debug)]
struct Contestant {
    name: &'static str,
    program: &'static str,
    package: &'static str,
    arguments: &'static [&'static str],
    /// What it says of its work, on any output.
    says: fn(&str, &Trace) -> bool,
}

const BASIC: &str = "weir flows, without names";
const NAMED: &str = "weir flows";

const CONTESTANTS: [Contestant; 6] = [
    Contestant {
        name: BASIC,
        program: WEIR,
        package: "",
        arguments: &["flows", "-r", "{pcap}", "--no-names", "--to", "netflow9://{collector}"],
        says: weir,
    },
    Contestant {
        name: NAMED,
        program: WEIR,
        package: "",
        arguments: &["flows", "-r", "{pcap}", "--to", "netflow9://{collector}"],
        says: weir,
    },
    Contestant {
        name: "softflowd",
        program: "softflowd",
        package: "softflowd",
        arguments: &["-r", "{pcap}", "-d", "-m", "1000000", "-v", "9", "-n", "{collector}"],
        says: |said, _| said.contains("Shutting down after pcap EOF"),
    },
    Contestant {
        name: "nfpcapd",
        program: "nfpcapd",
        package: "nfdump",
        arguments: &["-r", "{pcap}", "-l", "{dir}"],
        says: |said, trace| said.contains(&format!("Processed: {}, skipped: 0", trace.packets)),
    },
    Contestant {
        name: "argus",
        program: "argus",
        package: "argus-server",
        arguments: &["-r", "{pcap}", "-w", "{dir}/argus"],
        says: |_, _| true,
    },
    Contestant {
        name: "ndpiReader",
        program: "ndpiReader",
        package: "libndpi-bin",
        arguments: &["-i", "{pcap}"],
        says: |said, trace| {
            let packets = said.lines().find_map(|line| line.trim().strip_prefix("IP packets:"));
            packets.and_then(|rest| rest.split_whitespace().next()) == Some(&trace.packets.to_string())
        },
    },
];

/// What weir says if each packet is in a flow, and each flow was sent.
fn weir(said: &str, trace: &Trace) -> bool {
    let packets = units::grouped(trace.packets);
    said.contains(&format!("Packets: {packets} = {packets} in flows that have ended\n"))
        && said.contains(&format!(": {} flows in ", units::grouped(trace.flows)))
        && !said.contains("lost:")
}

/// How many times as much processor time the second takes.
const TARGETS: [(&str, &str, f64); 4] =
    [(BASIC, "softflowd", 5.0), (BASIC, "nfpcapd", 5.0), (BASIC, "argus", 6.0), (NAMED, "ndpiReader", 6.0)];

/// The file, gone when this is dropped.
struct Trace {
    dir: TempDir,
    packets: u64,
    flows: u64,
    collector: UdpSocket,
}

/// Writes the file.
pub(super) fn make(settings: &Settings) -> Result<Box<dyn Experiment>, Failure> {
    settings.without_cards("flows")?;
    let packets = settings.packets.unwrap_or(if settings.quick { 100_000 } else { 3_000_000 });
    let dir = tidy::folder_in(&settings.dir).map_err(failed("create a folder"))?;
    let collector = UdpSocket::bind("127.0.0.1:0").map_err(failed("open a socket"))?;
    let trace = Trace { dir, packets, flows: packets / EACH, collector };
    trace.write().map_err(failed("create the capture file"))?;
    Ok(Box::new(trace))
}

impl Experiment for Trace {
    fn about(&self) -> About {
        let series = |one: &Contestant| {
            Series::new(one.name, one.name, if one.program == WEIR { Role::Ours } else { Role::Peer })
        };
        let absent = CONTESTANTS.iter().filter(|one| find(one.program).is_none());
        About {
            name: "flows".to_owned(),
            title: "Flows of a file".to_owned(),
            method: format!(
                "A file in memory: {} packets of {} flows of TCP and UDP, of which few have most of the packets, a fifth over IPv6. weir and \
                 softflowd send NetFlow v9, nfpcapd and argus write files, ndpiReader prints.",
                units::grouped(self.packets),
                units::grouped(self.flows)
            ),
            measures: vec![
                Measure::lower("time", "processor time", "s"),
                Measure::lower("packet", "processor time of a packet", "ns"),
            ],
            series: CONTESTANTS.iter().map(series).collect(),
            missing: absent.map(|one| [one.name.to_owned(), missing(one.program, one.package)]).collect(),
            versus: TARGETS.iter().map(|(ours, theirs, _)| [*ours, *theirs].map(str::to_owned)).collect(),
            ..About::default()
        }
    }

    fn turns(&self) -> Vec<Turn> {
        let present = CONTESTANTS.iter().filter(|one| find(one.program).is_some());
        present.map(|one| Turn::of(one.name, None)).collect()
    }

    fn take(&mut self, turn: &Turn, _round: u32) -> Result<Taken, Failure> {
        let one = CONTESTANTS.iter().find(|one| one.name == turn.series).expect("turns are of contestants");
        let (seconds, problem) = self.sample(one)?;
        let mut taken = Taken::default();
        // A time for the wrong work is no time.
        match problem {
            Some(problem) => taken.problems.push(problem),
            None => {
                taken.add(turn, "time", seconds);
                taken.add(turn, "packet", seconds * 1e9 / self.packets as f64);
            }
        }
        Ok(taken)
    }

    fn bars(&self, outcome: &Outcome) -> Vec<Judged> {
        let times = |(ours, theirs, least): (&str, &str, f64)| {
            let name = format!("processor time: {theirs} / {ours}");
            Judged::new(&name, Wanted::AtLeast(least), "times", outcome.ratios([theirs, ours], "time", None))
        };
        TARGETS.into_iter().map(times).collect()
    }
}

impl Trace {
    fn path(&self, name: &str) -> PathBuf {
        self.dir.path().join(name)
    }

    /// The seconds of processor time that it took, and what is wrong with the answer.
    fn sample(&self, one: &Contestant) -> Result<(f64, Option<String>), Failure> {
        let out = self.path("out");
        // Empty each time.
        let _absent = fs::remove_dir_all(&out);
        fs::create_dir(&out).map_err(failed("create a folder"))?;
        let collector = self.collector.local_addr().map_err(failed("find a port"))?.to_string();
        let [pcap, dir] = [self.path("pcap"), out].map(|path| path.display().to_string());
        let place = |word: &&str| {
            word.replace("{pcap}", &pcap).replace("{dir}", &dir).replace("{collector}", &collector)
        };
        let mut command = Command::new(find(one.program).unwrap_or_default());
        command.args(one.arguments.iter().map(place)).stdin(Stdio::null());
        let before = time_of_children().map_err(failed("read the time of a process"))?;
        let output = command.output().map_err(failed(format_args!("run {}", one.name)))?;
        let seconds =
            (time_of_children().map_err(failed("read the time of a process"))? - before).as_secs_f64();
        let said =
            [output.stdout, output.stderr].map(|text| String::from_utf8_lossy(&text).into_owned()).concat();
        let is_right = output.status.success() && (one.says)(&said, self);
        Ok((seconds, (!is_right).then(|| format!("{}: {}: {}", one.name, output.status, said.trim()))))
    }

    fn write(&self) -> io::Result<()> {
        let mut file = BufWriter::with_capacity(1 << 20, File::create(self.path("pcap"))?);
        file.write_all(&words(&[0xa1b2_c3d4, 0x0004_0002, 0, 0, 262_144, 1]))?;
        let mut state = 1_u64;
        for number in 0..self.packets {
            // Each flow has a packet; few have most of the others.
            let flow = if number % EACH == 0 { number / EACH } else { few(&mut state, self.flows) };
            let frame = frame(u32::try_from(flow).unwrap_or(u32::MAX));
            let [second, micro, length] =
                [1_700_000_000 + number / 1_000_000, number % 1_000_000, frame.len() as u64]
                    .map(|number| u32::try_from(number).unwrap_or(u32::MAX));
            file.write_all(&words(&[second, micro, length, length]))?;
            file.write_all(&frame)?;
        }
        file.into_inner()?.sync_data()
    }
}

/// A number below `flows`, the lower the likelier: by the fourth power.
#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "it is between 0 and the number of flows"
)]
fn few(state: &mut u64, flows: u64) -> u64 {
    // Xorshift (Marsaglia 2003).
    *state ^= *state << 13;
    *state ^= *state >> 7;
    *state ^= *state << 17;
    let share = (*state >> 11) as f64 / (1_u64 << 53) as f64;
    (share.powi(4) * flows as f64) as u64
}

/// A frame of a flow: each third one UDP, each fifth one IPv6.
fn frame(flow: u32) -> Vec<u8> {
    let udp = flow.is_multiple_of(3);
    let mut transport = Vec::with_capacity(80);
    let port = 1024 + u16::try_from(flow % 60_000).expect("below 60,000");
    transport.extend(port.to_be_bytes());
    if udp {
        transport.extend([0, 99, 0, 80, 0, 0]);
    } else {
        transport.extend(443_u16.to_be_bytes());
        transport.extend(flow.to_be_bytes());
        transport.extend([0, 0, 0, 1, 0x50, 0x18, 4, 0, 0, 0, 0, 0]);
    }
    transport.resize(80, 0);
    let protocol = if udp { 17 } else { 6 };
    let mut frame = vec![2, 0, 0, 0, 0, 1, 2, 0, 0, 0, 0, 2];
    if flow.is_multiple_of(5) {
        frame.extend([0x86, 0xdd, 0x60, 0, 0, 0, 0, 80, protocol, 64]);
        for (net, host) in [(1, flow), (2, flow % 1000)] {
            frame.extend([0x20, net, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0]);
            frame.extend(host.to_be_bytes());
        }
    } else {
        frame.extend([8, 0, 0x45, 0, 0, 100, 0, 0, 0, 0, 64, protocol, 0, 0]);
        frame.extend((0x0a00_0000 + flow).to_be_bytes());
        frame.extend((0xc0a8_0000 + flow % 1000).to_be_bytes());
    }
    frame.extend(transport);
    frame
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;

    #[test]
    fn few_flows_have_most_of_the_packets() {
        let mut state = 1;
        let drawn: Vec<u64> = (0..10_000).map(|_| few(&mut state, 1000)).collect();
        assert!(drawn.iter().all(|flow| *flow < 1000));
        let low = drawn.iter().filter(|flow| **flow < 63).count();
        // The fourth root of 0.063 is one half.
        assert!((4500..5500).contains(&low), "{low}");
    }

    #[test]
    fn each_flow_has_a_frame_of_its_own() {
        let all: HashSet<Vec<u8>> = (0..1000).map(frame).collect();
        assert_eq!(all.len(), 1000);
        let lengths: HashSet<usize> = all.iter().map(Vec::len).collect();
        assert_eq!(lengths, [114, 134].into());
    }
}
