//! What is understood: the tree of an expression, its terms in the language again, and in English.

mod common;

use std::sync::LazyLock;

use common::{Files, options};
use weir_filter::Dialect;
use weir_filter::ast::{Ast, Primitive};
use weir_filter::parse::parse;
use weir_filter::set::Contents;
use weir_judge::choices::Choices;
use weir_judge::corpus;
use weir_judge::expressions::{Words, expression};

fn parsed(text: &str, dialect: Dialect, link_type: u16) -> Ast {
    static NAMES: LazyLock<Files> = LazyLock::new(Files::read);
    parse(text, &options(dialect, link_type, &*NAMES))
        .unwrap_or_else(|error| panic!("{}", error.render(text)))
}

/// The tree in one line: levels become parentheses.
fn shape(text: &str, dialect: Dialect) -> String {
    let mut shape = String::new();
    let mut depth = 0;
    for line in parsed(text, dialect, 1).to_string().lines() {
        let indent = line.chars().take_while(|&letter| letter == ' ').count() / 2;
        shape.push_str(&match indent {
            0 => String::new(),
            _ if indent > depth => "(".to_owned(),
            _ => ")".repeat(depth - indent) + ", ",
        });
        let words = line.trim_start();
        let numbered = words.strip_prefix('t').and_then(|rest| rest.split_once(' '));
        let term = numbered.filter(|(number, _)| number.bytes().all(|byte| byte.is_ascii_digit()));
        shape.push_str(term.map_or(words, |(_, term)| term));
        depth = indent;
    }
    shape + &")".repeat(depth)
}

#[test]
fn connectives_bind_equally_from_the_left_and_not_binds_tightest() {
    for dialect in [Dialect::Pcap, Dialect::Weir] {
        for (text, tree) in [
            ("tcp", "tcp"),
            ("tcp and udp or ip", "or(and(tcp, udp), ip)"),
            ("tcp or udp and ip", "and(or(tcp, udp), ip)"),
            ("tcp and udp and ip or arp or rarp", "or(and(tcp, udp, ip), arp, rarp)"),
            ("tcp or (udp and ip)", "or(tcp, and(udp, ip))"),
            ("not tcp and udp", "and(not(tcp), udp)"),
            ("not (tcp and udp)", "not(and(tcp, udp))"),
            ("not not tcp", "tcp"),
            ("! ! ! tcp", "not(tcp)"),
            ("((tcp))", "tcp"),
            ("tcp && udp || !ip", "or(and(tcp, udp), not(ip))"),
        ] {
            assert_eq!(shape(text, dialect), tree, "{text}");
        }
    }
}

#[test]
fn qualifiers_are_taken_over() {
    for dialect in [Dialect::Pcap, Dialect::Weir] {
        for (text, tree) in [
            ("tcp dst port 21 or 20 or 53", "or(tcp dst port 21, tcp dst port 20, tcp dst port 53)"),
            ("host 10.0.0.1 or 10.0.0.2", "or(host 10.0.0.1, host 10.0.0.2)"),
            ("not host 10.0.0.1 and 10.0.0.2", "and(not(host 10.0.0.1), host 10.0.0.2)"),
            ("port (80 or 443)", "or(port 80, port 443)"),
            ("port (not 80)", "not(port 80)"),
            ("port not 80", "not(port 80)"),
            ("not port not 80", "port 80"),
            ("port 80 and (udp) or 90", "or(and(port 80, udp), port 90)"),
            ("port 80 and (90 or 91)", "and(port 80, or(port 90, port 91))"),
            ("port 80 and (not (90 or 91) or 92)", "and(port 80, or(not(or(port 90, port 91)), port 92))"),
            ("port 80 and (len) = 3", "and(port 80, len = 3)"),
            ("port 80 and (1) = 3", "and(port 80, 1 = 3)"),
            ("port 80 and (1)", "and(port 80, port 1)"),
            ("src or dst host ::1 or ::2", "or(src or dst host ::1, src or dst host ::2)"),
        ] {
            assert_eq!(shape(text, dialect), tree, "{text}");
        }
    }
}

