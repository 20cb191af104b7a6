//! Handlers in their own threads: woken by packets, helped when held up, and each packet is handled once.

use std::ops::ControlFlow;
use std::sync::Mutex;
use std::sync::mpsc;
use std::time::{Duration, Instant};

use rustix::thread::gettid;
use rustix::time::{ClockId, clock_gettime};
use weir::{Error, HandlerState, Mode, Next, Order, Plan, Setting, SourceChoice};
use weir_lab::{FrameSender, Generator, Network, SequenceCheck, Traffic, Veth, require_root, root_test};

use crate::common::{self, PATIENCE, StoppedAtEnd, drain, wait_until_asleep};
use crate::{assert_closed, on_rx};

#[root_test]
fn root_a_buddy_takes_the_chunks_of_a_handler_that_is_held_up() {
    // What the pool of one queue has room for, so that none is lost however busy the machine is.
    const COUNT: u64 = 40_000;
    let network = Network::new(Veth::default().queues(2)).unwrap();
    let traffic = Traffic::new(60).unwrap().flows(16).unwrap().between(network.pair());
    let mut generator = Generator::new(network.pair(), &traffic).unwrap().cpu(0);
    network.rx().run(|| {
        let builder = common::with_pool(66, 64 << 10).interface(&network.pair().rx.name);
        let mut capture = builder.source(SourceChoice::Xdp).mode(Mode::Exclusive).open().unwrap();
        let handlers = capture.handlers(&Plan::new(2).advanced(50)).unwrap();
        assert!(
            matches!(capture.handlers(&Plan::new(2)), Err(Error::Setting { setting: Setting::Handlers, .. })),
            "only once"
        );
        let check = Mutex::new(SequenceCheck::new(&traffic, 0..COUNT));
        std::thread::scope(|scope| {
            let mut capture = StoppedAtEnd(&mut capture);
            let (release, held) = mpsc::channel::<()>();
            let mut held = Some(held);
            for handler in handlers {
                let (check, held) = (&check, if handler.number() == 0 { held.take() } else { None });
                scope.spawn(move || {
                    handler.run(|chunk| {
                        let _hung_up = held.as_ref().map(mpsc::Receiver::recv);
                        let mut check = check.lock().unwrap();
                        chunk.packets().for_each(|packet| check.frame(packet.data));
                        ControlFlow::Continue(())
                    })
                });
            }
            assert_eq!(generator.send(COUNT).unwrap().accepted, COUNT);
            let began = Instant::now();
            loop {
                assert!(
                    capture.next(Duration::from_millis(10)).unwrap().taken().is_none(),
                    "handlers have the queues"
                );
                let queue = capture.stats().unwrap().interfaces[0].queues[0];
                // Half of what can wait, but for what is not closed.
                if queue.offloaded > 5 && queue.pool.ready <= 32 {
                    break;
                }
                assert!(began.elapsed() < PATIENCE, "{queue:?}");
            }
            let stuck = capture.stats().unwrap().handlers[0];
            assert!(stuck.in_hand.is_some() && stuck.chunks == 1, "{stuck:?}");
            capture.stop().unwrap();
            for wait in [0, 10] {
                let next = capture.next(Duration::from_millis(wait)).unwrap();
                assert!(matches!(next, Next::NotYet), "a handler still has a chunk: {next:?}");
            }
            assert!(matches!(capture.try_next().unwrap(), Next::NotYet));
            // Whoever waits longer than interfaces stay unchecked sleeps all the same.
            let used = || Duration::try_from(clock_gettime(ClockId::ThreadCPUTime)).unwrap();
            let (wait, before) = (Duration::from_millis(1500), used());
            assert!(matches!(capture.next(wait).unwrap(), Next::NotYet));
            assert!(used() - before < wait / 5, "{:?} of work in {wait:?}", used() - before);
            drop(release);
            capture.run(|_| panic!("handlers have taken everything")).unwrap();
            assert!(matches!(capture.next(Duration::ZERO).unwrap(), Next::Over), "handlers have finished");
        });
        let report = check.into_inner().unwrap().finish();
        let total = report.total;
        assert_eq!((total.received, total.lost, total.duplicated, report.corrupt), (COUNT, 0, 0, 0));
        let account = capture.stats().unwrap();
        assert_closed(&account);
        let (queue, handlers) = (account.interfaces[0].queues[0], &account.handlers);
        assert_eq!(queue.counters.delivered, COUNT);
        assert!(queue.most_ready > 32, "{queue:?}");
        assert!(queue.mean_ready > 0.0 && queue.mean_ready < f64::from(queue.most_ready), "{queue:?}");
        assert_eq!(handlers[1].taken_over, queue.offloaded);
        assert_eq!(handlers[0].packets + handlers[1].packets, COUNT);
        assert!(handlers.iter().all(|handler| handler.state == HandlerState::Ended), "{handlers:?}");
    });
}

