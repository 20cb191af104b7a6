//! Statistics in the kernel: the verifier takes many filters at once, and each counts what the interpreter accepts.

#[path = "steer/frames.rs"]
#[allow(dead_code, reason = "the tests of steering need the rest")]
mod frames;

use std::collections::BTreeMap;
use std::os::fd::AsFd as _;

use frames::{
    Back, GRE, ICMP, TCP, There, UDP, ethernet, in_session, ip4, ip4_with, ip6, labelled, on_ethernet,
    piece6, ports, tagged,
};

use rustix::thread::{CpuSet, sched_getcpu, sched_setaffinity};
use rustix::time::{ClockId, Timespec, clock_gettime};
use weir_bpf::filter::FilterError;
use weir_bpf::stat::{AttachPoint, By, Count, Details, Key, KeyField, MOST_FILTERS, Programs, Xdp};
use weir_bpf::writers::Driven;
use weir_filter::graph::Graph;
use weir_filter::interpret::{Interpreter, Packet};
use weir_filter::names::NoNames;
use weir_filter::set::Set;
use weir_filter::{Beside, Dialect, Filter, Options};
use weir_judge::{corpus, packets, share};
use weir_sys::netns::NetNs;
use weir_sys::{link, testrun, veth};

/// A namespace of its own, in which loading is permitted; the environment says whether it may be missing.
fn namespace() -> Option<NetNs> {
    NetNs::new().map_err(weir_skip::this_test).ok()
}

/// An interface of this thread's namespace whose driver can be asked for tags.
fn device() -> u32 {
    veth::create("one", "other").expect("a pair");
    let links = link::links().expect("interfaces");
    links.iter().find(|link| link.name == "one").expect("it is there").index
}

fn compiled(text: &str, dialect: Dialect, metadata: Beside) -> Option<Filter> {
    let options = Options {
        dialect,
        link_type: 1,
        snap_len: 65_535,
        metadata,
        swapped: false,
        others: &[],
        netmask: None,
        names: &NoNames,
    };
    weir_filter::compile(text, &options).ok()
}

fn pairs(filters: &[Filter]) -> Vec<(&Graph, &[Set])> {
    filters.iter().map(|filter| (&filter.graph, &filter.ast.sets[..])).collect()
}

/// All places of a program: in front of `device` if it is XDP.
fn places(device: u32) -> Vec<AttachPoint> {
    let from = Some(Driven { index: device, hands_on: false });
    let xdp = |fragments, tags_of| {
        AttachPoint::Xdp(Xdp { fragments, from, chosen: None, tags_of, exclusive: false })
    };
    vec![
        AttachPoint::Tc { ingress: true, egress: true },
        xdp(false, None),
        xdp(true, None),
        xdp(false, Some(device)),
        xdp(true, Some(device)),
    ]
}

#[test]
fn the_corpus_is_taken_a_crowd_at_a_time() {
    let Some(namespace) = namespace() else { return };
    namespace.run(|| {
        let texts = [(Dialect::Pcap, share(8, corpus::pcap())), (Dialect::Weir, share(2, corpus::weir()))];
        let entries = texts.into_iter().flat_map(|(dialect, entries)| {
            entries.into_iter().filter(|entry| entry.link_type == 1).map(move |entry| (dialect, entry.text))
        });
        // Names that nobody knows do not compile.
        let filters: Vec<Filter> =
            entries.filter_map(|(dialect, text)| compiled(text, dialect, Beside::All)).collect();
        let places = places(device());
        let (mut taken, mut too_many) = (0, 0);
        for (number, crowd) in filters.chunks(40).enumerate() {
            let place = &places[number % places.len()];
            match Programs::load(place, &pairs(crowd), &Details::default()) {
                Ok(_) => taken += 1,
                // A few very large filters together exceed the verifier's limits.
                Err(FilterError::Refused(error)) if [E2BIG, EFAULT].contains(&error.source.errno()) => {
                    too_many += 1
                }
                Err(error) => panic!("{place:?}: {error}"),
            }
        }
        assert!(taken > 4 * too_many, "{taken} taken, {too_many} too large");
    });
}

