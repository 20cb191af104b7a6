//! The dialect `pcap`, judged by libpcap: what its compiler makes of the same words, without its optimiser, is run on the same
//! packets.

use proptest::prelude::*;
use weir_filter::cbpf::Program;
use weir_filter::interpret::{Interpreter, Metadata, Packet, VlanTag};
use weir_filter::{Beside, Dialect, Filter, Options, compile};
use weir_judge::compiled::{self, by_libpcap, by_libpcap_live, is_mended, may_be_mended};
use weir_judge::expressions::{self, Words};
use weir_judge::packets::{self, Captured};
use weir_judge::{Choices, Libpcap, corpus, share};

const NETMASK: u32 = 0xffff_ff00;

/// Those that libpcap's compiler knows more of than that they are there, and some others.
const LINK_TYPES: &[u16] = &[
    0, 1, 2, 6, 7, 8, 9, 10, 11, 12, 15, 16, 19, 50, 51, 99, 100, 101, 102, 103, 104, 105, 106, 107, 108,
    109, 110, 112, 113, 114, 117, 119, 122, 123, 127, 129, 130, 131, 132, 133, 134, 135, 136, 137, 138, 139,
    140, 143, 147, 163, 164, 165, 166, 167, 168, 178, 179, 180, 181, 182, 183, 192, 194, 197, 200, 202, 226,
    228, 229, 232, 233, 234, 238, 240, 241, 246, 276, 289,
];

fn options(link_type: u16) -> Options<'static> {
    Options { netmask: Some(NETMASK), ..compiled::options(Dialect::Pcap, link_type) }
}

/// Every packet, with all that was captured, and cut at some lengths or at all.
fn cuts(packets: &[Captured], all: usize) -> impl Iterator<Item = Packet<'_>> {
    packets.iter().enumerate().flat_map(move |(index, packet)| {
        let step = if index < all { 1 } else { 41 };
        let cut = (0..packet.data.len()).step_by(step).chain([packet.data.len()]);
        cut.map(|captured| Packet {
            data: &packet.data[..captured],
            length: packet.length,
            ..Packet::default()
        })
    })
}

fn agree(filter: &Filter, program: &Program, packets: &[Captured], all: usize) -> Result<u32, String> {
    filter.lowered.check(&filter.ast.sets)?;
    let interpreter = Interpreter::new(&filter.lowered, &filter.ast.sets);
    let mut accepted = 0;
    for packet in cuts(packets, all) {
        let (ours, theirs) = (interpreter.run(&packet), program.run(&packet));
        if ours != theirs {
            let (text, data) = (&filter.text, packet.data);
            let (graph, listing) = (&filter.lowered, program.listing());
            return Err(format!(
                "{text}: {ours} where libpcap says {theirs}\nof {} bytes {data:02x?}\n{graph}\n{listing}",
                packet.length
            ));
        }
        accepted += u32::from(ours != 0);
    }
    Ok(accepted)
}

#[test]
fn the_corpus_means_what_libpcap_makes_of_it() {
    let libpcap = Libpcap::open().expect("libpcap is installed");
    let mut failures = Vec::new();
    let mut without = Vec::new();
    for corpus::Entry { link_type, text } in corpus::pcap() {
        if is_mended(link_type, text) {
            continue;
        }
        let options = options(link_type);
        let program = by_libpcap(&libpcap, text, &options, false).expect("the corpus is valid");
        match compile(text, &options).map_err(|error| format!("{link_type} {text}: {error}")) {
            Err(error) => failures.push(error),
            Ok(filter) => match agree(&filter, &program, &packets::fixed(link_type, 300), 4) {
                Err(error) => failures.push(format!("{link_type} {error}")),
                Ok(0) => without.push(format!("{link_type} {text}")),
                Ok(_) => {}
            },
        }
    }
    assert!(failures.is_empty(), "{} failures, the first: {}", failures.len(), failures[0]);
    assert!(without.len() < 80, "no packet is accepted by many: {without:?}");
}

