//! Graphs made by hand: their rules and their meaning.

use weir_filter::graph::{Graph, Node, Operation, Relation, TermId, Width};
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
