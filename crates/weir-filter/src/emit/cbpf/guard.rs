//! Makes explicit what a machine would do otherwise than the graph means.
//!
//! The kernel takes the lowest five bits of X for the distance of a shift, and an address of 2^31 or more for an offset from
//! some other place than the packet's beginning (`bpf_internal_load_pointer_neg_helper`). Distances that may be 32 or more get
//! a mask, and nodes that load from such an address a test in front of them. What is wrong with numbers, passes have seen to.

use std::collections::HashSet;

use super::Target;
use crate::graph::{
    Graph, Node, NodeId, Operation, Relation, TermId, Test, Value, ValueId, operands, values_of,
};
use crate::pass::range::Ranges;

/// Addresses from here on are negative.
const NEGATIVE: u32 = 1 << 31;

/// The graph with its guards.
pub(super) fn guard(graph: &Graph, target: Target) -> Graph {
    let mut guarded = Graph::new(graph.snap_len);
    (0..graph.slots()).for_each(|_| _ = guarded.slot());
    let mut ranges = Ranges::with_slots(graph).for_other_values();
    let values: Vec<ValueId> = {
        let mut values: Vec<ValueId> = Vec::with_capacity(graph.values().len());
        for &value in graph.values() {
            let value = value.map(|operand| values[operand.0 as usize]);
            values.push(safe_shift(&mut guarded, &mut ranges, value));
        }
        values
    };
    let mut nodes = vec![Graph::REFUSE, Graph::ACCEPT];
    for node in &graph.nodes()[2..] {
        let node = node.map(|value| values[value.0 as usize], |next| nodes[next.0 as usize]);
        let id = guarded.push(node);
        nodes.push(match target {
            Target::Kernel => before_loads(&mut guarded, &mut ranges, node, id),
            Target::Library => id,
        });
    }
    guarded.set_root(nodes[graph.root().0 as usize]);
    guarded
}

/// A shift by what may be 32 or more: zero then.
fn safe_shift(graph: &mut Graph, ranges: &mut Ranges, value: Value) -> ValueId {
    let Value::Binary { operation: operation @ (Operation::ShiftLeft | Operation::ShiftRight), left, right } =
        value
    else {
        return graph.value(value);
    };
    if graph.as_constant(right).is_some() || ranges.most(graph, right) < 32 {
        return graph.value(value);
    }
    let zero = graph.constant(0);
    let high = graph.with(Operation::ShiftRight, right, 5);
    let negated = graph.binary(Operation::Subtract, zero, high);
    let either = graph.binary(Operation::Or, high, negated);
    // 1 if any of the high bits is set; less 1: no bit at all then, else all bits.
    let beyond = graph.with(Operation::ShiftRight, either, 31);
    let mask = graph.with(Operation::Subtract, beyond, 1);
    let low = graph.with(Operation::And, right, 31);
    let shifted = graph.binary(operation, left, low);
    graph.binary(Operation::And, shifted, mask)
}

/// Tests in front of node `id` that refuse where it would load from a negative address.
fn before_loads(graph: &mut Graph, ranges: &mut Ranges, node: Node, id: NodeId) -> NodeId {
    let mut addresses = Vec::new();
    let mut seen = HashSet::new();
    let mut pending = values_of(node);
    while let Some(value) = pending.pop() {
        if !seen.insert(value) {
            continue;
        }
        let shape = graph.get(value);
        pending.extend(operands(shape));
        if let Value::Load { base: Some(base), offset, .. } = shape {
            addresses.push((value, base, offset));
        }
    }
    // The innermost load has the smallest number, and comes first.
    addresses.sort_unstable();
    let mut begin = id;
    for (_, base, offset) in addresses.into_iter().rev() {
        if u64::from(ranges.most(graph, base)) + u64::from(offset) >= NEGATIVE.into() {
            let left = graph.with(Operation::Add, base, offset);
            let right = graph.constant(NEGATIVE);
            let test = Test::Compare { relation: Relation::AtLeast, left, right };
            begin = graph.branch(test, Graph::REFUSE, begin, TermId::NONE);
        }
    }
    begin
}
