//! The dialect `weir`: what users expect of an expression, the same live and from a file.

#[path = "frames/different.rs"]
mod different;
mod frames;

use frames::*;
use weir_filter::interpret::{Interpreter, Metadata, Packet, VlanTag};
use weir_filter::names::{Names, Service};
use weir_filter::{Beside, Dialect, Filter, Options, compile};
use weir_judge::expressions::{Words, expression};
use weir_judge::packets::{Captured, fixed};
use weir_judge::{Choices, corpus};

const ETHERNET: u16 = 1;

fn filter(text: &str) -> Filter {
    compiled(text, &options(Dialect::Weir, ETHERNET))
}

/// Asks each expression of each packet.
#[track_caller]
fn table(packet: &[u8], yes: &[&str], no: &[&str]) {
    for (texts, wanted) in [(yes, true), (no, false)] {
        for text in texts {
            assert_eq!(accepts(&filter(text), packet), wanted, "`{text}` of {packet:02x?}");
        }
    }
}

const A: [u8; 4] = [10, 1, 2, 3];
const B: [u8; 4] = [192, 0, 2, 7];
const SIX_A: u16 = 0xa;
const SIX_B: u16 = 0xb;

/// TCP from port 1024 to 443 with the flag SYN, over IPv4 from A to B.
fn web() -> Vec<u8> {
    ip4(A, B, 6, 0, &tcp(1024, 443))
}

#[test]
fn tags_are_transparent_and_found_by_number() {
    let asked = ["tcp port 443", "ip", "net 10.0.0.0/8", "tcp[13] = 2", "ip[9] = 6", "src port 1024"];
    for tags in 0..=4 {
        let tags: Vec<u16> = (1..=tags).collect();
        table(&ethernet(&tags, 0x0800, &web()), &asked, &["udp", "port 80", "ip6", "arp", "net 11.0.0.0/8"]);
    }
    table(&ethernet(&[], 0x0800, &web()), &["not vlan"], &["vlan", "vlan 1", "vlan in {1, 2}"]);
    let both =
        ["vlan", "vlan 1", "vlan 2", "vlan 1 and vlan 2", "vlan 2 and vlan 1", "vlan in {2}", "vlan and ip"];
    table(&ethernet(&[1, 2], 0x0800, &web()), &both, &["vlan 3", "vlan 1 and vlan 3", "not vlan"]);
    table(
        &ethernet(&[1, 2], 0x0800, &web()),
        &["(vlan 7 or vlan 2) and tcp", "vlan 7 or tcp"],
        &["vlan 7 and tcp"],
    );
    // Five are one too many for what comes behind, but there are tags.
    table(&ethernet(&[1, 2, 3, 4, 5], 0x0800, &web()), &["vlan 4", "not ip"], &["vlan 5", "tcp"]);
    // An accessor reads the frame as it was on the wire.
    table(
        &ethernet(&[5], 0x0800, &web()),
        &["ether[12:2] = 0x8100", "ether[14:2] & 0xfff = 5"],
        &["ether[12:2] = 0x800"],
    );
    table(
        &ethernet(&[5], 0x0800, &web()),
        &["ether proto 0x800", "ether proto 0x8100"],
        &["ether proto 0x86dd"],
    );
}

