//! Each packet ends in one counter and the totals add up, with slow, stopped or missing readers; no chunk is lost.

use std::ops::ControlFlow;
use std::time::Duration;

use weir::{Error, Mode, Opening, SourceChoice};
use weir_lab::{Generator, Network, SequenceCheck, Traffic, Veth, root_test};

use crate::common::{self, drain, take, take_of, wait_for};
use crate::{assert_closed, capture_frames, on_rx, on_rx_with_room};

#[root_test]
fn root_a_burst_fits_into_the_pool_while_the_handler_is_stopped() {
    const BURST: u64 = 200_000;
    let network = Network::new(Veth::default()).unwrap();
    let traffic = Traffic::new(60).unwrap().between(network.pair());
    for (source, mode) in [(SourceChoice::Xdp, Mode::Exclusive), (SourceChoice::Tc, Mode::Pass)] {
        let mut generator = Generator::new(network.pair(), &traffic).unwrap().cpu(1);
        network.rx().run(|| {
            let mut capture = on_rx_with_room(&network, BURST, 60).source(source).mode(mode).open().unwrap();
            let report = generator.send(BURST).unwrap();
            assert_eq!(report.accepted, BURST);
            let mut check = SequenceCheck::new(&traffic, 0..BURST);
            drain(&mut capture, |chunk| chunk.packets().for_each(|packet| check.frame(packet.data)));
            let report = check.finish();
            assert!(report.is_perfect(), "{source:?}: {report:?}");
            let account = capture.stats().unwrap();
            assert_closed(&account);
            assert_eq!((account.total().captured, account.total().lost), (BURST, 0), "{source:?}");
        });
    }
}

each_way!(what_found_no_room_is_counted_and_told_where_it_happened);

fn what_found_no_room_is_counted_and_told_where_it_happened(source: SourceChoice, mode: Mode) {
    // A packet socket's own ring holds 233 000 at most; the others have no more than their chunks and frames.
    let count = if source == SourceChoice::AfPacket { 300_000 } else { 50_000 };
    let network = Network::new(Veth::default()).unwrap();
    let traffic = Traffic::new(60).unwrap().between(network.pair());
    let mut generator = Generator::new(network.pair(), &traffic).unwrap().cpu(1);
    network.rx().run(|| {
        let builder = common::with_pool(2, 64 << 10).interface(&network.pair().rx.name);
        let mut capture = builder.source(source).mode(mode).open().unwrap();
        let accepted = generator.send(count).unwrap().accepted;
        wait_for(&mut capture, |account| account.total().lost > 0);
        // Now there is somebody who reads: what comes next is captured, and its first packet tells the loss.
        let (mut packets, mut told) = (0, 0);
        let mut look = |chunk: &weir::Chunk| {
            for packet in chunk {
                packets += 1;
                told += packet.lost_before;
            }
        };
        take(&mut capture, accepted, &mut look);
        let mut one = 0;
        let send_one = || {
            one = generator.send(1).unwrap().accepted;
            one
        };
        take_of(&mut capture, send_one, &mut look);
        drain(&mut capture, |chunk| look(&chunk));
        let account = capture.stats().unwrap();
        assert_closed(&account);
        let total = account.total();
        assert_eq!((total.seen, total.captured), (accepted + one, packets), "{source:?} {mode:?}: {total:?}");
        assert_eq!(told, total.lost, "{source:?} {mode:?}: the records tell what the counters do");
    });
}

