//! Packets that belong to no writer: each is counted once, with its reason, and in no queue.

use std::os::fd::{AsFd as _, BorrowedFd};
use std::process::Command;
use std::thread;
use std::time::{Duration, Instant};

use rustix::thread::{CpuSet, sched_getcpu, sched_setaffinity};
use weir_bpf::pool::{PoolMaps, PoolOptions, Stamp};
use weir_bpf::writers::{Driven, Writers};
use weir_bpf::{Strays, af_xdp, stat, tc, xdp};
use weir_ring::{Consumer, Pool, Shape, SharedMaps};
use weir_sys::bpf::{XdpHook, XdpLink};
use weir_sys::cpu::Processors;
use weir_sys::netns::NetNs;
use weir_sys::packet::Sender;
use weir_sys::{link, testrun};

/// Far longer than packets take.
const PATIENCE: Duration = Duration::from_secs(30);
/// Frames of as many flows.
const FRAMES: u64 = 64;

/// UDP from this port.
fn frame(port: u16) -> Vec<u8> {
    let [high, low] = port.to_be_bytes();
    let ethernet = [0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 2, 0, 0, 0, 0, 1, 8, 0];
    let ip = [0x45, 0, 0, 46, 0, 0, 0, 0, 64, 17, 0, 0, 10, 0, 0, 1, 10, 0, 0, 2];
    [&ethernet[..], &ip, &[high, low, 0, 9, 0, 26, 0, 0], &[0; 18]].concat()
}

fn shape(queues: u32) -> Shape {
    Shape::new(queues, 2, 4096, 4096).expect("it is possible")
}

fn pool(shape: Shape) -> PoolOptions {
    PoolOptions::of(&shape, 1500)
}

fn capture(writers: Writers, queues: u32) -> (xdp::Program, PoolMaps) {
    let options = xdp::Options {
        pool: pool(shape(queues)),
        steering: None,
        sampling: None,
        exclusive: false,
        fragments: false,
        writers,
        chosen: None,
        tags_of: None,
        rules: false,
        counting: None,
    };
    xdp::Program::load(&options).expect("it is loaded")
}

/// What the queues have seen, each with its outcome.
fn seen(maps: &PoolMaps, shape: Shape) -> u64 {
    let shared =
        SharedMaps { pool: maps.pool(), chunks: maps.chunks(), queues: maps.queues(), orders: maps.orders() };
    let consumers = Pool::shared(shape, &shared).expect("it fits");
    let counters = consumers.iter().map(Consumer::gauge).map(|gauge| gauge.counters());
    counters
        .inspect(|queue| assert_eq!(queue.seen, queue.captured + queue.lost, "{queue:?}"))
        .map(|queue| queue.seen)
        .sum()
}

/// A namespace of its own with the pair `near0` and `far0`, of two queues each, in which loading is permitted; the
/// environment says whether it may be missing.
fn with_pair(test: impl FnOnce([u32; 2]) + Send) {
    let namespace = match NetNs::new() {
        Ok(namespace) => namespace,
        Err(error) => return weir_skip::this_test(error),
    };
    let script = "
        for which in default all; do echo 1 >/proc/sys/net/ipv6/conf/$which/disable_ipv6; done
        ip link add near0 numrxqueues 2 numtxqueues 2 type veth peer name far0 numrxqueues 2 numtxqueues 2
        ip link set far0 up && ip link set near0 up";
    namespace.run(|| {
        assert!(Command::new("sh").args(["-ec", script]).status().expect("sh").success());
        let links = link::links().expect("interfaces");
        let index = |name| links.iter().find(|link| link.name == name).expect("it is there").index;
        test([index("near0"), index("far0")]);
    });
}

/// Sends frames from `far`, of enough flows to arrive on both queues, and waits until `counted` has them.
fn send(far: u32, counted: impl Fn() -> u64) {
    let (sender, before, began) = (Sender::new(far).expect("a socket"), counted(), Instant::now());
    for port in 1..=u16::try_from(FRAMES).expect("a few") {
        sender.send(&frame(port)).expect("it is up");
    }
    while counted() < before + FRAMES {
        assert!(began.elapsed() < PATIENCE, "{} of {FRAMES}", counted() - before);
        thread::sleep(Duration::from_millis(1));
    }
    assert_eq!(counted(), before + FRAMES);
}

