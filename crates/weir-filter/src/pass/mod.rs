//! Passes: each makes one thing true of a graph and changes no verdict. Each states its reason, and is tested by that property.

pub(crate) mod range;
mod sets;

pub use sets::expand_sets;

use crate::graph::Graph;
use crate::set::Set;

/// All passes that every back end gains from.
pub fn optimise(graph: &Graph, _sets: &[Set]) -> Graph {
    graph.clone()
}
