//! Every packet is counted once, while rules learn, limit and change.

use std::collections::VecDeque;
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Barrier;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

use weir::guard::{Action, ExactFlow, ExactRule, Fate, Learn, Limit, LimitKey, Rules};
use weir::{Filter, SourceChoice};
use weir_lab::{Generator, Pair, Traffic, root_test};

use super::{guard, network};

const HOUR: Duration = Duration::from_secs(3600);
const UDP: u8 = 17;

/// Short frames of so many flows.
fn traffic(pair: &Pair, flows: u32) -> Traffic {
    let traffic = Traffic::new(60).and_then(|traffic| traffic.flows(flows)).expect("possible");
    traffic.between(pair)
}

/// The flow of a frame.
fn flow(frame: &[u8]) -> ExactFlow {
    let end = |address: usize, port: usize| {
        let [a, b, c, d] = frame[address..address + 4] else { unreachable!("four bytes") };
        let port = u16::from_be_bytes([frame[port], frame[port + 1]]);
        SocketAddr::from((Ipv4Addr::new(a, b, c, d), port))
    };
    ExactFlow::new(UDP, end(26, 34), end(30, 36))
}

#[root_test]
fn root_a_packet_is_counted_once_while_exact_rules_come_and_go() {
    const FLOWS: u32 = 1024;
    const IN_FORCE: usize = 256;
    const CHANGES: usize = 6000;
    let network = network(1);
    let pair = network.pair();
    let traffic = traffic(pair, FLOWS);
    let flows: Vec<ExactFlow> = traffic.frames(0..FLOWS.into()).iter().map(|frame| flow(frame)).collect();
    let rules = Rules::new().rule("all", Filter::new("udp"), Fate::Block);
    let mut guard = guard(&network, SourceChoice::Xdp, rules, |builder| builder.exact(FLOWS));
    let (warm, over) = (Barrier::new(2), AtomicBool::new(false));
    let accepted = thread::scope(|scope| {
        let sender = scope.spawn(|| {
            let mut generator = Generator::new(pair, &traffic).expect("a generator");
            warm.wait();
            let mut accepted = 0;
            // Once more, so that each flow comes while rules are in force and none changes.
            let mut last = false;
            while !last {
                last = over.load(Ordering::Acquire);
                accepted += generator.send(20_000).expect("frames").accepted;
            }
            accepted
        });
        warm.wait();
        let mut in_force = VecDeque::new();
        for change in 0..CHANGES {
            if change % 2 == 0 || in_force.len() < IN_FORCE {
                let flow = flows[change * 7 % flows.len()];
                let fate = if change % 4 == 0 { Fate::Block } else { Fate::Pass };
                guard.add_exact(&ExactRule::new(flow, fate, None)).expect("there is room");
                in_force.push_back(flow);
            } else if let Some(flow) = in_force.pop_front() {
                guard.remove_exact(&flow).expect("it is asked");
            }
        }
        over.store(true, Ordering::Release);
        sender.join().expect("it sends")
    });
    guard.stop().expect("it ends");
    let reading = guard.read().expect("counters");
    assert_eq!(reading.total().packets, accepted, "{reading:?}");
    assert_eq!(reading.total().bytes, accepted * 60);
    assert!(
        reading.exact.packets >= IN_FORCE as u64 / 2 && reading.rules[0].count.packets > 0,
        "{reading:?}"
    );
}

#[root_test]
fn root_counts_of_two_processors_add_up_while_rules_learn_and_limit() {
    const FRAMES: u64 = 150_000;
    let network = network(2);
    let pair = network.pair();
    let traffic = traffic(pair, 5000).scattered();
    let every = |packets, by| Limit::new(packets, Duration::from_secs(1), by);
    let rules = Rules::new()
        .rule("seen", Filter::new("udp"), Action::continuing())
        .rule(
            "few",
            Filter::new("src portrange 1024-2000"),
            Action::from(Fate::Block).learn(Learn::new(Fate::Block, HOUR).both()),
        )
        .rule(
            "some",
            Filter::new("src portrange 2001-4000"),
            Action::from(Fate::Block).learn(Learn::new(Fate::Block, HOUR).over(every(5, LimitKey::Flow))),
        )
        .rule("rest", Filter::new("udp"), Action::from(Fate::Block).over(every(1000, LimitKey::Destination)));
    let mut guard = guard(&network, SourceChoice::Xdp, rules, |builder| builder);
    let begin = Barrier::new(2);
    let send = |cpu: u32| {
        let first = u64::from(cpu) * FRAMES;
        let generator = Generator::numbered_from(first, pair, &traffic).expect("a generator");
        begin.wait();
        generator.cpu(cpu).send(FRAMES).expect("frames").accepted
    };
    let accepted: u64 = thread::scope(|scope| {
        let senders = [0, 1].map(|cpu| scope.spawn(move || send(cpu)));
        senders.into_iter().map(|sender| sender.join().expect("it sends")).sum()
    });
    guard.stop().expect("it ends");
    let reading = guard.read().expect("counters");
    assert_eq!(reading.total().packets, accepted, "{reading:?}");
    let [seen, few, some, rest] = &reading.rules[..] else { panic!("four rules") };
    let learned = few.learned.packets + some.learned.packets;
    assert_eq!(seen.count.packets + learned, accepted, "exact rules are asked before all others");
    // Of each flow one packet, and another one where both processors have one before either has learned.
    assert!((1..=2 * 977).contains(&few.count.packets), "{few:?}");
    assert!(few.learned.packets > 0 && some.learned.packets > 0 && rest.count.packets > 0, "{reading:?}");
    assert_eq!((reading.unkept.learned, reading.unkept.buckets), (0, 0), "{reading:?}");
}

#[root_test]
fn root_a_flood_of_flows_teaches_no_more_than_the_table_holds() {
    const FLOWS: u32 = 250_000;
    const TABLE: u32 = 10_000;
    let network = network(1);
    let pair = network.pair();
    let traffic = traffic(pair, FLOWS);
    let learn = Action::from(Fate::Block).learn(Learn::new(Fate::Block, HOUR));
    let rules = Rules::new().rule("all", Filter::new("udp"), learn);
    let mut guard = guard(&network, SourceChoice::Xdp, rules, |builder| builder.exact(TABLE));
    let mut generator = Generator::new(pair, &traffic).expect("a generator");
    // The first flows are in force when they come again.
    let accepted = generator.send(u64::from(FLOWS) + 5000).expect("frames").accepted;
    let in_force = guard.exact_rules().expect("they are read");
    let distinct: std::collections::HashSet<ExactFlow> = in_force.iter().map(|entry| entry.flow).collect();
    assert_eq!((in_force.len(), distinct.len()), (TABLE as usize, TABLE as usize));
    guard.stop().expect("it ends");
    let reading = guard.read().expect("counters");
    let all = &reading.rules[0];
    assert_eq!(reading.total().packets, accepted, "{reading:?}");
    assert_eq!(all.count.packets, u64::from(TABLE) + reading.unkept.learned, "{reading:?}");
    assert!(all.learned.packets > 0 && reading.unkept.learned > u64::from(FLOWS) / 2, "{reading:?}");
}
