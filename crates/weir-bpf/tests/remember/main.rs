//! What rules remember in the kernel: random sets of rules decide as the reference does, packet by packet, at the same times.

mod captures;
#[path = "../steer/frames.rs"]
#[allow(dead_code, reason = "the tests of steering need the rest")]
mod frames;

use std::collections::BTreeSet;
use std::net::SocketAddr;
use std::os::fd::{AsFd as _, BorrowedFd};
use std::time::Duration;

use captures::Captures;
use frames::{Back, ICMP, TCP, There, UDP, ethernet, ip4, ip6, on_ethernet, piece6, ports, tagged};
use rustix::thread::{CpuSet, sched_getcpu, sched_setaffinity};
use weir_bpf::rules::{
    Besides, Capture, Exact, ExactRule, Fate, Learn, LimitKey, LogRecord, Logging, Over, Places, Received,
    Rule, Rules, RulesError, Settings,
};
use weir_filter::interpret::{Metadata, Packet};
use weir_filter::regions::{Region, regions};
use weir_filter::{Beside, Dialect, Options};
use weir_judge::choices::Choices;
use weir_judge::compiled::options;
use weir_judge::packets;
use weir_rules::{CaptureAction, Compiled, Decision, Evaluator, Limits, RuleSet};
use weir_sys::netns::NetNs;
use weir_sys::testrun;

const SECOND: u64 = 1_000_000_000;

/// Both directions of some flows, often, and others.
fn traffic() -> Vec<Vec<u8>> {
    let mut all = Vec::new();
    for way in [There, Back] {
        for host in [1, 3] {
            for port in [53, 443] {
                let payload = ports([1000, port], way, &[0; 12]);
                all.push(on_ethernet(way, &ip4([host, 2], way, UDP, (1, 0), &payload)));
                all.push(on_ethernet(way, &ip4([host, 2], way, TCP, (1, 0), &payload)));
                all.push(on_ethernet(way, &ip6([host, 2], way, UDP, &payload)));
            }
        }
        let plain = on_ethernet(way, &ip4([1, 2], way, UDP, (1, 0), &ports([1000, 53], way, &[0; 40])));
        all.push(tagged(0x8100, 5, &plain));
        all.push(tagged(0x88a8, 6, &tagged(0x8100, 5, &plain)));
        all.push(on_ethernet(way, &ip4([1, 2], way, ICMP, (1, 0), &[8; 30])));
        // Later fragments have no ports.
        all.push(on_ethernet(way, &ip4([1, 2], way, UDP, (1, 7), &ports([1000, 53], way, &[0; 40]))));
        all.push(on_ethernet(way, &ip6([1, 2], way, 44, &piece6(UDP, 1, 8, &[9; 40]))));
        all.push(ethernet(way, 0x88b5, &[0; 46]));
        all.push(ethernet(way, 0x0806, &[1; 46]));
    }
    let others = packets::fixed(1, 200).into_iter().filter(|one| one.length as usize == one.data.len());
    all.extend(others.map(|one| one.data).filter(|data| (60..1500).contains(&data.len())));
    all
}

/// The text of a set of rules.
fn text(choices: &mut Choices<'_>, logs: bool) -> String {
    const FILTERS: [&str; 17] = [
        "udp port 53",
        "tcp",
        "outbound and udp",
        "inbound and src host 10.0.0.1",
        "inbound and udp dst port 53 or outbound and tcp",
        "not (outbound or tcp)",
        "not (inbound and udp)",
        "outbound",
        "ip6 and greater 60",
        "vlan 5",
        "vlan 5 and udp or inbound and vlan",
        "not vlan and udp",
        "not (vlan or outbound)",
        "icmp or arp",
        "src net 10.0.0.0/8 and udp",
        "ip[8] = 64 and tcp",
        "",
    ];
    const FATES: [&str; 4] = ["pass", "block", "bounce", "reflect lo"];
    const CAPTURES: [&str; 6] = [
        "",
        "capture, ",
        "sample 1/3, ",
        "first 2 of each flow, ",
        "first 5 of each flow, ",
        "first 1 of each flow, ",
    ];
    const OVER: [&str; 6] = [
        " if over 1/s by src",
        " if over 3/s by dst",
        " if over 100/min by flow",
        " if over 5/h by flow",
        " if over 20/s by src",
        " if over 1000000000/s by dst",
    ];
    const SHORTCUTS: [&str; 6] = ["capture", "ignore", "pass", "block", "reflect lo", "bounce"];
    const TIMES: [&str; 4] = ["1ms", "700ms", "30s", "1h"];
    let count = 2 + choices.below(8);
    let over = |choices: &mut Choices<'_>| if choices.one_in(2) { choices.pick(&OVER) } else { "" };
    let rule = |choices: &mut Choices<'_>, _| {
        let filter = choices.pick(&FILTERS);
        let capture = choices.pick(&CAPTURES);
        let fate = choices.pick(&FATES);
        let fate_over = if fate == "pass" { "" } else { over(choices) };
        let learn = if choices.one_in(2) {
            let (shortcut, time) = (choices.pick(&SHORTCUTS), choices.pick(&TIMES));
            let idle = if choices.one_in(2) { " idle" } else { "" };
            let both = if choices.one_in(2) { " in both directions" } else { "" };
            format!(", learn {shortcut} for {time}{idle}{both}{}", over(choices))
        } else {
            String::new()
        };
        let log = if logs && choices.one_in(2) { format!(", log{}", over(choices)) } else { String::new() };
        if choices.one_in(3) {
            return format!("{filter} -> continue{learn}{log}\n");
        }
        format!("{filter} -> {capture}{fate}{fate_over}{learn}{log}\n")
    };
    (0..count).map(|number| rule(choices, number)).collect()
}

