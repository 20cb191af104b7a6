//! `weir-bench host`: what a capture costs a host that works with the interface: small packets that it sends, and TCP in
//! both directions, with nobody capturing, with weir's tc source and with tcpdump in turn.

use std::thread;
use std::time::{Duration, Instant};

use serde_json::Value;
use weir_lab::{FrameSender, Network, Traffic, Veth};

use crate::contestants::capture_on_host;
use crate::experiment::{About, Experiment, Judged, Measure, Outcome, Role, Series, Settings, Taken, Turn};
use crate::failure::{Failure, failed};
use crate::process::{pin, thread_time};
use crate::program::{Counts, Program, Reader, installed};
use crate::wanted::Wanted;
use crate::{iperf, peers, units};

/// Bytes of the small packets.
const SIZE: usize = 60;
/// The processor that sends them.
const SENDER_CPU: u32 = 1;
/// Small packets between two looks at the clock.
const RUN: u64 = 256;
/// Who captures meanwhile; the first is nobody.
const CONTESTANTS: [(&str, &str, Role); 4] = [
    (NOBODY, "no capture", Role::Limit),
    (OURS, "weir tc", Role::Ours),
    ("weir-af-packet", "weir af_packet", Role::Ours),
    (THEIRS, "tcpdump", Role::Peer),
];
const NOBODY: &str = "nobody";
const OURS: &str = "weir-tc";
const THEIRS: &str = "tcpdump";

fn program(contestant: &str) -> Option<Program> {
    match contestant {
        OURS => Some(capture_on_host("source tc", "tc")),
        "weir-af-packet" => Some(capture_on_host("source af_packet", "af_packet")),
        THEIRS => Some(peers::tcpdump("/dev/null")),
        _ => None,
    }
}

/// The network, and for how long to send.
struct Host {
    network: Network,
    duration: Duration,
}

/// Makes the network.
pub(super) fn make(settings: &Settings) -> Result<Box<dyn Experiment>, Failure> {
    for program in ["iperf3", "tcpdump"] {
        installed(program, program)?;
    }
    let network = settings.network("host", Veth::default().queues(2).ipv4())?;
    Ok(Box::new(Host { network, duration: settings.time(2000) }))
}

impl Experiment for Host {
    fn about(&self) -> About {
        About {
            name: "host".to_owned(),
            title: "The cost to a busy host".to_owned(),
            method: "The captured end of a pair sends small packets, one system call each, and then TCP by iperf3 in both \
                     directions, while nobody captures, or somebody does. A capture has to take every small packet, or to know \
                     that it has lost it."
                .to_owned(),
            measures: vec![
                Measure::lower("sent", "processor time of a small packet sent", "ns"),
                Measure::higher("rate", "small packets sent a second", "Mpps"),
                Measure::higher("tcp-out", "TCP that the captured host sends", "Gbit/s"),
                Measure::higher("tcp-in", "TCP that the captured host receives", "Gbit/s"),
                Measure::lower("tcp-lost", "TCP packets that the capture has lost", "%"),
                Measure::fact("packets", "small packets sent", "packets"),
                Measure::fact("captured", "small packets captured", "packets"),
                Measure::fact("lost", "small packets lost", "packets"),
            ],
            series: CONTESTANTS.map(|(name, title, role)| Series::new(name, title, role)).to_vec(),
            versus: vec![[OURS, THEIRS].map(str::to_owned)],
            ..About::default()
        }
    }

    fn turns(&self) -> Vec<Turn> {
        CONTESTANTS.map(|(name, ..)| Turn::of(name, None)).to_vec()
    }

