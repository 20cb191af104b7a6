//! The AF_XDP socket and the program that redirects to it, on real traffic.

use std::time::{Duration, Instant};

use weir_bpf::xsk::Redirect;
use weir_lab::{
    FrameSender, Generator, Network, Port, SequenceCheck, StackCounters, Traffic, Veth, require_root,
};
use weir_sys::bpf::{XdpHook, XdpLink};
use weir_sys::xsk::{FrameSize, Umem, XskLoss, XskSocket};

const PATIENCE: Duration = Duration::from_secs(2);

/// A socket on one queue of a port.
struct Receiver {
    // First: the program is taken off before the socket closes.
    _link: XdpLink,
    _redirect: Redirect,
    socket: XskSocket,
}

impl Receiver {
    fn new(port: &Port, queue: u32, hook: XdpHook, frames: u32, size: FrameSize) -> Self {
        port.netns.run(|| {
            let redirect = Redirect::load(port.queues).expect("load");
            let umem = Umem::new(frames, size).expect("memory");
            let socket = XskSocket::bind(port.index, queue, umem).expect("bind");
            redirect.insert(queue, &socket).expect("insert");
            let link = XdpLink::attach(redirect.program(), port.index, hook).expect("attach");
            Self { _link: link, _redirect: redirect, socket }
        })
    }

    /// Receives until `packets` were seen, then makes sure that nothing follows. Gives what was seen.
    fn receive(&mut self, packets: u32, mut each: impl FnMut(&[u8])) -> u32 {
        let start = Instant::now();
        let mut seen = 0;
        while seen < packets && start.elapsed() < PATIENCE {
            seen += self.socket.receive(&mut each);
            self.socket.wake().expect("wake");
        }
        seen + self.socket.receive(each)
    }

    fn loss(&self) -> XskLoss {
        self.socket.loss().expect("counters")
    }

    /// Waits until so many were dropped. Frames are still on their way when their sender has returned.
    fn wait_for_dropped(&self, packets: u64) -> XskLoss {
        let start = Instant::now();
        while self.loss().dropped < packets && start.elapsed() < PATIENCE {
            std::thread::yield_now();
        }
        self.loss()
    }
}

#[test]
fn root_every_byte_arrives_in_order_on_both_hooks_and_queues() {
    if !require_root("root_every_byte_arrives_in_order_on_both_hooks_and_queues") {
        return;
    }
    for (hook, queue) in [(XdpHook::Native, 0), (XdpHook::Native, 1), (XdpHook::Generic, 0)] {
        for size in [60, 1514] {
            let network = Network::new(Veth::default().queues(2)).expect("network");
            let pair = network.pair();
            let mut receiver = Receiver::new(&pair.rx, queue, hook, 1 << 11, FrameSize::TwoKib);
            let traffic = Traffic::new(size).expect("size").flows(16).expect("flows").between(pair);
            let mut generator = Generator::new(pair, &traffic).expect("generator").cpu(queue);
            // The rings go round five times.
            for round in 0..8 {
                let sent = generator.send(1500).expect("send");
                assert_eq!(sent.refused, 0);
                let mut check = SequenceCheck::new(&traffic, sent.sequences);
                let seen = receiver.receive(1500, |frame| check.frame(frame));
                let report = check.finish();
                assert!(seen == 1500 && report.is_perfect(), "{hook:?} {size} {round}: {seen} {report:?}");
            }
            assert_eq!(receiver.loss(), XskLoss::default());
        }
    }
}

#[test]
fn root_what_finds_no_frame_is_counted() {
    if !require_root("root_what_finds_no_frame_is_counted") {
        return;
    }
    let network = Network::new(Veth::default()).expect("network");
    let pair = network.pair();
    let mut receiver = Receiver::new(&pair.rx, 0, XdpHook::Native, 256, FrameSize::TwoKib);
    let traffic = Traffic::new(60).expect("size").between(pair);
    let mut generator = Generator::new(pair, &traffic).expect("generator");
    for round in 1..=3 {
        let sent = generator.send(5000).expect("send");
        assert_eq!(sent.refused, 0);
        let dropped = round * (5000 - 256);
        assert_eq!(receiver.wait_for_dropped(dropped), XskLoss { dropped, ..XskLoss::default() });
        let first = sent.sequences.start;
        let mut check = SequenceCheck::new(&traffic, first..first + 256);
        assert_eq!(receiver.receive(256, |frame| check.frame(frame)), 256);
        assert!(check.finish().is_perfect(), "the first ones were kept");
    }
}

