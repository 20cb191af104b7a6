//! `weir-bench host`: what a capture costs a host that works with the interface: small packets that it sends, and TCP in
//! both directions, with nobody capturing, with weir's tc source and with tcpdump in turn.

use std::io::{self, Write};
use std::path::PathBuf;
use std::thread;
use std::time::{Duration, Instant};

use clap::Args;
use rustix::thread::{CpuSet, sched_setaffinity};
use serde::Serialize;
use serde_json::Value;
use weir_lab::{FrameSender, Network, Traffic, Veth};

use super::bars::{Bar, Wanted};
use super::contestants::capture_on_host;
use super::machine::Machine;
use super::peers;
use super::process::thread_time;
use super::program::{Program, Reader, installed};
use super::spread::Spread;
use super::table::{bar_rows, table};
use super::{believable, create, failed, save};
use crate::failure::Failure;
use crate::{iperf, style, units};

const EXAMPLES: &str = "\
Examples:
  weir-bench host --json host.json
        Run five rounds of two seconds for each contestant (about two minutes).
  weir-bench host --rounds 1 --duration 200ms
        Check that the benchmark works; the costs mean little.

Requires root, iperf3 and tcpdump. Runs in a private network that is removed at the end.";

#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(super) struct HostArgs {
    /// Number of rounds.
    #[arg(long, value_name = "N", default_value = "5", value_parser = clap::value_parser!(u32).range(1..=1000))]
    rounds: u32,

    /// Time to send small packets, and then TCP each way (TCP for at least 1s).
    #[arg(long, value_name = "TIME", default_value = "2s", value_parser = units::duration)]
    duration: Duration,

    /// Write all measurements to FILE.
    #[arg(long, value_name = "FILE")]
    json: Option<PathBuf>,
}

/// Bytes of the small packets.
const SIZE: usize = 60;
/// The processor that sends them.
const SENDER_CPU: usize = 1;
/// Small packets between two looks at the clock.
const RUN: u64 = 256;
/// Who captures meanwhile; the first is nobody.
const CONTESTANTS: [&str; 4] = ["nobody", "weir-tc", "weir-af-packet", "tcpdump"];

fn program(contestant: &str) -> Option<Program> {
    match contestant {
        "weir-tc" => Some(capture_on_host("source tc", "tc")),
        "weir-af-packet" => Some(capture_on_host("source af_packet", "af_packet")),
        "tcpdump" => Some(peers::tcpdump("/dev/null")),
        _ => None,
    }
}

/// One turn.
#[derive(Debug, Serialize)]
struct Sample {
    contestant: &'static str,
    round: u32,
    /// Small packets sent a second, one system call each.
    sent_rate: f64,
    /// Processor time of the sender for one of them: the kernel's way out, the capture in it, and the peer's way in.
    sent_ns: f64,
    /// TCP that the captured host sends, and that it receives: bits a second.
    tcp_sent: f64,
    tcp_received: f64,
    /// Small packets that the capture has taken, and that it knows to be lost.
    captured: Option<u64>,
    lost: Option<u64>,
    /// The same of TCP.
    tcp_captured: Option<u64>,
    tcp_lost: Option<u64>,
    /// What is not as it has to be.
    problem: Option<String>,
}

#[derive(Debug, Serialize)]
struct Report {
    machine: Machine,
    rounds: u32,
    seconds_per_turn: f64,
    samples: Vec<Sample>,
    bars: Vec<Bar>,
}

/// Runs the command.
pub(super) fn run(args: &HostArgs) -> Result<(), Failure> {
    let json = create(args.json.as_deref())?;
    let machine = Machine::describe(&PathBuf::from("/dev/shm"));
    style::say(format_args!("{machine}"));
    for program in ["iperf3", "tcpdump"] {
        installed(program, program)?;
    }
    let network = Network::new(Veth::default().queues(2).ipv4());
    let network = network.map_err(|error| failed("create a private network")(error).hint("run as root"))?;
    let mut report = Report {
        machine,
        rounds: args.rounds,
        seconds_per_turn: args.duration.as_secs_f64(),
        samples: Vec::new(),
        bars: Vec::new(),
    };
    let turns = (1..=args.rounds).flat_map(|round| CONTESTANTS.map(|contestant| (round, contestant)));
    for (round, contestant) in turns {
        let sample = sample(&network, contestant, round, args.duration)?;
        style::say(format_args!(
            "[{round}] {contestant:<14} {:>5.0} ns per packet sent  TCP out {}bit/s  in {}bit/s  {}",
            sample.sent_ns,
            units::scaled(sample.tcp_sent),
            units::scaled(sample.tcp_received),
            style::stderr().red(sample.problem.as_deref().unwrap_or_default())
        ));
        report.samples.push(sample);
    }
    report.judge();
    report.print().map_err(failed("write to standard output"))?;
    if let Some((path, file)) = json {
        save(path, file, &serde_json::to_string_pretty(&report).map_err(failed("make JSON"))?)?;
    }
    believable(report.samples.iter().filter(|sample| sample.problem.is_some()).count())
}

