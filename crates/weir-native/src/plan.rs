//! What is known of a graph before code is made: which nodes are reached and which of them before which, how large values
//! can be, and how long a packet has to be to be accepted.

use weir_filter::graph::{Graph, Meta, Node, NodeId, Operation, Test, Value, ValueId, Width};

/// Needed by what no packet passes.
pub(crate) const NEVER: u64 = u64::MAX;

/// How often limits of slots are refined; what still grows then is unlimited.
const ROUNDS: usize = 40;

/// What is known of a graph.
pub(crate) struct Plan {
    /// Of each node that is reached and asks something, those that it is the last to dominate, in the order in which they
    /// are asked.
    pub(crate) dominated: Vec<Vec<NodeId>>,
    /// Of each node, how many bytes a packet must have to be accepted from there on; [`NEVER`]: none is.
    pub(crate) needs: Vec<u64>,
    /// Of each value, the largest that it can be.
    pub(crate) limits: Vec<u32>,
}

impl Plan {
    pub(crate) fn new(graph: &Graph) -> Self {
        let needs = needs(graph);
        Self { dominated: dominated(graph, &needs), limits: limits(graph), needs }
    }

    /// A packet gets no further than here.
    pub(crate) fn hopeless(&self, node: NodeId) -> bool {
        self.needs[node.0 as usize] == NEVER
    }
}

/// What a node evaluates.
pub(crate) fn evaluated(node: Node) -> impl Iterator<Item = ValueId> {
    let (values, count) = match node {
        Node::Refuse | Node::Accept => ([ValueId(0); 4], 0),
        Node::Branch { test: Test::Compare { left, right, .. }, .. } => ([left, right, left, left], 2),
        Node::Branch { test: Test::Member { key, .. }, .. } => (key, key.len()),
        Node::Assign { value, .. } | Node::Read { value, .. } => ([value; 4], 1),
    };
    values.into_iter().take(count)
}

/// What a value is made of.
pub(crate) fn operands(value: Value) -> impl Iterator<Item = ValueId> {
    let (first, second) = match value {
        Value::Load { base, .. } => (base, None),
        Value::Binary { left, right, .. } => (Some(left), Some(right)),
        Value::Constant(_) | Value::Length | Value::Meta(_) | Value::Slot(_) => (None, None),
    };
    first.into_iter().chain(second)
}

/// A load at a fixed place refuses shorter packets, wherever it stands on a path: so what all paths from here to acceptance
/// load can be asked for here, at once.
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

/// Of a node in the tree of dominators, where it is. Jumps lead to ancestors, as far as the structure of the depth's digits
/// says, so that any ancestor is found in logarithmic time (Myers, "An applicative random-access stack", 1983): a long chain of
/// terms with one way out costs no square of its length.
#[derive(Clone, Copy, Default)]
struct Place {
    parent: usize,
    depth: usize,
    jump: usize,
}

/// Of each node, those that it is the last to dominate. Acceptance, refusal and what leads nowhere else are left out.
fn dominated(graph: &Graph, needs: &[u64]) -> Vec<Vec<NodeId>> {
    let count = graph.nodes().len();
    let (mut places, mut dominated) = (vec![Place::default(); count], vec![Vec::new(); count]);
    let root = graph.root().0 as usize;
    let mut dominators = vec![None; count];
    places[root] = Place { parent: root, depth: 0, jump: root };
    // Who leads to a node has a larger number, so its dominator is known when its turn comes.
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

/// The last node that dominates both.
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

/// Of each value, the largest that it can be. A slot is as large as what is assigned to it, which may be made of other slots.
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

/// The largest result for operands up to `left` and `right`; `constant`: what the right one is, if that is known.
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