const E2BIG: i32 = 7;
const EFAULT: i32 = 14;

/// Runs packets through a loaded program for received ones, and returns what it counted, which is what the interpreter says.
fn counted_as_expected(loaded: &Programs, filters: &[Filter], program: &str) -> Vec<Count> {
    let received = loaded.received.as_ref().expect("it was asked for");
    let mut expected = vec![Count::default(); filters.len() + 1];
    for captured in packets::fixed(1, 400).iter().filter(|one| (54..2000).contains(&one.data.len())) {
        let data = &captured.data;
        testrun::run(received.as_fd(), data, 1).expect("the kernel takes the packet");
        let length = u32::try_from(data.len()).expect("it is short");
        let packet = Packet { data, length, ..Packet::default() };
        let accepts = |filter: &Filter| Interpreter::new(&filter.graph, &filter.ast.sets).run(&packet) != 0;
        let answers = std::iter::once(true).chain(filters.iter().map(accepts));
        for (count, _) in expected.iter_mut().zip(answers).filter(|(_, accepted)| *accepted) {
            count.packets += 1;
            count.bytes += u64::from(length);
        }
    }
    let counted = loaded.counters.read().expect("they can be read");
    let [found, sent] = [0, 1].map(|way| {
        let all = std::iter::once(counted.all).chain(counted.filters.iter().copied());
        all.map(|ways| ways[way]).collect::<Vec<Count>>()
    });
    for (number, (found, expected)) in found.iter().zip(&expected).enumerate() {
        let text = number.checked_sub(1).map_or("all", |filter| &filters[filter].text);
        assert_eq!(found, expected, "{program}: {text}");
    }
    assert!(sent.iter().all(|count| *count == Count::default()), "{program}: {sent:?}");
    expected
}

/// Filters that leave values, keys of sets and intermediate results behind them do not disturb each other.
#[test]
fn a_crowd_of_the_corpus_counts_what_the_interpreter_accepts() {
    let Some(namespace) = namespace() else { return };
    namespace.run(|| {
        let texts: Vec<&str> = share(8, corpus::pcap())
            .into_iter()
            .chain(share(3, corpus::weir()))
            .filter(|entry| entry.link_type == 1)
            .map(|entry| entry.text)
            .collect();
        let (mut crowds, mut met) = (0, 0);
        let places = [(places(device())[0], "tc"), (places(1)[1], "xdp")];
        for (crowd, (place, program)) in texts.chunks(20).zip(places.into_iter().cycle()) {
            let beside = if place.tag_is_inside() { Beside::Nothing } else { Beside::All };
            let filters: Vec<Filter> =
                crowd.iter().filter_map(|text| compiled(text, Dialect::Weir, beside)).collect();
            // A few very large filters together exceed the verifier's limits.
            let Ok(loaded) = Programs::load(&place, &pairs(&filters), &Details::default()) else { continue };
            let expected = counted_as_expected(&loaded, &filters, program);
            crowds += 1;
            met += expected[1..].iter().filter(|count| count.packets > 0).count();
        }
        assert!(crowds > 2 && met > 10, "{crowds} crowds, {met} filters matched anything");
    });
}

#[test]
fn each_filter_counts_what_the_interpreter_accepts() {
    let Some(namespace) = namespace() else { return };
    namespace.run(|| {
        let texts = ["", "tcp", "udp or icmp", "ip6", "len > 100", "arp", "ether[0] & 1 = 1", "ip[8] < 60"];
        for (place, program) in [(places(device())[0], "tc"), (places(1)[1], "xdp")] {
            let beside = if place.tag_is_inside() { Beside::Nothing } else { Beside::All };
            let filters: Vec<Filter> = (0..MOST_FILTERS)
                .map(|number| compiled(texts[number % texts.len()], Dialect::Pcap, beside).expect("valid"))
                .collect();
            let loaded = Programs::load(&place, &pairs(&filters), &Details::default()).expect("it is loaded");
            let expected = counted_as_expected(&loaded, &filters, program);
            let met = expected.iter().filter(|count| count.packets > 0).count();
            assert!(met > MOST_FILTERS / 2, "{program}: only {met} filters matched anything");
        }
    });
}

