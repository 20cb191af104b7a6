//! Packets of several queues and interfaces in order of time.

use std::process::Command;
use std::time::{Duration, Instant};

use weir::{Builder, Capture, Change, Chunk, Error, Mode, Plan, SourceChoice, Timestamps, Window};
use weir_lab::{FrameSender, Generator, Network, SequenceCheck, Traffic, Veth, root_test};

use crate::common::{self, PATIENCE, drain, wait_for};
use crate::{assert_closed, on_rx, on_rx_with_room};

/// Longer than any of these machines keeps a packet from us.
const WINDOW: Duration = Duration::from_millis(500);

/// Two pairs of two queues each.
fn network() -> Network {
    let mut network = Network::new(Veth::default().queues(2)).unwrap();
    network.connect(Veth::default().queues(2)).unwrap();
    network
}

/// The next packets, which come.
fn next(capture: &mut Capture) -> Chunk {
    let start = Instant::now();
    loop {
        if let Some(chunk) = capture.next(Duration::from_millis(100)).unwrap().taken() {
            return chunk;
        }
        assert!(start.elapsed() < PATIENCE, "{:?}", capture.stats());
    }
}

each_way!(packets_of_all_queues_and_interfaces_come_in_the_order_of_time);

fn packets_of_all_queues_and_interfaces_come_in_the_order_of_time(source: SourceChoice, mode: Mode) {
    // Two threads send at the same time, each of them by turns to both interfaces, on a queue of its own.
    const TURNS: u64 = 20;
    const TURN: u64 = 150;
    const COUNT: u64 = TURNS * TURN;
    let network = network();
    let pairs = network.pairs();
    let traffic: Vec<Traffic> = pairs.iter().map(|pair| Traffic::new(60).unwrap().between(pair)).collect();
    let mut generators = [0, 1].map(|cpu| {
        let first = u64::from(cpu) * COUNT;
        let generators = pairs.iter().zip(&traffic);
        let generators = generators
            .map(|(pair, traffic)| Generator::numbered_from(first, pair, traffic).unwrap().cpu(cpu));
        generators.collect::<Vec<_>>()
    });
    network.rx().run(|| {
        let builder = common::capture().source(source).mode(mode).by_time(Window::Of(WINDOW));
        let mut capture =
            pairs.iter().fold(builder, |builder, pair| builder.interface(&pair.rx.name)).open().unwrap();
        let mut checks: Vec<_> =
            traffic.iter().map(|traffic| SequenceCheck::new(traffic, 0..2 * COUNT)).collect();
        let (mut packets, mut chunks, mut last) = (0, 0, 0);
        std::thread::scope(|scope| {
            for generators in &mut generators {
                scope.spawn(|| {
                    for _ in 0..TURNS {
                        for generator in generators.iter_mut() {
                            assert_eq!(generator.send(TURN).unwrap().accepted, TURN);
                        }
                    }
                });
            }
            while packets < 4 * COUNT {
                let chunk = next(&mut capture);
                chunks += 1;
                for packet in &chunk {
                    assert!(packet.timestamp >= last, "{source:?}: {} after {last}", packet.timestamp);
                    (packets, last) = (packets + 1, packet.timestamp);
                    checks[packet.interface as usize].frame(packet.data);
                }
            }
        });
        assert!(chunks >= 2 * TURNS, "{source:?}: queues take turns, in {chunks} chunks");
        for check in checks {
            let report = check.finish();
            let total = report.total;
            assert_eq!((total.received, total.lost, report.corrupt), (2 * COUNT, 0, 0), "{source:?}");
        }
        drain(&mut capture, |_| panic!("everything was taken"));
        let account = capture.stats().unwrap();
        assert_closed(&account);
        let order = account.time_order.unwrap();
        assert_eq!((order.late, order.early), (0, 0), "{source:?}: {account:?}");
    });
}

/// Whether the kernel's programs write the packets: then a lull is recognized.
fn knows_lulls(source: SourceChoice) -> bool {
    matches!(source, SourceChoice::Xdp | SourceChoice::Tc | SourceChoice::XdpTc)
}

each_way!(a_quiet_interface_delays_a_busy_one_by_the_window_at_most);

