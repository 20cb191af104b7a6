//! Reorders consecutive tests with a common exit by value, so that each value is loaded once.
//!
//! `host A or host B` tests source and destination for A, then for B. Such tests may be reordered, with one
//! restriction: a load that may reject must not move before a test that accepts without it, nor after one that accepts.
//! Tests therefore stay in order up to the last value that is loaded for the first time, unless its bytes are known to
//! be there, or the exit needs as many bytes anyway. (libpcap's optimiser ignores this.)

use foldhash::{HashMap, HashSet};

use super::demand::{Demand, ends};
use crate::graph::{Graph, Node, NodeId, TermId, Test, Value, ValueId};

/// A test in a chain.
#[derive(Clone, Copy)]
struct Link {
    test: Test,
    /// The answer that leaves the chain.
    leaves_if: bool,
    term: TermId,
}

/// Returns the graph with its chains of tests reordered.
pub fn gather(graph: &Graph) -> Graph {
    let gatherer = Gatherer::new(graph);
    let mut nodes = graph.nodes().to_vec();
    let mut seen = vec![false; nodes.len()];
    for index in (2..nodes.len()).rev().filter(|index| gatherer.reached[*index]) {
        if seen[index] {
            continue;
        }
        let head = NodeId(u32::try_from(index).expect("nodes are counted in 32 bits"));
        let Some((leave, chain)) = gatherer.chain(head) else { continue };
        chain.iter().for_each(|id| seen[id.0 as usize] = true);
        gatherer.reorder(leave, &chain, &mut nodes);
    }
    let mut gathered = graph.without_nodes();
    nodes.into_iter().skip(2).for_each(|node| _ = gathered.push(node));
    gathered.set_root(graph.root());
    gathered
}

struct Gatherer<'a> {
    graph: &'a Graph,
    demand: Demand,
    /// Bytes that each value needs.
    ends: Vec<u64>,
    /// Bytes known to be in the packet when each node is reached.
    there: Vec<u64>,
    reached: Vec<bool>,
    ways_to: Vec<u32>,
}

impl<'a> Gatherer<'a> {
    fn new(graph: &'a Graph) -> Self {
        let count = graph.nodes().len();
        let reached = graph.reached();
        let ends = ends(graph);
        let mut there = vec![u64::MAX; count];
        there[graph.root().0 as usize] = 0;
        let mut ways_to = vec![0; count];
        for index in (2..count).rev().filter(|index| reached[*index]) {
            let node = graph.nodes()[index];
            let own = node.values().map(|value| ends[value.0 as usize]).max();
            let after = there[index].max(own.unwrap_or(0));
            for next in node.successors() {
                let next = next.0 as usize;
                there[next] = there[next].min(after);
                ways_to[next] += 1;
            }
        }
        Self { graph, demand: Demand::new(graph), ends, there, reached, ways_to }
    }

    /// Returns the longest chain of tests that begins with `head`, and its common exit.
    fn chain(&self, head: NodeId) -> Option<(NodeId, Vec<NodeId>)> {
        let Node::Branch { then, other, .. } = self.graph.node(head) else { return None };
        let chain = [(then, other), (other, then)].into_iter().find_map(|(leave, next)| {
            let chain = self.chain_to(head, leave, next);
            (chain.len() > 1).then_some((leave, chain))
        });
        chain.filter(|(_, chain)| chain.len() > 2)
    }

    fn chain_to(&self, head: NodeId, leave: NodeId, mut next: NodeId) -> Vec<NodeId> {
        let mut chain = vec![head];
        while let Node::Branch { then, other, .. } = self.graph.node(next) {
            if self.ways_to[next.0 as usize] != 1 || (then != leave && other != leave) || then == other {
                break;
            }
            chain.push(next);
            next = if then == leave { other } else { then };
        }
        chain
    }

    fn reorder(&self, leave: NodeId, chain: &[NodeId], nodes: &mut [Node]) {
        let links: Vec<Link> = chain
            .iter()
            .map(|id| match self.graph.node(*id) {
                Node::Branch { test, then, term, .. } => Link { test, leaves_if: then == leave, term },
                node => unreachable!("{node:?} asks nothing"),
            })
            .collect();
        let known = self.there[chain[0].0 as usize].max(self.demand.bytes(leave));
        let fixed = self.fixed(&links, known);
        let rank = self.ranks(&links, fixed);
        let mut order: Vec<usize> = (0..links.len()).collect();
        order[fixed..].sort_by_key(|index| rank[*index]);
        for (place, index) in chain.iter().zip(order) {
            let Link { test, leaves_if, term } = links[index];
            let node = &mut nodes[place.0 as usize];
            let Node::Branch { then, other, .. } = *node else { unreachable!("it is in a chain") };
            let stay = if then == leave { other } else { then };
            let (then, other) = if leaves_if { (leave, stay) } else { (stay, leave) };
            *node = Node::Branch { test, then, other, term };
        }
    }

    /// Returns how many links must stay in place; `known` bytes of the packet are there or will be needed anyway.
    fn fixed(&self, links: &[Link], known: u64) -> usize {
        let mut there = known;
        let mut seen: HashSet<ValueId> = HashSet::default();
        let mut last = None;
        let mut fixed = 0;
        for (index, link) in links.iter().enumerate() {
            for value in values(link.test) {
                let certain = !self.graph.may_refuse(value) || last == Some(value);
                if certain || (self.is_fixed_load(value) && self.ends[value.0 as usize] <= there) {
                    continue;
                }
                there = there.max(self.ends[value.0 as usize]);
                if !self.is_fixed_load(value) {
                    if !seen.insert(value) {
                        continue;
                    }
                    last = Some(value);
                }
                // It must stay after all tests that leave without it.
                fixed = index + 1;
            }
        }
        fixed
    }

    /// Returns whether only a load from a fixed offset can make it reject.
    fn is_fixed_load(&self, value: ValueId) -> bool {
        let Value::Load { base: None, .. } = self.graph.get(self.root(value)) else { return false };
        true
    }

    /// Strips operations with constants from `value`.
    fn root(&self, mut value: ValueId) -> ValueId {
        while let Value::Binary { operation, left, right } = self.graph.get(value) {
            if self.graph.as_constant(right).is_none_or(|number| operation.apply(1, number).is_none()) {
                break;
            }
            value = left;
        }
        value
    }

    /// Returns a sort key for each link that groups tests of the same value, beginning with the value loaded last.
    fn ranks(&self, links: &[Link], fixed: usize) -> Vec<(usize, usize)> {
        let mut roots: HashMap<ValueId, usize> = HashMap::default();
        let mut shapes: HashMap<Option<ValueId>, usize> = HashMap::default();
        if let Some(last) = fixed.checked_sub(1) {
            let value = values(links[last].test)[0];
            roots.insert(self.root(value), 0);
        }
        links
            .iter()
            .map(|link| {
                let value = values(link.test)[0];
                let root = self.root(value);
                let next = roots.len();
                let by_root = *roots.entry(root).or_insert(next);
                let next = shapes.len() + 1;
                let by_shape = if value == root { 0 } else { *shapes.entry(Some(value)).or_insert(next) };
                (by_root, by_shape)
            })
            .collect()
    }
}

fn values(test: Test) -> Vec<ValueId> {
    match test {
        Test::Compare { left, right, .. } => vec![left, right],
        Test::Member { key, .. } => key.to_vec(),
    }
}
