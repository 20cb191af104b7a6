//! Handlers in threads of their own: woken when packets come, relieved when they are held up, and each packet once.

use std::ops::ControlFlow;
use std::sync::Mutex;
use std::sync::mpsc;
use std::time::{Duration, Instant};

use weir::{Error, HandlerState, Mode, Order, Plan, SourceChoice};
use weir_lab::{FrameSender, Generator, Network, SequenceCheck, Traffic, Veth, require_root};

use crate::{assert_closed, on_rx};

#[test]
fn root_a_buddy_takes_the_chunks_of_a_handler_that_is_held_up() {
    if !require_root("root_a_buddy_takes_the_chunks_of_a_handler_that_is_held_up") {
        return;
    }
    // What the pool of one queue has room for, so that none is lost however busy the machine is.
    const COUNT: u64 = 40_000;
    let network = Network::new(Veth::default().queues(2)).unwrap();
    let traffic = Traffic::new(60).unwrap().flows(16).unwrap().between(network.pair());
    let mut generator = Generator::new(network.pair(), &traffic).unwrap().cpu(0);
    network.rx().run(|| {
        let builder = on_rx(&network).source(SourceChoice::Xdp).mode(Mode::Exclusive);
        let mut capture = builder.chunks(64).chunk_size(64 << 10).open().unwrap();
        let handlers = capture.handlers(&Plan::new(2).advanced(50)).unwrap();
        assert!(matches!(capture.handlers(&Plan::new(2)), Err(Error::Options(_))), "only once");
        let check = Mutex::new(SequenceCheck::new(&traffic, 0..COUNT));
        std::thread::scope(|scope| {
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
                    capture.next(Duration::from_millis(10)).unwrap().is_none(),
                    "handlers have the queues"
                );
                let queue = capture.account().unwrap().interfaces[0].queues[0];
                // Half of what can wait, but for what is not closed.
                if queue.offloaded > 5 && queue.pool.ready <= 31 {
                    break;
                }
                assert!(began.elapsed() < Duration::from_secs(20), "{queue:?}");
            }
            let stuck = capture.account().unwrap().handlers[0];
            assert!(stuck.in_hand_seconds.is_some() && stuck.chunks == 1, "{stuck:?}");
            drop(release);
            capture.stop().unwrap();
        });
        let report = check.into_inner().unwrap().finish();
        let total = report.total;
        assert_eq!((total.received, total.lost, total.duplicated, report.corrupt), (COUNT, 0, 0, 0));
        let account = capture.account().unwrap();
        assert_closed(&account);
        let (queue, handlers) = (account.interfaces[0].queues[0], &account.handlers);
        assert_eq!(queue.tally.delivered, COUNT);
        assert!(queue.most_ready > 31, "{queue:?}");
        assert!(queue.mean_ready > 0.0 && queue.mean_ready < f64::from(queue.most_ready), "{queue:?}");
        assert_eq!(handlers[1].taken_over, queue.offloaded);
        assert_eq!(handlers[0].packets + handlers[1].packets, COUNT);
        assert!(handlers.iter().all(|handler| handler.state == HandlerState::Ended), "{handlers:?}");
    });
}

#[test]
fn root_a_lone_packet_wakes_the_handler_of_its_queue() {
    if !require_root("root_a_lone_packet_wakes_the_handler_of_its_queue") {
        return;
    }
    let network = Network::new(Veth::default().queues(2)).unwrap();
    let frame = Traffic::new(60).unwrap().between(network.pair()).frame(0);
    for source in [SourceChoice::Xdp, SourceChoice::Tc, SourceChoice::AfPacket] {
        network.rx().run(|| {
            let mut capture = on_rx(&network).source(source).open().unwrap();
            let sender = FrameSender::new(&network.pair().tx).unwrap();
            let (tell, arrived) = mpsc::channel();
            let threads: Vec<_> = capture
                .handlers(&Plan::new(1))
                .unwrap()
                .into_iter()
                .map(|handler| {
                    let tell = tell.clone();
                    std::thread::spawn(move || {
                        handler.run(|chunk| {
                            tell.send(chunk.len()).unwrap();
                            ControlFlow::Continue(())
                        })
                    })
                })
                .collect();
            let mut waits: Vec<Duration> = (0..20)
                .map(|_| {
                    std::thread::sleep(Duration::from_millis(30)); // let it fall asleep
                    let sent = Instant::now();
                    sender.send(&frame).unwrap();
                    assert_eq!(arrived.recv_timeout(Duration::from_secs(5)), Ok(1));
                    sent.elapsed()
                })
                .collect();
            waits.sort_unstable();
            // It must be the bell that wakes, not the end of a wait.
            assert!(waits[10] < Duration::from_millis(20), "{source:?}: {waits:?}");
            capture.stop().unwrap();
            threads.into_iter().for_each(|thread| thread.join().unwrap().unwrap());
            assert_closed(&capture.account().unwrap());
        });
    }
}

