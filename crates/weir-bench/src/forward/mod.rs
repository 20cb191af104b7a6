//! `weir-bench forward`: packets from one interface to another, side by side with the least that any program can do, and with
//! what the kernel has for it.
//!
//! ```text
//!  processor 1: generator -> tx0 -> rx0 == contestant ==> rx1 -> tx1, where they are counted
//!  processor 0: what a contestant does in user space
//! ```
//!
//! In a round all have short turns, again and again: when the machine changes its speed, as those with other guests do, it does so for
//! all of them. Nobody is there but who has his turn: what weir attaches to the kernel's tracepoints would be called for others, too.

pub(crate) mod bare;
mod check;

use std::any::Any;
use std::fs;
use std::io::{self, Write};
use std::process::Command;
use std::thread;
use std::time::Duration;

use clap::Args;
use rustix::thread::{CpuSet, sched_setaffinity};
use serde::Serialize;
use weir::Forward;
use weir::forward::{Packet, Verdict};
use weir_lab::{Generator, Hook, Network, Traffic, Verdict as Hooked, Veth};

use self::bare::{Loop, Ways};
use crate::bars::{Bar, Wanted};
use crate::failure::Failure;
use crate::machine::Machine;
use crate::process::{cpu_time, ksoftirqd};
use crate::spread::Spread;
use crate::table::{bar_rows, table};
use crate::{believable, create, failed, save};
use crate::{style, units};

const EXAMPLES: &str = "\
Examples:
  weir-bench forward
        Run three rounds of one second for each contestant (about a minute).
  weir-bench forward --check 1h
        Forward both ways at full rate for an hour, twice, and check every byte of
        every frame on arrival.
  weir-bench forward --rounds 1 --quick
        Check that the benchmark works; the rates mean little.

Requires root and two otherwise idle processors. Runs in private networks that are removed at the end.";

#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct ForwardArgs {
    /// Number of rounds.
    #[arg(long, value_name = "N", default_value = "3", value_parser = clap::value_parser!(u32).range(1..=1000))]
    rounds: u32,

    /// Sending time per contestant and round, divided into slices.
    #[arg(long, value_name = "TIME", value_parser = units::duration, default_value = "1s")]
    duration: Duration,

    /// Run short rounds.
    #[arg(long)]
    quick: bool,

    /// Instead of measuring, forward both ways at once for TIME, in the kernel and then through a
    /// handler, and check every frame at the far ends.
    #[arg(long, value_name = "TIME", value_parser = units::duration, conflicts_with_all = ["rounds", "duration", "quick"])]
    check: Option<Duration>,

    /// Write all measurements to FILE.
    #[arg(long, value_name = "FILE")]
    json: Option<std::path::PathBuf>,
}

#[derive(Debug, Serialize)]
struct Report {
    machine: Machine,
    samples: Vec<Sample>,
    bars: Vec<Bar>,
}

/// One contestant in one round.
#[derive(Debug, Serialize)]
struct Sample {
    contestant: &'static str,
    round: u32,
    /// Frames that the first interface took.
    accepted: u64,
    /// Frames that came out at the other end.
    arrived: u64,
    slices: Vec<Slice>,
}

/// Of one turn.
#[derive(Debug, Serialize)]
struct Slice {
    /// Frames that came out at the other end, a second.
    rate: f64,
    /// Processor time of a frame in the kernel, nanoseconds: making it, receiving it, and all up to the far end.
    kernel_ns: f64,
}

impl Sample {
    /// No more can arrive than were sent.
    fn is_believable(&self) -> bool {
        (1..=self.accepted).contains(&self.arrived)
    }