fn sample(
    network: &Network,
    contestant: &'static str,
    round: u32,
    time: Duration,
) -> Result<Sample, Failure> {
    let start = || program(contestant).map(|program| program.start(&network.pair().rx, None)).transpose();
    let reader = start()?;
    let sent = send(network, time)?;
    let counts = reader.map(end).transpose()?;
    // As many as were sent: a capture that looks away is no contestant. What it lost it has to know.
    let problem = counts.and_then(|counts| {
        let (captured, lost) = (counts.delivered, counts.dropped.unwrap_or(0));
        (captured + lost < sent.packets).then(|| {
            let sent = units::grouped(sent.packets);
            format!("{captured} captured and {lost} lost of {sent} sent")
        })
    });
    let reader = start()?;
    let (tcp_sent, tcp_received) = (tcp(network, time, false)?, tcp(network, time, true)?);
    let of_tcp = reader.map(end).transpose()?;
    Ok(Sample {
        contestant,
        round,
        sent_rate: sent.packets as f64 / sent.elapsed.as_secs_f64(),
        sent_ns: sent.cpu_time.as_secs_f64() * 1e9 / sent.packets as f64,
        tcp_sent,
        tcp_received,
        captured: counts.map(|counts| counts.delivered),
        lost: counts.and_then(|counts| counts.dropped),
        tcp_captured: of_tcp.map(|counts| counts.delivered),
        tcp_lost: of_tcp.and_then(|counts| counts.dropped),
        problem,
    })
}

impl Sample {
    /// Percent of the TCP packets that the capture has lost: less work for it, and more processor time for TCP.
    fn tcp_lost(&self) -> Option<f64> {
        let (captured, lost) = (self.tcp_captured? as f64, self.tcp_lost? as f64);
        (captured + lost > 0.0).then(|| 100.0 * lost / (captured + lost))
    }
}

fn end(reader: Reader) -> Result<super::program::Counts, Failure> {
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
            let mut only = CpuSet::new();
            only.set(SENDER_CPU);
            sched_setaffinity(None, &only).map_err(failed("pin to one processor"))?;
            let (start, before) = (Instant::now(), thread_time());
            let mut packets = 0;
            while start.elapsed() < time {
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

impl Report {
    fn of(&self, contestant: &str, round: u32) -> Option<&Sample> {
        self.samples.iter().find(|sample| sample.contestant == contestant && sample.round == round)
    }

    /// weir's value over tcpdump's, round by round.
    fn ratio(&self, value: fn(&Sample) -> f64) -> Option<Spread> {
        let rounds = 1..=self.rounds;
        Spread::of(
            rounds.filter_map(|round| {
                Some(value(self.of("weir-tc", round)?) / value(self.of("tcpdump", round)?))
            }),
        )
    }

    /// What weir adds to a packet as a share of what tcpdump adds. Nothing can be said of a round in which tcpdump added
    /// nothing.
    fn added(&self) -> Option<Spread> {
        Spread::of((1..=self.rounds).filter_map(|round| {
            let nobody = self.of("nobody", round)?.sent_ns;
            let theirs = self.of("tcpdump", round)?.sent_ns - nobody;
            (theirs > 0.0).then_some((self.of("weir-tc", round)?.sent_ns - nobody) / theirs)
        }))
    }

    fn tcp_lost(&self, contestant: &str) -> Option<Spread> {
        let of = |round| self.of(contestant, round)?.tcp_lost();
        Spread::of((1..=self.rounds).filter_map(of))
    }

    fn judge(&mut self) {
        use Wanted::{AtLeast, AtMost};
        let bar = |name, wanted, measured| Bar::new(name, None, wanted, "times", measured);
        self.bars = vec![
            bar("60 bytes sent, tc: added ns / tcpdump's", AtMost(0.5), self.added()),
            bar("60 bytes sent, tc: rate / tcpdump's", AtLeast(1.0), self.ratio(|sample| sample.sent_rate)),
            bar(
                "TCP sent, tc: throughput / with tcpdump",
                AtLeast(1.0),
                self.ratio(|sample| sample.tcp_sent),
            ),
            bar(
                "TCP received, tc: throughput / with tcpdump",
                AtLeast(1.0),
                self.ratio(|sample| sample.tcp_received),
            ),
            Bar::new("TCP, tc: lost", None, AtMost(0.0), "%", self.tcp_lost("weir-tc")),
        ];
    }

    fn print(&self) -> io::Result<()> {
        let head = [
            "",
            "ns per packet sent",
            "min..max",
            "TCP out Gbit/s",
            "min..max",
            "TCP in Gbit/s",
            "min..max",
            "TCP lost %",
        ];
        let mut rows = vec![head.map(str::to_owned).to_vec()];
        for contestant in CONTESTANTS {
            let turns = || self.samples.iter().filter(|sample| sample.contestant == contestant);
            let cells = |value: fn(&Sample) -> f64, decimals: usize| {
                Spread::of(turns().map(value)).map_or_else(Vec::new, |spread| {
                    let number = |value: f64| format!("{value:.decimals$}");
                    vec![number(spread.median), format!("{}..{}", number(spread.min), number(spread.max))]
                })
            };
            let mut row = vec![contestant.to_owned()];
            row.extend(cells(|sample| sample.sent_ns, 0));
            row.extend(cells(|sample| sample.tcp_sent * 1e-9, 2));
            row.extend(cells(|sample| sample.tcp_received * 1e-9, 2));
            let lost = self.tcp_lost(contestant);
            row.push(lost.map_or_else(String::new, |lost| format!("{:.1}", lost.median)));
            rows.push(row);
        }
        let mut stdout = io::stdout().lock();
        write!(stdout, "\n{}\nTargets\n{}", table(&rows), table(&bar_rows(&self.bars)))?;
        stdout.flush()
    }
}
