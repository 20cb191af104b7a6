//! `weir-bench send`: how fast packets are sent, side by side with the least that a generator can do, and with other
//! programs.
//!
//! ```text
//!  processor 1: sender -> tx0 -> rx0: an XDP program counts and drops
//!  processor 0: looks at the count
//! ```
//!
//! A rate is what has arrived between the first look that found packets and the last that found more: how long a program
//! takes to start does not matter. trafgen chooses its processor itself.

use std::fmt::Write as _;
use std::fs;
use std::io::{self, Write as _};
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use clap::Args;
use rustix::thread::{CpuSet, sched_setaffinity};
use serde::Serialize;
use tempfile::TempDir;
use weir::send::{Backend, Due, Pace, Sender};
use weir::traffic::{Description, Order, Sizes, Tables};
use weir_bpf::Parked;
use weir_bpf::lab::{TransmitAll, Verdict};
use weir_lab::{Hook, Network, Traffic, Veth};
use weir_sys::testrun;

use crate::bars::{Bar, Wanted};
use crate::failure::Failure;
use crate::fault::Fault;
use crate::files::write_pcap;
use crate::machine::Machine;
use crate::program::find;
use crate::sample::GENERATOR_CPU;
use crate::spread::Spread;
use crate::table::{bar_rows, markdown};
use crate::tidy;
use crate::{believable, create, failed, save, two_processors};
use crate::{style, units};

const EXAMPLES: &str = "\
Examples:
  weir-bench send --json send.json
        Run everything, three rounds (about three minutes).
  weir-bench send --sizes 60 --rounds 9
        Packets of one size.
  weir-bench send --quick
        Check that the benchmark works; the rates mean little.

Requires root and two otherwise idle processors. Runs in a private network that is removed at the end. Tables are \
Markdown.";

#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(super) struct SendArgs {
    /// Number of rounds; default: 3.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=1000))]
    rounds: Option<u32>,

    /// Sending time per contestant and round; default: 1s.
    #[arg(long, value_name = "TIME", value_parser = units::duration)]
    duration: Option<Duration>,

    /// Frame sizes in bytes, without the checksum: 60 to 1514; default: 60,128,256,512,1024,1514.
    #[arg(long, value_name = "SIZE,...", value_delimiter = ',', value_parser = clap::value_parser!(u16).range(60..=1514))]
    sizes: Option<Vec<u16>>,

    /// Run one short round with the smallest frames.
    #[arg(long)]
    quick: bool,

    /// Write all measurements to FILE.
    #[arg(long, value_name = "FILE")]
    json: Option<PathBuf>,
}

/// A way to send.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Contestant {
    /// A program that only returns `XDP_TX`, on live frames that stay as they are.
    Bare,
    /// weir's live frames: one flow, with signatures.
    Live,
    /// The same, with 10,000 flows in random order.
    LiveFlows,
    /// weir's ring, one packet again and again.
    Ring,
    /// weir's calls with many packets.
    Plain,
    Trafgen,
    Tcpreplay,
}

impl Contestant {
    const ALL: [Self; 7] =
        [Self::Bare, Self::Live, Self::LiveFlows, Self::Ring, Self::Plain, Self::Trafgen, Self::Tcpreplay];

    fn name(self) -> &'static str {
        match self {
            Self::Bare => "live frames, bare loop: the limit",
            Self::Live => "weir, live frames",
            Self::LiveFlows => "weir, live frames, 10,000 flows",
            Self::Ring => "weir, ring",
            Self::Plain => "weir, sendmmsg",
            Self::Trafgen => "trafgen",
            Self::Tcpreplay => "tcpreplay --topspeed",
        }
    }

    /// The program that it needs, and its package.
    fn program(self) -> Option<(&'static str, &'static str)> {
        match self {
            Self::Trafgen => Some(("trafgen", "netsniff-ng")),
            Self::Tcpreplay => Some(("tcpreplay", "tcpreplay")),
            _ => None,
        }
    }

    /// Why it cannot send here.
    pub(crate) fn missing(self) -> Option<String> {
        let (program, package) = self.program().filter(|(program, _)| find(program).is_none())?;
        Some(format!("{program} is not installed (apt-get install {package})"))
    }
}

#[derive(Debug, Serialize)]
struct Report {
    machine: Machine,
    rounds: u32,
    samples: Vec<Sample>,
    bars: Vec<Bar>,
    /// Turns that gave no result.
    faults: Vec<Fault>,
}

