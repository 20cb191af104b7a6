//! Steering in the programs of xdp and tc: which target each frame is for, that both agree, and that the verifier takes all
//! of them.

#[path = "../walks/cases.rs"]
mod cases;
mod flows;
mod frames;

use std::collections::HashMap;

use cases::{Case, cases};
use flows::{Flows, inner_flows, outer_flows, udp4, udp6};
use frames::{Back, There, UDP, ip4, on_ethernet, ports, tagged};
use proptest::prelude::*;
use rustix::thread::{CpuSet, sched_getcpu, sched_setaffinity};
use weir_bpf::pool::{PoolMaps, PoolOptions, SteerBy, Steering};
use weir_bpf::writers::{Driven, Writers};
use weir_bpf::{tc, xdp};
use weir_judge::share;
use weir_packet::{Flow, Layer, Walk, link_type};
use weir_ring::{Consumer, Gauge, Pool, Shape, SharedMaps};
use weir_sys::bpf::map::{Map, MapKind};
use weir_sys::cpu::Processors;
use weir_sys::testrun;

/// Programs take privileges that tests may run without; the environment says whether that is in order.
fn permitted() -> bool {
    let Err(error) = Map::new(MapKind::Array, 4, 8, 1) else { return true };
    weir_skip::this_test(error);
    false
}

/// `EINVAL`.
const EINVAL: i32 = 22;

const ALL: [SteerBy; 4] = [SteerBy::Flow, SteerBy::Inner, SteerBy::RoundRobin, SteerBy::Vlan];

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Hook {
    /// Generic: a writer is a CPU, and packets may come in several buffers.
    Xdp {
        generic: bool,
    },
    Tc {
        segments: bool,
    },
}

const HOOKS: [Hook; 4] = [
    Hook::Xdp { generic: false },
    Hook::Xdp { generic: true },
    Hook::Tc { segments: false },
    Hook::Tc { segments: true },
];

/// A program that steers, and its queues.
struct Steered {
    program: Program,
    gauges: Vec<Gauge>,
    targets: u32,
    _maps: PoolMaps,
}

enum Program {
    Xdp(xdp::Program),
    Tc(tc::Programs),
}

impl Steered {
    fn load(hook: Hook, by: SteerBy, targets: u32, seed: u64) -> Self {
        Self::load_for(true, hook, by, targets, seed)
    }

    /// `ethernet`: what frames begin with, or else IP.
    fn load_for(ethernet: bool, hook: Hook, by: SteerBy, targets: u32, seed: u64) -> Self {
        let processors = Processors::online().unwrap();
        let writers = if hook == (Hook::Xdp { generic: false }) { 1 } else { processors.count() };
        let shape = Shape::new(writers * targets, 2, 4096, 4096).unwrap();
        let pool = PoolOptions { directions: true, ethernet, ..PoolOptions::of(&shape, 1500) };
        let steering = Some(Steering { by, targets, seed });
        let (program, maps) = match hook {
            Hook::Xdp { generic } => {
                let options = xdp::Options {
                    pool,
                    steering,
                    sampling: None,
                    exclusive: false,
                    fragments: generic,
                    writers: if generic {
                        Writers::Processors(processors)
                    } else {
                        Writers::Queues(Driven { index: 1, hands_on: true })
                    },
                    chosen: None,
                    tags_of: None,
                    rules: false,
                    counting: None,
                };
                let (program, maps) = xdp::Program::load(&options).unwrap_or_else(|error| panic!("{error}"));
                (Program::Xdp(program), maps)
            }
            Hook::Tc { segments } => {
                let segments = segments.then_some(tc::Segments { payload: 1500 });
                let options = tc::Options {
                    pool,
                    processors,
                    steering,
                    sampling: None,
                    segments,
                    left_out: None,
                    left_out_mark: None,
                    ingress: true,
                    egress: true,
                    rules: false,
                };
                let (programs, maps) = tc::Programs::load(&options).unwrap_or_else(|error| panic!("{error}"));
                (Program::Tc(programs), maps)
            }
        };
        let shared = SharedMaps {
            pool: maps.pool(),
            chunks: maps.chunks(),
            queues: maps.queues(),
            orders: maps.orders(),
        };
        let consumers = Pool::shared(shape, &shared).unwrap();
        Self { program, gauges: consumers.iter().map(Consumer::gauge).collect(), targets, _maps: maps }
    }

