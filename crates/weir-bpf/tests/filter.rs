//! Filters in the kernel: whatever the graph, the verifier takes its program, and each kind of program answers as the
//! interpreter does.

use std::os::fd::{AsFd as _, AsRawFd};

use proptest::prelude::*;
use weir_bpf::filter::{Changed, Gate, Hook, Refusals, SetChange, SetMap, SocketFilter};
use weir_bpf::loader::Loader;
use weir_filter::emit::ebpf::Context;
use weir_filter::graph::{Graph, Meta, NodeId, Operation, Relation, TermId, Value, Verdict, Width};
use weir_filter::interpret::{Interpreter, Packet, VlanTag};
use weir_filter::names::NoNames;
use weir_filter::set::{Contents, Holds, Member, Set, SetId, SetName};
use weir_filter::{Beside, Dialect, Options};
use weir_judge::ebpf::{self, CONTEXTS};
use weir_judge::graphs::{Dice, bytes, graph_of, metadata, sets};
use weir_judge::{corpus, share};
use weir_lab::programs::bare::{Bare, Decision};
use weir_sys::bpf::map::{Map, MapKind};
use weir_sys::testrun;

/// Programs take privileges that tests may run without; the environment says whether that is in order.
fn permitted() -> bool {
    let Err(error) = Map::new(MapKind::Array, 4, 8, 1) else { return true };
    weir_skip::this_test(error);
    false
}

/// A program that says yes or no, and the maps that it looks into.
struct Loaded {
    program: ebpf::Loaded,
    sets: Vec<SetMap>,
}

impl Loaded {
    fn new(graph: &Graph, sets: &[Set], context: Context) -> Self {
        let maps: Vec<SetMap> = sets.iter().map(|set| SetMap::new(set).unwrap()).collect();
        let program = ebpf::Loaded::new(graph, sets, context, |set| maps[set.0 as usize].as_raw_fd());
        let program = program.unwrap_or_else(|error| panic!("{context:?}: {error}"));
        Self { program, sets: maps }
    }

    fn context(&self) -> Context {
        self.program.context
    }

    fn accepts(&self, data: &[u8]) -> bool {
        self.program.accepts(data, None).expect("the kernel takes the packet")
    }
}

/// Compares all kinds of programs with the interpreter; how often the packet was refused, and not.
fn agree(seed: u64, nodes: usize, packets: usize, verdicts: u16) -> (u32, u32) {
    let mut dice = Dice::new(seed);
    let sets = sets(&mut dice);
    let graph = graph_of(Dice::new(seed ^ 0x5555), &sets, nodes, verdicts);
    let interpreter = Interpreter::new(&graph, &sets);
    let loaded = CONTEXTS.map(|context| Loaded::new(&graph, &sets, context));
    let mut answers = (0, 0);
    for _ in 0..packets {
        let whole = bytes(&mut dice);
        for end in (14..=whole.len()).step_by(1 + dice.below(5)) {
            let data = &whole[..end];
            let tag = metadata(&mut dice).vlan;
            for Loaded { program, .. } in &loaded {
                let Some(found) = program.verdict(data, tag) else { continue };
                let length = u32::try_from(end).unwrap();
                let packet = Packet { data, length, meta: program.metadata(data, tag) };
                let expected = interpreter.verdict(&packet);
                assert_eq!(found, expected, "seed {seed}, {:?}, {packet:?}\n{graph}", program.context);
                if expected == Verdict::REFUSE { answers.0 += 1 } else { answers.1 += 1 }
            }
        }
    }
    answers
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(share::cases(48)))]

    #[test]
    fn programs_are_taken_and_answer_as_the_interpreter(
        seed in any::<u64>(), nodes in 1..80_usize, verdicts in prop_oneof![Just(2), 3..=8_u16],
    ) {
        if permitted() {
            agree(seed, nodes, 3, verdicts);
        }
    }
}