#[test]
fn root_handlers_that_leave_are_missed() {
    if !require_root("root_handlers_that_leave_are_missed") {
        return;
    }
    const COUNT: u64 = 1000;
    let network = Network::new(Veth::default()).unwrap();
    let traffic = Traffic::new(60).unwrap().between(network.pair());
    let mut generator = Generator::new(network.pair(), &traffic).unwrap().cpu(1);
    network.rx().run(|| {
        let mut capture = on_rx(&network).source(SourceChoice::Xdp).mode(Mode::Exclusive).open().unwrap();
        let refused = capture.handlers(&Plan::new(2)).unwrap_err().to_string();
        assert!(refused.contains("nothing to do"), "{refused}");
        drop(capture.handlers(&Plan::new(1)).unwrap());
        assert_eq!(generator.send(COUNT).unwrap().accepted, COUNT);
        assert!(matches!(capture.next(Duration::ZERO), Err(Error::NoHandlers)));
        // What nobody has taken is not lost.
        let mut taken = 0;
        crate::drain(&mut capture, |chunk| taken += chunk.len() as u64);
        assert_eq!(taken, COUNT);
        let account = capture.account().unwrap();
        assert_closed(&account);
        assert_eq!(account.handlers[0].state, HandlerState::Left);
    });
}

#[test]
fn root_flows_keep_their_order_while_their_queue_is_helped() {
    if !require_root("root_flows_keep_their_order_while_their_queue_is_helped") {
        return;
    }
    const COUNT: u64 = 40_000;
    let network = Network::new(Veth::default().queues(2)).unwrap();
    let traffic = Traffic::new(60).unwrap().flows(64).unwrap().scattered().between(network.pair());
    let mut generator = Generator::new(network.pair(), &traffic).unwrap().cpu(0);
    network.rx().run(|| {
        let builder = on_rx(&network).source(SourceChoice::Xdp).mode(Mode::Exclusive);
        let mut capture = builder.chunks(64).chunk_size(64 << 10).open().unwrap();
        let plan = Plan::new(2).advanced(30).order(Order::Flow);
        // Sees packets in the order in which handlers do them: within a flow that is the order of all.
        let check = Mutex::new(SequenceCheck::new(&traffic, 0..COUNT));
        std::thread::scope(|scope| {
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
        let account = capture.account().unwrap();
        assert_closed(&account);
        assert!(account.interfaces[0].queues[0].offloaded > 0, "{account:?}");
        assert!(account.handlers.iter().all(|handler| handler.packets > 0), "{account:?}");
    });
}

/// Bursts on one queue or another, handlers that are stopped for a while, one that leaves, one that is killed, all at random: each
/// flow's packets are handled once and in order.
#[test]
fn root_whatever_happens_to_handlers_flows_keep_their_order() {
    if !require_root("root_whatever_happens_to_handlers_flows_keep_their_order") {
        return;
    }
    // What the pool of a queue has room for, so that none is lost however busy the machine is.
    const COUNT: u64 = 30_000;
    const PORTS: [u16; 2] = [9, 10];
    for seed in 0..4 {
        let network = Network::new(Veth::default().queues(2)).unwrap();
        // A flow comes on one queue, which its destination tells.
        let traffics = PORTS.map(|port| {
            let traffic = Traffic::new(60).unwrap().to([198, 19, 0, 1].into(), port);
            traffic.flows(64).unwrap().scattered().between(network.pair())
        });
        let mut generators =
            [0, 1].map(|queue| Generator::new(network.pair(), &traffics[queue as usize]).unwrap().cpu(queue));
        network.rx().run(|| {
            let builder = on_rx(&network).source(SourceChoice::Xdp).mode(Mode::Exclusive);
            let mut capture = builder.chunks(64).chunk_size(64 << 10).open().unwrap();
            let plan = Plan::new(3).advanced(10).order(Order::Flow);
            let mut sent = [0, 0];
            let checks = [0, 1].map(|queue| Mutex::new(SequenceCheck::new(&traffics[queue], 0..COUNT)));
            std::thread::scope(|scope| {
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
            let account = capture.account().unwrap();
            assert_closed(&account);
            let state = |number: usize| account.handlers[number].state;
            let gone = if seed % 2 == 1 { HandlerState::Left } else { HandlerState::Panicked };
            assert_eq!((state(0), state(1)), (HandlerState::Ended, gone), "{account:?}");
        });
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