fn fate(of: &weir_rules::Fate) -> Fate {
    match of {
        weir_rules::Fate::Pass => Fate::Pass,
        weir_rules::Fate::Block => Fate::Block,
        weir_rules::Fate::Reflect(_) => Fate::Reflect(1),
        weir_rules::Fate::Bounce => Fate::Bounce,
    }
}

fn over(of: weir_rules::Over) -> Over {
    let by = match of.key {
        weir_rules::Key::Source => LimitKey::Source,
        weir_rules::Key::Destination => LimitKey::Destination,
        weir_rules::Key::Flow => LimitKey::Flow,
    };
    Over { packets: of.rate.packets, period: nanoseconds(of.rate.period), by }
}

fn nanoseconds(time: Duration) -> u64 {
    u64::try_from(time.as_nanos()).expect("a short time")
}

fn besides(of: &weir_rules::Actions) -> Besides {
    let learn = of.learn.as_ref().map(|learn| {
        let (capture, decided) = learn.shortcut.decisions();
        let lasting = nanoseconds(learn.lasting);
        Learn {
            fate: fate(&decided),
            capture,
            lasting,
            idle: learn.idle,
            both: learn.both,
            over: learn.over.map(over),
        }
    });
    let log_over = of.log.and_then(|log| log.over).map(over);
    let continues = of.continues;
    let capture = match of.capture {
        CaptureAction::Ignore => Capture::Ignore,
        CaptureAction::Capture => Capture::All,
        CaptureAction::Sample(every) => Capture::Sample(every),
        CaptureAction::First(most) => Capture::First(most),
    };
    Besides { continues, capture, fate_over: of.fate_over.map(over), learn, log: of.log.is_some(), log_over }
}

/// A set of rules, and what it consists of.
struct Set {
    rules: RuleSet,
    compiled: Compiled,
    regions: Vec<Vec<Region>>,
}

impl Set {
    fn new(text: &str) -> Self {
        let options = Options { metadata: Beside::All, ..options(Dialect::Weir, 1) };
        let rules = RuleSet::parse(text).unwrap_or_else(|errors| panic!("{text}: {errors:?}"));
        let compiled = rules.compile(&options).unwrap_or_else(|errors| panic!("{text}: {errors:?}"));
        let regions = compiled.filters.iter().map(|filter| regions(&filter.ast)).collect();
        Self { rules, compiled, regions }
    }

    fn load(&self, settings: &Settings) -> Rules {
        self.try_load(settings, None).unwrap_or_else(|error| panic!("{error}"))
    }

    /// Loads the rules, in front of captures if there are some.
    fn try_load(&self, settings: &Settings, captures: Option<&Captures>) -> Result<Rules, RulesError> {
        let all = self.rules.rules.iter().zip(&self.compiled.filters).zip(&self.regions);
        let rules: Vec<Rule<'_>> = all
            .map(|((rule, filter), regions)| Rule {
                filter: (&filter.graph, &filter.ast.sets),
                regions,
                fate: fate(&rule.actions.fate),
                besides: besides(&rule.actions),
            })
            .collect();
        let places = Places {
            received: Some(Received::Xdp { fragments: false, interface: None }),
            sent: true,
            back: None,
        };
        match captures {
            Some(captures) => Rules::load_before(&rules, places, settings, captures.behind()),
            None => Rules::load_with(&rules, places, settings),
        }
    }
}

