//! Order of the nodes in the program.
//!
//! All jumps go forward. A node is followed by the nodes reached from its yes branch, except those also needed further
//! down, so a node without a test stands right before its successor.

use crate::graph::{Graph, NodeId};

/// Returns the reachable nodes in program order, those that return last.
pub(super) fn layout(graph: &Graph) -> Vec<NodeId> {
    let mut seen = vec![false; graph.nodes().len()];
    for end in [Graph::REFUSE, Graph::ACCEPT] {
        seen[end.0 as usize] = true;
    }
    let mut ends = Vec::new();
    let mut order = Vec::new();
    // A depth-first walk: each node with its unvisited successors. A node is finished once everything after it is.
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
        // The no branch is visited first, and so comes last.
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
