//! Graphs made by hand: their rules and their meaning.

use weir_filter::emit::cbpf::{self, EmitError, Target};
use weir_filter::emit::ebpf::{self, Context, Ending};
use weir_filter::graph::{Graph, Node, Operation, Relation, TermId, Verdict, Width};
use weir_filter::interpret::{Interpreter, Packet};
use weir_filter::set::{Contents, Member, Set, SetId};

/// A packet of Ethernet, IPv4 from 10.1.2.3, TCP.
fn packet() -> Vec<u8> {
    let mut frame = vec![0; 54];
    frame[12..14].copy_from_slice(&[0x08, 0x00]);
    frame[14] = 0x45;
    frame[23] = 6;
    frame[26..30].copy_from_slice(&[10, 1, 2, 3]);
    frame
}

fn answer(graph: &Graph, sets: &[Set], data: &[u8]) -> u32 {
    graph.check(sets).expect("the graph keeps the rules");
    let length = u32::try_from(data.len()).expect("packets are short");
    Interpreter::new(graph, sets).run(&Packet { data, length, ..Packet::default() })
}

#[test]
fn a_branch_goes_by_what_is_there() {
    let mut graph = Graph::new(100);
    let kind = graph.load(None, 12, Width::Half);
    let root = graph.equals(kind, 0x800, (Graph::ACCEPT, Graph::REFUSE), TermId::NONE);
    graph.set_root(root);
    assert_eq!(answer(&graph, &[], &packet()), 100);
    assert_eq!(answer(&graph, &[], &packet()[..13]), 0, "what is not there refuses");
    assert_eq!(
        graph.to_string(),
        "   n2:  if [12:2] == 0x800 then n1 else n0\n   n1:  accept 100\n   n0:  refuse\n"
    );
}

/// TCP gets verdict 2, UDP verdict 5, other IPv4 is accepted, and all else rejected.
fn four_verdicts() -> Graph {
    let mut graph = Graph::new(100);
    let (two, five) = (graph.end(Verdict(2)), graph.end(Verdict(5)));
    let (kind, protocol) = (graph.load(None, 12, Width::Half), graph.load(None, 23, Width::Byte));
    let udp = graph.equals(protocol, 17, (five, Graph::ACCEPT), TermId::NONE);
    let tcp = graph.equals(protocol, 6, (two, udp), TermId::NONE);
    let root = graph.equals(kind, 0x800, (tcp, Graph::REFUSE), TermId::NONE);
    graph.set_root(root);
    graph
}

#[test]
fn a_filter_may_have_more_verdicts_than_two() {
    let graph = four_verdicts();
    assert_eq!((graph.check(&[]), graph.verdicts()), (Ok(()), 6));
    let text = "   n6:  if [12:2] == 0x800 then n5 else n0\n   n5:  if [23:1] == 6 then n2 else n4\n   \
                n4:  if [23:1] == 0x11 then n3 else n1\n   n3:  verdict 5\n   n2:  verdict 2\n   \
                n1:  accept 100\n   n0:  refuse\n";
    assert_eq!(graph.to_string(), text);
    for (protocol, verdict, result) in [(6, 2, 0), (17, 5, 0), (1, 1, 100)] {
        let mut data = packet();
        data[23] = protocol;
        let packet = Packet { data: &data, length: 54, ..Packet::default() };
        let interpreter = Interpreter::new(&graph, &[]);
        assert_eq!(interpreter.verdict(&packet), Verdict(verdict));
        assert_eq!(interpreter.run(&packet), result);
        let short = Packet { data: &data[..23], ..packet };
        assert_eq!(interpreter.verdict(&short), Verdict::REFUSE, "what is not there refuses");
    }
}

#[test]
fn a_receiver_must_know_all_verdicts_that_are_reached() {
    let mut graph = four_verdicts();
    let known = |graph: &Graph, ending| ebpf::emit(graph, &[], Context::Socket, ending).map(drop);
    let missing = |known| Err(ebpf::Error::Verdicts { needed: 6, known });
    assert_eq!(known(&graph, Ending::Return(&[0; 6])), Ok(()));
    assert_eq!(known(&graph, Ending::Return(&[0; 5])), missing(5));
    assert_eq!(known(&graph, Ending::Call { outcomes: &[0; 3], otherwise: 0 }), missing(3));
    assert_eq!(known(&graph, Ending::Counted { accept: 1 }), missing(2));
    assert_eq!(ebpf::counting(&[(&graph, &[])], Context::Socket).map(drop), missing(2));
    let classic = cbpf::emit(&graph, &[], Target::Kernel).unwrap_err();
    assert_eq!(classic, EmitError::Verdicts { verdicts: 6 });
    assert!(classic.to_string().contains("classic BPF only accepts or rejects"), "{classic}");
    // What no packet reaches does not count.
    graph.set_root(Graph::ACCEPT);
    assert_eq!(graph.verdicts(), 2);
    assert_eq!(known(&graph, Ending::Counted { accept: 1 }), Ok(()));
    assert!(cbpf::emit(&graph, &[], Target::Kernel).is_ok());
}

