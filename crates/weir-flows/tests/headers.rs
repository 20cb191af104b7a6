//! What is taken from headers: of connections, tunnels, fragments, and of packets that end too early.

mod common;

use common::Made;
use weir_flows::{EndReason, Flow, Icmp, Observation, Settings, Table};

fn small() -> Settings {
    Settings { flows: 16, ..Settings::default() }
}

const MS: u64 = 1_000_000;
const CLIENT: (u8, u16) = (1, 40_000);
const SERVER: (u8, u16) = (2, 443);

fn segment(ms: u64, from_client: bool, flags: u8, sequence: u32, payload: u16) -> Made {
    let (from, to) = if from_client { (CLIENT, SERVER) } else { (SERVER, CLIENT) };
    Made { time: ms * MS, from, to, protocol: 6, flags, sequence, window: 100, payload }
}

fn observation(frame: &[u8], time: u64) -> Observation<'_> {
    let length = u32::try_from(frame.len()).expect("short");
    Observation { time, interface: 0, link_type: 1, frame, length }
}

fn flows(settings: &Settings, frames: &[(u64, Vec<u8>)]) -> (Table, Vec<Flow>) {
    let mut table = Table::new(settings).expect("enough memory");
    let mut flows = Vec::new();
    for (time, frame) in frames {
        table.add(&observation(frame, *time), &mut |flow| flows.push(flow));
    }
    table.end_all(&mut |flow| flows.push(flow));
    assert!(table.counts().adds_up());
    (table, flows)
}

fn of(packets: &[Made]) -> Vec<Flow> {
    let frames: Vec<_> = packets.iter().map(|made| (made.time, made.frame())).collect();
    flows(&small(), &frames).1
}

#[test]
fn a_connection_says_how_long_its_handshake_took_and_what_was_sent_again() {
    let high = u32::MAX - 50;
    let all = [
        segment(1000, true, 2, high, 0),
        segment(1010, false, 0x12, 7, 0),
        segment(1013, true, 0x10, high.wrapping_add(1), 0),
        segment(1014, true, 0x18, high.wrapping_add(1), 100),
        // Sequence numbers have begun anew.
        segment(1015, true, 0x18, high.wrapping_add(101), 100),
        segment(1016, true, 0x18, high.wrapping_add(1), 100),
        Made { window: 0, ..segment(1017, false, 0x10, 8, 0) },
        // Is the other side alive?
        segment(1018, true, 0x10, high.wrapping_add(200), 1),
        segment(1020, true, 0x11, high.wrapping_add(201), 0),
        segment(1021, false, 0x11, 8, 0),
        segment(1022, true, 0x10, high.wrapping_add(202), 0),
    ];
    let flows = of(&all);
    let [flow] = &flows[..] else { panic!("{flows:?}") };
    let tcp = flow.tcp.expect("it is TCP");
    assert_eq!(flow.reason, EndReason::Closed);
    assert_eq!((flow.sides[0].end.port, flow.sides[0].packets, flow.sides[1].packets), (40_000, 8, 3));
    assert_eq!(flow.sides.map(|side| side.mac), [Some([2, 0, 0, 0, 0, 1]), Some([2, 0, 0, 0, 0, 2])]);
    assert_eq!(tcp.initial_sequences, [Some(high), Some(7)]);
    assert_eq!(tcp.handshake, [Some(10_000), Some(3000)]);
    assert_eq!((tcp.retransmissions, tcp.zero_windows), ([1, 0], [0, 1]));
    assert_eq!((tcp.flags, flow.first, flow.last), ([0x1b, 0x13], 1000 * MS, 1022 * MS));
    assert_eq!(flow.sides.map(|side| side.lengths), [[40, 140], [40, 40]]);
}

#[test]
fn who_answers_did_not_begin_and_a_new_connection_is_a_new_flow() {
    let answered = of(&[segment(1, false, 0x12, 7, 0), segment(2, true, 0x10, 1, 0)]);
    assert_eq!(answered[0].sides[0].end.port, CLIENT.1);
    let again = of(&[
        segment(1, true, 2, 1, 0),
        segment(2, false, 0x14, 0, 0),
        segment(3, true, 0x10, 2, 0),
        segment(4, true, 2, 9, 0),
        segment(5, false, 0x14, 0, 0),
    ]);
    assert_eq!(again.iter().map(Flow::packets).collect::<Vec<_>>(), [3, 2]);
    assert!(again.iter().all(|flow| flow.reason == EndReason::Closed));
}

