//! Analysis before code generation: reachable nodes, dominators, ranges of values, and the packet length needed for
//! acceptance.

use weir_filter::graph::{Graph, Meta, Node, NodeId, Operation, Test, Value, ValueId, Verdict, Width};

/// The need of a node from which no packet is accepted.
pub(crate) const NEVER: u64 = u64::MAX;

/// Rounds of refining the limits of slots; limits that still grow after that are dropped.
const ROUNDS: usize = 40;

/// Facts about a graph.
pub(crate) struct Analysis {
    /// For each reachable node that does something, the nodes that it immediately dominates, in execution order.
    pub(crate) dominated: Vec<Vec<NodeId>>,
    /// Bytes a packet needs to be accepted from each node on; [`NEVER`] if none is accepted.
    pub(crate) needs: Vec<u64>,
    /// Upper bound of each value.
    pub(crate) limits: Vec<u32>,
}

impl Analysis {
    pub(crate) fn new(graph: &Graph) -> Self {
        let needs = needs(graph);
        Self { dominated: dominated(graph, &needs), limits: limits(graph), needs }
    }

    /// Returns whether no packet that gets here is accepted.
    pub(crate) fn hopeless(&self, node: NodeId) -> bool {
        self.needs[node.0 as usize] == NEVER
    }
}

/// Returns the values that a node evaluates.
pub(crate) fn evaluated(node: Node) -> impl Iterator<Item = ValueId> {
    let (values, count) = match node {
        Node::End(_) => ([ValueId(0); 4], 0),
        Node::Branch { test: Test::Compare { left, right, .. }, .. } => ([left, right, left, left], 2),
        Node::Branch { test: Test::Member { key, .. }, .. } => (key, key.len()),
        Node::Assign { value, .. } | Node::Read { value, .. } => ([value; 4], 1),
    };
    values.into_iter().take(count)
}

/// Returns the operands of a value.
pub(crate) fn operands(value: Value) -> impl Iterator<Item = ValueId> {
    let (first, second) = match value {
        Value::Load { base, .. } => (base, None),
        Value::Binary { left, right, .. } => (Some(left), Some(right)),
        Value::Constant(_) | Value::Length | Value::Meta(_) | Value::Slot(_) => (None, None),
    };
    first.into_iter().chain(second)
}

/// Computes the bytes that all paths from each node to acceptance load at fixed offsets. A load at a fixed offset
/// rejects shorter packets wherever it stands on a path, so one check can cover all of them.
fn needs(graph: &Graph) -> Vec<u64> {
    let mut reach: Vec<u64> = Vec::with_capacity(graph.values().len());
    for &value in graph.values() {
        let own = match value {
            Value::Load { base: None, offset, width } => u64::from(offset) + width as u64,
            _ => 0,
        };
        reach.push(operands(value).map(|operand| reach[operand.0 as usize]).fold(own, u64::max));
    }
    let mut needs: Vec<u64> = Vec::with_capacity(graph.nodes().len());
    for &node in graph.nodes() {
        let behind = match node {
            Node::End(Verdict::REFUSE) => NEVER,
            Node::End(_) => 0,
            _ => node.successors().map(|next| needs[next.0 as usize]).min().unwrap_or(NEVER),
        };
        needs.push(evaluated(node).map(|value| reach[value.0 as usize]).fold(behind, u64::max));
    }
    needs
}

/// A node's position in the dominator tree. Jump pointers, whose lengths follow the digits of the depth, lead to any
/// ancestor in logarithmic time (Myers, "An applicative random-access stack", 1983). Without them, a long chain of
/// terms with one common exit would take quadratic time.
#[derive(Clone, Copy, Default)]
struct TreeNode {
    parent: usize,
    depth: usize,
    jump: usize,
}