each_way!(a_lone_packet_wakes_the_handler_of_its_queue:
    root_xdp(Xdp, Pass),
    root_tc(Tc, Pass),
    root_af_packet(AfPacket, Pass),
);

fn a_lone_packet_wakes_the_handler_of_its_queue(source: SourceChoice, mode: Mode) {
    /// No handler sleeps for longer than that.
    const LONGEST_SLEEP: Duration = Duration::from_millis(100);
    let network = Network::new(Veth::default().queues(2)).unwrap();
    let frame = Traffic::new(60).unwrap().between(network.pair()).frame(0);
    network.rx().run(|| {
        let mut capture = on_rx(&network).source(source).mode(mode).open().unwrap();
        let sender = FrameSender::new(&network.pair().tx).unwrap();
        let (tell, arrived) = mpsc::channel();
        let (tell_thread, thread) = mpsc::channel();
        let handler = capture.handlers(&Plan::new(1)).unwrap().remove(0);
        let handling = std::thread::spawn(move || {
            tell_thread.send(gettid()).unwrap();
            handler.run(|chunk| {
                tell.send((chunk.len(), Instant::now())).unwrap();
                ControlFlow::Continue(())
            })
        });
        let thread = thread.recv().unwrap();
        // It must be the notifier that wakes, not the end of a sleep: it comes before that can be. A busy machine may take longer.
        let mut waits = Vec::new();
        while waits.iter().filter(|&&wait| wait < LONGEST_SLEEP).count() < 3 {
            assert!(waits.len() < 50, "{source:?}: {waits:?}");
            let asleep = wait_until_asleep(thread);
            sender.send(&frame).unwrap();
            let (packets, at) = arrived.recv_timeout(PATIENCE).unwrap();
            assert_eq!(packets, 1);
            waits.push(at - asleep);
        }
        capture.stop().unwrap();
        handling.join().unwrap().unwrap();
        assert_closed(&capture.stats().unwrap());
    });
}

#[root_test]
fn root_handlers_that_leave_are_missed() {
    const COUNT: u64 = 1000;
    let network = Network::new(Veth::default()).unwrap();
    let traffic = Traffic::new(60).unwrap().between(network.pair());
    let mut generator = Generator::new(network.pair(), &traffic).unwrap().cpu(1);
    network.rx().run(|| {
        let mut capture = on_rx(&network).source(SourceChoice::Xdp).mode(Mode::Exclusive).open().unwrap();
        let refused = capture.handlers(&Plan::new(2)).unwrap_err().to_string();
        assert!(refused.contains("some would be idle"), "{refused}");
        drop(capture.handlers(&Plan::new(1)).unwrap());
        assert_eq!(generator.send(COUNT).unwrap().accepted, COUNT);
        assert!(matches!(capture.next(Duration::ZERO), Err(Error::NoHandlers)));
        // What nobody has taken is not lost.
        let mut taken = 0;
        drain(&mut capture, |chunk| taken += chunk.len() as u64);
        assert_eq!(taken, COUNT);
        let account = capture.stats().unwrap();
        assert_closed(&account);
        assert_eq!(account.handlers[0].state, HandlerState::Left);
    });
}

#[root_test]
fn root_flows_keep_their_order_while_their_queue_is_helped() {
    const COUNT: u64 = 40_000;
    let network = Network::new(Veth::default().queues(2)).unwrap();
    let traffic = Traffic::new(60).unwrap().flows(64).unwrap().scattered().between(network.pair());
    let mut generator = Generator::new(network.pair(), &traffic).unwrap().cpu(0);
    network.rx().run(|| {
        let builder = common::with_pool(66, 64 << 10).interface(&network.pair().rx.name);
        let mut capture = builder.source(SourceChoice::Xdp).mode(Mode::Exclusive).open().unwrap();
        let plan = Plan::new(2).advanced(30).order(Order::Flow);
        // Sees packets in the order in which handlers do them: within a flow that is the order of all.
        let check = Mutex::new(SequenceCheck::new(&traffic, 0..COUNT));
        std::thread::scope(|scope| {
            let mut capture = StoppedAtEnd(&mut capture);
            for handler in capture.handlers(&plan).unwrap() {
                let check = &check;
                scope.spawn(move || {
                    handler.run(|share| {
                        std::thread::sleep(Duration::from_millis(3));
                        for packet in share.packets() {
                            check.lock().unwrap().frame(packet.data);
                        }
                        ControlFlow::Continue(())
                    })
                });
            }
            assert_eq!(generator.send(COUNT).unwrap().accepted, COUNT);
            capture.stop().unwrap();
        });
        let report = check.into_inner().unwrap().finish();
        assert!(report.is_perfect(), "{report:?}");
        let account = capture.stats().unwrap();
        assert_closed(&account);
        assert!(account.interfaces[0].queues[0].offloaded > 0, "{account:?}");
        assert!(account.handlers.iter().all(|handler| handler.packets > 0), "{account:?}");
    });
}