#[root_test]
fn root_chunks_that_other_threads_hold_come_back() {
    const COUNT: u64 = 300_000;
    let network = Network::new(Veth::default()).unwrap();
    let traffic = Traffic::new(60).unwrap().between(network.pair());
    let mut generator = Generator::new(network.pair(), &traffic).unwrap().cpu(1);
    network.rx().run(|| {
        let builder = common::with_pool(60, 64 << 10).interface(&network.pair().rx.name);
        let mut capture = builder.source(SourceChoice::Xdp).mode(Mode::Exclusive).open().unwrap();
        let (to_slow, slow) = std::sync::mpsc::channel::<weir::Chunk>();
        let slow = std::thread::spawn(move || {
            let mut held = Vec::new();
            let mut packets = 0;
            for chunk in slow {
                packets += chunk.packets().count() as u64;
                held.push(chunk);
                if held.len() == 7 {
                    // In another order than they came in; one goes with a thread that panics.
                    let dying = held.swap_remove(3);
                    let _ = std::thread::Builder::new().name("dying handler".into()).spawn(move || {
                        let _held = dying;
                        std::panic::resume_unwind(Box::new("a handler that panics"));
                    });
                    held.drain(..).rev().for_each(drop);
                }
            }
            packets
        });
        let sending = std::thread::spawn(move || generator.send(COUNT).unwrap());
        let mut taken = 0;
        while !sending.is_finished() {
            if let Some(chunk) = capture.next(Duration::from_millis(10)).unwrap().taken() {
                taken += chunk.len() as u64;
                to_slow.send(chunk).unwrap();
            }
        }
        sending.join().unwrap();
        drain(&mut capture, |chunk| {
            taken += chunk.len() as u64;
            to_slow.send(chunk).unwrap();
        });
        drop(to_slow);
        assert_eq!(slow.join().unwrap(), taken);
        // The threads that panicked may still be on their way.
        wait_for(&mut capture, |account| account.interfaces[0].queues[0].pool.held == 0);
        let account = capture.stats().unwrap();
        assert_closed(&account);
        assert_eq!(account.total().seen, COUNT, "{account:?}");
        assert_eq!(account.total().delivered, taken, "{account:?}");
    });
}

#[root_test]
fn root_every_queue_and_interface_has_its_own_account() {
    const COUNT: u64 = 100_000;
    let mut network = Network::new(Veth::default().queues(2)).unwrap();
    network.connect(Veth::default().queues(2)).unwrap();
    let traffic: Vec<Traffic> =
        network.pairs().iter().map(|pair| Traffic::new(60).unwrap().between(pair)).collect();
    let mut generators: Vec<Generator> = network
        .pairs()
        .iter()
        .zip(&traffic)
        .flat_map(|(pair, traffic)| {
            [0, 1]
                .map(|cpu| Generator::numbered_from(u64::from(cpu) * COUNT, pair, traffic).unwrap().cpu(cpu))
        })
        .collect();
    network.rx().run(|| {
        let builder = || {
            let builder = common::with_room_for(COUNT, 60).source(SourceChoice::Xdp).mode(Mode::Exclusive);
            network.pairs().iter().fold(builder, |builder, pair| builder.interface(&pair.rx.name))
        };
        // Nothing stays of what was open when one cannot be opened, or when the start is ended.
        let untouched = || {
            let links = weir_sys::link::links().unwrap();
            let first = links.iter().find(|link| link.name == network.pair().rx.name).unwrap();
            assert!(first.promiscuity == 0 && first.xdp_program.is_none(), "{first:?}");
        };
        let last = &network.pairs()[1].rx.name;
        let other = common::with_room_for(1, 60).source(SourceChoice::Xdp).interface(last).open().unwrap();
        let error = builder().open().unwrap_err();
        assert!(matches!(&error, Error::Busy { name, .. } if name == last), "{error}");
        untouched();
        drop(other);
        let mut begun = 0;
        let tell = |_: Opening<'_>| {
            begun += 1;
            if begun == 2 { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
        };
        let error = builder().open_telling(tell).unwrap_err();
        assert_eq!(error.to_string(), "interrupted with 0 of 2 interfaces open");
        untouched();
        let mut told = Vec::new();
        let tell = |one: Opening<'_>| {
            told.push((one.name.to_owned(), one.before, one.all));
            ControlFlow::Continue(())
        };
        let mut capture = builder().open_telling(tell).unwrap();
        // Both are opened at the same time.
        let names = network.pairs().iter().map(|pair| pair.rx.name.clone());
        assert_eq!(told, names.map(|name| (name, 0, 2)).collect::<Vec<_>>());
        assert_eq!(capture.interfaces().iter().map(|interface| interface.queues).collect::<Vec<_>>(), [2, 2]);
        let mut checks: Vec<SequenceCheck> =
            traffic.iter().map(|traffic| SequenceCheck::new(traffic, 0..2 * COUNT)).collect();
        let mut per_queue = [[0u64; 2]; 2];
        std::thread::scope(|scope| {
            let sending = scope.spawn(|| {
                for generator in &mut generators {
                    assert_eq!(generator.send(COUNT).unwrap().accepted, COUNT);
                }
            });
            let mut look = |chunk: &weir::Chunk| {
                per_queue[chunk.interface() as usize][chunk.queue() as usize] += chunk.len() as u64;
                for packet in chunk {
                    assert_eq!((packet.interface, packet.queue), (chunk.interface(), chunk.queue()));
                    checks[packet.interface as usize].frame(packet.data);
                }
            };
            while !sending.is_finished() {
                capture.next(Duration::from_millis(10)).unwrap().taken().iter().for_each(&mut look);
            }
            drain(&mut capture, |chunk| look(&chunk));
        });
        assert_eq!(per_queue, [[COUNT; 2]; 2]);
        for check in checks {
            let report = check.finish();
            assert_eq!((report.total.lost, report.corrupt, report.total.duplicated), (0, 0, 0), "{report:?}");
        }
        let account = capture.stats().unwrap();
        assert_closed(&account);
        for interface in &account.interfaces {
            assert!(interface.queues.iter().all(|queue| queue.counters.captured == COUNT), "{interface:?}");
        }
    });
}

