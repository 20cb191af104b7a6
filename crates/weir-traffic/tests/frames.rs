//! Every frame is what its description says: a slow and obvious reader checks lengths and checksums from the outside in.

use std::collections::HashSet;

use proptest::prelude::*;
use weir_traffic::{
    Description, DescriptionField, Order, Protocol, SIGNATURE_LENGTH, Signature, Sizes, Tables, Vxlan,
};

const STREAM: u16 = 0xbeef;

/// What a reader finds in a frame: the ports or what ICMP has in their place, and the signature.
#[derive(Debug, PartialEq, Eq, Hash)]
struct Read {
    vlans: Vec<u16>,
    vni: Option<u32>,
    addresses: Vec<u8>,
    protocol: u8,
    ports: [u16; 2],
}

fn word(bytes: &[u8], at: usize) -> u16 {
    u16::from_be_bytes([bytes[at], bytes[at + 1]])
}

/// The Internet checksum over these bytes, one after the other, is right.
fn adds_up(parts: &[&[u8]]) -> bool {
    let mut bytes = parts.concat();
    bytes.resize(bytes.len().next_multiple_of(2), 0);
    let mut sum = 0_u64;
    for at in (0..bytes.len()).step_by(2) {
        sum += u64::from(word(&bytes, at));
    }
    while sum > 0xffff {
        sum = (sum & 0xffff) + (sum >> 16);
    }
    sum == 0xffff
}

/// Reads a frame; every length and checksum in it must be right. Returns what it says, and its payload.
fn read(frame: &[u8]) -> (Read, Vec<u8>) {
    let mut at = 12;
    let mut vlans = Vec::new();
    while [0x8100, 0x88a8].contains(&word(frame, at)) {
        vlans.push(word(frame, at + 2));
        at += 4;
    }
    let packet = &frame[at + 2..];
    let (header, addresses, protocol) = match word(frame, at) {
        0x0800 => {
            assert_eq!((packet[0], usize::from(word(packet, 2))), (0x45, packet.len()));
            assert!(adds_up(&[&packet[..20]]), "IPv4 header: {packet:02x?}");
            (20, &packet[12..20], packet[9])
        }
        0x86dd => {
            assert_eq!((packet[0], usize::from(word(packet, 4))), (0x60, packet.len() - 40));
            (40, &packet[8..40], packet[6])
        }
        other => panic!("type {other:04x}"),
    };
    let inside = &packet[header..];
    let length = u32::try_from(inside.len()).expect("short").to_be_bytes();
    let pseudo = [addresses, &length, &[0, protocol]].concat();
    let (ports, begin) = match protocol {
        17 => {
            assert_eq!(usize::from(word(inside, 4)), inside.len());
            if word(inside, 2) == 4789 && word(inside, 6) == 0 {
                assert_eq!(inside[8..12], [8, 0, 0, 0]);
                let vni = u32::from_be_bytes([0, inside[12], inside[13], inside[14]]);
                let (inner, payload) = read(&inside[16..]);
                return (Read { vlans, vni: Some(vni), ..inner }, payload);
            }
            assert_ne!(word(inside, 6), 0, "no checksum");
            assert!(adds_up(&[&pseudo, inside]), "UDP: {inside:02x?}");
            ([word(inside, 0), word(inside, 2)], 8)
        }
        6 => {
            assert!(inside[12] == 0x50 && adds_up(&[&pseudo, inside]), "TCP: {inside:02x?}");
            ([word(inside, 0), word(inside, 2)], 20)
        }
        1 => {
            assert!(inside[..2] == [8, 0] && adds_up(&[inside]), "ICMP: {inside:02x?}");
            ([word(inside, 4), word(inside, 6)], 8)
        }
        58 => {
            assert!(inside[..2] == [128, 0] && adds_up(&[&pseudo, inside]), "ICMPv6: {inside:02x?}");
            ([word(inside, 4), word(inside, 6)], 8)
        }
        other => panic!("protocol {other}"),
    };
    let read = Read { vlans, vni: None, addresses: addresses.to_vec(), protocol, ports };
    (read, inside[begin..].to_vec())
}

fn protocols() -> impl Strategy<Value = Protocol> {
    prop_oneof![Just(Protocol::Udp), any::<u8>().prop_map(Protocol::Tcp), Just(Protocol::Icmp)]
}

fn some_sizes() -> impl Strategy<Value = Option<Sizes>> {
    prop_oneof![
        Just(None),
        (146..2000_u32).prop_map(|size| Some(Sizes::Fixed(size))),
        (146..200_u32, 0..400_u32).prop_map(|(first, more)| Some(Sizes::Range(first, first + more))),
        Just(Some(Sizes::Range(65_500, 65_549))),
        Just(Some(Sizes::Imix)),
    ]
}

