//! The frames: each kind of tag, extension header, tunnel, label and fragment, alone and combined, and some of them cut at
//! every header. Link types that no program in the kernel meets have frames of their own.

use weir_packet::{Walk, link, link_type, protocol};

use crate::frames::{
    BRIDGED, Back, ICMP, TCP, There, UDP, ethernet, geneve, gre, gtp, in_session, ip4, ip4_with, ip6,
    labelled, linux_vxlan, on_ethernet, piece6, ports, tagged, vxlan,
};

/// A frame.
pub(crate) struct Case {
    pub(crate) name: String,
    pub(crate) link: u16,
    pub(crate) frame: Vec<u8>,
    /// What it was before it was cut, if it was.
    #[allow(dead_code, reason = "the tests of steering need the rest")]
    pub(crate) whole: Option<Vec<u8>>,
}

/// Returns all of them.
pub(crate) fn cases() -> Vec<Case> {
    let whole: Vec<Case> = [links(), networks(), tunnels()]
        .concat()
        .into_iter()
        .map(|(name, frame)| Case { name, link: link_type::ETHERNET, frame, whole: None })
        .chain(others())
        .collect();
    let cut: Vec<Case> = whole.iter().filter(|case| case.name.ends_with(CUT)).flat_map(cut).collect();
    whole.into_iter().chain(cut).collect()
}

/// The end of the names of frames that are also tried cut.
const CUT: &str = "*";

/// The frame, cut where a layer begins, in its middle, and behind the ports; of other link types, also at each byte of their
/// header.
fn cut(case: &Case) -> Vec<Case> {
    let header = link::payload(case.link, &case.frame).map_or(0, |payload| payload.at);
    let least = if case.link == link_type::ETHERNET { header } else { 0 };
    let mut lengths: Vec<usize> = Walk::new(case.link, &case.frame)
        .map(|layer| layer.at())
        .flat_map(|at| [at, at + 2, at + 4, at + 19, at + 20, at + 39, at + 40])
        .chain(least..header)
        .filter(|length| (least..case.frame.len()).contains(length))
        .collect();
    lengths.sort_unstable();
    lengths.dedup();
    let at = |length| Case {
        name: format!("{} cut at {length}", case.name),
        link: case.link,
        frame: case.frame[..length].to_vec(),
        whole: Some(case.frame.clone()),
    };
    lengths.into_iter().map(at).collect()
}

type Frames = Vec<(String, Vec<u8>)>;

fn four(payload: &[u8]) -> Vec<u8> {
    ip4([1, 2], There, UDP, (0, 0), &ports([7, 53], There, payload))
}

fn six(payload: &[u8]) -> Vec<u8> {
    ip6([1, 2], There, UDP, &ports([7, 53], There, payload))
}

/// Tags, labels, sessions.
fn links() -> Frames {
    let plain = on_ethernet(There, &four(b"payload."));
    let mut frames: Frames = vec![
        ("IPv4*".into(), plain.clone()),
        ("IPv6*".into(), on_ethernet(Back, &six(b"payload."))),
        (
            "ARP".into(),
            ethernet(
                There,
                0x0806,
                &[0, 1, 8, 0, 6, 4, 0, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 0, 0, 0, 0, 0, 0, 2, 2, 2, 2],
            ),
        ),
        ("802.3".into(), ethernet(There, 3, &[0x42, 0x42, 3])),
        ("SNAP".into(), counted(&snap(0x0800, &four(b"payload.")))),
        ("IP in LLC".into(), counted(&[&[6, 6, 3], &four(b"payload.")[..]].concat())),
        (
            "VXLAN with SNAP".into(),
            on_ethernet(There, &vxlan(There, &counted(&snap(0x0800, &four(b"payload."))))),
        ),
        ("padded".into(), [&plain[..], &[0; 20]].concat()),
        ("PPPoE with IPv4*".into(), in_session(&plain)),
        ("PPPoE with IPv6".into(), in_session(&on_ethernet(There, &six(b"x")))),
        ("PPPoE with LCP".into(), ethernet(There, 0x8864, &[0x11, 0, 0, 7, 0, 6, 0xc0, 0x21, 1, 1, 0, 4])),
        ("PPPoE behind a tag".into(), tagged(0x8100, 5, &in_session(&plain))),
        ("PPPoE discovery".into(), ethernet(There, 0x8863, &[0x11, 9, 0, 0, 0, 4, 1, 1, 0, 0])),
        ("upstream MPLS label".into(), {
            let mut frame = labelled(1, &plain);
            frame[13] = 0x48;
            frame
        }),
        ("MPLS with IPv6".into(), labelled(3, &on_ethernet(There, &six(b"x")))),
        (
            "MPLS pseudowire".into(),
            ethernet(There, 0x8847, &[&[0, 1, 1, 64, 0, 0, 0, 0][..], &plain].concat()),
        ),
        ("MPLS behind a tag".into(), tagged(0x88a8, 9, &labelled(1, &plain))),
    ];
    for kind in [0x8100, 0x88a8, 0x9100, 0x9200, 0x9300] {
        frames.push((format!("tag {kind:x}"), tagged(kind, 0xe005, &plain)));
    }
    for depth in 2..=8 {
        let mixed = |frame: Vec<u8>, depth: u16| {
            let kind = if depth.is_multiple_of(2) { 0x8100 } else { 0x88a8 };
            tagged(kind, depth, &frame)
        };
        let name = format!("{depth} tags{}", if depth == 2 { CUT } else { "" });
        frames.push((name, (1..=depth).fold(plain.clone(), mixed)));
    }
    for labels in [1, 2, 8, 9] {
        let name = format!("{labels} MPLS labels{}", if labels == 2 { CUT } else { "" });
        frames.push((name, labelled(labels, &plain)));
    }
    frames
}

