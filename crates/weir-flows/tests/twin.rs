//! The table beside a twin that is slow and obvious.

mod common;

use std::time::Duration;

use common::Made;
use proptest::prelude::*;
use weir_flows::{EndReason, Flow, Observation, Rank, Settings, Table};

const MS: u64 = 1_000_000;
const IDLE: u64 = 400 * MS;
const ACTIVE: u64 = 1500 * MS;

fn settings(flows: u32) -> Settings {
    Settings {
        flows,
        idle: Duration::from_nanos(IDLE),
        active: Duration::from_nanos(ACTIVE),
        ..Settings::default()
    }
}

/// A list of flows, searched from the beginning.
#[derive(Default)]
struct Twin {
    open: Vec<Kept>,
    ended: Vec<Told>,
}

struct Kept {
    ends: [(u8, u16); 2],
    protocol: u8,
    first: u64,
    last: u64,
    packets: [u64; 2],
    bytes: [u64; 2],
    flags: [u8; 2],
    closed: bool,
}

/// What is compared.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Told {
    first: u64,
    last: u64,
    ends: [String; 2],
    protocol: u8,
    packets: [u64; 2],
    bytes: [u64; 2],
    flags: Option<[u8; 2]>,
    reason: u8,
}

impl Kept {
    fn told(&self, reason: EndReason) -> Told {
        Told {
            first: self.first,
            last: self.last,
            ends: self.ends.map(|(address, port)| format!("10.0.0.{address}:{port}")),
            protocol: self.protocol,
            packets: self.packets,
            bytes: self.bytes,
            flags: (self.protocol == 6).then_some(self.flags),
            reason: reason.number(),
        }
    }

    fn over_at(&self) -> (u64, EndReason) {
        let (idle, active) = (self.last + IDLE, self.first + ACTIVE);
        match self.closed {
            true => (idle.min(active).min(self.last + 1000 * MS), EndReason::Closed),
            false if active < idle => (active, EndReason::Active),
            false => (idle, EndReason::Idle),
        }
    }
}

impl Twin {
    fn add(&mut self, made: &Made) {
        let is = |kept: &Kept| {
            kept.protocol == made.protocol
                && (kept.ends == [made.from, made.to] || kept.ends == [made.to, made.from])
        };
        if let Some(at) = self.open.iter().position(is) {
            let (over_at, reason) = self.open[at].over_at();
            let opens = made.flags & 2 != 0 && made.protocol == 6 && made.time > self.open[at].last;
            if made.time >= over_at || self.open[at].closed && opens {
                let told = self.open.remove(at).told(reason);
                self.ended.push(told);
            }
        }
        let at = self.open.iter().position(is).unwrap_or_else(|| {
            self.open.push(Kept {
                ends: [made.from, made.to],
                protocol: made.protocol,
                first: made.time,
                last: made.time,
                packets: [0; 2],
                bytes: [0; 2],
                flags: [0; 2],
                closed: false,
            });
            self.open.len() - 1
        });
        let kept = &mut self.open[at];
        // The first SYN says who began, else the earliest packet.
        let has_syn = (kept.flags[0] | kept.flags[1]) & 2 != 0;
        let syn = made.protocol == 6 && made.flags & 2 != 0 && !has_syn;
        let began = if syn && made.flags & 0x10 != 0 { made.to } else { made.from };
        if (syn || !has_syn && made.time < kept.first) && kept.ends[0] != began {
            kept.ends.swap(0, 1);
            kept.packets.swap(0, 1);
            kept.bytes.swap(0, 1);
            kept.flags.swap(0, 1);
        }
        let side = usize::from(kept.ends[0] != made.from);
        kept.first = kept.first.min(made.time);
        kept.last = kept.last.max(made.time);
        kept.packets[side] += 1;
        kept.bytes[side] += u64::from(20 + if made.protocol == 6 { 20 } else { 8 } + made.payload);
        if made.protocol == 6 {
            kept.flags[side] |= made.flags;
            kept.closed |= made.flags & 4 != 0 || kept.flags[0] & kept.flags[1] & 1 != 0;
        }
    }
}

fn told(flow: &Flow) -> Told {
    Told {
        first: flow.first,
        last: flow.last,
        ends: flow.sides.map(|side| format!("{}:{}", side.end.address, side.end.port)),
        protocol: flow.protocol,
        packets: flow.sides.map(|side| side.packets),
        bytes: flow.sides.map(|side| side.bytes),
        flags: flow.tcp.map(|tcp| tcp.flags),
        reason: flow.reason.number(),
    }
}

fn packets() -> impl Strategy<Value = Vec<Made>> {
    let end = || (1_u8..4, prop_oneof![Just(53_u16), Just(4000), Just(4001)]);
    let flags = prop_oneof![Just(2_u8), Just(0x12), Just(0x10), Just(0x11), Just(0x14), Just(1), Just(0)];
    // Mostly forwards, and a little back.
    let packet = (-20_i64..120, end(), end(), prop_oneof![Just(6_u8), Just(17)], flags, 0_u16..100);
    prop::collection::vec(packet, 1..300).prop_map(|all| {
        let mut now = 1_700_000_000_000 * MS;
        let made = |(step, from, to, protocol, flags, payload): (i64, _, _, u8, u8, u16)| {
            now = now.saturating_add_signed(step * MS.cast_signed());
            Made { time: now, from, to, protocol, flags, sequence: 0, window: 1, payload }
        };
        all.into_iter().map(made).collect()
    })
}

