//! Captures with rules in the filter's place: what they take, what goes on, and that the sums close, also while rules are replaced.

use std::sync::{Arc, Mutex};
use std::thread;
use std::time::Duration;

use weir::filter::Dialect;
use weir::guard::{Action, CaptureAction, Fate, Learn, Reading, Rules};
use weir::{Capture, Chunk, Direction, Error, Filter, Mode, SourceChoice};
use weir_lab::{FrameSender, Generator, Network, Pair, SequenceCheck, Traffic, UdpSink, Veth, root_test};

use crate::common::{drain, on_one_processor, take};
use crate::{assert_closed, on_rx, on_rx_with_room};

/// The last byte of a frame's number.
const EVEN: &str = "udp and ether[51] & 1 = 0";

/// Captures what goes no further, except where there are only copies.
fn captured(source: SourceChoice) -> Action {
    let fate = if source == SourceChoice::AfPacket { Fate::Pass } else { Fate::Block };
    Action::from(fate).capture(CaptureAction::Capture)
}

/// The packets of a rule by its name.
fn packets(reading: &Reading, name: &str) -> [u64; 2] {
    let rule = reading.rules.iter().find(|rule| rule.name == name).expect("it is there");
    [rule.count.packets, rule.captured]
}

fn reading(capture: &Capture) -> Reading {
    let [reading] = &capture.rules().expect("the counters can be had")[..] else { panic!("one interface") };
    reading.clone()
}

each_way!(each_packet_meets_the_old_rules_or_the_new_ones:
    root_xdp(Xdp, Pass),
    root_xdp_exclusive(Xdp, Exclusive),
    root_tc(Tc, Pass),
    root_xdp_tc(XdpTc, Pass),
    root_af_packet(AfPacket, Pass),
    root_af_xdp(AfXdp, Exclusive),
);

fn each_packet_meets_the_old_rules_or_the_new_ones(source: SourceChoice, mode: Mode) {
    const COUNT: u64 = 12_000;
    const PARTS: u64 = 12;
    let network = Network::new(Veth::default()).unwrap();
    let traffic = Traffic::new(60).unwrap().between(network.pair());
    let mut generator = Generator::new(network.pair(), &traffic).unwrap().cpu(1);
    let expression = |text: &str| Filter::new(text).dialect(Dialect::Pcap);
    let rules = ["even", "even too"].map(|name| {
        Rules::new()
            .rule("six", expression("ip6"), Fate::Pass)
            .rule(name, expression(EVEN), captured(source))
            .rule("odd", expression("udp"), captured(source))
    });
    network.rx().run(|| {
        let builder = on_rx_with_room(&network, COUNT, 60).source(source).mode(mode);
        let mut capture = builder.rules(rules[0].clone()).open().unwrap();
        let mut check = SequenceCheck::new(&traffic, 0..COUNT);
        for part in 0..PARTS {
            // The sender goes on while rules are exchanged.
            let sending = || generator.send(COUNT / PARTS).expect("frames are sent").accepted;
            let sent = thread::scope(|scope| {
                let sending = scope.spawn(sending);
                capture.replace_rules(&rules[usize::from(part % 2 == 0)]).expect("they are taken");
                sending.join().expect("all is sent")
            });
            assert_eq!(sent, COUNT / PARTS);
            take(&mut capture, (part + 1) * COUNT / PARTS, |chunk| {
                chunk.packets().for_each(|packet| check.frame(packet.data));
            });
        }
        drain(&mut capture, |chunk| chunk.packets().for_each(|packet| check.frame(packet.data)));
        let (report, account, reading) = (check.finish(), capture.stats().unwrap(), reading(&capture));
        assert_closed(&account);
        let total = account.total();
        let told = format!("{source:?}: {total:?} {report:?} {reading:?}");
        assert_eq!(
            (report.total.duplicated, report.total.lost, total.lost, total.errors),
            (0, 0, 0, 0),
            "{told}"
        );
        assert_eq!(reading.total().packets, total.seen, "{told}");
        assert_eq!(packets(&reading, "odd"), [COUNT / 2; 2], "{told}");
        // The last exchange was for these.
        let [even, _] = packets(&reading, "even");
        assert_eq!(even + reading.replaced.packets, COUNT / 2, "{told}");
        assert!(capture.interfaces()[0].filter.is_none());
    });
}