/// IP: protocols, options, extension headers, fragments.
fn networks() -> Frames {
    let mut frames = Frames::new();
    let ports = ports([7, 53], There, &[0; 16]);
    for (name, number) in [
        ("TCP", TCP),
        ("UDP", UDP),
        ("DCCP", protocol::DCCP),
        ("SCTP", protocol::SCTP),
        ("UDP-Lite", protocol::UDP_LITE),
        ("ICMP", ICMP),
        ("OSPF", protocol::OSPF),
    ] {
        frames.push((
            format!("{name} over IPv4"),
            on_ethernet(There, &ip4([1, 2], There, number, (0, 0), &ports)),
        ));
        frames.push((format!("{name} over IPv6"), on_ethernet(There, &ip6([1, 2], There, number, &ports))));
    }
    let options = ip4_with(&[1; 40], [1, 2], There, UDP, (3, 0x4000), &ports);
    frames.push(("IPv4 with all options*".into(), on_ethernet(There, &options)));
    let mut short = ip4([1, 2], There, UDP, (0, 0), &ports);
    short[0] = 0x44;
    frames.push(("IPv4 with a header of 16 bytes".into(), on_ethernet(There, &short)));
    let authenticated = [&[UDP, 2, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0], &ports[..]].concat();
    frames.push((
        "IPv4 authenticated".into(),
        on_ethernet(There, &ip4([1, 2], There, protocol::AUTHENTICATION, (0, 0), &authenticated)),
    ));
    for (name, place) in [("first", 0x2000), ("middle", 0x2002), ("last", 2)] {
        let piece = ip4([1, 2], There, UDP, (9, place), &ports);
        frames.push((format!("{name} fragment of IPv4"), on_ethernet(There, &piece)));
    }
    let behind = |number: u8, header: &[u8]| {
        on_ethernet(There, &ip6([1, 2], There, number, &[header, &ports[..]].concat()))
    };
    for (name, number) in [
        ("hop-by-hop options", 0),
        ("a routing header", 43),
        ("destination options", 60),
        ("a mobility header", 135),
        ("HIP", 139),
        ("Shim6", 140),
    ] {
        frames.push((
            format!("{name} in IPv6"),
            behind(number, &[UDP, 1, 0, 0, 0, 0, 0, 0, 1, 2, 0, 0, 0, 0, 0, 0]),
        ));
    }
    frames.push(("ESP in IPv6".into(), behind(50, &[0, 0, 0, 9, 0, 0, 0, 1])));
    frames.push(("nothing in IPv6".into(), behind(59, &[])));
    frames.push(("authenticated in IPv6*".into(), behind(51, &authenticated[..16])));
    for (name, place) in [("whole", 0), ("first", 1), ("middle", 17), ("last", 16)] {
        let piece = piece6(UDP, 7, place, &ports);
        let name = if name == "whole" {
            "atomic fragment of IPv6*".into()
        } else {
            format!("{name} fragment of IPv6")
        };
        frames.push((name, on_ethernet(There, &ip6([1, 2], There, 44, &piece))));
    }
    let atomic = piece6(44, 7, 1, &piece6(UDP, 8, 0, &ports));
    frames.push((
        "atomic fragment in a fragment of IPv6".into(),
        on_ethernet(There, &ip6([1, 2], There, 44, &atomic)),
    ));
    for count in [2, 8, 9] {
        let chain: Vec<u8> = (1..=count)
            .flat_map(|number| {
                let next = if number == count { UDP } else { 60 };
                [next, 0, 1, 4, 0, 0, 0, 0]
            })
            .collect();
        frames.push((format!("{count} extension headers"), behind(60, &chain)));
    }
    frames
}

