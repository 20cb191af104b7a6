//! The dialect `pcap` means what libpcap's unoptimised code does; and every machine answers the same.

use std::collections::{BTreeSet, HashMap};
use std::net::IpAddr;

use proptest::prelude::*;
use weir_filter::cbpf::{self, Instruction};
use weir_filter::interpret::{Interpreter, Packet};
use weir_filter::names::{Names, NoNames, Service};
use weir_filter::{Dialect, Error, Filter, Options};
use weir_judge::expressions::{self, Words};
use weir_judge::packets::{self, Captured};
use weir_judge::{Choices, Libpcap, Program, Setup, corpus};

use crate::engines::{Engines, can_load};

/// Packets for each expression of the corpus.
const PACKETS: u64 = 300;

/// Knows the protocols of the corpus, as every system does.
#[derive(Debug)]
struct Protocols;

impl Names for Protocols {
    fn host(&self, name: &str) -> Vec<IpAddr> {
        NoNames.host(name)
    }

    fn network(&self, name: &str) -> Option<u32> {
        NoNames.network(name)
    }

    fn ethernet(&self, name: &str) -> Option<[u8; 6]> {
        NoNames.ethernet(name)
    }

    fn service(&self, name: &str) -> Service {
        NoNames.service(name)
    }

    fn protocol(&self, name: &str) -> Option<u8> {
        [("icmp", 1), ("tcp", 6), ("udp", 17), ("sctp", 132)]
            .into_iter()
            .find_map(|(n, number)| (n == name).then_some(number))
    }

    fn set(&self, name: &str) -> Result<String, String> {
        NoNames.set(name)
    }
}

pub(crate) fn compile(text: &str, dialect: Dialect, link_type: u16) -> Result<Filter, Error> {
    let options = Options {
        dialect,
        link_type,
        snap_len: 262_144,
        metadata: false,
        swapped: false,
        netmask: None,
        names: &Protocols,
    };
    weir_filter::compile(text, &options)
}

/// libpcap's answer. A program with a loop might never end, so it is run here, and refuses the packet where it walks in a
/// circle.
fn judged(libpcap: &Libpcap, program: &Program, packet: &Captured) -> bool {
    if !program.may_loop() {
        return libpcap.run(program, packet.length, &packet.data) != 0;
    }
    let instructions = program.instructions().into_iter();
    let instructions = instructions.map(|(code, jt, jf, k)| Instruction { code, jt, jf, k }).collect();
    let seen = Packet { data: &packet.data, length: packet.length, ..Packet::default() };
    cbpf::Program { instructions }.run(&seen) != 0
}

/// What libpcap and weir think otherwise of, and why weir is right.
const KNOWN: [(&str, &str); 2] = [
    ("byte 0 & 1", "libpcap forgets to load the byte, and takes what its register holds: 0 at the beginning"),
    ("byte 0 | 1", "the same"),
];

#[test]
fn the_corpus_means_what_libpcap_says() {
    let libpcap = Libpcap::open().expect("libpcap");
    let mut packets: HashMap<u16, Vec<Captured>> = HashMap::new();
    let mut wrong = Vec::new();
    let known = |text| KNOWN.iter().any(|(known, _)| *known == text);
    for entry in corpus::pcap().into_iter().filter(|entry| !known(entry.text)) {
        let theirs = libpcap.compile(entry.text, &Setup::new(entry.link_type)).expect("the corpus is valid");
        let ours = match compile(entry.text, Dialect::Pcap, entry.link_type) {
            Ok(ours) => ours,
            Err(error) => {
                wrong.push(format!("{entry:?} is refused: {error}"));
                continue;
            }
        };
        let interpreter = Interpreter::new(&ours.lowered, &ours.ast.sets);
        for packet in
            packets.entry(entry.link_type).or_insert_with(|| packets::fixed(entry.link_type, PACKETS))
        {
            let seen = Packet { data: &packet.data, length: packet.length, ..Packet::default() };
            let verdict = interpreter.run(&seen) != 0;
            if judged(&libpcap, &theirs, packet) != verdict {
                wrong.push(format!("{entry:?}: {verdict} for {packet:02x?}"));
                break;
            }
        }
    }
    assert!(wrong.is_empty(), "{} wrong:\n{}", wrong.len(), wrong.join("\n"));
}

