//! What a wrong expression is told.

mod common;

use std::sync::LazyLock;

use common::{Files, options};
use proptest::prelude::*;
use weir_filter::parse::parse;
use weir_filter::{Dialect, Error};

/// What people read of `text`, which is wrong.
fn told(text: &str, dialect: Dialect) -> String {
    static NAMES: LazyLock<Files> = LazyLock::new(Files::read);
    let error = parse(text, &options(dialect, 1, &*NAMES)).expect_err("the expression is wrong");
    error.render(text)
}

fn weir(text: &str) -> String {
    told(text, Dialect::Weir)
}

#[test]
fn the_place_is_marked_and_the_nearest_word_named() {
    assert_eq!(
        weir("tcp prot 80"),
        "expected `and`, `or` or the end, not `prot`\n  tcp prot 80\n      ^^^^\ndid you mean `port`?"
    );
    assert_eq!(
        weir("hots 10.1.2.3"),
        "expected a term, not `hots`\n  hots 10.1.2.3\n  ^^^^\ndid you mean `host`?"
    );
    assert_eq!(
        weir("let web = tcp port 80; wbe and tcp"),
        "expected a term, not `wbe`\n  let web = tcp port 80; wbe and tcp\n                         ^^^\ndid you mean `web`?"
    );
    assert_eq!(weir("tcp and"), "expected a term, but the text ends here\n  tcp and\n         ^");
}

#[test]
fn a_line_of_several_is_shown_alone() {
    assert_eq!(
        weir("tcp\n\tand prot 80 # the web\nor udp\n"),
        "expected a term, not `prot` (line 2)\n   and prot 80 # the web\n       ^^^^\ndid you mean `port`?"
    );
    assert_eq!(
        weir("tcp and # what?\n\n"),
        "expected a term, but the text ends here\n  tcp and # what?\n                 ^"
    );
}

#[test]
fn of_a_long_line_a_part_is_shown() {
    let text = format!("{}prot 80{}", "tcp or ".repeat(100), " or udp".repeat(100));
    let shown = weir(&text);
    let lines: Vec<&str> = shown.lines().collect();
    assert!(lines[1].starts_with("  ...") && lines[1].ends_with("...") && lines[1].len() < 120, "{shown}");
    let mark = lines[2].find('^').expect("a place is marked");
    assert_eq!(&lines[1][mark..mark + 4], "prot", "{shown}");
}

