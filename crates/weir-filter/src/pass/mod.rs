//! Passes: each makes one thing true of a graph and changes no verdict. Each states its reason, and is tested by that property.

mod bounds;
pub(crate) mod range;
mod sets;
mod stripped_tag;

pub use sets::expand_sets;
pub use stripped_tag::stripped_tag;

use crate::graph::Graph;
use crate::set::Set;

/// All passes that every back end gains from.
pub fn optimise(graph: &Graph, _sets: &[Set]) -> Graph {
    graph.clone()
}
