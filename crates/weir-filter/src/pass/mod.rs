//! Passes: each makes one thing true of a graph and changes no verdict. Each states its reason, and is tested by that property.

mod bounds;
mod certain;
mod demand;
mod dominators;
mod facts;
mod gather;
mod merge;
pub(crate) mod range;
mod sets;
mod simplify;
mod slots;
mod stripped_tag;
mod thread;

pub use certain::certain;
pub use gather::gather;
pub use merge::merge;
pub use sets::expand_sets;
pub use simplify::simplify;
pub use slots::slots;
pub use stripped_tag::stripped_tag;
pub use thread::thread;

use crate::graph::Graph;
use crate::set::Set;

/// Most rounds of all passes; after few of them nothing changes any more.
const ROUNDS: usize = 12;

/// All passes that every back end gains from, again and again until they find nothing more to do.
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

fn round(graph: &Graph) -> Graph {
    let graph = certain(&slots(&simplify(graph)));
    merge(&gather(&merge(&thread(&graph))))
}