#[test]
fn every_packet_has_a_key_at_every_place() {
    let Some(namespace) = namespace() else { return };
    namespace.run(|| {
        let device = device();
        // All fields at every place, each field alone at a few.
        let alone = KeyField::ALL.map(|field| vec![field]).into_iter().enumerate();
        let combinations = alone
            .map(|(number, fields)| (fields, vec![0, 1 + number % 4]))
            .chain([(KeyField::ALL.to_vec(), (0..5).collect())]);
        for (ethernet, (fields, at)) in
            [true, false].into_iter().flat_map(|kind| combinations.clone().map(move |fields| (kind, fields)))
        {
            let by = By { fields, most: 20, ethernet };
            let details = Details { by: Some(by.clone()), sizes: true, gaps: true };
            let places = places(device);
            for place in at.into_iter().map(|number| places[number]) {
                let beside = if place.tag_is_inside() { Beside::Nothing } else { Beside::All };
                let one = [compiled("len > 70", Dialect::Pcap, beside).expect("valid")];
                for filters in [&[][..], &one] {
                    let loaded = Programs::load(&place, &pairs(filters), &details);
                    let loaded = loaded.unwrap_or_else(|error| panic!("{place:?}, {by:?}: {error}"));
                    // The kernel runs bound programs on packets of their device only.
                    if matches!(place, AttachPoint::Xdp(Xdp { tags_of: Some(_), .. })) {
                        continue;
                    }
                    let received = loaded.received.as_ref().expect("it was asked for");
                    for captured in
                        packets::fixed(1, 200).iter().filter(|one| (54..2000).contains(&one.data.len()))
                    {
                        testrun::run(received.as_fd(), &captured.data, 1)
                            .expect("the kernel takes the packet");
                    }
                    let counted = loaded.counters.read().expect("they can be read");
                    let keyed = counted.keys.iter().map(|(_, ways)| ways[0]).chain([counted.others[0]]);
                    let sum = keyed.fold(Count::default(), |sum, one| Count {
                        packets: sum.packets + one.packets,
                        bytes: sum.bytes + one.bytes,
                    });
                    let expected = counted.filters.first().unwrap_or(&counted.all)[0];
                    assert!(expected.packets > 50, "{expected:?}");
                    assert_eq!(sum, expected, "{place:?}, {by:?}");
                }
            }
        }
    });
}

#[test]
fn packets_of_a_vlan_have_one_key_whatever_their_priority() {
    let Some(namespace) = namespace() else { return };
    namespace.run(|| {
        let by = By { fields: vec![KeyField::Vlan], most: 20, ethernet: true };
        let details = Details { by: Some(by), ..Details::default() };
        for place in &places(device())[..2] {
            let loaded = Programs::load(place, &[], &details).expect("it is loaded");
            let received = loaded.received.as_ref().expect("it was asked for");
            // The priority and the DEI are no part of the ID.
            for tci in [5u16, 0x1005, 0xe005, 0xf005, 0xf000, 0xffff] {
                let mut frame = [0; 60];
                frame[12..14].copy_from_slice(&[0x81, 0]);
                frame[14..16].copy_from_slice(&tci.to_be_bytes());
                testrun::run(received.as_fd(), &frame, 1).expect("the kernel takes the packet");
            }
            let keys = loaded.counters.read().expect("they can be read").keys;
            let vlan =
                |(key, [received, _]): &(Key, [Count; 2])| (key.field(KeyField::Vlan), received.packets);
            let mut found: Vec<_> = keys.iter().map(vlan).collect();
            found.sort();
            let expected = [("0", 1), ("4095", 1), ("5", 4)];
            assert_eq!(found, expected.map(|(vlan, packets)| (Some(vlan.to_owned()), packets)), "{place:?}");
        }
    });
}

