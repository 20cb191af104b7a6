//! The walk over whole frames.

use std::fmt::Write as _;

use proptest::prelude::*;

use crate::*;

const MACS: [u8; 12] = [2, 0, 0, 0, 0, 2, 2, 0, 0, 0, 0, 1];

fn ethernet(kind: u16, payload: &[u8]) -> Vec<u8> {
    [&MACS[..], &kind.to_be_bytes(), payload].concat()
}

fn ip4(protocol: u8, payload: &[u8]) -> Vec<u8> {
    let length = u16::try_from(20 + payload.len()).expect("short").to_be_bytes();
    let [high, low] = length;
    let head = [0x45, 0, high, low, 0, 9, 0, 0, 64, protocol, 0, 0, 10, 0, 0, 2, 10, 0, 0, 1];
    [&head[..], payload].concat()
}

fn ip6(next: u8, payload: &[u8]) -> Vec<u8> {
    let length = u16::try_from(payload.len()).expect("short").to_be_bytes();
    [&[0x60, 0, 0, 0][..], &length, &[next, 64], &[0xfd; 16], &[0xfc; 16], payload].concat()
}

fn udp(port: u16, payload: &[u8]) -> Vec<u8> {
    [&[0x15, 0xb3][..], &port.to_be_bytes(), &[0, 0, 0, 0], payload].concat()
}

/// Says the layers of a frame in a line.
fn walked(link: u16, frame: &[u8]) -> String {
    let mut line = String::new();
    for layer in Walk::new(link, frame) {
        let _ = match layer {
            Layer::Ethernet { at } => write!(line, "{at}:ethernet "),
            Layer::Tag(tag) => write!(line, "{}:tag {:x} {} ", tag.at, tag.protocol, tag.id()),
            Layer::Labels { at, count } => write!(line, "{at}:labels {count} "),
            Layer::Session { at, number } => write!(line, "{at}:session {number} "),
            Layer::Ip { at, ip } => write!(line, "{at}:{:?} ", ip.version),
            Layer::Tunnel { at, entry: Entry { tunnel, number, .. } } => {
                write!(
                    line,
                    "{at}:{tunnel:?} {} ",
                    number.map_or_else(|| "-".to_owned(), |number| number.to_string())
                )
            }
            Layer::Rest { at, what, extent } => write!(line, "{at}:{what:x?} {extent:?}"),
        };
    }
    line
}

#[test]
fn each_link_type_leads_to_its_packet() {
    let packet = ip6(protocol::TCP, &[0; 20]);
    let behind = |header: &[u8]| [header, &packet].concat();
    for (link, frame, at) in [
        (link_type::ETHERNET, ethernet(ethertype::IPV6, &packet), 14),
        (link_type::COOKED, behind(&[&[0; 14][..], &[0x86, 0xdd]].concat()), 16),
        (link_type::COOKED_2, behind(&[&[0x86, 0xdd][..], &[0; 18]].concat()), 20),
        (link_type::RAW, packet.clone(), 0),
        (link_type::RAW_12, packet.clone(), 0),
        (link_type::RAW_14, packet.clone(), 0),
        (link_type::IPV6, packet.clone(), 0),
        (link_type::NULL, behind(&[30, 0, 0, 0]), 4),
        (link_type::LOOP, behind(&[0, 0, 0, 24]), 4),
    ] {
        assert!(link::is_known(link));
        let first = if link == link_type::ETHERNET { "0:ethernet " } else { "" };
        let expected = format!("{first}{at}:V6 {}:Protocol(6) Complete", at + 40);
        assert_eq!(walked(link, &frame), expected, "{link}");
        assert_eq!(link::outermost_ip(link, &frame).map(|payload| payload.at), Some(at));
    }
    assert!(!link::is_known(105));
    assert_eq!(walked(105, &packet), "0:Unknown Complete");
    for (link, header) in
        [(link_type::RAW, 1), (link_type::LOOP, 5), (link_type::COOKED, 16), (link_type::COOKED_2, 2)]
    {
        assert_eq!(walked(link, &vec![0; header - 1]), "0:Unknown Cut", "{link}");
    }
    assert_eq!(walked(link_type::RAW, &[0x50; 60]), "0:Unknown Complete");
}