    /// The target of a frame. It must have one, and end in a counter there.
    fn target(&self, frame: &[u8]) -> u32 {
        self.run(frame).expect("the kernel makes a packet of it")
    }

    /// The same; `None` where the kernel makes no packet for tc to be tried with: if IP's header is cut, or nothing is
    /// behind that of Ethernet.
    fn run(&self, frame: &[u8]) -> Option<u32> {
        let seen = || -> Vec<u64> { self.gauges.iter().map(|gauge| gauge.counters().seen).collect() };
        let before = seen();
        match &self.program {
            Program::Xdp(program) => drop(program.run(frame, 1).unwrap()),
            Program::Tc(programs) => match testrun::run(programs.ingress().unwrap(), frame, 1) {
                Err(error) if error.errno() == EINVAL && frame.len() < 54 => return None,
                answer => drop(answer.unwrap()),
            },
        }
        let grown = seen().into_iter().zip(before).map(|(now, before)| now - before);
        let grown: Vec<_> = grown.enumerate().filter(|(_, by)| *by > 0).collect();
        let [(queue, 1)] = grown[..] else { panic!("one packet is seen once: {grown:?}") };
        let counters = self.gauges[queue].counters();
        assert_eq!(counters.seen, counters.captured + counters.lost, "{counters:?}");
        Some(u32::try_from(queue).unwrap() % self.targets)
    }

    fn orphans(&self) -> u64 {
        self.gauges.iter().map(|gauge| gauge.counters().orphans).sum()
    }
}

/// Programs that steer by the same, each in its own way: frames of one flow are for one target in all of them, and no other
/// frame is.
struct Sorter(Vec<Steered>);

impl Sorter {
    fn new(hook: Hook, by: SteerBy) -> Self {
        Self((1..=2).map(|seed| Steered::load(hook, by, 256, seed * 0x1234_5678_9abc_def1)).collect())
    }

    fn targets(&self, frame: &[u8]) -> Vec<u32> {
        self.0.iter().map(|steered| steered.target(frame)).collect()
    }
}

fn flows(by: SteerBy) -> Flows {
    if by == SteerBy::Inner { inner_flows() } else { outer_flows() }
}

#[test]
fn frames_of_one_flow_have_one_target_and_others_have_others() {
    if !permitted() {
        return;
    }
    for by in [SteerBy::Flow, SteerBy::Inner] {
        for hook in [Hook::Xdp { generic: false }, Hook::Tc { segments: false }] {
            let sorter = Sorter::new(hook, by);
            let mut flow_of: HashMap<Vec<u32>, usize> = HashMap::new();
            for (number, (name, frames)) in flows(by).iter().enumerate() {
                for (index, frame) in frames.iter().enumerate() {
                    let targets = sorter.targets(frame);
                    let found = *flow_of.entry(targets).or_insert(number);
                    assert_eq!(found, number, "{hook:?} {by:?}: frame {index} of `{name}`: {frame:02x?}");
                }
            }
            assert_eq!(flow_of.len(), flows(by).len(), "{hook:?} {by:?}");
            assert_eq!(sorter.0[0].orphans(), 0);
        }
    }
}

/// Where the innermost IP packet begins, as the walk finds it behind at most two tunnels; whether that is a fragment; and
/// whether it is in a tunnel.
fn innermost(frame: &[u8]) -> Option<(usize, bool, bool)> {
    let layers = Walk::new(link_type::ETHERNET, frame);
    let tunnels = layers.clone().filter(|layer| matches!(layer, Layer::Tunnel { .. })).count();
    let ip = |layer| match layer {
        Layer::Ip { at, ip } => Some((at, ip.fragment.is_some(), tunnels > 0)),
        _ => None,
    };
    layers.filter_map(ip).last().filter(|_| tunnels <= 2)
}

