//! Rules in the kernel: the verifier takes all their tables, and each packet is counted for the rule that a list finds.

#[path = "steer/frames.rs"]
#[allow(dead_code, reason = "the tests of steering need the rest")]
mod frames;
#[path = "rules/stripped.rs"]
mod stripped;

use std::fs;
use std::net::IpAddr;
use std::os::fd::{AsFd as _, BorrowedFd};
use std::thread::sleep;
use std::time::{Duration, Instant};

use frames::{Back, TCP, There, UDP, ethernet, ip4, on_ethernet, ports, tagged};
use stripped::Stripper;
use weir_bpf::rules::{Besides, Fate, Logging, Places, Received, Rule, RuleCount, Rules, Settings};
use weir_classify::{Condition, Direction, Directions, Fields, Kind, Kinds, Prefix, Tag, Tags};
use weir_filter::graph::Graph;
use weir_filter::interpret::{Interpreter, Metadata, Packet};
use weir_filter::regions::{Region, regions};
use weir_filter::{Beside, Dialect, Filter, Options};
use weir_judge::choices::Choices;
use weir_judge::compiled::options;
use weir_judge::expressions::{Words, expression};
use weir_judge::packets;
use weir_sys::clsact::Clsact;
use weir_sys::netns::NetNs;
use weir_sys::packet::Sender;
use weir_sys::testrun;
use weir_sys::veth;

const LIMIT: usize = 256 << 20;

/// Rules for received packets by XDP, and for sent ones.
fn by_xdp(fragments: bool) -> Places {
    Places { received: Some(Received::Xdp { fragments, interface: None }), sent: true, back: None }
}

/// Rules by tc, for received packets.
const BY_TC: Places = Places { received: Some(Received::Tc), sent: false, back: None };

/// Frames of all kinds, and some that are cut.
fn frames() -> Vec<Vec<u8>> {
    let whole: Vec<Vec<u8>> = packets::fixed(1, 1500).into_iter().map(|packet| packet.data).collect();
    let cut = whole
        .iter()
        .step_by(7)
        .enumerate()
        .map(|(number, frame)| frame[..frame.len().min(14 + number % 60)].to_vec());
    let cut: Vec<_> = cut.collect();
    [whole, cut].concat().into_iter().filter(|frame| is_taken(frame, true)).collect()
}

/// The kernel takes no frame for a test run without an Ethernet header, or of more than a page; nor, but for XDP, one of IP without
/// IP's header.
fn is_taken(frame: &[u8], xdp: bool) -> bool {
    let least = match frame.get(12..14) {
        Some([0x08, 0x00]) if !xdp => 34,
        Some([0x86, 0xdd]) if !xdp => 54,
        _ => 14,
    };
    (least..3000).contains(&frame.len())
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
    let directions = match choices.one_in(3) {
        true => Directions::of(choices.pick(&[Direction::Received, Direction::Received, Direction::Sent])),
        false => Directions::ALL,
    };
    let tags = choices.one_in(3).then(|| match choices.pick(&fields.tags) {
        Tag::Of(id) if choices.one_in(2) => Tags::Of(id..=id + choices.pick(&[0, 1, 1000])),
        Tag::None if fields.tags[0] == Tag::None => Tags::None,
        _ => Tags::Any,
    });
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
        directions,
        tags,
        source: prefix(choices, fields.addresses[0]),
        destination: prefix(choices, fields.addresses[1]),
        source_ports: ports(choices, fields.ports[0]),
        destination_ports: ports(choices, fields.ports[1]),
    }
}

/// Conditions about one field each, so that all others have no tables.
fn of_one_field() -> Vec<Vec<Condition>> {
    let host = Prefix::new([10, 1, 2, 3].into(), 32);
    let tagged = Condition { tags: Some(Tags::Any), ..Condition::ALL };
    vec![
        Vec::new(),
        vec![Condition::ALL],
        vec![Condition { kinds: Kinds::of_protocol(6), ..Condition::ALL }],
        vec![Condition { directions: Directions::of(Direction::Sent), ..Condition::ALL }],
        vec![Condition { tags: Some(Tags::None), ..Condition::ALL }],
        vec![Condition { tags: Some(Tags::Of(5..=7)), ..Condition::ALL }, tagged],
        vec![Condition { source: host, ..Condition::ALL }],
        vec![Condition { destination: host, ..Condition::ALL }],
        vec![Condition { source_ports: Some(53..=53), ..Condition::ALL }],
        vec![Condition { destination_ports: Some(53..=443), ..Condition::ALL }],
    ]
}

