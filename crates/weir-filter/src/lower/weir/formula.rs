//! Formulas: what a term tests, turned into nodes once it is known where to continue.

use crate::graph::{Graph, NodeId, Operation, Relation, TermId, Test, ValueId};
use crate::lower::Ways;
use crate::set::SetId;

/// Tests and their connectives. Formulas are nested as deep as the meaning of a term, never as deep as the text.
#[derive(Clone, Debug)]
pub(super) enum Formula {
    /// True.
    Always,
    /// False.
    Never,
    /// A single test.
    Test(Test),
    /// Negation.
    Not(Box<Self>),
    /// True if all parts are, tested in this order.
    All(Vec<Self>),
    /// True if any part is, tested in this order.
    Any(Vec<Self>),
}

impl Formula {
    /// Tests `left relation right`.
    pub(super) fn compare(relation: Relation, left: ValueId, right: ValueId) -> Self {
        Self::Test(Test::Compare { relation, left, right })
    }

    /// Tests `value == number`.
    pub(super) fn equals(graph: &mut Graph, value: ValueId, number: u32) -> Self {
        let right = graph.constant(number);
        Self::compare(Relation::Equal, value, right)
    }

    /// Tests `value & mask == number`.
    pub(super) fn masked(graph: &mut Graph, value: ValueId, mask: u32, number: u32) -> Self {
        let value = graph.with(Operation::And, value, mask);
        Self::equals(graph, value, number)
    }

    /// Tests `value & mask != 0`.
    pub(super) fn any_bit(graph: &mut Graph, value: ValueId, mask: u32) -> Self {
        let mask = graph.constant(mask);
        Self::compare(Relation::AnyBit, value, mask)
    }

    /// Tests `value >= number`.
    pub(super) fn at_least(graph: &mut Graph, value: ValueId, number: u32) -> Self {
        let right = graph.constant(number);
        Self::compare(Relation::AtLeast, value, right)
    }

    /// Tests whether `value` is one of `numbers`.
    pub(super) fn one_of(graph: &mut Graph, value: ValueId, numbers: &[u32]) -> Self {
        Self::any(numbers.iter().map(|&number| Self::equals(graph, value, number)).collect())
    }

    /// Tests whether `key` is in `set`.
    pub(super) fn member(set: SetId, key: &[ValueId]) -> Self {
        let mut words = [*key.last().expect("a key has a word"); crate::graph::KEY_WORDS];
        words[..key.len()].copy_from_slice(key);
        Self::Test(Test::Member { set, key: words })
    }

    /// Returns the conjunction of `parts`.
    pub(super) fn all(mut parts: Vec<Self>) -> Self {
        if parts.iter().any(|part| matches!(part, Self::Never)) {
            return Self::Never;
        }
        parts.retain(|part| !matches!(part, Self::Always));
        match parts.len() {
            0 => Self::Always,
            1 => parts.remove(0),
            _ => Self::All(parts),
        }
    }

    /// Returns the disjunction of `parts`.
    pub(super) fn any(mut parts: Vec<Self>) -> Self {
        if parts.iter().any(|part| matches!(part, Self::Always)) {
            return Self::Always;
        }
        parts.retain(|part| !matches!(part, Self::Never));
        match parts.len() {
            0 => Self::Never,
            1 => parts.remove(0),
            _ => Self::Any(parts),
        }
    }

    /// Returns the negation.
    pub(super) fn not(self) -> Self {
        match self {
            Self::Always => Self::Never,
            Self::Never => Self::Always,
            Self::Not(inner) => *inner,
            other => Self::Not(Box::new(other)),
        }
    }

    /// Returns the answer, if it is constant.
    pub(super) fn known(&self) -> Option<bool> {
        match self {
            Self::Always => Some(true),
            Self::Never => Some(false),
            _ => None,
        }
    }

    /// Adds the nodes of the formula to the graph; returns where it begins.
    pub(super) fn build(&self, graph: &mut Graph, ways: Ways, term: TermId) -> NodeId {
        match self {
            Self::Always => ways.0,
            Self::Never => ways.1,
            Self::Test(test) => graph.branch(*test, ways.0, ways.1, term),
            Self::Not(inner) => inner.build(graph, (ways.1, ways.0), term),
            Self::All(parts) => {
                parts.iter().rev().fold(ways.0, |then, part| part.build(graph, (then, ways.1), term))
            }
            Self::Any(parts) => {
                parts.iter().rev().fold(ways.1, |other, part| part.build(graph, (ways.0, other), term))
            }
        }
    }
}