    /// One more turn.
    fn slice(&mut self, generator: &mut Generator, hook: &Hook, duration: Duration) -> Result<(), Failure> {
        let mut send = |duration| generator.send_for(duration).map_err(failed(self.contestant));
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
    fn rate(&self) -> f64 {
        Spread::of(self.slices.iter().map(|slice| slice.rate)).map_or(f64::NAN, |rates| rates.median)
    }

    /// How many times `other`, slice by slice: median.
    fn times(&self, other: &Self, of: fn(&Slice) -> f64) -> Option<f64> {
        let slices = self.slices.iter().zip(&other.slices);
        Some(Spread::of(slices.map(|(slice, other)| of(slice) / of(other)))?.median)
    }
}

/// Bytes of a frame, without its checksum.
const SIZE: usize = 60;
const GENERATOR_CPU: u32 = 1;
const READER_CPU: usize = 0;
/// Turns that each has in a round.
const SLICES: u32 = 10;
/// If nothing has arrived for so long, nothing is on its way.
const ON_THEIR_WAY: Duration = Duration::from_millis(20);

/// What joins `rx0` and `rx1` until it is dropped, made and dropped in their namespace.
type Joined = Result<Box<dyn Any + Send>, Failure>;

/// How a contestant joins them.
type Join = fn(&Network) -> Joined;

/// What is compared most closely has its turns one after the other.
const CONTESTANTS: [(&str, Join); 6] = [
    ("Linux bridge", bridge),
    ("tc mirred", mirred),
    ("weir, in the kernel", |_| Ok(Box::new(Forward::between("rx0", "rx1").open()?))),
    ("bare XDP redirect", bare_redirect),
    ("weir, with a handler", |_| Ok(Box::new(Forward::between("rx0", "rx1").open_with(|_| pass)?))),
    ("bare AF_XDP loop", bare_loop),
];

/// Runs the command.
pub(crate) fn run(args: &ForwardArgs) -> Result<(), Failure> {
    let json = create(args.json.as_deref())?;
    if let Some(time) = args.check {
        let report = check::run(time)?;
        return json.map_or(Ok(()), |(path, file)| save(path, file, &report));
    }
    let machine = Machine::describe("/dev/shm".as_ref());
    style::say(format_args!("{machine}"));
    // Threads begin where the thread that starts them may run; the generator goes elsewhere by itself.
    let mut only = CpuSet::new();
    only.set(READER_CPU);
    sched_setaffinity(None, &only).map_err(failed("pin to one processor"))?;
    let duration = if args.quick { Duration::from_millis(50) } else { args.duration };
    let mut samples = Vec::new();
    for number in 1..=args.rounds {
        for sample in round(number, duration)? {
            style::say(format_args!(
                "[{number}] {:<22} {:>11}, {} of {} frames arrived{}",
                sample.contestant,
                format!("{}pps", units::scaled(sample.rate())),
                units::grouped(sample.arrived),
                units::grouped(sample.accepted),
                if sample.is_believable() { "" } else { ": not plausible" }
            ));
            samples.push(sample);
        }
    }
    let bars = bars(&samples);
    let mut stdout = io::stdout().lock();
    let printed = write!(stdout, "Targets\n{}", table(&bar_rows(&bars)));
    printed.and_then(|()| stdout.flush()).map_err(failed("write to standard output"))?;
    let wrong = samples.iter().filter(|sample| !sample.is_believable()).count();
    let report = Report { machine, samples, bars };
    if let Some((path, file)) = json {
        save(path, file, &serde_json::to_string_pretty(&report).map_err(failed("make JSON"))?)?;
    }
    believable(wrong)
}

fn round(number: u32, duration: Duration) -> Result<Vec<Sample>, Failure> {
    let cannot = |error| failed::<weir_lab::Error>("prepare to forward")(error);
    let mut network = Network::new(Veth::default()).map_err(cannot)?;
    network.connect(Veth::default()).map_err(cannot)?;
    let [here, there] = [0, 1].map(|number| network.pairs()[number].clone());
    let hook = Hook::attach(&there.tx, Hooked::Drop).map_err(cannot)?;
    // To the far end: a bridge would keep what is for its own ports.
    let mut ends = here.clone();
    ends.rx.mac = there.tx.mac;
    let traffic = Traffic::new(SIZE).map_err(cannot)?.between(&ends);
    let mut generator = Generator::new(&here, &traffic).map_err(cannot)?.cpu(GENERATOR_CPU);
    let empty =
        |(contestant, _)| Sample { contestant, round: number, accepted: 0, arrived: 0, slices: Vec::new() };
    let mut samples = CONTESTANTS.map(empty);
    for _ in 0..SLICES {
        for ((_, join), sample) in CONTESTANTS.iter().zip(&mut samples) {
            let joined = network.rx().run(|| join(&network))?;
            sample.slice(&mut generator, &hook, duration / SLICES)?;
            network.rx().run(|| drop(joined));
        }
    }
    Ok(samples.into())
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
pub(crate) fn pass(_: &mut Packet<'_, '_>) -> Verdict {
    Verdict::Forward
}

fn bare_redirect(network: &Network) -> Joined {
    let [from, to] = [0, 1].map(|number| network.pairs()[number].rx.index);
    Ok(Box::new(bare::redirect(from, to)?))
}

fn bare_loop(network: &Network) -> Joined {
    let ends = [0, 1].map(|number| network.pairs()[number].rx.index);
    Ok(Box::new(Loop::start(ends, Ways::One, 1, 2048)?))
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
    let output =
        Command::new(name).args(line.split(' ')).output().map_err(failed(format_args!("run {name}")))?;
    if output.status.success() {
        return Ok(());
    }
    Err(Failure::new(format_args!("{name} {line}: {}", String::from_utf8_lossy(&output.stderr).trim())))
}

/// Each slice compared with those beside it; of a round's slices the median.
fn bars(samples: &[Sample]) -> Vec<Bar> {
    let of = |contestant: &str, round: u32| {
        samples.iter().find(|sample| sample.contestant == contestant && sample.round == round)
    };
    let rounds = samples.iter().map(|sample| sample.round).max().unwrap_or(0);
    let bar = |name, one: &str, other: &str, least| {
        let ratio = |round| of(one, round)?.times(of(other, round)?, |slice| slice.rate);
        let measured = Spread::of((1..=rounds).filter_map(ratio));
        Bar::new(name, Some(SIZE), Wanted::AtLeast(least), "times", measured)
    };
    // What happens in the kernel alone can be told by processor time as well.
    let in_kernel = |name, one: &str, other: &str, least| {
        let ratio = |round| of(other, round)?.times(of(one, round)?, |slice| slice.kernel_ns);
        Bar { undisturbed: Spread::of((1..=rounds).filter_map(ratio)), ..bar(name, one, other, least) }
    };
    let [bridge, mirred, kernel, redirect, handler, bare] = CONTESTANTS.map(|(name, _)| name);
    vec![
        in_kernel("in the kernel / bare XDP redirect", kernel, redirect, 0.9),
        bar("with a handler / bare AF_XDP loop", handler, bare, 0.8),
        in_kernel("in the kernel / Linux bridge", kernel, bridge, 3.0),
        in_kernel("in the kernel / tc mirred", kernel, mirred, 3.0),
    ]
}