#[test]
fn extension_headers_are_walked() {
    let plain = ip6(SIX_A, SIX_B, 6, &tcp(1024, 443));
    let asked =
        ["tcp", "tcp port 443", "port 443", "ip6 proto 6", "proto 6", "tcp[13] & 2 != 0", "tcp[2:2] = 443"];
    table(&ethernet(&[], 0x86dd, &plain), &asked, &["udp", "ip", "icmp6", "ip6 proto 0", "ah"]);
    let options = |next, behind: &[u8]| [&[next, 1][..], &[0; 14], behind].concat();
    let authentication = |next, behind: &[u8]| [&[next, 4][..], &[0; 22], behind].concat();
    let fragment = |next, offset: u16, behind: &[u8]| {
        [&[next, 0][..], &(offset << 3 | 1).to_be_bytes(), &[0; 4], behind].concat()
    };
    let segment = tcp(1024, 443);
    for (first, chain) in [
        (0, options(6, &segment)),
        (43, options(60, &options(6, &segment))),
        (51, authentication(6, &segment)),
        (44, fragment(6, 0, &segment)),
        (0, options(43, &options(44, &fragment(60, 0, &options(51, &authentication(6, &segment)))))),
        (135, options(139, &options(140, &options(6, &segment)))),
        (0, (0..7).fold(options(6, &segment), |chain, _| options(60, &chain))),
    ] {
        for tags in [&[][..], &[7]] {
            let packet = ethernet(tags, 0x86dd, &ip6(SIX_A, SIX_B, first, &chain));
            table(&packet, &asked, &["udp", "port 80", "icmp6", "tcp[2:2] = 80"]);
        }
    }
    let nine = (0..8).fold(options(6, &segment), |chain, _| options(60, &chain));
    table(
        &ethernet(&[], 0x86dd, &ip6(SIX_A, SIX_B, 0, &nine)),
        &["ip6", "ip6 proto 60"],
        &["tcp", "port 443"],
    );
    let hidden = ip6(SIX_A, SIX_B, 51, &authentication(6, &segment));
    table(
        &ethernet(&[], 0x86dd, &hidden),
        &["ah", "ip6 proto 51", "ip6 protochain 51", "ip6 protochain 6"],
        &["esp"],
    );
    let four = ip4(A, B, 51, 0, &authentication(6, &segment));
    table(&ethernet(&[], 0x0800, &four), &["ah", "ip proto 51", "ip protochain 6"], &["tcp", "port 443"]);
    let later = ip6(SIX_A, SIX_B, 0, &options(44, &fragment(6, 100, &segment)));
    table(
        &ethernet(&[], 0x86dd, &later),
        &["tcp", "ip6 proto 6", "ip6 proto 44"],
        &["port 443", "tcp[13] & 2 != 0"],
    );
    table(
        &ethernet(&[], 0x86dd, &ip6(SIX_A, SIX_B, 0, &options(58, &[128, 0, 0, 0]))),
        &["icmp6[0] = 128"],
        &["tcp"],
    );
}

#[test]
fn fragments_are_the_same_for_both_families() {
    let (first, later) = (ip4(A, B, 6, 0x2000, &tcp(1024, 443)), ip4(A, B, 6, 0x20, &tcp(1024, 443)));
    table(&ethernet(&[], 0x0800, &first), &["tcp", "tcp port 443", "tcp[13] = 2"], &["udp"]);
    table(
        &ethernet(&[], 0x0800, &later),
        &["tcp", "proto 6", "not port 443"],
        &["tcp port 443", "tcp[13] = 2", "tunnel"],
    );
}