/// A turn.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct Sample {
    contestant: &'static str,
    size: u16,
    round: u32,
    /// Packets that it says it has sent, or that it was to send.
    pub(crate) sent: u64,
    pub(crate) arrived: u64,
    /// Packets per second.
    pub(crate) rate: f64,
}

/// How much is sent in a turn.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Turn {
    pub(crate) duration: Duration,
    pub(crate) quick: bool,
}

/// Packets of a first, short run of a program, by which the length of its turn is chosen.
const TRIAL: u64 = 20_000;
/// Packets of a file that is replayed.
const LOOP: u64 = 1000;
/// Frames of one call of the bare loop, as many as weir's.
const CALL: u32 = 1 << 16;
/// How long frames may stay on their way.
pub(super) const PATIENCE: Duration = Duration::from_secs(5);

/// Runs the command.
pub(super) fn run(args: &SendArgs) -> Result<(), Failure> {
    let json = create(args.json.as_deref())?;
    two_processors()?;
    let machine = Machine::describe("/dev/shm".as_ref());
    style::say(format_args!("{machine}"));
    let quick = args.quick;
    let rounds = args.rounds.unwrap_or(if quick { 1 } else { 3 });
    let usual = Duration::from_millis(if quick { 50 } else { 1000 });
    let turn = Turn { duration: args.duration.unwrap_or(usual), quick };
    let all = if quick { vec![60] } else { vec![60, 128, 256, 512, 1024, 1514] };
    let sizes = args.sizes.clone().unwrap_or(all);

    let here = Contestant::ALL.into_iter().filter(|contestant| match contestant.missing() {
        Some(why) => {
            style::say(format_args!("{why}"));
            false
        }
        None => true,
    });
    let here: Vec<_> = here.collect();
    let network = Network::new(Veth::default()).map_err(failed("make a private network"))?;
    let (mut samples, mut faults) = (Vec::new(), Vec::new());
    for round in 1..=rounds {
        for &size in &sizes {
            let lab = Lab::new(&network, size)?;
            for &contestant in &here {
                let told = |what: &str| {
                    style::say(format_args!("[{round}] {size:>4} B  {:34} {what}", contestant.name()))
                };
                match lab.sample(contestant, round, turn) {
                    Ok(sample) => {
                        told(&format!("{:>6.2} Mpps", sample.rate / 1e6));
                        samples.push(sample);
                    }
                    Err(failure) => {
                        told("failed");
                        faults.push(Fault::new(contestant.name(), &failure));
                    }
                }
            }
        }
    }
    let bars = bars(&samples);
    let report = Report { machine, rounds, samples, bars, faults };
    report.print(&sizes).map_err(failed("write to standard output"))?;
    if let Some((path, file)) = json {
        save(path, file, &serde_json::to_string_pretty(&report).map_err(failed("make JSON"))?)?;
    }
    believable(
        report.faults.len() + report.samples.iter().filter(|sample| sample.sent != sample.arrived).count(),
    )
}

/// The network, and frames of one size.
pub(crate) struct Lab<'a> {
    network: &'a Network,
    size: u16,
    frame: Vec<u8>,
    directory: TempDir,
}

impl<'a> Lab<'a> {
    pub(crate) fn new(network: &'a Network, size: u16) -> Result<Self, Failure> {
        let mut frame = Vec::new();
        tables(size, 1)?.write(0, 0, 0, &mut frame);
        let directory = tidy::folder().map_err(failed("create a folder"))?;
        Ok(Self { network, size, frame, directory })
    }

    /// What is sent.
    pub(crate) fn frame(&self) -> &[u8] {
        &self.frame
    }

    /// A place that lasts as long as this.
    pub(crate) fn file(&self, name: &str) -> PathBuf {
        self.directory.path().join(name)
    }