#[test]
fn each_mistake_has_its_words() {
    for (text, said) in [
        ("10.1.2.3", "`host 10.1.2.3` is a host"),
        ("80", "`port 80` is a port"),
        ("02:00:00:00:00:01", "`ether host 02:00:00:00:00:01`"),
        ("tcp 80", "expected `port`, `proto` or `host` after `tcp`"),
        ("ip 10.1.2.3", "write `ip host 10.1.2.3`"),
        ("tcp.port == 80", "Wireshark"),
        ("len-14 > 4", "write blanks around `-`"),
        ("ip[2-1] = 1", "write blanks around `-`"),
        ("tcp[tcpflags] & tcp-sny != 0", "did you mean `tcp-syn`?"),
        ("port 70000", "port 70000 exceeds the maximum, 65535"),
        ("port nosuchservice", "unknown port `nosuchservice`"),
        ("tcp port htp", "did you mean `http`?"),
        ("port 80-90", "`portrange 80-90`"),
        ("host nosuchhost", "unknown host `nosuchhost`"),
        ("net nosuchnet", "unknown network `nosuchnet`"),
        ("ip proto tcp", "write `\\tcp`"),
        ("ip proto \\nosuch", "unknown protocol `nosuch`"),
        ("ether proto \\ipp", "did you mean `\\ip`?"),
        ("host 10.1.2.300", "`10.1.2.300` is not a valid IPv4 address"),
        ("net 10.1.2.3/8", "the network is `10.0.0.0/8`"),
        ("net 10.0.0.1 mask 255.0.0.0", "the network is `10.0.0.0 mask 255.0.0.0`"),
        ("net 10/8", "`net 10.0.0.0/8`"),
        ("net 10.0.0.0/33", "an IPv4 address has 32 bits"),
        ("net ::/129", "an IPv6 address has 128 bits"),
        ("net fe80::1/10", "set beyond the prefix"),
        ("host 10.0.0.0/8", "write `net` before it"),
        ("vlan 4096", "a VLAN ID cannot exceed 4095"),
        ("mpls 1048576", "an MPLS label cannot exceed 1048575"),
        ("pppoes 65536", "a PPPoE session ID cannot exceed 65535"),
        ("geneve 16777216", "a Geneve VNI cannot exceed 16777215"),
        ("vxlan 16777216", "a VXLAN VNI cannot exceed 16777215"),
        ("ip[0:3] = 1", "1, 2 or 4 bytes"),
        ("ah[0] = 1", "bytes of `ah` cannot be accessed"),
        ("1 / 0 = 1", "division by zero"),
        ("1 % (0) = 1", "division by zero"),
        ("1 << 32 = 1", "shift by more than 31 bits"),
        ("(tcp", "unclosed parenthesis"),
        ("tcp)", "unmatched `)`"),
        ("tcp[13", "unclosed bracket"),
        ("tcp port 80 and tcp[13]", "expected a comparison"),
        ("type mgt subtype becon", "did you mean `beacon`?"),
        ("type dta", "did you mean `data`?"),
        ("llc sabm", "did you mean `sabme`?"),
        ("action pass", "pf"),
        ("ether", "`ether` is not a term by itself"),
        ("icmp port 5", "only `tcp`, `udp` and `sctp` have ports"),
        ("tcp host 10.1.2.3", "join a protocol and a host with `and`"),
        ("host 1:2:3:4:5:6", "write `ether host`"),
        ("08 = 8", "octal"),
        ("4294967296 = 1", "32 bits"),
        ("host in {10.0.0.1", "unclosed set"),
        ("host in {10.0.0.1, 10.0.0.300}", "`10.0.0.300` is not an address"),
        ("net in {10.1.0.0/8}", "set beyond the prefix"),
        ("port in {80, 70000}", "ports are numbered up to 65535"),
        ("vlan in {1-5000}", "VLANs are numbered up to 4095"),
        ("ether host in {10.0.0.1}", "`10.0.0.1` is neither a MAC address"),
        ("host in @nosuch", "no file for the set `@nosuch`"),
        ("host in @broken", "line 3 of `@broken`: `10.0.0.300` is not an address"),
        ("proto in {6}", "sets can only follow"),
        ("let tcp = udp; tcp", "expected a name that is not a keyword"),
        ("let a = tcp; let a = udp; a", "`a` is already defined"),
        ("let a = tcp", "expected `;`"),
        ("let a = tcp;", "expected a term"),
        ("tcp; udp", "`;` is allowed only after a `let` definition"),
        ("tcp /* udp", "unclosed comment"),
        ("inner tcp", "expected `(`"),
    ] {
        let told = weir(text);
        assert!(told.contains(said), "{text}: {told}");
    }
    let told = told("1 / (0 + 3) = 1", Dialect::Pcap);
    assert!(told.contains("libpcap takes the first number"), "{told}");
}

proptest! {
    #[test]
    fn any_place_of_any_text_can_be_marked(text in "[\\PC\n\t\r]{0,300}", start in 0_usize..1000, length in 0_usize..1000) {
        let error = Error::new("wrong", start..start + length);
        let shown = error.render(&text);
        let lines: Vec<&str> = shown.split('\n').collect();
        prop_assert_eq!(lines.len(), 3);
        prop_assert!(lines[2].contains('^'));
        prop_assert!(lines.iter().all(|line| line.chars().count() <= 120));
    }
}