/// What carries an Ethernet frame, or an IPv4 packet, by the name of the tunnel.
fn tunnels() -> Vec<(&'static str, Vec<u8>)> {
    let inside = ip4([10, 9, 9, 9], [10, 8, 8, 8], 17, 0, &udp(5353, 53, &[]));
    let six = ip6(SIX_A, SIX_B, 17, &udp(5353, 53, &[]));
    let frame = ethernet(&[9], 0x0800, &inside);
    let over = |protocol, data: &[u8]| ethernet(&[], 0x0800, &ip4(A, B, protocol, 0, data));
    let over_six = |protocol, data: &[u8]| ethernet(&[3], 0x86dd, &ip6(SIX_A, SIX_B, protocol, data));
    let vxlan = udp(99, 4789, &[&[8, 0, 0, 0, 0, 0, 100, 0][..], &frame].concat());
    let geneve = udp(99, 6081, &[&[1, 0, 0x65, 0x58, 0, 0, 200, 0, 1, 2, 3, 4][..], &frame].concat());
    let gtp = |header: &[u8]| udp(2152, 2152, &[header, &inside].concat());
    vec![
        ("gre", over(47, &[&[0, 0, 8, 0][..], &inside].concat())),
        ("gre with all", over(47, &[&[0xb0, 0, 8, 0][..], &[0; 12], &inside].concat())),
        ("gre bridging", over(47, &[&[0x20, 0, 0x65, 0x58, 0, 0, 0, 1][..], &frame].concat())),
        ("gre over IPv6", over_six(47, &[&[0, 0, 8, 0][..], &inside].concat())),
        ("ipip", over(4, &inside)),
        ("6in4", over(41, &six)),
        ("4in6", over_six(4, &inside)),
        ("6in6", over_six(41, &six)),
        ("vxlan", over(17, &vxlan)),
        ("vxlan over IPv6", over_six(17, &vxlan)),
        ("vxlan on Linux's port", over(17, &[&vxlan[..2], &8472_u16.to_be_bytes(), &vxlan[4..]].concat())),
        ("geneve", over(17, &geneve)),
        ("gtp", over(17, &gtp(&[0x30, 255, 0, 0, 0, 0, 0, 1]))),
        ("gtp with a sequence number", over(17, &gtp(&[0x32, 255, 0, 0, 0, 0, 0, 1, 0, 7, 0, 0]))),
        (
            "gtp with extension headers",
            over(17, &gtp(&[0x34, 255, 0, 0, 0, 0, 0, 1, 0, 0, 0, 0x85, 1, 0, 9, 0x85, 1, 0, 9, 0])),
        ),
        ("mpls", ethernet(&[4], 0x8847, &[&[0, 6, 0x40, 64, 0, 12, 0x81, 64][..], &inside].concat())),
        (
            "mpls with a control word",
            ethernet(&[], 0x8847, &[&[0, 6, 0x41, 64, 0, 0, 0, 0][..], &frame].concat()),
        ),
        ("pppoe", ethernet(&[], 0x8864, &[&[0x11, 0, 0, 17, 0, 0, 0, 0x21][..], &inside].concat())),
    ]
}

#[test]
fn inner_looks_into_tunnels_and_nothing_else_does() {
    for (name, packet) in tunnels() {
        let yes = [
            "tunnel",
            "inner(udp port 53)",
            "inner(udp and src port 5353)",
            "inner(ip or ip6)",
            "inner(udp[2:2] = 53) and tunnel and inner(udp)",
            "not inner(tcp)",
            "inner(not tcp)",
            "inner(tcp) or inner(udp)",
        ];
        let no = ["port 53", "tcp", "inner(tcp)", "inner(tunnel)", "inner(inner(udp))", "not tunnel"];
        for (texts, wanted) in [(&yes[..], true), (&no[..], false)] {
            for text in texts {
                assert_eq!(accepts(&filter(text), &packet), wanted, "`{text}` of {name}");
            }
        }
    }
    let by_name = |wanted: &str| {
        let found = tunnels().into_iter().find(|(name, _)| *name == wanted);
        found.expect("there is one of this name").1
    };
    // Terms behind `inner` are about the packet outside again.
    let outside =
        ["inner(udp) and host 10.1.2.3", "inner(udp) and proto 4", "host 10.1.2.3 and inner(host 10.9.9.9)"];
    table(
        &by_name("ipip"),
        &outside,
        &["inner(udp) and host 10.9.9.9", "inner(host 10.1.2.3)", "inner(vlan)"],
    );
    let outside =
        ["inner(udp) and ip6 and proto 4", "vlan 3 and inner(ip) and vlan 3", "inner(ip) and ip6[6] = 4"];
    table(&by_name("4in6"), &outside, &["inner(udp) and ip", "inner(vlan 3)"]);
    let yes = [
        "vxlan",
        "vxlan 100",
        "inner(vlan 9)",
        "inner(ether[12:2] = 0x8100)",
        "udp port 4789 and inner(vlan 9 and udp)",
    ];
    table(&by_name("vxlan"), &yes, &["vxlan 5", "vlan", "geneve", "inner(vlan 8)"]);
    table(
        &by_name("vxlan on Linux's port"),
        &["vxlan", "vxlan 100", "udp port 8472 and inner(vlan 9)"],
        &["vxlan 5"],
    );
    table(&by_name("geneve"), &["geneve 200", "inner(ether host 02:00:00:00:00:0a)"], &["geneve 1", "vxlan"]);
    table(
        &by_name("mpls"),
        &["mpls", "mpls 100", "mpls 200", "mpls 100 and vlan 4"],
        &["mpls 5", "ip", "udp"],
    );
    table(
        &by_name("pppoe"),
        &["pppoes", "pppoes 17", "inner(net 10.0.0.0/8)"],
        &["pppoes 18", "pppoed", "ip"],
    );
    table(&ethernet(&[], 0x0800, &web()), &["not tunnel"], &["tunnel", "inner(tcp)", "inner(not tcp)"]);
    // One in the other.
    let (_, frame) = tunnels().remove(0);
    let twice = ethernet(
        &[],
        0x0800,
        &ip4(B, A, 17, 0, &udp(1, 4789, &[&[8, 0, 0, 0, 0, 0, 7, 0][..], &frame].concat())),
    );
    let yes = [
        "inner(inner(udp port 53))",
        "inner(tunnel)",
        "inner(host 10.1.2.3 and inner(host 10.9.9.9) and proto 47) and src host 192.0.2.7",
        "vxlan 7 and inner(inner(not tcp) and not udp)",
    ];
    table(&twice, &yes, &["inner(port 53)", "inner(inner(tunnel))", "inner(inner(inner(udp)))"]);
}

