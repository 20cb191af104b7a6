//! Analysis before code generation: reachable nodes, how far into the packet they look, and how deeply they are nested.

use super::LINEAR_MOST;
use crate::graph::{Graph, Node, Operation, Value, ValueId};

/// Facts about each node or value, by number.
#[derive(Debug)]
pub(super) struct Analysis {
    /// For each node, the length that a packet needs to be accepted from there on, whatever its content; `u32::MAX` if
    /// none is accepted.
    pub(super) certain: Vec<u32>,
    /// For each node, the branches that the verifier keeps pending below it if it follows the simpler one first.
    pub(super) waiting: Vec<u32>,
    /// For each value, the number of intermediate results during its evaluation, heavier operand first (Sethi and
    /// Ullman).
    pub(super) kept: Vec<usize>,
    /// Maximum of `kept` over the evaluated values.
    pub(super) most_kept: usize,
    /// Number of value evaluations, counting a value once for each node.
    pub(super) size: u64,
    /// Approximate number of conditional jumps, on the fast path and on the slow path.
    pub(super) jumps: [u64; 2],
    /// Whether the fast path may not suffice even for packets with a single buffer.
    pub(super) needs_slow: bool,
}

impl Analysis {
    pub(super) fn new(graph: &Graph) -> Self {
        let (mut ends, mut kept) = (Vec::new(), Vec::new());
        let mut sizes = Vec::<u64>::new();
        let mut jumps = [Vec::<u64>::new(), Vec::new()];
        for value in graph.values() {
            ends.push(end(*value, &ends));
            kept.push(keeps(graph, *value, &kept));
            let all = |own: u64, of: &[u64]| {
                value.operands().fold(own, |sum, id| sum.saturating_add(of[id.0 as usize]))
            };
            sizes.push(all(1, &sizes));
            for (jumps, own) in jumps.iter_mut().zip(own_jumps(*value)) {
                jumps.push(all(own, jumps));
            }
        }
        let mut analysis = Self {
            certain: vec![u32::MAX, 0],
            waiting: vec![0, 0],
            kept,
            most_kept: 0,
            size: 0,
            jumps: [0; 2],
            needs_slow: false,
        };
        for node in &graph.nodes()[2..] {
            let own = node.values().map(|id| ends[id.0 as usize]).max().unwrap_or(0);
            let after = node.successors().map(|next| analysis.certain[next.0 as usize]).min().unwrap_or(0);
            analysis.certain.push(own.max(after));
            let waiting: Vec<u32> = node.successors().map(|next| analysis.waiting[next.0 as usize]).collect();
            analysis.waiting.push(match waiting[..] {
                [a, b] => (a.min(b) + 1).max(a.max(b)),
                [a] => a,
                _ => 0,
            });
            analysis.jumps =
                analysis.jumps.map(|jumps| jumps + u64::from(matches!(node, Node::Branch { .. })));
            for id in node.values() {
                analysis.size = analysis.size.saturating_add(sizes[id.0 as usize]);
                for (all, jumps) in analysis.jumps.iter_mut().zip(&jumps) {
                    *all = all.saturating_add(jumps[id.0 as usize]);
                }
                analysis.most_kept = analysis.most_kept.max(analysis.kept[id.0 as usize]);
            }
        }
        analysis.needs_slow = graph.values().iter().any(|value| match value {
            Value::Load { base: None, .. } => end(*value, &[]) == 0,
            Value::Load { base: Some(_), .. } => true,
            _ => false,
        });
        analysis
    }
}

/// Returns the conditional jumps for a value without its operands, on the fast path and on the slow path. One check
/// covers many loads at fixed offsets.
fn own_jumps(value: Value) -> [u64; 2] {
    match value {
        Value::Load { base: Some(_), .. } => [2, 1],
        Value::Load { base: None, .. } => [0, 1],
        Value::Binary {
            operation: Operation::Divide | Operation::Remainder | Operation::ShiftLeft | Operation::ShiftRight,
            ..
        } => [1, 1],
        _ => [0, 0],
    }
}

/// Returns the end of the furthest load at a fixed offset within the value.
fn end(value: Value, ends: &[u32]) -> u32 {
    let own = match value {
        Value::Load { base: None, offset, width } => {
            offset.checked_add(width as u32).filter(|end| *end <= LINEAR_MOST).unwrap_or(0)
        }
        _ => 0,
    };
    value.operands().map(|id| ends[id.0 as usize]).fold(own, u32::max)
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

/// Returns whether a value needs neither a call nor an intermediate result in any context.
fn is_leaf(graph: &Graph, id: ValueId) -> bool {
    matches!(graph.get(id), Value::Constant(_) | Value::Slot(_) | Value::Meta(_))
}