#[test]
fn there_is_one_rejection_and_one_acceptance() {
    let mut graph = Graph::new(1);
    assert_eq!([Verdict::REFUSE, Verdict::ACCEPT].map(|end| graph.end(end)), [Graph::REFUSE, Graph::ACCEPT]);
    graph.push(Node::End(Verdict::REFUSE));
    assert_eq!(graph.check(&[]), Err("G1: node 2 is refuse or accept once more".to_owned()));
}

#[test]
fn a_read_refuses_though_its_value_is_of_no_use() {
    let mut graph = Graph::new(1);
    let far = graph.load(None, 60, Width::Word);
    let read = graph.push(Node::Read { value: far, next: Graph::ACCEPT });
    graph.set_root(read);
    assert_eq!(answer(&graph, &[], &packet()), 0);
}

#[test]
fn slots_carry_what_a_path_found_out() {
    let mut graph = Graph::new(1);
    let slot = graph.slot();
    let (near, far) = (graph.constant(14), graph.constant(18));
    let base = graph.value(weir_filter::graph::Value::Slot(slot));
    let protocol = graph.load(Some(base), 9, Width::Byte);
    let test = graph.equals(protocol, 6, (Graph::ACCEPT, Graph::REFUSE), TermId::NONE);
    let plain = graph.push(Node::Assign { slot, value: near, next: test });
    let tagged = graph.push(Node::Assign { slot, value: far, next: test });
    let kind = graph.load(None, 12, Width::Half);
    let root = graph.equals(kind, 0x8100, (tagged, plain), TermId::NONE);
    graph.set_root(root);
    assert_eq!(answer(&graph, &[], &packet()), 1);
    graph.set_root(test);
    assert!(graph.check(&[]).expect_err("nothing assigns it").starts_with("G4"));
}

#[test]
fn sets_hold_prefixes() {
    let mut graph = Graph::new(1);
    let source = graph.load(None, 26, Width::Word);
    let root = graph.member(SetId(0), &[source], (Graph::ACCEPT, Graph::REFUSE), TermId::NONE);
    graph.set_root(root);
    let net = |key, bits| Set { name: None, contents: Contents::Ipv4(vec![Member { key: [key], bits }]) };
    assert_eq!(answer(&graph, &[net(0x0a00_0000, 8)], &packet()), 1);
    assert_eq!(answer(&graph, &[net(0x0a01_0203, 32)], &packet()), 1);
    assert_eq!(answer(&graph, &[net(0x0b00_0000, 8)], &packet()), 0);
    assert_eq!(answer(&graph, &[net(0, 0)], &packet()), 1);
}

#[test]
fn simplifying_never_drops_a_refusal() {
    let mut graph = Graph::new(1);
    let far = graph.load(None, 60, Width::Word);
    let zero = graph.with(Operation::And, far, 0);
    let root = graph.equals(zero, 0, (Graph::ACCEPT, Graph::REFUSE), TermId::NONE);
    graph.set_root(root);
    assert_eq!(answer(&graph, &[], &packet()), 0);
}

#[test]
fn division_by_zero_refuses_and_long_shifts_clear() {
    let mut graph = Graph::new(1);
    let byte = graph.load(None, 0, Width::Byte);
    let one = graph.constant(1);
    for (operation, relation, accepted) in [
        (Operation::Divide, Relation::AtLeast, 0),
        (Operation::Remainder, Relation::AtLeast, 0),
        (Operation::Multiply, Relation::AtLeast, 1),
    ] {
        let value = graph.binary(operation, one, byte);
        let zero = graph.constant(0);
        let root = graph.compare(relation, value, zero, (Graph::ACCEPT, Graph::REFUSE), TermId::NONE);
        graph.set_root(root);
        assert_eq!(answer(&graph, &[], &packet()), accepted, "{operation}");
    }
    let kind = graph.load(None, 12, Width::Half);
    let shifted = graph.with(Operation::ShiftRight, kind, 32);
    let root = graph.equals(shifted, 0, (Graph::ACCEPT, Graph::REFUSE), TermId::NONE);
    graph.set_root(root);
    assert_eq!(answer(&graph, &[], &packet()), 1);
}