#[test]
fn sets_ask_as_their_members_do() {
    let packet = ethernet(&[2], 0x0800, &web());
    let yes = [
        "host in {10.1.2.3}",
        "host in {1.1.1.1, 192.0.2.0/24}",
        "src host in {10.0.0.0/8, ::1}",
        "tcp port in {80, 440-450}",
        "dst port in {443}",
        "ether host in {02:00:00:00:00:0a}",
        "net in {10.0.0.0/8}",
    ];
    table(
        &packet,
        &yes,
        &["host in {::1}", "dst host in {10.0.0.0/8}", "udp port in {443}", "src port in {443}"],
    );
    let six = ethernet(&[], 0x86dd, &ip6(SIX_A, SIX_B, 6, &tcp(1, 2)));
    table(
        &six,
        &["host in {2001:db8::/64, 1.1.1.1}", "src host in {2001:db8::a}"],
        &["host in {10.0.0.0/8}"],
    );
}

#[test]
fn many_alternatives_are_asked_as_a_set() {
    let hosts: Vec<String> = (0..1000).map(|host| format!("10.3.{}.{}", host / 250, host % 250)).collect();
    let alternatives = format!("host {} or host 2001:db8::b or net 10.1.0.0/16", hosts.join(" or host "));
    let filter = filter(&alternatives);
    assert_eq!(filter.ast.sets.len(), 2);
    assert!(filter.lowered.nodes().len() < 200, "{} nodes", filter.lowered.nodes().len());
    let from = |address| ethernet(&[], 0x0800, &ip4(address, B, 6, 0, &tcp(1, 2)));
    assert!(accepts(&filter, &from([10, 3, 0, 77])));
    assert!(accepts(&filter, &from([10, 1, 9, 9])));
    assert!(accepts(&filter, &ethernet(&[1], 0x86dd, &ip6(SIX_A, SIX_B, 6, &tcp(1, 2)))));
    assert!(!accepts(&filter, &from([10, 2, 9, 9])));
}

#[test]
fn tunnels_in_a_row_are_entered_once() {
    let row =
        |joint: &str| (0..500).map(|port| format!("inner(port {port})")).collect::<Vec<_>>().join(joint);
    let (_, packet) = tunnels().remove(0);
    assert!(accepts(&filter(&row(" or ")), &packet));
    assert!(!accepts(&filter(&row(" and ")), &packet));
    table(
        &packet,
        &["inner(udp) and inner(port 53) and ip", "inner(tcp) or inner(ip) or arp"],
        &["inner(udp) and inner(tcp)"],
    );
    let apart = (0..101).map(|port| format!("inner(port {port}) or tcp")).collect::<Vec<_>>().join(" or ");
    assert!(compile(&apart, &options(Dialect::Weir, ETHERNET)).is_err());
}