/// A packet in tunnels is for the same target as it is alone, and one that is in none for that of its outer flow.
#[test]
fn the_programs_enter_the_tunnels_that_the_walk_enters() {
    if !permitted() {
        return;
    }
    let [inner, outer] =
        [SteerBy::Inner, SteerBy::Flow].map(|by| Steered::load(Hook::Xdp { generic: true }, by, 256, 3));
    let (mut entered, mut others) = (0, 0);
    for Case { name, frame, .. } in cases().into_iter().filter(|case| case.link == link_type::ETHERNET) {
        let Some((at, is_fragment, is_inside)) = innermost(&frame) else { continue };
        // Fragments depend on what came before; a pseudowire is entered by filters alone.
        if is_fragment || name == "MPLS pseudowire" {
            continue;
        }
        let target = inner.target(&frame);
        // The programs do not look behind LLC, nor do flows.
        let of_packet = Flow::outer(link_type::RAW, &frame[at..]);
        if is_inside && Flow::inner(link_type::ETHERNET, &frame) == of_packet {
            assert_eq!(target, inner.target(&on_ethernet(There, &frame[at..])), "{name}");
            entered += 1;
        } else {
            assert_eq!(target, outer.target(&frame), "{name}");
            others += 1;
        }
    }
    assert!(entered > 30 && others > 100, "{entered} {others}");
}

#[test]
fn a_fragment_before_its_first_keeps_to_the_others_and_is_counted() {
    if !permitted() {
        return;
    }
    for hook in HOOKS {
        let steered = Steered::load(hook, SteerBy::Flow, 256, 7);
        let piece = |place, payload: &[u8]| on_ethernet(There, &ip4([1, 2], There, UDP, (9, place), payload));
        let (middle, last) =
            (steered.target(&piece(0x2002, b"middle..")), steered.target(&piece(4, b"last")));
        assert_eq!((middle, steered.orphans()), (last, 2), "{hook:?}");
        let first = steered.target(&piece(0x2000, &ports([7, 8], There, b"first...")));
        assert_eq!(first, steered.target(&on_ethernet(Back, &udp4([7, 8], Back))));
        assert_eq!((steered.target(&piece(4, b"last")), steered.orphans()), (first, 2), "{hook:?}");
    }
}

#[test]
fn cut_frames_have_a_target_and_both_programs_agree() {
    if !permitted() {
        return;
    }
    for by in ALL {
        let [xdp, tc] = [Hook::Xdp { generic: true }, Hook::Tc { segments: true }]
            .map(|hook| Steered::load(hook, by, 16, 5));
        let mut compared = 0;
        // Each processor gives turns by itself.
        let mut only = CpuSet::new();
        only.set(sched_getcpu());
        sched_setaffinity(None, &only).unwrap();
        for frame in flows(by).iter().flat_map(|(_, frames)| frames) {
            for length in 14..=frame.len() {
                let frame = &frame[..length];
                if let Some(target) = tc.run(frame) {
                    assert_eq!(xdp.target(frame), target, "{by:?} {frame:02x?}");
                    compared += 1;
                }
            }
        }
        assert!(compared > 500, "{compared}");
    }
}

#[test]
fn packets_without_ethernet_have_the_targets_that_they_have_with_it() {
    if !permitted() {
        return;
    }
    for by in [SteerBy::Flow, SteerBy::Inner] {
        let [with, without] = [true, false].map(|ethernet| Steered::load_for(ethernet, HOOKS[0], by, 256, 9));
        let mut compared = 0;
        for frame in flows(by).iter().flat_map(|(_, frames)| frames) {
            match frame[12..14] {
                [8, 0] | [0x86, 0xdd] => {
                    assert_eq!(without.target(&frame[14..]), with.target(frame), "{by:?} {frame:02x?}");
                    compared += 1;
                }
                // What is not IP has no addresses to go by.
                _ => assert_eq!(without.target(&[&[0x12][..], &frame[1..]].concat()), 0),
            }
        }
        assert!(compared > 20, "{compared}");
    }
    let vlan = Steered::load_for(false, HOOKS[0], SteerBy::Vlan, 256, 9);
    let frame = tagged(0x8100, 5, &on_ethernet(There, &udp4([7, 8], There)));
    assert_eq!(vlan.target(&frame), 0, "these are bytes of IP, whatever they look like");
}

#[test]
fn a_header_of_ip_that_is_cut_is_for_the_first_target() {
    if !permitted() {
        return;
    }
    for by in [SteerBy::Flow, SteerBy::Inner] {
        let steered = Steered::load(HOOKS[0], by, 256, 5);
        for (frame, header) in [(udp4([7, 8], There), 20), (udp6([7, 8], There), 40)] {
            let frame = on_ethernet(There, &frame);
            let targets = |lengths: std::ops::Range<usize>| -> Vec<u32> {
                lengths.map(|length| steered.target(&frame[..length])).collect()
            };
            assert!(targets(14..14 + header).iter().all(|&target| target == 0));
            // Ports that are cut are none.
            let without = targets(14 + header..14 + header + 4);
            assert!(without[0] != 0 && without.iter().all(|&target| target == without[0]), "{without:?}");
        }
    }
}

