//! The order of the nodes in the program.
//!
//! All jumps go forward. Behind a node come first the nodes that it goes on at if its answer is yes, as far as they were not
//! needed further down, so that a node without a question stands in front of where it goes on.

use crate::graph::{Graph, NodeId};

/// The nodes that are reached, in the order of the program; those that answer come last.
pub(super) fn layout(graph: &Graph) -> Vec<NodeId> {
    let mut seen = vec![false; graph.nodes().len()];
    for end in [Graph::REFUSE, Graph::ACCEPT] {
        seen[end.0 as usize] = true;
    }
    let mut ends = Vec::new();
    let mut order = Vec::new();
    // Each node with those of its successors that were not looked at: a walk in depth, in which a node is finished when all
    // behind it are.
    let mut path = Vec::new();
    let mut enter = |id: NodeId, path: &mut Vec<(NodeId, Vec<NodeId>)>| {
        if id == Graph::ACCEPT || id == Graph::REFUSE {
            ends.push(id);
        } else if !std::mem::replace(&mut seen[id.0 as usize], true) {
            path.push((id, graph.node(id).successors().collect()));
        }
    };
    enter(graph.root(), &mut path);
    while let Some((id, pending)) = path.last_mut() {
        let id = *id;
        // The way for no is looked at first, and so comes last.
        match pending.pop() {
            Some(next) => enter(next, &mut path),
            None => {
                order.push(id);
                path.pop();
            }
        }
    }
    order.reverse();
    order.extend([Graph::ACCEPT, Graph::REFUSE].into_iter().filter(|end| ends.contains(end)));
    order
}
