//! What rules decide: compared with a naive list that remembers every packet, and by example.

use std::time::Duration;

use proptest::prelude::*;
use weir_filter::interpret::{Interpreter, Packet};
use weir_filter::names::NoNames;
use weir_filter::{Beside, Dialect, Filter, Options};
use weir_rules::{
    CaptureAction, Count, Decision, Evaluator, Fate, Key, Limits, Over, Programs, RuleSet, Unkept,
};

const SECOND: u64 = 1_000_000_000;

fn options() -> Options<'static> {
    Options {
        dialect: Dialect::Weir,
        link_type: 1,
        snap_len: 262_144,
        metadata: Beside::Nothing,
        swapped: false,
        others: &[],
        netmask: None,
        names: &NoNames,
    }
}

/// What a frame says, and how much of it was captured.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Sent {
    vlan: Option<u16>,
    protocol: Protocol,
    /// Last parts of the addresses, source first.
    hosts: [u8; 2],
    ports: [u16; 2],
    cut: Cut,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd)]
enum Protocol {
    Arp,
    Udp4,
    Tcp4,
    Udp6,
}

/// Where the captured bytes end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Cut {
    Whole,
    /// Behind the ports.
    Transport,
    /// Amid the ports.
    Ports,
    /// In the header of IP.
    Network,
}

/// One direction of a flow: VLAN, protocol, addresses, ports.
type Flow = (Option<u16>, Protocol, [u8; 2], [u16; 2]);

impl Sent {
    /// Returns the captured bytes, and the length of the frame.
    fn frame(&self) -> (Vec<u8>, u32) {
        let Self { vlan, protocol, hosts, ports, cut } = *self;
        let mut frame = vec![2, 0, 0, 0, 0, hosts[1], 2, 0, 0, 0, 0, hosts[0]];
        if let Some(id) = vlan {
            frame.extend([0x81, 0]);
            frame.extend(id.to_be_bytes());
        }
        let address = |host: u8| [10, 0, 0, host];
        let wide = |host: u8| [0x20, 1, 0xd, 0xb8, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, host];
        let payload = [7; 12];
        let mut transport: Vec<u8> = ports.iter().flat_map(|port| port.to_be_bytes()).collect();
        match protocol {
            Protocol::Tcp4 => transport.extend([0, 0, 0, 1, 0, 0, 0, 0, 0x50, 2, 0, 9, 0, 0, 0, 0]),
            _ => transport.extend([0, 20, 0, 0]),
        }
        transport.extend(payload);
        let size = u8::try_from(transport.len()).expect("a short packet");
        let network = match protocol {
            Protocol::Arp => {
                frame.extend([8, 6]);
                let head = [0, 1, 8, 0, 6, 4, 0, 1, 2, 0, 0, 0, 0, hosts[0]];
                transport.clear();
                [&head[..], &address(hosts[0]), &[0; 6], &address(hosts[1])].concat()
            }
            Protocol::Udp6 => {
                frame.extend([0x86, 0xdd]);
                [&[0x60, 0, 0, 0, 0, size, 17, 64][..], &wide(hosts[0]), &wide(hosts[1])].concat()
            }
            Protocol::Udp4 | Protocol::Tcp4 => {
                frame.extend([8, 0]);
                let number = if protocol == Protocol::Tcp4 { 6 } else { 17 };
                let head = [0x45, 0, 0, 20 + size, 0, 0, 0, 0, 64, number, 0, 0];
                [&head[..], &address(hosts[0]), &address(hosts[1])].concat()
            }
        };
        let kept = frame.len()
            + match cut {
                Cut::Whole => usize::MAX / 2,
                Cut::Transport => network.len() + 6,
                Cut::Ports => network.len() + 2,
                Cut::Network => 10,
            };
        frame.extend(network);
        frame.extend(transport);
        let length = u32::try_from(frame.len()).expect("a short packet");
        frame.truncate(kept);
        (frame, length)
    }

    /// Returns the direction of the flow that the captured bytes tell.
    fn flow(&self) -> Option<Flow> {
        if self.protocol == Protocol::Arp || self.cut == Cut::Network {
            return None;
        }
        let ports = if self.cut == Cut::Ports { [0; 2] } else { self.ports };
        Some((self.vlan, self.protocol, self.hosts, ports))
    }
}