/// A datagram of a kind and a flow, which are in its source port, for a port of the host.
fn datagram(pair: &Pair, kind: u8, flow: u8) -> Vec<u8> {
    let mut ip = [0x45, 0, 0, 46, 0, 0, 0, 0, 64, 17, 0, 0, 10, 77, 0, 1, 10, 77, 0, 2];
    let sum: u32 = ip.chunks(2).map(|pair| u32::from(pair[0]) << 8 | u32::from(pair[1])).sum();
    let checksum = !u16::try_from((sum & 0xffff) + (sum >> 16)).expect("no more is carried");
    ip[10..12].copy_from_slice(&checksum.to_be_bytes());
    [&pair.rx.mac[..], &pair.tx.mac, &[8, 0], &ip, &[kind, flow, 0, 9, 0, 26, 0, 0], &[kind; 18]].concat()
}

/// Which kind a datagram is of.
fn kind(frame: &[u8]) -> Option<u8> {
    (frame.len() == 60 && frame[23] == 17).then(|| frame[59])
}

/// How many there are of each kind.
fn of_each(kinds: &[u8]) -> [usize; 5] {
    [1, 2, 3, 4, 5].map(|one| kinds.iter().filter(|kind| **kind == one).count())
}

/// What is captured and what becomes of a packet are two things.
#[root_test]
fn root_a_packet_is_captured_or_not_and_goes_on_or_not() {
    let sources = [
        (SourceChoice::Tc, Direction::In),
        (SourceChoice::Xdp, Direction::In),
        (SourceChoice::XdpTc, Direction::Both),
    ];
    for (source, direction) in sources {
        let network = Network::new(Veth::default().ipv4()).unwrap();
        let pair = network.pair();
        let from = |kind: u16| Filter::new(format!("udp src portrange {}-{}", kind << 8, kind << 8 | 255));
        let with = |capture, fate| Action::from(fate).capture(capture);
        let learn = Learn::new(Fate::Bounce, Duration::from_secs(60)).capture();
        let rules = Rules::new()
            .rule("first", from(1), with(CaptureAction::First(2), Fate::Pass))
            .rule("third", from(2), with(CaptureAction::Sample(3), Fate::Bounce))
            .rule("block", from(3), with(CaptureAction::Ignore, Fate::Block))
            .rule("learn", from(4), Action::from(Fate::Pass).learn(learn))
            .rule("all", Filter::new("udp"), with(CaptureAction::Capture, Fate::Pass));
        // Six of each kind, of two flows.
        let frames: Vec<_> =
            (1..=5).flat_map(|kind| (0..6).map(move |at| datagram(pair, kind, at % 2))).collect();
        let got = Arc::new(Mutex::new(Vec::new()));
        let theirs = Arc::clone(&got);
        let sink = UdpSink::start(&pair.rx, 9, move |data, _| theirs.lock().unwrap().push(data[0])).unwrap();
        let mut back = network.tx().run(|| {
            let builder = crate::common::capture().interface(&pair.tx.name);
            // Without a program there, veth does not wake this end for what XDP sends back (veth_xdp_flush).
            builder.source(SourceChoice::Xdp).open().unwrap()
        });
        let mut taken = Vec::new();
        network.rx().run(|| {
            let mut capture =
                on_rx(&network).source(source).direction(direction).rules(rules).open().unwrap();
            let sender = FrameSender::new(&pair.tx).unwrap();
            on_one_processor(|| sender.send_frames(&frames).unwrap());
            let mut look = |chunk: &Chunk| taken.extend(chunk.packets().filter_map(|one| kind(one.data)));
            take(&mut capture, 30, &mut look);
            drain(&mut capture, |chunk| look(&chunk));
            let (account, reading) = (capture.stats().unwrap(), reading(&capture));
            assert_closed(&account);
            let total = account.total();
            let told = format!("{source:?}: {total:?} {reading:?}");
            assert_eq!(reading.total().packets, total.seen, "{told}");
            let of = ["first", "third", "block", "learn", "all"].map(|name| packets(&reading, name));
            assert_eq!(of, [[6, 4], [6, 2], [6, 0], [2, 0], [6, 6]], "{told}");
            assert_eq!(reading.rules[3].learned.packets, 4, "{told}");
        });
        assert_eq!(of_each(&taken), [4, 2, 0, 4, 6], "{source:?}");
        let mut returned = Vec::new();
        network.tx().run(|| {
            let mut look = |chunk: &Chunk| returned.extend(chunk.packets().filter_map(|one| kind(one.data)));
            take(&mut back, 10, &mut look);
            drain(&mut back, |chunk| look(&chunk));
        });
        assert_eq!(of_each(&returned), [0, 6, 0, 4, 0], "{source:?}");
        sink.stop();
        assert_eq!(of_each(&got.lock().unwrap()), [6, 0, 0, 2, 6], "{source:?}");
    }
}