/// What the program for received packets or for sent ones returns for a fate.
fn action(fate: Fate, sent: bool) -> u32 {
    match (fate, sent) {
        (Fate::Pass, false) | (Fate::Block, true) => 2,
        (Fate::Pass, true) => u32::MAX,
        (Fate::Block, false) => 1,
        (Fate::Bounce, false) => 3,
        (Fate::Reflect(_), false) => 4,
        (Fate::Bounce | Fate::Reflect(_), true) => 7,
    }
}

/// Stays on one processor, as buckets and counters of a test run are those of one packet after another; calls `test` in a namespace
/// of its own.
fn alone(test: impl FnOnce() + Send) {
    let Some(namespace) = NetNs::new().map_err(weir_skip::this_test).ok() else { return };
    namespace.run(|| {
        let mut only = CpuSet::new();
        only.set(sched_getcpu());
        sched_setaffinity(None, &only).expect("this processor");
        test();
    });
}

/// Runs a packet, and returns what the program returns.
fn run(program: Option<BorrowedFd<'_>>, frame: &[u8]) -> u32 {
    testrun::run(program.expect("it was asked for"), frame, 1).expect("the kernel takes the packet").value
}

/// What is logged of a packet.
fn logged(
    decision: &Decision,
    packet: &Packet<'_>,
    sent: bool,
    time: u64,
    logging: &Logging,
) -> Vec<LogRecord> {
    let record = |rule, fate| LogRecord {
        rule: Some(rule),
        by_learned: decision.by_learned,
        fate,
        sent,
        time,
        length: packet.length,
        bytes: packet.data[..packet.data.len().min(logging.snap as usize)].to_vec(),
    };
    let decided = fate(&decision.fate);
    let is_other = logging.others && decided != Fate::Pass;
    let decider = decision.rule.filter(|rule| is_other || decision.logged.contains(rule));
    let before = decision.logged.iter().filter(|rule| Some(**rule) != decider);
    before.map(|&rule| record(rule, Fate::Pass)).chain(decider.map(|rule| record(rule, decided))).collect()
}