/// Bursts on one queue or another, handlers that are stopped for a while, one that leaves, one that is killed, all at random: each
/// flow's packets are handled once and in order.
fn whatever_happens_to_handlers_flows_keep_their_order(test: &str, seed: u64) {
    if !require_root(test) {
        return;
    }
    // What the pool of a queue has room for, so that none is lost however busy the machine is.
    const COUNT: u64 = 30_000;
    const PORTS: [u16; 2] = [9, 10];
    let network = Network::new(Veth::default().queues(2)).unwrap();
    // A flow comes on one queue, which its destination tells.
    let traffics = PORTS.map(|port| {
        let traffic = Traffic::new(60).unwrap().to([198, 19, 0, 1].into(), port);
        traffic.flows(64).unwrap().scattered().between(network.pair())
    });
    let mut generators =
        [0, 1].map(|queue| Generator::new(network.pair(), &traffics[queue as usize]).unwrap().cpu(queue));
    network.rx().run(|| {
        let builder = common::with_pool(66, 64 << 10).interface(&network.pair().rx.name);
        let mut capture = builder.source(SourceChoice::Xdp).mode(Mode::Exclusive).open().unwrap();
        let plan = Plan::new(3).advanced(10).order(Order::Flow);
        let mut sent = [0, 0];
        let checks = [0, 1].map(|queue| Mutex::new(SequenceCheck::new(&traffics[queue], 0..COUNT)));
        std::thread::scope(|scope| {
            let mut capture = StoppedAtEnd(&mut capture);
            let mut threads = Vec::new();
            for (number, handler) in (0..).zip(capture.handlers(&plan).unwrap()) {
                let (checks, mut chance) = (&checks, Chance(seed * 3 + number));
                threads.push(scope.spawn(move || {
                    // The first stays to the end. The second has a queue of its own, so its end comes; the third helps.
                    let mut left = if number == 0 { u64::MAX } else { 1 + chance.below(6) };
                    handler.run(|share| {
                        std::thread::sleep(Duration::from_micros(chance.below(3000)));
                        for packet in share.packets() {
                            let port = u16::from_be_bytes([packet.data[36], packet.data[37]]);
                            let queue = usize::from(port - PORTS[0]);
                            checks[queue].lock().unwrap().frame(packet.data);
                        }
                        left -= 1;
                        match (left, (seed + number) % 2) {
                            (0, 0) => ControlFlow::Break(()),
                            (0, _) => std::panic::resume_unwind(Box::new("killed")),
                            _ => ControlFlow::Continue(()),
                        }
                    })
                }));
            }
            let mut chance = Chance(seed);
            while sent != [COUNT, COUNT] {
                let queue = usize::from(chance.below(2) == 1);
                let burst = (1 + chance.below(4000)).min(COUNT - sent[queue]);
                assert_eq!(generators[queue].send(burst).unwrap().accepted, burst);
                sent[queue] += burst;
                std::thread::sleep(Duration::from_micros(chance.below(5000)));
            }
            capture.stop().unwrap();
            for thread in threads {
                let _killed = thread.join();
            }
        });
        for check in checks {
            let report = check.into_inner().unwrap().finish();
            assert!(report.is_perfect(), "seed {seed}: {:?}", report.total);
        }
        let account = capture.stats().unwrap();
        assert_closed(&account);
        let state = |number: usize| account.handlers[number].state;
        let gone = if seed % 2 == 1 { HandlerState::Left } else { HandlerState::Panicked };
        assert_eq!((state(0), state(1)), (HandlerState::Ended, gone), "seed {seed}: {account:?}");
    });
}

#[test]
fn root_handlers_that_are_killed_leave_flows_in_their_order() {
    for seed in [0, 2] {
        whatever_happens_to_handlers_flows_keep_their_order(
            "root_handlers_that_are_killed_leave_flows_in_their_order",
            seed,
        );
    }
}

#[test]
fn root_handlers_that_go_leave_flows_in_their_order() {
    for seed in [1, 3] {
        whatever_happens_to_handlers_flows_keep_their_order(
            "root_handlers_that_go_leave_flows_in_their_order",
            seed,
        );
    }
}

/// The same numbers each time (Knuth's MMIX generator).
struct Chance(u64);

impl Chance {
    fn below(&mut self, limit: u64) -> u64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % limit
    }
}