/// Returns the nodes that each node immediately dominates, except acceptance, rejection, and nodes from which no packet
/// is accepted.
fn dominated(graph: &Graph, needs: &[u64]) -> Vec<Vec<NodeId>> {
    let count = graph.nodes().len();
    let (mut tree, mut dominated) = (vec![TreeNode::default(); count], vec![Vec::new(); count]);
    let root = graph.root().0 as usize;
    let mut dominators = vec![None; count];
    tree[root] = TreeNode { parent: root, depth: 0, jump: root };
    // Predecessors have larger numbers, so a node's dominator is known by the time it is visited.
    for index in (2..=root).rev() {
        if let Some(parent) = dominators[index] {
            let above: TreeNode = tree[parent];
            let (first, second) = (tree[above.jump], tree[tree[above.jump].jump]);
            let even = above.depth - first.depth == first.depth - second.depth;
            tree[index] =
                TreeNode { parent, depth: above.depth + 1, jump: if even { first.jump } else { parent } };
            dominated[parent].push(graph_id(index));
        } else if index != root {
            continue;
        }
        if needs[index] == NEVER {
            continue;
        }
        for next in graph.nodes()[index].successors().map(|next| next.0 as usize) {
            dominators[next] = Some(dominators[next].map_or(index, |other| nearest(&tree, index, other)));
        }
    }
    dominated
}

/// Returns the nearest common dominator.
fn nearest(tree: &[TreeNode], mut one: usize, mut other: usize) -> usize {
    let raised = |mut node: usize, depth: usize| {
        while tree[node].depth > depth {
            let place = tree[node];
            node = if tree[place.jump].depth >= depth { place.jump } else { place.parent };
        }
        node
    };
    one = raised(one, tree[other].depth);
    other = raised(other, tree[one].depth);
    while one != other {
        let (a, b) = (tree[one], tree[other]);
        (one, other) = if a.jump == b.jump { (a.parent, b.parent) } else { (a.jump, b.jump) };
    }
    one
}

fn graph_id(index: usize) -> NodeId {
    NodeId(u32::try_from(index).expect("nodes are counted in 32 bits"))
}

/// Computes an upper bound of each value. A slot is bounded by the values assigned to it, which may depend on other
/// slots.
fn limits(graph: &Graph) -> Vec<u32> {
    let mut slots = vec![0; graph.slots().into()];
    for _ in 0..ROUNDS {
        let limits = limits_with(graph, &slots);
        let mut larger = slots.clone();
        for node in graph.nodes() {
            if let Node::Assign { slot, value, .. } = node {
                let largest = &mut larger[usize::from(slot.0)];
                *largest = limits[value.0 as usize].max(*largest);
            }
        }
        if larger == slots {
            return limits;
        }
        slots = larger;
    }
    limits_with(graph, &vec![u32::MAX; slots.len()])
}

fn limits_with(graph: &Graph, slots: &[u32]) -> Vec<u32> {
    let mut limits: Vec<u32> = Vec::with_capacity(graph.values().len());
    for &value in graph.values() {
        limits.push(match value {
            Value::Constant(number) => number,
            Value::Load { width: Width::Byte, .. } => 0xff,
            Value::Load { width: Width::Half, .. } => 0xffff,
            Value::Load { width: Width::Word, .. } | Value::Length => u32::MAX,
            Value::Meta(Meta::VlanPresent) => 1,
            Value::Meta(Meta::PacketType) => 0xff,
            Value::Meta(Meta::Interface) => u32::MAX,
            Value::Meta(Meta::Protocol | Meta::VlanTag | Meta::VlanProtocol) => 0xffff,
            Value::Slot(slot) => slots[usize::from(slot.0)],
            Value::Binary { operation, left, right } => {
                let constant = graph.as_constant(right);
                largest(operation, limits[left.0 as usize], limits[right.0 as usize], constant)
            }
        });
    }
    limits
}

