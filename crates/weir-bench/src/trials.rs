//! What is not a rate: a burst while the reader is stopped, packets that the host itself wants, the time to the first
//! packet, the way of a lone packet, and the cost of waiting.

use std::process::{Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use rustix::process::Signal;
use rustix::thread::{CpuSet, sched_setaffinity};
use serde::Serialize;
use weir::{Capture, SourceChoice};
use weir_lab::{FrameSender, Generator, Rate, SendReport, Traffic};

use super::fault::Fault;
use super::program::{READER_CPU, WEIR, find};
use super::sample::{GENERATOR_CPU, Lab};
use super::savefile::Packets;
use super::witness::Witness;
use super::{contestants, failed};
use crate::failure::Failure;
use crate::{style, units};

/// Bytes of a frame.
const SIZE: usize = 60;
/// Frames of the burst.
const BURST: u64 = 400_000;
/// Time between two lone packets: long enough for a reader to fall asleep.
const SPACING: Duration = Duration::from_millis(5);
/// How long any of this may take.
const PATIENCE: Duration = Duration::from_secs(10);

/// The answers. All raw values, in the order of their measuring.
#[derive(Debug, Default, Serialize)]
pub(super) struct Trials {
    pub(super) burst: Option<Burst>,
    pub(super) host: Option<Host>,
    /// From the start of `weir capture -w -` to the first packet on its standard output, while ten thousand a second pass.
    pub(super) start_ms: Vec<f64>,
    /// From the call that sends a packet to the handler that gets it.
    pub(super) latency_us: Vec<f64>,
    pub(super) idle: Option<Idle>,
}

/// Frames at full rate while the reader's process is stopped (SIGSTOP).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub(super) struct Burst {
    pub(super) packets: u64,
    /// Bytes of the chunks of the one queue that they come on.
    pool_of_queue: u64,
    pub(super) lost: u64,
    /// Those that were not lost are whole and in order.
    pub(super) verified: bool,
}

/// Frames that are addressed to the receiving host, captured in mode pass.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub(super) struct Host {
    pub(super) packets: u64,
    /// What its IP has got (`IpInReceives`).
    stack: u64,
    /// What was captured is all of it, whole and in order.
    pub(super) verified: bool,
}

impl Host {
    /// Packets that the stack has got too few or too many.
    pub(super) fn missed(&self) -> u64 {
        self.packets.abs_diff(self.stack)
    }
}

/// `weir capture` on an interface where nothing comes.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub(super) struct Idle {
    seconds: f64,
    cpu_seconds: f64,
}

impl Idle {
    /// Percent of a processor.
    pub(super) fn load(&self) -> f64 {
        self.cpu_seconds / self.seconds * 100.0
    }
}

/// Makes all of them; what fails is added to `faults`.
pub(super) fn run(lab: &Lab, quick: bool, faults: &mut Vec<Fault>) -> Trials {
    let (starts, packets, rest) = if quick { (1, 20, 500) } else { (5, 100, 2000) };
    let mut trials = Trials::default();
    let mut keep = |name: &'static str, result: Result<String, Failure>| match result {
        Ok(text) => style::say(format_args!("{name}: {text}")),
        Err(failure) => {
            style::say(format_args!("{name}: {}", style::stderr().red(failure.message())));
            faults.push(Fault::new(name, &failure));
        }
    };
    let result = burst(lab).map(|burst| {
        trials.burst = Some(burst);
        let (lost, packets) = (units::grouped(burst.lost), units::grouped(burst.packets));
        format!("{lost} of {packets} packets lost{}", wrong(burst.verified))
    });
    keep("burst", result);
    let result = host(lab).map(|host| {
        trials.host = Some(host);
        let (missed, packets) = (units::grouped(host.missed()), units::grouped(host.packets));
        format!("{missed} of {packets} packets to this host did not reach its stack{}", wrong(host.verified))
    });
    keep("host", result);
    for _ in 0..starts {
        let result = start(lab).map(|time| {
            trials.start_ms.push(time.as_secs_f64() * 1e3);
            format!("first packet after {} ms", time.as_millis())
        });
        keep("start", result);
    }
    let result = latency(lab, packets).map(|times| {
        trials.latency_us = times.iter().map(|time| time.as_secs_f64() * 1e6).collect();
        format!("{packets} lone packets handled")
    });
    keep("latency", result);
    let result = idle(lab, Duration::from_millis(rest)).map(|idle| {
        trials.idle = Some(idle);
        format!("{:.3} % of a processor", idle.load())
    });
    keep("idle", result);
    trials
}

fn wrong(verified: bool) -> String {
    if verified { String::new() } else { format!(", {}", style::stderr().red("wrong bytes or order")) }
}

/// All frames, or an error that says that the measurement has to be made again.
fn send(generator: &mut Generator, frames: u64) -> Result<SendReport, Failure> {
    let sent = generator.send(frames).map_err(failed("send"))?;
    if sent.refused > 0 {
        return Err(Failure::new(format_args!("the interface rejected {} of {frames} frames", sent.refused)));
    }
    Ok(sent)
}