    fn take(&mut self, turn: &Turn, _round: u32) -> Result<Taken, Failure> {
        let port = &self.network.pair().rx;
        let start = || program(&turn.series).map(|program| program.start(port, None)).transpose();
        let mut taken = Taken::default();
        let reader = start()?;
        let sent = send(&self.network, self.duration)?;
        let nanoseconds = sent.cpu_time.as_secs_f64() * 1e9 / sent.packets as f64;
        taken.add(turn, "sent", nanoseconds);
        taken.add(turn, "rate", sent.packets as f64 / sent.elapsed.as_secs_f64() / 1e6);
        taken.add(turn, "packets", sent.packets as f64);
        if let Some(counts) = reader.map(end).transpose()? {
            // A capture that looks away is no contestant.
            let (captured, lost) = (counts.delivered, counts.dropped.unwrap_or(0));
            taken.add(turn, "captured", captured as f64);
            taken.add(turn, "lost", lost as f64);
            if captured + lost < sent.packets {
                let sent = units::grouped(sent.packets);
                taken.problems.push(format!("{captured} captured and {lost} lost of {sent} sent"));
            }
        }
        let reader = start()?;
        for (measure, receives) in [("tcp-out", false), ("tcp-in", true)] {
            taken.add(turn, measure, tcp(&self.network, self.duration, receives)? / 1e9);
        }
        if let Some(counts) = reader.map(end).transpose()? {
            // Less work for it, and more processor time for TCP.
            let (captured, lost) = (counts.delivered as f64, counts.dropped.unwrap_or(0) as f64);
            taken.add(turn, "tcp-lost", 100.0 * lost / (captured + lost).max(1.0));
        }
        Ok(taken)
    }

    fn bars(&self, outcome: &Outcome) -> Vec<Judged> {
        use Wanted::{AtLeast, AtMost};
        let times = |name, wanted, measured: Vec<f64>| Judged::new(name, wanted, "times", measured);
        let ratios = |measure| outcome.ratios([OURS, THEIRS], measure, None);
        let shares = outcome.shares([OURS, NOBODY], [THEIRS, NOBODY], "sent", None);
        let lost = outcome.values_of(OURS, "tcp-lost", None);
        vec![
            times("60 bytes sent, tc: added ns / tcpdump's", AtMost(0.5), shares),
            times("60 bytes sent, tc: rate / tcpdump's", AtLeast(1.0), ratios("rate")),
            times("TCP sent, tc: throughput / with tcpdump", AtLeast(1.0), ratios("tcp-out")),
            times("TCP received, tc: throughput / with tcpdump", AtLeast(1.0), ratios("tcp-in")),
            Judged::new("TCP, tc: lost", AtMost(0.0), "%", lost),
        ]
    }
}

fn end(reader: Reader) -> Result<Counts, Failure> {
    reader.settle()?;
    reader.finish()
}

struct Sent {
    packets: u64,
    elapsed: Duration,
    cpu_time: Duration,
}

/// Sends small packets from the captured end, as fast as one processor can.
fn send(network: &Network, time: Duration) -> Result<Sent, Failure> {
    let port = &network.pair().rx;
    let frame = Traffic::new(SIZE).map_err(failed("describe frames"))?.frame(0);
    let sender = FrameSender::new(port).map_err(failed("prepare to send"))?;
    // A thread of its own, for it stays on its processor.
    thread::scope(|scope| {
        let sending = scope.spawn(|| {
            pin(SENDER_CPU)?;
            let (start, before) = (Instant::now(), thread_time());
            let mut packets = 0;
            while packets == 0 || start.elapsed() < time {
                for _ in 0..RUN {
                    sender.send(&frame).map_err(failed("send"))?;
                }
                packets += RUN;
            }
            Ok(Sent { packets, elapsed: start.elapsed(), cpu_time: thread_time().saturating_sub(before) })
        });
        sending.join().expect("sending does not panic")
    })
}

/// Throughput of one TCP stream by iperf3, bits a second; the captured end sends, or receives.
fn tcp(network: &Network, time: Duration, receives: bool) -> Result<f64, Failure> {
    // It takes a part of a second for none, and none for without end.
    let seconds = time.as_secs().max(1).to_string();
    let words = ["-t", &seconds, "-R"];
    let words = if receives { &words[..] } else { &words[..2] };
    let pair = network.pair();
    let report = iperf::run(&pair.tx, &pair.rx, "1", words)?.client;
    let rate = report.pointer("/end/sum_received/bits_per_second").and_then(Value::as_f64);
    rate.ok_or_else(|| Failure::new("cannot read the report of iperf3: it has no rate"))
}