#[test]
fn root_what_is_remembered_decides_as_in_the_reference() {
    alone(|| {
        let traffic = traffic();
        let (mut by_learned, mut learned, mut over, mut logs, mut continued, mut none) =
            (0, 0, 0, 0, 0, [0; 3]);
        let (mut taken, mut none_of_flows, mut until_idle) = (0, 0, 0);
        // In these there is something of everything.
        for seed in 12..24 {
            let mut choices = Choices::seeded(seed);
            let logging = Logging {
                bytes: 4 << 20,
                snap: choices.pick(&[0, 60, 100, 9000]),
                others: choices.one_in(2),
            };
            let log = choices.one_in(2).then_some(logging);
            let text = text(&mut choices, log.is_some());
            let set = Set::new(&text);
            let small = choices.one_in(3);
            let (exact, buckets, flows) = if small { (6, 5, 4) } else { (1000, 1000, 1000) };
            let settings = Settings {
                exact,
                buckets,
                flows,
                flow_idle: 5 * SECOND,
                log,
                clock_is_given: true,
                ..Settings::new(256 << 20)
            };
            let mut records = Vec::new();
            let captures = (seed % 2 == 1).then(Captures::load);
            let loaded = set.try_load(&settings, captures.as_ref()).unwrap_or_else(|error| panic!("{error}"));
            captures.iter().for_each(|captures| captures.put(&loaded));
            let limits = Limits {
                learned: exact as usize,
                buckets: buckets as usize,
                flows: flows as usize,
                idle: Duration::from_secs(5),
            };
            let mut captured = [0, 0];
            let mut beyond = vec![[0, 0]; set.rules.rules.len()];
            let mut reference = Evaluator::new(set.rules.clone(), limits);
            let programs = set.compiled.programs();
            let mut now = SECOND * 1000;
            for _ in 0..1500 {
                // In a small table, the reference finds room once a second only, and the kernel when it is told.
                let steps =
                    if small { &[0, 1000][..] } else { &[0, 1000, 1_000_000, SECOND / 3, SECOND * 2] };
                now += choices.pick(steps);
                let few = if choices.one_in(4) { traffic.len() } else { 30 };
                let frame = &traffic[choices.half() as usize % few];
                let sent = choices.one_in(2);
                loaded.memory.set_clock(now).expect("it is set");
                let program = match &captures {
                    Some(captures) => Some(captures.program(sent)),
                    None => {
                        let program = if sent { &loaded.sent } else { &loaded.received };
                        program.as_ref().map(|program| program.as_fd())
                    }
                };
                let answer = run(program, frame);
                let length = u32::try_from(frame.len()).expect("it is short");
                let packet = Packet { data: frame, length, meta: Metadata::of_direction(Some(sent)) };
                let decision: Decision = reference.decide(&programs, &packet, now);
                let context = || format!("{text}seed {seed}, sent {sent}, {decision:?}: {frame:x?}");
                assert_eq!(answer, action(fate(&decision.fate), sent), "{}", context());
                records.extend(log.iter().flat_map(|log| logged(&decision, &packet, sent, now, log)));
                captured[usize::from(!decision.capture)] += 1;
                continued += decision.continued.len();
                by_learned += u32::from(decision.by_learned);
                let learn = decision.rule.and_then(|rule| set.rules.rules[rule].actions.learn.as_ref());
                until_idle += u32::from(decision.by_learned && learn.is_some_and(|learn| learn.idle));
                learned += u32::from(decision.learned.is_some());
                let limited = |rule: &usize| set.rules.rules[*rule].actions.fate_over.is_some();
                if let Some(rule) = decision.rule.filter(limited)
                    && !decision.by_learned
                    && decision.fate != weir_rules::Fate::Pass
                {
                    beyond[rule] = [beyond[rule][0] + 1, beyond[rule][1] + u64::from(length)];
                    over += 1;
                }
            }
            let counts = loaded.counters.counts().expect("counters");
            let found: Vec<[u64; 4]> = counts
                .iter()
                .map(|count| [count.packets, count.bytes, count.learned_packets, count.learned_bytes])
                .collect();
            let expected = reference.counts().iter().map(|count| {
                let (matched, by_learned) = (count.matched, count.by_learned);
                [matched.packets, matched.bytes, by_learned.packets, by_learned.bytes]
            });
            let unmatched = reference.unmatched();
            let expected: Vec<[u64; 4]> =
                expected.chain([[unmatched.packets, unmatched.bytes, 0, 0]]).collect();
            assert_eq!(found, expected, "{text}");
            let found = counts.iter().take(beyond.len()).map(|count| [count.over_packets, count.over_bytes]);
            assert!(found.eq(beyond), "{text}");
            if let Some(captures) = &captures {
                assert_eq!(captures.counts(), captured, "{text}");
                let found = counts.iter().take(reference.counts().len()).map(|count| count.captured);
                assert!(found.eq(reference.counts().iter().map(|count| count.captured.packets)), "{text}");
                taken += captured[0];
                let flows = loaded.memory.unkept().expect("counters").flows;
                assert_eq!(flows, reference.unkept().flows, "{text}");
                none_of_flows += flows;
            }
            let (unkept, expected) = (loaded.memory.unkept().expect("counters"), reference.unkept());
            if let Some(log) = &loaded.log {
                let read = log.reader().expect("a reader").read(Duration::ZERO).expect("it is read");
                assert_eq!(read.len(), records.len(), "{text}");
                for (number, (found, expected)) in read.iter().zip(&records).enumerate() {
                    assert_eq!(found, expected, "{text}record {number}");
                }
                logs += records.len();
            }
            let unkept = [unkept.learned, unkept.no_flow, unkept.buckets];
            assert_eq!(unkept, [expected.learned, expected.no_flow, expected.buckets], "{text}");
            none = std::array::from_fn(|kind| none[kind] + unkept[kind]);
        }
        assert!(by_learned > 500 && learned > 250 && over > 150, "{by_learned}, {learned}, {over}");
        assert!(until_idle > 100, "{until_idle}");
        assert!(logs > 500 && continued > 500, "{logs}, {continued}");
        assert!(taken > 1000 && none_of_flows > 15, "{taken}, {none_of_flows}");
        assert!(none.iter().all(|&packets| packets > 15), "{none:?}");
    });
}