#[test]
fn ids_are_what_their_qualifiers_make_of_them() {
    for (text, tree) in [
        ("host 10.1", "net 10.1.0.0/16"),
        ("host 10", "host 0.0.0.10"),
        ("net 10", "net 10.0.0.0/8"),
        ("net 192.168", "net 192.168.0.0/16"),
        ("net 10.0.0.0 mask 255.0.255.0", "net 10.0.0.0 mask 255.0.255.0"),
        ("net 2001:db8::/32", "net 2001:db8::/32"),
        ("ether host 1-2-3-4-5-6", "ether host 01:02:03:04:05:06"),
        ("wlan src 0102.0304.0506", "ether src host 01:02:03:04:05:06"),
        ("decnet src 1.2", "decnet src host 1.2"),
        ("portrange 90-80", "portrange 80-90"),
        ("portrange 80", "portrange 80-80"),
        ("ip proto 6", "ip proto 0x6"),
        ("ether proto \\arp", "ether proto 0x806"),
        ("iso proto \\isis", "iso proto 0x83"),
        ("arp host localhost", "arp host 127.0.0.1"),
        ("host both", "(host 10.1.2.3 or host 2001:db8::1)"),
        ("ip6 host both", "ip6 host 2001:db8::1"),
        ("vlan (5)", "vlan 5"),
        ("tcp[tcpflags] & (tcp-syn|tcp-fin) != 0", "tcp[13] & (2 | 1) != 0"),
        ("ip[2:2] - 4 * 2 > 010", "ip[2:2] - (4 * 2) > 8"),
        ("-len + 1 = 2", "(-len) + 1 = 2"),
        ("type mgt subtype beacon", "type 0x00 subtype 0x80"),
        ("subtype qos-data", "type 0x08 subtype 0x80"),
        ("dir dstods", "dir 3"),
        ("llc rnr", "llc rnr"),
        ("vci (1 or 2)", "vci (1 or 2)"),
        ("hopc > 5", "hopc > 5"),
    ] {
        assert_eq!(shape(text, Dialect::Pcap), tree, "{text}");
        assert_eq!(shape(text, Dialect::Weir), tree, "{text}");
    }
}

#[test]
fn remainder_and_exclusive_or_have_ranks_in_one_dialect_alone() {
    for (text, pcap, weir) in [
        ("1 % 2 + 3 = 4", "1 % (2 + 3) = 4", "(1 % 2) + 3 = 4"),
        ("1 ^ 2 ^ 3 = 4", "1 ^ (2 ^ 3) = 4", "(1 ^ 2) ^ 3 = 4"),
        ("1 ^ 2 | 3 = 4", "1 ^ (2 | 3) = 4", "(1 ^ 2) | 3 = 4"),
        ("1 & 2 ^ 3 = 4", "1 & (2 ^ 3) = 4", "(1 & 2) ^ 3 = 4"),
        ("-1 % 2 = 4", "-(1 % 2) = 4", "(-1) % 2 = 4"),
    ] {
        assert_eq!(shape(text, Dialect::Pcap), pcap, "{text}");
        assert_eq!(shape(text, Dialect::Weir), weir, "{text}");
    }
}

