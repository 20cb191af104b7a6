//! Every program that a capture loads, with each pair of values of its constants at least once: this kernel's verifier takes
//! it. What an older kernel cannot know is expected to be refused there.

use std::collections::HashSet;
use std::io::Write;
use std::num::NonZeroU32;

use weir_bpf::frames::Frames;
use weir_bpf::pool::{PoolOptions, SampleBy, Sampling, Stamp, SteerBy, Steering};
use weir_bpf::trace::{self, Trace};
use weir_bpf::writers::{Chosen, Driven, Writers};
use weir_bpf::xdp::Counting;
use weir_bpf::{LoadError, af_xdp, forward, stack, tc, xdp};
use weir_judge::share;
use weir_lab::programs::{bare, hooks, inline, tag, xsk};
use weir_ring::Shape;
use weir_sys::cpu::Processors;
use weir_sys::netns::NetNs;
use weir_sys::{kernel, link, veth};
use weir_traffic::{Description, Payload, Protocol, Sizes, Tables, Vxlan};

const STAMPS: [Stamp; 3] = [Stamp::None, Stamp::Packet, Stamp::Batch];
const SNAP_LENGTHS: [u32; 5] = [1, 96, 1514, 9216, 262_144];
const STEERED: [Option<SteerBy>; 5] =
    [None, Some(SteerBy::Flow), Some(SteerBy::Inner), Some(SteerBy::RoundRobin), Some(SteerBy::Vlan)];

/// Choices, each a number below that of its place in `sizes`, in which each pair of values of two places stands together
/// somewhere.
fn pairs(sizes: &[usize]) -> Vec<Vec<usize>> {
    let places = || (0..sizes.len()).flat_map(|one| (0..one).map(move |other| (one, other)));
    let mut open: HashSet<_> = places()
        .flat_map(|(one, other)| {
            (0..sizes[one]).flat_map(move |a| (0..sizes[other]).map(move |b| (one, a, other, b)))
        })
        .collect();
    let mut rows = Vec::new();
    while let Some(&(one, a, other, b)) = open.iter().min() {
        let mut row: Vec<Option<usize>> = vec![None; sizes.len()];
        (row[one], row[other]) = (Some(a), Some(b));
        for place in 0..sizes.len() {
            let new = |value: usize| {
                let known = row.iter().enumerate().filter_map(|(at, v)| v.map(|v| (at, v)));
                known.filter(|&(at, v)| open.contains(&ordered((at, v), (place, value)))).count()
            };
            if row[place].is_none() {
                row[place] = (0..sizes[place]).max_by_key(|&value| new(value));
            }
        }
        let row: Vec<usize> = row.into_iter().flatten().collect();
        for (one, other) in places() {
            open.remove(&(one, row[one], other, row[other]));
        }
        rows.push(row);
    }
    rows
}

fn ordered(one: (usize, usize), other: (usize, usize)) -> (usize, usize, usize, usize) {
    let ((a, b), (c, d)) = if one.0 > other.0 { (one, other) } else { (other, one) };
    (a, b, c, d)
}

#[test]
fn each_pair_of_values_stands_together_somewhere() {
    let sizes = [3, 5, 2, 2, 4];
    let rows = pairs(&sizes);
    for (one, other) in [(0, 1), (1, 4), (2, 3), (3, 4)] {
        let seen: HashSet<_> = rows.iter().map(|row| (row[one], row[other])).collect();
        assert_eq!(seen.len(), sizes[one] * sizes[other]);
    }
    assert!(rows.len() < 40 && rows.iter().all(|row| row.len() == sizes.len()), "{}", rows.len());
}

/// What became of the programs.
#[derive(Default)]
struct Loaded {
    count: usize,
    refused: Vec<String>,
    /// Refused by a kernel that is older than what they call.
    too_new: usize,
}

