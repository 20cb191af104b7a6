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
    assert!(!link::is_known(147));
    assert_eq!(walked(147, &packet), "0:Unknown Complete");
    for (link, header) in
        [(link_type::RAW, 1), (link_type::LOOP, 5), (link_type::COOKED, 16), (link_type::COOKED_2, 2)]
    {
        assert_eq!(walked(link, &vec![0; header - 1]), "0:Unknown Cut", "{link}");
    }
    assert_eq!(walked(link_type::RAW, &[0x50; 60]), "0:Unknown Complete");
}

/// LLC and SNAP with this EtherType.
fn snap(kind: u16, payload: &[u8]) -> Vec<u8> {
    [&[0xaa, 0xaa, 3, 0, 0, 0], &kind.to_be_bytes()[..], payload].concat()
}

/// A frame of 802.11: its first two bytes, so many others, and its body.
fn wlan(control: [u8; 2], others: usize, body: &[u8]) -> Vec<u8> {
    [&control[..], &vec![0; others], body].concat()
}

#[test]
fn other_link_types_lead_to_their_packet_or_to_none() {
    let packet = ip4(protocol::UDP, &udp(9, b"x"));
    let found = |at: usize| format!("{at}:V4 {}:Protocol(11) Complete", at + 20);
    let nothing = || "0:Unknown Complete".to_owned();
    let body = snap(ethertype::IPV4, &packet);
    let behind = |header: &[u8]| [header, &packet].concat();
    let marked = |mut frame: Vec<u8>, at: usize, mark: u8| {
        frame[at] |= mark;
        frame
    };
    let radiotap = |present: &[u8], fields: &[u8], frame: &[u8]| {
        let length = u8::try_from(4 + present.len() + fields.len()).expect("it is short");
        [&[0, 0, length, 0], present, fields, frame].concat()
    };
    let ppi = |link: u8, fields: &[u8], inside: &[u8]| {
        let length = u8::try_from(8 + fields.len()).expect("it is short");
        [&[0, 0, length, 0, link, 0, 0, 0], fields, inside].concat()
    };
    for (link, frame, expected) in [
        // RFC 1661, 6.5: an odd byte is a whole number; RFC 1662, 3.1: address and control may be left out.
        (link_type::PPP, behind(&[0, 0x21]), found(2)),
        (link_type::PPP, behind(&[0x21]), found(1)),
        (link_type::PPP, behind(&[0xff, 3, 0, 0x21]), found(4)),
        (link_type::PPP, behind(&[0xff, 3, 0x21]), found(3)),
        (link_type::PPP, behind(&[2, 0x81, 0, 1, 1, 64]), format!("2:labels 1 {}", found(6))),
        (link_type::PPP, behind(&[0xc0, 0x21]), nothing()),
        (link_type::PPP_HDLC, behind(&[0xff, 3, 0, 0x21]), found(4)),
        (link_type::PPP_HDLC, behind(&[0x0f, 0, 8, 0]), found(4)),
        (link_type::PPP_HDLC, behind(&[0x21]), nothing()),
        (link_type::CISCO_HDLC, behind(&[0x8f, 0, 8, 0]), found(4)),
        (link_type::CISCO_HDLC, behind(&[0x8f, 0, 0x80, 0x35]), "4:Kind(8035) Complete".to_owned()),
        // Two, three and four bytes of address; padding; SNAP, PPP; Cisco; a circuit of management; no end of an address.
        (link_type::FRAME_RELAY, behind(&[0x18, 0x41, 3, 0xcc]), found(4)),
        (link_type::FRAME_RELAY, behind(&[0x18, 0x40, 1, 3, 0, 0xcc]), found(6)),
        (link_type::FRAME_RELAY, behind(&[0x18, 0x40, 0, 1, 3, 0xcc]), found(6)),
        (link_type::FRAME_RELAY, behind(&[0x18, 0x41, 3, 0, 0x80, 0, 0, 0, 8, 0]), found(10)),
        (link_type::FRAME_RELAY, behind(&[0x18, 0x41, 3, 0xcf, 0x21]), found(5)),
        (link_type::FRAME_RELAY, behind(&[0x18, 0x41, 8, 0]), found(4)),
        (link_type::FRAME_RELAY, behind(&[0, 1, 8, 0]), nothing()),
        (link_type::FRAME_RELAY, behind(&[0x18, 0x40, 0, 0]), nothing()),
        // Data to, from and between access points; quality of service, high throughput, both with a fourth address.
        (link_type::WLAN, wlan([8, 0], 22, &body), found(32)),
        (link_type::WLAN, wlan([8, 1], 22, &body), found(32)),
        (link_type::WLAN, wlan([8, 2], 22, &body), found(32)),
        (link_type::WLAN, wlan([8, 3], 28, &body), found(38)),
        (link_type::WLAN, wlan([0x88, 1], 24, &body), found(34)),
        (link_type::WLAN, wlan([0x88, 0x81], 28, &body), found(38)),
        (link_type::WLAN, wlan([0x88, 0x83], 34, &body), found(44)),
        (link_type::WLAN, wlan([8, 0x80], 22, &body), found(32)),
        (link_type::WLAN, wlan([8, 0], 22, &[&[6, 6, 3], &packet[..]].concat()), found(27)),
        // A tag, as between access points.
        (
            link_type::WLAN,
            wlan([8, 0], 22, &snap(0x8100, &[&[0, 5, 8, 0], &packet[..]].concat())),
            format!("32:tag 8100 5 {}", found(36)),
        ),
        (link_type::WLAN, wlan([8, 0], 22, &[0x42, 0x42, 3, 0]), "24:Kind(4) Complete".to_owned()),
        // Protected, without data, a management frame, a later fragment, several packets, another version.
        (link_type::WLAN, wlan([8, 0x41], 22, &body), nothing()),
        (link_type::WLAN, wlan([0x48, 1], 22, &body), nothing()),
        (link_type::WLAN, wlan([0xc8, 1], 24, &body), nothing()),
        (link_type::WLAN, wlan([0x80, 0], 22, &body), nothing()),
        (link_type::WLAN, marked(wlan([8, 0], 22, &body), 22, 1), nothing()),
        (link_type::WLAN, marked(wlan([0x88, 1], 24, &body), 24, 0x80), nothing()),
        (link_type::WLAN, wlan([9, 0], 22, &body), nothing()),
        // Flags alone; behind a time, which is aligned, and another word; with padding.
        (link_type::RADIOTAP, radiotap(&[2, 0, 0, 0], &[0], &wlan([8, 0], 22, &body)), found(41)),
        (link_type::RADIOTAP, radiotap(&[0, 0, 0, 0], &[], &wlan([8, 0], 22, &body)), found(40)),
        (link_type::RADIOTAP, radiotap(&[2, 0, 0, 0], &[0x20], &wlan([0x88, 0], 26, &body)), found(45)),
        (
            link_type::RADIOTAP,
            radiotap(
                &[3, 0, 0, 0x80, 0, 0, 0, 0],
                &[0xff, 0xff, 0xff, 0xff, 0, 0, 0, 0, 0, 0, 0, 0, 0x20],
                &wlan([0x88, 0], 26, &body),
            ),
            found(25 + 28 + 8),
        ),
        (link_type::RADIOTAP, radiotap(&[], &[], &wlan([8, 0], 22, &body)), nothing()),
        (link_type::PPI, ppi(105, &[2, 0, 1, 0, 9], &wlan([8, 0], 22, &body)), found(13 + 32)),
        (link_type::PPI, ppi(192, &[], &ppi(9, &[], &behind(&[0x21]))), found(17)),
        (
            link_type::PPI,
            ppi(1, &[], &ethernet(ethertype::IPV4, &packet)),
            format!("8:ethernet {}", found(22)),
        ),
        (link_type::PPI, ppi(147, &[], &packet), nothing()),
        (link_type::NFLOG, behind(&[2, 0, 0, 5, 5, 0, 1, 0, 9, 0, 0, 0, 33, 0, 9, 0]), found(16)),
        (link_type::NFLOG, behind(&[7, 0, 0, 5, 33, 0, 9, 0]), nothing()),
        (link_type::NFLOG, behind(&[2, 1, 0, 5, 33, 0, 9, 0]), nothing()),
        (link_type::NFLOG, behind(&[2, 0, 0, 5, 3, 0, 1, 0]), nothing()),
    ] {
        assert!(link::is_known(link));
        assert_eq!(walked(link, &frame), expected, "{link} {frame:02x?}");
        let outer = Walk::new(link, &frame).find_map(|layer| match layer {
            Layer::Ip { at, .. } => Some(at),
            _ => None,
        });
        assert_eq!(link::outermost_ip(link, &frame).map(|payload| payload.at), outer, "{link} {frame:02x?}");
        assert_eq!(Flow::inner(link, &frame).is_some(), outer.is_some());
        // Cut in the header, there is nothing, and it is known why.
        for length in 0..outer.unwrap_or(0) {
            let cut = &frame[..length];
            assert!(Flow::outer(link, cut).is_none() && Flow::inner(link, cut).is_none());
            assert!(
                walked(link, cut).ends_with("Cut"),
                "{link} {length} {frame:02x?}: {}",
                walked(link, cut)
            );
        }
    }
}

