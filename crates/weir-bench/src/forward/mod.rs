//! `weir-bench forward`: packets from one interface to another, side by side with the least that any program can do, and with
//! what the kernel has for it.
//!
//! ```text
//!  processor 1: generator -> tx0 -> rx0 == contestant ==> rx1 -> tx1, where they are counted
//!  processor 0: what a contestant does in user space
//! ```
//!
//! Each contestant has several short turns in a round, so that all are affected alike when the machine changes its speed, as shared
//! ones do. Only the contestant whose turn it is exists: otherwise, the programs that weir attaches to the kernel's tracepoints would
//! also run for others.

pub(crate) mod bare;
mod check;

use std::any::Any;
use std::fs::{self, File};
use std::io::Write as _;
use std::path::Path;
use std::process::Command;
use std::thread;
use std::time::Duration;

use clap::Args;
use weir::Forward;
use weir::forward::{ForwardPacket, Verdict};
use weir_lab::{Action, Generator, Hook, Network, Traffic, Veth};

use self::bare::{Directions, Loop};
use crate::experiment::{
    self, About, Entry, Experiment, Found, Judged, Measure, Outcome, Role, Series, Settings, Taken, Turn,
};
use crate::failure::{Failure, failed};
use crate::process::{cpu_time, ksoftirqd, pin};
use crate::program::succeeded;
use crate::spread::median;
use crate::units;
use crate::wanted::Wanted;

pub(crate) const EXAMPLES: &str = "\
Examples:
  weir-bench forward
        Run five rounds of one second for each contestant (about two minutes).
  weir-bench forward --check 1h
        Forward both ways at full rate for an hour, twice, and check every byte of
        every frame on arrival.
  weir-bench forward --quick
        Check that the benchmark works; the rates mean little.

Requires root and two otherwise idle processors. Runs in private networks that are removed at the end.";

#[derive(Debug, Args)]
pub(crate) struct ForwardArgs {
    #[command(flatten)]
    timed: experiment::Timed,

    /// Instead of measuring, forward both ways at once for TIME, in the kernel and then through a
    /// handler, and check every frame at the far ends. --json is then the account of both.
    #[arg(long, value_name = "TIME", value_parser = units::duration, conflicts_with_all = ["rounds", "duration", "quick", "html"])]
    check: Option<Duration>,
}

/// Runs the command.
pub(crate) fn run(args: &ForwardArgs, all: &'static [Entry]) -> Result<(), Failure> {
    match args.check {
        Some(time) => {
            let json = args.timed.how.json();
            let cannot = || failed(format!("write {}", json.unwrap_or_else(|| Path::new("-")).display()));
            // Better now than after all that time.
            let file = json.map(File::create).transpose().map_err(cannot())?;
            let report = check::run(time)?;
            file.map_or(Ok(()), |mut file| writeln!(file, "{report}")).map_err(cannot())
        }
        None => args.timed.how.run(args.timed.settings(), &["forward"], all),
    }
}

/// One contestant in one round.
#[derive(Debug, Default)]
struct Sample {
    /// Frames that the first interface took.
    accepted: u64,
    /// Frames that came out at the other end.
    arrived: u64,
    slices: Vec<Slice>,
}

/// Of one turn.
#[derive(Debug)]
struct Slice {
    /// Frames that came out at the other end, a second.
    rate: f64,
    /// Processor time of a frame in the kernel, nanoseconds: making it, receiving it, and all up to the far end.
    kernel_ns: f64,
}

impl Sample {
    /// One more turn.
    fn slice(&mut self, generator: &mut Generator, hook: &Hook, duration: Duration) -> Result<(), Failure> {
        let mut send = |duration| generator.send_for(duration).map_err(failed("send"));
        send(duration / 10)?; // to warm up
        let before = all_arrived(hook);
        let elsewhere =
            || ksoftirqd(GENERATOR_CPU).and_then(|thread| cpu_time(thread).ok()).unwrap_or_default();
        let beforehand = elsewhere();
        let sent = send(duration)?;
        let kernel = sent.cpu_time + elsewhere().saturating_sub(beforehand);
        let arrived = all_arrived(hook) - before;
        self.accepted += sent.accepted;
        self.arrived += arrived;
        self.slices.push(Slice {
            rate: arrived as f64 / sent.elapsed.as_secs_f64(),
            kernel_ns: kernel.as_secs_f64() * 1e9 / sent.accepted.max(1) as f64,
        });
        Ok(())
    }

    /// Median.
    fn of(&self, value: fn(&Slice) -> f64) -> f64 {
        median(self.slices.iter().map(value))
    }

