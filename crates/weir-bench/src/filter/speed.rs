//! How fast packets are asked in user space: native code, and `pcap_offline_filter`.

use std::hint::black_box;

use serde::Serialize;
use weir_filter::Dialect;
use weir_filter::interpret::Packet;
use weir_judge::packets::{self, Captured};
use weir_judge::{Libpcap, Setup};
use weir_native::Native;

use super::{FilterArgs, compile};
use crate::bars::{Bar, Wanted};
use crate::failure::Failure;
use crate::process::thread_time;
use crate::spread::Spread;
use crate::style;

/// What people filter by.
const EXPRESSIONS: [&str; 6] = [
    "ip",
    "tcp port 443 and net 10.0.0.0/8",
    "host 10.1.2.3",
    "tcp port 80 or udp port 53 or icmp",
    "not (src net 10.0.0.0/8 or src net 172.16.0.0/12 or src net 192.168.0.0/16)",
    "tcp[tcpflags] & (tcp-syn|tcp-fin) != 0 and not host 10.1.2.3",
];
/// Packets of mixed traffic, which the processor's caches hold.
const PACKETS: u64 = 1000;

/// One turn of both, in nanoseconds a packet; what it takes to walk over the packets alone is subtracted.
#[derive(Debug, Serialize)]
pub(super) struct Sample {
    expression: &'static str,
    round: u32,
    ns: f64,
    libpcap_ns: f64,
    walk_ns: f64,
    matched: usize,
    pub(super) same_verdicts: bool,
}

pub(super) fn measure(libpcap: &Libpcap, args: &FilterArgs) -> Result<Vec<Sample>, Failure> {
    let packets = packets::fixed(1, PACKETS);
    let times = if args.quick { 20 } else { 1000 };
    let mut samples = Vec::new();
    for round in 1..=args.rounds {
        for expression in EXPRESSIONS {
            let ours = compile(expression, Dialect::Pcap, 1).map_err(Failure::new)?;
            let native = Native::new(&ours.graph, &ours.ast.sets).map_err(Failure::new)?;
            // The optimised program: the faster one of theirs.
            let setup = Setup { optimise: true, ..Setup::new(1) };
            let theirs = libpcap.compile(expression, &setup).map_err(Failure::new)?;
            let runner = native.runner();
            let by_us = |packet: &Captured| {
                runner.run(&Packet { data: &packet.data, length: packet.length, ..Packet::default() }) != 0
            };
            let by_them = |packet: &Captured| libpcap.run(&theirs, packet.length, &packet.data) != 0;
            let walk_ns = time(&packets, times, |packet| packet.data.len() == 1);
            let ns = time(&packets, times, by_us) - walk_ns;
            let libpcap_ns = time(&packets, times, by_them) - walk_ns;
            let sample = Sample {
                expression,
                round,
                ns,
                libpcap_ns,
                walk_ns,
                matched: packets.iter().filter(|packet| by_us(packet)).count(),
                same_verdicts: packets.iter().all(|packet| by_us(packet) == by_them(packet)),
            };
            style::say(format_args!(
                "[{round}] {ns:>6.2} ns per packet, libpcap {libpcap_ns:>6.2}  {expression}{}",
                if sample.same_verdicts { "" } else { "  OTHER VERDICTS" }
            ));
            samples.push(sample);
        }
    }
    Ok(samples)
}

/// Nanoseconds of processor time a packet.
fn time(packets: &[Captured], times: u32, matches: impl Fn(&Captured) -> bool) -> f64 {
    let all = || packets.iter().filter(|packet| matches(black_box(packet))).count();
    black_box(all());
    let before = thread_time();
    for _ in 0..times {
        black_box(all());
    }
    (thread_time() - before).as_secs_f64() * 1e9 / f64::from(times) / packets.len() as f64
}

/// Over all expressions, round by round: as if packets asked for all of them, and as if each expression counted the same.
pub(super) fn bars(samples: &[Sample]) -> [Bar; 2] {
    let rounds = 1..=samples.iter().map(|sample| sample.round).max().unwrap_or(0);
    let of = |round| samples.iter().filter(move |sample| sample.round == round);
    let sums = rounds.clone().map(|round| {
        let theirs: f64 = of(round).map(|sample| sample.libpcap_ns).sum();
        theirs / of(round).map(|sample| sample.ns).sum::<f64>()
    });
    let means = rounds.map(|round| {
        let logarithms: f64 = of(round).map(|sample| (sample.libpcap_ns / sample.ns).ln()).sum();
        (logarithms / of(round).count() as f64).exp()
    });
    let bar = |name, ratios| Bar::new(name, None, Wanted::AtLeast(5.0), "times", ratios);
    [
        bar("user space: pcap_offline_filter / native code, sums", Spread::of(sums)),
        bar("user space: the same, geometric mean", Spread::of(means)),
    ]
}
