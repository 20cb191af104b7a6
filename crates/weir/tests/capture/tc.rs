//! Special features of the `tc` source.

use std::collections::BTreeMap;
use std::process::Command;
use std::time::Duration;

use weir::parts::tc_filters;
use weir::{Direction, SourceChoice};
use weir_lab::{
    FrameSender, Generator, Network, SequenceCheck, SequenceReport, Tagging, Traffic, Veth, root_test,
};

use crate::common::{self, drain, on_one_processor, take, take_of};
use crate::{assert_closed, on_rx, on_rx_with_room};

#[root_test]
fn root_both_directions_come_in_one_capture_and_each_record_says_which() {
    both_directions(SourceChoice::Tc, Direction::Both);
}

#[root_test]
fn root_both_directions_come_in_one_capture_of_xdp_and_tc() {
    both_directions(SourceChoice::XdpTc, Direction::Both);
}

#[root_test]
fn root_one_direction_comes_alone() {
    both_directions(SourceChoice::Tc, Direction::In);
    both_directions(SourceChoice::Tc, Direction::Out);
}

/// Sends both ways at once, and captures `wanted`.
fn both_directions(source: SourceChoice, wanted: Direction) {
    const COUNT: u64 = 10_000;
    let network = Network::new(Veth::default()).unwrap();
    let pair = network.pair();
    let arriving = Traffic::new(60).unwrap().between(pair);
    let sent = Traffic::new(130).unwrap().between(&reversed(pair));
    for filters in [false, true] {
        let mut generator = Generator::new(pair, &arriving).unwrap().cpu(1);
        network.rx().run(|| {
            let builder = on_rx_with_room(&network, 2 * COUNT, 130).source(source);
            let mut capture = tc_filters(builder.direction(wanted), filters).open().unwrap();
            let mut checks = [SequenceCheck::new(&arriving, 0..COUNT), SequenceCheck::new(&sent, 0..COUNT)];
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
            std::thread::scope(|scope| {
                let there = scope.spawn(|| assert_eq!(generator.send(COUNT).unwrap().accepted, COUNT));
                let back = scope.spawn(|| {
                    let sender = FrameSender::new(&pair.rx).unwrap();
                    (0..COUNT).for_each(|number| sender.send(&sent.frame(number)).unwrap());
                });
                while !(there.is_finished() && back.is_finished()) {
                    capture.next(Duration::from_millis(10)).unwrap().taken().iter().for_each(&mut look);
                }
            });
            let expected = if wanted == Direction::Both { 2 * COUNT } else { COUNT };
            take(&mut capture, expected, &mut look);
            drain(&mut capture, |_| panic!("everything was taken"));
            let [arrived, left] = checks.map(SequenceCheck::finish);
            // The sender may have moved to another processor, whose records are in another queue.
            let whole = |report: &SequenceReport| {
                (report.total.received, report.total.lost, report.total.duplicated, report.corrupt)
            };
            let (all, none) = ((COUNT, 0, 0, 0), (0, COUNT, 0, 0));
            let expected = match wanted {
                Direction::Both => (all, all),
                Direction::In => (all, none),
                Direction::Out => (none, all),
            };
            assert_eq!((whole(&arrived), whole(&left)), expected, "{source:?} {wanted:?} {filters}");
            let account = capture.stats().unwrap();
            assert_closed(&account);
            assert_eq!(account.total().lost, 0, "{account:?}");
        });
    }
}

/// The pair as seen from the other end.
fn reversed(pair: &weir_lab::Pair) -> weir_lab::Pair {
    weir_lab::Pair { tx: pair.rx.clone(), rx: pair.tx.clone() }
}

#[root_test]
fn root_the_loopback_shows_each_packet_once() {
    let network = Network::new(Veth::default()).unwrap();
    network.rx().run(|| {
        for wanted in [Direction::Both, Direction::In, Direction::Out] {
            let builder = common::capture().interface("lo").source(SourceChoice::Tc);
            let mut capture = builder.direction(wanted).open().unwrap();
            let socket = std::net::UdpSocket::bind("127.0.0.1:0").unwrap();
            let to = socket.local_addr().unwrap();
            for number in 0..200u8 {
                socket.send_to(&[number; 40], to).unwrap();
            }
            let mut times: BTreeMap<u8, u32> = BTreeMap::new();
            take(&mut capture, 200, |chunk| {
                for packet in chunk {
                    *times.entry(packet.data[42]).or_default() += 1;
                    let out = wanted == Direction::Out;
                    assert_eq!(packet.direction, Some(if out { Direction::Out } else { Direction::In }));
                }
            });
            assert_eq!(times, (0..200).map(|number| (number, 1)).collect(), "{wanted:?}");
            drain(&mut capture, |_| panic!("everything was taken"));
            assert_closed(&capture.stats().unwrap());
        }
    });
}