#[test]
fn every_layer_is_found() {
    let packet = ip4(protocol::UDP, &udp(9, b"x"));
    let frame = ethernet(ethertype::IPV4, &packet);
    let tagged = ethernet(0x88a8, &[&[0x20, 5, 0x81, 0, 0x10, 6, 8, 0][..], &packet].concat());
    let labelled = |inside: &[u8]| ethernet(ethertype::MPLS, &[&[0, 1, 0, 64, 0, 2, 1, 64], inside].concat());
    let session = ethernet(ethertype::PPPOE, &[&[0x11, 0, 0, 7, 0, 60, 0, 0x21][..], &packet].concat());
    let tunnel = |port, head: &[u8], inside: &[u8]| {
        ethernet(ethertype::IPV4, &ip4(protocol::UDP, &udp(port, &[head, inside].concat())))
    };
    let gre =
        |head: &[u8], inside: &[u8]| ethernet(ethertype::IPV4, &ip4(protocol::GRE, &[head, inside].concat()));
    for (frame, expected) in [
        (frame.clone(), "0:ethernet 14:V4 34:Protocol(11) Complete"),
        (tagged, "0:ethernet 14:tag 88a8 5 18:tag 8100 6 22:V4 42:Protocol(11) Complete"),
        (labelled(&packet), "0:ethernet 14:labels 2 22:V4 42:Protocol(11) Complete"),
        (
            labelled(&[&[0; 4], &frame[..]].concat()),
            "0:ethernet 14:labels 2 26:ethernet 40:V4 60:Protocol(11) Complete",
        ),
        (labelled(&[0x50]), "0:ethernet 14:labels 2 22:Unknown Complete"),
        (session, "0:ethernet 14:session 7 22:V4 42:Protocol(11) Complete"),
        (
            ethernet(ethertype::PPPOE, &[0x11, 0, 0, 7, 0, 4, 0xc0, 0x21]),
            "0:ethernet 14:session 7 20:Unknown Complete",
        ),
        (
            tunnel(port::VXLAN, &[8, 0, 0, 0, 0, 1, 2, 0], &frame),
            "0:ethernet 14:V4 34:Vxlan 258 50:ethernet 64:V4 84:Protocol(11) Complete",
        ),
        (
            tunnel(port::LINUX_VXLAN, &[8, 0, 0, 0, 0, 1, 2, 0], &frame),
            "0:ethernet 14:V4 34:Vxlan 258 50:ethernet 64:V4 84:Protocol(11) Complete",
        ),
        (tunnel(port::VXLAN, &[0; 8], &frame), "0:ethernet 14:V4 34:Protocol(11) Complete"),
        (
            tunnel(port::GENEVE, &[1, 0, 0x65, 0x58, 0, 0, 9, 0, 1, 1, 1, 1], &frame),
            "0:ethernet 14:V4 34:Geneve 9 54:ethernet 68:V4 88:Protocol(11) Complete",
        ),
        (
            tunnel(port::GENEVE, &[0, 0, 0x86, 0xdd, 0, 0, 9, 0], &ip6(protocol::ICMPV6, &[])),
            "0:ethernet 14:V4 34:Geneve 9 50:V6 90:Protocol(3a) Complete",
        ),
        (
            tunnel(port::GTP_U, &[0x30, 255, 0, 60, 0, 0, 0, 7], &packet),
            "0:ethernet 14:V4 34:GtpU 7 50:V4 70:Protocol(11) Complete",
        ),
        (
            tunnel(port::GTP_U, &[0x34, 255, 0, 60, 0, 0, 0, 7, 0, 0, 0, 0x85, 1, 0, 0, 0], &packet),
            "0:ethernet 14:V4 34:GtpU 7 58:V4 78:Protocol(11) Complete",
        ),
        (
            tunnel(port::GTP_U, &[0x30, 1, 0, 60, 0, 0, 0, 7], &packet),
            "0:ethernet 14:V4 34:Protocol(11) Complete",
        ),
        (
            gre(&[0x30, 0, 8, 0, 0, 0, 0, 3, 0, 0, 0, 4], &packet),
            "0:ethernet 14:V4 34:Gre 3 46:V4 66:Protocol(11) Complete",
        ),
        (
            gre(&[0x80, 0, 0x65, 0x58, 1, 1, 0, 0], &frame),
            "0:ethernet 14:V4 34:Gre - 42:ethernet 56:V4 76:Protocol(11) Complete",
        ),
        (
            gre(&[0, 0, 0x81, 0], &[&[0, 5, 8, 0][..], &packet].concat()),
            "0:ethernet 14:V4 34:Gre - 38:Kind(8100) Complete",
        ),
        (ethernet(ethertype::PPPOE, &[0x11, 0, 0, 7, 0, 4]), "0:ethernet 14:Kind(8864) Cut"),
        (gre(&[0x40, 0, 8, 0], &packet), "0:ethernet 14:V4 34:Protocol(2f) Complete"),
        (
            ethernet(ethertype::IPV6, &ip6(protocol::IPV4, &packet)),
            "0:ethernet 14:V6 54:Ip - 54:V4 74:Protocol(11) Complete",
        ),
        (ethernet(ethertype::ARP, &[0; 28]), "0:ethernet 14:Kind(806) Complete"),
        (ethernet(60, &[0; 60]), "0:ethernet 14:Kind(3c) Complete"),
    ] {
        assert_eq!(walked(link_type::ETHERNET, &frame), expected);
    }
}

