//! Frames, and which of them are of one flow.

use crate::frames::{
    BRIDGED, Back, GRE, ICMP, TCP, There, UDP, Way, ethernet, geneve, gre, gtp, in_session, ip4, ip4_with,
    ip6, labelled, linux_vxlan, on_ethernet, piece6, ports, tagged, vxlan,
};

/// Frames, those of one flow together.
pub(crate) type Flows = Vec<(&'static str, Vec<Vec<u8>>)>;

/// Both ways of packets between two hosts and ports.
pub(crate) fn udp4(pair: [u16; 2], way: Way) -> Vec<u8> {
    ip4([1, 2], way, UDP, (0, 0), &ports(pair, way, b"payload"))
}

pub(crate) fn udp6(pair: [u16; 2], way: Way) -> Vec<u8> {
    ip6([1, 2], way, UDP, &ports(pair, way, b"payload"))
}

/// What has the same outer flow.
pub(crate) fn outer_flows() -> Flows {
    let plain = on_ethernet(There, &udp4([7, 8], There));
    let parts = |number: u16, pair| {
        let first = ip4([1, 2], There, UDP, (number, 0x2000), &ports(pair, There, b"payload"));
        let middle = ip4([1, 2], There, UDP, (number, 0x2002), &ports([1, 1], There, b""));
        let last = ip4([1, 2], There, UDP, (number, 4), b"");
        [first, middle, last].map(|packet| on_ethernet(There, &packet))
    };
    let parts6 = |number: u8, way, pair| {
        let first = piece6(UDP, number, 1, &ports(pair, way, b"payload"));
        let last = piece6(UDP, number, 16, &ports([1, 1], There, b""));
        [first, last].map(|piece| on_ethernet(way, &ip6([1, 2], way, 44, &piece)))
    };
    let behind = |kind: u8, header: &[u8], payload: &[u8]| {
        on_ethernet(There, &ip6([1, 2], There, kind, &[header, payload].concat()))
    };
    let udp = ports([7, 8], There, b"payload");
    let options = [&[60, 1][..], &[0; 14], &[17, 0, 0, 0, 0, 0, 0, 0]].concat();
    let mut flows: Flows = vec![
        (
            "UDP over IPv4, tagged or not, both ways, with options of IP, in fragments, behind MPLS and PPPoE",
            vec![
                plain.clone(),
                labelled(1, &plain),
                labelled(8, &plain),
                tagged(0x8100, 5, &in_session(&plain)),
                on_ethernet(Back, &udp4([7, 8], Back)),
                tagged(0x8100, 5, &plain),
                tagged(0x88a8, 9, &tagged(0x8100, 5, &plain)),
                tagged(0x9100, 9, &tagged(0x9200, 5, &plain)),
                (0..7).fold(plain.clone(), |frame, id| tagged(0x8100, id, &frame)),
                on_ethernet(There, &ip4_with(&[1; 12], [1, 2], There, UDP, (3, 0x4000), &udp)),
            ],
        ),
        (
            "another port",
            vec![on_ethernet(There, &udp4([7, 9], There)), on_ethernet(Back, &udp4([7, 9], Back))],
        ),
        ("ports of others", vec![on_ethernet(There, &udp4([8, 7], There))]),
        ("TCP", vec![on_ethernet(There, &ip4([1, 2], There, TCP, (0, 0), &ports([7, 8], There, &[0; 12])))]),
        ("other hosts", vec![on_ethernet(There, &ip4([1, 3], There, UDP, (0, 0), &udp))]),
        (
            "ICMP, which has no ports",
            vec![
                on_ethernet(There, &ip4([1, 2], There, ICMP, (0, 0), &[8, 0, 1, 2, 3, 4, 5, 6])),
                on_ethernet(Back, &ip4([1, 2], Back, ICMP, (0, 0), &[0, 0, 9, 9, 9, 9, 9, 9])),
            ],
        ),
        (
            "UDP over IPv6, behind extension headers, in fragments",
            vec![
                on_ethernet(There, &udp6([7, 8], There)),
                on_ethernet(Back, &udp6([7, 8], Back)),
                tagged(0x8100, 5, &on_ethernet(There, &udp6([7, 8], There))),
                labelled(2, &on_ethernet(Back, &udp6([7, 8], Back))),
                in_session(&on_ethernet(There, &udp6([7, 8], There))),
                behind(0, &options, &udp),
                behind(139, &options, &udp),
                behind(140, &options, &udp),
                behind(51, &[17, 2, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0], &udp),
                // All of its datagram: no fragment (RFC 6946).
                on_ethernet(There, &ip6([1, 2], There, 44, &piece6(UDP, 77, 0, &udp))),
            ],
        ),
        ("another port", vec![on_ethernet(There, &udp6([7, 9], There))]),
        (
            "not IP: by Ethernet addresses",
            vec![
                ethernet(There, 0x0806, &[1; 28]),
                ethernet(Back, 0x88cc, b"x"),
                tagged(0x8100, 5, &ethernet(Back, 0x0806, &[1; 28])),
                // A pseudowire, more labels than are looked behind, the discovery of PPPoE.
                ethernet(There, 0x8847, &[0, 1, 1, 64, 0, 0, 0, 0, 2, 2, 2, 2]),
                labelled(9, &plain),
                ethernet(Back, 0x8863, &[0x11, 9, 0, 0, 0, 4, 1, 1, 0, 0]),
            ],
        ),
        (
            "tunnels, whatever is inside",
            vec![
                on_ethernet(There, &vxlan(There, &plain)),
                on_ethernet(There, &vxlan(There, &on_ethernet(There, &udp6([1, 2], There)))),
            ],
        ),
    ];
    flows[0].1.extend(parts(500, [7, 8]));
    flows[1].1.extend(parts(501, [7, 9]));
    flows[6].1.extend(parts6(50, There, [7, 8]));
    flows[6].1.extend(parts6(51, Back, [7, 8]));
    flows[7].1.extend(parts6(52, There, [7, 9]));
    flows
}

/// Datagrams of GTP-U that cannot be entered, with `packet` where one would be: an echo, another version, GTP', an extension of
/// no length, more of them than are looked behind, no IP.
fn without_user(packet: &[u8]) -> Vec<Vec<u8>> {
    let heads: [&[u8]; 5] = [
        &[0x30, 1, 0, 60, 0, 0, 0, 7],
        &[0x50, 255, 0, 60, 0, 0, 0, 7],
        &[0x20, 255, 0, 60, 0, 0, 0, 7],
        &[0x34, 255, 0, 60, 0, 0, 0, 7, 0, 1, 0, 0x85, 0, 0, 0, 0],
        &[0x30, 255, 0, 60, 0, 0, 0, 7, 0],
    ];
    let datagram =
        |head: &[u8]| ip4([1, 2], There, UDP, (0, 0), &ports([2152, 2152], There, &[head, packet].concat()));
    let mut datagrams = heads.map(datagram).to_vec();
    datagrams.push(gtp(Back, Some(5), packet));
    datagrams.iter().map(|datagram| on_ethernet(There, datagram)).collect()
}

/// What has the same inner flow.
pub(crate) fn inner_flows() -> Flows {
    let carried = |way, packet: &[u8]| {
        let frame = on_ethernet(way, packet);
        let ether_type = if packet[0] >> 4 == 4 { 0x0800 } else { 0x86dd };
        let protocol = if packet[0] >> 4 == 4 { 4 } else { 41 };
        let packets = [
            packet.to_vec(),
            vxlan(way, &frame),
            vxlan(way, &tagged(0x8100, 5, &frame)),
            linux_vxlan(way, &frame),
            geneve(way, BRIDGED, &frame),
            geneve(way, ether_type, packet),
            gre(way, false, ether_type, packet),
            gre(way, true, BRIDGED, &frame),
            gtp(way, None, packet),
            gtp(way, Some(0), packet),
            gtp(way, Some(4), packet),
            ip4([5, 6], way, protocol, (0, 0), packet),
            ip6([5, 6], way, protocol, packet),
            // Two deep.
            gre(way, true, 0x0800, &vxlan(way, &frame)),
            vxlan(way, &on_ethernet(way, &ip6([5, 6], way, protocol, packet))),
        ];
        packets.map(|packet| on_ethernet(way, &packet))
    };
    let both = |packet: &dyn Fn(Way) -> Vec<u8>| {
        [There, Back].into_iter().flat_map(|way| carried(way, &packet(way))).collect()
    };
    let frame = on_ethernet(There, &udp4([21, 22], There));
    let whole = vxlan(There, &frame);
    // The outer datagram in fragments: the first has all headers of the packet inside.
    let piece = |place, bytes: &[u8]| on_ethernet(There, &ip4([1, 2], There, UDP, (600, place), bytes));
    let third = |pair| {
        on_ethernet(
            There,
            &vxlan(
                There,
                &on_ethernet(
                    There,
                    &vxlan(There, &on_ethernet(There, &ip4([8, 9], There, 4, (0, 0), &udp4(pair, There)))),
                ),
            ),
        )
    };
    vec![
        ("UDP over IPv4", both(&|way| udp4([7, 8], way))),
        ("another port", both(&|way| udp4([7, 9], way))),
        ("UDP over IPv6", both(&|way| udp6([7, 8], way))),
        (
            "in fragments outside",
            vec![on_ethernet(There, &whole), piece(0x2000, &whole[20..]), piece(12, b"rest")],
        ),
        ("three deep: the second counts", vec![third([1, 2]), third([3, 4])]),
        (
            "tunnels that are not known, or hold no IP",
            vec![
                on_ethernet(There, &vxlan(There, &ethernet(There, 0x0806, &[1; 28]))),
                on_ethernet(There, &vxlan(There, &[])),
                on_ethernet(There, &ip4([1, 2], There, UDP, (0, 0), &ports([5555, 4789], There, &[0; 30]))),
            ],
        ),
        ("GTP-U without a user's packet, as it should be", without_user(&udp4([7, 8], There))),
        (
            "other versions of GRE",
            vec![on_ethernet(There, &ip4([1, 2], There, GRE, (0, 0), &[0, 1, 8, 0, 0x45, 0, 0, 0]))],
        ),
    ]
}