impl Loaded {
    /// Loads it. `bound`: to a device, whose metadata functions it calls.
    fn load<T>(
        &mut self,
        what: impl FnOnce() -> String,
        bound: bool,
        load: impl FnOnce() -> Result<T, LoadError>,
    ) {
        match load() {
            Ok(_) => self.count += 1,
            Err(_) if bound && kernel::version() < TAGS => self.too_new += 1,
            Err(error) => self.refused.push(format!("{}: {error}", what())),
        }
    }

    /// Nothing was refused that this kernel should take. Says what `scripts/kernels/table` reads.
    fn end(self, name: &str) {
        let Self { count, refused, too_new } = self;
        let mut said = format!("{name}: {count} loads");
        if too_new > 0 {
            said += &format!("\n{name}, bound to a device: refused, as by every kernel before 6.8");
        }
        // A closed standard error is no reason to fail.
        let _ = writeln!(std::io::stderr(), "{said}");
        let (number, all) = (refused.len(), refused.len() + count);
        assert!(refused.is_empty() && count > 0, "{number} of {all} refused:\n{}", refused.join("\n"));
    }
}

/// The version that first has `bpf_xdp_metadata_rx_vlan_tag`.
const TAGS: (u32, u32) = (6, 8);

/// Runs `test` where there is an interface whose driver can be asked for tags; the environment says whether it may be left
/// out.
fn with_device(test: impl FnOnce(u32) + Send) {
    let namespace = match NetNs::new() {
        Ok(namespace) => namespace,
        Err(error) => return weir_skip::this_test(error),
    };
    namespace.run(|| {
        veth::create("one", "other").expect("a pair");
        let links = link::links().expect("interfaces");
        test(links.iter().find(|link| link.name == "one").expect("it is there").index);
    });
}

/// A small pool of 4 queues, with the values of five places of a row: [`STAMPS`], [`SNAP_LENGTHS`], both ways, Ethernet,
/// [`STEERED`].
fn pool(row: &[usize]) -> (PoolOptions, Option<Steering>) {
    // The room behind the limit is for the longest packets.
    let shape = Shape::new(4, 2, 1 << 19, 1 << 18).expect("possible");
    let options = PoolOptions {
        stamp: STAMPS[row[0]],
        directions: row[2] == 1,
        ethernet: row[3] == 1,
        ..PoolOptions::of(&shape, SNAP_LENGTHS[row[1]])
    };
    (options, STEERED[row[4]].map(|by| Steering { by, targets: 2, seed: 1 }))
}

/// Which packets are selected: all, or by each rule.
const SAMPLED: [Option<SampleBy>; 4] = [
    None,
    Some(SampleBy::Turns(NonZeroU32::new(100).unwrap())),
    Some(SampleBy::Chance(1 << 30)),
    Some(SampleBy::Flows(1 << 30)),
];

fn sampling(place: usize) -> Option<Sampling> {
    SAMPLED[place].map(|by| Sampling { by, seed: 1 })
}

/// All receive queues, and four of them.
const CHOSEN: [Option<Chosen>; 2] = [None, Some(Chosen { first: 2, count: 4 })];

const POOL: [usize; 5] = [STAMPS.len(), SNAP_LENGTHS.len(), 2, 2, STEERED.len()];

/// Beside steering and sampling, which captures refuse, it loads as well.
const COUNTING: Counting =
    Counting { buckets: 16, writers: 4, idle: 1_000_000_000, rest: 1_000_000_000, copies: 8, seed: 1 };

#[test]
fn root_xdp() {
    with_device(|device| {
        let mut loaded = Loaded::default();
        let sizes: Vec<usize> = POOL.into_iter().chain([2, 2, 4, 2, SAMPLED.len(), 2]).collect();
        for row in pairs(&sizes) {
            let (pool, steering) = pool(&row);
            let online = || Processors::online().expect("processors");
            // Bound programs are for drivers, which have queues.
            let (writers, tags_of) = match row[7] {
                0 => (Writers::Queues(Driven { index: device, hands_on: true }), None),
                1 => (Writers::Queues(Driven { index: device, hands_on: false }), Some(device)),
                2 => (Writers::Queues(Driven { index: device, hands_on: false }), None),
                _ => (Writers::Processors(online()), None),
            };
            let (exclusive, fragments) = (row[5] == 1, row[6] == 1);
            let chosen = CHOSEN[row[8]];
            let sampling = sampling(row[9]);
            let rules = tags_of.is_none();
            let options = xdp::Options {
                pool,
                steering,
                sampling,
                exclusive,
                fragments,
                writers,
                chosen,
                tags_of,
                rules,
                counting: (row[10] == 1).then_some(COUNTING),
            };
            loaded.load(|| format!("{options:?}"), tags_of.is_some(), || xdp::Program::load(&options));
        }
        loaded.end("xdp");
    });
}