prop_compose! {
    fn descriptions()(
        v6: bool,
        protocol in protocols(),
        vlans in prop::collection::vec(0..4095_u16, 0..2),
        vni in prop::option::of(0..1_u32 << 24),
        sizes in some_sizes(),
        flows in 1..200_u32,
        drawn: bool,
        order in prop_oneof![Just(Order::Turn), Just(Order::Random), (0.1..3.0).prop_map(Order::Zipf)],
        seed: u64,
    ) -> Description {
        let vxlan = vni.map(Vxlan::new);
        Description { protocol, vlans, vxlan, sizes, flows, drawn, order, seed, ..Description::new(v6) }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]

    #[test]
    fn lengths_and_checksums_are_right(
        description in descriptions(),
        first in 0..1_u64 << 47,
        time in 0..1_u64 << 48,
    ) {
        let tables = Tables::new(&description).expect("possible");
        let mut frame = Vec::new();
        for sequence in first..first + 100 {
            tables.write(sequence, time, STREAM, &mut frame);
            prop_assert_eq!(frame.len(), tables.size(sequence) as usize);
            let (read, payload) = read(&frame);
            prop_assert_eq!(Signature::from_bytes(&payload), Some(Signature { stream: STREAM, sequence, time }));
            prop_assert!(payload[SIGNATURE_LENGTH..].iter().all(|&byte| byte == 0));
            prop_assert_eq!(Signature::find(&frame, 0).expect("a signature").offset, tables.head_length);
            prop_assert_eq!(&read.vlans, &description.vlans);
            prop_assert_eq!(read.vni, description.vxlan.map(|vxlan| vxlan.vni));
        }
    }

    #[test]
    fn heads_are_those_of_the_largest_frames(description in descriptions()) {
        let tables = Tables::new(&description).expect("possible");
        let largest = tables.sizes.iter().position(|&size| size == tables.largest()).expect("a size");
        let mut frame = Vec::new();
        tables.write(largest as u64, 0, STREAM, &mut frame);
        let head = &tables.heads[tables.order[largest % tables.order.len()] as usize];
        prop_assert_eq!(&head.bytes[..tables.head_length], &frame[..tables.head_length]);
    }

    #[test]
    fn flows_are_as_many_as_described(mut description in descriptions()) {
        description.order = Order::Turn;
        let tables = Tables::new(&description).expect("possible");
        let mut frame = Vec::new();
        let flows: Vec<Read> = (0..2 * u64::from(description.flows))
            .map(|sequence| {
                tables.write(sequence, 0, STREAM, &mut frame);
                read(&frame).0
            })
            .collect();
        let (once, again) = flows.split_at(description.flows as usize);
        prop_assert_eq!(once.iter().collect::<HashSet<_>>().len(), once.len());
        prop_assert_eq!(once, again, "not in turn");
    }
}

/// A checksum that would be 0 is written as all ones with UDP, and stays 0 elsewhere.
#[test]
fn no_udp_checksum_is_absent() {
    let mut description = Description { flows: 1 << 16, ..Description::new(false) };
    // All ports bring all checksums.
    description.sources = "10.0.0.1".parse().expect("an address");
    description.source_ports = "0-65535".parse().expect("ports");
    for (protocol, at, extreme) in [(Protocol::Udp, 40, 0xffff), (Protocol::Tcp(2), 50, 0)] {
        let tables = Tables::new(&Description { protocol, ..description.clone() }).expect("possible");
        let mut found = HashSet::new();
        let mut frame = Vec::new();
        for sequence in 0..1 << 16 {
            tables.write(sequence, 0, 0, &mut frame);
            let checksum = word(&frame, at);
            if [0, 0xffff].contains(&checksum) {
                read(&frame);
                found.insert(checksum);
            }
        }
        assert_eq!(found, HashSet::from([extreme]), "{protocol:?}");
    }
}

#[test]
fn what_cannot_be_is_refused_with_a_remedy() {
    type Change = fn(&mut Description);
    let cases: [(Change, DescriptionField, &str, &str); 8] = [
        (|wanted| wanted.vlans = vec![1, 2, 3], DescriptionField::Vlans, "3 tags", "one or two"),
        (|wanted| wanted.vlans = vec![4095], DescriptionField::Vlans, "4095 is no ID", "0 to 4094"),
        (|wanted| wanted.vxlan = Some(Vxlan::new(1 << 24)), DescriptionField::Vxlan, "24 bits", "16777215"),
        (|wanted| wanted.order = Order::Zipf(0.0), DescriptionField::Order, "0 is no exponent", "1.1"),
        (
            |wanted| wanted.sizes = Some(Sizes::Fixed(59)),
            DescriptionField::Sizes,
            "59 bytes have no room",
            "60 or more",
        ),
        (
            |wanted| wanted.sizes = Some(Sizes::Range(60, 65_550)),
            DescriptionField::Sizes,
            "too many",
            "up to 65549",
        ),
        (
            |wanted| wanted.sizes = Some(Sizes::Range(70, 60)),
            DescriptionField::Sizes,
            "60 is less than 70",
            "60-70",
        ),
        (
            |wanted| wanted.destinations = Description::new(true).destinations,
            DescriptionField::Destinations,
            "different IP versions",
            "both of IPv4",
        ),
    ];
    for (change, field, why, remedy) in cases {
        let mut description = Description::new(false);
        change(&mut description);
        let refusal = Tables::new(&description).expect_err(why);
        assert_eq!(refusal.field, field, "{refusal}");
        assert!(refusal.why.contains(why) && refusal.remedy.contains(remedy), "{refusal}");
    }
    let mut long = Description { protocol: Protocol::Tcp(2), ..Description::new(true) };
    (long.vxlan, long.vlans) = (Some(Vxlan::new(1)), vec![1]);
    assert_eq!(Tables::new(&long).expect("possible").head_length, weir_traffic::LONGEST_HEAD);
    long.vlans.push(2);
    assert!(Tables::new(&long).expect_err("too long").why.contains("headers have 132 bytes"));
}