#[test]
fn random_graphs_say_yes_and_no() {
    if !permitted() {
        return;
    }
    let all = (0..60).map(|seed| agree(seed * 77, 30, 4, 2));
    let (no, yes) = all.fold((0, 0), |all, one| (all.0 + one.0, all.1 + one.1));
    assert!(no > 1000 && yes > 500, "{no} {yes}");
}

/// One question: whether the two bytes at `base + 5` are `number`, `base` being the byte at 14 shifted left by eight bits.
fn far(number: u32) -> Graph {
    let mut graph = Graph::new(1);
    let byte = graph.load(None, 14, Width::Byte);
    let base = graph.with(Operation::ShiftLeft, byte, 8);
    let load = graph.load(Some(base), 5, Width::Half);
    let root = graph.equals(load, number, (Graph::ACCEPT, Graph::REFUSE), TermId(0));
    graph.set_root(root);
    graph
}

#[test]
fn bytes_behind_the_first_buffer_are_found() {
    if !permitted() {
        return;
    }
    let mut packet: Vec<u8> = (0..9000_u32).map(|index| u8::try_from(index * 7 % 251).unwrap()).collect();
    for page in [1_u8, 16, 17, 30, 35, 36, 200] {
        packet[14] = page;
        let at = usize::from(page) * 256 + 5;
        let there = packet.get(at..at + 2).map(|bytes| u32::from(bytes[0]) << 8 | u32::from(bytes[1]));
        let graph = far(there.unwrap_or(0));
        let xdp = Loaded::new(&graph, &[], Context::Xdp { fragments: true, interface: None });
        assert_eq!(xdp.accepts(&packet), there.is_some(), "{page}");
    }
}

/// A chain of questions of which none is true but one; `near`: all about bytes at fixed places.
fn chain(questions: u32, true_at: u32, near: bool) -> Graph {
    let mut graph = Graph::new(1);
    let mut node = Graph::REFUSE;
    for index in (0..questions).rev() {
        let place = graph.load(None, 20 + index % 40, Width::Byte);
        let base = graph.with(Operation::And, place, 1);
        let base = if near { None } else { Some(base) };
        let value = graph.load(base, 14 + index % 3, Width::Half);
        let number = if index == true_at { 0x0101 } else { 0x1_0000 + index };
        node = graph.equals(value, number, (Graph::ACCEPT, node), TermId(0));
    }
    graph.set_root(node);
    graph
}

#[test]
fn long_filters_are_taken_by_the_verifier() {
    if !permitted() {
        return;
    }
    // Each context on one day with the one and on the next with the other.
    let all =
        CONTEXTS.into_iter().flat_map(|context| [(2600, false), (3900, true)].map(|long| (context, long)));
    for (context, (questions, near)) in share(2, all) {
        let yes = Loaded::new(&chain(questions, questions - 1, near), &[], context);
        assert!(yes.accepts(&[1; 80]), "{questions} {context:?}");
        assert!(!yes.accepts(&[2; 80]), "{questions} {context:?}");
    }
    // Beyond what the verifier keeps waiting.
    let long = Loaded::new(&chain(4200, 4199, true), &[], Context::Socket);
    assert!(long.accepts(&[1; 80]) && !long.accepts(&[2; 80]));
}

#[test]
fn a_socket_filter_counts_all_that_it_rejects() {
    if !permitted() {
        return;
    }
    let refusals = Refusals::new().unwrap();
    let filter = SocketFilter::load(&chain(1, 0, true), &[], refusals.as_fd()).unwrap();
    for (packet, rejected) in [(&[1; 80][..], 0), (&[2; 80], 1), (&[1; 15], 2), (&[1; 16], 2), (&[1], 3)] {
        testrun::run(filter.program(), &[&[0; 14], packet].concat(), 1).unwrap();
        assert_eq!(refusals.count().unwrap(), rejected, "{} bytes", packet.len());
    }
}