/// Returns the largest result for operands up to `left` and `right`. `constant` is the right operand, if known.
fn largest(operation: Operation, left: u32, right: u32, constant: Option<u32>) -> u32 {
    let wraps = |result: Option<u32>| result.unwrap_or(u32::MAX);
    match operation {
        Operation::Add => wraps(left.checked_add(right)),
        Operation::Multiply => wraps(left.checked_mul(right)),
        Operation::Subtract => u32::MAX,
        Operation::Divide => left / constant.unwrap_or(1).max(1),
        Operation::Remainder => left.min(right.saturating_sub(1)),
        Operation::And => left.min(right),
        Operation::Or | Operation::Xor => u32::MAX.checked_shr(left.max(right).leading_zeros()).unwrap_or(0),
        Operation::ShiftLeft => match constant {
            Some(shift) if shift >= 32 => 0,
            Some(shift) if left.leading_zeros() >= shift => left << shift,
            _ => u32::MAX,
        },
        Operation::ShiftRight => left.checked_shr(constant.unwrap_or(0)).unwrap_or(0),
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use weir_filter::graph::{Relation, TermId};
    use weir_judge::graphs::{self, Dice, OPERATIONS};

    use super::*;

    /// Numbers of any size.
    fn number() -> impl Strategy<Value = u32> {
        prop_oneof![
            0..70_u32,
            any::<u32>(),
            (any::<u32>(), 0..32_u32).prop_map(|(word, shift)| word >> shift)
        ]
    }

    proptest! {
        /// Loads from a base whose limit is too low would be outside the packet.
        #[test]
        fn no_result_is_above_its_limit(left in number(), right in number(), more in (number(), number())) {
            let limits = (left.saturating_add(more.0), right.saturating_add(more.1));
            for operation in OPERATIONS {
                let Some(result) = operation.apply(left, right) else { continue };
                let constant = largest(operation, limits.0, right, Some(right));
                prop_assert!(result <= constant, "{:?} {} {}: {}", operation, left, right, constant);
                let any = largest(operation, limits.0, limits.1, None);
                prop_assert!(result <= any, "{:?} {} {}: {}", operation, left, right, any);
            }
        }

        /// As told by leaving a node out and seeing what is still reached.
        #[test]
        fn the_nearest_dominator_is_found(seed in any::<u64>(), count in 1..60_usize) {
            let mut dice = Dice::new(seed);
            let sets = graphs::sets(&mut dice);
            let graph = graphs::graph(dice, &sets, count);
            let Analysis { dominated, needs, .. } = Analysis::new(&graph);
            let root = graph.root().0 as usize;
            let reached = |without: usize| {
                let mut reached = vec![false; graph.nodes().len()];
                reached[root] = root != without;
                for index in (2..=root).rev().filter(|&index| needs[index] != NEVER) {
                    let successors = graph.nodes()[index].successors().map(|next| next.0 as usize);
                    let here = reached[index];
                    successors.filter(|&next| here && next != without).for_each(|next| reached[next] = true);
                }
                reached
            };
            let all = reached(usize::MAX);
            let without: Vec<_> = (0..=root).map(reached).collect();
            let dominates = |one: usize, other: usize| one != other && all[other] && !without[one][other];
            for index in 2..=root {
                let above: Vec<_> = (2..=root).filter(|&one| dominates(one, index)).collect();
                let nearest = above.iter().filter(|&&one| above.iter().all(|&other| other == one || dominates(other, one)));
                let told = (0..=root).filter(|&one| dominated[one].contains(&graph_id(index)));
                prop_assert_eq!(told.collect::<Vec<_>>(), nearest.copied().collect::<Vec<_>>(), "{}\n{}", index, graph);
            }
        }
    }

    #[test]
    fn limits_are_no_higher_than_need_be() {
        use Operation::{Add, And, Divide, Multiply, Or, Remainder, ShiftLeft, ShiftRight, Subtract, Xor};
        const ANY: u32 = u32::MAX;
        for (operation, left, right, constant, expected) in [
            (Add, 5, 7, None, 12),
            (Add, ANY, 1, None, ANY),
            (Subtract, 9, 1, Some(1), ANY),
            (Multiply, 15, 4, Some(4), 60),
            (Multiply, 1 << 16, 1 << 16, None, ANY),
            (Divide, 100, 8, Some(8), 12),
            (Divide, 100, 8, None, 100),
            (Divide, 100, 0, Some(0), 100),
            (Remainder, 100, 8, Some(8), 7),
            (Remainder, 5, 8, None, 5),
            (Remainder, 5, 0, None, 0),
            (And, 0xff, 0x1f, Some(0x1f), 0x1f),
            (And, 0x0f, 0x1f, None, 0x0f),
            (Or, 0x10, 3, None, 0x1f),
            (Xor, 3, 0x80, None, 0xff),
            (Or, 0, 0, None, 0),
            (ShiftLeft, 15, 2, Some(2), 60),
            (ShiftLeft, 0xffff, 16, Some(16), 0xffff_0000),
            (ShiftLeft, 0xffff, 17, Some(17), ANY),
            (ShiftLeft, 1, 31, Some(31), 1 << 31),
            (ShiftLeft, 1, 32, Some(32), 0),
            (ShiftLeft, 1, 2, None, ANY),
            (ShiftRight, 0xff, 4, Some(4), 0xf),
            (ShiftRight, 0xff, 4, None, 0xff),
            (ShiftRight, 0xff, 32, Some(32), 0),
        ] {
            assert_eq!(largest(operation, left, right, constant), expected, "{operation:?} {left} {right}");
        }
    }

    /// A slot may be as large as what is put into it, also by way of itself.
    #[test]
    fn slots_are_limited_by_what_is_put_into_them() {
        let mut graph = Graph::new(1);
        let (counts, grows, from) = (graph.slot(), graph.slot(), graph.slot());
        let value = |graph: &mut Graph, slot| graph.value(Value::Slot(slot));
        let byte = graph.load(None, 0, Width::Byte);
        let [old, more] = [grows, counts].map(|slot| value(&mut graph, slot));
        let taken = value(&mut graph, from);
        let sum = graph.with(Operation::Add, old, 1);
        let twice = graph.with(Operation::Add, more, 2);
        let root = graph.equals(sum, 7, (Graph::ACCEPT, Graph::REFUSE), TermId(0));
        let root = graph.push(Node::Assign { slot: grows, value: sum, next: root });
        let root = graph.push(Node::Assign { slot: from, value: twice, next: root });
        let root = graph.push(Node::Assign { slot: counts, value: byte, next: root });
        graph.set_root(root);
        let highest = limits(&graph);
        // One grows without end, so nothing is known of any.
        assert_eq!([old, more, taken].map(|id| highest[id.0 as usize]), [u32::MAX; 3]);
        let mut graph = Graph::new(1);
        let (first, second) = (graph.slot(), graph.slot());
        let byte = graph.load(None, 0, Width::Byte);
        let read = value(&mut graph, first);
        let sum = graph.with(Operation::Add, read, 2);
        let taken = value(&mut graph, second);
        let root = graph.equals(taken, 7, (Graph::ACCEPT, Graph::REFUSE), TermId(0));
        let root = graph.push(Node::Assign { slot: second, value: sum, next: root });
        let root = graph.push(Node::Assign { slot: first, value: byte, next: root });
        graph.set_root(root);
        let highest = limits(&graph);
        assert_eq!([read, taken].map(|id| highest[id.0 as usize]), [0xff, 0x101]);
    }

    /// One check of the length for all that a packet needs to be accepted, on any way, and no more.
    #[test]
    fn a_node_needs_what_all_ways_to_acceptance_load() {
        let mut graph = Graph::new(1);
        let term = TermId(0);
        let [near, far] = [20, 40].map(|offset| graph.load(None, offset, Width::Word));
        let base = graph.load(None, 60, Width::Byte);
        let behind = graph.load(Some(base), 1000, Width::Half);
        let length = graph.value(Value::Length);
        let one = graph.equals(far, 1, (Graph::ACCEPT, Graph::REFUSE), term);
        let other = graph.equals(near, 1, (Graph::ACCEPT, Graph::REFUSE), term);
        let either = graph.compare(Relation::Greater, length, near, (one, other), term);
        let skipped = graph.equals(length, 100, (one, Graph::ACCEPT), term);
        let never = graph.equals(far, 5, (Graph::REFUSE, Graph::REFUSE), term);
        let indirect = graph.equals(behind, 5, (other, never), term);
        let read = graph.push(Node::Read { value: far, next: skipped });
        let analysis = Analysis::new(&graph);
        let needs =
            [one, other, either, skipped, never, indirect, read].map(|node| analysis.needs[node.0 as usize]);
        assert_eq!(needs, [44, 24, 24, 0, NEVER, 61, 44]);
        assert!(analysis.hopeless(never) && !analysis.hopeless(skipped));
    }
}