fn tunnels() -> Frames {
    let inner = ip4([5, 6], There, UDP, (0, 0), &ports([9, 54], There, b"payload."));
    let inner6 = ip6([5, 6], There, TCP, &ports([9, 54], There, &[0; 16]));
    let frame = on_ethernet(There, &inner);
    let mut frames: Frames = vec![
        ("VXLAN*".into(), vxlan(There, &frame)),
        ("VXLAN of Linux".into(), linux_vxlan(There, &frame)),
        ("VXLAN with a tag".into(), vxlan(There, &tagged(0x8100, 5, &frame))),
        ("VXLAN with a label".into(), vxlan(There, &labelled(1, &frame))),
        ("VXLAN with ARP".into(), vxlan(There, &ethernet(There, 0x0806, &[1; 28]))),
        ("VXLAN without anything".into(), vxlan(There, &[])),
        ("Geneve with Ethernet*".into(), geneve(There, BRIDGED, &frame)),
        ("Geneve with IPv6".into(), geneve(There, 0x86dd, &inner6)),
        ("GRE*".into(), gre(There, false, 0x0800, &inner)),
        ("GRE with a key".into(), gre(There, true, BRIDGED, &frame)),
        ("GRE with a label".into(), gre(There, false, 0x8847, &[&[0, 1, 1, 64][..], &inner].concat())),
        ("GRE with a tag".into(), gre(There, false, 0x8100, &[&[0, 5, 8, 0][..], &inner].concat())),
        ("Geneve with a tag".into(), geneve(There, 0x8100, &[&[0, 5, 8, 0][..], &inner].concat())),
        ("GTP-U*".into(), gtp(There, None, &inner)),
        ("GTP-U with a number".into(), gtp(There, Some(0), &inner)),
        ("GTP-U with 4 extensions".into(), gtp(There, Some(4), &inner6)),
        ("GTP-U with 5 extensions".into(), gtp(There, Some(5), &inner)),
        ("IP in IP".into(), ip4([1, 2], There, 4, (0, 0), &inner)),
        ("IPv6 in IP".into(), ip4([1, 2], There, 41, (0, 0), &inner6)),
        ("IP in IPv6".into(), ip6([1, 2], There, 4, &inner)),
        ("VXLAN in GRE".into(), gre(There, false, 0x0800, &vxlan(There, &frame))),
        ("a later fragment with IP".into(), ip4([1, 2], There, 4, (9, 9), &inner)),
        ("a first fragment with IP".into(), ip4([1, 2], There, 4, (9, 0x2000), &inner)),
        ("another version of GRE".into(), ip4([1, 2], There, 47, (0, 0), &[0, 1, 8, 0, 0x45, 0, 0, 0])),
    ];
    for depth in [3, 8, 9] {
        let many = (0..depth).fold(inner.clone(), |packet, _| ip4([1, 2], There, 4, (0, 0), &packet));
        frames.push((format!("{depth} tunnels"), many));
    }
    frames.iter_mut().for_each(|(_, packet)| *packet = on_ethernet(There, packet));
    frames
}

/// LLC and SNAP in front of a packet.
fn snap(kind: u16, packet: &[u8]) -> Vec<u8> {
    [&[0xaa, 0xaa, 3, 0, 0, 0], &kind.to_be_bytes()[..], packet].concat()
}

/// Ethernet with a length.
fn counted(body: &[u8]) -> Vec<u8> {
    ethernet(There, u16::try_from(body.len()).expect("it is short"), body)
}

