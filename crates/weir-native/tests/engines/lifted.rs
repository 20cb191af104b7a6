//! What libpcap's compiler makes of the corpus, run by every machine: libpcap itself knows the verdict.

use std::collections::HashMap;

use weir_filter::cbpf::{LiftError, Rules};
use weir_judge::ebpf::can_load;
use weir_judge::packets::{self, Captured};
use weir_judge::{Engines, Kernel, Libpcap, Setup, corpus};

/// Packets for each expression, of each link type the same.
const PACKETS: u64 = 60;

fn each_engine_agrees(optimise: bool, kernel: Kernel) {
    let libpcap = Libpcap::open().expect("libpcap");
    let mut packets: HashMap<u16, Vec<Captured>> = HashMap::new();
    let (mut asked, mut wrap) = (0, 0);
    for entry in corpus::pcap() {
        let setup = Setup { optimise, ..Setup::new(entry.link_type) };
        // The optimiser refuses what can never match.
        let Ok(theirs) = libpcap.compile(entry.text, &setup) else { continue };
        if theirs.may_loop() {
            continue;
        }
        let graph = match theirs.classic().lift(Rules::Library) {
            Ok(graph) => graph,
            // Such as `ether[len - 20]`: a graph would find something in short packets.
            Err(LiftError::Wraps { .. }) => {
                wrap += 1;
                continue;
            }
            Err(error) => panic!("{entry:?}: what libpcap makes can be lifted: {error}"),
        };
        let engines = Engines::new(&graph, &[], kernel);
        for packet in
            packets.entry(entry.link_type).or_insert_with(|| packets::fixed(entry.link_type, PACKETS))
        {
            let judged = libpcap.run(&theirs, packet.length, &packet.data) != 0;
            match engines.verdict(&packet.seen()) {
                Ok(verdict) => assert_eq!(verdict, judged, "{entry:?} on {packet:02x?}"),
                Err(report) => panic!("{entry:?}: {report}"),
            }
            asked += 1;
        }
    }
    assert!(asked > 10_000 && wrap * PACKETS < asked / 10, "{asked}, {wrap}");
}

#[test]
fn unoptimised_programs_of_libpcap() {
    each_engine_agrees(false, Kernel::Classic);
}

#[test]
fn optimised_programs_of_libpcap() {
    each_engine_agrees(true, Kernel::Classic);
}

#[test]
fn root_programs_of_libpcap_as_ebpf() {
    if can_load("root_programs_of_libpcap_as_ebpf") {
        each_engine_agrees(false, Kernel::Full);
    }
}
