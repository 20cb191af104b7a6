//! Facts describe the packet itself, not a packet that it quotes.
#![forbid(unsafe_code)]

use weir_dissect::{Dissector, Facts, Options};

fn facts(data: &[u8], verbose: u8) -> Facts {
    let length = u32::try_from(data.len()).expect("short");
    Dissector::new(Options { verbose, ..Options::default() }).packet(1, data, length, &mut Vec::new())
}

fn ethernet(tags: &[u16], kind: u16, data: &[u8]) -> Vec<u8> {
    let tags = tags.iter().flat_map(|tag| [[0x81, 0], tag.to_be_bytes()]).flatten();
    [2; 12].into_iter().chain(tags).chain(kind.to_be_bytes()).chain(data.iter().copied()).collect()
}

fn ip4(source: u8, destination: u8, protocol: u8, data: &[u8]) -> Vec<u8> {
    let length = u16::try_from(20 + data.len()).expect("short").to_be_bytes();
    let head = [0x45, 0, length[0], length[1], 0, 0, 0, 0, 64, protocol, 0, 0];
    [&head[..], &[10, 0, 0, source, 10, 0, 0, destination], data].concat()
}

fn udp(source: u16, destination: u16, data: &[u8]) -> Vec<u8> {
    let length = u16::try_from(8 + data.len()).expect("short");
    [&[source, destination, length, 0].map(u16::to_be_bytes).concat(), data].concat()
}

#[test]
fn an_error_has_no_ports_of_the_packet_that_it_quotes() {
    let segment = [&[0x13, 0x88, 0, 80][..], &[0, 0, 0, 9, 0, 0, 0, 0, 0x50, 2, 0, 9, 0, 0, 0, 0]].concat();
    for quoted in [ip4(2, 1, 17, &udp(5000, 53, &[7; 20])), ip4(2, 1, 6, &segment)] {
        for kind in [3, 4, 5, 11, 12] {
            let error = [&[kind, 0, 0, 0, 0, 0, 0, 0][..], &quoted].concat();
            let packet = ethernet(&[], 0x0800, &ip4(1, 2, 1, &error));
            let told = facts(&packet, 1);
            assert_eq!(told, facts(&packet, 0), "{kind}");
            assert_eq!((told.protocol, told.ip_protocol), (Some("icmp"), Some(1)), "{kind}");
            assert_eq!((told.source_port, told.destination_port), (None, None), "{kind}");
            assert_eq!((told.tcp_flags, told.payload_len), (None, None), "{kind}");
            assert_eq!(told.source, Some([10, 0, 0, 1].into()), "{kind}");
        }
    }
}

#[test]
fn two_tags_are_of_one_frame() {
    for (outside, inside, told) in [
        (&[][..], &[][..], (None, None)),
        (&[5], &[], (Some(5), None)),
        (&[5, 6], &[], (Some(5), Some(6))),
        (&[5, 6, 7], &[], (Some(5), Some(6))),
        // In nested frames, the outermost that has tags.
        (&[5], &[9], (Some(5), None)),
        (&[5], &[9, 10], (Some(5), None)),
        (&[5, 6], &[9], (Some(5), Some(6))),
        (&[], &[9], (Some(9), None)),
        (&[], &[9, 10], (Some(9), Some(10))),
    ] {
        let carried = ethernet(inside, 0x0800, &ip4(3, 4, 17, &udp(1, 2, &[])));
        let vxlan = udp(99, 4789, &[&[8, 0, 0, 0, 0, 0, 100, 0][..], &carried].concat());
        for verbose in [0, 1] {
            let facts = facts(&ethernet(outside, 0x0800, &ip4(1, 2, 17, &vxlan)), verbose);
            assert_eq!((facts.vlan, facts.inner_vlan), told, "{outside:?} around {inside:?}");
        }
    }
}

#[test]
fn a_port_names_the_protocol() {
    let ike = [&[1; 8][..], &[0; 8], &[1, 0x10, 2, 0, 0, 0, 0, 0, 0, 0, 0, 28]].concat();
    let esp = [1, 2, 3, 4, 0, 0, 0, 1];
    let call = [[0, 0, 0, 7], [0; 4], [0, 0, 0, 2]].concat();
    for (port, payload, told) in [
        (69, &b"\0\x04\0\x01"[..], "tftp"),
        (161, b"\x30\0", "snmp"),
        (500, &ike, "isakmp"),
        (514, b"<13>words", "syslog"),
        (520, b"\x01\x02\0\0", if cfg!(feature = "routing") { "rip" } else { "udp" }),
        (1812, &[1; 20], "radius"),
        (2049, &call, "nfs"),
        (4500, &esp, "esp"),
        (5060, b"OPTIONS sip:a SIP/2.0\r\n", "sip"),
        (7001, &[0; 28], "rx"),
        (9, b"anything", "udp"),
    ] {
        let packet = ethernet(&[], 0x0800, &ip4(1, 2, 17, &udp(40_000, port, payload)));
        assert_eq!(facts(&packet, 0).protocol, Some(told), "{port}");
        assert_eq!(facts(&packet, 1).protocol, Some(told), "{port}");
    }
}

#[test]
fn without_their_feature_routers_send_unknown_payloads() {
    let ip = |protocol, data: &[u8]| ethernet(&[], 0x0800, &ip4(1, 2, protocol, data));
    let bgp = [
        &[0x9c, 0x40, 0, 179, 0, 0, 0, 9, 0, 0, 0, 0, 0x50, 0, 0, 9, 0, 0, 0, 0][..],
        &[0xff; 16],
        &[0, 19, 4],
    ]
    .concat();
    let isis = [0xfe, 0xfe, 3, 0x83, 27, 1, 0, 15, 1, 0, 0];
    for (packet, unknown) in [
        (ip(88, &[2; 20]), " > 10.0.0.2:  ip-proto-88 20"),
        (ip(89, &[2; 24]), " > 10.0.0.2:  ip-proto-89 24"),
        (ip(103, &[0x20; 8]), " > 10.0.0.2:  ip-proto-103 8"),
        (ip(17, &udp(40_000, 520, b"\x01\x02\0\0")), " > 10.0.0.2.520: UDP, length 4"),
        (ip(17, &udp(40_000, 3784, &[0x20; 24])), " > 10.0.0.2.3784: UDP, length 24"),
        (ip(6, &bgp), ", win 9, length 19"),
        (ethernet(&[], 11, &isis), " OSI Unnumbered, ui, Flags [Command], length 11"),
        (
            ethernet(&[], 0x8847, &[&[0, 0, 0x11, 64][..], &isis[3..]].concat()),
            "MPLS (label 1, tc 0, [S], ttl 64)",
        ),
    ] {
        let mut line = Vec::new();
        let mut dissector = Dissector::new(Options { no_dump: true, ..Options::default() });
        dissector.packet(1, &packet, u32::try_from(packet.len()).expect("short"), &mut line);
        let line = String::from_utf8(line).expect("text");
        assert_eq!(line.ends_with(unknown), cfg!(not(feature = "routing")), "{line}");
    }
}
