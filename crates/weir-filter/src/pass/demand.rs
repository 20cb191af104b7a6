//! How many bytes a packet must have, from a node on, to be accepted.
//!
//! Who is refused for want of bytes may as well be refused later: what is loaded on all ways to acceptance need not be loaded
//! early.

use crate::graph::{Graph, Node, NodeId, Value, ValueId};

/// Of each node, the bytes that all ways from it to acceptance load.
#[derive(Debug)]
pub(super) struct Demand {
    bytes: Vec<u64>,
}

impl Demand {
    pub(super) fn new(graph: &Graph) -> Self {
        let ends = ends(graph);
        let mut bytes: Vec<u64> = Vec::with_capacity(graph.nodes().len());
        for &node in graph.nodes() {
            let least = node.successors().map(|next| bytes[next.0 as usize]).min();
            let own = node.values().map(|value| ends[value.0 as usize]).max();
            bytes.push(match node {
                Node::Refuse => u64::MAX,
                Node::Accept => 0,
                _ => least.unwrap_or(0).max(own.unwrap_or(0)),
            });
        }
        Self { bytes }
    }

    /// Bytes without which no way from `node` leads to acceptance.
    pub(super) fn bytes(&self, node: NodeId) -> u64 {
        self.bytes[node.0 as usize]
    }

    /// Whether what follows `node`, which reads `value`, refuses whenever that does.
    pub(super) fn covers(&self, graph: &Graph, node: Node, value: ValueId) -> bool {
        let Some(next) = node.successors().next() else { return false };
        match graph.get(value) {
            _ if !graph.may_refuse(value) => true,
            Value::Load { base: None, offset, width } => self.bytes(next) >= u64::from(offset) + width as u64,
            _ => graph.node(next).values().any(|other| contains(graph, other, value)),
        }
    }
}

/// Of each value, how many bytes loads from fixed places need.
pub(super) fn ends(graph: &Graph) -> Vec<u64> {
    let mut ends: Vec<u64> = Vec::with_capacity(graph.values().len());
    for &value in graph.values() {
        ends.push(match value {
            Value::Load { base: None, offset, width } => u64::from(offset) + width as u64,
            _ => value.operands().map(|operand| ends[operand.0 as usize]).max().unwrap_or(0),
        });
    }
    ends
}

/// How deep a value is looked for inside another.
const DEPTH: usize = 8;

/// Whether evaluating `outer` evaluates `inner`, as far as it is easily seen.
fn contains(graph: &Graph, outer: ValueId, inner: ValueId) -> bool {
    let mut level = vec![outer];
    for _ in 0..DEPTH {
        if level.contains(&inner) {
            return true;
        }
        level = level
            .iter()
            .flat_map(|value| graph.get(*value).operands())
            .filter(|value| *value >= inner)
            .collect();
        level.dedup();
        if level.len() > DEPTH {
            return false;
        }
    }
    false
}
