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
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use tempfile::TempDir;
use weir::send::{Backend, Due, Pace, Sender};
use weir_bpf::Parked;
use weir_lab::programs::hooks::TransmitAll;
use weir_lab::{Action, Hook, Network, Traffic, Veth};
use weir_sys::testrun;
use weir_traffic::{Description, Order, Sizes, Tables};

use crate::experiment::{
    self, About, Axis, Experiment, Judged, Measure, Outcome, Role, Series, Settings, Taken,
};
use crate::failure::{Failure, failed};
use crate::files::write_pcap;
use crate::process::pin;
use crate::program::{find, missing, succeeded};
use crate::sample::GENERATOR_CPU;
use crate::tidy;
use crate::units;
use crate::wanted::Wanted;

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

const ALL: [(Contestant, &str, Role); 7] = [
    (Contestant::Bare, "live frames, bare loop: the limit", Role::Limit),
    (Contestant::Live, "weir, live frames", Role::Ours),
    (Contestant::LiveFlows, "weir, live frames, 10,000 flows", Role::Ours),
    (Contestant::Ring, "weir, ring", Role::Ours),
    (Contestant::Plain, "weir, sendmmsg", Role::Ours),
    (Contestant::Trafgen, "trafgen", Role::Peer),
    (Contestant::Tcpreplay, "tcpreplay --topspeed", Role::Peer),
];

impl Contestant {
    fn name(self) -> &'static str {
        ALL.into_iter().find(|(one, ..)| *one == self).map_or("", |(_, name, _)| name)
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
        Some(missing(program, package))
    }
}

/// What came of a turn.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Sample {
    /// Packets that it says it has sent, or that it was to send.
    pub(crate) sent: u64,
    pub(crate) arrived: u64,
    /// Packets per second.
    pub(crate) rate: f64,
}

/// How much is sent in a turn.
#[derive(Clone, Copy, Debug)]
pub(crate) struct SendLimits {
    pub(crate) duration: Duration,
    pub(crate) quick: bool,
}

/// Packets that take long enough to tell a rate: of a first, short run of a program, by which the length of its turn is
/// chosen, and the least of others.
const TRIAL: u64 = 20_000;
/// Packets of a file that is replayed.
const LOOP: u64 = 1000;
/// Frames of one call of the bare loop, as many as weir's.
const CALL: u32 = 1 << 16;
/// Between two looks at the count.
const LOOK: Duration = Duration::from_millis(1);
/// How long frames may stay on their way.
pub(super) const PATIENCE: Duration = Duration::from_secs(5);

/// Frames of these sizes.
const SIZES: [u16; 6] = [60, 128, 256, 512, 1024, 1514];

struct Sending {
    network: Network,
    sizes: Vec<u16>,
    limits: SendLimits,
}

/// Makes the network.
pub(super) fn make(settings: &Settings) -> Result<Box<dyn Experiment>, Failure> {
    let network = settings.network("send", Veth::default())?;
    let limits = SendLimits { duration: settings.time(1000), quick: settings.quick };
    Ok(Box::new(Sending { network, sizes: settings.sizes(&SIZES), limits }))
}

impl Experiment for Sending {
    fn about(&self) -> About {
        let series = ALL.map(|(_, name, role)| Series::new(name, name, role));
        About {
            name: "send".to_owned(),
            title: "Sending".to_owned(),
            method: "One processor sends as fast as it can; at the other end of the pair an XDP program counts packets and drops \
                     them. What was sent has to arrive. A rate is that of arrivals."
                .to_owned(),
            axis: Some(Axis::frame()),
            measures: vec![
                Measure::higher("rate", "packets that arrived", "Mpps"),
                Measure::fact("sent", "packets sent", "packets"),
                Measure::fact("arrived", "packets that arrived", "packets"),
            ],
            series: series.to_vec(),
            missing: ALL.iter().filter_map(|(one, name, _)| Some([(*name).to_owned(), one.missing()?])).collect(),
            versus: OTHERS[1..].iter().map(|(other, _)| pair(*other).map(str::to_owned)).collect(),
            ..About::default()
        }
    }

    fn turns(&self) -> Vec<experiment::Turn> {
        let present = ALL.into_iter().filter(|(contestant, ..)| contestant.missing().is_none());
        experiment::Turn::each(self.sizes.iter().copied(), present.map(|(_, name, _)| name))
    }