fn on_every_engine(dialect: Dialect, load: bool) {
    let mut packets: HashMap<u16, Vec<Captured>> = HashMap::new();
    let only_weir = if dialect == Dialect::Weir { corpus::weir() } else { Vec::new() };
    let mut compiled = 0;
    for entry in corpus::pcap().into_iter().chain(only_weir) {
        // What a dialect leaves out it refuses; how much that may be is the business of the dialect's own tests.
        let Ok(filter) = compile(entry.text, dialect, entry.link_type) else { continue };
        compiled += 1;
        let engines = Engines::new(&filter.lowered, &filter.ast.sets, load);
        for packet in packets.entry(entry.link_type).or_insert_with(|| packets::fixed(entry.link_type, 60)) {
            if let Err(report) = engines.verdict(packet) {
                panic!("{entry:?}: {report}");
            }
        }
    }
    assert!(compiled > 500, "{compiled}");
}

#[test]
fn every_engine_agrees_on_the_dialect_pcap() {
    on_every_engine(Dialect::Pcap, false);
}

#[test]
fn root_ebpf_agrees_on_the_dialect_pcap() {
    if can_load("root_ebpf_agrees_on_the_dialect_pcap") {
        on_every_engine(Dialect::Pcap, true);
    }
}

#[test]
fn every_engine_agrees_on_the_dialect_weir() {
    on_every_engine(Dialect::Weir, false);
}

#[test]
fn root_ebpf_agrees_on_the_dialect_weir() {
    if can_load("root_ebpf_agrees_on_the_dialect_weir") {
        on_every_engine(Dialect::Weir, true);
    }
}

#[test]
fn each_beginning_of_an_expression_is_an_error_or_a_program() {
    let mut beginnings = BTreeSet::new();
    for entry in corpus::pcap().into_iter().chain(corpus::weir()) {
        let ends = entry.text.char_indices().map(|(end, _)| end);
        beginnings.extend(ends.map(|end| (entry.link_type, &entry.text[..end])));
    }
    let packet = packets::fixed(1, 1).swap_remove(0);
    let seen = Packet { data: &packet.data, length: packet.length, ..Packet::default() };
    let (mut programs, mut errors) = (0, 0);
    for (link_type, text) in beginnings {
        for dialect in [Dialect::Pcap, Dialect::Weir] {
            match compile(text, dialect, link_type) {
                Ok(filter) => {
                    Interpreter::new(&filter.graph, &filter.ast.sets).run(&seen);
                    programs += 1;
                }
                Err(error) => {
                    assert!(
                        error.span.end <= text.len() && error.span.start <= error.span.end,
                        "{text}: {error:?}"
                    );
                    errors += 1;
                }
            }
        }
    }
    assert!(programs > 1000 && errors > 1000, "{programs} programs, {errors} errors");
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 400, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn expressions_made_at_random_mean_what_libpcap_says(
        words in prop::collection::vec(any::<u8>(), 0..60),
        seeds in prop::collection::vec(prop::collection::vec(any::<u8>(), 0..120), 1..12),
    ) {
        let libpcap = Libpcap::open().expect("libpcap");
        let text = expressions::expression(Words::Pcap, &mut Choices::of(&words));
        let theirs = libpcap.compile(&text, &Setup::new(1));
        let ours = compile(&text, Dialect::Pcap, 1);
        prop_assert_eq!(theirs.is_ok(), ours.is_ok(), "{}: {:?}, {:?}", text, theirs.err(), ours.err());
        if let (Ok(theirs), Ok(ours)) = (theirs, ours) {
            let engines = Engines::new(&ours.lowered, &ours.ast.sets, false);
            for seed in &seeds {
                let packet = packets::packet(1, &mut Choices::of(seed));
                let verdict = engines.verdict(&packet).map_err(TestCaseError::fail)?;
                let judged = judged(&libpcap, &theirs, &packet);
                prop_assert_eq!(verdict, judged, "{} for {:02x?}", text, packet);
            }
        }
    }

    #[test]
    fn every_engine_agrees_on_expressions_made_at_random(
        words in prop::collection::vec(any::<u8>(), 0..60),
        seeds in prop::collection::vec(prop::collection::vec(any::<u8>(), 0..120), 1..12),
    ) {
        let text = expressions::expression(Words::Weir, &mut Choices::of(&words));
        if let Ok(ours) = compile(&text, Dialect::Weir, 1) {
            let engines = Engines::new(&ours.lowered, &ours.ast.sets, false);
            for seed in &seeds {
                let packet = packets::packet(1, &mut Choices::of(seed));
                engines.verdict(&packet).map_err(|report| TestCaseError::fail(format!("{text}: {report}")))?;
            }
        }
    }
}
