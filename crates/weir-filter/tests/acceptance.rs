//! What is accepted and what refused: libpcap judges the dialect `pcap`.

mod common;

use common::{Files, options};
use proptest::prelude::*;
use weir_filter::{Dialect, compile, parse};
use weir_judge::corpus::{self, Entry};
use weir_judge::{Libpcap, Setup, share};

/// Expressions that libpcap 1.10.3 takes for Ethernet.
const VALID: &str = include_str!("expressions/valid.txt");

/// Expressions that it refuses.
const INVALID: &str = include_str!("expressions/invalid.txt");

/// What the dialect `weir` refuses all the same: libpcap takes no notice of a part of it.
const REFUSED: [&str; 5] = [
    "decnet host 1.2.3",
    "decnet host 64.1024",
    "decnet net 10.0.0.0/8",
    "portrange 80-90x",
    "portrange 1-2-3",
];

fn lines(text: &'static str) -> Vec<Entry> {
    let lines = text.lines().filter(|line| !line.is_empty());
    lines.map(|text| Entry { link_type: 1, text }).collect()
}

/// Whether libpcap takes an expression.
fn judge(libpcap: &Libpcap, link_type: u16, text: &str) -> Result<(), String> {
    let setup = Setup { netmask: Some(0xffff_ff00), ..Setup::new(link_type) };
    libpcap.compile(text, &setup).map(|_| ())
}

/// Where libpcap and we disagree on expressions and link types, in words.
fn disagreements(libpcap: &Libpcap, entries: &[(u16, &str)]) -> Vec<String> {
    let names = Files::read();
    let mut found = Vec::new();
    for &(link_type, text) in entries {
        let ours = compile(text, &options(Dialect::Pcap, link_type, &names));
        let theirs = judge(libpcap, link_type, text);
        if theirs.is_ok() != ours.is_ok() {
            let ours = ours.map(|_| ()).map_err(|error| error.to_string());
            found.push(format!("{text:?} on {link_type}: libpcap {theirs:?}, we {ours:?}"));
        }
    }
    found
}

#[test]
fn the_same_is_accepted_and_refused_as_by_libpcap() {
    let libpcap = Libpcap::open().expect("libpcap is installed");
    let (valid, invalid) = (lines(VALID), lines(INVALID));
    assert!(valid.len() >= 300 && invalid.len() >= 200, "{} and {}", valid.len(), invalid.len());
    let entries: Vec<Entry> = valid.iter().chain(&invalid).copied().chain(corpus::pcap()).collect();
    let entries: Vec<_> = entries.iter().map(|entry| (entry.link_type, entry.text)).collect();
    let found = disagreements(&libpcap, &entries);
    assert!(found.is_empty(), "{}:\n{}", found.len(), found.join("\n"));
    let wrong = |entry: &&Entry| judge(&libpcap, 1, entry.text).is_ok();
    assert_eq!(invalid.iter().find(wrong), None, "libpcap takes what the list says it refuses");
    assert_eq!(valid.iter().find(|entry| !wrong(entry)), None, "libpcap refuses what the list says it takes");
}

#[test]
fn truncations_are_accepted_and_refused_as_by_libpcap() {
    let libpcap = Libpcap::open().expect("libpcap is installed");
    let entries = lines(VALID).into_iter().chain(corpus::pcap());
    let cut = |entry: Entry| (0..entry.text.len()).map(move |end| (entry.link_type, &entry.text[..end]));
    let mut cuts: Vec<(u16, &str)> = entries.flat_map(cut).collect();
    cuts.sort_unstable();
    cuts.dedup();
    let cuts = share(8, cuts);
    let found = disagreements(&libpcap, &cuts);
    assert!(found.is_empty(), "{}:\n{}", found.len(), found.join("\n"));
}

#[test]
fn the_dialect_weir_accepts_what_libpcap_does() {
    let names = Files::read();
    for entry in lines(VALID).into_iter().chain(corpus::pcap()).chain(corpus::weir()) {
        let options = options(Dialect::Weir, entry.link_type, &names);
        let parsed = parse::parse(entry.text, &options);
        let refused = REFUSED.contains(&entry.text);
        assert_eq!(parsed.is_err(), refused, "{}: {:?}", entry.text, parsed.err());
    }
}

/// What a word of an expression is exchanged with.
const WORDS: &[&str] = &[
    "tcp",
    "ip",
    "ip6",
    "arp",
    "icmp",
    "iso",
    "isis",
    "decnet",
    "radio",
    "ether",
    "port",
    "host",
    "net",
    "portrange",
    "proto",
    "protochain",
    "gateway",
    "src",
    "dst",
    "addr1",
    "ra",
    "and",
    "or",
    "not",
    "(",
    ")",
    "((",
    "))",
    "[",
    "]",
    "=",
    "!=",
    "<",
    ">=",
    "+",
    "-",
    "*",
    "/",
    "%",
    "&",
    "|",
    "^",
    "<<",
    ":",
    "80",
    "0",
    "4",
    "10.0.0.1",
    "10.0.0.0/8",
    "10.1",
    "::1",
    "fe80::/10",
    "1:2:3:4:5:6",
    "$ab",
    "vlan",
    "vlan 5",
    "mpls",
    "pppoes",
    "geneve",
    "len",
    "mask",
    "255.0.0.0",
    "broadcast",
    "multicast",
    "llc",
    "rnr",
    "ui",
    "type",
    "subtype",
    "dir",
    "data",
    "mgt",
    "beacon",
    "vci",
    "opc",
    "fisu",
    "byte",
    "less",
    "greater",
    "inbound",
    "http",
    "domain",
    "80-90",
    "http-domain",
    "localhost",
    "loopback",
    "\\tcp",
    "\\ip",
    "\\isis",
    "tcp-syn",
    "tcpflags",
    "action",
    "reason",
    "on",
    "in",
    "tunnel",
    "tcp[13]",
    "ip[0]",
    "(80)",
    "(len)",
    "not (",
    "and (",
    "or 80",
    "and 10.0.0.1",
    "/ 0",
    "",
    "",
    "",
    "",
];

/// Valid expressions in which words were exchanged, left out or put in.
fn mutated() -> impl Strategy<Value = (u16, String)> {
    let entries: Vec<Entry> = lines(VALID).into_iter().chain(corpus::pcap()).collect();
    let mistake = (any::<prop::sample::Index>(), any::<bool>(), prop::sample::select(WORDS));
    (prop::sample::select(entries), prop::collection::vec(mistake, 1..4)).prop_map(|(entry, mistakes)| {
        let spaced: String = entry
            .text
            .chars()
            .map(|letter| match letter {
                '(' | ')' | '[' | ']' => format!(" {letter} "),
                _ => letter.to_string(),
            })
            .collect();
        let mut words: Vec<&str> = spaced.split_whitespace().collect();
        for (index, put_in, word) in mistakes {
            let at = index.index(words.len());
            words.splice(at..at + usize::from(!put_in), [word]);
        }
        (entry.link_type, words.join(" "))
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(share::cases(128)))]

    #[test]
    fn mistakes_are_accepted_and_refused_as_by_libpcap(entries in prop::collection::vec(mutated(), 10)) {
        let libpcap = Libpcap::open().expect("libpcap is installed");
        let entries: Vec<(u16, &str)> = entries.iter().map(|(link_type, text)| (*link_type, text.as_str())).collect();
        let found = disagreements(&libpcap, &entries);
        prop_assert!(found.is_empty(), "{}", found.join("\n"));
    }
}
