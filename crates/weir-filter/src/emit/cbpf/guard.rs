//! Makes the graph's semantics explicit where the machine's differ.
//!
//! The kernel takes the lowest five bits of X as the shift amount. It takes an address of 2^31 or more as an offset
//! from somewhere other than the start of the packet (`bpf_internal_load_pointer_neg_helper`). A value shifted by an
//! amount that may be 32 or more is therefore multiplied by 1 if the amount is less and 0 otherwise, and nodes that may
//! load from such an address get a test in front. Passes handle constant shifts and addresses.

use foldhash::HashSet;

use super::Target;
use crate::graph::{Graph, Node, NodeId, Operation, Relation, TermId, Test, Value, ValueId};
use crate::pass::range::Ranges;

/// First negative address.
const NEGATIVE: u32 = 1 << 31;

/// Returns the graph with guards.
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

/// Makes a shift give zero if its amount is 32 or more.
fn safe_shift(graph: &mut Graph, ranges: &mut Ranges, value: Value) -> ValueId {
    let Value::Binary { operation: Operation::ShiftLeft | Operation::ShiftRight, right, .. } = value else {
        return graph.value(value);
    };
    if graph.as_constant(right).is_some() || ranges.most(graph, right) < 32 {
        return graph.value(value);
    }
    // 1 if the amount is below 32: only then are the higher bits zero, so that subtracting 1 wraps and sets the top
    // bit.
    let high = graph.with(Operation::ShiftRight, right, 5);
    let less = graph.with(Operation::Subtract, high, 1);
    let within = graph.with(Operation::ShiftRight, less, 31);
    let shifted = graph.value(value);
    graph.binary(Operation::Multiply, shifted, within)
}

/// Adds tests before node `id` that reject the packet if it would load from a negative address.
fn before_loads(graph: &mut Graph, ranges: &mut Ranges, node: Node, id: NodeId) -> NodeId {
    let mut addresses = Vec::new();
    let mut seen = HashSet::default();
    let mut pending: Vec<ValueId> = node.values().collect();
    while let Some(value) = pending.pop() {
        if !seen.insert(value) {
            continue;
        }
        let shape = graph.get(value);
        pending.extend(shape.operands());
        if let Value::Load { base: Some(base), offset, .. } = shape {
            addresses.push((value, base, offset));
        }
    }
    // The innermost load has the smallest number, so it comes first.
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