    pub(crate) fn sample(&self, contestant: Contestant, round: u32, turn: Turn) -> Result<Sample, Failure> {
        let hook = Hook::attach(&self.network.pair().rx, Verdict::Drop).map_err(failed("count packets"))?;
        let (sent, rate) = match contestant {
            Contestant::Trafgen | Contestant::Tcpreplay => {
                let (_, rate) = watched(&hook, || self.run(contestant, TRIAL))?;
                let enough =
                    units::whole(rate * turn.duration.as_secs_f64()).max(TRIAL).next_multiple_of(LOOP);
                if turn.quick { (TRIAL, rate) } else { watched(&hook, || self.run(contestant, enough))? }
            }
            _ => watched(&hook, || {
                self.network.tx().run(|| {
                    pin()?;
                    self.send(contestant, turn.duration)
                })
            })?,
        };
        let trial = if contestant.program().is_some() && !turn.quick { TRIAL } else { 0 };
        let arrived = hook.wait_for(trial + sent, PATIENCE) - trial;
        Ok(Sample { contestant: contestant.name(), size: self.size, round, sent, arrived, rate })
    }

    /// Sends in this process, and returns the number of packets.
    fn send(&self, contestant: Contestant, time: Duration) -> Result<u64, Failure> {
        let start = Instant::now();
        match contestant {
            Contestant::Bare => {
                let program = TransmitAll::load().map_err(failed("load a program"))?;
                let _parked = Parked::park(program.program()).map_err(failed("attach a program"))?;
                let (index, mut sent) = (self.network.pair().tx.index, 0);
                let start = Instant::now();
                while start.elapsed() < time {
                    testrun::live_frames(program.program(), &self.frame, index, 64, CALL)
                        .map_err(failed("send live frames"))?;
                    sent += u64::from(CALL);
                }
                Ok(sent)
            }
            Contestant::Live | Contestant::LiveFlows => {
                let tables = tables(self.size, if contestant == Contestant::Live { 1 } else { 10_000 })?;
                let mut live = Sender::to("tx0").live(&tables, 0).map_err(failed("send live frames"))?;
                let due = |_, elapsed| if elapsed < time { Due::Now(u64::MAX) } else { Due::Over };
                Ok(live.run(0, due).map_err(failed("send live frames"))?.sent)
            }
            _ => {
                let backend = if contestant == Contestant::Ring { Backend::Ring } else { Backend::Plain };
                let mut sender =
                    Sender::to("tx0").backend(backend).open().map_err(failed("open a sender"))?;
                let mut transmission = sender.begin(Pace::Top);
                while start.elapsed() < time {
                    for _ in 0..LOOP {
                        transmission.packet(None, &self.frame).map_err(failed("send"))?;
                    }
                }
                Ok(transmission.finish().map_err(failed("send"))?.sent.packets)
            }
        }
    }

    /// Runs another program that is to send so many packets.
    fn run(&self, contestant: Contestant, packets: u64) -> Result<u64, Failure> {
        let (program, _) = contestant.program().expect("a program");
        let mut command = Command::new("taskset");
        command.args(["-c", &GENERATOR_CPU.to_string(), program]);
        if contestant == Contestant::Trafgen {
            let file = self.file("frame.cfg");
            let mut text = "{ ".to_owned();
            self.frame.iter().for_each(|byte| write!(text, "{byte:#04x}, ").expect("text takes all"));
            text.truncate(text.len() - 2);
            fs::write(&file, text + " }\n").map_err(failed("write trafgen's frame"))?;
            command.args(["--dev", "tx0", "--num", &packets.to_string(), "--cpus", "1"]);
            command.args(["--no-sock-mem", "--notouch-irq", "--conf"]).arg(file);
        } else {
            let file = self.file("frames.pcap");
            if !file.exists() {
                let traffic = Traffic::new(self.size.into()).map_err(failed("make frames"))?;
                write_pcap(&file, &traffic, LOOP, 1).map_err(failed("write packets to replay"))?;
            }
            command.args(["--intf1", "tx0", "--topspeed", "--preload-pcap"]);
            command.args(["--loop", &(packets / LOOP).to_string()]).arg(file);
        }
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::piped());
        let output =
            self.network.tx().run(|| command.output()).map_err(failed(format_args!("run {program}")))?;
        if !output.status.success() {
            let said = String::from_utf8_lossy(&output.stderr);
            return Err(Failure::new(format_args!("{program} failed: {}", said.trim())));
        }
        Ok(packets)
    }
}

/// Frames of one size and so many flows, in random order if there are several.
fn tables(size: u16, flows: u32) -> Result<Tables, Failure> {
    let sizes = Some(Sizes::Fixed(size.into()));
    let order = if flows > 1 { Order::Random } else { Order::Turn };
    Tables::new(&Description { sizes, flows, order, ..Description::new(false) })
        .map_err(failed("make frames"))
}