#[test]
fn expressions_are_refused_or_mean_the_same_on_all_link_types() {
    let libpcap = Libpcap::open().expect("libpcap is installed");
    let mut texts: Vec<&str> = corpus::pcap().into_iter().map(|entry| entry.text).collect();
    texts.sort_unstable();
    texts.dedup();
    let mut failures = Vec::new();
    for (index, &link_type) in LINK_TYPES.iter().enumerate() {
        let options = options(link_type);
        let packets = packets::fixed(link_type, 12);
        // A third of them on each, so that each is tried on a third of the link types.
        for text in texts.iter().skip(index % 3).step_by(3).filter(|text| !is_mended(link_type, text)) {
            let ours = compile(text, &options);
            match (by_libpcap(&libpcap, text, &options, false), ours) {
                (Ok(program), Ok(filter)) => {
                    failures.extend(
                        agree(&filter, &program, &packets, 0).err().map(|e| format!("{link_type} {e}")),
                    );
                }
                (Err(_), Err(_)) => {}
                (Err(message), Ok(_)) => failures.push(format!("{link_type} {text}: libpcap says {message}")),
                (Ok(_), Err(error)) => failures.push(format!("{link_type} {text}: {error}")),
            }
        }
    }
    assert!(failures.is_empty(), "{} failures, the first: {}", failures.len(), failures[0]);
}

/// Which filters libpcap's optimiser finds to reject all packets; it knows no ranges.
#[test]
fn libpcap_refuses_the_same_filters() {
    let libpcap = Libpcap::open().expect("libpcap is installed");
    let (mut refused, mut never, mut failures) = (0, 0, Vec::new());
    let corpus = corpus::pcap().into_iter().map(|entry| (entry.link_type, entry.text));
    for (link_type, text) in REFUSED_OR_NOT.iter().copied().chain(corpus) {
        let options = options(link_type);
        let filter = compile(text, &options).unwrap_or_else(|error| panic!("{link_type} {text}: {error}"));
        let ours = filter.is_never_to_libpcap();
        let theirs = match by_libpcap(&libpcap, text, &options, true) {
            Ok(_) => false,
            Err(message) if message.contains("rejects all packets") => true,
            Err(message) => panic!("{link_type} {text}: {message}"),
        };
        if ours != theirs {
            failures.push(format!("{link_type} {text}: libpcap refuses it: {theirs}"));
        }
        refused += u32::from(ours);
        never += u32::from(filter.is_never());
    }
    assert!(failures.is_empty(), "{failures:#?}");
    assert!(refused > 50 && never > refused + 20, "{refused} of {never}");
}