fn a_quiet_interface_delays_a_busy_one_by_the_window_at_most(source: SourceChoice, mode: Mode) {
    if knows_lulls(source) {
        return a_lone_packet_does_not_wait(source, mode);
    }
    let network = network();
    let frame = Traffic::new(60).unwrap().between(network.pair()).frame(0);
    network.rx().run(|| {
        let builder = on_rx(&network).interface(&network.pairs()[1].rx.name).source(source).mode(mode);
        let mut capture = builder.by_time(Window::Of(WINDOW)).open().unwrap();
        let sent = Instant::now();
        FrameSender::new(&network.pair().tx).unwrap().send(&frame).unwrap();
        wait_for(&mut capture, |account| account.total().captured > 0);
        if capture.next(Duration::from_millis(20)).unwrap().taken().is_none() {
            let total = capture.stats().unwrap().total();
            assert_eq!((total.captured, total.delivered), (1, 0), "{source:?}: it is held back");
            assert_eq!(next(&mut capture).len(), 1);
        }
        assert!(sent.elapsed() >= WINDOW, "{source:?}: it has to wait");
        assert_eq!(capture.stats().unwrap().total().delivered, 1);
    });
}

/// The window is longer than anybody waits for it.
fn a_lone_packet_does_not_wait(source: SourceChoice, mode: Mode) {
    const FRAMES: u64 = 20;
    let network = network();
    let traffic = Traffic::new(60).unwrap().between(network.pair());
    network.rx().run(|| {
        let builder = on_rx(&network).interface(&network.pairs()[1].rx.name).source(source).mode(mode);
        let mut capture = builder.by_time(Window::Of(Duration::from_secs(60))).open().unwrap();
        let sender = FrameSender::new(&network.pair().tx).unwrap();
        for number in 0..FRAMES {
            sender.send(&traffic.frame(number)).unwrap();
            assert_eq!(next(&mut capture).len(), 1, "{source:?}");
        }
        let account = capture.stats().unwrap();
        let order = account.time_order.unwrap();
        assert_eq!((order.late, order.early), (0, 0), "{source:?}: {account:?}");
        assert_eq!(account.total().delivered, FRAMES);
    });
}

each_way!(a_pool_that_fills_does_not_wait);

fn a_pool_that_fills_does_not_wait(source: SourceChoice, mode: Mode) {
    const COUNT: u64 = 2000;
    let network = network();
    let traffic = Traffic::new(60).unwrap().between(network.pair());
    network.rx().run(|| {
        // Room for some 350 packets, which would all wait for a minute.
        let builder = common::with_pool(8, 4096).interface(&network.pair().rx.name);
        let builder = builder.interface(&network.pairs()[1].rx.name).source(source).mode(mode);
        // Packets that share a time wait even in a lull.
        let builder = builder.timestamps(Timestamps::Batch);
        let mut capture = builder.by_time(Window::Of(Duration::from_secs(60))).open().unwrap();
        let sender = FrameSender::new(&network.pair().tx).unwrap();
        let (mut packets, mut late, mut newest) = (0, 0, 0);
        let mut take = |chunk: Chunk| {
            for packet in &chunk {
                late += u64::from(packet.timestamp < newest);
                newest = newest.max(packet.timestamp);
                packets += 1;
            }
            packets
        };
        for frames in (0..COUNT).step_by(50) {
            sender.send_frames(&traffic.frames(frames..frames + 50)).unwrap();
            while let Some(chunk) = capture.next(Duration::from_millis(5)).unwrap().taken() {
                take(chunk);
            }
        }
        // A packet socket takes the rest into its own ring, and af_xdp into frames, until there is room.
        let start = Instant::now();
        let before = loop {
            capture.next(Duration::from_millis(20)).unwrap().taken().map(&mut take);
            let total = capture.stats().unwrap().total();
            if total.captured + total.lost == COUNT && total.delivered + 350 >= total.captured {
                break total;
            }
            assert!(start.elapsed() < PATIENCE, "{source:?}: {total:?}");
        };
        drain(&mut capture, |chunk| _ = take(chunk));
        let account = capture.stats().unwrap();
        assert_closed(&account);
        let (order, total) = (account.time_order.unwrap(), account.total());
        assert_eq!(packets, total.captured, "{source:?}: {total:?}");
        assert_eq!(order.late, late, "{source:?}: {account:?}");
        assert_eq!(order.early, before.delivered, "{source:?}: what did not wait: {account:?}");
    });
}

each_way!(an_interface_that_vanishes_leaves_its_packets_in_their_order:
    root_xdp(Xdp, Pass),
    root_tc(Tc, Pass),
    root_af_packet(AfPacket, Pass),
);

