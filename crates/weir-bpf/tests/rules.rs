//! Rules in the kernel: the verifier takes all their tables, and each packet is counted for the rule that a list finds.

use std::net::IpAddr;

use weir_bpf::rules::{Fate, Rule, Rules};
use weir_classify::{Condition, Fields, Kind, Kinds, Prefix, Tables};
use weir_judge::choices::Choices;
use weir_judge::packets;
use weir_sys::netns::NetNs;
use weir_sys::testrun;

const LIMIT: usize = 256 << 20;

/// Frames of all kinds, and some that are cut.
fn frames() -> Vec<Vec<u8>> {
    let whole: Vec<Vec<u8>> = packets::fixed(1, 1500).into_iter().map(|packet| packet.data).collect();
    let cut = whole
        .iter()
        .step_by(7)
        .enumerate()
        .map(|(number, frame)| frame[..frame.len().min(14 + number % 60)].to_vec());
    let cut: Vec<_> = cut.collect();
    // The kernel takes no frame without an Ethernet header.
    [whole, cut].concat().into_iter().filter(|frame| frame.len() >= 14).collect()
}

/// A condition that a packet with these fields meets, or hardly misses.
fn condition(choices: &mut Choices<'_>, fields: &Fields) -> Condition {
    let prefix = |choices: &mut Choices<'_>, address: Option<IpAddr>| {
        let address = address.filter(|_| choices.one_in(2))?;
        let lengths = if address.is_ipv4() {
            &[0, 8, 15, 16, 17, 24, 31, 32][..]
        } else {
            &[0, 16, 20, 64, 65, 127, 128]
        };
        Prefix::new(address, choices.pick(lengths))
    };
    let ports = |choices: &mut Choices<'_>, port: Option<u16>| {
        let port = port.filter(|_| choices.one_in(2))?;
        let around = choices.pick(&[0, 1, 1000]);
        Some(port.saturating_sub(around)..=port.saturating_add(around))
    };
    let kinds = match fields.protocol.filter(|_| choices.one_in(2)) {
        Some(protocol) => Kinds::of_protocol(protocol),
        None => choices.pick(&[
            Kinds::ALL,
            Kinds::of(fields.kind),
            Kinds::of(Kind::Ipv4).or(Kinds::of(Kind::Arp)),
        ]),
    };
    Condition {
        kinds,
        source: prefix(choices, fields.addresses[0]),
        destination: prefix(choices, fields.addresses[1]),
        source_ports: ports(choices, fields.ports[0]),
        destination_ports: ports(choices, fields.ports[1]),
    }
}

/// Conditions about one field each, so that all others have no tables.
fn of_one_field() -> Vec<Vec<Condition>> {
    let host = Prefix::new([10, 1, 2, 3].into(), 32);
    vec![
        Vec::new(),
        vec![Condition::ALL],
        vec![Condition { kinds: Kinds::of_protocol(6), ..Condition::ALL }],
        vec![Condition { source: host, ..Condition::ALL }],
        vec![Condition { destination: host, ..Condition::ALL }],
        vec![Condition { source_ports: Some(53..=53), ..Condition::ALL }],
        vec![Condition { destination_ports: Some(53..=443), ..Condition::ALL }],
    ]
}

/// Counts all frames in the kernel, and with a list.
fn compare(conditions: &[Condition], frames: &[Vec<u8>], fragments: bool) -> usize {
    let tables = Tables::new(conditions, LIMIT).expect("they have room");
    let fate = |index| [Fate::Pass, Fate::Block, Fate::Bounce][index % 3];
    let rules: Vec<Rule> =
        (0..conditions.len()).map(|index| Rule { conditions: 1, fate: fate(index) }).collect();
    let loaded = Rules::load(&tables, &rules, fragments).unwrap_or_else(|error| panic!("{error}"));
    let mut expected = vec![0; conditions.len() + 1];
    for frame in frames {
        let fields = Fields::of(frame);
        let first = conditions.iter().position(|one| one.holds(&fields));
        assert_eq!(tables.find(&fields, 0), first, "{frame:x?}");
        expected[first.unwrap_or(conditions.len())] += 1;
        let action = match first.map(fate) {
            None | Some(Fate::Pass) => 2,
            Some(Fate::Block) => 1,
            Some(Fate::Bounce) => 3,
        };
        let (answer, bytes) = testrun::rewrite(loaded.program(), frame, frame.len()).expect("it runs");
        assert_eq!(answer.value, action, "{fields:?} meets {first:?}: {frame:x?}");
        let turned = [&frame[6..12], &frame[..6], &frame[12..]].concat();
        assert_eq!(&bytes, if action == 3 { &turned } else { frame }, "{first:?}");
    }
    let counts = loaded.counts().expect("counters");
    let packets: Vec<u64> = counts.iter().map(|count| count.packets).collect();
    assert_eq!(packets, expected);
    let bytes: u64 = counts.iter().map(|count| count.bytes).sum();
    assert_eq!(bytes, frames.iter().map(|frame| frame.len() as u64).sum::<u64>());
    assert!(counts.iter().all(|count| (count.last > 0) == (count.packets > 0)), "{counts:?}");
    expected.iter().filter(|count| **count > 0).count()
}

#[test]
fn each_packet_is_counted_for_the_rule_that_a_list_finds() {
    let Some(namespace) = NetNs::new().map_err(weir_skip::this_test).ok() else { return };
    let frames = frames();
    let fields: Vec<Fields> = frames.iter().map(|frame| Fields::of(frame)).collect();
    namespace.run(|| {
        for conditions in of_one_field() {
            compare(&conditions, &frames, false);
        }
        for (count, fragments) in [(40, true), (65, false), (1000, false), (10_000, true)] {
            let mut choices = Choices::seeded(count as u64);
            // What holds for many packets would leave none to the conditions behind it.
            let is_rare = |one: &Condition| fields.iter().filter(|fields| one.holds(fields)).count() < 20;
            let mut one = || {
                let about = fields[usize::from(choices.half()) % fields.len()];
                condition(&mut choices, &about)
            };
            let conditions = std::iter::repeat_with(&mut one).filter(is_rare).take(count).collect::<Vec<_>>();
            let met = compare(&conditions, &frames, fragments);
            assert!(met > 30, "{met} rules are met");
        }
    });
}