const FATES: [Fate; 4] = [Fate::Pass, Fate::Block, Fate::Bounce, Fate::Reflect(1)];

/// Counts all frames in the kernel, and by the conditions.
fn compare(conditions: &[Condition], frames: &[Vec<u8>], places: Places) -> usize {
    let nothing = Graph::new(0);
    let regions: Vec<[Region; 1]> =
        conditions.iter().map(|condition| [Region { condition: condition.clone(), exact: true }]).collect();
    let rules: Vec<Rule<'_>> = (regions.iter().zip(FATES.into_iter().cycle()))
        .map(|(regions, fate)| Rule { filter: (&nothing, &[]), regions, fate, besides: Besides::default() })
        .collect();
    let first = |frame: &[u8], sent| {
        let direction = Some(if sent { Direction::Sent } else { Direction::Received });
        let fields = Fields { direction, ..Fields::of(frame) };
        conditions.iter().position(|one| one.holds(&fields))
    };
    judge(&rules, frames, places, &first)
}

/// What a program returns for a fate.
fn action(fate: Fate, xdp: bool) -> u32 {
    match fate {
        Fate::Pass => {
            if xdp {
                2
            } else {
                u32::MAX
            }
        }
        Fate::Block => {
            if xdp {
                1
            } else {
                2
            }
        }
        Fate::Bounce => {
            if xdp {
                3
            } else {
                7
            }
        }
        Fate::Reflect(_) => {
            if xdp {
                4
            } else {
                7
            }
        }
    }
}

/// The programs of rules, and whether their packets are sent.
fn programs(rules: &Rules) -> impl Iterator<Item = (BorrowedFd<'_>, bool)> {
    let received = rules.received.iter().map(|program| (program.as_fd(), false));
    received.chain(rules.sent.iter().map(|program| (program.as_fd(), true)))
}

