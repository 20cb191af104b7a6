//! Programs that say which rules a packet matches.

use std::fmt;

use weir_filter::Filter;
use weir_filter::interpret::{Interpreter, Packet};

use crate::rule_set::Compiled;

/// Says whether a packet matches.
pub type Matches = Box<dyn Fn(&Packet<'_>) -> bool>;

/// A program for each rule of a set, for packets of one link type.
pub struct Programs {
    pub(crate) link_type: u16,
    pub(crate) matches: Vec<Matches>,
}

impl Programs {
    /// Takes a program for each rule, in their order. A packet that ends before what a filter asks for must not match.
    pub fn new(link_type: u16, matches: Vec<Matches>) -> Self {
        Self { link_type, matches }
    }
}

impl Compiled {
    /// Returns programs that interpret the filters.
    pub fn programs(&self) -> Programs {
        let interpret = |filter: &Filter| {
            let interpreter = Interpreter::owning(filter.graph.clone(), &filter.ast.sets);
            Box::new(move |packet: &Packet<'_>| interpreter.run(packet) > 0) as Matches
        };
        Programs::new(self.link_type, self.filters.iter().map(interpret).collect())
    }
}

impl fmt::Debug for Programs {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Programs").field("link_type", &self.link_type).finish_non_exhaustive()
    }
}