    /// How many times `other`, slice by slice: median.
    fn times(&self, other: &Self, of: fn(&Slice) -> f64) -> f64 {
        let slices = self.slices.iter().zip(&other.slices);
        median(slices.map(|(slice, other)| of(slice) / of(other)))
    }
}

/// Bytes of a frame, without its checksum.
const SIZE: usize = 60;
const GENERATOR_CPU: u32 = 1;
const READER_CPU: u32 = 0;
/// Turns that each has in a round.
const SLICES: u32 = 10;
/// If nothing has arrived for so long, nothing is on its way.
const ON_THEIR_WAY: Duration = Duration::from_millis(20);

/// What joins `rx0` and `rx1` until it is dropped, made and dropped in their namespace.
type Joined = Result<Box<dyn Any + Send>, Failure>;

/// How a contestant joins them.
type Join = fn(&Network) -> Joined;

/// What is compared most closely has its turns one after the other.
const CONTESTANTS: [(&str, Role, Join); 6] = [
    ("Linux bridge", Role::Peer, bridge),
    ("tc mirred", Role::Peer, mirred),
    ("weir, in the kernel", Role::Ours, |_| Ok(Box::new(Forward::between("rx0", "rx1").open()?))),
    ("bare XDP redirect", Role::Limit, bare_redirect),
    ("weir, with a handler", Role::Ours, |_| {
        Ok(Box::new(Forward::between("rx0", "rx1").open_with(|_| pass)?))
    }),
    ("bare AF_XDP loop", Role::Limit, bare_loop),
];

/// Pairs by their places, how many times as fast the first has to be, and whether all of both happens in the kernel, so that
/// processor time can tell as well.
const TARGETS: [(&str, [usize; 2], f64, bool); 4] = [
    ("in the kernel / bare XDP redirect, 60 B", [2, 3], 0.9, true),
    ("with a handler / bare AF_XDP loop, 60 B", [4, 5], 0.8, false),
    ("in the kernel / Linux bridge, 60 B", [2, 0], 3.0, true),
    ("in the kernel / tc mirred, 60 B", [2, 1], 3.0, true),
];

/// What a slice is as a multiple of the one beside it: facts of the target.
const TIMES: &str = "times";
const TIMES_BY_CPU: &str = "times by CPU time";

struct Forwarding {
    duration: Duration,
}

pub(crate) fn make(settings: &Settings) -> Result<Box<dyn Experiment>, Failure> {
    settings.without_cards("forward")?;
    Ok(Box::new(Forwarding { duration: settings.time(1000) }))
}

impl Experiment for Forwarding {
    fn about(&self) -> About {
        About {
            name: "forward".to_owned(),
            title: "Forwarding".to_owned(),
            method: "Frames of 60 bytes go from one interface to another, at whose other end a program counts and drops them. In a \
                     round all have ten short turns, again and again; a value is the median of them, and a target compares turns \
                     that are beside each other."
                .to_owned(),
            measures: vec![
                Measure::higher("rate", "frames that came out", "Mpps"),
                Measure::lower("kernel", "processor time of a frame in the kernel", "ns"),
                Measure::fact("sent", "frames that the first interface took", "packets"),
                Measure::fact("arrived", "frames that came out", "packets"),
                Measure::fact(TIMES, "rate as a multiple of another's", ""),
                Measure::fact(TIMES_BY_CPU, "the same by processor time", ""),
            ],
            series: CONTESTANTS.map(|(name, role, _)| Series::new(name, name, role)).to_vec(),
            versus: TARGETS.map(|(_, pair, ..)| pair.map(|place| CONTESTANTS[place].0.to_owned())).to_vec(),
            ..About::default()
        }
    }

    /// One for all, who have short turns in it.
    fn turns(&self) -> Vec<Turn> {
        vec![Turn::of("all in turn", None)]
    }

    fn take(&mut self, _turn: &Turn, _round: u32) -> Result<Taken, Failure> {
        // In a thread of its own, for it stays on its processor. Threads begin where the one that starts them may run; the
        // generator goes elsewhere by itself.
        let samples = thread::scope(|scope| {
            let round = scope.spawn(|| {
                pin(READER_CPU)?;
                round(self.duration)
            });
            round.join().expect("a round does not panic")
        })?;
        let mut taken = Taken::default();
        for ((name, ..), sample) in CONTESTANTS.iter().zip(&samples) {
            let Sample { accepted, arrived, .. } = sample;
            for (measure, value) in [
                ("rate", sample.of(|slice| slice.rate) / 1e6),
                ("kernel", sample.of(|slice| slice.kernel_ns)),
                ("sent", *accepted as f64),
                ("arrived", *arrived as f64),
            ] {
                taken.put(name, measure, None, value);
            }
            // No more can arrive than were sent.
            if !(1..=*accepted).contains(arrived) {
                taken.problems.push(format!("{name}: {arrived} of {accepted} frames arrived"));
            }
        }
        for (name, [one, other], ..) in TARGETS {
            let [one, other] = [&samples[one], &samples[other]];
            let times = [
                (TIMES, one.times(other, |slice| slice.rate)),
                (TIMES_BY_CPU, other.times(one, |slice| slice.kernel_ns)),
            ];
            taken.found.extend(times.map(|(measure, value)| Found::new(name, measure, None, value)));
        }
        Ok(taken)
    }

