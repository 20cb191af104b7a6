//! Skips tests whose answer is already known: paths continue where the answer leads.
//!
//! Reason: each term of an expression locates the headers again, so most tests repeat earlier ones. The facts known at
//! a node are those established on all paths to it. Time is proportional to the number of nodes: they are visited along
//! the dominator tree, and only if a path to them is left.

use std::rc::Rc;

use super::dominators::Dominators;
use super::facts::{Facts, Insight, Scope};
use crate::graph::{Graph, Node, NodeId, Relation, Test, Value, ValueId};

/// Maximum number of candidates for a value to follow one by one.
const MOST_MEMBERS: usize = 16;

/// Returns the graph without tests whose answer is known.
pub fn thread(graph: &Graph) -> Graph {
    thread_by(graph, Insight::Ranges)
}

/// Returns the graph without tests whose answer this insight gives.
pub(super) fn thread_by(graph: &Graph, insight: Insight) -> Graph {
    let mut threader = Threader {
        graph,
        dominators: Dominators::new(graph),
        facts: Facts::new(graph, insight),
        replacements: vec![None; graph.nodes().len()],
        steps_left: 64 + 16 * graph.nodes().len(),
    };
    let root = threader.follow(graph.root());
    threader.reach(root);
    threader.walk();
    threader.build(root)
}

struct Threader<'a> {
    graph: &'a Graph,
    dominators: Dominators,
    facts: Facts<'a>,
    /// Replacement of each node that is still reachable.
    replacements: Vec<Option<Replacement>>,
    /// Limits the work: once used up, tests stay.
    steps_left: usize,
}

#[derive(Clone)]
enum Replacement {
    /// Not determined yet, or an end.
    Reached,
    /// The node with these successors.
    Node(NodeId, NodeId),
    /// No test: evaluates the values and continues.
    Reads(Vec<ValueId>, NodeId),
}

enum Visit {
    Enter(NodeId),
    Leave(Scope),
}