/// Other link types than Ethernet.
fn others() -> Vec<Case> {
    let (packet, packet6) = (four(b"payload."), six(b"payload."));
    let wlan = |control: [u8; 2], others: usize, body: &[u8]| [&control[..], &vec![0; others], body].concat();
    let data = |control, others| wlan(control, others, &snap(0x0800, &packet));
    let behind = |header: &[u8]| [header, &packet[..]].concat();
    let with = |at: usize, byte: u8, mut frame: Vec<u8>| {
        frame[at] = byte;
        frame
    };
    let label = [0, 1, 1, 64];
    let time = [1, 2, 3, 4, 5, 6, 7, 8];
    let length = u8::try_from(packet.len() + 4).expect("it is short");
    let attributes = [5, 0, 1, 0, 8, 0, 0, 0, length, 0, 9, 0];
    [
        ("raw IP*", link_type::RAW, packet.clone()),
        ("loopback*", link_type::NULL, behind(&[2, 0, 0, 0])),
        ("cooked*", link_type::COOKED, behind(&[&[0; 14][..], &[8, 0]].concat())),
        ("cooked, with a tag", link_type::COOKED, behind(&[&[0; 14][..], &[0x81, 0, 0, 5, 8, 0]].concat())),
        ("cooked 2*", link_type::COOKED_2, behind(&[&[8, 0][..], &[0; 18]].concat())),
        ("PPP*", link_type::PPP, behind(&[0, 0x21])),
        ("PPP framed*", link_type::PPP, behind(&[0xff, 3, 0, 0x21])),
        ("PPP compressed*", link_type::PPP, behind(&[0x21])),
        ("PPP framed and compressed", link_type::PPP, behind(&[0xff, 3, 0x21])),
        ("PPP with IPv6*", link_type::PPP, [&[0, 0x57], &packet6[..]].concat()),
        ("PPP with a label", link_type::PPP, behind(&[&[2, 0x81], &label[..]].concat())),
        ("PPP with LCP", link_type::PPP, vec![0xc0, 0x21, 1, 1, 0, 4]),
        ("PPP with TCP's header compressed once", link_type::PPP, behind(&[0, 0x2f])),
        ("PPP in HDLC*", link_type::PPP_HDLC, behind(&[0xff, 3, 0, 0x21])),
        ("PPP in HDLC, compressed", link_type::PPP_HDLC, behind(&[0xff, 3, 0x21])),
        ("PPP in HDLC, of Cisco*", link_type::PPP_HDLC, behind(&[0x0f, 0, 8, 0])),
        ("PPP in HDLC, of another", link_type::PPP_HDLC, behind(&[0x1f, 0, 8, 0])),
        ("HDLC*", link_type::CISCO_HDLC, behind(&[0x8f, 0, 8, 0])),
        ("HDLC with IPv6", link_type::CISCO_HDLC, [&[0x0f, 0, 0x86, 0xdd], &packet6[..]].concat()),
        ("HDLC with a label", link_type::CISCO_HDLC, behind(&[&[0x0f, 0, 0x88, 0x47], &label[..]].concat())),
        ("HDLC with SLARP", link_type::CISCO_HDLC, [&[0x8f, 0, 0x80, 0x35][..], &[0; 18]].concat()),
        ("frame relay*", link_type::FRAME_RELAY, behind(&[0x18, 0x41, 3, 0xcc])),
        ("frame relay with IPv6", link_type::FRAME_RELAY, [&[0x18, 0x41, 3, 0x8e], &packet6[..]].concat()),
        ("frame relay, 3 bytes*", link_type::FRAME_RELAY, behind(&[0x18, 0x40, 1, 3, 0, 0xcc])),
        ("frame relay, 4 bytes", link_type::FRAME_RELAY, behind(&[0x18, 0x40, 0, 1, 3, 0xcc])),
        ("frame relay, 5 bytes", link_type::FRAME_RELAY, behind(&[0x18, 0x40, 0, 0, 1, 3, 0xcc])),
        ("frame relay with SNAP*", link_type::FRAME_RELAY, behind(&[0x18, 0x41, 3, 0, 0x80, 0, 0, 0, 8, 0])),
        ("frame relay with PPP", link_type::FRAME_RELAY, behind(&[0x18, 0x41, 3, 0xcf, 0x21])),
        ("frame relay of Cisco*", link_type::FRAME_RELAY, behind(&[0x18, 0x41, 8, 0])),
        ("frame relay, management", link_type::FRAME_RELAY, behind(&[0, 1, 8, 0])),
        ("802.11*", link_type::WLAN, data([8, 0], 22)),
        ("802.11 to a station", link_type::WLAN, data([8, 2], 22)),
        ("802.11 between access points*", link_type::WLAN, data([8, 3], 28)),
        ("802.11 with QoS*", link_type::WLAN, data([0x88, 1], 24)),
        ("802.11 with QoS between access points", link_type::WLAN, data([0x88, 3], 30)),
        ("802.11 with HT control", link_type::WLAN, data([0x88, 0x81], 28)),
        ("802.11 in order", link_type::WLAN, data([8, 0x81], 22)),
        ("802.11 with IPv6", link_type::WLAN, wlan([8, 1], 22, &snap(0x86dd, &packet6))),
        ("802.11 with IP in LLC", link_type::WLAN, wlan([8, 1], 22, &behind(&[6, 6, 3]))),
        ("802.11 with a tag", link_type::WLAN, wlan([8, 1], 22, &snap(0x8100, &behind(&[0, 5, 8, 0])))),
        ("802.11 with a label", link_type::WLAN, wlan([8, 1], 22, &snap(0x8847, &behind(&label)))),
        ("802.11 by a bridge", link_type::WLAN, with(29, 0xf8, data([8, 1], 22))),
        ("802.11 of an organization", link_type::WLAN, with(29, 0x0c, data([8, 1], 22))),
        ("802.11 protected", link_type::WLAN, data([8, 0x41], 22)),
        ("802.11 without data", link_type::WLAN, data([0x48, 1], 22)),
        ("802.11 managing", link_type::WLAN, data([0x80, 0], 22)),
        ("802.11 controlling", link_type::WLAN, data([0xb4, 0], 22)),
        ("802.11, a later fragment", link_type::WLAN, with(22, 1, wlan([8, 1], 22, &[0x2e; 60]))),
        (
            "802.11 with several packets",
            link_type::WLAN,
            with(24, 0x80, wlan([0x88, 1], 24, &counted(&snap(0x0800, &packet)))),
        ),
        ("radiotap*", link_type::RADIOTAP, [&[0, 0, 9, 0, 2, 0, 0, 0, 0][..], &data([8, 1], 22)].concat()),
        (
            "radiotap without fields",
            link_type::RADIOTAP,
            [&[0, 0, 8, 0, 0, 0, 0, 0][..], &data([8, 1], 22)].concat(),
        ),
        (
            "radiotap with padding",
            link_type::RADIOTAP,
            [&[0, 0, 9, 0, 2, 0, 0, 0, 0x20][..], &data([0x88, 1], 26)].concat(),
        ),
        (
            "radiotap with a time and padding*",
            link_type::RADIOTAP,
            [&[0, 0, 25, 0, 3, 0, 0, 0x80, 0, 0, 0, 0, 9, 9, 9, 9], &time[..], &[0x20], &data([0x88, 1], 26)]
                .concat(),
        ),
        ("PPI*", link_type::PPI, [&[0, 0, 12, 0, 105, 0, 0, 0, 2, 0, 0, 0][..], &data([8, 1], 22)].concat()),
        (
            "PPI with Ethernet",
            link_type::PPI,
            [&[0, 0, 8, 0, 1, 0, 0, 0][..], &on_ethernet(There, &packet)].concat(),
        ),
        ("PPI in PPI", link_type::PPI, behind(&[0, 0, 8, 0, 192, 0, 0, 0, 0, 0, 8, 0, 9, 0, 0, 0, 0, 0x21])),
        ("PPI with another", link_type::PPI, behind(&[0, 0, 8, 0, 147, 0, 0, 0])),
        ("PPI with frame relay", link_type::PPI, behind(&[0, 0, 8, 0, 107, 0, 0, 0, 0x18, 0x41, 3, 0xcc])),
        ("NFLOG*", link_type::NFLOG, behind(&[&[2, 0, 0, 5], &attributes[..]].concat())),
        ("NFLOG with IPv6", link_type::NFLOG, [&[10, 0, 0, 5, 60, 0, 9, 0], &packet6[..]].concat()),
        ("NFLOG of another family", link_type::NFLOG, behind(&[&[7, 0, 0, 5], &attributes[..]].concat())),
    ]
    .map(|(name, link, frame)| Case { name: name.into(), link, frame, whole: None })
    .into()
}