#[test]
fn the_dialect_weir_has_sets_names_and_tunnels() {
    for (text, tree) in [
        ("host in {10.1.2.3, fe80::/10 10}", "host in {0.0.0.10, 10.1.2.3, fe80::/10}"),
        ("src net in {10,192.168}", "src host in {10.0.0.0/8, 192.168.0.0/16}"),
        ("not src host in @bad", "not(src host in @bad)"),
        ("host not in @bad", "not(host in @bad)"),
        ("dst host in @bad or in @bad", "or(dst host in @bad, dst host in @bad)"),
        ("tcp port in {443 80, 8000-8002}", "tcp port in {80, 443, 8000, 8001, 8002}"),
        ("port in {1-5, 3-7} or 9", "or(port in {1, 2, 3, 4, 5, 6, 7}, port 9)"),
        ("port in {1-1000}", "port in {1, 2, 3, 4, 5, 6, 7, 8, and 992 more}"),
        ("ether host in {02:00:00:00:00:01}", "ether host in {02:00:00:00:00:01}"),
        ("vlan in {1, 3} and ip", "and(vlan in {1, 3}, ip)"),
        ("inner(tcp and inner(udp)) or tunnel", "or(inner(and(tcp, inner(udp))), tunnel)"),
        ("let web = tcp port 80 or 443; not web and ip", "and(not(or(tcp port 80, tcp port 443)), ip)"),
        ("let a = tcp; let b = a and ip; b or a", "or(and(tcp, ip), tcp)"),
        ("let a = port 80; port 1 and a or 2", "or(and(port 1, port 80), port 2)"),
        ("let http = tcp port 80; port http", "tcp port 80"),
        ("tcp # the rest\n/* is\nmissing */ and ip", "and(tcp, ip)"),
        ("host \\localhost", "host 127.0.0.1"),
    ] {
        assert_eq!(shape(text, Dialect::Weir), tree, "{text}");
    }
    let ast = parsed("host in @bad and src host in @bad", Dialect::Weir, 1);
    let names: Vec<_> = ast.sets.iter().map(|set| set.name.as_ref().map(|name| name.text.as_str())).collect();
    assert_eq!(names, [Some("bad"), Some("bad")], "one set a family, whoever asks");
    assert!(matches!(&ast.sets[0].contents, Contents::Ipv4(members) if members.len() == 2));
    assert!(matches!(&ast.sets[1].contents, Contents::Ipv6(members) if members.len() == 1));
}

#[test]
fn terms_know_their_place() {
    for (text, places) in [
        ("tcp port 80 or not 443", vec!["tcp port 80", "443"]),
        ("port (80 or (81))", vec!["80", "(81)"]),
        ("(tcp[13] & 2 != 0) and vlan (5)", vec!["tcp[13] & 2 != 0", "vlan (5)"]),
        ("((len + 5) * 2) = 3", vec!["((len + 5) * 2) = 3"]),
        ("net 10.0.0.0/8 or 11.0.0.0 mask 255.0.0.0", vec!["net 10.0.0.0/8", "11.0.0.0 mask 255.0.0.0"]),
    ] {
        let ast = parsed(text, Dialect::Pcap, 1);
        let found: Vec<&str> = ast.terms.iter().map(|term| &text[term.span.clone()]).collect();
        assert_eq!(found, places);
    }
}

#[test]
fn a_term_in_the_language_again_is_the_same_term() {
    let entries = corpus::pcap().into_iter().chain(corpus::weir());
    for entry in entries {
        let ast = parsed(entry.text, Dialect::Weir, entry.link_type);
        for term in &ast.terms {
            let shown = ast.notation(&term.primitive).to_string();
            if matches!(&term.primitive, Primitive::Host { networks, .. } if networks.len() > 1)
                || shown.contains(" more}")
            {
                continue;
            }
            let again = parsed(&shown, Dialect::Weir, entry.link_type);
            assert_eq!(again.terms.len(), 1, "{} of {}", shown, entry.text);
            let again_shown = again.notation(&again.terms[0].primitive).to_string();
            assert_eq!(again_shown, shown, "{}", entry.text);
        }
    }
}

/// Where names of hosts have several addresses, one term becomes several.
fn has_names(ast: &Ast) -> bool {
    ast.terms
        .iter()
        .any(|term| matches!(&term.primitive, Primitive::Host { networks, .. } if networks.len() > 1))
}

/// Checks that an expression as it was understood is the same expression.
fn joined_is_the_same(text: &str, dialect: Dialect, link_type: u16) {
    let ast = parsed(text, dialect, link_type);
    let shown = format!("{:#}", ast.joined());
    let again = parsed(&shown, dialect, link_type);
    assert_eq!((&again.nodes, again.root), (&ast.nodes, ast.root), "{text}\n{shown}");
    assert!(
        again.terms.iter().zip(&ast.terms).all(|(again, term)| again.primitive == term.primitive),
        "{text}\n{shown}"
    );
    let contents = |ast: &Ast| ast.sets.iter().map(|set| set.contents.clone()).collect::<Vec<_>>();
    assert_eq!(contents(&again), contents(&ast), "{text}\n{shown}");
    assert_eq!(format!("{:#}", again.joined()), shown);
}

