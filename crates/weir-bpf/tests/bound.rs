//! The program that is bound to its device, with filters inside: the verifier takes it, whatever the filter.

use std::process::Command;

use weir_bpf::filter::FilterError;
use weir_bpf::loader::Loader;
use weir_bpf::pool::{PoolMaps, PoolOptions, Stamp, SteerBy, Steering};
use weir_bpf::writers::{Driven, Writers};
use weir_bpf::xdp::{Options, Program};
use weir_bpf::{af_xdp, forward};
use weir_filter::emit::ebpf;
use weir_filter::graph::{Graph, Node, Operation, TermId, Value, Verdict, Width};
use weir_filter::names::NoNames;
use weir_filter::{Beside, Dialect, Options as FilterOptions};
use weir_judge::{corpus, share};
use weir_ring::Shape;
use weir_sys::netns::NetNs;
use weir_sys::{link, veth};

/// A namespace of its own, in which loading is permitted; the environment says whether it may be missing.
fn namespace() -> Option<NetNs> {
    NetNs::new().map_err(weir_skip::this_test).ok()
}

/// The smallest pool.
fn pool() -> PoolOptions {
    const SNAP_LEN: u32 = 9000;
    let shape = Shape::new(4, 2, 64 << 10, SNAP_LEN).expect("possible");
    PoolOptions { stamp: Stamp::Packet, directions: true, ..PoolOptions::of(&shape, SNAP_LEN) }
}

fn driven(index: u32) -> Driven {
    Driven { index, hands_on: false }
}

/// The program for `device`, with the smallest pool.
fn program(device: u32, fragments: bool, steering: Option<SteerBy>) -> (Program, PoolMaps) {
    let steering = steering.map(|by| Steering { by, targets: 4, seed: 1 });
    let options = Options {
        pool: pool(),
        steering,
        sampling: None,
        exclusive: false,
        fragments,
        writers: Writers::Queues(driven(device)),
        chosen: None,
        tags_of: Some(device),
        rules: false,
        counting: None,
    };
    Program::load(&options).expect("it is loaded")
}

/// What makes filters for each body, that of captures in each kind of steering, bound to `device`. Their maps live as long as
/// they do.
fn loaders(device: u32, fragments: bool, steered: &[Option<SteerBy>]) -> Vec<Loader> {
    let (queues, tags_of) = (1, Some(device));
    let captures: Vec<_> = steered.iter().map(|&steering| program(device, fragments, steering).1).collect();
    let options = af_xdp::Options {
        queues,
        chosen: None,
        stamp: Stamp::Packet,
        sampling: None,
        ethernet: true,
        fragments,
        native_on: tags_of.map(driven),
        tags_of,
        rules: false,
    };
    let (_program, af_xdp) = af_xdp::Program::load(&options).expect("it is loaded");
    let options = forward::Options {
        from: driven(device),
        queues,
        queues_back: 0,
        fragments,
        to_sockets: true,
        past_sockets: true,
        tags_of,
        rules: false,
        copies: None,
    };
    let (forward, _) = forward::Forward::load(&options).expect("it is loaded");
    let options = forward::Options { copies: Some(pool()), ..options };
    let (copying, _maps) = forward::Forward::load(&options).expect("it is loaded");
    let gates = captures.iter().map(|capture| capture.gate());
    let gates = gates.chain([af_xdp.gate(), forward.gate(), copying.gate()]);
    gates.map(|gate| gate.loader().expect("descriptors").expect("it waits")).collect()
}

/// An interface of this thread's namespace whose driver can be asked for tags.
fn device() -> u32 {
    veth::create("one", "other").expect("a pair");
    let links = link::links().expect("interfaces");
    links.iter().find(|link| link.name == "one").expect("it is there").index
}

#[test]
fn every_program_of_the_corpus_is_taken_inside() {
    let Some(namespace) = namespace() else { return };
    namespace.run(|| {
        let device = device();
        let loaders: Vec<Loader> =
            [false, true].into_iter().flat_map(|fragments| loaders(device, fragments, &[None])).collect();
        let mut programs = 0;
        for (dialect, entries) in
            [(Dialect::Pcap, share(4, corpus::pcap())), (Dialect::Weir, share(4, corpus::weir()))]
        {
            for entry in entries.iter().filter(|entry| entry.link_type == 1) {
                let options = FilterOptions {
                    dialect,
                    link_type: entry.link_type,
                    snap_len: 65_535,
                    metadata: Beside::All,
                    swapped: false,
                    others: &[],
                    netmask: None,
                    names: &NoNames,
                };
                // Names that nobody knows.
                let Ok(filter) = weir_filter::compile(entry.text, &options) else { continue };
                let taken = loaders[programs % loaders.len()].load(&filter.graph, &filter.ast.sets);
                taken.unwrap_or_else(|error| panic!("{}: {error}", entry.text));
                programs += 1;
            }
        }
        assert!(programs > 70, "{programs}");
    });
}