/// What `tc` tells of the receiving end: disciplines, filters of both sides.
fn filters(network: &Network) -> String {
    let tc = |args: &[&str]| {
        let output = network.rx().run(|| Command::new("tc").args(args).output()).expect("tc runs");
        String::from_utf8_lossy(&output.stdout).into_owned()
    };
    let name = network.pair().rx.name.as_str();
    let side = |side| tc(&["filter", "show", "dev", name, side]);
    [tc(&["qdisc", "show", "dev", name]), side("ingress"), side("egress")].concat()
}

#[root_test]
fn root_filters_come_in_front_and_leave_others_and_their_discipline_alone() {
    let network = Network::new(Veth::default()).unwrap();
    let name = &network.pair().rx.name;
    let tc = |args: &[&str]| {
        let status = network.rx().run(|| Command::new("tc").args(args).status()).expect("tc runs");
        assert!(status.success(), "tc {args:?}");
    };
    let open =
        || network.rx().run(|| tc_filters(on_rx(&network).source(SourceChoice::Tc), true).open().unwrap());
    let frames = Traffic::new(60).unwrap().between(network.pair()).frames(0..10);
    let bare = filters(&network);
    let sees_all = |capture: &mut weir::Capture| {
        let sender = FrameSender::new(&network.pair().tx).unwrap();
        let mut packets = 0;
        take_of(capture, || sender.send_frames(&frames).unwrap(), |chunk| packets += chunk.len());
        assert_eq!(packets, 10);
    };

    // Alone: the discipline comes and goes with it, whether it is stopped or dropped.
    for stop in [true, false] {
        let mut capture = open();
        let with = filters(&network);
        assert!(with.contains("clsact") && with.matches("direct-action").count() == 2, "{with}");
        assert!(capture.interfaces()[0].detail.starts_with("clsact ingress and egress"));
        sees_all(&mut capture);
        if stop {
            capture.stop().unwrap();
            assert_eq!(filters(&network), bare);
        }
        drop(capture);
        assert_eq!(filters(&network), bare);
    }

    // Others come while it is there: the discipline stays for them. Their filter accepts everything for good.
    let mut capture = open();
    let theirs = ["filter", "add", "dev", name, "ingress", "prio", "50000", "protocol", "all"];
    let bytecode = ["bpf", "bytecode", "1,6 0 0 4294967295", "flowid", "1:1"];
    tc(&[&theirs[..], &bytecode].concat());
    sees_all(&mut capture);
    drop(capture);
    let theirs = filters(&network);
    assert!(
        theirs.contains("clsact") && theirs.contains("bytecode") && !theirs.contains("direct-action"),
        "{theirs}"
    );

    // Others were there before: in front of theirs; and two of ours.
    let mut capture = open();
    let mut second = open();
    sees_all(&mut capture);
    let mut packets = 0;
    take(&mut second, 10, |chunk| packets += chunk.len());
    assert_eq!(packets, 10);
    drop((capture, second));
    assert_eq!(filters(&network), theirs);

    // The old discipline has no filters for what is sent.
    tc(&["qdisc", "del", "dev", name, "clsact"]);
    tc(&["qdisc", "add", "dev", name, "ingress"]);
    let with = filters(&network);
    network.rx().run(|| {
        let builder = || tc_filters(on_rx(&network).source(SourceChoice::Tc), true);
        let refused = builder().open().expect_err("egress cannot be had").to_string();
        assert!(refused.contains("`ingress` qdisc"), "{refused}");
        let mut capture = builder().direction(Direction::In).open().unwrap();
        sees_all(&mut capture);
    });
    assert_eq!(filters(&network), with);
}

