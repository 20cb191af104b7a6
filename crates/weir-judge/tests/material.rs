//! The expressions of the corpus are valid, and the packets tell them apart.

use std::collections::{BTreeMap, BTreeSet};

use weir_judge::expressions::{self, Words};
use weir_judge::{Choices, Libpcap, Setup, corpus, packets};

/// Expressions with the same result for every packet, by design or because of libpcap.
const CONSTANT: [(u16, &str); 16] = [
    (1, "tcp and udp"),
    (1, "5 = 5"),
    (1, "1 = 2"),
    (1, "(1 + 2) * 3 = 9"),
    (1, "0 / 5 = 0"),
    (1, "greater 0"),
    (1, "less 0"),
    (1, "ip[1500] = 1"),
    (1, "ether proto 1500"),
    (1, "byte 0 & 1"),
    (1, "byte 0 | 1"),
    (8, "tcp port 80"),
    (100, "llc"),
    (104, "isis"),
    (107, "tcp port 80"),
    (114, "atalk"),
];

#[test]
fn libpcap_takes_every_expression_and_packets_tell_them_apart() {
    let libpcap = Libpcap::open().unwrap();
    let entries = corpus::pcap();
    assert!(entries.len() >= 500, "{}", entries.len());
    let mut fixed = BTreeMap::new();
    let mut same = Vec::new();
    for entry in &entries {
        let program = libpcap.compile(entry.text, &Setup::new(entry.link_type));
        let program = program.unwrap_or_else(|error| panic!("{}: {error}", entry.text));
        if program.may_loop() {
            continue;
        }
        let packets = fixed.entry(entry.link_type).or_insert_with(|| packets::fixed(entry.link_type, 10_000));
        let answers = packets.iter().map(|packet| libpcap.run(&program, packet.length, &packet.data) != 0);
        if answers.collect::<BTreeSet<_>>().len() < 2 && !CONSTANT.contains(&(entry.link_type, entry.text)) {
            same.push(*entry);
        }
    }
    assert!(same.is_empty(), "every packet gets the same answer from {same:#?}");
}

#[test]
fn no_expression_is_there_twice() {
    let entries: Vec<_> = corpus::pcap().into_iter().chain(corpus::weir()).collect();
    let mut seen = BTreeSet::new();
    for entry in entries {
        assert!(seen.insert((entry.link_type, entry.text)), "{entry:?}");
    }
}

#[test]
fn packets_are_a_function_of_their_choices() {
    assert_eq!(packets::fixed(1, 100), packets::fixed(1, 100));
    let plain = packets::packet(1, &mut Choices::of(&[]));
    assert_eq!(plain.data[12..15], [0x08, 0x00, 0x45], "without choices it is the plainest: IPv4");
    assert_eq!(plain.data[23], 6, "and TCP");
}

#[test]
fn most_expressions_made_at_random_are_valid() {
    let libpcap = Libpcap::open().unwrap();
    let made = (0..1000).map(|seed| expressions::expression(Words::Pcap, &mut Choices::seeded(seed)));
    let valid = made.filter(|text| libpcap.compile(text, &Setup::new(1)).is_ok()).count();
    assert!((700..1000).contains(&valid), "{valid} of 1000");
}