/// The first word in `sets[0]`, and the address at 16 in `sets[1]`.
fn in_sets() -> (Graph, Vec<Set>) {
    let mut graph = Graph::new(1);
    let number = graph.load(None, 14, Width::Half);
    let words: Vec<_> = (0..4).map(|word| graph.load(None, 16 + 4 * word, Width::Word)).collect();
    let ways = (Graph::ACCEPT, Graph::REFUSE);
    let address = graph.member(SetId(1), &words, ways, TermId(0));
    let root = graph.member(SetId(0), &[number], (address, Graph::REFUSE), TermId(0));
    graph.set_root(root);
    let name = |name: &str, holds| Some(SetName { text: name.to_owned(), holds });
    let ports = Set { name: name("ports", Holds::Ports), contents: Contents::Numbers(vec![80]) };
    let hosts = Set { name: name("hosts", Holds::Hosts), contents: Contents::Ipv6(Vec::new()) };
    (graph, vec![ports, hosts])
}

#[test]
fn sets_change_while_a_filter_looks_into_them() {
    if !permitted() {
        return;
    }
    let (graph, sets) = in_sets();
    let prefix = |first: u32, bits: u8| Contents::Ipv6(vec![Member { key: [first, 0, 0, 0], bits }]);
    let mut packet = [0; 60];
    packet[14..18].copy_from_slice(&[0, 80, 0xfe, 0x80]);
    for context in CONTEXTS {
        let filter = Loaded::new(&graph, &sets, context);
        let asks = |expected: bool, when: &str| {
            assert_eq!(filter.accepts(&packet), expected, "{context:?}: {when}");
        };
        asks(false, "no host is there");
        let (ports, hosts) = (&filter.sets[0], &filter.sets[1]);
        hosts.add(&prefix(0xfe80_0000, 10)).unwrap();
        asks(true, "a prefix covers it");
        let changed = hosts.change(SetChange::Replace, &prefix(0xfec0_0000, 10)).unwrap();
        assert_eq!(changed, Changed { added: 1, removed: 1 });
        asks(false, "another prefix took its place");
        hosts.add(&prefix(0, 0)).unwrap();
        asks(true, "everything is covered");
        let changed = ports.change(SetChange::Remove, &Contents::Numbers(vec![80, 81])).unwrap();
        assert_eq!(changed, Changed { added: 0, removed: 1 });
        asks(false, "the port is gone");
        let changed = ports.change(SetChange::Add, &Contents::Numbers((0..60_000).collect())).unwrap();
        assert_eq!(changed, Changed { added: 60_000, removed: 0 });
        asks(true, "the port is one of many");
    }
}

#[test]
fn every_program_of_the_corpus_is_taken() {
    if !permitted() {
        return;
    }
    let mut programs = 0;
    for (dialect, entries) in
        [(Dialect::Pcap, share(8, corpus::pcap())), (Dialect::Weir, share(8, corpus::weir()))]
    {
        for (entry, metadata) in
            entries.iter().flat_map(|entry| [(entry, Beside::Nothing), (entry, Beside::All)])
        {
            let options = Options {
                dialect,
                link_type: entry.link_type,
                snap_len: 65_535,
                metadata,
                swapped: false,
                others: &[],
                netmask: None,
                names: &NoNames,
            };
            // Names that nobody knows, and metadata that a link type does not have.
            let Ok(filter) = weir_filter::compile(entry.text, &options) else { continue };
            for context in CONTEXTS {
                Loaded::new(&filter.graph, &filter.ast.sets, context);
                programs += 1;
            }
        }
    }
    assert!(programs > 350, "{programs}");
}

