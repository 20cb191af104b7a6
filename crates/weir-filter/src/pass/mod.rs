//! Optimisation passes. Each establishes one property of a graph without changing any verdict, states its reason, and
//! is tested by that property.

mod bounds;
mod certain;
mod demand;
mod dominators;
mod facts;
mod gather;
mod inner_tag;
mod merge;
pub(crate) mod range;
mod rewrite;
mod sets;
mod simplify;
mod slots;
mod stripped_tag;
mod thread;

pub use certain::certain;
pub use gather::gather;
pub use inner_tag::inner_tag;
pub use merge::merge;
pub use sets::expand_sets;
pub use simplify::simplify;
pub use slots::slots;
pub use stripped_tag::stripped_tag;
pub use thread::thread;

use crate::graph::Graph;
use crate::set::Set;

/// Maximum number of rounds of all passes. Usually, nothing changes after a few.
const ROUNDS: usize = 12;

/// Runs all passes that help every back end until they find nothing more to do.
pub fn optimise(graph: &Graph, sets: &[Set]) -> Graph {
    let mut graph = merge(graph);
    for _ in 0..ROUNDS {
        let next = round(&graph);
        let same = next.nodes() == graph.nodes() && next.root() == graph.root();
        graph = next;
        if same {
            break;
        }
    }
    debug_assert_eq!(graph.check(sets), Ok(()), "{graph}");
    graph
}

/// Returns whether equal tests contradict each other, or constants, so that `graph` rejects every packet. No range of
/// a value counts: a byte may be 256 here.
pub(crate) fn contradicts(graph: &Graph) -> bool {
    let mut graph = merge(graph);
    for _ in 0..ROUNDS {
        let next = merge(&thread::thread_by(&graph, facts::Insight::Equalities));
        let same = next.nodes() == graph.nodes() && next.root() == graph.root();
        graph = next;
        if same {
            break;
        }
    }
    graph.root() == Graph::REFUSE
}

fn round(graph: &Graph) -> Graph {
    let graph = certain(&slots(&simplify(graph)));
    merge(&gather(&merge(&thread(&graph))))
}