/// A filter that keeps this many bytes of the packet, and asks about each only then.
fn keeping(count: u32) -> Graph {
    let mut graph = Graph::new(1);
    let slots: Vec<_> = (0..count).map(|_| graph.slot()).collect();
    let mut node = Graph::ACCEPT;
    for &slot in &slots {
        let value = graph.value(Value::Slot(slot));
        node = graph.equals(value, 300, (Graph::REFUSE, node), TermId(0));
    }
    for (at, slot) in (14..).zip(slots) {
        let value = graph.load(None, at, Width::Byte);
        node = graph.push(Node::Assign { slot, value, next: node });
    }
    graph.set_root(node);
    graph
}

/// A filter with a verdict that the bodies do not know.
fn third_verdict() -> Graph {
    let mut graph = Graph::new(1);
    let root = graph.end(Verdict(2));
    graph.set_root(root);
    graph
}

#[test]
fn the_stack_has_room_for_the_writer_and_the_largest_filter() {
    let Some(namespace) = namespace() else { return };
    namespace.run(|| {
        let device = device();
        let steered =
            [None, Some(SteerBy::Flow), Some(SteerBy::Inner), Some(SteerBy::RoundRobin), Some(SteerBy::Vlan)];
        // Each on one day with fragments, on the next without.
        let bodies = share(2, [false, true].into_iter().flat_map(|with| steered.map(|by| (with, by))));
        let all = [false, true].into_iter().flat_map(|fragments| {
            let steered = bodies.iter().filter(|(with, _)| *with == fragments).map(|&(_, by)| by);
            loaders(device, fragments, &steered.collect::<Vec<_>>())
        });
        for loader in all {
            loader.load(&keeping(96), &[]).unwrap_or_else(|error| panic!("{error}"));
            let more = loader.load(&keeping(97), &[]).unwrap_err();
            let full = ebpf::Error::TooManyResults { needed: 97, most: 96 };
            assert!(matches!(more, FilterError::Emit(error) if error == full), "{more}");
            let third = loader.load(&third_verdict(), &[]).unwrap_err();
            let unknown = ebpf::Error::Verdicts { needed: 3, known: 2 };
            assert!(matches!(third, FilterError::Emit(error) if error == unknown), "{third}");
        }
    });
}

/// A filter that divides this many bytes of the packet by each other: the verifier puts instructions in front of each division.
fn dividing(count: u32) -> Graph {
    let mut graph = Graph::new(1);
    let mut node = Graph::ACCEPT;
    for at in 0..count {
        let (one, other) = (graph.load(None, at, Width::Byte), graph.load(None, at + 1, Width::Byte));
        let value = graph.binary(Operation::Divide, one, other);
        node = graph.equals(value, 300, (Graph::REFUSE, node), TermId(0));
    }
    graph.set_root(node);
    graph
}

/// Programs that the verifier has made longer outlive their device: on kernels that move such a program and leave the old place
/// with the device, room in it keeps them where they are (`stripped.h`, `filter/link.rs`).
#[test]
fn root_a_device_goes_before_its_programs() {
    let Some(namespace) = namespace() else { return };
    namespace.run(|| {
        for (graph, steered) in [(keeping(1), &[None][..]), (dividing(400), &[None, Some(SteerBy::Inner)])] {
            let device = device();
            let loaders = loaders(device, true, steered);
            let programs: Vec<_> = loaders.iter().map(|loader| loader.load(&graph, &[])).collect();
            for program in &programs {
                assert!(program.is_ok(), "{program:?}");
            }
            let deleted = Command::new("ip").args(["link", "delete", "one"]).status().expect("iproute2");
            assert!(deleted.success());
            assert!(link::links().expect("the kernel answers").iter().all(|link| link.name != "one"));
        }
    });
}
