//! The bytes that a packet must have, from a node on, to be accepted, or get any verdict but rejection.
//!
//! A packet that is rejected for its length may as well be rejected later: bytes loaded on all paths to acceptance need
//! not be loaded early.

use crate::graph::{Graph, Node, NodeId, Value, ValueId, Verdict};

/// For each node, the bytes loaded on all paths from it to acceptance.
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
                Node::End(Verdict::REFUSE) => u64::MAX,
                Node::End(_) => 0,
                _ => least.unwrap_or(0).max(own.unwrap_or(0)),
            });
        }
        Self { bytes }
    }

    /// Returns the length that a packet needs to be accepted from `node` on.
    pub(super) fn bytes(&self, node: NodeId) -> u64 {
        self.bytes[node.0 as usize]
    }

    /// Returns whether the nodes after `node`, which reads `value`, reject whenever that does.
    pub(super) fn covers(&self, graph: &Graph, node: Node, value: ValueId) -> bool {
        let Some(next) = node.successors().next() else { return false };
        match graph.get(value) {
            _ if !graph.may_refuse(value) => true,
            Value::Load { base: None, offset, width } => self.bytes(next) >= u64::from(offset) + width as u64,
            _ => graph.node(next).values().any(|other| contains(graph, other, value)),
        }
    }
}

/// Computes the bytes that each value's loads from fixed offsets need.
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

/// Depth to which a value is searched.
const DEPTH: usize = 8;

/// Returns whether evaluating `outer` clearly evaluates `inner`.
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
