//! The `tc` source: what is special about it.

use std::collections::BTreeMap;

use weir::{Direction, SourceChoice};
use weir_lab::{FrameSender, Generator, Network, SequenceCheck, Traffic, Veth, require_root};

use crate::{assert_closed, drain, on_rx, take_all};

#[test]
fn root_both_directions_come_in_one_capture_and_each_record_says_which() {
    if !require_root("root_both_directions_come_in_one_capture_and_each_record_says_which") {
        return;
    }
    const COUNT: u64 = 20_000;
    let network = Network::new(Veth::default()).unwrap();
    let pair = network.pair();
    let arriving = Traffic::new(60).unwrap().between(pair);
    let sent = Traffic::new(130).unwrap().between(&reversed(pair));
    let ways = [Direction::Both, Direction::In, Direction::Out].map(|way| (SourceChoice::Tc, way));
    for (source, wanted) in ways.into_iter().chain([(SourceChoice::XdpTc, Direction::Both)]) {
        let mut generator = Generator::new(pair, &arriving).unwrap().cpu(1);
        network.rx().run(|| {
            let mut capture = on_rx(&network).source(source).direction(wanted).open().unwrap();
            let mut checks = [SequenceCheck::new(&arriving, 0..COUNT), SequenceCheck::new(&sent, 0..COUNT)];
            std::thread::scope(|scope| {
                let there = scope.spawn(|| assert_eq!(generator.send(COUNT).unwrap().accepted, COUNT));
                let back = scope.spawn(|| {
                    let sender = FrameSender::new(&pair.rx).unwrap();
                    (0..COUNT).for_each(|number| sender.send(&sent.frame(number)).unwrap());
                });
                let mut look = |chunk: &weir::Chunk| {
                    for packet in chunk {
                        let side = match packet.direction {
                            Some(Direction::In) => 0,
                            Some(Direction::Out) => 1,
                            other => panic!("{source:?} {wanted:?}: {other:?}"),
                        };
                        checks[side].frame(packet.data);
                    }
                };
                while !(there.is_finished() && back.is_finished()) {
                    take_all(&mut capture, &mut look);
                }
                take_all(&mut capture, &mut look);
                drain(&mut capture, |chunk| look(&chunk));
            });
            let [arrived, left] = checks.map(SequenceCheck::finish);
            let perfect = (arrived.is_perfect(), left.is_perfect());
            let none = (arrived.total.received == 0, left.total.received == 0);
            let account = capture.account().unwrap();
            assert_closed(&account);
            assert_eq!(account.total().lost, 0, "{account:?}");
            match wanted {
                Direction::Both => assert_eq!(perfect, (true, true), "{arrived:?} {left:?}"),
                Direction::In => assert_eq!((perfect.0, none.1), (true, true), "{arrived:?} {left:?}"),
                Direction::Out => assert_eq!((none.0, perfect.1), (true, true), "{arrived:?} {left:?}"),
            }
        });
    }
}

/// The pair as seen from the other end.
fn reversed(pair: &weir_lab::Pair) -> weir_lab::Pair {
    weir_lab::Pair { tx: pair.rx.clone(), rx: pair.tx.clone() }
}

#[test]
fn root_the_loopback_shows_each_packet_once() {
    if !require_root("root_the_loopback_shows_each_packet_once") {
        return;
    }
    let network = Network::new(Veth::default()).unwrap();
    network.rx().run(|| {
        for wanted in [Direction::Both, Direction::In, Direction::Out] {
            let builder = weir::Capture::builder().interface("lo").source(SourceChoice::Tc);
            let mut capture = builder.direction(wanted).open().unwrap();
            let socket = std::net::UdpSocket::bind("127.0.0.1:0").unwrap();
            let to = socket.local_addr().unwrap();
            for number in 0..200u8 {
                socket.send_to(&[number; 40], to).unwrap();
            }
            let mut times: BTreeMap<u8, u32> = BTreeMap::new();
            take_all(&mut capture, |chunk| {
                for packet in chunk {
                    *times.entry(packet.data[42]).or_default() += 1;
                    let out = wanted == Direction::Out;
                    assert_eq!(packet.direction, Some(if out { Direction::Out } else { Direction::In }));
                }
            });
            assert_eq!(times, (0..200).map(|number| (number, 1)).collect(), "{wanted:?}");
            drain(&mut capture, drop);
            assert_closed(&capture.account().unwrap());
        }
    });
}