#[test]
fn what_is_in_front_of_802_11_has_an_end() {
    let radiotap = [0, 0, 9, 0, 2, 0, 0, 0, 0, 8, 0];
    for (link, frame, begin) in [
        (link_type::WLAN, &radiotap[9..], Some(0)),
        (link_type::RADIOTAP, &radiotap, Some(9)),
        (link_type::PPI, &[&[0, 0, 10, 0, 127, 0, 0, 0, 5, 5], &radiotap[..]].concat(), Some(19)),
        (link_type::PPI, &[0, 0, 8, 0, 1, 0, 0, 0], None),
        (link_type::RADIOTAP, &[0, 0, 7, 0, 0, 0, 0], None),
        (link_type::RADIOTAP, &[0, 0, 9], None),
        (link_type::ETHERNET, &radiotap, None),
    ] {
        assert_eq!(link::begin_of_wlan(link, frame), begin, "{link} {frame:02x?}");
    }
}

#[test]
fn llc_is_looked_through_where_a_length_says_that_it_comes() {
    let packet = ip4(protocol::UDP, &udp(9, b"x"));
    let counted = |body: &[u8]| ethernet(u16::try_from(body.len()).expect("it is short"), body);
    let body = snap(ethertype::IPV4, &packet);
    let cooked = [&[0; 14][..], &[0, 4], &body].concat();
    let tagged = [&MACS[..], &[0x81, 0, 0, 5, 0, 37], &body].concat();
    let bridges = {
        let mut frame = counted(&body);
        frame[19] = 0xf8;
        frame
    };
    for (link, frame, expected) in [
        (1, counted(&body), "0:ethernet 22:V4 42:Protocol(11) Complete"),
        (1, [&counted(&body)[..], &[0; 20]].concat(), "0:ethernet 22:V4 42:Protocol(11) Complete"),
        (1, bridges, "0:ethernet 22:V4 42:Protocol(11) Complete"),
        (1, tagged, "0:ethernet 14:tag 8100 5 26:V4 46:Protocol(11) Complete"),
        (1, counted(&[&[6, 7, 3], &packet[..]].concat()), "0:ethernet 17:V4 37:Protocol(11) Complete"),
        (1, counted(&snap(ethertype::ARP, &[0; 28])), "0:ethernet 22:Kind(806) Complete"),
        (1, counted(&snap(60, &[0; 28])), "0:ethernet 14:Kind(24) Complete"),
        (1, counted(&[0xaa, 0xaa, 3, 0, 0, 0xc, 0x20, 0]), "0:ethernet 14:Kind(8) Complete"),
        (1, counted(&[0x42, 0x42, 3, 0]), "0:ethernet 14:Kind(4) Complete"),
        // The length ends in SNAP, or in IP; the frame does.
        (1, ethernet(6, &body), "0:ethernet 14:Kind(6) Cut"),
        (1, ethernet(20, &body), "0:ethernet 22:Kind(800) Cut"),
        (1, counted(&body)[..20].to_vec(), "0:ethernet 14:Kind(25) Cut"),
        // No length, and no EtherType.
        (1, ethernet(1501, &body), "0:ethernet 14:Kind(5dd) Complete"),
        (113, cooked, "24:V4 44:Protocol(11) Complete"),
        (113, [&[0; 14][..], &[0, 12], &body].concat(), "16:Kind(c) Complete"),
    ] {
        assert_eq!(walked(link, &frame), expected, "{frame:02x?}");
        // What programs in the kernel do not look into belongs to no flow here, either.
        assert_eq!(link::outermost_ip(link, &frame), None);
        assert_eq!((Flow::outer(link, &frame), Flow::inner(link, &frame)), (None, None));
    }
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
    assert_eq!((one.0, one.1, other.1), (other.0, FlowDirection::Down, FlowDirection::Up));
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
        link in prop::sample::select(vec![0u16, 1, 9, 50, 101, 104, 105, 107, 113, 127, 192, 239, 276]),
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
        let outer = layers.iter().skip_while(|layer| matches!(layer, Layer::Ethernet { .. })).find(|layer| {
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