#[test]
fn targets_have_their_turns() {
    if !permitted() {
        return;
    }
    let frame = on_ethernet(There, &udp4([7, 8], There));
    for (targets, hook) in [(1, HOOKS[0]), (3, HOOKS[0]), (256, HOOKS[0])] {
        let steered = Steered::load(hook, SteerBy::RoundRobin, targets, 0);
        for number in 0..600 {
            assert_eq!(steered.target(&frame), number % targets);
        }
    }
}

#[test]
fn vlans_go_by_their_number() {
    if !permitted() {
        return;
    }
    let frame = on_ethernet(There, &udp4([7, 8], There));
    let table = [
        (frame.clone(), 0),
        (tagged(0x8100, 5, &frame), 5),
        // The priority is no part of it, nor is the DEI.
        (tagged(0x8100, 0xe005, &frame), 5),
        (tagged(0x8100, 0x1005, &frame), 5),
        (tagged(0x8100, 0xe000, &frame), 0),
        (tagged(0x88a8, 4095, &tagged(0x8100, 5, &frame)), 4095),
        (tagged(0x9100, 6, &frame), 6),
        (tagged(0x8100, 7, &frame)[..16].to_vec(), 7),
        (tagged(0x8100, 7, &frame)[..15].to_vec(), 0),
    ];
    for hook in HOOKS {
        for targets in [1, 4, 7, 256] {
            let steered = Steered::load(hook, SteerBy::Vlan, targets, 0);
            for (frame, vlan) in &table {
                assert_eq!(steered.target(frame), vlan % targets, "{hook:?} {frame:02x?}");
            }
        }
    }
}

#[test]
fn flows_are_spread_evenly_over_any_number_of_targets() {
    if !permitted() {
        return;
    }
    for (hook, targets) in [(HOOKS[0], 2), (HOOKS[2], 3), (HOOKS[1], 16)] {
        let steered = Steered::load(hook, SteerBy::Flow, targets, 3);
        let mut flows = vec![0; targets as usize];
        for port in 0..2000 {
            flows[steered.target(&on_ethernet(There, &udp4([port, 53], There))) as usize] += 1;
        }
        let even = 2000 / targets;
        assert!(flows.iter().all(|flows| (even * 2 / 3..even * 3 / 2).contains(flows)), "{flows:?}");
    }
}

/// What sorts frames by what is in them; in turn, both programs would have to have the same frames.
const BY_FRAME: [SteerBy; 3] = [SteerBy::Flow, SteerBy::Inner, SteerBy::Vlan];

thread_local! {
    /// The program of xdp and that of tc, for each of [`BY_FRAME`]: once for all cases, because loading takes long.
    static LOADED: [[Steered; 2]; 3] =
        BY_FRAME.map(|by| [HOOKS[0], HOOKS[2]].map(|hook| Steered::load(hook, by, 16, 5)));
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(share::cases(12)))]

    /// Frames of the tables with some bytes changed, cut somewhere.
    #[test]
    fn any_frame_has_a_target_and_both_programs_agree(
        kind in 0..BY_FRAME.len(),
        changes in prop::collection::vec((any::<prop::sample::Index>(), any::<prop::sample::Index>(), any::<u8>(), any::<prop::sample::Index>()), 200),
    ) {
        if permitted() {
            let by = BY_FRAME[kind];
            let frames: Vec<Vec<u8>> = flows(by).into_iter().flat_map(|(_, frames)| frames).collect();
            LOADED.with(|loaded| {
                let [xdp, tc] = &loaded[kind];
                for (which, place, value, end) in changes {
                    let mut frame = which.get(&frames).clone();
                    *place.get_mut(&mut frame[..]) = value;
                    frame.truncate(14 + end.index(frame.len() - 13));
                    if let Some(target) = tc.run(&frame) {
                        assert_eq!(xdp.target(&frame), target, "{by:?} {frame:02x?}");
                    } else {
                        xdp.target(&frame);
                    }
                }
            });
        }
    }
}