/// Contradictions, constants and values out of range, by link type.
const REFUSED_OR_NOT: &[(u16, &str)] = &[
    (1, "tcp port 80 and host 10.0.0.1"),
    (1, "ip proto 256"),
    (1, "ip proto 70000"),
    (1, "ip6 proto 256"),
    (123, "vci 65536"),
    (123, "vpi 256"),
    (1, "link proto 1500"),
    (1, "ether proto 1500"),
    (1, "ether proto 65536"),
    (1, "ether proto 70000"),
    (1, "byte 1 = 256"),
    (1, "port 65535"),
    (1, "ip[0] = 256"),
    (1, "ip[0] > 255"),
    (1, "ether[0] = 300"),
    (1, "ip and not ip"),
    (1, "ip and ip6"),
    (1, "ip and arp"),
    (1, "tcp and udp"),
    (1, "1 = 2"),
    (1, "1 = 1"),
    (1, "1 = 0"),
    (1, "len = 0"),
    (1, "len < 0"),
    (1, "greater 70000"),
    (1, "not ip and ip"),
    (1, "tcp port 80 and udp"),
    (1, "tcp and arp"),
    (1, "tcp and not ip and not ip6"),
    (1, "1 = 1 and ip"),
    (1, "1 = 2 or ip"),
    (1, "1 = 2 and ip"),
    (1, "not (1 = 1)"),
    (1, "not (1 = 2)"),
    (1, "ether[0] = 1 and ether[0] = 2"),
    (101, "arp"),
    (101, "ether proto 0x806"),
    (0, "arp"),
    (101, "ip6 and ip"),
    (1, "ip[0] != ip[0]"),
    (1, "ip proto 300 or tcp"),
    (1, "not ip proto 300"),
    (1, "ip6[0] = 256"),
    (1, "tcp[0] = 256"),
    (1, "tcp[0:2] = 65536"),
    (1, "ip[1000] = 1 and ip[1000] = 2"),
    (1, "llc u and llc s"),
    (1, "vlan and not vlan"),
    (1, "vlan 1 and vlan 2"),
    (140, "lssu and msu"),
    (105, "type mgt and type ctl"),
    (1, "iso proto 256"),
    (1, "isis proto 256"),
    (1, "ip proto 6 and ip proto 17"),
    (1, "ip protochain 256"),
    (1, "ip6 protochain 300"),
    (1, "len = 5 and len > 7"),
    (1, "len > 7 and len < 3"),
    (1, "len > 7 and not len > 7"),
    (1, "len > 7 and len > 7"),
    (1, "len = 5 and len != 5"),
    (1, "ip[0] > 7 and not (ip[0] > 7)"),
    (1, "ip[0] > 7 and ip[0] <= 7"),
    (1, "ip[0] >= 7 and ip[0] < 7"),
    (1, "ip[0] & 1 = 1 and ip[0] & 1 = 0"),
    (1, "ip[0] = 5 and ip[0] + 1 = 7"),
    (1, "ip[0] = 5 and ip[1] = 7 and ip[0] = 6"),
    (1, "(ip[0] = 5 or ip[0] = 6) and ip[0] = 7"),
    (1, "(ip or ip6) and arp"),
    (1, "(ip[0] = 5 or ip[1] = 6) and ip[0] = 7"),
    (1, "not tcp and tcp port 80"),
    (1, "tcp and not ip"),
    (1, "src host 10.0.0.1 and src host 10.0.0.2"),
    (1, "host 10.0.0.1 and arp and tcp"),
    (1, "port 80 and not tcp and not udp and not sctp"),
    (1, "ip6 and host 10.0.0.1"),
    (1, "ip host 10.0.0.1 and ip6"),
    (1, "net 10.0.0.0/8 and net 11.0.0.0/8"),
    (1, "src net 10.0.0.0/8 and src net 11.0.0.0/8"),
    (1, "src net 10.0.0.0/8 and src net 10.0.0.0/16 and src host 11.0.0.1"),
    (1, "ether host 1:2:3:4:5:6 and not ether src 1:2:3:4:5:6 and not ether dst 1:2:3:4:5:6"),
    (1, "tcp src port 80 and tcp src port 81"),
    (1, "tcp[0:2] = 80 and tcp[0:2] = 81"),
    (1, "tcp[tcpflags] = 2 and tcp[tcpflags] = 3"),
    (1, "udp[0:2] = 80 and udp[0:2] = 81"),
    (1, "ip[ip[0]] = 1 and ip[ip[0]] = 2"),
    (1, "ether[ether[0]] = 1 and ether[ether[0]] = 2"),
    (1, "ether[0] + 1 = 3 and ether[0] + 1 = 4"),
    (1, "ether[0] = 1 and ether[0:2] = 0x0200"),
    (1, "vlan 5 and ether proto 0x800 and not ip"),
    (1, "mpls 5 and mpls 6"),
    (1, "pppoes and ip and ip6"),
    (1, "pppoes 5 and not pppoes 5"),
    (1, "geneve and ip and ip6"),
    (1, "geneve 5 and geneve 6"),
    (1, "arp and arp[6:2] = 1 and arp[6:2] = 2"),
    (1, "icmp[0] = 1 and icmp[0] = 2"),
    (1, "igmp and pim"),
    (1, "stp and netbeui"),
    (1, "ipx and atalk"),
    (1, "llc and not llc"),
    (1, "1 + 1 = 3"),
    (1, "len - len = 1"),
    (1, "len = len"),
    (1, "len != len"),
    (1, "ip and (1 = 2)"),
    (1, "ip or 1 = 1"),
    (1, "not (ip or 1 = 1)"),
    (1, "5 > 6"),
    (1, "5 < 4"),
    (1, "6 >= 6 and arp"),
    (1, "0 > 0"),
    (1, "0 >= 1"),
    (1, "len >= 0"),
    (1, "not (len >= 0)"),
    (1, "len & 0 = 1"),
    (1, "len * 0 = 1"),
    (1, "len / 1 = len"),
    (1, "0 * len = 1"),
    (1, "ether[0] & 0 = 1"),
    (1, "ip[0] & 0xf0 = 0x40 and ip[0] & 0xf0 = 0x60"),
    (1, "ip[2:2] > 65535"),
    (1, "ether multicast and ether broadcast and not ether multicast"),
    (1, "broadcast and not multicast"),
    (1, "ether dst ff:ff:ff:ff:ff:ff and ether dst 1:2:3:4:5:6"),
    (1, "ip multicast and dst host 10.0.0.1"),
    (1, "ip6 multicast and ip6 dst host fe80::1"),
    (113, "ip and arp"),
    (276, "ip and ip6"),
    (276, "ether proto 70000"),
    (101, "ip and tcp and udp"),
    (101, "ip6 and tcp and ip"),
    (101, "rarp"),
    (101, "ether proto 1500"),
    (0, "ip and ip6"),
    (0, "ip proto 256"),
    (108, "ip and ip6"),
    (9, "ip and ip6"),
    (9, "ip and arp"),
    (9, "ether proto 70000"),
    (104, "ip and ip6"),
    (123, "vpi 1 and vpi 2"),
    (123, "vci 5 and vpi 2 and vci 6"),
    (123, "metac and bcc"),
    (123, "lane and llc"),
    (123, "ip and arp"),
    (105, "ip and ip6"),
    (105, "type mgt and type data"),
    (105, "ether[0] = 300"),
    (127, "ip and arp"),
    (10, "ip and arp"),
    (6, "ip and arp"),
    (6, "ip proto 256"),
    (107, "ip and ip6"),
    (107, "ether proto 256"),
    (140, "fisu and lssu"),
    (140, "sio 5 and sio 6"),
    (140, "opc 1 and opc 2"),
    (226, "ip and ip6"),
    (8, "ip and ip6"),
    (7, "ip and arp"),
    (114, "ip"),
    (1, "ip proto 6 and ip proto 256"),
    (1, "ip and ether proto 70000"),
    (1, "ether proto 70000 and ether proto 70001"),
    (1, "ether proto 1500 and ether proto 1501"),
    (1, "ip proto 256 and ip proto 257"),
    (1, "ip[0] = 256 and ip[0] = 257"),
    (1, "ip protochain 6 and ip6"),
    (1, "ip protochain 6 and ip protochain 17"),
    (1, "greater 100 and less 50"),
    (1, "greater 100 and not greater 100"),
];