#[test]
fn what_makes_no_sense_here_is_refused() {
    for (link_type, text) in [
        (ETHERNET, "inbound"),
        (ETHERNET, "type mgt"),
        (ETHERNET, "vpi 3"),
        (101, "ether host 02:00:00:00:00:0a"),
        (101, "vlan 5"),
        (143, "host in {10.0.0.0/8}"),
        (143, "inner(tcp)"),
    ] {
        let refused = compile(text, &options(Dialect::Weir, link_type));
        assert!(refused.is_err(), "{link_type} {text}");
    }
    let unknown = compile("ip broadcast", &Options { netmask: None, ..options(Dialect::Weir, ETHERNET) });
    assert!(unknown.is_err());
    let deep = (0..9).fold("tcp".to_owned(), |inside, _| format!("inner({inside})"));
    assert!(compile(&deep, &options(Dialect::Weir, ETHERNET)).is_err());
}

/// Of a network of one address or two none is a broadcast (RFC 3021): only the one of all networks is.
#[test]
fn a_broadcast_is_one_of_the_network() {
    for (bits, yes, no) in [
        (24, &[[10, 1, 2, 255], [10, 1, 2, 0], [192, 0, 2, 255]][..], &[[10, 1, 2, 3], [10, 1, 255, 1]][..]),
        (30, &[[10, 1, 2, 3], [10, 1, 2, 4]], &[[10, 1, 2, 1], [10, 1, 2, 2]]),
        (31, &[], &[[10, 1, 2, 2], [10, 1, 2, 3], [10, 1, 2, 255]]),
        (32, &[], &[[10, 1, 2, 2], [10, 1, 2, 3], [10, 1, 2, 255]]),
    ] {
        let netmask = Some(u32::MAX << (32 - bits));
        let asked = Options { netmask, ..options(Dialect::Weir, ETHERNET) };
        let filter = compiled("ip broadcast", &asked);
        let to = |address| accepts(&filter, &ethernet(&[], 0x0800, &ip4(A, address, 17, 0, &udp(1, 2, &[]))));
        for address in yes.iter().chain(&[[255; 4], [0; 4]]) {
            assert!(to(*address), "{address:?} of /{bits}");
        }
        for address in no {
            assert!(!to(*address), "{address:?} of /{bits}");
        }
    }
}

/// Knows a service whose port is another over each protocol, and one that is over UDP alone.
#[derive(Debug)]
struct Services;

impl Names for Services {
    fn service(&self, name: &str) -> Service {
        match name {
            "each" => Service { tcp: Some(514), udp: Some(515), sctp: Some(516) },
            "datagrams" => Service { udp: Some(123), ..Service::default() },
            _ => Service::default(),
        }
    }
}

#[test]
fn a_service_in_a_set_has_the_port_of_the_protocol_that_is_asked_for() {
    let options = Options { names: &Services, ..options(Dialect::Weir, ETHERNET) };
    let over = |protocol: u8, port: u16| {
        let header = if protocol == 6 { tcp(1, port) } else { udp(1, port, &[0; 4]) };
        ethernet(&[], 0x0800, &ip4(A, B, protocol, 0, &header))
    };
    const PROTOCOLS: [(&str, u8, u16); 3] = [("tcp", 6, 514), ("udp", 17, 515), ("sctp", 132, 516)];
    for (asked, ..) in PROTOCOLS {
        for set in ["each", "each, 80", "9000-9010 each"] {
            let filter = compiled(&format!("{asked} port in {{{set}}}"), &options);
            for (name, number, own) in PROTOCOLS {
                for (.., port) in PROTOCOLS {
                    let wanted = name == asked && port == own;
                    assert_eq!(
                        accepts(&filter, &over(number, port)),
                        wanted,
                        "{}: {name} {port}",
                        filter.text
                    );
                }
            }
        }
    }
    // Without a protocol it is one port for all of them.
    let filter = compiled("port in {each}", &options);
    assert!(PROTOCOLS.iter().all(|(_, number, _)| accepts(&filter, &over(*number, 514))));
    assert!(accepts(&compiled("dst port in {datagrams}", &options), &over(17, 123)));
    assert!(accepts(&compiled("udp dst port in {datagrams}", &options), &over(17, 123)));
    let error = compile("tcp port in {datagrams}", &options).expect_err("TCP has no such service");
    assert!(error.message.contains("expected ports, not `datagrams`"), "{error}");
}