#[test]
fn a_walk_ends_where_it_goes_too_far() {
    let tags = |count| ethernet(0x8100, &[&[0, 1, 0x81, 0].repeat(count - 1), &[0, 1, 8, 0][..]].concat());
    let last = |frame: &[u8]| Walk::new(link_type::ETHERNET, frame).last();
    let extent = |frame: &[u8]| match last(frame) {
        Some(Layer::Rest { extent, .. }) => extent,
        other => panic!("{other:?}"),
    };
    let whole = |count| [tags(count), ip4(protocol::UDP, &udp(9, b""))].concat();
    assert_eq!(extent(&whole(usize::from(most::TAGS))), Extent::Complete);
    assert!(link::outermost_ip(link_type::ETHERNET, &whole(usize::from(most::TAGS))).is_some());
    assert_eq!(extent(&whole(usize::from(most::TAGS) + 1)), Extent::TooMany);
    assert!(link::outermost_ip(link_type::ETHERNET, &whole(usize::from(most::TAGS) + 1)).is_none());
    let labels = |count: usize| {
        let stack = [&[0, 1, 0, 64].repeat(count - 1), &[0, 1, 1, 64][..]].concat();
        ethernet(ethertype::MPLS, &[&stack[..], &ip4(protocol::UDP, &udp(9, b""))].concat())
    };
    assert_eq!(extent(&labels(usize::from(most::LABELS))), Extent::Complete);
    assert_eq!(extent(&labels(usize::from(most::LABELS) + 1)), Extent::TooMany);
    assert_eq!(extent(&labels(3)[..20]), Extent::Cut);
    let tunnels = |count| {
        let inside =
            (0..count).fold(ip4(protocol::UDP, &udp(9, b"")), |packet, _| ip4(protocol::IPV4, &packet));
        ethernet(ethertype::IPV4, &inside)
    };
    assert_eq!(extent(&tunnels(most::TUNNELS)), Extent::Complete);
    assert_eq!(extent(&tunnels(most::TUNNELS + 1)), Extent::TooMany);
}

