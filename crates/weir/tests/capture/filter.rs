//! Filters in front of each source: what they want is captured, the rest is counted, and an exchange at full rate loses
//! and doubles nothing.

use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

use weir::filter::{Dialect, Exchange, Place, SystemNames};
use weir::{Account, Capture, Direction, Error, Filter, SourceChoice};
use weir_lab::{FrameSender, Generator, Network, SequenceCheck, SequenceReport, Traffic, Veth, require_root};

use crate::{WAYS, assert_closed, drain, on_rx, take_all};

/// The last byte of a frame's number.
const EVEN: &str = "udp and ether[49] & 1 = 0";
const ODD: &str = "udp and ether[49] & 1 = 1";

fn filter(text: &str) -> Filter {
    Filter::new(text).dialect(Dialect::Pcap).names(SystemNames::new())
}

/// Sends `count` frames while `capture` runs, and says what became of them.
fn run(network: &Network, capture: &mut Capture, traffic: &Traffic, count: u64) -> (SequenceReport, Account) {
    let mut generator = Generator::new(network.pair(), traffic).expect("the generator loads").cpu(1);
    let mut check = SequenceCheck::new(traffic, 0..count);
    let sending = thread::spawn(move || generator.send(count).expect("frames are sent"));
    while !sending.is_finished() {
        if let Some(chunk) = capture.next(Duration::from_millis(10)).expect("the capture goes on") {
            chunk.packets().for_each(|packet| check.frame(packet.data));
        }
    }
    assert_eq!(sending.join().expect("the sender does not panic").accepted, count);
    take_all(capture, |chunk| chunk.packets().for_each(|packet| check.frame(packet.data)));
    drain(capture, |chunk| chunk.packets().for_each(|packet| check.frame(packet.data)));
    (check.finish(), capture.account().expect("the account can be had"))
}

#[test]
fn root_what_a_filter_does_not_want_is_counted_and_not_captured() {
    if !require_root("root_what_a_filter_does_not_want_is_counted_and_not_captured") {
        return;
    }
    const COUNT: u64 = 20_000;
    for (source, mode) in WAYS {
        let network = Network::new(Veth::default()).unwrap();
        let traffic = Traffic::new(60).unwrap().between(network.pair());
        network.rx().run(|| {
            let mut capture = on_rx(&network).source(source).mode(mode).filter(filter(EVEN)).open().unwrap();
            assert_eq!(capture.interfaces()[0].filter.as_deref(), Some(&*format!("{EVEN} (dialect pcap)")));
            let (report, account) = run(&network, &mut capture, &traffic, COUNT);
            let total = account.total();
            assert_closed(&account);
            assert_eq!((report.total.received, report.total.duplicated), (COUNT / 2, 0), "{source:?}");
            assert_eq!((total.captured, total.lost, total.errors), (COUNT / 2, 0, 0), "{source:?}");
            // The neighbours may have something to say of their own.
            let filtered = total.filtered.expect("counted");
            assert!(filtered >= COUNT / 2 && total.seen == total.captured + filtered, "{source:?} {total:?}");
        });
    }
}

#[test]
fn root_what_classic_bpf_refuses_is_told_as_not_counted() {
    if !require_root("root_what_classic_bpf_refuses_is_told_as_not_counted") {
        return;
    }
    let network = Network::new(Veth::default()).unwrap();
    network.rx().run(|| {
        let builder = on_rx(&network).source(SourceChoice::AfPacket).direction(Direction::Out);
        let mut capture = builder.filter(filter("ether[0] & 1 = 0")).open().unwrap();
        let sender = FrameSender::new(&network.pair().rx).unwrap();
        for first in [0, 1, 2, 3] {
            let mut frame = vec![0; 60];
            frame[0] = first;
            sender.send(&frame).unwrap();
        }
        let mut taken = Vec::new();
        take_all(&mut capture, |chunk| taken.extend(chunk.packets().map(|packet| packet.data[0])));
        drain(&mut capture, |_| {});
        let total = capture.account().unwrap().total();
        assert_eq!(taken, [0, 2]);
        assert_eq!((total.filtered, total.seen, total.captured), (None, 2, 2));
    });
}

#[test]
fn root_all_interfaces_are_filtered_as_they_are_saved() {
    if !require_root("root_all_interfaces_are_filtered_as_they_are_saved") {
        return;
    }
    const COUNT: u64 = 1000;
    let network = Network::new(Veth::default()).unwrap();
    let traffic = Traffic::new(60).unwrap().between(network.pair());
    let mut generator = Generator::new(network.pair(), &traffic).unwrap();
    network.rx().run(|| {
        // Behind the header of 20 bytes: IPv4, UDP, the number.
        let text = "udp and ether[0:2] = 0x0800 and ether[55] & 1 = 1";
        let mut capture = Capture::builder().interface("any").filter(filter(text)).open().unwrap();
        assert_eq!(generator.send(COUNT).unwrap().accepted, COUNT);
        let mut odd = 0;
        take_all(&mut capture, |chunk| {
            for packet in chunk {
                assert!(packet.data[55] & 1 == 1 && packet.data.len() == 60 - 14 + 20);
                odd += 1;
            }
        });
        drain(&mut capture, |_| {});
        let account = capture.account().unwrap();
        assert_closed(&account);
        assert_eq!(odd, COUNT / 2);
        assert!(account.total().filtered.is_some_and(|filtered| filtered >= COUNT / 2));
    });
}