#[test]
fn what_is_beside_the_packets_means_what_libpcap_makes_of_it() {
    if let Err(error) = by_libpcap_live("ip", false) {
        return weir_skip::this_test(error);
    }
    let options = Options { metadata: Beside::All, ..options(1) };
    let packets = packets::fixed(1, 300);
    for text in [
        "vlan",
        "vlan 5",
        "not vlan",
        "vlan 5 and tcp",
        "vlan or tcp",
        "ip or vlan or ip",
        "not vlan 5 and ip",
        "tcp or vlan 5 and udp",
        "ip or (vlan and ip)",
        "vlan and vlan 7",
        "vlan 5 and vlan 7 and ip",
        "vlan and mpls and ip",
        "vlan and pppoes and ip",
        "inbound",
        "outbound and ip",
        "not outbound",
        "ifindex 2",
    ] {
        let program = by_libpcap_live(text, false).expect("it compiles as others do");
        let filter = compile(text, &options).expect("libpcap compiles it");
        filter.lowered.check(&[]).expect("the graph keeps the rules");
        let interpreter = Interpreter::new(&filter.lowered, &[]);
        let mut accepted = 0;
        for (packet, number) in cuts(&packets, 5).zip((0_u8..=u8::MAX).cycle()) {
            let tci = [None, Some(5), Some(0xa007)][usize::from(number) % 3];
            let meta = Metadata {
                protocol: 0,
                packet_type: number / 3 % 5,
                interface: u32::from(number / 15 % 3),
                vlan: tci.map(|tci| VlanTag { protocol: 0x8100, tci }),
            };
            let packet = Packet { meta, ..packet };
            let ours = interpreter.run(&packet);
            assert_eq!(ours, program.run(&packet), "{text}: {packet:02x?}\n{}", program.listing());
            accepted += u32::from(ours != 0);
        }
        assert_ne!(accepted, 0, "{text}: no packet is accepted, so nothing was compared");
    }
}

#[test]
fn the_byte_order_of_a_file_counts() {
    let libpcap = Libpcap::open().expect("libpcap is installed");
    for text in ["ip", "ip6", "tcp"] {
        let options = Options { swapped: true, ..options(0) };
        let program = by_libpcap(&libpcap, text, &options, false).expect("libpcap compiles it");
        let filter = compile(text, &options).expect("libpcap compiles it");
        let accepted = agree(&filter, &program, &packets::fixed(0, 500), 0).unwrap();
        assert_ne!(accepted, 0, "{text}: no packet is accepted, so nothing was compared");
    }
}