#[test]
fn unequal_is_unequal_of_atm_and_ss7_too() {
    const SUNATM: u16 = 123;
    const MTP2: u16 = 140;
    for (link_type, packet, expression, wanted) in [
        (SUNATM, &[0, 5, 0, 9, 1][..], "vpi != 5", false),
        (SUNATM, &[0, 6, 0, 9, 1], "vpi != 5", true),
        (SUNATM, &[0, 5, 0, 9, 1], "vci != 5", true),
        (MTP2, &[0, 0, 0, 7, 0, 0, 0, 0], "sio != 7", false),
        (MTP2, &[0, 0, 0, 8, 0, 0, 0, 0], "sio != 7", true),
    ] {
        for (dialect, wanted) in [(Dialect::Weir, wanted), (Dialect::Pcap, !wanted)] {
            let filter = compiled(expression, &options(dialect, link_type));
            assert_eq!(accepts(&filter, packet), wanted, "{dialect:?}: {expression} of {packet:?}");
        }
    }
}

/// Has a set that an editor has put a byte order mark in front of.
#[derive(Debug)]
struct Marked;

impl Names for Marked {
    fn set(&self, name: &str) -> Result<String, String> {
        Ok(if name == "wrong" { "\u{feff}10.0.0.9\nno-address" } else { "\u{feff}10.1.2.3" }.to_owned())
    }
}

#[test]
fn a_byte_order_mark_in_front_of_a_set_is_skipped() {
    let options = Options { names: &Marked, ..options(Dialect::Weir, ETHERNET) };
    let packet = ethernet(&[], 0x0800, &ip4(A, B, 17, 0, &udp(1, 2, &[])));
    assert!(accepts(&compiled("host in @marked", &options), &packet));
    let error = compile("host in @wrong", &options).expect_err("no address");
    assert!(error.message.starts_with("line 2 of `@wrong`"), "{error}");
}

/// Knows the sets that the documents speak of.
#[derive(Debug)]
struct Documented;

impl Names for Documented {
    fn set(&self, name: &str) -> Result<String, String> {
        match name {
            "customers" => Ok("10.0.0.0/8 # all of them\n2001:db8::/32".to_owned()),
            _ => Err(format!("no set of the name {name}")),
        }
    }
}

#[test]
fn the_examples_of_the_documents_compile() {
    let document = include_str!("../../../docs/filter.md");
    let blocks = document.split("```").skip(1).step_by(2).filter_map(|block| block.strip_prefix("sh\n"));
    let examples: Vec<&str> = blocks.flat_map(str::lines).filter(|line| !line.starts_with("weir ")).collect();
    assert!(examples.len() > 9, "{examples:?}");
    for example in examples {
        let options = Options { names: &Documented, ..options(Dialect::Weir, ETHERNET) };
        compile(example, &options).unwrap_or_else(|error| panic!("{example}: {error}"));
    }
    for example in
        ["let web = tcp port 80 or tcp port 443; let us = net 10.0.0.0/8; web and us", "a or b and c"]
    {
        assert!(document.contains(example));
    }
}