#[test]
fn an_expression_as_understood_has_all_parentheses() {
    for (text, shown) in [
        ("tcp port 80 or 443 and host 10.0.0.1", "(tcp port 80 or tcp port 443) and host 10.0.0.1"),
        ("tcp and udp or not (ip and arp)", "(tcp and udp) or not (ip and arp)"),
        ("tcp", "tcp"),
        ("", ""),
        ("inner(udp port 53 or 54) and not tcp", "inner(udp port 53 or udp port 54) and not tcp"),
        ("port in {1-9} or ip", "port in {1, 2, 3, 4, 5, 6, 7, 8, and 1 more} or ip"),
    ] {
        assert_eq!(parsed(text, Dialect::Weir, 1).joined().to_string(), shown, "{text}");
    }
    let deep = format!("{}tcp{}", "tcp and (udp or ".repeat(5000), ")".repeat(5000));
    joined_is_the_same(&deep, Dialect::Weir, 1);
    for entry in corpus::pcap().into_iter().chain(corpus::weir()) {
        if !has_names(&parsed(entry.text, Dialect::Weir, entry.link_type)) {
            joined_is_the_same(entry.text, Dialect::Weir, entry.link_type);
        }
    }
}

#[test]
fn random_expressions_as_understood_are_the_same() {
    static NAMES: LazyLock<Files> = LazyLock::new(Files::read);
    let mut tried = 0;
    for seed in 0..3000 {
        for (words, dialect) in
            [(Words::Pcap, Dialect::Pcap), (Words::Pcap, Dialect::Weir), (Words::Weir, Dialect::Weir)]
        {
            let text = expression(words, &mut Choices::seeded(seed));
            if parse(&text, &options(dialect, 1, &*NAMES)).is_ok() {
                joined_is_the_same(&text, dialect, 1);
                tried += 1;
            }
        }
    }
    assert!(tried > 5000, "{tried}");
}

#[test]
fn terms_are_told_in_english() {
    for (text, told) in [
        ("tcp port 80", "TCP segments whose source or destination port is 80"),
        ("udp src portrange 1-1023", "UDP datagrams whose source port is one of 1 to 1023"),
        ("port 53", "TCP, UDP and SCTP packets whose source or destination port is 53"),
        ("dst net 10.0.0.0/8", "IPv4, ARP and RARP packets whose destination address is in 10.0.0.0/8"),
        ("ip6 host ::1", "IPv6 packets whose source or destination address is ::1"),
        (
            "src and dst host 10.0.0.1",
            "IPv4, ARP and RARP packets whose source address is 10.0.0.1 and whose destination address is 10.0.0.1",
        ),
        ("ether dst 1:2:3:4:5:6", "frames whose destination MAC address is 01:02:03:04:05:06"),
        (
            "host in @bad",
            "IPv4, ARP, RARP and IPv6 packets whose source or destination address is in the set @bad (3 members)",
        ),
        (
            "port in {80}",
            "TCP, UDP and SCTP packets whose source or destination port is in a set of 1 member",
        ),
        ("tcp[13] & 2 != 0", "packets for which tcp[13] & 2 != 0"),
        ("vlan 5", "frames tagged with VLAN 5"),
        ("ether proto 0x88cc", "frames with EtherType 0x88cc"),
        ("ip proto 47", "IPv4 packets that carry protocol 47"),
        ("mpls 100", "MPLS packets with the label 100"),
        ("tunnel", "packets that carry another packet in a tunnel"),
        ("arp", "ARP packets"),
    ] {
        let ast = parsed(text, Dialect::Weir, 1);
        assert_eq!(ast.explain(&ast.terms[0]), told, "{text}");
    }
}

#[test]
fn a_tree_of_any_depth_can_be_printed() {
    let text = format!("{}tcp{}", "tcp and (udp or ".repeat(5000), ")".repeat(5000));
    let ast = parsed(&text, Dialect::Weir, 1);
    assert_eq!(ast.to_string().lines().count(), 20_001);
    let text = format!("{}1 = 1", "-".repeat(10_000));
    let ast = parsed(&text, Dialect::Weir, 1);
    assert!(ast.to_string().len() > 30_000);
}