/// Exchanges the filter between `texts` until `done`; how often.
fn alternate(exchange: &Exchange, texts: [&str; 2], done: &AtomicBool) -> u64 {
    let programs = texts.map(|text| {
        let places = exchange.places().expect("the places can be had").into_iter();
        places.map(|place: Place| place.make(Some(&filter(text))).expect("a program")).collect::<Vec<_>>()
    });
    let mut exchanged = 0;
    while !done.load(Ordering::Relaxed) {
        exchange.put(&programs[usize::from(exchanged % 2 == 0)]).expect("it is put in place");
        exchanged += 1;
        thread::sleep(Duration::from_micros(300));
    }
    exchanged
}

#[test]
fn root_an_exchange_at_full_rate_loses_and_doubles_nothing() {
    if !require_root("root_an_exchange_at_full_rate_loses_and_doubles_nothing") {
        return;
    }
    const COUNT: u64 = 400_000;
    for (source, mode) in WAYS {
        // Both want everything; then each wants the half that the other does not.
        for texts in [["udp", "ip or ether[49] & 1 = 1"], [EVEN, ODD]] {
            let network = Network::new(Veth::default()).unwrap();
            let traffic = Traffic::new(60).unwrap().between(network.pair());
            network.rx().run(|| {
                let builder = on_rx(&network).source(source).mode(mode).filter(filter(texts[0]));
                let mut capture = builder.open().unwrap();
                let (exchange, done) = (capture.exchange(), AtomicBool::new(false));
                let (report, account, exchanged) = thread::scope(|scope| {
                    let changing = scope.spawn(|| alternate(&exchange, texts, &done));
                    let (report, account) = run(&network, &mut capture, &traffic, COUNT);
                    done.store(true, Ordering::Relaxed);
                    (report, account, changing.join().expect("it is exchanged"))
                });
                assert!(exchanged > 20, "{source:?}: {exchanged} times");
                assert_closed(&account);
                let total = account.total();
                assert_eq!((report.total.duplicated, report.total.reordered, total.errors), (0, 0, 0));
                if texts[1] != ODD {
                    assert_eq!(report.total.lost, total.lost, "{source:?} {total:?}");
                    assert_eq!(total.captured - report.corrupt, COUNT - total.lost, "{source:?} {total:?}");
                } else {
                    let filtered = total.filtered.expect("counted");
                    let own = total.captured - report.corrupt;
                    assert!(own + total.lost + filtered >= COUNT, "{source:?} {total:?}");
                    assert!(filtered > 0 && own > 0, "{source:?} {total:?}");
                }
                if source != SourceChoice::AfPacket {
                    assert_eq!(total.lost, 0, "{source:?}: the pool has room for all");
                }
            });
        }
    }
}

#[test]
fn root_a_filter_comes_and_goes_while_the_capture_runs() {
    if !require_root("root_a_filter_comes_and_goes_while_the_capture_runs") {
        return;
    }
    const COUNT: u64 = 1000;
    for source in [SourceChoice::Xdp, SourceChoice::Tc, SourceChoice::XdpTc, SourceChoice::AfPacket] {
        let network = Network::new(Veth::default()).unwrap();
        let traffic = Traffic::new(60).unwrap().between(network.pair());
        let mut generator = Generator::new(network.pair(), &traffic).unwrap();
        network.rx().run(|| {
            let mut capture = on_rx(&network).source(source).open().unwrap();
            let mut captured = |capture: &mut Capture| {
                assert_eq!(generator.send(COUNT).unwrap().accepted, COUNT);
                let mut frames = 0;
                take_all(capture, |chunk| {
                    frames += chunk.packets().filter(|packet| packet.data.len() == 60).count() as u64;
                });
                frames
            };
            assert_eq!(captured(&mut capture), COUNT, "{source:?}");
            capture.set_filter(Some(&filter(ODD))).unwrap();
            assert_eq!(capture.interfaces()[0].filter.as_deref(), Some(&*format!("{ODD} (dialect pcap)")));
            assert_eq!(captured(&mut capture), COUNT / 2, "{source:?}");
            capture.set_filter(Some(&filter("tcp"))).unwrap();
            assert_eq!(captured(&mut capture), 0, "{source:?}");
            capture.set_filter(None).unwrap();
            assert_eq!(captured(&mut capture), COUNT, "{source:?}");
            drain(&mut capture, |_| {});
            assert_closed(&capture.account().unwrap());
        });
    }
}

#[test]
fn root_what_cannot_be_is_refused() {
    if !require_root("root_what_cannot_be_is_refused") {
        return;
    }
    let network = Network::new(Veth::default()).unwrap();
    network.rx().run(|| {
        let wrong = on_rx(&network).filter(filter("udp prot 80")).open().unwrap_err();
        assert!(matches!(wrong, Error::Filter(_)), "{wrong}");
        let mut capture = on_rx(&network).source(SourceChoice::Tc).open().unwrap();
        assert!(matches!(capture.set_filter(Some(&filter("port"))), Err(Error::Filter(_))));
        capture.set_filter(Some(&filter("port 80"))).unwrap();
    });
}