fn burst(lab: &Lab) -> Result<Burst, Failure> {
    let program = contestants::receive_into_50_mib();
    let chunk_size = program.chunk_size();
    let reader = program.start(&lab.pair().rx, None)?;
    let (traffic, mut generator) = lab.generator(SIZE)?;
    reader.signal(Signal::STOP)?;
    let sent = send(&mut generator, BURST)?;
    reader.signal(Signal::CONT)?;
    reader.settle()?;
    let counts = reader.finish()?;
    let witness = counts.witness.unwrap_or_default();
    let lost = sent.accepted.saturating_sub(counts.delivered);
    // What finds no room is behind all that did.
    let verified = witness == Witness::of(&traffic, 0..counts.delivered);
    let pool_of_queue = counts.chunks.unwrap_or(0) * chunk_size / u64::from(super::sample::QUEUES);
    Ok(Burst { packets: sent.accepted, pool_of_queue, lost, verified })
}

fn host(lab: &Lab) -> Result<Host, Failure> {
    let pair = lab.pair();
    let reader = contestants::receive_and_pass().start(&pair.rx, None)?;
    let traffic = Traffic::new(SIZE).map_err(failed("describe frames"))?.between(pair);
    let generator = Generator::new(pair, &traffic).map_err(failed("prepare to send"))?;
    let before = lab.to_this_host()?;
    let sent = send(&mut generator.cpu(GENERATOR_CPU), BURST)?;
    reader.settle()?;
    let counts = reader.finish()?;
    let stack = lab.to_this_host()? - before;
    let verified = counts.witness == Some(Witness::of(&traffic, sent.sequences));
    Ok(Host { packets: sent.accepted, stack, verified })
}

fn start(lab: &Lab) -> Result<Duration, Failure> {
    let rate = Rate::PerSecond(10_000);
    let mut generator = lab.generator(SIZE)?.1.rate(rate).map_err(failed("prepare to send"))?;
    thread::scope(|scope| {
        let sending = scope.spawn(move || generator.send_for(Duration::from_secs(1)));
        thread::sleep(Duration::from_millis(20));
        let time = first_packet(lab);
        sending.join().expect("sending does not panic").map_err(failed("send"))?;
        time
    })
}

fn first_packet(lab: &Lab) -> Result<Duration, Failure> {
    let port = &lab.pair().rx;
    let weir = find(WEIR).ok_or_else(|| Failure::new("cannot find weir"))?;
    let mut command = Command::new(weir);
    command.args(["capture", "-i", &port.name, "--source", "xdp", "-c", "1", "-q", "-U", "-w", "-"]);
    // After the time-out it gives up by itself, with a file in which there is no packet.
    command.args(["--duration", "5s"]).stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::null());
    let start = Instant::now();
    let mut capture = port.netns.spawn(&mut command).map_err(failed("start weir capture"))?;
    let output = capture.stdout.take().expect("a pipe was asked for");
    let time = Packets::new(output).and_then(|mut packets| {
        let first = packets.next()?.map(|_| start.elapsed());
        while packets.next()?.is_some() {}
        Ok(first)
    });
    let status = capture.wait().map_err(failed("wait for weir capture"))?;
    match time.map_err(failed("read the output of weir capture"))? {
        Some(time) if status.success() => Ok(time),
        Some(_) => Err(Failure::new(format_args!("weir capture ended: {status}"))),
        None => Err(Failure::new("weir capture saw no packet")),
    }
}

fn latency(lab: &Lab, packets: u64) -> Result<Vec<Duration>, Failure> {
    let pair = lab.pair();
    let traffic = Traffic::new(SIZE).map_err(failed("describe frames"))?.between(pair);
    let sender = FrameSender::new(&pair.tx).map_err(failed("prepare to send"))?;
    pair.rx.netns.run(|| {
        let mut capture = Capture::builder().interface(&pair.rx.name).source(SourceChoice::Xdp).open()?;
        thread::scope(|scope| {
            let handler = scope.spawn(move || {
                pin(READER_CPU)?;
                let (start, mut arrivals) = (Instant::now(), Vec::new());
                while (arrivals.len() as u64) < packets && start.elapsed() < PATIENCE {
                    if let Some(chunk) = capture.next(Duration::from_millis(100))? {
                        let now = Instant::now();
                        arrivals.extend(chunk.packets().map(|_| now));
                    }
                }
                Ok::<_, Failure>(arrivals)
            });
            pin(GENERATOR_CPU)?;
            let mut departures = Vec::new();
            for number in 0..packets {
                thread::sleep(SPACING);
                let frame = traffic.frame(number);
                departures.push(Instant::now());
                sender.send(&frame).map_err(failed("send"))?;
            }
            let arrivals = handler.join().expect("the handler does not panic")?;
            if arrivals.len() != departures.len() {
                let (sent, got) = (departures.len(), arrivals.len());
                return Err(Failure::new(format_args!("{sent} lone packets sent, {got} handled")));
            }
            Ok(arrivals.iter().zip(&departures).map(|(arrival, departure)| *arrival - *departure).collect())
        })
    })
}

fn idle(lab: &Lab, rest: Duration) -> Result<Idle, Failure> {
    let reader = contestants::capture_without_file().start(&lab.pair().rx, None)?;
    thread::sleep(Duration::from_millis(200));
    let (start, before) = (Instant::now(), reader.cpu_time()?);
    thread::sleep(rest);
    let (seconds, used) = (start.elapsed().as_secs_f64(), reader.cpu_time()?.saturating_sub(before));
    reader.finish()?;
    Ok(Idle { seconds, cpu_seconds: used.as_secs_f64() })
}

/// Keeps the calling thread on one processor.
fn pin(cpu: u32) -> Result<(), Failure> {
    let mut only = CpuSet::new();
    only.set(usize::try_from(cpu).expect("a small number"));
    sched_setaffinity(None, &only).map_err(failed(format_args!("pin to processor {cpu}")))
}