/// Counts all frames in the kernel, and with a list, which knows whether a frame is sent.
fn judge(
    rules: &[Rule<'_>],
    frames: &[Vec<u8>],
    places: Places,
    list: &dyn Fn(&[u8], bool) -> Option<usize>,
) -> usize {
    let loaded = Rules::load(rules, places, LIMIT).unwrap_or_else(|error| panic!("{error}"));
    let (mut expected, mut all) = (vec![0; rules.len() + 1], 0);
    let stripper = Stripper::new();
    for (program, sent) in programs(&loaded) {
        let xdp = !sent && places != BY_TC;
        if !xdp {
            stripper.before(program);
        }
        for frame in frames.iter().filter(|frame| is_taken(frame, xdp)) {
            all += frame.len() as u64;
            let first = list(frame, sent);
            expected[first.unwrap_or(rules.len())] += 1;
            let fate = first.map_or(Fate::Pass, |rule| rules[rule].fate);
            let (answer, bytes) = testrun::rewrite(program, frame, frame.len()).expect("it runs");
            assert_eq!(answer.value, action(fate, xdp), "{first:?}, sent {sent}: {frame:x?}");
            let turned = [&frame[6..12], &frame[..6], &frame[12..]].concat();
            assert_eq!(&bytes, if fate == Fate::Bounce { &turned } else { frame }, "{first:?}, sent {sent}");
            if let Some(answer) = Some(&stripper).filter(|_| !xdp).and_then(|stripper| stripper.run(frame)) {
                assert_eq!(answer, action(fate, xdp), "{first:?}, sent {sent}, a tag beside: {frame:x?}");
                expected[first.unwrap_or(rules.len())] += 1;
                all += frame.len() as u64;
            }
        }
    }
    let counts = loaded.counters.counts().expect("counters");
    let packets: Vec<u64> = counts.iter().map(|count| count.packets).collect();
    assert_eq!(packets, expected);
    let bytes: u64 = counts.iter().map(|count| count.bytes).sum();
    assert_eq!(bytes, all);
    assert!(counts.iter().all(|count| (count.last > 0) == (count.packets > 0)), "{counts:?}");
    expected.iter().filter(|count| **count > 0).count()
}

#[test]
fn root_each_packet_is_counted_for_the_rule_that_a_list_finds() {
    let Some(namespace) = NetNs::new().map_err(weir_skip::this_test).ok() else { return };
    let frames = frames();
    let received = Some(Direction::Received);
    let fields: Vec<Fields> =
        frames.iter().map(|frame| Fields { direction: received, ..Fields::of(frame) }).collect();
    namespace.run(|| {
        for (conditions, places) in of_one_field().iter().zip([by_xdp(false), BY_TC].into_iter().cycle()) {
            compare(conditions, &frames, places);
        }
        let places = [by_xdp(true), BY_TC, by_xdp(false), by_xdp(true)];
        for (count, places) in [40, 65, 1000, 5000].into_iter().zip(places) {
            let mut choices = Choices::seeded(count as u64);
            // What holds for many packets would leave none to the conditions behind it.
            let is_rare = |one: &Condition| fields.iter().filter(|fields| one.holds(fields)).count() < 20;
            let mut one = || {
                let about = fields[usize::from(choices.half()) % fields.len()];
                condition(&mut choices, &about)
            };
            let conditions = std::iter::repeat_with(&mut one).filter(is_rare).take(count).collect::<Vec<_>>();
            let met = compare(&conditions, &frames, places);
            assert!(met > 25, "{met} rules are met");
        }
    });
}

fn compiled(text: &str) -> Option<Filter> {
    let options = Options { metadata: Beside::All, ..options(Dialect::Weir, 1) };
    weir_filter::compile(text, &options).ok()
}

fn accepts(interpreter: &Interpreter<'_>, frame: &[u8], sent: bool) -> bool {
    let length = u32::try_from(frame.len()).expect("a frame is short");
    interpreter.run(&Packet { data: frame, length, meta: Metadata::of_direction(Some(sent)) }) != 0
}

/// Rules that leave much to the next ones, then others that fields decide, and any.
const TEXTS: [&str; 14] = [
    "outbound and udp port 443",
    "inbound and tcp port 53",
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

/// A random expression, in which often are terms that are about no address, port or protocol, and that fields decide all the same.
fn random(choices: &mut Choices<'_>) -> String {
    const TERMS: [&str; 18] = [
        "inbound",
        "outbound",
        "not inbound",
        "vlan",
        "not vlan",
        "vlan 5",
        "vlan 7 and vlan 5",
        "vlan in {5-7, 100}",
        "(vlan 5 or inbound)",
        "not (inbound and vlan)",
        "not (vlan or outbound)",
        "not (not vlan or ip6)",
        "not (outbound or udp)",
        "not (inbound and tcp)",
        "(outbound or tcp)",
        "(inbound and ip or outbound and udp)",
        "not (not outbound)",
        "(inbound or outbound)",
    ];
    let text = expression(Words::Weir, choices);
    let term = choices.pick(&TERMS);
    match choices.below(6) {
        0 => text,
        1 => format!("{term} or {text}"),
        2 => format!("{term} and not ({text})"),
        3 => format!("{term} and {} and ({text})", choices.pick(&TERMS)),
        _ => format!("{term} and ({text})"),
    }
}

#[test]
fn root_hundreds_of_rules_ask_for_directions_and_vlan_tags_without_filters() {
    let Some(namespace) = NetNs::new().map_err(weir_skip::this_test).ok() else { return };
    let text = |rule: u16| {
        let port = 1000 + rule;
        match rule % 6 {
            0 => format!("inbound and tcp dst port {port}"),
            1 => format!("outbound and udp port {port}"),
            2 => format!("vlan {} and udp", 500 + rule),
            3 => format!("not vlan and udp dst port {port}"),
            4 => format!("vlan and inbound and udp dst port {port}"),
            _ => format!("not inbound and src net 10.0.0.0/24 and tcp dst port {}", port - 5),
        }
    };
    let texts: Vec<String> = (0..500).map(text).collect();
    let filters: Vec<Filter> = texts.iter().map(|text| compiled(text).expect("valid")).collect();
    let regions: Vec<Vec<Region>> = filters.iter().map(|filter| regions(&filter.ast)).collect();
    let unsure = texts.iter().zip(&regions).find(|(_, regions)| regions.iter().any(|region| !region.exact));
    assert_eq!(unsure, None, "it needs a filter");
    let rules: Vec<Rule<'_>> = (filters.iter().zip(&regions).zip(FATES.into_iter().cycle()))
        .map(|((filter, regions), fate)| Rule {
            filter: (&filter.graph, &filter.ast.sets),
            regions,
            fate,
            besides: Besides::default(),
        })
        .collect();
    let interpreters: Vec<Interpreter<'_>> =
        filters.iter().map(|filter| Interpreter::new(&filter.graph, &filter.ast.sets)).collect();
    let frame = |(protocol, port)| {
        on_ethernet(There, &ip4([1, 2], There, protocol, (1, 0), &ports([9, port], There, &[0; 20])))
    };
    let numbers = || (0..520).step_by(12);
    let plain = numbers()
        .flat_map(|rule| [(TCP, 1000 + rule), (UDP, 1001 + rule), (UDP, 1003 + rule), (UDP, 1002 + rule)])
        .map(frame);
    let in_vlan = numbers().flat_map(|rule| {
        let one = tagged(0x8100, 0xe000 | (502 + rule), &frame((UDP, 1003 + rule)));
        let inner = tagged(0x88a8, 7, &one);
        [tagged(0x8100, 4095, &inner), inner, tagged(0x8100, 0, &frame((UDP, 1004 + rule))), one]
    });
    let frames: Vec<Vec<u8>> = plain.chain(in_vlan).collect();
    let first =
        |frame: &[u8], sent| interpreters.iter().position(|interpreter| accepts(interpreter, frame, sent));
    let met = namespace.run(|| judge(&rules, &frames, by_xdp(false), &first));
    assert!(met > 200, "{met} rules are met");
}

#[test]
fn root_filters_decide_what_fields_do_not() {
    let Some(namespace) = NetNs::new().map_err(weir_skip::this_test).ok() else { return };
    let packets = packets::fixed(1, 1500);
    // Where headers are cut, fields and filters differ.
    let whole = packets.into_iter().filter(|packet| packet.length as usize == packet.data.len());
    let frames: Vec<Vec<u8>> = whole.map(|packet| packet.data).filter(|data| is_taken(data, true)).collect();
    // What accepts many packets would leave none to the rules behind it.
    let is_rare = |filter: &Filter| {
        let interpreter = Interpreter::new(&filter.graph, &filter.ast.sets);
        let accepted = |sent| frames.iter().filter(|frame| accepts(&interpreter, frame, sent)).count();
        (1..200).contains(&(accepted(false) + accepted(true)))
    };
    let random = (0..).map(|seed| random(&mut Choices::seeded(seed)));
    let random = random.filter_map(|text| compiled(&text)).filter(is_rare).take(40);
    let filters: Vec<Filter> = TEXTS.iter().filter_map(|text| compiled(text)).chain(random).collect();
    let interpreters: Vec<Interpreter<'_>> =
        filters.iter().map(|filter| Interpreter::new(&filter.graph, &filter.ast.sets)).collect();
    let regions: Vec<Vec<Region>> = filters.iter().map(|filter| regions(&filter.ast)).collect();
    let all: Vec<usize> = (0..filters.len()).collect();
    // The last rules come first, or few packets would get to them.
    let turned: Vec<usize> = all.iter().rev().copied().collect();
    let received = Places { sent: false, ..by_xdp(true) };
    for (order, places) in [
        // Of which no field decides anything.
        (&all[..1], BY_TC),
        (&all[..TEXTS.len()], BY_TC),
        (&turned[turned.len() - 34..], by_xdp(false)),
        (&turned, received),
    ] {
        let rules: Vec<Rule<'_>> = (order.iter().zip(FATES.into_iter().cycle()))
            .map(|(&one, fate)| {
                let filter = &filters[one];
                Rule {
                    filter: (&filter.graph, &filter.ast.sets),
                    regions: &regions[one],
                    fate,
                    besides: Besides::default(),
                }
            })
            .collect();
        let first =
            |frame: &[u8], sent| order.iter().position(|&one| accepts(&interpreters[one], frame, sent));
        let met = namespace.run(|| judge(&rules, &frames, places, &first));
        assert!(met >= order.len().div_ceil(3), "{met} rules are met");
    }
}

/// Calls `test` in a namespace of its own with a pair of interfaces, which nobody else uses, and the indices of both.
fn with_pair(test: impl FnOnce([u32; 2]) + Send) {
    let Some(namespace) = NetNs::new().map_err(weir_skip::this_test).ok() else { return };
    namespace.run(|| {
        // Without IPv6 there are no neighbours to look for. A kernel without it has no such file.
        let _absent = fs::write("/proc/sys/net/ipv6/conf/default/disable_ipv6", "1");
        veth::create_down("one", "other").expect("a pair");
        test(veth::bring_up(["one", "other"]).expect("they come up").map(|link| link.index));
    });
}

#[test]
fn root_a_packet_that_goes_back_or_elsewhere_meets_no_rule_again() {
    with_pair(|[one, other]| {
        let texts = [
            "outbound and vlan 5",
            // The kernel has taken the tag out of the packet by then.
            "inbound and vlan 5 and udp port 53",
            "udp port 56",
            "ether dst 02:00:00:00:00:01 and udp port 57 and inbound",
            "udp port 58 and outbound",
            "udp and inbound",
        ];
        let fates = [Fate::Pass, Fate::Block, Fate::Bounce, Fate::Bounce, Fate::Reflect(other), Fate::Pass];
        let filters: Vec<Filter> = texts.iter().map(|text| compiled(text).expect("valid")).collect();
        let regions: Vec<Vec<Region>> = filters.iter().map(|filter| regions(&filter.ast)).collect();
        let rules: Vec<Rule<'_>> = (filters.iter().zip(&regions).zip(fates))
            .map(|((filter, regions), fate)| Rule {
                filter: (&filter.graph, &filter.ast.sets),
                regions,
                fate,
                besides: Besides::default(),
            })
            .collect();
        let places = Places { received: Some(Received::Tc), sent: true, back: None };
        let log = Some(Logging { bytes: 1 << 16, snap: 60, others: true });
        let settings = Settings { log, ..Settings::new(LIMIT) };
        let loaded = Rules::load_with(&rules, places, &settings).expect("it loads");
        let programs =
            [&loaded.received, &loaded.sent].map(|one| one.as_ref().map(|program| program.as_fd()));
        let _attached =
            [one, other].map(|at| Clsact::attach(programs[0], programs[1], at).expect("attached"));

        let udp =
            |way, port| on_ethernet(way, &ip4([1, 2], way, UDP, (1, 0), &ports([port, port], way, &[0; 20])));
        let sent = [
            // It leaves as rule 0 says, and is received no further than rule 1.
            (tagged(0x8100, 5, &udp(There, 53)), vec![0, 1]),
            // It does not even leave: the host gets it back.
            (udp(There, 56), vec![2]),
            // It leaves without a rule, comes back from the other end, and is received.
            (udp(There, 57), vec![6, 3, 5]),
            // It leaves through the other end instead, and is received here.
            (udp(Back, 58), vec![4, 5]),
            (ethernet(There, 0x88b5, &[0; 46]), vec![6, 6]),
        ];
        let mut expected = [(0, 0); 7];
        let sender = Sender::new(one).expect("a socket");
        for ((frame, meets), times) in sent.iter().zip(1..) {
            for _ in 0..times {
                sender.send(frame).expect("it is sent");
            }
            for &rule in meets {
                expected[rule].0 += times;
                expected[rule].1 += times * frame.len() as u64;
            }
        }
        let counts = || {
            let counts = loaded.counters.counts().expect("counters");
            counts.iter().map(|&RuleCount { packets, bytes, .. }| (packets, bytes)).collect::<Vec<_>>()
        };
        let deadline = Instant::now() + Duration::from_secs(20);
        while counts() != expected && Instant::now() < deadline {
            sleep(Duration::from_millis(1));
        }
        assert_eq!(counts(), expected);
        let mut log = loaded.log.as_ref().expect("it was asked for").reader().expect("a reader");
        let records = log.read(Duration::ZERO).expect("it is read");
        let of_rule = |rule| records.iter().filter(move |record| record.rule == Some(rule));
        assert_eq!([0, 1, 2, 3, 4, 5].map(|rule| of_rule(rule).count()), [0, 1, 2, 3, 4, 0]);
        let tagged = of_rule(1).next().expect("it is blocked");
        // 60 bytes, and the tag that was beside them.
        assert_eq!(
            (&tagged.bytes[..], tagged.length as usize, tagged.sent),
            (&sent[0].0[..64], sent[0].0.len(), false)
        );
        assert!(of_rule(4).all(|record| record.sent && record.fate == Fate::Reflect(other)));
    });
}
