//! Conditions: what a term tests, before it is known where to continue.

use crate::graph::{Graph, Node, NodeId, Relation, Slot, TermId, Test, ValueId};
use crate::lower::Ways;

/// A condition on a packet. It is evaluated from left to right, and only as far as needed: every load on the way
/// counts.
#[derive(Clone, Debug)]
pub(super) enum Condition {
    /// Constant.
    Always(bool),
    /// Rejects the packet, whatever else is tested.
    Refuse,
    /// True if the relation between two values holds.
    Compare(Relation, ValueId, ValueId),
    /// Assigns a value to a slot; always true.
    Note(Slot, ValueId),
    /// True if all conditions are.
    All(Vec<Self>),
    /// True if any condition is.
    Any(Vec<Self>),
    /// Negation.
    Not(Box<Self>),
    /// The second condition if the first is true, else the third.
    Choose(Box<[Self; 3]>),
}

impl Condition {
    /// Returns the conjunction of both.
    pub(super) fn and(self, other: Self) -> Self {
        Self::All(vec![self, other])
    }

    /// Returns the disjunction of both.
    pub(super) fn or(self, other: Self) -> Self {
        Self::Any(vec![self, other])
    }

    /// Returns the negation.
    pub(super) fn negated(self) -> Self {
        Self::Not(Box::new(self))
    }

    /// Returns a condition that equals `then` if this one is true, else `other`.
    pub(super) fn choose(self, then: Self, other: Self) -> Self {
        Self::Choose(Box::new([self, then, other]))
    }

    /// Adds the condition to a graph, with the targets `ways`; returns where it begins.
    ///
    /// Recursive: conditions are nested as deep as the headers of a term, not as its text.
    pub(super) fn place(&self, graph: &mut Graph, ways: Ways, term: TermId) -> NodeId {
        match self {
            Self::Always(true) => ways.0,
            Self::Always(false) => ways.1,
            Self::Refuse => Graph::REFUSE,
            Self::Compare(relation, left, right) => {
                let test = Test::Compare { relation: *relation, left: *left, right: *right };
                graph.branch(test, ways.0, ways.1, term)
            }
            Self::Note(slot, value) => graph.push(Node::Assign { slot: *slot, value: *value, next: ways.0 }),
            Self::All(parts) => {
                parts.iter().rev().fold(ways.0, |then, part| part.place(graph, (then, ways.1), term))
            }
            Self::Any(parts) => {
                parts.iter().rev().fold(ways.1, |other, part| part.place(graph, (ways.0, other), term))
            }
            Self::Not(part) => part.place(graph, (ways.1, ways.0), term),
            Self::Choose(parts) => {
                let [condition, then, other] = &**parts;
                let ways = (then.place(graph, ways, term), other.place(graph, ways, term));
                condition.place(graph, ways, term)
            }
        }
    }
}