/// What segments may carry is bounded by the MTU: of cards, with jumbo frames, and of the loopback device.
const PAYLOADS: [Option<u32>; 4] = [None, Some(1500), Some(9216), Some(65_536)];

/// Days in which all programs with one of [`PAYLOADS`] are loaded: those that make segments take seconds each, those of the
/// loopback device up to 13.
const DAYS: [u16; 4] = [1, 2, 2, 4];

/// The part of tc's programs with one of [`PAYLOADS`]: together they have each pair. A test for each, since they take longest.
fn load_tc(payload: usize, name: &str) {
    with_device(|_| {
        let mut loaded = Loaded::default();
        let sizes: Vec<usize> = POOL.into_iter().chain([PAYLOADS.len(), 3, SAMPLED.len()]).collect();
        let rows = pairs(&sizes).into_iter().filter(|row| row[5] == payload);
        for row in share(DAYS[payload], rows) {
            let (pool, steering) = pool(&row);
            let processors = Processors::online().expect("processors");
            let segments = PAYLOADS[payload].map(|payload| tc::Segments { payload });
            let (ingress, egress) = [(true, true), (true, false), (false, true)][row[6]];
            let options = tc::Options {
                pool,
                processors,
                steering,
                sampling: sampling(row[7]),
                segments,
                left_out: Some(7),
                left_out_mark: NonZeroU32::new(7),
                ingress,
                egress,
                // The programs for them have the same in them.
                rules: payload < 2,
            };
            let inner = steering.is_some_and(|steering| matches!(steering.by, SteerBy::Inner));
            if inner && segments.is_some_and(|segments| segments.payload == 65_536) {
                // More than a million instructions to newer verifiers, which say so; that is told.
                let result = tc::Programs::load(&options).map_err(|error| error.to_string());
                assert!(result.is_ok() || result.is_err_and(|error| error.contains("too large")));
            } else {
                loaded.load(|| format!("{options:?}"), false, || tc::Programs::load(&options));
            }
        }
        loaded.end(name);
    });
}

#[test]
fn root_tc() {
    load_tc(0, "tc");
}

#[test]
fn root_tc_with_segments_of_a_card() {
    load_tc(1, "tc, segments of a card");
}

#[test]
fn root_tc_with_segments_of_jumbo_frames() {
    load_tc(2, "tc, segments of jumbo frames");
}

#[test]
fn root_tc_with_segments_of_the_loopback_device() {
    load_tc(3, "tc, segments of the loopback device");
}

#[test]
fn root_af_xdp() {
    with_device(|device| {
        let mut loaded = Loaded::default();
        for row in pairs(&[STAMPS.len(), 2, 3, 2, SAMPLED.len(), 2]) {
            let (stamp, fragments) = (STAMPS[row[0]], row[1] == 1);
            let native_on = (row[2] > 0).then_some(Driven { index: device, hands_on: row[2] == 1 });
            let tags_of = (row[2] > 1).then_some(device);
            let options = af_xdp::Options {
                queues: 4,
                chosen: CHOSEN[row[3]],
                stamp,
                sampling: sampling(row[4]),
                ethernet: row[5] == 1,
                fragments,
                native_on,
                tags_of,
                rules: tags_of.is_none(),
            };
            loaded.load(|| format!("{options:?}"), tags_of.is_some(), || af_xdp::Program::load(&options));
        }
        loaded.end("af_xdp");
    });
}