/// The driver of `near` runs the program although the writers are the receive queues of `far`.
#[test]
fn root_packets_of_other_interfaces_are_counted_apart_from_queues() {
    with_pair(|[near, far]| {
        let other_interface = Strays { other_interface: FRAMES, ..Strays::default() };
        let from = Driven { index: far, hands_on: true };

        let (program, maps) = capture(Writers::Queues(from), 2);
        let attached = program.attach(near, XdpHook::Native).expect("it is attached");
        send(far, || maps.strays().nobodys() + seen(&maps, shape(2)));
        assert_eq!((maps.strays(), seen(&maps, shape(2))), (other_interface, 0));
        drop(attached);

        let options = af_xdp::Options {
            queues: 2,
            chosen: None,
            stamp: Stamp::None,
            sampling: None,
            ethernet: true,
            fragments: false,
            native_on: Some(from),
            tags_of: None,
            rules: false,
        };
        let (program, maps) = af_xdp::Program::load(&options).expect("it is loaded");
        let met = || (0..2).map(|queue| maps.met(queue).expect("it has counters").seen).sum::<u64>();
        let attached = program.attach(near, XdpHook::Native).expect("it is attached");
        send(far, || maps.strays().nobodys() + met());
        assert_eq!((maps.strays(), met()), (other_interface, 0));
        drop(attached);

        let place =
            stat::Xdp { fragments: false, from: Some(from), chosen: None, tags_of: None, exclusive: false };
        let programs = stat::Programs::load(&stat::AttachPoint::Xdp(place), &[], &stat::Details::default());
        let stat::Programs { received, counters, .. } = programs.expect("it is loaded");
        let _link = XdpLink::attach(received.as_ref().expect("there is one").as_fd(), near, XdpHook::Native)
            .expect("attached");
        let all = || counters.read().expect("counters").all[0].packets;
        send(far, || counters.strays().nobodys() + all());
        assert_eq!((counters.strays(), all()), (other_interface, 0));
    });
}

/// `near` has two queues, of which the pool knows one.
#[test]
fn root_packets_on_a_queue_without_a_pool_have_no_queue() {
    with_pair(|[near, far]| {
        let from = Driven { index: near, hands_on: true };
        let (program, maps) = capture(Writers::Queues(from), 1);
        let _attached = program.attach(near, XdpHook::Native).expect("it is attached");
        send(far, || maps.strays().nobodys() + seen(&maps, shape(1)));
        let (strays, seen) = (maps.strays(), seen(&maps, shape(1)));
        assert!(strays.no_queue > 0 && seen > 0, "{strays:?}");
        assert_eq!(strays, Strays { no_queue: FRAMES - seen, ..Strays::default() });
    });
}

/// The processor that runs the programs came after those that have queues.
#[test]
fn root_packets_on_a_processor_that_came_later_are_in_no_queue() {
    with_pair(|_| {
        let here = u32::try_from(sched_getcpu()).expect("a processor");
        let mut only = CpuSet::new();
        only.set(here as usize);
        sched_setaffinity(None, &only).expect("it is there");
        let run = |program: BorrowedFd<'_>| {
            testrun::run(program, &frame(7), 1).expect("it runs");
        };
        for (processors, late_cpu) in
            [(Processors::of(&[here], here + 1), 0), (Processors::of(&[here + 1], here + 2), 2)]
        {
            let expected = (Strays { late_cpu, ..Strays::default() }, 2 - late_cpu);
            let (program, maps) = capture(Writers::Processors(processors.clone()), 1);
            program.run(&frame(7), 2).expect("it runs");
            assert_eq!((maps.strays(), seen(&maps, shape(1))), expected, "{processors:?}");

            let options = tc::Options {
                pool: pool(shape(1)),
                processors: processors.clone(),
                steering: None,
                sampling: None,
                segments: None,
                left_out: None,
                left_out_mark: None,
                ingress: true,
                egress: true,
                rules: false,
            };
            let (programs, maps) = tc::Programs::load(&options).expect("they are loaded");
            run(programs.ingress().expect("it was asked for"));
            run(programs.egress().expect("it was asked for"));
            assert_eq!((maps.strays(), seen(&maps, shape(1))), expected, "{processors:?}");
        }
    });
}
