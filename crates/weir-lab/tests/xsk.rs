//! AF_XDP sockets and the redirecting program, with real traffic.

use std::time::{Duration, Instant};

use weir_lab::programs::xsk::Redirect;
use weir_lab::{
    FrameSender, Generator, Network, Port, SequenceCheck, StackCounters, Traffic, Veth, root_test,
};
use weir_sys::bpf::{XdpHook, XdpLink};
use weir_sys::xsk::{Frame, FrameSize, Umem, UmemOptions, XskCounts, XskLoss, XskOptions, XskSocket};

const PATIENCE: Duration = Duration::from_secs(30);

/// A socket on one queue of a port.
struct Receiver {
    // First, so that the program is detached before the socket is closed.
    _link: XdpLink,
    _redirect: Redirect,
    socket: XskSocket,
    umem: Umem,
}

fn umem(frames: u32, frame_size: FrameSize, segments: bool) -> Umem {
    Umem::new(UmemOptions { frames, frame_size, zero_copy: true, segments }).expect("memory")
}

impl Receiver {
    fn new(port: &Port, queue: u32, hook: XdpHook, frames: u32, size: FrameSize) -> Self {
        let receiver = Self::on(umem(frames, size, false), port, queue, hook, 0);
        assert!(!receiver.socket.zero_copy(), "veth copies");
        receiver
    }

    /// Uses all free frames of `umem`, and a send ring of `send` entries.
    fn on(umem: Umem, port: &Port, queue: u32, hook: XdpHook, send: u32) -> Self {
        let options = XskOptions { receive: umem.options().frames, send };
        port.netns.run(|| {
            let redirect = Redirect::load(port.queues, umem.options().segments).expect("load");
            let mut socket = XskSocket::bind(&umem, port.index, queue, options).expect("bind");
            let mut frames = Vec::new();
            umem.take(umem.free(), &mut frames);
            socket.refill(&mut frames);
            redirect.insert(queue, &socket).expect("insert");
            let link = XdpLink::attach(redirect.program(), port.index, hook).expect("attach");
            drop(frames);
            Self { _link: link, _redirect: redirect, socket, umem }
        })
    }

