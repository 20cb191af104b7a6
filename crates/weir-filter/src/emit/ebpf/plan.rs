//! What is known of a graph before code is made: which nodes are reached, how far into the packet they look, how they are
//! nested.

use super::LINEAR_MOST;
use crate::graph::check::{operands, values_of};
use crate::graph::{Graph, Node, Value, ValueId};

/// Answers about each node or value, by its number.
#[derive(Debug)]
pub(super) struct Plan {
    /// Bytes that a packet must have, or it is refused from here on whatever else is true of it. `u32::MAX`: it is refused.
    pub(super) certain: Vec<u32>,
    /// How many answers the verifier keeps waiting below a node if it looks at the simpler way first.
    pub(super) waiting: Vec<u32>,
    /// Of each value, the results that are kept while it is computed, the heavier operand first (Sethi and Ullman).
    pub(super) kept: Vec<usize>,
    /// Most of these for a value that is computed.
    pub(super) most_kept: usize,
    /// Values that are computed, those of several nodes several times.
    pub(super) size: u64,
    /// Questions.
    pub(super) branches: usize,
}

impl Plan {
    pub(super) fn new(graph: &Graph) -> Self {
        let (mut ends, mut kept, mut sizes) = (Vec::new(), Vec::new(), Vec::<u64>::new());
        for value in graph.values() {
            ends.push(end(*value, &ends));
            kept.push(keeps(graph, *value, &kept));
            let below =
                operands(*value).iter().fold(1_u64, |sum, id| sum.saturating_add(sizes[id.0 as usize]));
            sizes.push(below);
        }
        let mut plan = Self {
            certain: vec![u32::MAX, 0],
            waiting: vec![0, 0],
            kept,
            most_kept: 0,
            size: 0,
            branches: 0,
        };
        for node in &graph.nodes()[2..] {
            let values = values_of(*node);
            let own = values.iter().map(|id| ends[id.0 as usize]).max().unwrap_or(0);
            let after = node.successors().map(|next| plan.certain[next.0 as usize]).min().unwrap_or(0);
            plan.certain.push(own.max(after));
            let waiting: Vec<u32> = node.successors().map(|next| plan.waiting[next.0 as usize]).collect();
            plan.waiting.push(match waiting[..] {
                [a, b] => (a.min(b) + 1).max(a.max(b)),
                [a] => a,
                _ => 0,
            });
            plan.branches += usize::from(matches!(node, Node::Branch { .. }));
            for id in values {
                plan.size = plan.size.saturating_add(sizes[id.0 as usize]);
                plan.most_kept = plan.most_kept.max(plan.kept[id.0 as usize]);
            }
        }
        plan
    }
}

/// Where the furthest load at a fixed place ends that is part of the value.
fn end(value: Value, ends: &[u32]) -> u32 {
    let own = match value {
        Value::Load { base: None, offset, width } => {
            offset.checked_add(width as u32).filter(|end| *end <= LINEAR_MOST).unwrap_or(0)
        }
        _ => 0,
    };
    operands(value).iter().map(|id| ends[id.0 as usize]).fold(own, u32::max)
}

fn keeps(graph: &Graph, value: Value, kept: &[usize]) -> usize {
    let of = |id: ValueId| kept[id.0 as usize];
    match value {
        Value::Load { base: Some(base), .. } => of(base),
        Value::Binary { left, right, .. } => {
            if is_leaf(graph, right) {
                of(left)
            } else if is_leaf(graph, left) {
                of(right)
            } else if of(left) == of(right) {
                of(left) + 1
            } else {
                of(left).max(of(right))
            }
        }
        _ => 0,
    }
}

/// Whether a value is had without a call and without a result in between, whatever the context.
fn is_leaf(graph: &Graph, id: ValueId) -> bool {
    matches!(graph.get(id), Value::Constant(_) | Value::Slot(_) | Value::Meta(_))
}
