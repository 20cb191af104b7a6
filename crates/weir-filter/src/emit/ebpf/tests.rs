//! Tests that need no kernel. `weir-bpf` tests that the kernel accepts the code, and its results.

use super::instruction::FP;
use super::*;
use crate::graph::{Graph, Node, Operation, TermId, Value, Width};

const RETURN: Ending<'static> = Ending::Return(&[0, 1]);

/// `tcp port 443`, IPv4 only, without options.
fn port_443() -> Graph {
    let mut graph = Graph::new(65_535);
    let ways = (Graph::ACCEPT, Graph::REFUSE);
    let port = graph.load(None, 36, Width::Half);
    let tcp = graph.load(None, 23, Width::Byte);
    let ethertype = graph.load(None, 12, Width::Half);
    let node = graph.equals(port, 443, ways, TermId(0));
    let node = graph.equals(tcp, 6, (node, Graph::REFUSE), TermId(0));
    let root = graph.equals(ethertype, 0x800, (node, Graph::REFUSE), TermId(0));
    graph.set_root(root);
    graph
}

#[test]
fn one_comparison_shows_all_bytes_that_acceptance_needs() {
    let program = emit(&port_443(), &[], Context::Xdp { fragments: false, interface: None }, RETURN).unwrap();
    let text = program.to_string();
    assert_eq!(text.matches("> r8").count(), 1, "{text}");
    assert!(text.contains("r2 += 0x26"), "{text}");
    let turned = format!("w0 != {:#x}", 443_u16.to_be());
    assert!(text.contains(&turned), "{text}");
    assert!(!text.contains("call"), "{text}");
}

#[test]
fn several_buffers_take_a_slow_way() {
    let program = emit(&port_443(), &[], Context::Tc { outgoing: false }, RETURN).unwrap();
    assert_eq!(program.to_string().matches("call skb_load_bytes").count(), 3, "{program}");
}

#[test]
fn what_is_rarely_asked_has_code_in_the_slow_way_alone() {
    let mut graph = Graph::new(1);
    let ways = (Graph::ACCEPT, Graph::REFUSE);
    let [first, second] = [12, 23].map(|at| graph.load(None, at, Width::Byte));
    let below = graph.equals(second, 6, ways, TermId(0));
    let rare = graph.equals(second, 17, (Graph::ACCEPT, below), TermId::RARE);
    let root = graph.equals(first, 8, (Graph::REFUSE, rare), TermId(0));
    graph.set_root(root);
    let text =
        emit(&graph, &[], Context::Xdp { fragments: false, interface: None }, RETURN).unwrap().to_string();
    assert_eq!(text.matches("call xdp_load_bytes").count(), 1, "one load serves both questions: {text}");
    assert_eq!(text.matches("*(u8 *)(r7 ").count(), 1, "the first alone is asked directly: {text}");
}

#[test]
fn slots_that_are_asked_about_in_a_row_are_loaded_once() {
    let mut graph = Graph::new(1);
    let slot = graph.slot();
    let noted = graph.value(Value::Slot(slot));
    let mut node = Graph::REFUSE;
    for number in 0..9 {
        node = graph.equals(noted, number, (Graph::ACCEPT, node), TermId(0));
    }
    let value = graph.load(None, 12, Width::Byte);
    let root = graph.push(Node::Assign { slot, value, next: node });
    graph.set_root(root);
    let text =
        emit(&graph, &[], Context::Xdp { fragments: false, interface: None }, RETURN).unwrap().to_string();
    assert_eq!(text.matches("= *(u32 *)(r10 ").count(), 1, "{text}");
}

