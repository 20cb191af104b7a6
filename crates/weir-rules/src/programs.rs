//! Programs that say which rules a packet matches.

use std::fmt;

use weir_filter::interpret::{Interpreter, Packet};
use weir_filter::{BehindFields, Filter};

use crate::rule_set::Compiled;

/// `LINKTYPE_ETHERNET`.
const ETHERNET: u16 = 1;

/// Says whether a packet matches.
pub type Matches = Box<dyn Fn(&Packet<'_>) -> bool + Send>;

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

    /// Takes rules for Ethernet frames. A packet that ends within its headers may match though the expression refuses it.
    pub fn behind_fields(rules: Vec<BehindFields>) -> Self {
        let matches = rules.into_iter().map(|BehindFields { regions, filter }| match filter {
            Some(filter) => interpret(&filter),
            None => Box::new(move |packet: &Packet<'_>| regions.iter().any(|region| region.has(packet))),
        });
        Self::new(ETHERNET, matches.collect())
    }
}

impl Compiled {
    /// Returns programs that interpret the filters.
    pub fn programs(&self) -> Programs {
        Programs::new(self.link_type, self.filters.iter().map(interpret).collect())
    }
}

fn interpret(filter: &Filter) -> Matches {
    let interpreter = Interpreter::owning(filter.graph.clone(), &filter.ast.sets);
    Box::new(move |packet: &Packet<'_>| interpreter.run(packet) > 0)
}

impl fmt::Debug for Programs {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Programs").field("link_type", &self.link_type).finish_non_exhaustive()
    }
}