    fn take(&mut self, turn: &experiment::Turn, _round: u32) -> Result<Taken, Failure> {
        let contestant = ALL.into_iter().find(|(_, name, _)| *name == turn.series);
        let size = u16::try_from(turn.at.expect("turns have a size")).expect("frames are short");
        let lab = Lab::new(&self.network, size)?;
        let Sample { sent, arrived, rate } =
            lab.sample(contestant.expect("turns are of contestants").0, self.limits)?;
        let mut taken = Taken::default();
        taken.add(turn, "rate", rate / 1e6);
        taken.add(turn, "sent", sent as f64);
        taken.add(turn, "arrived", arrived as f64);
        if sent != arrived {
            taken.problems.push(format!("{sent} packets sent, {arrived} arrived"));
        }
        Ok(taken)
    }

    /// Of the smallest frames.
    fn bars(&self, outcome: &Outcome) -> Vec<Judged> {
        let bar = |(other, least)| {
            let pair = pair(other);
            let name = format!("{}, 60 B", pair.join(" / "));
            let ratios = outcome.ratios(pair, "rate", Some(60.0));
            Judged::new(&name, Wanted::AtLeast(least), "times", ratios)
        };
        OTHERS.map(bar).to_vec()
    }
}

/// Those that live frames are compared with, and how many times as fast they have to be.
const OTHERS: [(Contestant, f64); 3] =
    [(Contestant::Bare, 0.9), (Contestant::Trafgen, 5.0), (Contestant::Tcpreplay, 10.0)];

fn pair(other: Contestant) -> [&'static str; 2] {
    [Contestant::Live.name(), other.name()]
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

    pub(crate) fn sample(&self, contestant: Contestant, limits: SendLimits) -> Result<Sample, Failure> {
        let hook = Hook::attach(&self.network.pair().rx, Action::Drop).map_err(failed("count packets"))?;
        let (sent, rate) = match contestant {
            Contestant::Trafgen | Contestant::Tcpreplay => {
                let (_, rate) = watched(&hook, || self.run(contestant, TRIAL))?;
                let enough =
                    units::whole(rate * limits.duration.as_secs_f64()).max(TRIAL).next_multiple_of(LOOP);
                if limits.quick { (TRIAL, rate) } else { watched(&hook, || self.run(contestant, enough))? }
            }
            _ => watched(&hook, || {
                self.network.tx().run(|| {
                    pin(GENERATOR_CPU)?;
                    self.send(contestant, limits.duration)
                })
            })?,
        };
        let trial = if contestant.program().is_some() && !limits.quick { TRIAL } else { 0 };
        let arrived = hook.wait_for(trial + sent, PATIENCE) - trial;
        Ok(Sample { sent, arrived, rate })
    }

    /// Sends in this process, and returns the number of packets.
    fn send(&self, contestant: Contestant, time: Duration) -> Result<u64, Failure> {
        match contestant {
            Contestant::Bare => {
                let program = TransmitAll::load().map_err(failed("load a program"))?;
                let _parked = Parked::park(program.program()).map_err(failed("attach a program"))?;
                let (index, mut sent) = (self.network.pair().tx.index, 0);
                let start = Instant::now();
                while sent == 0 || start.elapsed() < time {
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
                // The time is that of sending: on a busy machine, to open a sender takes longer than a short turn.
                let (start, mut sent) = (Instant::now(), 0);
                while sent < TRIAL || start.elapsed() < time {
                    for _ in 0..LOOP {
                        transmission.packet(None, &self.frame).map_err(failed("send"))?;
                    }
                    sent += LOOP;
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
        succeeded(program, self.network.tx().run(|| command.output()))?;
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
            let mut patience = PATIENCE;
            loop {
                let is_over = over.load(Ordering::Relaxed);
                let now = (Instant::now(), hook.packets());
                if now.1 > last.1 {
                    first.get_or_insert((earlier, now));
                    last = now;
                }
                earlier = now;
                // On a busy machine packets may still be on their way.
                patience = patience.saturating_sub(LOOK * u32::from(is_over));
                if is_over && (first.is_some() || patience.is_zero()) {
                    // On a busy machine one look may find all packets: then they have come since the look before.
                    return first.map(|(none, first)| (if first.0 < last.0 { first } else { none }, last));
                }
                thread::sleep(LOOK);
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