/// The mask of one address is the number by which libpcap says that it does not know any.
#[test]
fn a_broadcast_is_refused_where_libpcap_knows_no_network() {
    let libpcap = Libpcap::open().expect("libpcap is installed");
    let packets = packets::fixed(1, 300);
    for (netmask, known) in
        [(None, false), (Some(u32::MAX), false), (Some(u32::MAX << 1), true), (Some(NETMASK), true)]
    {
        for text in ["ip broadcast", "not ip broadcast", "tcp or ip broadcast"] {
            let options = Options { netmask, ..options(1) };
            let (theirs, ours) = (by_libpcap(&libpcap, text, &options, false), compile(text, &options));
            assert_eq!((theirs.is_ok(), ours.is_ok()), (known, known), "{text} of {netmask:x?}");
            if let (Ok(program), Ok(filter)) = (theirs, ours) {
                let accepted = agree(&filter, &program, &packets, 4).unwrap();
                assert_ne!(accepted, 0, "{text} of {netmask:x?}: nothing was compared");
            }
        }
    }
}

/// Both dialects.
#[test]
fn six_groups_and_a_dotted_quad_are_an_address() {
    let libpcap = Libpcap::open().expect("libpcap is installed");
    let packet = |last: u8| {
        let source = [0x20, 1, 0xd, 0xb8, 0x10, 0x11, 0x12, 0x13, 0x14, 0x15, 0x16, 0x17, 24, 25, 26, last];
        let data = [&[2; 12][..], &[0x86, 0xdd, 0x60, 0, 0, 0, 0, 0, 59, 64], &source, &[0xfe; 16]].concat();
        Captured { length: data.len().try_into().expect("short"), data }
    };
    let (address, packets) = ("2001:db8:1011:1213:1415:1617:24.25.26.27", [packet(27), packet(28)]);
    for (text, wanted) in [
        (format!("host {address}"), 1),
        (format!("src host {address}"), 1),
        (format!("dst host {address}"), 0),
        (format!("net {address}/128"), 1),
        ("net 2001:db8:1011:1213:1415:1617:24.25.0.0/112".to_owned(), 2),
        (format!("ip6 and not host {address}"), 1),
    ] {
        let options = options(1);
        let program = by_libpcap(&libpcap, &text, &options, false).expect("libpcap compiles it");
        for dialect in [Dialect::Pcap, Dialect::Weir] {
            let filter = compile(&text, &Options { dialect, ..options })
                .unwrap_or_else(|error| panic!("{dialect:?}: {text}: {error}"));
            let judged = packets.iter().filter(|packet| {
                let packet = packet.seen();
                let ours = Interpreter::new(&filter.lowered, &filter.ast.sets).run(&packet) != 0;
                assert_eq!(ours, program.run(&packet) != 0, "{dialect:?}: {text} of {packet:02x?}");
                ours
            });
            assert_eq!(judged.count(), wanted, "{dialect:?}: {text}");
        }
    }
}

#[test]
fn what_a_tunnel_that_was_not_asked_for_would_have_found_is_zero() {
    let libpcap = Libpcap::open().expect("libpcap is installed");
    for text in ["geneve or tcp", "not geneve and ip", "(udp or geneve) and ether src 0:11:22:33:44:55"] {
        let options = options(1);
        let program = by_libpcap(&libpcap, text, &options, false).expect("libpcap compiles it");
        let filter = compile(text, &options).expect("libpcap compiles it");
        agree(&filter, &program, &packets::fixed(1, 300), 2).unwrap();
    }
}

/// A frame in a tunnel over UDP to `port` over IPv4 with or without options, or over IPv6; with the tunnel's header.
fn tunnelled(family: u8, port: u16, header: &[u8], frame: &[u8]) -> Vec<u8> {
    let mut outer = vec![2; 12];
    match family {
        6 => {
            outer.extend([0x86, 0xdd, 0x60, 0, 0, 0, 0, 0, 17, 64]);
            outer.extend([0xfd; 32]);
        }
        words => {
            outer.extend([0x08, 0x00, 0x40 | words, 0, 0, 0, 0, 0, 0, 0, 64, 17, 0, 0]);
            outer.extend(vec![192; usize::from(words) * 4 - 12]);
        }
    }
    outer.extend([0x12, 0x34]);
    outer.extend(port.to_be_bytes());
    outer.extend([0; 4]);
    outer.extend(header);
    outer.extend(frame);
    outer
}