#[root_test]
fn root_tags_of_what_is_sent_are_where_they_will_be_on_the_wire() {
    let network = Network::new(Veth::default()).unwrap();
    let (rx, back) = (&network.pair().rx, reversed(network.pair()));
    let one: &[u8] = &[0x81, 0, 0, 77];
    let two: &[u8] = &[0x88, 0xa8, 0x20, 5, 0x81, 0, 0, 77];
    for (beside, tags) in [((0x8100, 77), one), ((0x88a8, 0x2005), two)] {
        let mut traffic = Traffic::new(100).unwrap().between(&back);
        if tags.len() > 4 {
            traffic = traffic.vlan(77).unwrap();
        }
        network.rx().run(|| {
            let mut capture = on_rx(&network).source(SourceChoice::Tc).open().unwrap();
            let _tagging = Tagging::in_front(rx, beside.0, beside.1).unwrap();
            let sender = FrameSender::new(rx).unwrap();
            let send = || on_one_processor(|| sender.send_frames(&traffic.frames(0..3)).unwrap());
            let mut sequence = 0;
            take_of(&mut capture, send, |chunk| {
                for packet in chunk {
                    let mut wire = traffic.frame(sequence);
                    wire.splice(12..12, tags[..4].iter().copied());
                    assert_eq!(wire[12..12 + tags.len()], *tags);
                    assert_eq!((packet.data, packet.direction), (&wire[..], Some(Direction::Out)));
                    sequence += 1;
                }
            });
            assert_eq!(sequence, 3, "{beside:?}");
        });
    }
}

#[root_test]
fn root_programs_of_others_at_tcx_keep_working() {
    let network = Network::new(Veth::default()).unwrap();
    let (tx, rx) = (&network.pair().tx, &network.pair().rx);
    let frame = Traffic::new(100).unwrap().between(&reversed(network.pair())).frame(0);
    let _theirs = Tagging::on(rx, 0x8100, 5).unwrap();
    let lengths = |capture: &mut weir::Capture, packets: u64| {
        let mut lengths = Vec::new();
        take(capture, packets, |chunk| lengths.extend(chunk.packets().map(|packet| packet.original_len)));
        lengths
    };
    let far = || common::capture().interface(&tx.name).source(SourceChoice::AfPacket);
    let mut arriving = network.tx().run(|| far().direction(Direction::In).open().unwrap());
    // In front of theirs, which still runs: as the stack sent it here, as they made it there; and when ours is gone.
    let mut ours = network.rx().run(|| on_rx(&network).source(SourceChoice::Tc).open().unwrap());
    FrameSender::new(rx).unwrap().send(&frame).unwrap();
    assert_eq!((lengths(&mut ours, 1), lengths(&mut arriving, 1)), (vec![100], vec![104]));
    drop(ours);
    FrameSender::new(rx).unwrap().send(&frame).unwrap();
    assert_eq!(lengths(&mut arriving, 2), [104]);
}

#[root_test]
fn root_packets_without_an_ethernet_header_are_raw_ip() {
    let network = Network::new(Veth::default()).unwrap();
    network.rx().run(|| {
        for line in ["tuntap add tun0 mode tun", "address add 10.9.9.1/24 dev tun0", "link set tun0 up"] {
            let args: Vec<&str> = line.split(' ').collect();
            assert!(Command::new("ip").args(&args).status().unwrap().success(), "ip {line}");
        }
        for segment in [false, true] {
            let builder = common::capture().interface("tun0").direction(Direction::Out);
            let mut capture = builder.segment(segment).open().unwrap();
            let interface = &capture.interfaces()[0];
            assert_eq!((interface.source, interface.link_type), (weir::SourceKind::Tc, 101), "{interface:?}");
            let socket = std::net::UdpSocket::bind("10.9.9.1:0").unwrap();
            socket.send_to(b"no Ethernet here", "10.9.9.2:9").unwrap();
            // It was captured while it was sent.
            let mut packets = Vec::new();
            drain(&mut capture, |chunk| packets.extend(chunk.packets().map(|packet| packet.data.to_vec())));
            // The kernel may have something of its own to say: of IPv6, for instance.
            let ours: Vec<_> =
                packets.iter().filter(|packet| packet.ends_with(b"no Ethernet here")).collect();
            let [packet] = ours[..] else { panic!("{packets:?}") };
            assert_eq!((packet[0], packet[9], packet.len()), (0x45, 17, 44));
            assert_eq!(packet[12..20], [10, 9, 9, 1, 10, 9, 9, 2]);
        }
    });
}