/// Many questions about few values, on ways that meet again: what is in a register from one question is of use for the next
/// only if all who come there have it.
fn questions_about_few(seed: u64) -> Graph {
    let mut dice = Dice::new(seed);
    let mut graph = Graph::new(1);
    let half = graph.load(None, 14, Width::Half);
    let byte = graph.load(None, 16, Width::Byte);
    let low = graph.with(Operation::And, half, 0x0303);
    let near = graph.with(Operation::And, byte, 3);
    let word = graph.load(Some(near), 14, Width::Word);
    for _ in 0..30 {
        let value = dice.one(&[half, half, low, low, byte, word]);
        let relation = dice.one(&[Relation::Equal, Relation::Equal, Relation::AnyBit, Relation::Greater]);
        let number = dice.one(&[0, 1, 3, 0x100, 0x101, 0x0203, 0x0101_0101, 0x0303]);
        let right = graph.constant(number);
        let count = graph.nodes().len();
        let mut next = || NodeId(u32::try_from(count - 1 - dice.below(count.min(4))).unwrap());
        let ways = (next(), next());
        let root = graph.compare(relation, value, right, ways, TermId(0));
        graph.set_root(root);
    }
    graph
}

#[test]
fn what_a_register_has_from_one_question_is_right_for_the_next() {
    if !permitted() {
        return;
    }
    let mut yes = 0;
    for seed in 0..60 {
        let graph = questions_about_few(seed * 31 + 7);
        let interpreter = Interpreter::new(&graph, &[]);
        let loaded = CONTEXTS.map(|context| Loaded::new(&graph, &[], context));
        let mut dice = Dice::new(seed ^ 0xabc);
        for _ in 0..40 {
            let mut data = [0; 30];
            data[14..22].iter_mut().for_each(|byte| *byte = dice.one(&[0, 0, 1, 1, 2, 3]));
            let length = 15 + dice.below(16);
            let packet = Packet { data: &data[..length], length: 30, ..Packet::default() };
            let expected = interpreter.run(&packet) != 0;
            for loaded in &loaded {
                let found = loaded.accepts(&data[..length]);
                assert_eq!(found, expected, "{seed} {:?} {:?}\n{graph}", loaded.context(), packet.data);
            }
            yes += u32::from(expected);
        }
    }
    assert!((200..2200).contains(&yes), "{yes} of 2400");
}

/// `[23:1] = number`.
fn protocol_is(number: u32) -> Graph {
    let mut graph = Graph::new(1);
    let load = graph.load(None, 23, Width::Byte);
    let root = graph.equals(load, number, (Graph::ACCEPT, Graph::REFUSE), TermId(0));
    graph.set_root(root);
    graph
}

#[test]
fn filters_are_put_in_place_exchanged_and_taken_away() {
    if !permitted() {
        return;
    }
    let bare = Bare::load().unwrap();
    let decides = |expected: Decision| assert_eq!(bare.run(&[6; 60], 1).unwrap().0, expected);
    let loader = bare.gate().loader().unwrap().expect("it is there");
    decides(Decision::NoFilter);
    let (tcp, udp) =
        (loader.load(&protocol_is(6), &[]).unwrap(), loader.load(&protocol_is(17), &[]).unwrap());
    bare.gate().set(Some(&tcp)).unwrap();
    decides(Decision::Wanted);
    bare.gate().set(Some(&udp)).unwrap();
    decides(Decision::Unwanted);
    drop(udp);
    decides(Decision::Unwanted);
    bare.gate().set(None).unwrap();
    decides(Decision::NoFilter);
    bare.gate().set(Some(&loader.load(&Graph::new(1), &[]).unwrap())).unwrap();
    decides(Decision::Wanted);
    // What was not loaded for the gate: a program for packets of several buffers.
    let Gate::Calls(calls) = bare.gate() else { panic!("its filter is in front") };
    let outcomes = calls.outcomes().try_clone_to_owned().unwrap();
    let other = Loader::calls(vec![Hook::Xdp { fragments: true, interface: None }], outcomes);
    assert!(other.load(&protocol_is(6), &[]).is_err());
}

/// TCP is accepted, UDP gets verdict 2, ICMP `last`, and the others are rejected.
fn verdicts_by_protocol(last: Verdict) -> Graph {
    let mut graph = Graph::new(1);
    let load = graph.load(None, 23, Width::Byte);
    let (second, last) = (graph.end(Verdict(2)), graph.end(last));
    let icmp = graph.equals(load, 1, (last, Graph::REFUSE), TermId(0));
    let udp = graph.equals(load, 17, (second, icmp), TermId(0));
    let root = graph.equals(load, 6, (Graph::ACCEPT, udp), TermId(0));
    graph.set_root(root);
    graph
}

