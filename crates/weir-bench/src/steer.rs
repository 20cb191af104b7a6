//! `weir-bench steer`: what steering adds to the xdp program, a packet.
//!
//! The kernel runs the program of a capture on the same packet (`BPF_PROG_TEST_RUN`), without steering and with each kind of it, in
//! turn; what counts is the processor time of this thread, and the difference between two programs. Nobody takes packets out of the
//! pool, so most of them find no chunk: that is the same for all, and no part of steering.

use std::net::Ipv4Addr;

use weir_bpf::pool::{PoolOptions, SteerBy, Steering};
use weir_bpf::writers::{Driven, Writers};
use weir_bpf::xdp::{Options, Program};
use weir_lab::Traffic;
use weir_ring::Shape;

use crate::experiment::{About, Experiment, Found, Measure, Role, Series, Settings, Taken, Turn};
use crate::failure::Failure;
use crate::process::thread_time;
use crate::spread::Spread;

/// Kinds of steering, the first of which is none.
const KINDS: [(&str, Option<SteerBy>); 5] = [
    ("none", None),
    ("round-robin", Some(SteerBy::RoundRobin)),
    ("vlan", Some(SteerBy::Vlan)),
    ("flow", Some(SteerBy::Flow)),
    ("inner", Some(SteerBy::Inner)),
];

/// The program with each kind, and the packets that it gets.
struct Steer {
    programs: Vec<Program>,
    packets: [(&'static str, Vec<u8>); 4],
    /// How often the kernel runs a program on a packet in a call.
    repeat: u32,
}

/// Loads the programs.
pub(super) fn make(settings: &Settings) -> Result<Box<dyn Experiment>, Failure> {
    settings.without_cards("steer")?;
    let programs = KINDS.iter().map(|(_, by)| load(*by)).collect::<Result<_, _>>()?;
    // Short turns: between two of them the machine does not change its speed.
    let repeat = if settings.quick { 5_000 } else { 50_000 };
    Ok(Box::new(Steer { programs, packets: packets().map_err(Failure::new)?, repeat }))
}

impl Experiment for Steer {
    fn about(&self) -> About {
        let measure = |(packet, _): &(&str, _)| {
            let title = format!("processor time added to a packet, {packet}");
            Measure::lower(packet, &title, "ns")
        };
        let series = |(kind, _): &(&str, _)| Series::new(kind, &format!("steering by {kind}"), Role::Ours);
        About {
            name: "steer".to_owned(),
            title: "The cost of steering".to_owned(),
            method: "The kernel runs the program of a capture on the same packet again and again, without steering and with \
                     each kind of it, in turn. A value is the processor time that a packet takes longer than without."
                .to_owned(),
            measures: self.packets.iter().map(measure).collect(),
            series: KINDS[1..].iter().map(series).collect(),
            ..About::default()
        }
    }

    fn turns(&self) -> Vec<Turn> {
        self.packets.iter().map(|(packet, _)| Turn::of(packet, None)).collect()
    }

    fn take(&mut self, turn: &Turn, _round: u32) -> Result<Taken, Failure> {
        let packet = self.packets.iter().find(|(name, _)| *name == turn.name);
        let (name, packet) = packet.expect("turns are of packets");
        let mut added = vec![Vec::new(); self.programs.len()];
        for _ in 0..TURNS {
            let mut first = None;
            for (added, program) in added.iter_mut().zip(&self.programs) {
                let before = thread_time();
                program.run(packet, self.repeat).map_err(Failure::new)?;
                let time = (thread_time() - before).as_secs_f64() * 1e9 / f64::from(self.repeat);
                added.push(time - *first.get_or_insert(time));
            }
        }
        let medians =
            KINDS.iter().zip(added).skip(1).filter_map(|((kind, _), added)| {
                Some(Found::new(kind, name, None, Spread::of(added)?.median))
            });
        Ok(Taken { found: medians.collect(), problems: Vec::new() })
    }
}

/// UDP, in what it may be in.
fn packets() -> Result<[(&'static str, Vec<u8>); 4], weir_lab::Error> {
    let ip4 = Traffic::new(60)?.frame(0);
    let tunnel = Traffic::new(60)?.to(Ipv4Addr::new(10, 0, 0, 1), VXLAN).frame(0);
    let vxlan = [&tunnel[..HEADERS], &[8, 0, 0, 0, 0, 0, 1, 0], &ip4].concat();
    let mut fragment = ip4.clone();
    fragment[20] = MORE_FRAGMENTS;
    let head = [0x60, 0, 0, 0, 0, 26, UDP, 64];
    let ip6 = [&ip4[..12], &[0x86, 0xdd], &head, &[0xfd; 32], &ip4[HEADERS - 8..]].concat();
    Ok([("IPv4", ip4), ("IPv6", ip6), ("VXLAN", vxlan), ("first fragment", fragment)])
}

/// Bytes of Ethernet, IPv4 and UDP.
const HEADERS: usize = 42;
const VXLAN: u16 = 4789;
const UDP: u8 = 17;
const MORE_FRAGMENTS: u8 = 0x20;

/// Turns of each program in a round, of which the median counts.
const TURNS: u32 = 15;

/// The program of a capture in mode exclusive without timestamps, with a small pool.
fn load(by: Option<SteerBy>) -> Result<Program, Failure> {
    const TARGETS: u32 = 4;
    const SNAP_LEN: u32 = 2048;
    /// Its index in each namespace (`LOOPBACK_IFINDEX`, net/net_namespace.h).
    const LOOPBACK: u32 = 1;
    let shape = Shape::new(TARGETS, 2, 4 << 10, SNAP_LEN).expect("possible");
    let pool = PoolOptions::of(&shape, SNAP_LEN);
    let steering = by.map(|by| Steering { by, targets: TARGETS, seed: 1 });
    // A program that is tried is on the loopback.
    let writers = Writers::Queues(Driven { index: LOOPBACK, hands_on: true });
    let options = Options {
        pool,
        steering,
        sampling: None,
        exclusive: true,
        fragments: false,
        writers,
        chosen: None,
        tags_of: None,
        rules: false,
        counting: None,
    };
    Program::load(&options).map(|(program, _)| program).map_err(Failure::new)
}
