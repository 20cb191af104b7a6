//! Tables find what a list that is searched in order finds.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::ops::RangeInclusive;

use proptest::prelude::*;
use weir_classify::{
    Condition, Direction, Directions, Error, Fields, Kind, Kinds, MOST_TAGS, Prefix, Tables, Tag, Tags,
};

const LIMIT: usize = 64 << 20;

/// Addresses of which many share prefixes, and the ends of the space.
fn address() -> impl Strategy<Value = IpAddr> {
    let byte = prop_oneof![Just(0), Just(1), Just(127), Just(128), Just(255)];
    let ipv4 = prop::array::uniform4(byte.clone()).prop_map(|bytes| Ipv4Addr::from(bytes).into());
    let ipv6 = prop::array::uniform4(byte).prop_map(|[a, b, c, d]| {
        let mut bytes = [a; 16];
        (bytes[7], bytes[8], bytes[15]) = (b, c, d);
        Ipv6Addr::from(bytes).into()
    });
    prop_oneof![ipv4, ipv6]
}

fn prefix() -> impl Strategy<Value = Prefix> {
    (address(), any::<prop::sample::Index>()).prop_map(|(address, length)| {
        let bits = if address.is_ipv4() { 33 } else { 129 };
        Prefix::new(address, u8::try_from(length.index(bits)).expect("few bits")).expect("a prefix")
    })
}

fn port() -> impl Strategy<Value = u16> {
    prop_oneof![Just(0), Just(u16::MAX), 50..60_u16]
}

fn ports() -> impl Strategy<Value = RangeInclusive<u16>> {
    (port(), port()).prop_map(|(a, b)| a.min(b)..=a.max(b))
}

fn kind() -> impl Strategy<Value = Kind> {
    prop_oneof![
        Just(Kind::Ipv4),
        Just(Kind::Ipv6),
        Just(Kind::Arp),
        Just(Kind::ReverseArp),
        Just(Kind::Other)
    ]
}

fn kinds() -> impl Strategy<Value = Kinds> {
    let protocol = prop_oneof![Just(0), Just(6), Just(17), Just(255)].prop_map(Kinds::of_protocol);
    let one = prop_oneof![Just(Kinds::ALL), kind().prop_map(Kinds::of), protocol];
    (one.clone(), one, any::<bool>()).prop_map(|(a, b, both)| if both { a.and(b) } else { a.or(b) })
}

fn direction() -> impl Strategy<Value = Direction> + Clone {
    prop_oneof![Just(Direction::Received), Just(Direction::Sent)]
}

fn directions() -> impl Strategy<Value = Directions> {
    let one = direction().prop_map(Directions::of);
    prop_oneof![Just(Directions::ALL), one.clone(), one.prop_map(Directions::complement)]
}

fn vlan() -> impl Strategy<Value = u16> + Clone {
    prop_oneof![Just(0), Just(4095), 5..8_u16]
}

fn tags() -> impl Strategy<Value = Tags> {
    let of = (vlan(), vlan()).prop_map(|(a, b)| Tags::Of(a.min(b)..=a.max(b)));
    prop_oneof![Just(Tags::None), Just(Tags::Any), of.clone(), of]
}

fn some_tags() -> impl Strategy<Value = [Tag; MOST_TAGS]> {
    let tag = prop_oneof![Just(Tag::Cut), vlan().prop_map(Tag::Of), vlan().prop_map(Tag::Of)];
    prop::collection::vec(tag, 0..=MOST_TAGS)
        .prop_map(|tags| std::array::from_fn(|at| tags.get(at).copied().unwrap_or(Tag::None)))
}

fn condition() -> impl Strategy<Value = Condition> {
    let addresses = [prop::option::of(prefix()), prop::option::of(prefix())];
    let ranges = [prop::option::of(ports()), prop::option::of(ports())];
    let tags = prop::option::of(tags());
    (prop_oneof![Just(Kinds::ALL), kinds()], directions(), tags, addresses, ranges).prop_map(
        |(kinds, directions, tags, [source, destination], [source_ports, destination_ports])| Condition {
            kinds,
            directions,
            tags,
            source,
            destination,
            source_ports,
            destination_ports,
        },
    )
}