impl Threader<'_> {
    fn walk(&mut self) {
        let mut visits = vec![Visit::Enter(self.graph.root())];
        while let Some(visit) = visits.pop() {
            match visit {
                Visit::Leave(scope) => self.facts.forget(scope),
                Visit::Enter(id) => {
                    visits.push(Visit::Leave(self.facts.scope()));
                    self.learn_from_edges(id);
                    if self.replacements[id.0 as usize].is_some() {
                        self.replacements[id.0 as usize] = Some(self.replace(id));
                    }
                    self.learn_from_node(self.graph.node(id));
                    let children = std::mem::take(&mut self.dominators.children[id.0 as usize]);
                    visits.extend(children.into_iter().rev().map(Visit::Enter));
                }
            }
        }
    }

    fn reach(&mut self, id: NodeId) -> NodeId {
        self.replacements[id.0 as usize].get_or_insert(Replacement::Reached);
        id
    }

    fn learn_from_edges(&mut self, id: NodeId) {
        let edges = &self.dominators.edges[id.0 as usize];
        if let [(from, answer)] = edges[..] {
            if let Node::Branch { test, .. } = self.graph.node(from) {
                self.facts.answered(test, answer);
            }
            return;
        }
        if edges.is_empty() || edges.len() > MOST_MEMBERS {
            return;
        }
        let equalities: Option<Vec<(ValueId, u32)>> =
            edges.iter().map(|(from, answer)| if *answer { self.equality(*from) } else { None }).collect();
        let Some(equalities) = equalities else { return };
        let value = equalities[0].0;
        if equalities.iter().all(|(other, _)| *other == value) {
            let members: Rc<[u32]> = equalities.iter().map(|(_, number)| *number).collect();
            self.facts.is_one_of(value, members);
        }
    }

    /// Returns the value and number that `id` compares for equality, if it does.
    fn equality(&self, id: NodeId) -> Option<(ValueId, u32)> {
        match self.graph.node(id) {
            Node::Branch { test: Test::Compare { relation: Relation::Equal, left, right }, .. } => {
                Some((left, self.graph.as_constant(right)?))
            }
            _ => None,
        }
    }

    fn learn_from_node(&mut self, node: Node) {
        node.values().for_each(|value| self.facts.evaluated(value));
        if let Node::Assign { slot, value, .. } = node
            && let Some(slot) = self.graph.known(Value::Slot(slot))
        {
            self.facts.same(slot, value);
        }
    }

    fn replace(&mut self, id: NodeId) -> Replacement {
        let node = self.graph.node(id);
        let scope = self.facts.scope();
        let plan = match node {
            Node::End(_) => Replacement::Reached,
            Node::Branch { test, then, other, .. } => {
                let decided = self.facts.decide(test);
                let values = node.values().filter(|value| !self.facts.is_evaluated(*value));
                let reads: Vec<ValueId> = values.collect();
                self.learn_from_node(node);
                match decided {
                    Some(answer) => Replacement::Reads(reads, self.go(if answer { then } else { other })),
                    None => Replacement::Node(self.go_if(test, true, then), self.go_if(test, false, other)),
                }
            }
            Node::Read { value, next } => {
                let reads = if self.facts.is_evaluated(value) { Vec::new() } else { vec![value] };
                self.learn_from_node(node);
                Replacement::Reads(reads, self.go(next))
            }
            Node::Assign { next, .. } => {
                self.learn_from_node(node);
                let next = self.go(next);
                Replacement::Node(next, next)
            }
        };
        self.facts.forget(scope);
        plan
    }

    fn go_if(&mut self, test: Test, answer: bool, next: NodeId) -> NodeId {
        let scope = self.facts.scope();
        self.facts.answered(test, answer);
        let next = self.go(next);
        self.facts.forget(scope);
        next
    }

    fn go(&mut self, next: NodeId) -> NodeId {
        let next = self.follow(next);
        self.reach(next)
    }

    /// Returns where a path to `id` leads, given the known facts.
    fn follow(&mut self, mut id: NodeId) -> NodeId {
        loop {
            let Some(left) = self.steps_left.checked_sub(1) else { return id };
            self.steps_left = left;
            let node = self.graph.node(id);
            if node.values().any(|value| !self.facts.is_evaluated(value)) {
                return id;
            }
            let next = match node {
                Node::Read { next, .. } => Some(next),
                Node::Branch { test, then, other, .. } => match self.facts.decide(test) {
                    Some(answer) => Some(if answer { then } else { other }),
                    None => self.follow_members(id, test),
                },
                Node::End(_) | Node::Assign { .. } => None,
            };
            match next {
                Some(next) => id = next,
                None => return id,
            }
        }
    }

    /// Returns the common target for all possible values of the tested value, if there is one.
    fn follow_members(&mut self, id: NodeId, test: Test) -> Option<NodeId> {
        let Test::Compare { left: value, .. } = test else { return None };
        let members = self.facts.members(value)?;
        let mut ends = members.iter().map(|&member| self.lead(id, value, member));
        let end = ends.next()?;
        let cost = members.len() * 4;
        let same = ends.all(|other| other == end);
        self.steps_left = self.steps_left.saturating_sub(cost);
        (same && end != id).then_some(end)
    }

    /// Returns where `id` leads if `value` is `number`.
    fn lead(&self, mut id: NodeId, value: ValueId, number: u32) -> NodeId {
        for _ in 0..MOST_MEMBERS {
            let Node::Branch { test: Test::Compare { relation, left, right }, then, other, .. } =
                self.graph.node(id)
            else {
                return id;
            };
            let Some(right) = self.graph.as_constant(right).filter(|_| left == value) else { return id };
            id = if relation.holds(number, right) { then } else { other };
        }
        id
    }

    fn build(self, root: NodeId) -> Graph {
        let mut threaded = self.graph.without_nodes();
        let mut nodes = vec![Graph::REFUSE; self.replacements.len()];
        nodes[Graph::ACCEPT.0 as usize] = Graph::ACCEPT;
        for (index, replacement) in self.replacements.into_iter().enumerate().skip(2) {
            nodes[index] = match replacement {
                Some(Replacement::Node(first, second)) => {
                    let mut ways = [first, second].into_iter().map(|next| nodes[next.0 as usize]);
                    let node = self.graph.nodes()[index];
                    let node = node.map(|value| value, |_| ways.next().expect("a node has two ways at most"));
                    threaded.push(node)
                }
                Some(Replacement::Reads(values, next)) => {
                    let next = nodes[next.0 as usize];
                    values
                        .into_iter()
                        .rev()
                        .fold(next, |next, value| threaded.push(Node::Read { value, next }))
                }
                Some(Replacement::Reached) => threaded.push(self.graph.nodes()[index]),
                None => continue,
            };
        }
        threaded.set_root(nodes[root.0 as usize]);
        threaded
    }
}