    fn bars(&self, outcome: &Outcome) -> Vec<Judged> {
        let bar = |(name, _, least, in_kernel): (&str, _, f64, bool)| {
            let of = |measure| outcome.values_of(name, measure, None);
            let judged = Judged::new(name, Wanted::AtLeast(least), "times", of(TIMES));
            if in_kernel { judged.by_cpu_time(of(TIMES_BY_CPU)) } else { judged }
        };
        TARGETS.map(bar).to_vec()
    }
}

/// All contestants, in short turns.
fn round(duration: Duration) -> Result<[Sample; 6], Failure> {
    let cannot = |error| failed::<weir_lab::Error>("prepare to forward")(error);
    let mut network = Network::new(Veth::default()).map_err(cannot)?;
    network.connect(Veth::default()).map_err(cannot)?;
    let [here, there] = [0, 1].map(|number| network.pairs()[number].clone());
    let hook = Hook::attach(&there.tx, Action::Drop).map_err(cannot)?;
    // To the far end: a bridge would keep what is for its own ports.
    let mut ends = here.clone();
    ends.rx.mac = there.tx.mac;
    let traffic = Traffic::new(SIZE).map_err(cannot)?.between(&ends);
    let mut generator = Generator::new(&here, &traffic).map_err(cannot)?.cpu(GENERATOR_CPU);
    let mut samples: [Sample; 6] = Default::default();
    for _ in 0..SLICES {
        for ((.., join), sample) in CONTESTANTS.iter().zip(&mut samples) {
            let joined = network.rx().run(|| join(&network))?;
            sample.slice(&mut generator, &hook, duration / SLICES)?;
            network.rx().run(|| drop(joined));
        }
    }
    Ok(samples)
}

/// Frames that have come to the far end, once none is on its way any more.
fn all_arrived(hook: &Hook) -> u64 {
    loop {
        let before = hook.packets();
        thread::sleep(ON_THEIR_WAY);
        if hook.packets() == before {
            return before;
        }
    }
}

/// A handler that forwards all.
pub(crate) fn pass(_: &mut ForwardPacket<'_, '_>) -> Verdict {
    Verdict::Forward
}

fn bare_redirect(network: &Network) -> Joined {
    let [from, to] = [0, 1].map(|number| network.pairs()[number].rx.index);
    Ok(Box::new(bare::redirect(from, to)?))
}

fn bare_loop(network: &Network) -> Joined {
    let ends = [0, 1].map(|number| network.pairs()[number].rx.index);
    Ok(Box::new(Loop::start(ends, Directions::One, 1, 2048)?))
}

/// Without the spanning tree protocol its ports forward at once. Without IPv6, and without following multicast groups, for which
/// it would join one itself, it sends nothing of its own.
fn bridge(_: &Network) -> Joined {
    const SILENT: &str = "/proc/sys/net/ipv6/conf/default/disable_ipv6";
    fs::write(SILENT, "1").map_err(failed(format!("write {SILENT}")))?;
    let undo = Undo("ip", "link del br0");
    for line in [
        "link add br0 type bridge mcast_snooping 0",
        "link set rx0 master br0",
        "link set rx1 master br0",
        "link set br0 up",
    ] {
        tool("ip", line)?;
    }
    Ok(Box::new(undo))
}

fn mirred(_: &Network) -> Joined {
    tool("tc", "qdisc add dev rx0 clsact")?;
    let undo = Undo("tc", "qdisc del dev rx0 clsact");
    tool("tc", "filter add dev rx0 ingress u32 match u32 0 0 action mirred egress redirect dev rx1")?;
    Ok(Box::new(undo))
}

/// A command that is run when this is dropped. What it does not undo goes with the network.
struct Undo(&'static str, &'static str);

impl Drop for Undo {
    fn drop(&mut self) {
        let _gone = tool(self.0, self.1);
    }
}

fn tool(name: &str, line: &str) -> Result<(), Failure> {
    succeeded(format_args!("{name} {line}"), Command::new(name).args(line.split(' ')).output()).map(drop)
}