#[test]
fn root_rules_are_inserted_listed_and_removed_and_what_is_over_makes_room() {
    alone(|| {
        let set = Set::new("udp port 53 -> learn block for 10s if over 1/s by flow\n");
        let settings = Settings { exact: 2, buckets: 1, clock_is_given: true, ..Settings::new(256 << 20) };
        let loaded = set.load(&settings);
        let exact = loaded.memory.exact.as_ref().expect("a rule learns");
        let program = loaded.received.as_ref().map(|program| program.as_fd());
        let address = |host, port| SocketAddr::from(([10, 0, 0, host], port));
        let one = Exact { vlan: Some(5), protocol: UDP, from: address(1, 9), to: address(2, 70) };
        let frame = |host, port: u16| {
            let payload = ports([9, port], There, &[0; 12]);
            on_ethernet(There, &ip4([host, 2], There, UDP, (1, 0), &payload))
        };
        let inserted = tagged(0x8100, 0xe005, &frame(1, 70));
        let rule = ExactRule { fate: Fate::Bounce, capture: true, until: u64::MAX, idle: None };
        exact.insert(&one, &rule).expect("there is room");
        loaded.memory.set_clock(SECOND).expect("it is set");
        assert_eq!(run(program, &inserted), 3);
        assert_eq!(run(program, &frame(1, 70)), 2, "without a tag");
        let [(found, entry)] = exact.list().expect("it is read")[..] else { panic!("one rule") };
        assert_eq!((found, entry.rule, entry.by), (one, rule, None));
        assert_eq!((entry.packets, entry.bytes, entry.last), (1, inserted.len() as u64, SECOND));
        assert_eq!([53, 53, 53].map(|port| run(program, &frame(1, port))), [2, 2, 1]);
        assert_eq!([53, 53, 53].map(|port| run(program, &frame(3, port))), [2, 2, 2], "no room for a limit");
        assert_eq!(loaded.memory.unkept().expect("counters").buckets, 3);
        assert_eq!(exact.list().expect("it is read").len(), 2);
        let two = Exact { vlan: None, to: address(9, 1), ..one };
        let error = exact.insert(&two, &rule).expect_err("no room");
        assert_eq!(error.errno(), 7, "{error}");
        // The learned rule and the full bucket make room.
        loaded.memory.sweep_at(SECOND * 10).expect("it is swept");
        assert_eq!(exact.list().expect("it is read").len(), 2, "no rule is over");
        loaded.memory.sweep_at(SECOND * 11).expect("it is swept");
        assert_eq!(exact.list().expect("it is read"), [(found, entry)]);
        assert_eq!([53, 53, 53].map(|port| run(program, &frame(3, port))), [2, 2, 1]);
        let learned = exact.list().expect("it is read").into_iter().find(|(_, entry)| entry.by == Some(0));
        let (learned, entry) = learned.expect("it is there");
        let until = SECOND * 11;
        assert_eq!(entry.rule, ExactRule { fate: Fate::Block, capture: false, until, idle: None });
        assert_eq!((learned.vlan, learned.from, learned.to), (None, address(3, 9), address(2, 53)));
        assert_eq!(
            [exact.remove(&learned), exact.remove(&learned)].map(|found| found.expect("it is changed")),
            [true, false]
        );
        assert!(exact.remove(&one).expect("it is changed"));
        assert_eq!(run(program, &inserted), 2);
        let six = Exact { from: "[fd00::1]:9".parse().expect("an address"), ..one };
        assert!(exact.insert(&six, &rule).is_err(), "addresses of two kinds");
        // An exact rule of IPv6, which ends.
        let six = Exact { vlan: None, to: "[fd00::2]:70".parse().expect("an address"), ..six };
        let ends = ExactRule { until: SECOND * 2, fate: Fate::Block, capture: false, idle: None };
        exact.insert(&six, &ends).expect("there is room");
        let packet = on_ethernet(There, &ip6([1, 2], There, UDP, &ports([9, 70], There, &[0; 12])));
        let at = |time| {
            loaded.memory.set_clock(time).expect("it is set");
            run(program, &packet)
        };
        assert_eq!([SECOND, SECOND * 2].map(at), [1, 2]);
        // One that ends when it is idle.
        assert!(exact.remove(&six).expect("it is changed"));
        let idle = ExactRule { idle: Some(SECOND), ..ends };
        exact.insert(&six, &idle).expect("there is room");
        let until = || exact.get(&six).expect("it is read").map(|entry| (entry.rule.until, entry.packets));
        assert_eq!(until(), Some((SECOND * 2, 0)));
        assert_eq!([SECOND * 2 - 1, SECOND * 3 - 2, SECOND * 3].map(at), [1, 1, 1]);
        assert_eq!(until(), Some((SECOND * 4, 3)));
        loaded.memory.sweep_at(SECOND * 4 - 1).expect("it is swept");
        assert_eq!(at(SECOND * 4), 2);
        assert_eq!(until(), Some((SECOND * 4, 3)), "it is over, and not removed yet");
        loaded.memory.sweep_at(SECOND * 4).expect("it is swept");
        assert_eq!(until(), None);
        let counts = loaded.counters.counts().expect("counters");
        assert_eq!((counts[0].learned_packets, counts[1].learned_packets), (2, 5), "{counts:?}");
    });
}

