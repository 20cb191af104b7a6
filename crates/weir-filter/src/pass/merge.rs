//! Merges identical nodes, and drops branches with identical targets and unreachable nodes.
//!
//! Reason: terms often end in the same tests, and threading leaves many behind.

use foldhash::HashMap;

use super::demand::Demand;
use crate::graph::{Graph, Node, NodeId, TermId};

/// Returns the graph without duplicate nodes.
pub fn merge(graph: &Graph) -> Graph {
    let reached = graph.reached();
    let demand = Demand::new(graph);
    let mut merged = graph.without_nodes();
    let mut known: HashMap<Node, NodeId> = HashMap::default();
    let mut nodes = vec![Graph::REFUSE; graph.nodes().len()];
    nodes[Graph::ACCEPT.0 as usize] = Graph::ACCEPT;
    for (index, node) in graph.nodes().iter().enumerate().skip(2).filter(|(index, _)| reached[*index]) {
        nodes[index] = match node.map(|value| value, |next| nodes[next.0 as usize]) {
            Node::Read { value, next } if next == Graph::REFUSE || demand.covers(graph, *node, value) => next,
            Node::Branch { then, other, .. } if then == other => {
                node.values().rev().fold(then, |next, value| {
                    if next == Graph::REFUSE || !graph.may_refuse(value) {
                        return next;
                    }
                    once(&mut merged, &mut known, Node::Read { value, next })
                })
            }
            node => once(&mut merged, &mut known, node),
        };
    }
    merged.set_root(nodes[graph.root().0 as usize]);
    merged
}

/// Returns the existing node that differs at most in its term, or a new one.
fn once(graph: &mut Graph, known: &mut HashMap<Node, NodeId>, node: Node) -> NodeId {
    let key = match node {
        Node::Branch { test, then, other, .. } => Node::Branch { test, then, other, term: TermId::NONE },
        node => node,
    };
    *known.entry(key).or_insert_with(|| graph.push(node))
}