    /// Receives until `packets` packets have arrived, then makes sure that no more follow. Returns the number seen.
    fn receive(&mut self, packets: usize, mut each: impl FnMut(&[u8])) -> usize {
        let start = Instant::now();
        let mut seen = 0;
        let (mut frames, mut spare) = (Vec::new(), Vec::new());
        let mut look = |socket: &mut XskSocket| {
            let packets = socket.receive(&self.umem, 256, &mut frames);
            frames.iter().for_each(|frame: &Frame<'_>| each(frame.bytes()));
            spare.append(&mut frames);
            socket.refill(&mut spare);
            packets
        };
        while seen < packets && start.elapsed() < PATIENCE {
            seen += look(&mut self.socket);
            self.socket.wake().expect("wake");
        }
        seen + look(&mut self.socket)
    }

    fn loss(&self) -> XskLoss {
        self.socket.loss().expect("counters")
    }

    /// Waits for `packets` drops. Frames may still be in transit when their sender returns.
    fn wait_for_dropped(&self, packets: u64) -> XskLoss {
        let start = Instant::now();
        while self.loss().dropped < packets && start.elapsed() < PATIENCE {
            std::thread::yield_now();
        }
        self.loss()
    }
}

#[root_test]
fn root_every_byte_arrives_in_order_on_both_hooks_and_queues() {
    for (hook, queue) in [(XdpHook::Native, 0), (XdpHook::Native, 1), (XdpHook::Generic, 0)] {
        for size in [60, 1514] {
            let network = Network::new(Veth::default().queues(2)).expect("network");
            let pair = network.pair();
            let mut receiver = Receiver::new(&pair.rx, queue, hook, 1 << 11, FrameSize::TwoKib);
            let traffic = Traffic::new(size).expect("size").flows(16).expect("flows").between(pair);
            let mut generator = Generator::new(pair, &traffic).expect("generator").cpu(queue);
            // The rings wrap around five times.
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

#[root_test]
fn root_what_finds_no_frame_is_counted() {
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

#[root_test]
fn root_a_packet_longer_than_a_frame_is_counted() {
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
            let seen = receiver.receive(usize::from(fits), |packet| assert_eq!(packet, frame));
            assert_eq!(seen, usize::from(fits), "{length} bytes into {size:?}");
        }
        assert_eq!(receiver.wait_for_dropped(dropped), XskLoss { dropped, ..XskLoss::default() });
    }
}

#[root_test]
fn root_a_queue_without_socket_passes_to_the_stack() {
    let network = Network::new(Veth::default().queues(2).ipv4()).expect("network");
    let pair = network.pair();
    let traffic = Traffic::new(60).expect("size").between(pair);
    let ip_packets = || StackCounters::read(&pair.rx.netns).expect("counters").get("IpInReceives");
    let send = |packets: u64, cpu: u32| {
        let sent = Generator::new(pair, &traffic).expect("generator").cpu(cpu).send(packets).expect("send");
        assert_eq!(sent.accepted, packets);
    };
    let wait_for_stack = |packets: u64| {
        let start = Instant::now();
        while ip_packets() < packets && start.elapsed() < PATIENCE {
            std::thread::yield_now();
        }
        ip_packets()
    };
    let mut receiver = Receiver::new(&pair.rx, 0, XdpHook::Native, 256, FrameSize::TwoKib);
    send(100, 1);
    assert_eq!(wait_for_stack(100), 100, "queue 1 has no socket");
    // Queue 0 has a socket, which receives every packet. Packets for the stack pass through the program at the same
    // time.
    send(100, 0);
    assert_eq!(receiver.receive(100, |_| {}), 100);
    send(1, 1);
    assert_eq!(wait_for_stack(101), 101, "and the stack gets none of them");
    drop(receiver);
    send(100, 0);
    assert_eq!(wait_for_stack(201), 201, "the program is gone");
}

#[root_test]
fn root_what_cannot_be_bound_says_why() {
    let network = Network::new(Veth::default()).expect("network");
    let port = &network.pair().rx;
    let bind = |queue| {
        let umem = umem(16, FrameSize::FourKib, false);
        let options = XskOptions { receive: 16, send: 0 };
        port.netns.run(|| XskSocket::bind(&umem, port.index, queue, options))
    };
    assert_eq!(bind(1).expect_err("there is no queue 1").errno(), rustix::io::Errno::INVAL.raw_os_error());
    let first = bind(0).expect("bind");
    let error = bind(0).expect_err("the queue is taken");
    assert_eq!(error.errno(), rustix::io::Errno::BUSY.raw_os_error());
    assert!(error.to_string().contains("queue 0 of interface"), "{error}");
    drop(first);
    let again = bind(0).expect("the queue is free again");

    let redirect = Redirect::load(1, false).expect("load");
    redirect.insert(0, &again).expect("insert");
    redirect.insert(1, &again).expect_err("there is no queue 1");
    redirect.insert(0, std::io::stdin()).expect_err("not a socket");
}

/// Returns a network of two pairs with `mtu`.
fn two_pairs(mtu: u32) -> Network {
    let mut network = Network::new(Veth::default().mtu(mtu)).expect("network");
    network.connect(Veth::default().mtu(mtu)).expect("second pair");
    network
}

#[root_test]
fn root_what_one_device_receives_another_sends_from_the_same_memory() {
    let network = two_pairs(1500);
    let [one, two] = network.pairs() else { unreachable!() };
    let umem = umem(1 << 10, FrameSize::TwoKib, false);
    let mut inward = Receiver::on(umem.clone(), &one.rx, 0, XdpHook::Native, 0);
    // It receives nothing, so it needs no frames.
    let outward = XskOptions { receive: 0, send: 256 };
    let mut outward =
        two.rx.netns.run(|| XskSocket::bind(&umem, two.rx.index, 0, outward)).expect("share the memory");
    let mut witness = Receiver::new(&two.tx, 0, XdpHook::Native, 1 << 11, FrameSize::TwoKib);

    for size in [60, 1514] {
        let traffic = Traffic::new(size).expect("size").flows(16).expect("flows").between(one);
        let mut generator = Generator::new(one, &traffic).expect("generator");
        for _ in 0..5 {
            let sent = generator.send(900).expect("send");
            let mut check = SequenceCheck::new(&traffic, sent.sequences);
            let start = Instant::now();
            let (mut seen, mut frames, mut back) = (0, Vec::new(), Vec::new());
            while seen < 900 && start.elapsed() < PATIENCE {
                inward.socket.receive(&umem, 64, &mut frames);
                outward.send(&mut frames);
                outward.kick().expect("kick");
                outward.complete(&umem, &mut back);
                inward.socket.refill(&mut back);
                seen += witness.receive(0, |frame| check.frame(frame));
            }
            let report = check.finish();
            assert!(seen == 900 && report.is_perfect(), "{size}: {seen} {report:?}");
        }
    }
    let start = Instant::now();
    let mut back = Vec::new();
    while outward.counts().sending > 0 && start.elapsed() < PATIENCE {
        outward.complete(&umem, &mut back);
    }
    assert_eq!(inward.socket.counts(), XskCounts { received: 9000, ..XskCounts::default() });
    assert_eq!(outward.counts(), XskCounts { sent: 9000, ..XskCounts::default() });
    assert_eq!((inward.loss(), outward.loss().expect("counters")), Default::default());
}

#[root_test]
fn root_packets_of_several_frames_are_received_and_sent() {
    let network = two_pairs(9000);
    let [one, two] = network.pairs() else { unreachable!() };
    let umem = umem(256, FrameSize::FourKib, true);
    let mut inward = Receiver::on(umem.clone(), &one.rx, 0, XdpHook::Native, 0);
    let options = XskOptions { receive: 64, send: 64 };
    let mut outward =
        two.rx.netns.run(|| XskSocket::bind(&umem, two.rx.index, 0, options)).expect("share the memory");
    let mut witness = Receiver::on(self::umem(256, FrameSize::FourKib, true), &two.tx, 0, XdpHook::Native, 0);
    let sender = FrameSender::new(&one.tx).expect("sender");
    let collect = |frames: &mut Vec<Frame<'_>>| -> Vec<u8> {
        frames.drain(..).flat_map(|frame| frame.bytes().to_vec()).collect()
    };
    for length in [60, 3840, 3841, 7680, 9014] {
        let packet: Vec<u8> = (0..=250).cycle().take(length).collect();
        sender.send(&packet).expect("send");
        let start = Instant::now();
        let mut frames = Vec::new();
        while inward.socket.receive(&umem, 64, &mut frames) == 0 && start.elapsed() < PATIENCE {}
        assert_eq!(frames.len(), length.div_ceil(3840), "{length}");
        assert_eq!((outward.send(&mut frames), frames.len()), (1, 0));
        assert!(outward.kick().expect("kick"));
        let mut seen = Vec::new();
        while witness.socket.receive(&witness.umem, 64, &mut seen) == 0 && start.elapsed() < PATIENCE {}
        assert!(collect(&mut seen) == packet, "{length}");
    }
}

#[root_test]
fn root_a_socket_that_polls_busily_receives() {
    let network = Network::new(Veth::default()).expect("network");
    let pair = network.pair();
    let mut receiver = Receiver::new(&pair.rx, 0, XdpHook::Native, 1 << 11, FrameSize::TwoKib);
    receiver.socket.poll_busily(Duration::from_micros(20), 64).expect("busy polling");
    let traffic = Traffic::new(60).expect("size").between(pair);
    let sent = Generator::new(pair, &traffic).expect("generator").send(1500).expect("send");
    let mut check = SequenceCheck::new(&traffic, sent.sequences);
    assert_eq!(receiver.receive(1500, |frame| check.frame(frame)), 1500);
    assert!(check.finish().is_perfect());
}
