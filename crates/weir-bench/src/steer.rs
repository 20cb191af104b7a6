//! `weir-bench steer`: what steering adds to the xdp program, a packet.
//!
//! The kernel runs the program of a capture on the same packet (`BPF_PROG_TEST_RUN`), without steering and with each kind of
//! it, in turns; processor time of this thread counts, and what lies between two of them is told. Nobody takes what is laid
//! down, so most packets find no chunk: the same for all, and none of it is steering's.

use std::io::{self, Write};
use std::net::Ipv4Addr;
use std::path::PathBuf;

use clap::Args;
use serde::Serialize;
use weir_bpf::pool::{PoolOptions, Stamp, SteerBy, Steering};
use weir_bpf::writers::{Driven, Writers};
use weir_bpf::xdp::{Options, Program};
use weir_lab::Traffic;

use super::machine::Machine;
use super::process::thread_time;
use super::spread::Spread;
use super::table::table;
use super::{create, failed, save};
use crate::failure::Failure;
use crate::style;

#[derive(Debug, Args)]
pub(super) struct SteerArgs {
    /// Number of rounds.
    #[arg(long, value_name = "N", default_value = "9", value_parser = clap::value_parser!(u32).range(1..=1000))]
    rounds: u32,

    /// Run a shorter benchmark.
    #[arg(long)]
    quick: bool,

    /// Write all measurements to FILE.
    #[arg(long, value_name = "FILE")]
    json: Option<PathBuf>,
}

#[derive(Debug, Serialize)]
struct Report {
    machine: Machine,
    added: Vec<Added>,
}

/// What a kind of steering adds to a packet.
#[derive(Debug, Serialize)]
struct Added {
    steer: &'static str,
    packet: &'static str,
    nanoseconds: Option<Spread>,
}

/// Kinds of steering, the first of which is none.
const KINDS: [(&str, Option<SteerBy>); 5] = [
    ("none", None),
    ("round-robin", Some(SteerBy::RoundRobin)),
    ("vlan", Some(SteerBy::Vlan)),
    ("flow", Some(SteerBy::Flow)),
    ("inner", Some(SteerBy::Inner)),
];

/// Runs the command.
pub(super) fn run(args: &SteerArgs) -> Result<(), Failure> {
    let json = create(args.json.as_deref())?;
    let machine = Machine::describe("/dev/shm".as_ref());
    style::say(format_args!("{machine}"));
    let programs = KINDS.map(|(_, by)| load(by));
    let programs: Vec<Program> = programs.into_iter().collect::<Result<_, _>>()?;
    // Short turns: between two of them the machine does not change its speed.
    let repeat = if args.quick { 5_000 } else { 50_000 };
    let mut added = Vec::new();
    for (packet, frame) in packets().map_err(Failure::new)? {
        let spreads = measure(&programs, &frame, args.rounds, repeat)?;
        let kinds = KINDS.iter().zip(spreads).skip(1);
        added.extend(kinds.map(|(&(steer, _), nanoseconds)| Added { steer, packet, nanoseconds }));
    }
    let mut rows = vec![["", "packet", "adds", "min..max"].map(str::to_owned).to_vec()];
    rows.extend(added.iter().map(Added::row));
    let mut stdout = io::stdout().lock();
    let printed = write!(stdout, "{}", table(&rows));
    printed.and_then(|()| stdout.flush()).map_err(failed("write to standard output"))?;
    if let Some((path, file)) = json {
        let report = Report { machine, added };
        save(path, file, &serde_json::to_string_pretty(&report).map_err(failed("make JSON"))?)?;
    }
    Ok(())
}

impl Added {
    fn row(&self) -> Vec<String> {
        let [median, range] = match self.nanoseconds {
            Some(Spread { median, min, max }) => [format!("{median:.1} ns"), format!("{min:.1}..{max:.1}")],
            None => [String::new(), String::new()],
        };
        vec![self.steer.to_owned(), self.packet.to_owned(), median, range]
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

/// Turns of a round, of which the median counts.
const TURNS: u32 = 15;

/// Nanoseconds a packet that each program takes more than the first.
fn measure(
    programs: &[Program],
    packet: &[u8],
    rounds: u32,
    repeat: u32,
) -> Result<Vec<Option<Spread>>, Failure> {
    let mut medians = vec![Vec::new(); programs.len()];
    for _ in 0..rounds {
        let mut added = vec![Vec::new(); programs.len()];
        for _ in 0..TURNS {
            let mut first = None;
            for (added, program) in added.iter_mut().zip(programs) {
                let before = thread_time();
                program.run(packet, repeat).map_err(Failure::new)?;
                let time = (thread_time() - before).as_secs_f64() * 1e9 / f64::from(repeat);
                added.push(time - *first.get_or_insert(time));
            }
        }
        for (medians, added) in medians.iter_mut().zip(added) {
            medians.extend(Spread::of(added).map(|spread| spread.median));
        }
    }
    Ok(medians.into_iter().map(Spread::of).collect())
}

/// The program of a capture in mode exclusive without timestamps, with a small pool.
fn load(by: Option<SteerBy>) -> Result<Program, Failure> {
    const TARGETS: u32 = 4;
    const LIMIT: u32 = 4 << 10;
    const SLOTS: u32 = 2;
    /// Its index in each namespace (`LOOPBACK_IFINDEX`, net/net_namespace.h).
    const LOOPBACK: u32 = 1;
    let pool = PoolOptions {
        queues: TARGETS,
        chunks: TARGETS * SLOTS,
        stride: 2 * LIMIT,
        limit: LIMIT,
        slots: SLOTS,
        order_bytes: 64 + 2 * 8 * SLOTS,
        snap_len: 2048,
        interface_id: 0,
        stamp: Stamp::None,
        directions: false,
        ethernet: true,
    };
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
    };
    Program::load(&options).map(|(program, _)| program).map_err(Failure::new)
}
