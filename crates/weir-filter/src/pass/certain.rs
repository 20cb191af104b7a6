//! Turns nodes that reject every packet into [`Graph::REFUSE`].
//!
//! Reason: filters that never match become recognisable, and no machine is given an instruction that it does not
//! accept: a division by the constant zero, or an offset that is negative to the kernel.

use crate::graph::{Graph, Operation, Value};

/// Larger than any packet.
const BEYOND: u32 = 1 << 31;

/// Returns the graph without nodes that reject every packet.
pub fn certain(graph: &Graph) -> Graph {
    let mut refuses: Vec<bool> = Vec::with_capacity(graph.values().len());
    for &value in graph.values() {
        let itself = match value {
            Value::Load { base: None, offset, .. } => offset >= BEYOND,
            Value::Binary { operation: Operation::Divide | Operation::Remainder, right, .. } => {
                graph.as_constant(right) == Some(0)
            }
            _ => false,
        };
        refuses.push(itself || value.operands().any(|operand| refuses[operand.0 as usize]));
    }
    let mut certain = graph.without_nodes();
    let mut nodes = vec![Graph::REFUSE, Graph::ACCEPT];
    for node in &graph.nodes()[2..] {
        let refused = node.values().any(|value| refuses[value.0 as usize]);
        let node = node.map(|value| value, |next| nodes[next.0 as usize]);
        nodes.push(if refused { Graph::REFUSE } else { certain.push(node) });
    }
    certain.set_root(nodes[graph.root().0 as usize]);
    certain
}