#[test]
fn behind_a_tunnel_terms_mean_the_frame_inside() {
    let options = options(1);
    let compiled = |text: &str| compile(text, &options).unwrap_or_else(|error| panic!("{text}: {error}"));
    let vxlan = ("vxlan 100", 4789, &[8, 0, 0, 0, 0, 0, 100, 0][..]);
    let geneve = ("geneve 100", 6081, &[0x01, 0, 0x65, 0x58, 0, 0, 100, 0, 1, 1, 1, 1][..]);
    let frames = packets::fixed(1, 60);
    for (tunnel, port, header) in [vxlan, geneve] {
        for text in [
            "tcp",
            "ether src 0:11:22:33:44:55",
            "port 80",
            "vlan and ip",
            "ip[6:2] & 0x1fff = 0",
            "multicast",
        ] {
            let (inside, outside) = (compiled(text), compiled(&format!("{tunnel} and {text}")));
            let (inside, outside) =
                (Interpreter::new(&inside.lowered, &[]), Interpreter::new(&outside.lowered, &[]));
            let mut accepted = 0;
            for packet in cuts(&frames, 3) {
                let answer = inside.run(&packet);
                accepted += u32::from(answer != 0);
                for family in [5, 7, 6] {
                    let data = tunnelled(family, port, header, packet.data);
                    assert_eq!(outside.run(&Packet { data: &data, ..packet }), answer, "{text}: {data:02x?}");
                    let other = tunnelled(family, port + 1, header, packet.data);
                    assert_eq!(outside.run(&Packet { data: &other, ..packet }), 0, "{text}: {other:02x?}");
                }
            }
            assert_ne!(accepted, 0, "{text}: no packet is accepted, so nothing was compared");
        }
    }
    for (number, flags, accepted) in [(100, 8, true), (101, 8, false), (100, 0, false)] {
        let data = tunnelled(5, 4789, &[flags, 0, 0, 0, 0, 0, number, 0], &[]);
        let filter = compiled("vxlan 100");
        let answer = Interpreter::new(&filter.lowered, &[]).run(&Packet { data: &data, ..Packet::default() });
        assert_eq!(answer != 0, accepted, "{number} {flags}");
    }
}

#[test]
fn a_chain_of_more_headers_than_are_looked_at_is_refused() {
    let filter = compile("ip6 protochain 6 or ip6", &options(1)).expect("it is valid");
    let interpreter = Interpreter::new(&filter.lowered, &[]);
    for (headers, accepted) in [(0, true), (14, true), (15, true), (16, false)] {
        let mut data = vec![2; 12];
        data.extend([0x86, 0xdd, 0x60, 0, 0, 0, 0, 0, if headers == 0 { 17 } else { 60 }, 64]);
        data.extend([0; 32]);
        for header in (0..headers).rev() {
            data.extend([if header == 0 { 17 } else { 60 }, 0, 0, 0, 0, 0, 0, 0]);
        }
        let answer = interpreter.run(&Packet { data: &data, length: 0, ..Packet::default() });
        assert_eq!(answer != 0, accepted, "{headers} headers");
    }
}

#[test]
fn byte_loads_the_byte_that_it_asks() {
    for (text, same) in [("byte 12 & 8", "link[12] & 8 != 0"), ("byte 13 | 0", "link[13] | 0 != 0")] {
        let [text, same] = [text, same].map(|text| compile(text, &options(1)).expect("it is valid"));
        let [text, same] = [&text, &same].map(|filter| Interpreter::new(&filter.lowered, &[]));
        for packet in cuts(&packets::fixed(1, 50), 5) {
            assert_eq!(text.run(&packet), same.run(&packet));
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(share::cases(600)))]

    #[test]
    fn random_expressions_mean_what_libpcap_makes_of_them(seed in any::<u64>()) {
        let libpcap = Libpcap::open().expect("libpcap is installed");
        let mut choices = Choices::seeded(seed);
        let text = expressions::expression(Words::Pcap, &mut choices);
        let link_type = if choices.one_in(2) { 1 } else { choices.pick(LINK_TYPES) };
        let options = options(link_type);
        prop_assume!(!may_be_mended(link_type, &text));
        let packets: Vec<Captured> = (0..40).map(|_| packets::packet(link_type, &mut choices)).collect();
        match (by_libpcap(&libpcap, &text, &options, false), compile(&text, &options)) {
            (Ok(program), Ok(filter)) => {
                agree(&filter, &program, &packets, 2).map_err(TestCaseError::fail)?;
            }
            (Err(_), Err(_)) => {}
            (judged, ours) => prop_assert!(false, "{text}: {:?}, libpcap {:?}", ours.err(), judged.err()),
        }
    }
}