#[test]
fn packets_that_end_anywhere_are_in_one_count() {
    let whole = segment(5, true, 2, 1, 8).frame();
    for end in 0..=whole.len() {
        let mut frame = whole[..end].to_vec();
        let (table, flows) = flows(&small(), &[(5, frame.clone())]);
        // The ports decide: behind them nothing is needed.
        assert_eq!((flows.len(), table.counts().cut), if end >= 38 { (1, 0) } else { (0, 1) }, "{end}");
        // What the frame says of its length does not depend on what was captured.
        assert!(flows.iter().all(|flow| flow.bytes() == 48));
        // Any byte can lie.
        for value in [0, 0xff] {
            if let Some(last) = frame.last_mut() {
                *last = value;
                self::flows(&Settings { inner: true, ..small() }, &[(5, frame.clone())]);
            }
        }
    }
    let (table, flows) = flows(&small(), &[(5, [&[0; 12][..], &[8, 6], &[0; 46]].concat())]);
    assert_eq!((flows.len(), table.counts().not_ip), (0, 1));
}

/// An IPv4 packet with this in it.
fn ip(protocol: u8, place: u16, payload: &[u8]) -> Vec<u8> {
    let length = u16::try_from(20 + payload.len()).expect("short");
    let mut packet = vec![0x45, 0];
    packet.extend(length.to_be_bytes());
    packet.extend([0, 77]);
    packet.extend(place.to_be_bytes());
    packet.extend([64, protocol, 0, 0, 10, 0, 0, 1, 10, 0, 0, 2]);
    packet.extend(payload);
    packet
}

fn ethernet(tags: &[u16], packet: &[u8]) -> Vec<u8> {
    let mut frame = vec![1; 12];
    for tag in tags {
        frame.extend([0x81, 0]);
        frame.extend(tag.to_be_bytes());
    }
    frame.extend([8, 0]);
    frame.extend(packet);
    frame
}

#[test]
fn later_fragments_belong_to_the_flow_of_the_first() {
    let first = ethernet(&[], &ip(17, 0x2000, &[0, 53, 1, 1, 0, 24, 0, 0, 1, 2, 3, 4, 5, 6, 7, 8]));
    let later = ethernet(&[], &ip(17, 2, &[9; 8]));
    let (table, flows) = flows(&small(), &[(1, first.clone()), (2, later.clone())]);
    let [flow] = &flows[..] else { panic!("{flows:?}") };
    assert_eq!((flow.sides[0].end.port, flow.packets(), table.counts().orphans), (53, 2, 0));
    let (table, flows) = self::flows(&small(), &[(1, later), (2, first)]);
    assert_eq!((flows.len(), table.counts().orphans), (2, 1));
    // ICMP in parts has no ports to look for.
    let (table, flows) = self::flows(&small(), &[(1, ethernet(&[], &ip(1, 2, &[9; 8])))]);
    assert_eq!((flows[0].icmp, table.counts().orphans), (None, 0));
}

