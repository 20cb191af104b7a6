//! Rules in the kernel: the verifier takes all their tables, and each packet is counted for the rule that a list finds.

use std::net::IpAddr;

use weir_bpf::rules::{Fate, Rule, Rules};
use weir_classify::{Condition, Fields, Kind, Kinds, Prefix};
use weir_filter::graph::Graph;
use weir_filter::interpret::Interpreter;
use weir_filter::regions::{Region, regions};
use weir_filter::{Dialect, Filter};
use weir_judge::choices::Choices;
use weir_judge::compiled::options;
use weir_judge::expressions::{Words, expression};
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

const FATES: [Fate; 3] = [Fate::Pass, Fate::Block, Fate::Bounce];

/// Counts all frames in the kernel, and by the conditions.
fn compare(conditions: &[Condition], frames: &[Vec<u8>], fragments: bool) -> usize {
    let nothing = Graph::new(0);
    let regions: Vec<[Region; 1]> =
        conditions.iter().map(|condition| [Region { condition: condition.clone(), exact: true }]).collect();
    let rules: Vec<Rule<'_>> = (regions.iter().zip(FATES.into_iter().cycle()))
        .map(|(regions, fate)| Rule { filter: (&nothing, &[]), regions, fate })
        .collect();
    let first = |frame: &[u8]| {
        let fields = Fields::of(frame);
        conditions.iter().position(|one| one.holds(&fields))
    };
    judge(&rules, frames, fragments, &first)
}

/// Counts all frames in the kernel, and with a list.
fn judge(
    rules: &[Rule<'_>],
    frames: &[Vec<u8>],
    fragments: bool,
    list: &dyn Fn(&[u8]) -> Option<usize>,
) -> usize {
    let loaded = Rules::load(rules, fragments, LIMIT).unwrap_or_else(|error| panic!("{error}"));
    let mut expected = vec![0; rules.len() + 1];
    for frame in frames {
        let first = list(frame);
        expected[first.unwrap_or(rules.len())] += 1;
        let action = match first.map(|rule| rules[rule].fate) {
            None | Some(Fate::Pass) => 2,
            Some(Fate::Block) => 1,
            Some(Fate::Bounce) => 3,
        };
        let (answer, bytes) = testrun::rewrite(loaded.program(), frame, frame.len()).expect("it runs");
        assert_eq!(answer.value, action, "{first:?}: {frame:x?}");
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
fn root_each_packet_is_counted_for_the_rule_that_a_list_finds() {
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

fn compiled(text: &str) -> Option<Filter> {
    weir_filter::compile(text, &options(Dialect::Weir, 1)).ok()
}

/// Rules that leave much to the next ones, then others that fields decide, and any.
const TEXTS: [&str; 12] = [
    "tcp[13] = 2",
    "ether host 00:11:22:33:44:55 and greater 500",
    "ip6 and udp port 53 and not ether multicast",
    "host in {10.1.2.0/24, 2001:db8::/32} and tcp",
    "vlan 5 and tcp port 80",
    "src net 10.0.0.0/8 and dst port 443",
    "inner(udp port 53)",
    "host 10.1.2.3 or less 60",
    "udp portrange 1000-2000",
    "icmp6 or arp",
    "not ip and not ip6",
    "port in {53, 443, 5353}",
];

#[test]
fn root_filters_decide_what_fields_do_not() {
    let Some(namespace) = NetNs::new().map_err(weir_skip::this_test).ok() else { return };
    let packets = packets::fixed(1, 1500);
    // The kernel takes no frame without an Ethernet header; where headers are cut, fields and filters differ.
    let whole = packets.into_iter().filter(|packet| packet.length as usize == packet.data.len());
    let frames: Vec<Vec<u8>> = whole.map(|packet| packet.data).filter(|data| data.len() >= 14).collect();
    let length = |frame: &[u8]| u32::try_from(frame.len()).expect("a frame is short");
    let accepts = |interpreter: &Interpreter<'_>, frame: &[u8]| {
        let packet = packets::Captured { data: frame.to_vec(), length: length(frame) };
        interpreter.run(&packet.seen()) != 0
    };
    // What accepts many packets would leave none to the rules behind it.
    let is_rare = |filter: &Filter| {
        let interpreter = Interpreter::new(&filter.graph, &filter.ast.sets);
        (1..100).contains(&frames.iter().filter(|frame| accepts(&interpreter, frame)).count())
    };
    let random = (0..).map(|seed| expression(Words::Weir, &mut Choices::seeded(seed)));
    let random = random.filter_map(|text| compiled(&text)).filter(is_rare).take(70);
    let filters: Vec<Filter> = TEXTS.iter().filter_map(|text| compiled(text)).chain(random).collect();
    let interpreters: Vec<Interpreter<'_>> =
        filters.iter().map(|filter| Interpreter::new(&filter.graph, &filter.ast.sets)).collect();
    let regions: Vec<Vec<Region>> = filters.iter().map(|filter| regions(&filter.ast)).collect();
    for (count, fragments) in [(TEXTS.len(), false), (filters.len(), true)] {
        // The last rules come first, or few packets would get to them.
        let order: Vec<usize> = if fragments { (0..count).rev().collect() } else { (0..count).collect() };
        let rules: Vec<Rule<'_>> = (order.iter().zip(FATES.into_iter().cycle()))
            .map(|(&one, fate)| {
                let filter = &filters[one];
                Rule { filter: (&filter.graph, &filter.ast.sets), regions: &regions[one], fate }
            })
            .collect();
        let first = |frame: &[u8]| order.iter().position(|&one| accepts(&interpreters[one], frame));
        let met = namespace.run(|| judge(&rules, &frames, fragments, &first));
        assert!(met >= if fragments { 40 } else { 10 }, "{met} rules are met");
    }
}