#[test]
fn a_gap_is_in_the_bucket_of_its_length() {
    let Some(namespace) = namespace() else { return };
    namespace.run(|| {
        // Gaps are between packets of one processor.
        let mut only = CpuSet::new();
        only.set(sched_getcpu());
        sched_setaffinity(None, &only).expect("this processor");
        let details = Details { gaps: true, ..Details::default() };
        let loaded = Programs::load(&places(1)[0], &[], &details).expect("it is loaded");
        let received = loaded.received.as_ref().expect("it was asked for");
        let now = || {
            let Timespec { tv_sec, tv_nsec } = clock_gettime(ClockId::Monotonic);
            u64::try_from(tv_sec * 1_000_000_000 + tv_nsec).expect("after the start")
        };
        let run = || {
            let before = now();
            testrun::run(received.as_fd(), &[7; 60], 1).expect("the kernel takes the packet");
            (before, now())
        };
        let mut last = run();
        let mut before = loaded.counters.read().expect("they can be read").spread;
        assert_eq!(before.first[0], Count { packets: 1, bytes: 60 });
        for bits in 10..27 {
            for length in [1 << bits, 3 << (bits - 1)] {
                while now() < last.1 + length {}
                let next = run();
                let after = loaded.counters.read().expect("they can be read").spread;
                let grown: Vec<_> =
                    after.gaps.iter().zip(&before.gaps).filter(|(after, before)| after != before).collect();
                let [(bucket, _)] = grown[..] else { panic!("one gap: {grown:?}") };
                let (least, most) = (next.0 - last.1, next.1 - last.0);
                assert!(bucket.from <= most && bucket.to >= least, "{least} to {most}: {bucket:?}");
                (last, before) = (next, after);
            }
        }
        let gaps = before.gaps.iter().map(|bucket| bucket.counts[0].packets).sum::<u64>();
        assert_eq!((gaps, before.first[0].packets), (34, 1));
    });
}