#[test]
fn each_verdict_has_its_outcome() {
    if !permitted() {
        return;
    }
    let bare = Bare::load().unwrap();
    let loader = bare.gate().loader().unwrap().expect("it is there");
    let filter = loader.load(&verdicts_by_protocol(Verdict(2)), &[]).unwrap();
    bare.gate().set(Some(&filter)).unwrap();
    for (protocol, decision) in
        [(6, Decision::Wanted), (17, Decision::Third), (1, Decision::Third), (2, Decision::Unwanted)]
    {
        assert_eq!(bare.run(&[protocol; 60], 1).unwrap().0, decision, "{protocol}");
        assert_eq!(bare.run(&[protocol; 20], 1).unwrap().0, Decision::Unwanted, "it is too short");
    }
    // The gate has outcomes for three verdicts.
    let error = loader.load(&verdicts_by_protocol(Verdict(3)), &[]).unwrap_err().to_string();
    assert_eq!(error, "the filter has 4 verdicts, but its receiver knows 3");
    // A packet socket takes a packet or does not.
    let refusals = Refusals::new().unwrap();
    let error = SocketFilter::load(&verdicts_by_protocol(Verdict(2)), &[], refusals.as_fd()).unwrap_err();
    assert_eq!(error.to_string(), "the filter has 3 verdicts, but its receiver knows 2");
}

/// A filter that looks at the byte whose place is made from the VLAN tag beside the frame by `steps`, and `offset`.
fn at_a_place(steps: &[(Operation, u32)], offset: u32) -> Graph {
    let mut graph = Graph::new(1);
    let mut place = graph.value(Value::Meta(Meta::VlanTag));
    for &(operation, number) in steps {
        place = graph.with(operation, place, number);
    }
    let byte = graph.load(Some(place), offset, Width::Byte);
    let root = graph.equals(byte, 7, (Graph::ACCEPT, Graph::REFUSE), TermId(0));
    graph.set_root(root);
    graph
}

/// The verifier of Linux 6.18 refuses a computed offset to which 2^29 or more was added, even after a bounds check.
#[test]
fn places_may_be_any_number_beyond_others() {
    if !permitted() {
        return;
    }
    const FAR: u32 = 0x8000_0000;
    let cases: [(&[(Operation, u32)], u32); 9] = [
        (&[], FAR),
        (&[], 0u32.wrapping_sub(0x3000_0000)),
        (&[(Operation::Add, FAR)], 0),
        (&[(Operation::Add, FAR)], 16),
        (&[(Operation::Add, FAR), (Operation::And, 0xff)], 0),
        (&[(Operation::Add, FAR), (Operation::And, 0xff)], 16),
        (&[(Operation::Subtract, 1 << 30)], 3),
        (&[(Operation::Add, 1 << 30), (Operation::Multiply, 4)], 5),
        (&[(Operation::And, 0xff), (Operation::Add, 1 << 30)], 0xc000_0000),
    ];
    for (steps, offset) in cases {
        let graph = at_a_place(steps, offset);
        let interpreter = Interpreter::new(&graph, &[]);
        for context in CONTEXTS {
            let loaded = Loaded::new(&graph, &[], context);
            for tci in [0, 4, 19, 0xffff] {
                let mut packet = [0; 64];
                packet[19..].fill(7);
                let tag = Some(VlanTag { protocol: 0x8100, tci });
                let Some(found) = loaded.program.accepts(&packet, tag) else { continue };
                let seen = Packet { data: &packet, length: 64, meta: loaded.program.metadata(&packet, tag) };
                let expected = interpreter.run(&seen) != 0;
                assert_eq!(found, expected, "{context:?} {steps:?} {offset:#x} {tci}");
            }
        }
    }
}