#[root_test]
fn root_what_a_handler_cuts_off_is_discarded() {
    let network = Network::new(Veth::default()).unwrap();
    let traffic = Traffic::new(60).unwrap().between(network.pair());
    let mut generator = Generator::new(network.pair(), &traffic).unwrap().cpu(1);
    network.rx().run(|| {
        let mut capture = on_rx(&network).source(SourceChoice::Xdp).mode(Mode::Exclusive).open().unwrap();
        generator.send(1000).unwrap();
        let mut chunk = capture.next(common::PATIENCE).unwrap().taken().expect("there are packets");
        let all = chunk.len();
        chunk.keep_first(10);
        let frames: Vec<Vec<u8>> = chunk.packets().map(|packet| packet.data.to_vec()).collect();
        assert_eq!(frames, traffic.frames(0..10));
        chunk.keep_first(0);
        assert!(chunk.is_empty() && chunk.bytes().is_empty());
        drop(chunk);
        drain(&mut capture, drop);
        let total = capture.stats().unwrap().total();
        assert_eq!((total.captured, total.discarded, total.delivered), (1000, all as u64, 1000 - all as u64));
        assert_closed(&capture.stats().unwrap());
    });
}

each_way!(sources_agree_with_the_wire_at_full_rate);

fn sources_agree_with_the_wire_at_full_rate(source: SourceChoice, mode: Mode) {
    const COUNT: u64 = 500_000;
    let network = Network::new(Veth::default()).unwrap();
    let traffic = Traffic::new(60).unwrap().flows(16).unwrap().between(network.pair());
    // Room for a part of them: whoever takes them has to keep up, or some are lost.
    let builder = on_rx_with_room(&network, COUNT / 5, 60).source(source).mode(mode);
    let (report, account) = capture_frames(&network, builder, &traffic, COUNT);
    let total = account.total();
    assert_closed(&account);
    assert_eq!(total.seen, COUNT, "{source:?} {mode:?}: {total:?}");
    // A machine that is busy otherwise may lose some; what is lost is told, and nothing else is missing.
    assert_eq!(report.total.received + total.lost, COUNT, "{source:?} {mode:?}: {report:?} {total:?}");
    assert_eq!((report.corrupt, report.total.duplicated, report.total.reordered), (0, 0, 0), "{report:?}");
}