/// The same, all at once.
fn run_at_once(table: &mut Table, packets: &[Made]) -> Vec<Flow> {
    let mut flows = Vec::new();
    let frames: Vec<_> = packets.iter().map(|made| (made.time, made.frame())).collect();
    let observations = frames.iter().map(|(time, frame)| {
        let length = u32::try_from(frame.len()).expect("short");
        Observation { time: *time, interface: 0, link_type: 1, frame, length }
    });
    table.add_all(observations, &mut |flow| flows.push(flow));
    flows
}

/// Runs packets through a table, and returns the flows.
fn run(table: &mut Table, packets: &[Made]) -> Vec<Flow> {
    let mut flows = Vec::new();
    for made in packets {
        let frame = made.frame();
        let length = u32::try_from(frame.len()).expect("short");
        let observation = Observation { time: made.time, interface: 0, link_type: 1, frame: &frame, length };
        table.add(&observation, &mut |flow| flows.push(flow));
        assert!(table.counts().adds_up(), "{:?}", table.counts());
    }
    flows
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn flows_are_those_of_the_twin(packets in packets()) {
        let mut twin = Twin::default();
        packets.iter().for_each(|made| twin.add(made));
        let mut expected: Vec<Told> = twin.ended;
        let mut table = Table::new(&settings(1000)).expect("enough memory");
        let mut flows = run(&mut table, &packets);
        let mut other = Table::new(&settings(1000)).expect("enough memory");
        prop_assert_eq!(&run_at_once(&mut other, &packets), &flows);
        prop_assert_eq!(other.counts(), table.counts());
        for rank in [Rank::Bytes, Rank::Packets, Rank::Rate, Rank::Retransmissions] {
            let mut all = Vec::new();
            table.for_each(|flow| all.push(flow.rank(rank)));
            all.sort_unstable_by(|one, other| other.cmp(one));
            all.truncate(3);
            let busiest: Vec<_> = table.busiest(3, rank).iter().map(|flow| flow.rank(rank)).collect();
            prop_assert_eq!(busiest, all);
        }
        let end = packets.iter().map(|made| made.time).max().unwrap_or_default();
        // What is over before the end was handed out by then, or is forced out now: the reason differs, and nothing else.
        table.end_all(&mut |flow| flows.push(flow));
        let mut found: Vec<Told> = flows.iter().map(told).collect();
        expected.extend(twin.open.iter().map(|kept| kept.told(kept.over_at().1)));
        for (told, flow) in found.iter_mut().zip(&flows) {
            if flow.reason == EndReason::Forced {
                prop_assert!(flow.last + IDLE + 102 * MS > end || flow.first + ACTIVE + 102 * MS > end, "{flow:?} is over");
                let open = twin.open.iter().find(|kept| {
                    let kept = kept.told(EndReason::Forced);
                    kept == Told { reason: EndReason::Forced.number(), ..told.clone() }
                });
                told.reason = open.map_or(0, |kept| kept.over_at().1.number());
            }
        }
        found.sort();
        expected.sort();
        prop_assert_eq!(found, expected);
        prop_assert_eq!((table.counts().flows, table.counts().in_table), (0, 0));
    }

    #[test]
    fn with_too_little_room_no_packet_is_missing(packets in packets(), room in 1_u32..5) {
        let mut table = Table::new(&settings(room)).expect("enough memory");
        let mut flows = run(&mut table, &packets);
        prop_assert!(table.counts().flows <= room.into());
        table.end_all(&mut |flow| flows.push(flow));
        let sum: u64 = flows.iter().map(Flow::packets).sum();
        prop_assert_eq!(sum, packets.len() as u64);
        let bytes: u64 = flows.iter().map(Flow::bytes).sum();
        prop_assert_eq!(bytes, table.counts().bytes);
        prop_assert_eq!(flows.len() as u64, table.counts().all_ended());
    }
}

#[test]
fn the_flow_that_is_silent_longest_makes_room() {
    let packet = |time: u64, from: u8| Made {
        time: time * MS,
        from: (from, 1),
        to: (200, 2),
        protocol: 17,
        flags: 0,
        sequence: 0,
        window: 0,
        payload: 1,
    };
    // 1 and 2 begin, 1 goes on; 3 comes.
    let mut table = Table::new(&settings(2)).expect("enough memory");
    let flows = run(&mut table, &[packet(1, 1), packet(20, 2), packet(40, 1), packet(60, 3)]);
    let [flow] = &flows[..] else { panic!("{flows:?}") };
    assert_eq!(
        (flow.sides[0].end.address.to_string(), flow.reason),
        ("10.0.0.2".to_owned(), EndReason::NoRoom)
    );
}