/// Frames, and their fields in the order of [`KeyField::ALL`].
fn frames_with_fields() -> Vec<(Vec<u8>, [&'static str; 7])> {
    let udp = |way| ip4([1, 2], way, UDP, (7, 0), &ports([5353, 53], way, b"data"));
    let six = |next, payload: &[u8]| on_ethernet(There, &ip6([1, 2], There, next, payload));
    let four = |protocol, place| {
        on_ethernet(There, &ip4([1, 2], There, protocol, (7, place), &ports([300, 4000], There, b"data")))
    };
    let options = ip4_with(&[1; 8], [1, 2], There, TCP, (7, 0x4000), &ports([8, 9], There, b"data"));
    let cut = |frame: Vec<u8>, length: usize| frame[..length].to_vec();
    let first = piece6(UDP, 1, 1, &ports([5353, 53], There, b"data"));
    let later = piece6(UDP, 1, 8, &ports([5353, 53], There, b"data"));
    let hop_by_hop = [&[TCP, 0, 1, 4, 0, 0, 0, 0][..], &ports([3, 2], There, b"data")].concat();
    vec![
        (on_ethernet(There, &udp(There)), ["10.0.0.1", "5353", "10.0.0.2", "53", "53", "17", "-"]),
        (on_ethernet(Back, &udp(Back)), ["10.0.0.2", "53", "10.0.0.1", "5353", "53", "17", "-"]),
        (on_ethernet(There, &options), ["10.0.0.1", "8", "10.0.0.2", "9", "8", "6", "-"]),
        (six(TCP, &ports([7, 9], There, b"data")), ["fd00::1", "7", "fd00::2", "9", "7", "6", "-"]),
        (six(UDP, &ports([2, 2], There, b"data")), ["fd00::1", "2", "fd00::2", "2", "2", "17", "-"]),
        (six(0, &hop_by_hop), ["fd00::1", "3", "fd00::2", "2", "2", "6", "-"]),
        (six(44, &first), ["fd00::1", "5353", "fd00::2", "53", "53", "17", "-"]),
        (six(44, &later), ["fd00::1", "-", "fd00::2", "-", "-", "17", "-"]),
        (cut(six(UDP, &ports([7, 9], There, b"")), 57), ["fd00::1", "-", "fd00::2", "-", "-", "17", "-"]),
        (four(33, 0), ["10.0.0.1", "300", "10.0.0.2", "4000", "300", "33", "-"]),
        (four(132, 0), ["10.0.0.1", "300", "10.0.0.2", "4000", "300", "132", "-"]),
        (four(136, 0), ["10.0.0.1", "300", "10.0.0.2", "4000", "300", "136", "-"]),
        (four(ICMP, 0), ["10.0.0.1", "-", "10.0.0.2", "-", "-", "1", "-"]),
        (four(GRE, 0), ["10.0.0.1", "-", "10.0.0.2", "-", "-", "47", "-"]),
        (four(UDP, 0x2000), ["10.0.0.1", "300", "10.0.0.2", "4000", "300", "17", "-"]),
        (four(UDP, 1), ["10.0.0.1", "-", "10.0.0.2", "-", "-", "17", "-"]),
        (cut(four(UDP, 0), 37), ["10.0.0.1", "-", "10.0.0.2", "-", "-", "17", "-"]),
        (cut(four(UDP, 0), 38), ["10.0.0.1", "300", "10.0.0.2", "4000", "300", "17", "-"]),
        (tagged(0x88a8, 0xf007, &four(ICMP, 0)), ["10.0.0.1", "-", "10.0.0.2", "-", "-", "1", "7"]),
        (
            tagged(0x8100, 9, &tagged(0x8100, 8, &four(TCP, 0))),
            ["10.0.0.1", "300", "10.0.0.2", "4000", "300", "6", "9"],
        ),
        (
            tagged(0x9100, 4095, &labelled(2, &six(ICMP, b"data"))),
            ["fd00::1", "-", "fd00::2", "-", "-", "1", "4095"],
        ),
        (
            in_session(&on_ethernet(There, &udp(There))),
            ["10.0.0.1", "5353", "10.0.0.2", "53", "53", "17", "-"],
        ),
        (ethernet(There, 0x88b5, &[0x45; 46]), ["-"; 7]),
    ]
}

#[test]
fn a_key_has_the_fields_that_were_asked_for() {
    let Some(namespace) = namespace() else { return };
    namespace.run(|| {
        let places = places(device());
        let some = [KeyField::Source, KeyField::Port, KeyField::Vlan].to_vec();
        let combinations = KeyField::ALL.map(|field| vec![field]).into_iter();
        for fields in combinations.chain([some, KeyField::ALL.to_vec()]) {
            let by = By { fields: fields.clone(), most: 40, ethernet: true };
            let details = Details { by: Some(by), ..Details::default() };
            for place in &places[..2] {
                let loaded = Programs::load(place, &[], &details).expect("it is loaded");
                let received = loaded.received.as_ref().expect("it was asked for");
                let mut expected: BTreeMap<Vec<String>, Count> = BTreeMap::new();
                for (frame, values) in frames_with_fields() {
                    testrun::run(received.as_fd(), &frame, 1).expect("the kernel takes the packet");
                    let is_wanted = |(field, _): &(KeyField, &str)| fields.contains(field);
                    let key = KeyField::ALL.into_iter().zip(values).filter(is_wanted);
                    let count = expected.entry(key.map(|(_, value)| value.to_owned()).collect()).or_default();
                    count.packets += 1;
                    count.bytes += frame.len() as u64;
                }
                let counted = loaded.counters.read().expect("they can be read");
                let text = |key: &Key| {
                    let wanted = KeyField::ALL.into_iter().filter(|field| fields.contains(field));
                    wanted.map(|field| key.field(field).unwrap_or_else(|| "-".to_owned())).collect::<Vec<_>>()
                };
                let found: Vec<_> = counted.keys.iter().map(|(key, ways)| (text(key), ways[0])).collect();
                assert_eq!(found.len(), expected.len(), "{place:?}, {fields:?}: {found:?}");
                assert_eq!(found.into_iter().collect::<BTreeMap<_, _>>(), expected, "{place:?}, {fields:?}");
                // What was not asked for is in no key.
                let others = KeyField::ALL.into_iter().filter(|field| !fields.contains(field));
                let has = |field| counted.keys.iter().any(|(key, _)| key.field(field).is_some());
                assert_eq!(others.filter(|&field| has(field)).count(), 0, "{place:?}, {fields:?}");
                assert_eq!(counted.others, [Count::default(); 2]);
            }
        }
    });
}