#[test]
fn root_a_large_table_is_listed_and_swept_as_a_whole() {
    alone(|| {
        const RULES: u16 = 15_000;
        let set = Set::new("udp port 53 -> block\n");
        let settings = Settings { exact: RULES.into(), inserts: true, ..Settings::new(256 << 20) };
        let loaded = set.load(&settings);
        let exact = loaded.memory.exact.as_ref().expect("it was asked for");
        let of = |port| {
            let [from, to] = [(1, port), (2, 70)].map(|(host, port)| ([10, 0, 0, host], port).into());
            Exact { vlan: None, protocol: UDP, from, to }
        };
        for port in 0..RULES {
            let until = if port % 2 == 0 { SECOND } else { u64::MAX };
            let rule = ExactRule { fate: Fate::Block, capture: false, until, idle: None };
            exact.insert(&of(port), &rule).expect("there is room");
        }
        let ports = || {
            let ports: BTreeSet<u16> =
                exact.list().expect("it is read").iter().map(|(exact, _)| exact.from.port()).collect();
            ports
        };
        assert!(ports().into_iter().eq(0..RULES));
        loaded.memory.sweep_at(SECOND).expect("it is swept");
        assert!(ports().into_iter().eq((0..RULES).filter(|port| port % 2 == 1)));
    });
}

#[test]
fn root_packets_that_find_no_room_in_the_log_are_counted() {
    alone(|| {
        let set = Set::new("udp -> block, log\n");
        let logging = Logging { bytes: 1, snap: 9000, others: false };
        let loaded = set.load(&Settings { log: Some(logging), ..Settings::new(256 << 20) });
        let program = loaded.received.as_ref().map(|program| program.as_fd());
        let frame = on_ethernet(There, &ip4([1, 2], There, UDP, (1, 0), &ports([9, 53], There, &[3; 3000])));
        for _ in 0..10 {
            assert_eq!(run(program, &frame), 1);
        }
        let mut reader = loaded.log.as_ref().expect("it was asked for").reader().expect("a reader");
        let records = reader.read(Duration::ZERO).expect("it is read");
        // Six records with their headers have room in 64 KiB.
        assert_eq!((records.len(), loaded.memory.unkept().expect("counters").logged), (6, 4));
        assert!(records.iter().all(|record| record.bytes == frame && record.rule == Some(0)));
        assert!(records.windows(2).all(|pair| pair[0].time <= pair[1].time));
        assert_eq!(reader.read(Duration::ZERO).expect("it is read"), []);
        run(program, &frame);
        assert_eq!(reader.read(Duration::from_secs(20)).expect("it is read").len(), 1);
    });
}

#[test]
fn root_few_rules_continue_and_those_behind_the_one_that_decides_do_not_act() {
    alone(|| {
        let continuing = |count| "udp port 53 -> continue, log\n".repeat(count);
        let set = Set::new(&format!("{}udp -> block\n{}", continuing(15), continuing(1)));
        let logging = Logging { bytes: 1 << 16, snap: 60, others: false };
        let settings = Settings { log: Some(logging), ..Settings::new(256 << 20) };
        let loaded = set.load(&settings);
        let program = loaded.received.as_ref().map(|program| program.as_fd());
        let frame = on_ethernet(There, &ip4([1, 2], There, UDP, (1, 0), &ports([9, 53], There, &[3; 30])));
        assert_eq!(run(program, &frame), 1);
        let packets: Vec<u64> =
            loaded.counters.counts().expect("counters").iter().map(|count| count.packets).collect();
        assert_eq!(packets, [&[1; 16][..], &[0; 2]].concat());
        let mut reader = loaded.log.as_ref().expect("it was asked for").reader().expect("a reader");
        let rules: Vec<Option<usize>> =
            reader.read(Duration::ZERO).expect("it is read").iter().map(|record| record.rule).collect();
        assert_eq!(rules, (0..15).map(Some).collect::<Vec<_>>());
        let error = Set::new(&continuing(17)).try_load(&settings, None).expect_err("they are too many");
        assert!(error.to_string().starts_with("17 rules continue"), "{error}");
    });
}
