//! How fast packets are asked in user space: native code, and `pcap_offline_filter`.

use std::hint::black_box;

use weir_filter::Dialect;
use weir_filter::interpret::Packet;
use weir_judge::packets::{self, Captured};
use weir_judge::{Libpcap, Setup};
use weir_native::Native;

use super::compile;
use crate::experiment::{Judged, Outcome, Taken, Turn};
use crate::failure::Failure;
use crate::process::thread_time;
use crate::wanted::Wanted;

/// What people filter by.
pub(super) const EXPRESSIONS: [&str; 6] = [
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
pub(super) fn measure(
    libpcap: &Libpcap,
    expression: &str,
    quick: bool,
    turn: &Turn,
) -> Result<Taken, Failure> {
    let packets = packets::fixed(1, PACKETS);
    let times = if quick { 20 } else { 1000 };
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
    let walk = time(&packets, times, |packet| packet.data.len() == 1);
    let mut taken = Taken::default();
    taken.add(turn, "ours", time(&packets, times, by_us) - walk);
    taken.add(turn, "theirs", time(&packets, times, by_them) - walk);
    taken.add(turn, "matched", packets.iter().filter(|packet| by_us(packet)).count() as f64);
    if packets.iter().any(|packet| by_us(packet) != by_them(packet)) {
        taken.problems.push("other verdicts than libpcap's".to_owned());
    }
    Ok(taken)
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
pub(super) fn bars(outcome: &Outcome) -> Vec<Judged> {
    let rounds = 1..=outcome.rounds;
    let times = |round| {
        EXPRESSIONS.map(|expression| {
            ["ours", "theirs"].map(|measure| {
                let rounds = outcome.rounds_of(expression, measure, None);
                rounds.iter().find(|(number, _)| *number == round).map_or(f64::NAN, |(_, time)| *time)
            })
        })
    };
    let sums = rounds.clone().map(|round| {
        let sum = |which: usize| times(round).iter().map(|both| both[which]).sum::<f64>();
        sum(1) / sum(0)
    });
    let means = rounds.map(|round| {
        let logarithms = times(round).map(|[ours, theirs]| (theirs / ours).ln());
        (logarithms.iter().sum::<f64>() / logarithms.len() as f64).exp()
    });
    let wanted = Wanted::AtLeast(5.0);
    vec![
        Judged::new("user space: pcap_offline_filter / native code, sums", wanted, "times", sums),
        Judged::new("user space: the same, geometric mean", wanted, "times", means),
    ]
}