#[test]
fn root_forward() {
    with_device(|device| {
        let mut loaded = Loaded::default();
        let sizes: Vec<usize> = POOL[..4].iter().copied().chain([1, 2, 3, 2, 2]).collect();
        for row in pairs(&sizes) {
            let (pool, _) = pool(&row);
            let fragments = row[5] == 1;
            let (to_sockets, past_sockets) = [(false, true), (true, false), (true, true)][row[6]];
            let tags_of = (row[7] == 1).then_some(device);
            let copies = (row[8] == 1).then_some(pool);
            let from = Driven { index: device, hands_on: true };
            let options = forward::Options {
                from,
                queues: 4,
                queues_back: 2,
                fragments,
                to_sockets,
                past_sockets,
                tags_of,
                rules: tags_of.is_none(),
                copies,
            };
            let both = || {
                let (forth, _) = forward::Forward::load(&options)?;
                forth.load_back(&options)
            };
            loaded.load(|| format!("{options:?}"), tags_of.is_some(), both);
        }
        loaded.end("forward");
    });
}

/// What the laboratory, the benchmark and the tests load.
#[test]
fn root_tools() {
    with_device(|device| {
        let mut loaded = Loaded::default();
        loaded.load(|| "bare".to_owned(), false, bare::Bare::load);
        for hook in [inline::Hook::Xdp, inline::Hook::Tc] {
            loaded.load(|| format!("{hook:?}"), false, || inline::Inline::load(hook, [10, 0, 0, 1].into()));
        }
        loaded.load(|| "stack".to_owned(), false, stack::Receive::load);
        loaded.load(|| "tag".to_owned(), false, || tag::Tag::load(0x8100, 7));
        loaded.load(|| "untag".to_owned(), false, tag::Tag::load_untagging);
        for fragments in [false, true] {
            loaded.load(|| format!("xsk {fragments}"), false, || xsk::Redirect::load(4, fragments));
        }
        let tables = Tables::new(&Description { flows: 4, ..Description::new(false) }).expect("possible");
        loaded.load(|| "check".to_owned(), false, || hooks::Check::load(&tables, 4));
        for action in [hooks::Action::Drop, hooks::Action::Pass, hooks::Action::Write] {
            loaded.load(|| format!("{action:?}"), false, || hooks::Count::load(action, 4));
        }
        loaded.load(|| "redirect".to_owned(), false, || hooks::RedirectTo::load(device));
        loaded.end("tools");
    });
}

/// What sends: test traffic made in the kernel, and packets kept there.
#[test]
fn root_senders() {
    let mut loaded = Loaded::default();
    let payloads = [Payload::Zeros, Payload::Pattern];
    let all_sizes = [None, Some(Sizes::Fixed(1514)), Some(Sizes::Imix)];
    for row in pairs(&[2, 3, 2, 3, 2, 2, 2]) {
        let plain = Description::new(row[0] == 1);
        let description = Description {
            protocol: [Protocol::Udp, Protocol::Tcp(0x18), Protocol::Icmp][row[1]],
            flows: [1, 1000][row[2]],
            sizes: all_sizes[row[3]],
            vlans: if row[4] == 1 { vec![7, 9] } else { Vec::new() },
            vxlan: (row[5] == 1).then(|| Vxlan::new(42)),
            payload: payloads[row[6]],
            ..plain
        };
        // Patterns take frames of one size.
        let Ok(tables) = Tables::new(&description) else { continue };
        loaded.load(|| format!("{description:?}"), false, || Frames::load(&tables, 1));
    }
    let longest = [7; trace::LONGEST];
    for (lengths, times) in
        [(&[60][..], 1), (&[1, 60, 1514], 1), (&[60, 1514], 100), (&[14, trace::LONGEST], 40)]
    {
        let packets: Vec<&[u8]> = lengths.iter().map(|&length| &longest[..length]).collect();
        let packets = packets.repeat(times);
        loaded.load(|| format!("{lengths:?}, {times} times"), false, || Trace::load(&packets));
    }
    loaded.end("senders");
}