fn fields() -> impl Strategy<Value = Fields> {
    let protocol = prop::option::of(prop_oneof![Just(0), Just(6), Just(17), Just(255)]);
    let addresses = [prop::option::of(address()), prop::option::of(address())];
    let ports = [prop::option::of(port()), prop::option::of(port())];
    (kind(), protocol, addresses, ports, some_tags(), prop::option::of(direction())).prop_map(
        |(kind, protocol, addresses, ports, tags, direction)| Fields {
            kind,
            protocol,
            addresses,
            ports,
            tags,
            direction,
        },
    )
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(40))]

    /// Every condition that holds, in order.
    #[test]
    fn tables_find_what_a_list_finds(
        conditions in prop::collection::vec(condition(), 0..150),
        packets in prop::collection::vec(fields(), 1..50),
    ) {
        let tables = Tables::new(&conditions, &[], LIMIT).expect("few conditions");
        for packet in packets {
            let mut from = 0;
            loop {
                let expected = (from..conditions.len()).find(|&one| conditions[one].holds(&packet));
                prop_assert_eq!(tables.find(&packet, from), expected, "{:?} from {}", packet, from);
                let Some(found) = expected else { break };
                from = found + 1;
            }
        }
    }

    /// A packet meets a condition or one of its complement, and never both.
    #[test]
    fn a_complement_has_all_other_packets(
        kinds in kinds(),
        directions in directions(),
        tags in prop_oneof![Just(None), Just(Some(Tags::None)), Just(Some(Tags::Any))],
        packet in fields(),
    ) {
        let condition = Condition { kinds, directions, tags, ..Condition::ALL };
        let others = condition.complement().expect("it is about no address");
        let other = others.iter().any(|other| other.holds(&packet));
        prop_assert!(other != condition.holds(&packet), "{:?}, {:?}", condition, others);
    }
}

proptest! {
    /// What holds where both do has all of their packets, and no others unless it is about two VLAN IDs.
    #[test]
    fn both_of_two_conditions(
        conditions in prop::collection::vec(condition(), 2),
        packets in prop::collection::vec(fields(), 1),
    ) {
        let ([one, other], packet) = (&conditions[..], packets[0]) else { panic!("two conditions") };
        let and = one.and(other).is_some_and(|both| both.holds(&packet));
        let both = one.holds(&packet) && other.holds(&packet);
        prop_assert!(and == both || and && !one.agrees(other), "{:?}, {:?}", one, other);
    }

    #[test]
    fn both_of_two_conditions_about_tags(one in tags(), other in tags(), packet in fields()) {
        let [one, other] = [one, other].map(|tags| Condition { tags: Some(tags), ..Condition::ALL });
        let and = one.and(&other).is_some_and(|both| both.holds(&packet));
        let both = one.holds(&packet) && other.holds(&packet);
        prop_assert!(and == both || and && !one.agrees(&other), "{:?}, {:?}", one, other);
    }
}

/// Each condition is for one host; a packet of the last one meets no other.
#[test]
fn the_last_of_many_is_found() {
    let host = |number: u32| Ipv4Addr::from_bits(0x0a00_0000 + number * 7);
    let wanted = |number| Condition { source: Prefix::new(host(number).into(), 32), ..Condition::ALL };
    let conditions: Vec<Condition> = (0..10_000).map(wanted).collect();
    let tables = Tables::new(&conditions, &[], 256 << 20).expect("they have room");
    for number in [0, 1, 63, 64, 4095, 4096, 9_999] {
        let addresses = [Some(host(number).into()), None];
        let packet = Fields { kind: Kind::Ipv4, addresses, ..Fields::NONE };
        assert_eq!(tables.find(&packet, 0), Some(number as usize));
        let between = Ipv4Addr::from_bits(host(number).to_bits() + 1);
        let packet = Fields { addresses: [Some(between.into()), None], ..packet };
        assert_eq!(tables.find(&packet, 0), None);
    }
}

#[test]
fn what_has_no_room_is_refused() {
    let host = |number| Prefix::new(Ipv4Addr::from_bits(number).into(), 32);
    let conditions: Vec<Condition> =
        (0..1000).map(|number| Condition { source: host(number), ..Condition::ALL }).collect();
    let error = Tables::new(&conditions, &[], 100_000).expect_err("too much");
    assert!(matches!(error, Error::Memory { needed, limit: 100_000 } if needed > 100_000), "{error}");
    let many = vec![Condition::ALL; weir_classify::MOST_CONDITIONS + 1];
    assert_eq!(Tables::new(&many, &[], LIMIT).expect_err("too many"), Error::Conditions(16_385));
    assert_eq!(Tables::new(&[], &[], LIMIT).expect("none").find(&Fields::NONE, 0), None);
    assert_eq!(Tables::new(&[Condition::ALL], &[], LIMIT).expect("one").find(&Fields::NONE, 0), Some(0));
    assert_eq!(Prefix::new(Ipv4Addr::LOCALHOST.into(), 33), None);
}

#[test]
fn conditions_that_are_not_enough_are_known_where_no_field_has_tables() {
    let tables = Tables::new(&[Condition::ALL, Condition::ALL], &[1], LIMIT).expect("small tables");
    let at = tables.shape().rest as usize;
    assert_ne!(at, 0, "which means that all conditions are enough");
    assert_eq!(tables.bytes()[at..at + 8], 2_u64.to_ne_bytes());
}