#[test]
fn a_later_fragment_enters_no_tunnel() {
    let mut packet = ip4(protocol::IPV4, &ip4(protocol::UDP, &udp(9, b"")));
    packet[7] = 1;
    let frame = ethernet(ethertype::IPV4, &packet);
    assert_eq!(walked(link_type::ETHERNET, &frame), "0:ethernet 14:V4 34:Protocol(4) Complete");
}

#[test]
fn both_ways_are_one_flow() {
    let turned = |mut packet: Vec<u8>| {
        let (mut addresses, mut ports) = (packet[12..20].to_vec(), packet[20..24].to_vec());
        addresses.rotate_left(4);
        ports.rotate_left(2);
        packet[12..20].copy_from_slice(&addresses);
        packet[20..24].copy_from_slice(&ports);
        packet
    };
    let there = ip4(protocol::UDP, &udp(9, b""));
    let flow = |packet: &[u8]| Flow::outer(link_type::RAW, packet).expect("it has a flow");
    let (one, other) = (flow(&there), flow(&turned(there.clone())));
    assert_eq!((one.0, one.1, other.1), (other.0, Way::Down, Way::Up));
    let [low, high] = one.0.ends;
    assert_eq!((low.port, high.port, one.0.protocol), (9, 0x15b3, protocol::UDP));
    assert_eq!(low.address.to_string(), "10.0.0.1");

    let mut later = there.clone();
    later[7] = 1;
    assert_eq!(flow(&later).0.ends.map(|end| end.port), [0, 0]);
    let outer = ip6(protocol::IPV4, &there);
    assert_eq!(flow(&outer).0.protocol, protocol::IPV4);
    assert_eq!(Flow::inner(link_type::RAW, &outer).expect("it has a flow"), one);
}

proptest! {
    /// Any bytes end a walk; offsets grow, and what is found twice is found at the same place.
    #[test]
    fn any_bytes_are_walked(
        link in prop::sample::select(vec![0u16, 1, 101, 105, 113, 276]),
        mut bytes in prop::collection::vec(any::<u8>(), 0..200),
        kind in prop::sample::select(vec![0x0800u16, 0x86dd, 0x8100, 0x8847, 0x8864, 0x0806]),
        protocol in prop::sample::select(vec![0u8, 4, 6, 17, 41, 43, 44, 47, 51, 60, 135, 139]),
        port in prop::sample::select(vec![53u16, 2152, 4789, 6081, 8472]),
    ) {
        // Most bytes would end at the first header.
        for (at, field) in [(12, &kind.to_be_bytes()[..]), (20, &[protocol]), (23, &[protocol]), (36, &port.to_be_bytes())] {
            if let Some(place) = bytes.get_mut(at..at + field.len()) {
                place.copy_from_slice(field);
            }
        }
        let layers: Vec<Layer> = Walk::new(link, &bytes).collect();
        let ends = matches!(layers.last(), Some(Layer::Rest { .. }));
        prop_assert!(ends, "{layers:?}");
        prop_assert!(layers.is_sorted_by_key(Layer::at), "{layers:?}");
        // Behind tags, labels and sessions alone.
        let outer = layers.iter().skip_while(|layer| matches!(layer, Layer::Ethernet { at: 0 })).find(|layer| {
            !matches!(layer, Layer::Tag(_) | Layer::Labels { .. } | Layer::Session { .. })
        });
        let outer = match outer {
            Some(Layer::Ip { at, .. }) => Some(*at),
            _ => None,
        };
        let alone = link::outermost_ip(link, &bytes).map(|packet| packet.at);
        let whole = alone.filter(|at| bytes.get(*at..).and_then(Ip::of).is_some());
        prop_assert!(alone == outer || whole.is_none() && outer.is_none(), "{alone:?} {layers:?}");
        let _ = (Flow::outer(link, &bytes), Flow::inner(link, &bytes), link::outermost_tag(link, &bytes));
    }
}
