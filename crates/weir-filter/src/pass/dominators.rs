//! Dominators: the nodes on all paths to a node.

use crate::graph::{Graph, NodeId};

/// The dominator tree of the reachable nodes. A node's parent is its immediate dominator.
#[derive(Debug)]
pub(super) struct Dominators {
    /// Children of each node, in an order in which edges go forward.
    pub(super) children: Vec<Vec<NodeId>>,
    /// Edges to each node: the source, and whether it is the yes branch or the only successor.
    pub(super) edges: Vec<Vec<(NodeId, bool)>>,
}

/// A tree that finds common ancestors in logarithmic time: each node knows its parent and one distant ancestor (Myers,
/// "An applicative random-access stack", 1983).
struct Tree {
    depth: Vec<u32>,
    parent: Vec<usize>,
    far: Vec<usize>,
}

impl Dominators {
    pub(super) fn new(graph: &Graph) -> Self {
        let count = graph.nodes().len();
        let root = graph.root().0 as usize;
        let mut tree = Tree { depth: vec![0; count], parent: vec![root; count], far: vec![root; count] };
        let mut children = vec![Vec::new(); count];
        let mut edges: Vec<Vec<(NodeId, bool)>> = vec![Vec::new(); count];
        for index in (0..=root).rev() {
            let id = NodeId(u32::try_from(index).expect("nodes are counted in 32 bits"));
            if index != root {
                let mut from = edges[index].iter().map(|(from, _)| from.0 as usize);
                let Some(first) = from.next() else { continue };
                let parent = from.fold(first, |common, other| tree.common(common, other));
                tree.hang(index, parent);
                children[parent].push(id);
            }
            for (next, answer) in graph.node(id).successors().zip([true, false]) {
                edges[next.0 as usize].push((id, answer));
            }
        }
        Self { children, edges }
    }
}

impl Tree {
    fn hang(&mut self, index: usize, parent: usize) {
        self.parent[index] = parent;
        self.depth[index] = self.depth[parent] + 1;
        let (far, further) = (self.far[parent], self.far[self.far[parent]]);
        let even = self.depth[parent] - self.depth[far] == self.depth[far] - self.depth[further];
        self.far[index] = if even { further } else { parent };
    }

    fn common(&self, a: usize, b: usize) -> usize {
        let (mut low, mut high) = if self.depth[a] >= self.depth[b] { (a, b) } else { (b, a) };
        while self.depth[low] > self.depth[high] {
            let far = self.far[low];
            low = if self.depth[far] >= self.depth[high] { far } else { self.parent[low] };
        }
        while low != high {
            let apart = self.far[low] != self.far[high];
            (low, high) =
                if apart { (self.far[low], self.far[high]) } else { (self.parent[low], self.parent[high]) };
        }
        low
    }
}
