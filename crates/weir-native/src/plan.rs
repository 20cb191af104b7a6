//! Analysis before code generation: reachable nodes, dominators, ranges of values, and the packet length needed for
//! acceptance.

use weir_filter::graph::{Graph, Meta, Node, NodeId, Operation, Test, Value, ValueId, Width};

/// The need of a node from which no packet is accepted.
pub(crate) const NEVER: u64 = u64::MAX;

/// Rounds of refining the limits of slots; limits that still grow after that are dropped.
const ROUNDS: usize = 40;

/// Facts about a graph.
pub(crate) struct Plan {
    /// For each reachable node that does something, the nodes that it immediately dominates, in execution order.
    pub(crate) dominated: Vec<Vec<NodeId>>,
    /// Bytes a packet needs to be accepted from each node on; [`NEVER`] if none is accepted.
    pub(crate) needs: Vec<u64>,
    /// Upper bound of each value.
    pub(crate) limits: Vec<u32>,
}

impl Plan {
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
        Node::Refuse | Node::Accept => ([ValueId(0); 4], 0),
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
            Node::Refuse => NEVER,
            Node::Accept => 0,
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
struct Place {
    parent: usize,
    depth: usize,
    jump: usize,
}

/// Returns the nodes that each node immediately dominates, except acceptance, rejection, and nodes from which no packet
/// is accepted.
fn dominated(graph: &Graph, needs: &[u64]) -> Vec<Vec<NodeId>> {
    let count = graph.nodes().len();
    let (mut places, mut dominated) = (vec![Place::default(); count], vec![Vec::new(); count]);
    let root = graph.root().0 as usize;
    let mut dominators = vec![None; count];
    places[root] = Place { parent: root, depth: 0, jump: root };
    // Predecessors have larger numbers, so a node's dominator is known by the time it is visited.
    for index in (2..=root).rev() {
        if let Some(parent) = dominators[index] {
            let above: Place = places[parent];
            let (first, second) = (places[above.jump], places[places[above.jump].jump]);
            let even = above.depth - first.depth == first.depth - second.depth;
            places[index] =
                Place { parent, depth: above.depth + 1, jump: if even { first.jump } else { parent } };
            dominated[parent].push(graph_id(index));
        } else if index != root {
            continue;
        }
        if needs[index] == NEVER {
            continue;
        }
        for next in graph.nodes()[index].successors().map(|next| next.0 as usize) {
            dominators[next] = Some(dominators[next].map_or(index, |other| nearest(&places, index, other)));
        }
    }
    dominated
}

/// Returns the nearest common dominator.
fn nearest(places: &[Place], mut one: usize, mut other: usize) -> usize {
    let raised = |mut node: usize, depth: usize| {
        while places[node].depth > depth {
            let place = places[node];
            node = if places[place.jump].depth >= depth { place.jump } else { place.parent };
        }
        node
    };
    one = raised(one, places[other].depth);
    other = raised(other, places[one].depth);
    while one != other {
        let (a, b) = (places[one], places[other]);
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