fn reversed((vlan, protocol, [from, to], [source, target]): Flow) -> Flow {
    (vlan, protocol, [to, from], [target, source])
}

/// Does not look at how the evaluator remembers: it keeps all that has been, and searches it.
#[derive(Default)]
struct Naive {
    /// Times of the packets that matched a rule.
    matched: Vec<usize>,
    flows: Vec<(usize, [Flow; 2], u64)>,
    learned: Vec<(Flow, usize, u64)>,
    limited: Vec<(usize, &'static str, String, u64)>,
}

impl Naive {
    fn decide(&mut self, set: &RuleSet, filters: &[Interpreter<'_>], sent: &Sent, time: u64) -> Decision {
        let (data, length) = sent.frame();
        let packet = Packet { data: &data, length, ..Packet::default() };
        let flow = sent.flow();
        let mut decision = Decision::default();
        if let Some(flow) = flow
            // One that another has replaced could be in force again where times go back.
            && let Some((_, by, until)) =
                self.learned.iter_mut().rev().find(|(other, _, until)| *other == flow && time < *until)
        {
            let learn = set.rules[*by].actions.learn.as_ref().expect("it has learned");
            if learn.idle {
                *until = (*until).max(time + u64::try_from(learn.lasting.as_nanos()).expect("a time"));
            }
            let (capture, fate) = match learn.shortcut.to_string().as_str() {
                "capture" => (true, Fate::Pass),
                "ignore" | "pass" => (false, Fate::Pass),
                "block" => (false, Fate::Block),
                "bounce" => (false, Fate::Bounce),
                other => (false, Fate::Reflect(other.strip_prefix("reflect ").expect("reflect").into())),
            };
            return Decision { rule: Some(*by), by_learned: true, capture, fate, ..decision };
        }
        for (number, rule) in set.rules.iter().enumerate() {
            if filters[number].run(&packet) == 0 {
                continue;
            }
            self.matched.push(number);
            if let Some(learn) = &rule.actions.learn
                && self.is_over(number, "learn", learn.over, flow, time)
                && let Some(flow) = flow
            {
                let until = time + u64::try_from(learn.lasting.as_nanos()).expect("a time");
                let mut add = |flow| {
                    let known = self.learned.iter().any(|(other, _, until)| *other == flow && time < *until);
                    if !known {
                        self.learned.push((flow, number, until));
                    }
                    !known
                };
                if add(flow) {
                    decision.learned = Some(number);
                }
                if learn.both {
                    add(reversed(flow));
                }
            }
            if let Some(log) = &rule.actions.log
                && self.is_over(number, "log", log.over, flow, time)
            {
                decision.logged.push(number);
            }
            if rule.actions.continues {
                decision.continued.push(number);
                continue;
            }
            decision.rule = Some(number);
            decision.capture = match rule.actions.capture {
                CaptureAction::Ignore => false,
                CaptureAction::Capture => true,
                CaptureAction::Sample(every) => {
                    self.matched.iter().filter(|other| **other == number).count() as u64 % every == 1 % every
                }
                CaptureAction::First(most) => flow.is_none_or(|flow| self.is_first(number, flow, time, most)),
            };
            if self.is_over(number, "fate", rule.actions.fate_over, flow, time) {
                decision.fate = rule.actions.fate.clone();
            }
            return decision;
        }
        decision
    }

    fn is_first(&mut self, rule: usize, flow: Flow, time: u64, most: u64) -> bool {
        let (mut before, mut last) = (0, 0);
        for (other, flows, then) in &self.flows {
            if *other == rule && flows.contains(&flow) {
                before = if then.saturating_sub(last) > 300 * SECOND { 1 } else { before + 1 };
                last = last.max(*then);
            }
        }
        if time.saturating_sub(last) > 300 * SECOND {
            before = 0;
        }
        self.flows.push((rule, [flow, reversed(flow)], time));
        before < most
    }

    /// Fills a bucket and empties it again with every packet that has ever been.
    fn is_over(
        &mut self,
        rule: usize,
        what: &'static str,
        over: Option<Over>,
        flow: Option<Flow>,
        time: u64,
    ) -> bool {
        let Some(Over { rate, key }) = over else { return true };
        let key = match (flow, key) {
            (None, _) => "none".to_owned(),
            (Some((_, protocol, [from, _], _)), Key::Source) => {
                format!("{} {from}", protocol == Protocol::Udp6)
            }
            (Some((_, protocol, [_, to], _)), Key::Destination) => {
                format!("{} {to}", protocol == Protocol::Udp6)
            }
            (Some(flow), Key::Flow) => {
                format!("{:?}", if flow < reversed(flow) { flow } else { reversed(flow) })
            }
        };
        self.limited.push((rule, what, key.clone(), time));
        // In packets times nanoseconds.
        let period = i128::try_from(rate.period.as_nanos()).expect("a period");
        let most = (i128::from(rate.packets) * i128::from(SECOND)).max(period);
        let (mut level, mut last, mut is_over) = (most, 0, false);
        for (other, action, same, then) in &self.limited {
            if (*other, *action, same) == (rule, what, &key) {
                let then = i128::from(*then).max(last);
                level = (level + (then - last) * i128::from(rate.packets)).min(most);
                last = then;
                is_over = level < period;
                level -= if is_over { 0 } else { period };
            }
        }
        is_over
    }
}

fn sent() -> impl Strategy<Value = Sent> {
    let protocol = prop_oneof![
        1 => Just(Protocol::Arp), 4 => Just(Protocol::Udp4), 4 => Just(Protocol::Tcp4), 2 => Just(Protocol::Udp6)
    ];
    let cut = prop_oneof![
        7 => Just(Cut::Whole), 1 => Just(Cut::Transport), 1 => Just(Cut::Ports), 1 => Just(Cut::Network)
    ];
    let vlan = prop_oneof![3 => Just(None), 1 => Just(Some(5)), 1 => Just(Some(6))];
    let hosts = [1_u8..4, 1..4];
    let port = || prop_oneof![Just(53_u16), Just(1024)];
    (vlan, protocol, hosts, [port(), port()], cut).prop_map(|(vlan, protocol, hosts, ports, cut)| Sent {
        vlan,
        protocol,
        hosts,
        ports,
        cut,
    })
}

/// Steps from a packet to the next, in nanoseconds; some go back.
fn step() -> impl Strategy<Value = i64> {
    prop_oneof![
        Just(0),
        Just(1),
        Just(100_000_000),
        Just(400_000_000),
        Just(1_000_000_000),
        Just(-300_000_000),
        Just(31_000_000_000),
        Just(301_000_000_000),
    ]
}

fn rule() -> impl Strategy<Value = String> {
    let expression = prop::sample::select(vec![
        "",
        "ip",
        "ip6",
        "arp",
        "udp",
        "tcp",
        "port 53",
        "src host 10.0.0.1",
        "dst net 10.0.0.2/31",
        "vlan 5",
        "tcp[tcpflags] == tcp-syn",
        "host in {10.0.0.1, 10.0.0.2}",
        "udp[8] == 7",
        "udp[30] == 7",
        "not udp",
        "greater 60",
        "ip[1] == 1",
        "ip host 10.0.0.3 # a comment",
    ]);
    let over = || {
        let limit = (
            1_u64..4,
            prop::sample::select(vec!["s", "min", "h"]),
            prop::sample::select(vec!["src", "dst", "flow"]),
        );
        prop::option::of(limit).prop_map(|limit| match limit {
            Some((packets, unit, key)) => format!(" if over {packets}/{unit} by {key}"),
            None => String::new(),
        })
    };
    let words = |words: &[&'static str]| prop::sample::select(words.to_vec());
    let capture = words(&[
        "",
        "ignore",
        "capture",
        "sample 1/1",
        "sample 1/3",
        "capture first 1 of each flow",
        "first 3 of each flow",
    ]);
    let fate =
        (words(&["", "pass", "block", "reflect eth1", "bounce"]), over()).prop_map(
            |(fate, over)| match fate {
                "" | "pass" => fate.to_owned(),
                fate => format!("{fate}{over}"),
            },
        );
    let shortcut = words(&["capture", "ignore", "pass", "block", "reflect eth2", "bounce"]);
    let learn = (shortcut, words(&["1s", "500ms", "1m", "500ms idle", "1m idle"]), any::<bool>(), over())
        .prop_map(|(action, time, both, over)| {
            let both = if both { " in both directions" } else { "" };
            format!("learn {action} for {time}{both}{over}")
        });
    let learn = prop_oneof![3 => Just(String::new()), 1 => learn];
    let log = prop_oneof![3 => Just(String::new()), 1 => over().prop_map(|over| format!("log{over}"))];
    (expression, prop::bool::weighted(0.2), capture, fate, learn, log).prop_map(
        |(expression, continues, capture, fate, learn, log)| {
            let decisions = match continues {
                true => vec!["continue".to_owned()],
                false => vec![capture.to_owned(), fate],
            };
            let all = decisions.into_iter().chain([learn, log]).filter(|action| !action.is_empty());
            let actions = all.collect::<Vec<_>>().join(", ");
            let actions = if actions.is_empty() { "ignore".to_owned() } else { actions };
            let (expression, comment) = expression.split_once('#').unwrap_or((expression, ""));
            format!("{expression} -> {actions} # {comment}\n")
        },
    )
}

/// Returns the rules of a text, and the filter of each.
fn compiled(text: &str) -> (RuleSet, Programs, Vec<Filter>) {
    let set = RuleSet::parse(text).unwrap_or_else(|errors| panic!("{text}: {errors:?}"));
    let compiled = set.compile(&options()).unwrap_or_else(|errors| panic!("{text}: {errors:?}"));
    let programs = compiled.programs();
    (set, programs, compiled.filters)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]

    #[test]
    fn the_evaluator_decides_as_a_naive_list(
        rules in prop::collection::vec(rule(), 0..6),
        packets in prop::collection::vec((step(), sent()), 1..60),
    ) {
        let (set, programs, filters) = compiled(&rules.concat());
        let filters: Vec<_> = filters.iter().map(|filter| Interpreter::new(&filter.lowered, &filter.ast.sets)).collect();
        let mut evaluator = Evaluator::new(set.clone(), Limits::default());
        let mut naive = Naive::default();
        let mut time = 1_700_000_000 * SECOND;
        let (mut captured, mut all) = (0, Count::default());
        for (number, (step, sent)) in packets.iter().enumerate() {
            time = time.saturating_add_signed(*step);
            let (data, length) = sent.frame();
            let packet = Packet { data: &data, length, ..Packet::default() };
            let decision = evaluator.decide(&programs, &packet, time);
            let expected = naive.decide(&set, &filters, sent, time);
            prop_assert_eq!(&decision, &expected, "packet {} {:?}\n{}", number, sent, rules.concat());
            captured += u64::from(decision.capture && !decision.by_learned);
            all += Count { packets: 1, bytes: length.into() };
        }
        // Each packet is in exactly one count.
        let mut counted = evaluator.unmatched();
        for (rule, count) in set.rules.iter().zip(evaluator.counts()) {
            counted += count.by_learned;
            if !rule.actions.continues {
                counted += count.matched;
            }
        }
        prop_assert_eq!(counted, all);
        prop_assert_eq!(captured, evaluator.counts().iter().map(|count| count.captured.packets).sum::<u64>());
    }
}

const PACKET: Sent =
    Sent { vlan: None, protocol: Protocol::Udp4, hosts: [1, 2], ports: [1024, 53], cut: Cut::Whole };

/// Decides about packets and seconds, with tables of this size; prints each decision in the words of rules.
fn decide(text: &str, room: usize, packets: &[(Sent, u64)]) -> (Vec<String>, Evaluator) {
    let (set, programs, _) = compiled(text);
    let limits = Limits { flows: room, learned: room, buckets: room, idle: Duration::from_secs(300) };
    let mut evaluator = Evaluator::new(set, limits);
    let decisions = packets.iter().map(|(sent, seconds)| {
        let (data, length) = sent.frame();
        let packet = Packet { data: &data, length, ..Packet::default() };
        let Decision { capture, fate, .. } = evaluator.decide(&programs, &packet, seconds * SECOND);
        format!("{} {fate}", if capture { "capture" } else { "ignore" })
    });
    (decisions.collect(), evaluator)
}

#[test]
fn a_scan_is_learned_and_ends() {
    let scan = |host, port| Sent { hosts: [host, 2], ports: [port, 80], protocol: Protocol::Tcp4, ..PACKET };
    let text = "scan: tcp[tcpflags] == tcp-syn -> capture, learn block for 30s if over 1/s by src";
    let packets = [
        (scan(1, 7), 100),
        (scan(1, 7), 100),
        (scan(1, 7), 100),
        (scan(1, 8), 129),
        (scan(3, 7), 129),
        (scan(1, 7), 130),
    ];
    let (decisions, evaluator) = decide(text, 9, &packets);
    assert_eq!(
        decisions,
        ["capture pass", "capture pass", "ignore block", "capture pass", "capture pass", "capture pass"]
    );
    let count = evaluator.counts()[0];
    assert_eq!((count.matched.packets, count.by_learned.packets, count.captured.packets), (5, 1, 5));
    assert_eq!(count.last, Some(130 * SECOND));
}

#[test]
fn what_is_learned_until_it_is_idle_ends_for_each_direction_by_itself() {
    let back = Sent { hosts: [2, 1], ports: [53, 1024], ..PACKET };
    let text = "-> capture, learn block for 10s idle in both directions";
    // The one at 17 is late, and does not shorten what the one at 18 has lengthened.
    let packets =
        [(PACKET, 0), (PACKET, 9), (back, 10), (PACKET, 18), (back, 20), (PACKET, 17), (PACKET, 27)];
    let (decisions, evaluator) = decide(text, 9, &packets);
    let (learns, blocked) = ("capture pass", "ignore block");
    assert_eq!(decisions, [learns, blocked, learns, blocked, learns, blocked, blocked]);
    let count = evaluator.counts()[0];
    assert_eq!((count.matched.packets, count.by_learned.packets), (3, 4));
}

#[test]
fn a_packet_that_ends_too_early_is_asked_of_the_next_rules() {
    let text = "udp[8] == 7 -> block\nudp port 53 -> capture";
    let cut = Sent { cut: Cut::Transport, ..PACKET };
    let (decisions, evaluator) =
        decide(text, 9, &[(PACKET, 1), (cut, 1), (Sent { cut: Cut::Network, ..PACKET }, 1)]);
    assert_eq!(decisions, ["ignore block", "capture pass", "ignore pass"]);
    assert_eq!(evaluator.unmatched().packets, 1);
}

#[test]
fn without_room_more_is_captured_less_is_blocked_and_all_is_counted() {
    let other = Sent { hosts: [3, 2], ..PACKET };
    let arp = Sent { protocol: Protocol::Arp, ..PACKET };
    let packets = [(PACKET, 1), (PACKET, 1), (other, 1), (other, 1), (arp, 1), (arp, 1)];
    let (decisions, evaluator) = decide("-> first 1 of each flow", 1, &packets);
    let expected =
        ["capture pass", "ignore pass", "capture pass", "capture pass", "capture pass", "capture pass"];
    assert_eq!(decisions, expected);
    assert_eq!(evaluator.unkept(), Unkept { flows: 2, ..Unkept::default() });

    let (decisions, evaluator) = decide("-> block if over 1/s by src", 1, &packets);
    assert_eq!(decisions[..4], ["ignore pass", "ignore block", "ignore pass", "ignore pass"]);
    assert_eq!(evaluator.unkept(), Unkept { buckets: 4, ..Unkept::default() });

    let (decisions, evaluator) = decide("-> capture, learn block for 1m in both directions", 1, &packets);
    let expected =
        ["capture pass", "ignore block", "capture pass", "capture pass", "capture pass", "capture pass"];
    assert_eq!(decisions, expected);
    assert_eq!(evaluator.unkept(), Unkept { learned: 3, no_flow: 2, ..Unkept::default() });
}

#[test]
fn a_restart_forgets() {
    let (_, mut evaluator) = decide("-> capture, learn block for 1m", 9, &[(PACKET, 1), (PACKET, 1)]);
    evaluator.restart();
    assert_eq!(evaluator.counts()[0], weir_rules::RuleCount::default());
    let (_, programs, _) = compiled("-> capture, learn block for 1m");
    let (data, length) = PACKET.frame();
    let packet = Packet { data: &data, length, ..Packet::default() };
    assert!(evaluator.decide(&programs, &packet, SECOND).capture);
}
