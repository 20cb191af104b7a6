//! What is not a rate: a burst while the reader is stopped, packets that the host itself wants, the time to the first
//! packet, the way of a lone packet, and the cost of waiting.

use std::process::{Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use rustix::process::Signal;
use weir::{Capture, SourceChoice};
use weir_lab::{FrameSender, Generator, Rate, SendReport, Traffic};

use crate::contestants;
use crate::experiment::{About, Experiment, Judged, Measure, Outcome, Role, Series, Settings, Taken, Turn};
use crate::failure::{Failure, failed};
use crate::process::pin;
use crate::program::{READER_CPU, WEIR, find};
use crate::sample::{GENERATOR_CPU, Lab};
use crate::savefile::Packets;
use crate::spread::median;
use crate::wanted::Wanted;
use crate::witness::Witness;

/// Bytes of a frame.
const SIZE: usize = 60;
/// Frames of a burst.
const FRAMES: u64 = 400_000;
/// Time between two lone packets: long enough for a reader to fall asleep.
const SPACING: Duration = Duration::from_millis(5);
/// How long any of this may take.
const PATIENCE: Duration = Duration::from_secs(10);

/// The network of the capture contest.
struct Trials {
    lab: Lab,
    quick: bool,
}

/// The only series.
const OURS: &str = "weir";
/// All turns, which are measures as well.
const BURST: &str = "burst";
const HOST: &str = "host";
const START: &str = "start";
const LATENCY: &str = "latency";
const IDLE: &str = "idle";

/// Makes the network.
pub(super) fn make(settings: &Settings) -> Result<Box<dyn Experiment>, Failure> {
    settings.without_cards("trials")?;
    Ok(Box::new(Trials { lab: Lab::new()?, quick: settings.quick }))
}

impl Experiment for Trials {
    fn about(&self) -> About {
        About {
            name: "trials".to_owned(),
            title: "Capture: bursts, the host's own packets, the first packet, lone packets, idling".to_owned(),
            method: "A burst of 400,000 frames comes while the reader is stopped, into 50 MiB. As many frames are addressed to the \
                     host and captured in mode pass; its stack has to get all of them. The first packet is on the standard output of \
                     weir capture some time after its start, a lone packet at a handler some time after it was sent, and a \
                     capture on an interface where nothing comes takes some processor time."
                .to_owned(),
            measures: vec![
                Measure::lower(BURST, "packets of a burst that are lost", "packets"),
                Measure::lower(HOST, "packets to this host that its stack has not seen", "packets"),
                Measure::lower(START, "start to first packet", "ms"),
                Measure::lower(LATENCY, "lone packet to handler, median", "ms"),
                Measure::lower(IDLE, "processor time of an idle capture", "% CPU"),
            ],
            series: vec![Series::new(OURS, "weir", Role::Ours)],
            ..About::default()
        }
    }

    fn turns(&self) -> Vec<Turn> {
        let turn = |name: &str| Turn { name: name.to_owned(), ..Turn::of(OURS, None) };
        [BURST, HOST, START, LATENCY, IDLE].map(turn).to_vec()
    }

    fn take(&mut self, turn: &Turn, _round: u32) -> Result<Taken, Failure> {
        let (packets, rest) = if self.quick { (20, 500) } else { (100, 2000) };
        let lab = &self.lab;
        let (value, verified) = match turn.name.as_str() {
            BURST => burst(lab).map(|(lost, verified)| (lost as f64, verified)),
            HOST => host(lab).map(|(missed, verified)| (missed as f64, verified)),
            START => start(lab).map(|time| (time.as_secs_f64() * 1e3, true)),
            LATENCY => latency(lab, packets).map(|milliseconds| (milliseconds, true)),
            _ => idle(lab, Duration::from_millis(rest)).map(|load| (load, true)),
        }?;
        let mut taken = Taken::default();
        taken.add(turn, &turn.name, value);
        if !verified {
            taken.problems.push("wrong bytes or order".to_owned());
        }
        Ok(taken)
    }

    fn bars(&self, outcome: &Outcome) -> Vec<Judged> {
        let of = |measure| outcome.values_of(OURS, measure, None);
        let most = |name, most, unit, measure| Judged::new(name, Wanted::AtMost(most), unit, of(measure));
        vec![
            Judged::worst("burst of 400,000 into 50 MiB, lost", 0.0, "packets", of(BURST)),
            Judged::worst("pass: to this host, not seen by its stack", 0.0, "packets", of(HOST)),
            most("start to first packet", 300.0, "ms", START),
            most("lone packet to handler", 1.0, "ms", LATENCY),
            most("idle capture", 0.1, "% CPU", IDLE),
        ]
    }
}

/// All frames, or an error that says that the measurement has to be made again.
fn send(generator: &mut Generator, frames: u64) -> Result<SendReport, Failure> {
    let sent = generator.send(frames).map_err(failed("send"))?;
    if sent.refused > 0 {
        return Err(Failure::new(format_args!("the interface rejected {} of {frames} frames", sent.refused)));
    }
    Ok(sent)
}

/// Frames at full rate while the reader's process is stopped: how many are lost, and whether all others are whole and in order.
fn burst(lab: &Lab) -> Result<(u64, bool), Failure> {
    let program = contestants::receive_into_50_mib();
    let reader = program.start(&lab.pair().rx, None)?;
    let (traffic, mut generator) = lab.generator(SIZE)?;
    reader.signal(Signal::STOP)?;
    let sent = send(&mut generator, FRAMES)?;
    reader.signal(Signal::CONT)?;
    reader.settle()?;
    let counts = reader.finish()?;
    let witness = counts.witness.unwrap_or_default();
    let lost = sent.accepted.saturating_sub(counts.delivered);
    // What finds no room is behind all that did.
    let verified = witness == Witness::of(&traffic, 0..counts.delivered);
    Ok((lost, verified))
}

/// Frames to this host, captured in mode pass: how many its IP got too few or too many (`IpInReceives`), and whether what was
/// captured is all of them, whole and in order.
fn host(lab: &Lab) -> Result<(u64, bool), Failure> {
    let pair = lab.pair();
    let reader = contestants::receive_and_pass().start(&pair.rx, None)?;
    let traffic = Traffic::new(SIZE).map_err(failed("describe frames"))?.between(pair);
    let generator = Generator::new(pair, &traffic).map_err(failed("prepare to send"))?;
    let before = lab.to_this_host()?;
    let sent = send(&mut generator.cpu(GENERATOR_CPU), FRAMES)?;
    reader.settle()?;
    let counts = reader.finish()?;
    let stack = lab.to_this_host()? - before;
    let verified = counts.witness == Some(Witness::of(&traffic, sent.sequences));
    Ok((sent.accepted.abs_diff(stack), verified))
}

/// From the start of `weir capture -w -` to the first packet on its standard output, while ten thousand a second pass.
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

/// From the call that sends a packet to the handler that gets it, in milliseconds: the median.
fn latency(lab: &Lab, packets: u64) -> Result<f64, Failure> {
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
                    if let Some(chunk) = capture.next(Duration::from_millis(100))?.taken() {
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
            let times = arrivals.iter().zip(&departures);
            let milliseconds = times.map(|(arrival, departure)| (*arrival - *departure).as_secs_f64() * 1e3);
            Ok(median(milliseconds))
        })
    })
}

/// `weir capture` on an interface where nothing comes: percent of a processor.
fn idle(lab: &Lab, rest: Duration) -> Result<f64, Failure> {
    let reader = contestants::capture_without_file().start(&lab.pair().rx, None)?;
    thread::sleep(Duration::from_millis(200));
    let (start, before) = (Instant::now(), reader.cpu_time()?);
    thread::sleep(rest);
    let (seconds, used) = (start.elapsed().as_secs_f64(), reader.cpu_time()?.saturating_sub(before));
    reader.finish()?;
    Ok(100.0 * used.as_secs_f64() / seconds)
}
