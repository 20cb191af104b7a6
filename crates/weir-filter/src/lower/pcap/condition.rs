//! What a term asks: questions put together, not yet knowing where to go on.

use crate::graph::{Graph, Node, NodeId, Relation, Slot, TermId, Test, ValueId};
use crate::lower::Ways;

/// A condition on a packet. It is asked from left to right, and only as far as needed: what is loaded on the way counts.
#[derive(Clone, Debug)]
pub(super) enum Condition {
    /// Holds, or does not, without a look at the packet.
    Always(bool),
    /// The packet is refused, whatever else is asked.
    Refuse,
    /// Two values compared.
    Compare(Relation, ValueId, ValueId),
    /// Holds, and notes a value.
    Note(Slot, ValueId),
    /// All of them.
    All(Vec<Self>),
    /// One of them.
    Any(Vec<Self>),
    /// Not this.
    Not(Box<Self>),
    /// If the first holds the second, else the third.
    Choose(Box<[Self; 3]>),
}

impl Condition {
    /// Both.
    pub(super) fn and(self, other: Self) -> Self {
        Self::All(vec![self, other])
    }

    /// One of both.
    pub(super) fn or(self, other: Self) -> Self {
        Self::Any(vec![self, other])
    }

    /// Not this.
    pub(super) fn negated(self) -> Self {
        Self::Not(Box::new(self))
    }

    /// `then` if this holds, else `other`.
    pub(super) fn choose(self, then: Self, other: Self) -> Self {
        Self::Choose(Box::new([self, then, other]))
    }

    /// Puts the condition into a graph, in front of `ways`, and answers where it begins.
    ///
    /// Recursive: what a term asks is nested as deep as the headers that it knows, not as its text.
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