#[test]
fn jumps_go_forward_and_stay_inside() {
    let mut graph = Graph::new(1);
    let mut node = Graph::REFUSE;
    for index in 0..20_000 {
        let place = graph.load(None, index % 60, Width::Byte);
        let sum = graph.with(Operation::Add, place, index);
        let value = graph.load(Some(sum), 0, Width::Half);
        node = graph.equals(value, index, (Graph::ACCEPT, node), TermId(0));
    }
    graph.set_root(node);
    for context in
        [Context::Xdp { fragments: false, interface: None }, Context::Tc { outgoing: true }, Context::Socket]
    {
        let program = emit(&graph, &[], context, RETURN).unwrap();
        let length = program.instructions.len();
        assert!(length > 1 << 16, "{length}");
        for (at, instruction) in program.instructions.iter().enumerate() {
            let jumps =
                matches!(instruction.code & 7, 5 | 6) && !matches!(instruction.code & 0xf0, 0x80 | 0x90);
            if jumps {
                let target = at + 1 + usize::try_from(instruction.offset).expect("jumps go forward");
                assert!(target < length, "{at}: {instruction}");
            }
        }
    }
}

#[test]
fn what_the_kernel_cannot_take_is_an_error() {
    let mut graph = Graph::new(1);
    let mut value = graph.load(None, 0, Width::Byte);
    for _ in 0..40 {
        value = graph.binary(Operation::Add, value, value);
    }
    let root = graph.equals(value, 1, (Graph::ACCEPT, Graph::REFUSE), TermId(0));
    graph.set_root(root);
    assert!(matches!(emit(&graph, &[], Context::Socket, RETURN), Err(Error::TooLong(_))));
}

#[test]
fn what_several_questions_in_a_row_are_about_is_loaded_once() {
    let mut graph = Graph::new(1);
    let ethertype = graph.load(None, 12, Width::Half);
    let byte = graph.load(None, 14, Width::Byte);
    let mut node = graph.equals(byte, 0x45, (Graph::ACCEPT, Graph::REFUSE), TermId(0));
    for number in [0x800, 0x806, 0x86dd] {
        node = graph.equals(ethertype, number, (Graph::ACCEPT, node), TermId(0));
    }
    // This path arrives with another byte in the register.
    let other = graph.load(None, 0, Width::Byte);
    let (below, root) = (node, graph.equals(ethertype, 0x8100, (Graph::ACCEPT, node), TermId(0)));
    graph.set_root(root);
    let loads = |graph: &Graph| {
        let program = emit(graph, &[], Context::Xdp { fragments: false, interface: None }, RETURN).unwrap();
        program.to_string().matches("*(u16 *)(r7 +12)").count()
    };
    assert_eq!(loads(&graph), 1);
    let root = graph.equals(other, 1, (root, below), TermId(0));
    graph.set_root(root);
    assert_eq!(loads(&graph), 2);
}

/// Keeps as many bytes of a packet until it has compared all of them.
fn many_slots(count: u16) -> Graph {
    let mut graph = Graph::new(1);
    let slots: Vec<_> = (0..count).map(|_| graph.slot()).collect();
    let mut node = Graph::ACCEPT;
    for &slot in &slots {
        let kept = graph.value(Value::Slot(slot));
        node = graph.equals(kept, 7, (node, Graph::REFUSE), TermId(0));
    }
    for (place, &slot) in slots.iter().enumerate() {
        let byte = graph.load(None, u32::try_from(place).expect("few"), Width::Byte);
        node = graph.push(Node::Assign { slot, value: byte, next: node });
    }
    graph.set_root(node);
    graph
}

#[test]
fn a_function_of_a_crowd_leaves_room_for_two_callers() {
    let context = Context::Xdp { fragments: true, interface: None };
    let deepest = |graph: &Graph| {
        let program = counting(&[(graph, &[])], context)?;
        let on_stack = program.instructions.iter().filter(|one| [one.destination, one.source].contains(&FP));
        Ok::<_, Error>(on_stack.map(|one| one.offset).min().expect("some are"))
    };
    assert_eq!(deepest(&many_slots(44)).expect("they fit"), 4 - 448);
    assert_eq!(deepest(&many_slots(88)).expect("they fit"), -448);
    // With more, only what newer kernels leave.
    assert_eq!(deepest(&many_slots(89)).expect("they fit"), -480);
    assert_eq!(deepest(&many_slots(96)).expect("they fit"), -480);
}