#[test]
fn root_a_packet_longer_than_a_frame_is_counted() {
    if !require_root("root_a_packet_longer_than_a_frame_is_counted") {
        return;
    }
    for (size, longest) in [(FrameSize::TwoKib, 1792), (FrameSize::FourKib, 3000)] {
        let network = Network::new(Veth::default().mtu(3000)).expect("network");
        let pair = network.pair();
        let mut receiver = Receiver::new(&pair.rx, 0, XdpHook::Native, 16, size);
        let sender = FrameSender::new(&pair.tx).expect("sender");
        let dropped = u64::from(longest == 1792);
        for length in [longest, 1793] {
            let frame: Vec<u8> = (0..=250).cycle().take(length).collect();
            sender.send(&frame).expect("send");
            let fits = size == FrameSize::FourKib || length == longest;
            let seen = receiver.receive(u32::from(fits), |packet| assert_eq!(packet, frame));
            assert_eq!(seen, u32::from(fits), "{length} bytes into {size:?}");
        }
        assert_eq!(receiver.wait_for_dropped(dropped), XskLoss { dropped, ..XskLoss::default() });
    }
}

#[test]
fn root_a_handler_that_panics_gets_the_packets_again() {
    if !require_root("root_a_handler_that_panics_gets_the_packets_again") {
        return;
    }
    let network = Network::new(Veth::default()).expect("network");
    let pair = network.pair();
    let mut receiver = Receiver::new(&pair.rx, 0, XdpHook::Native, 64, FrameSize::TwoKib);
    let traffic = Traffic::new(60).expect("size").between(pair);
    let sent = Generator::new(pair, &traffic).expect("generator").send(40).expect("send");
    let mut calls = 0;
    let panicking = std::panic::AssertUnwindSafe(|| {
        receiver.receive(40, |_| {
            calls += 1;
            assert!(calls < 7, "as this test wants");
        })
    });
    assert!(std::panic::catch_unwind(panicking).is_err());
    let mut check = SequenceCheck::new(&traffic, sent.sequences);
    assert_eq!(receiver.receive(40, |frame| check.frame(frame)), 40);
    assert!(check.finish().is_perfect());
}

#[test]
fn root_a_queue_without_socket_passes_to_the_stack() {
    if !require_root("root_a_queue_without_socket_passes_to_the_stack") {
        return;
    }
    let network = Network::new(Veth::default().queues(2).ipv4()).expect("network");
    let pair = network.pair();
    let traffic = Traffic::new(60).expect("size").between(pair);
    let ip_packets = || StackCounters::read(&pair.rx.netns).expect("counters").get("IpInReceives");
    let reaches_stack = |packets: u64, cpu: u32| {
        let before = ip_packets();
        Generator::new(pair, &traffic).expect("generator").cpu(cpu).send(packets).expect("send");
        let start = Instant::now();
        while ip_packets() - before < packets && start.elapsed() < PATIENCE / 4 {
            std::thread::yield_now();
        }
        ip_packets() - before
    };
    let mut receiver = Receiver::new(&pair.rx, 0, XdpHook::Native, 256, FrameSize::TwoKib);
    assert_eq!(reaches_stack(100, 1), 100, "queue 1 has no socket");
    assert_eq!(reaches_stack(100, 0), 0, "queue 0 has one");
    assert_eq!(receiver.receive(100, |_| {}), 100);
    drop(receiver);
    assert_eq!(reaches_stack(100, 0), 100, "the program is gone");
}

#[test]
fn root_what_cannot_be_bound_says_why() {
    if !require_root("root_what_cannot_be_bound_says_why") {
        return;
    }
    let network = Network::new(Veth::default()).expect("network");
    let port = &network.pair().rx;
    let bind = |queue| {
        let umem = Umem::new(16, FrameSize::FourKib).expect("memory");
        port.netns.run(|| XskSocket::bind(port.index, queue, umem))
    };
    assert_eq!(bind(1).expect_err("there is no queue 1").errno(), rustix::io::Errno::INVAL.raw_os_error());
    let first = bind(0).expect("bind");
    let error = bind(0).expect_err("the queue is taken");
    assert_eq!(error.errno(), rustix::io::Errno::BUSY.raw_os_error());
    assert!(error.to_string().contains("queue 0 of interface"), "{error}");
    drop(first);
    let again = bind(0).expect("the queue is free again");

    let redirect = Redirect::load(1).expect("load");
    redirect.insert(0, &again).expect("insert");
    redirect.insert(1, &again).expect_err("there is no queue 1");
    redirect.insert(0, std::io::stdin()).expect_err("not a socket");
}