#[test]
fn tags_tunnels_and_interfaces_tell_flows_apart() {
    let udp = |port: u8| ip(17, 0, &[0, port, 0, 9, 0, 8, 0, 0]);
    let vxlan = |network: u8| {
        let inner = ethernet(&[], &udp(3));
        let length = u16::try_from(16 + inner.len()).expect("short").to_be_bytes();
        let head = [0, 5, 0x12, 0xb5, length[0], length[1], 0, 0, 8, 0, 0, 0, 0, 0, network, 0];
        ethernet(&[7, 8], &ip(17, 0, &[&head[..], &inner].concat()))
    };
    let frames =
        [vxlan(1), vxlan(2), ethernet(&[7], &udp(5)), ethernet(&[], &udp(5))].map(|frame| (1, frame));
    let told = |flow: &Flow| (flow.sides.map(|side| side.end.port), flow.vlan, flow.tunnel);
    let (_, mut outer) = flows(&small(), &frames);
    outer.sort_by_key(told);
    let expected = [
        ([5, 9], None, None),
        ([5, 9], Some(7), None),
        ([5, 4789], Some(7), Some(1)),
        ([5, 4789], Some(7), Some(2)),
    ];
    assert_eq!(outer.iter().map(told).collect::<Vec<_>>(), expected);
    let (_, mut inner) = flows(&Settings { inner: true, ..small() }, &frames[..2]);
    inner.sort_by_key(told);
    let expected = [([3, 9], Some(7), Some(1)), ([3, 9], Some(7), Some(2))];
    assert_eq!(inner.iter().map(told).collect::<Vec<_>>(), expected);

    for across_interfaces in [false, true] {
        let mut table = Table::new(&Settings { across_interfaces, ..small() }).expect("enough memory");
        for interface in 0..2 {
            let seen = Observation { interface, ..observation(&frames[3].1, 1) };
            table.add(&seen, &mut |flow| panic!("{flow:?}"));
        }
        assert_eq!(table.counts().flows, if across_interfaces { 1 } else { 2 });
    }
    let (_, echo) = flows(&small(), &[(1, ethernet(&[], &ip(1, 0, &[8, 0, 0, 0])))]);
    assert_eq!(echo[0].icmp, Some(Icmp { kind: 8, code: 0 }));
}

#[test]
fn a_clock_that_goes_far_back_begins_anew() {
    let day = 86_400_000;
    let late = segment(2 * day, true, 2, 1, 0);
    let flows = of(&[late, segment(day, true, 2, 1, 0), segment(day + 1, true, 0x10, 2, 0)]);
    let told: Vec<_> = flows.iter().map(|flow| (flow.packets(), flow.reason)).collect();
    assert_eq!(told, [(1, EndReason::Forced), (2, EndReason::Forced)]);
}

#[test]
fn the_first_packets_say_what_the_application_wants() {
    // A query of `a.example`.
    let query = b"\x12\x34\x01\x00\x00\x01\x00\x00\x00\x00\x00\x00\x01a\x07example\x00\x00\x01\x00\x01";
    let length = u16::try_from(8 + query.len()).expect("short").to_be_bytes();
    let datagram = [&[0x9c, 0x40, 0, 53, length[0], length[1], 0, 0][..], query].concat();
    let frame = ethernet(&[], &ip(17, 0, &datagram));
    let (_, flows) = flows(&small(), &[(1, frame.clone()), (2, frame.clone())]);
    let names = flows[0].names.as_ref().expect("it was read");
    assert_eq!((names.protocol, names.name.as_deref()), ("dns", Some("a.example")));
    let (_, unnamed) = self::flows(&Settings { names: false, ..small() }, &[(1, frame)]);
    assert_eq!(unnamed[0].names, None);
}

#[test]
fn a_flow_says_what_was_lost_on_its_interface_meanwhile() {
    let frame = ethernet(&[], &ip(17, 0, &[0, 7, 0, 9, 0, 8, 0, 0]));
    for (across_interfaces, expected) in [(false, vec![(0, 4), (1, 3)]), (true, vec![(0, 7)])] {
        let mut table = Table::new(&Settings { across_interfaces, ..small() }).expect("enough memory");
        let mut flows = Vec::new();
        // Time, interface, and what was lost on it since the one before.
        for (time, interface, lost) in [(1, 0, 9), (2, 1, 0), (5, 0, 4), (6, 1, 3)] {
            table.lost(interface, time - 1, time, lost);
            let packet = Observation { interface, ..observation(&frame, time) };
            table.add(&packet, &mut |flow| flows.push(flow));
        }
        table.lost(0, 6, 7, 100);
        let mut told: Vec<_> = Vec::new();
        table.for_each(|flow| told.push((flow.interface, flow.lost)));
        told.sort_unstable();
        assert_eq!(told, expected);
        table.end_all(&mut |flow| flows.push(flow));
        let mut told: Vec<_> = flows.iter().map(|flow| (flow.interface, flow.lost)).collect();
        told.sort_unstable();
        assert_eq!(told, expected);
    }
}