/// af_packet has only copies; it asks the rules itself, and so does `any`, which saves packets with another header.
#[root_test]
fn root_copies_are_captured_by_rules_too() {
    for any in [false, true] {
        let network = Network::new(Veth::default().ipv4()).unwrap();
        let pair = network.pair();
        let from = |kind: u16| Filter::new(format!("udp src portrange {}-{}", kind << 8, kind << 8 | 255));
        let with = |capture| Action::from(Fate::Pass).capture(capture);
        let learn = Learn::new(Fate::Pass, Duration::from_secs(60)).capture();
        let rules = Rules::new()
            .rule("first", from(1), with(CaptureAction::First(2)))
            .rule("third", from(2), with(CaptureAction::Sample(3)))
            .rule("learn", from(3), Action::from(Fate::Pass).learn(learn))
            .rule("all", from(4), with(CaptureAction::Capture));
        let frames: Vec<_> =
            (1..=5).flat_map(|kind| (0..6).map(move |at| datagram(pair, kind, at % 2))).collect();
        network.rx().run(|| {
            let builder = if any { crate::common::capture().interface("any") } else { on_rx(&network) };
            let builder = builder.source(SourceChoice::AfPacket).direction(Direction::In);
            let mut capture = builder.rules(rules).open().unwrap();
            let sender = FrameSender::new(&pair.tx).unwrap();
            on_one_processor(|| sender.send_frames(&frames).unwrap());
            let mut taken = Vec::new();
            let mut look = |chunk: &Chunk| {
                taken.extend(chunk.packets().filter_map(|packet| packet.data.last().copied()));
            };
            take(&mut capture, 30, &mut look);
            let none = Rules::new().rule("all", Filter::new(""), Fate::Pass);
            capture.replace_rules(&none).expect("they are taken");
            on_one_processor(|| sender.send_frames(&frames).unwrap());
            take(&mut capture, 60, &mut look);
            drain(&mut capture, |chunk| look(&chunk));
            assert_eq!(of_each(&taken), [4, 2, 4, 6, 0], "any {any}");
            let (account, reading) = (capture.stats().unwrap(), reading(&capture));
            assert_closed(&account);
            let total = account.total();
            assert_eq!(reading.total().packets, total.seen, "{total:?} {reading:?}");
            // With other actions it counts anew.
            assert_eq!(reading.rules[0].count.packets, 30, "{reading:?}");
            assert_eq!((reading.replaced.packets, reading.no_rule.packets), (24, 6), "{reading:?}");
            assert!(reading.rules[0].count.last > reading.replaced.last);
        });
    }
}

#[root_test]
fn root_what_rules_cannot_do_is_told() {
    let network = Network::new(Veth::default()).unwrap();
    network.rx().run(|| {
        let rules = |action: Action| Rules::new().rule("a", Filter::new("udp"), action);
        let block = || rules(Fate::Block.into());
        let pass = || rules(Action::from(Fate::Pass).capture(CaptureAction::Capture));
        let table = [
            (on_rx(&network).rules(pass()).filter(Filter::new("tcp")), "beside rules"),
            (on_rx(&network).rules(block()).source(SourceChoice::AfPacket), "try the tc source"),
            (
                on_rx(&network).rules(pass()).source(SourceChoice::Xdp).mode(Mode::Exclusive),
                "in exclusive mode",
            ),
            (crate::common::capture().interface("any").rules(block()), "try the tc source"),
            (
                crate::common::capture()
                    .interface("lo")
                    .rules(rules(Fate::Reflect("nosuch".to_owned()).into())),
                "nosuch",
            ),
        ];
        for (builder, said) in table {
            let error = builder.open().expect_err(said).to_string();
            assert!(error.contains(said), "{error}");
        }
        let mut capture = on_rx(&network).rules(pass()).open().unwrap();
        for error in [
            capture.set_filter(None).unwrap_err(),
            capture
                .replace_rules(&rules(Fate::Block.into()).rule("a", Filter::new(""), Fate::Pass))
                .unwrap_err(),
            capture
                .replace_rules(&Rules::new().rule("b", Filter::new("udp prot 7"), Fate::Pass))
                .unwrap_err(),
        ] {
            assert!(
                matches!(error, Error::Conflict { .. } | Error::Setting { .. } | Error::Filter(_)),
                "{error:?}"
            );
        }
        let names: Vec<_> = capture.rules_in_force().unwrap().into_iter().map(|rule| rule.name).collect();
        assert_eq!(names, ["a"]);
        capture.stop().unwrap();
        let mut plain = on_rx(&network).open().unwrap();
        assert!(plain.replace_rules(&pass()).unwrap_err().to_string().contains("without"));
        assert!(plain.rules().unwrap().is_empty() && plain.rules_in_force().is_none());
    });
}