fn an_interface_that_vanishes_leaves_its_packets_in_their_order(source: SourceChoice, mode: Mode) {
    const FRAMES: u64 = 200;
    let network = network();
    let traffic = network.pairs().iter().map(|pair| Traffic::new(60).unwrap().between(pair));
    let traffic: Vec<Traffic> = traffic.collect();
    let senders = network.pairs().iter().map(|pair| FrameSender::new(&pair.tx).unwrap());
    let senders: Vec<FrameSender> = senders.collect();
    network.rx().run(|| {
        let builder = on_rx(&network).interface(&network.pairs()[1].rx.name).source(source).mode(mode);
        let mut capture = builder.by_time(Window::Of(Duration::from_secs(60))).open().unwrap();
        let vanish = |name: &str| {
            let status = Command::new("ip").args(["link", "delete", name]).status().unwrap();
            assert!(status.success());
        };
        for number in 0..FRAMES {
            senders[0].send(&traffic[0].frame(number)).unwrap();
            senders[1].send(&traffic[1].frame(number)).unwrap();
        }
        wait_for(&mut capture, |account| account.total().captured == 2 * FRAMES);
        vanish(&network.pair().rx.name);
        let start = Instant::now();
        while !capture.events().iter().any(|event| event.change == Change::Gone) {
            assert!(capture.next(Duration::from_millis(50)).unwrap().taken().is_none(), "{source:?}");
            assert!(start.elapsed() < PATIENCE, "{source:?}");
        }
        senders[1].send_frames(&traffic[1].frames(FRAMES..2 * FRAMES)).unwrap();
        wait_for(&mut capture, |account| account.total().captured == 3 * FRAMES);
        vanish(&network.pairs()[1].rx.name);
        let (mut packets, mut last) = ([0; 2], 0);
        let start = Instant::now();
        let error = loop {
            match capture.next(Duration::from_millis(50)) {
                Ok(next) => next.taken().iter().flatten().for_each(|packet| {
                    assert!(packet.timestamp >= last, "{source:?}");
                    last = packet.timestamp;
                    packets[packet.interface as usize] += 1;
                }),
                Err(error) => break error,
            }
            assert!(start.elapsed() < PATIENCE, "{source:?}");
        };
        assert!(matches!(error, Error::InterfaceGone { .. }), "{error:?}");
        assert_eq!(packets, [FRAMES, 2 * FRAMES], "{source:?}");
        drain(&mut capture, |_| panic!("everything was taken"));
        assert_closed(&capture.stats().unwrap());
    });
}

#[root_test]
fn root_an_order_of_time_that_cannot_be_is_refused() {
    let network = network();
    network.rx().run(|| {
        let by_time = |window| on_rx(&network).by_time(window);
        let none = by_time(Window::Usual).timestamps(Timestamps::None).open().unwrap_err().to_string();
        assert!(none.contains("timestamps"), "{none}");
        let long = by_time(Window::Of(Duration::from_secs(61))).open().unwrap_err().to_string();
        assert!(long.contains("at most 60 s"), "{long}");
        let mut capture = by_time(Window::Usual).open().unwrap();
        let two = capture.handlers(&Plan::new(2)).unwrap_err().to_string();
        assert!(two.contains("takes one thread"), "{two}");
    });
}

#[root_test]
fn root_a_single_queue_holds_nothing_back() {
    let network = Network::new(Veth::default()).expect("a network");
    network.rx().run(|| {
        let window = |builder: Builder| {
            let capture = builder.by_time(Window::Usual).open().unwrap();
            capture.stats().unwrap().time_order.unwrap().window.as_secs_f64()
        };
        assert_eq!(window(on_rx(&network).source(SourceChoice::Xdp)), 0.0);
        assert_eq!(window(on_rx(&network).source(SourceChoice::AfPacket)), 0.03);
        let both = on_rx(&network).source(SourceChoice::XdpTc);
        assert_eq!(window(both), 0.002);
    });
}

#[root_test]
fn root_packets_that_keep_coming_are_awaited_in_naps() {
    // All of them fit, however long the reader waits for a processor.
    const COUNT: u64 = 200_000;
    const NAP: Duration = Duration::from_micros(250);
    for queues in [1, 2] {
        let network = Network::new(Veth::default().queues(queues)).expect("a network");
        let traffic = Traffic::new(60).expect("a size");
        let mut generator = Generator::new(network.pair(), &traffic).expect("a generator");
        network.rx().run(|| {
            let builder = on_rx_with_room(&network, COUNT, 60).source(SourceChoice::Xdp);
            let mut capture = builder.by_time(Window::Usual).open().expect("it opens");
            let start = Instant::now();
            let (mut chunks, mut packets) = (0, 0);
            std::thread::scope(|scope| {
                scope.spawn(|| generator.send(COUNT).expect("it sends"));
                while packets < COUNT {
                    packets += next(&mut capture).len() as u64;
                    chunks += 1;
                }
            });
            // A nap may end in several chunks of the pool.
            let naps = u32::try_from(start.elapsed().as_micros() / NAP.as_micros()).expect("seconds");
            assert!(chunks < 2 * naps + 100, "{chunks} chunks in {naps} naps");
        });
    }
}
