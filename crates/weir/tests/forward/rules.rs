//! Forwarding with rules: what is forwarded, what goes no further, and what is copied of it.

use std::time::Duration;

use weir::guard::{Action, CaptureAction, Fate, Learn, Rules};
use weir::{Error, Filter};
use weir_lab::{FrameSender, Pair, root_test};

use crate::common::{self, on_one_processor};
use crate::{at, closed, forth, frames, open, two, wait_for};

/// A datagram from `pair`'s end, between these ports.
fn datagram(pair: &Pair, addresses: [u8; 2], ports: [u16; 2]) -> Vec<u8> {
    let [from, to] = addresses;
    let ip = [0x45, 0, 0, 46, 0, 0, 0, 0, 64, 17, 0, 0, 10, 9, 0, from, 10, 9, 0, to];
    let ports = ports.map(u16::to_be_bytes).concat();
    [&pair.rx.mac[..], &pair.tx.mac, &[8, 0], &ip, &ports, &[0, 26, 0, 0], &[7; 18]].concat()
}

/// The ports of what arrives.
fn ports(frames: &[Vec<u8>]) -> Vec<[u16; 2]> {
    let port = |frame: &Vec<u8>, at: usize| u16::from_be_bytes([frame[at], frame[at + 1]]);
    frames.iter().map(|frame| [port(frame, 34), port(frame, 36)]).collect()
}

#[root_test]
fn root_rules_decide_what_is_forwarded_and_copied_in_both_directions() {
    let network = two();
    let [here, there] = [0, 1].map(|number| &network.pairs()[number]);
    let udp = |text: &str| Filter::new(format!("udp {text}"));
    let learn = Learn::new(Fate::Block, Duration::from_secs(3600)).both();
    let rules = Rules::new()
        .rule("once", udp("port 1000"), Action::from(Fate::Pass).learn(learn))
        .rule("block", udp("port 1001"), Action::from(Fate::Block).capture(CaptureAction::Capture))
        .rule("bounce", udp("port 1002"), Fate::Bounce)
        .rule("copy", udp("port 1003"), Action::from(Fate::Pass).capture(CaptureAction::First(1)));
    let builder = forth().both(true).rules(rules).copied(common::with_room_for(100, 60));
    let mut forward = open(&network, builder).expect("it forwards");
    let mut copy = forward.take_copy().expect("it was asked for");
    let captures = [at(there), at(here)];
    let send = |pair: &Pair, frames: &[Vec<u8>]| {
        let sender = FrameSender::new(&pair.tx).expect("a socket");
        on_one_processor(|| sender.send_frames(frames).expect("they are sent"));
    };
    let to_there = [1000, 1001, 1002, 1003, 1003, 1004, 1000, 1004];
    send(here, &to_there.map(|port| datagram(here, [1, 2], [port, 9])));
    wait_for(&mut forward, 8);
    // The answers: what was learned forth holds back, and so does the flow that was captured once.
    let to_here = [1000, 1003, 1004];
    send(there, &to_here.map(|port| datagram(there, [2, 1], [9, port])));
    wait_for(&mut forward, 11);
    let other = Rules::new().rule("none", Filter::new(""), Fate::Block);
    forward.replace_rules(&other).expect("they are taken");
    send(here, &[1004, 1005].map(|port| datagram(here, [1, 2], [port, 9])));
    wait_for(&mut forward, 13);
    let reading = forward.rules().expect("they count").expect("there are some");
    assert_eq!((reading.total().packets, reading.replaced.packets), (13, 8), "{reading:?}");
    assert_eq!(reading.rules[0].count.packets, 2);
    assert!(forward.filter_control().set_filter(None).is_err());
    forward.stop().expect("it stops");
    let account = closed(forward);
    let counters = account.directions.iter().map(|way| way.total());
    let counters: Vec<_> =
        counters.map(|one| [one.seen, one.forwarded, one.blocked, one.bounced, one.filtered]).collect();
    assert_eq!(counters, [[10, 5, 4, 1, 0], [3, 2, 1, 0, 0]]);
    let [forth, back] = captures;
    let from_here = ports(&frames(forth, 5));
    assert_eq!(from_here, [1000, 1003, 1003, 1004, 1004].map(|port| [port, 9]));
    // What has bounced is there, too.
    let mut from_there = ports(&frames(back, 3));
    from_there.sort_unstable();
    assert_eq!(from_there, [[9, 1003], [9, 1004], [1002, 9]]);
    copy.stop().expect("it stops");
    let mut copied = Vec::new();
    while let Some(chunk) = copy.next(Duration::ZERO).expect("it can be taken").taken() {
        copied.extend(chunk.packets().map(|packet| packet.data.to_vec()));
    }
    assert_eq!(ports(&copied), [[1001, 9], [1003, 9]]);
}

#[root_test]
fn root_rules_that_cannot_forward_are_refused() {
    let network = two();
    let rules = |fate: Fate| Rules::new().rule("a", Filter::new("udp"), fate);
    for (builder, said) in [
        (forth().rules(rules(Fate::Pass)).filter(Filter::new("udp")), "beside rules"),
        (forth().rules(rules(Fate::Reflect("rx1".to_owned()))), "cannot reflect"),
        (forth().rules(rules(Fate::Pass).rule("a", Filter::new(""), Fate::Pass)), "two rules called `a`"),
        (forth().lose_tags(false).rules(rules(Fate::Pass)), "VLAN"),
    ] {
        let error = open(&network, builder).expect_err(said);
        assert!(error.to_string().contains(said), "{error}");
    }
    let mut plain = open(&network, forth()).expect("it forwards");
    assert!(matches!(plain.replace_rules(&rules(Fate::Pass)), Err(Error::Setting { .. })));
    assert!(plain.rules().expect("none").is_none());
}