#[test]
fn the_primitives_of_the_documents_compile() {
    const WLAN: u16 = 105;
    let document = include_str!("../../../docs/filter.md");
    let rows = document
        .lines()
        .skip_while(|line| *line != "## Primitives")
        .take_while(|line| *line != "## Shared with libpcap");
    let cells = rows.filter_map(|row| row.strip_prefix("| `")).filter_map(|row| row.split(" | ").next());
    let terms: Vec<&str> = cells.flat_map(|cell| cell.trim_end_matches('`').split("`, `")).collect();
    assert!(terms.len() > 60, "{terms:?}");
    for term in terms.into_iter().filter(|term| !term.contains(['@', '{']) && !term.ends_with("...")) {
        let term = term
            .trim_end_matches("`, ...")
            .replace("EXPR", "tcp")
            .replace("www.example.com", "10.1.2.4")
            .replace("https", "443");
        let term = if term.starts_with("tcp-") { format!("tcp[tcpflags] & {term} != 0") } else { term };
        let [mut ethernet, wlan] = [ETHERNET, WLAN].map(|link| options(Dialect::Weir, link));
        ethernet.metadata = Beside::All;
        compile(&term, &ethernet)
            .or_else(|_| compile(&term, &wlan))
            .unwrap_or_else(|error| panic!("{term}: {error}"));
    }
}

/// What the documents say of who is right, where that takes no packet of its own kind.
#[test]
fn the_dialects_differ_as_the_documents_say() {
    let both = |text: &str, packet: &[u8]| {
        let theirs = compile(text, &options(Dialect::Pcap, ETHERNET)).expect("it is of pcap-filter(7)");
        (accepts(&theirs, packet), accepts(&filter(text), packet))
    };
    let four = ethernet(&[], 0x0800, &web());
    let six = ethernet(&[], 0x86dd, &ip6(SIX_A, SIX_B, 6, &tcp(1024, 443)));
    let first = [&[17, 0, 0, 1, 0, 0, 0, 0][..], &udp(9, 53, &[])].concat();
    let everybody = ethernet(&[], 0x0800, &ip4(A, [255; 4], 17, 0, &udp(9, 53, &[])));
    for (text, packet, answers) in [
        ("vlan or ip", &four, (false, true)),
        ("(vlan and ip) or ip6", &six, (false, true)),
        ("tcp port 443", &ethernet(&[5], 0x0800, &web()), (false, true)),
        ("tcp[13] & 2 != 0", &six, (false, true)),
        ("ip multicast", &everybody, (true, false)),
        ("udp port 53", &ethernet(&[], 0x86dd, &ip6(SIX_A, SIX_B, 44, &first)), (false, true)),
        ("udp", &ethernet(&[], 0x86dd, &ip6(SIX_A, SIX_B, 44, &first)), (true, true)),
        ("1 << ip[8] = 0", &ethernet(&[], 40, &[0xaa; 60]), (true, false)),
        ("vlan 1 and vlan 2", &ethernet(&[2, 1], 0x0800, &web()), (false, true)),
        ("vlan 1 and vlan 2", &ethernet(&[1, 2], 0x0800, &web()), (true, true)),
    ] {
        assert_eq!(both(text, packet), answers, "`{text}` of {packet:02x?}");
    }
}

/// Neither tags nor extension headers, and whole.
fn is_plain(packet: &Captured) -> bool {
    let byte = |at: usize| packet.data.get(at).copied().unwrap_or(0);
    let kind = u16::from_be_bytes([byte(12), byte(13)]);
    let extended = kind == 0x86dd && [0, 43, 44, 51, 60, 135, 139, 140].contains(&byte(20));
    ![0x8100, 0x88a8, 0x9100].contains(&kind) && !extended && packet.data.len() == packet.length as usize
}

#[test]
fn the_dialects_agree_where_they_mean_the_same() {
    let packets: Vec<_> = fixed(ETHERNET, 400).into_iter().filter(is_plain).collect();
    let (mut compared, mut accepted) = (0, 0);
    for entry in corpus::pcap().iter().filter(|entry| entry.link_type == ETHERNET) {
        if different::is_different(entry.text) {
            continue;
        }
        // Names are for others to try.
        let Ok(theirs) = compile(entry.text, &options(Dialect::Pcap, ETHERNET)) else { continue };
        let ours = filter(entry.text);
        for packet in &packets {
            let (ours, theirs) = (accepts(&ours, &packet.data), accepts(&theirs, &packet.data));
            assert_eq!(ours, theirs, "`{}` of {:02x?}", entry.text, packet.data);
            accepted += u32::from(ours);
        }
        compared += 1;
    }
    assert!(compared > 250 && accepted > 5000, "{compared} expressions, {accepted} packets");
}