/// Runs `send`, and returns what it returns, and the rate at which packets have arrived meanwhile.
pub(super) fn watched(
    hook: &Hook,
    send: impl FnOnce() -> Result<u64, Failure> + Send,
) -> Result<(u64, f64), Failure> {
    let (over, before) = (AtomicBool::new(false), hook.packets());
    thread::scope(|scope| {
        let watch = scope.spawn(|| {
            let (mut first, mut last) = (None, (Instant::now(), before));
            let mut earlier = last;
            loop {
                let is_over = over.load(Ordering::Relaxed);
                let now = (Instant::now(), hook.packets());
                if now.1 > last.1 {
                    first.get_or_insert((earlier, now));
                    last = now;
                }
                earlier = now;
                if is_over {
                    // On a busy machine one look may find all packets: then they have come since the look before.
                    return first.map(|(none, first)| (if first.0 < last.0 { first } else { none }, last));
                }
                thread::sleep(Duration::from_millis(1));
            }
        });
        let sent = send();
        over.store(true, Ordering::Relaxed);
        let seen = watch.join().expect("no panic");
        let sent = sent?;
        let ((began, first), (ended, last)) = seen.ok_or_else(|| Failure::new("no packet has arrived"))?;
        let seconds = (ended - began).as_secs_f64();
        if seconds == 0.0 {
            return Err(Failure::new("all packets arrived within a millisecond: too few to tell a rate"));
        }
        Ok((sent, (last - first) as f64 / seconds))
    })
}

/// Keeps the calling thread on the processor of senders.
fn pin() -> Result<(), Failure> {
    let mut only = CpuSet::new();
    only.set(usize::try_from(GENERATOR_CPU).expect("a small number"));
    sched_setaffinity(None, &only).map_err(failed("pin to one processor"))
}

/// The rates of a contestant with frames of a size.
fn rates(samples: &[Sample], contestant: Contestant, size: u16) -> impl Iterator<Item = (u32, f64)> {
    let those = samples.iter().filter(move |s| s.contestant == contestant.name() && s.size == size);
    those.map(|sample| (sample.round, sample.rate))
}

/// What the issue of speed is about: frames of 60 bytes.
fn bars(samples: &[Sample]) -> Vec<Bar> {
    let ratio = |of, over| {
        let others: Vec<_> = rates(samples, over, 60).collect();
        let in_round = |(round, rate): (u32, f64)| {
            let (_, other) = others.iter().find(|(other, _)| *other == round)?;
            Some(rate / other)
        };
        Spread::of(rates(samples, of, 60).filter_map(in_round))
    };
    let bar = |over: Contestant, wanted| {
        let name = format!("{} / {}", Contestant::Live.name(), over.name());
        Bar::new(&name, Some(60), Wanted::AtLeast(wanted), "times", ratio(Contestant::Live, over))
    };
    vec![bar(Contestant::Bare, 0.9), bar(Contestant::Trafgen, 5.0), bar(Contestant::Tcpreplay, 10.0)]
}

impl Report {
    fn print(&self, sizes: &[u16]) -> io::Result<()> {
        let heads = sizes.iter().map(|size| format!("{size} B"));
        let mut rows = vec![[String::new()].into_iter().chain(heads).collect::<Vec<_>>()];
        for contestant in Contestant::ALL {
            let cell = |size: &u16| match Spread::of(
                rates(&self.samples, contestant, *size).map(|(_, rate)| rate),
            ) {
                Some(Spread { median, min, max }) => {
                    format!("{:.2} ({:.2}..{:.2})", median / 1e6, min / 1e6, max / 1e6)
                }
                None => "-".to_owned(),
            };
            rows.push([contestant.name().to_owned()].into_iter().chain(sizes.iter().map(cell)).collect());
        }
        let mut stdout = io::stdout().lock();
        write!(stdout, "\nMpps arrived: median (range)\n\n{}", markdown(&rows))?;
        write!(stdout, "\nTargets\n\n{}", markdown(&bar_rows(&self.bars)))?;
        for sample in self.samples.iter().filter(|sample| sample.sent != sample.arrived) {
            let Sample { contestant, size, round, sent, arrived, .. } = sample;
            writeln!(stdout, "[{round}] {size} B {contestant}: {arrived} of {sent} packets arrived")?;
        }
        for fault in &self.faults {
            writeln!(stdout, "{}: {}", fault.what, fault.message)?;
        }
        stdout.flush()
    }
}