#[test]
fn live_and_from_a_file_the_same_packets_match() {
    let packets = fixed(ETHERNET, 2000);
    let packets: Vec<_> = packets.iter().filter(|packet| packet.data.len() >= 16).collect();
    let (mut stripped, mut accepted) = (0, 0);
    for seed in 0..300 {
        let mut choices = Choices::seeded(seed);
        let text = expression(Words::Weir, &mut choices);
        let Ok(file) = compile(&text, &options(Dialect::Weir, ETHERNET)) else { continue };
        let live = Options { metadata: Beside::All, ..options(Dialect::Weir, ETHERNET) };
        let live = compile(&text, &live).unwrap_or_else(|error| panic!("{text}: {error}"));
        live.lowered.check(&live.ast.sets).unwrap_or_else(|error| panic!("{text}: {error}"));
        let file = Interpreter::new(&file.lowered, &file.ast.sets);
        let live = Interpreter::new(&live.lowered, &live.ast.sets);
        for packet in packets.iter().skip(choices.below(1800)).take(60) {
            let (data, length) = (&packet.data[..], packet.length);
            let on_the_wire = Packet { data, length, ..Packet::default() };
            let half = |at: usize| u16::from_be_bytes([data[at], data[at + 1]]);
            let wanted = file.run(&on_the_wire);
            let without = [&data[..12], &data[16..]].concat();
            let answer = if [0x8100, 0x88a8, 0x9100].contains(&half(12)) {
                stripped += 1;
                let vlan = Some(VlanTag { protocol: half(12), tci: half(14) });
                let meta = Metadata { vlan, ..Metadata::default() };
                live.run(&Packet { data: &without, length: length - 4, meta })
            } else {
                live.run(&on_the_wire)
            };
            assert_eq!(answer, wanted, "`{text}` of {data:02x?}");
            accepted += u32::from(wanted != 0);
        }
    }
    assert!(stripped > 3000 && accepted > 1000, "{stripped} stripped, {accepted} accepted");
}

#[test]
fn loads_that_only_the_packet_places_find_the_tag_that_was_taken_off() {
    for text in [
        "ether[ether[0] : 2] = 0x8100",
        "ether[ether[0] : 2] = 0x8105",
        "ether[ether[0] : 4] = 0x81000005",
        "ether[ether[0] : 4] = 0x00050800",
        "ether[ether[ether[1]] : 2] = 0x0800",
        "ether[9 + (ether[0] & 3) : 4] & 0xff00 = 0x8100",
        "ether[13:4] = 0x00000508",
        "ether[11:2] & 0xff = 0x81",
        "len = 58",
        "less 57",
    ] {
        let file = filter(text);
        let live = Options { metadata: Beside::All, ..options(Dialect::Weir, ETHERNET) };
        let live = compile(text, &live).unwrap_or_else(|error| panic!("{text}: {error}"));
        live.lowered.check(&[]).expect("the graph keeps the rules");
        for first in 0..70 {
            let mut frame = ethernet(&[5], 0x0800, &web());
            frame[0] = first;
            frame[1] = first / 2;
            let length = u32::try_from(frame.len()).expect("the frame is short");
            let without = [&frame[..12], &frame[16..]].concat();
            let meta = Metadata { vlan: Some(VlanTag { protocol: 0x8100, tci: 5 }), ..Metadata::default() };
            let live = Interpreter::new(&live.lowered, &[]);
            let live = live.run(&Packet { data: &without, length: length - 4, meta });
            assert_eq!(live != 0, accepts(&file, &frame), "{text}, first byte {first}");
        }
    }
}
