//! Filters that run in this process.

use std::collections::{BTreeSet, HashMap};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use weir_filter::graph::Graph;
use weir_filter::interpret::{Interpreter, Packet};

use super::native::Native;
use super::{Compiled, Filter, FilterError};

/// A compiled filter that can be run: as machine code, or otherwise by an interpreter.
#[derive(Debug)]
pub struct Matcher {
    engine: Engine,
    never: bool,
}

#[derive(Debug)]
enum Engine {
    Native(Box<Native>),
    /// Also says why there is no machine code.
    Interpreter(Box<Interpreter<'static>>, String),
}

impl Matcher {
    /// Generates machine code. If the filter is too large, the processor is not supported, or executable memory is
    /// forbidden, the filter is interpreted instead, which is many times slower but gives the same answers.
    ///
    /// # Panics
    ///
    /// If the filter has more than two verdicts. No expression makes such a filter.
    pub fn new(compiled: &Compiled) -> Self {
        assert_eq!(compiled.graph.verdicts(), 2, "a matcher knows two verdicts: yes and no");
        let engine = match Native::new(&compiled.graph, &compiled.ast.sets) {
            Ok(native) => Engine::Native(Box::new(native)),
            Err(error) => {
                let interpreter = Interpreter::owning(compiled.graph.clone(), &compiled.ast.sets);
                Engine::Interpreter(Box::new(interpreter), error.to_string())
            }
        };
        Self { engine, never: compiled.graph.root() == Graph::REFUSE }
    }

    /// Returns whether the packet matches.
    #[inline]
    pub fn matches(&self, packet: &Packet<'_>) -> bool {
        match &self.engine {
            Engine::Native(native) => native.run(packet) > 0,
            Engine::Interpreter(interpreter, _) => interpreter.run(packet) > 0,
        }
    }

    /// Returns whether it is known that no packet can match.
    pub fn never_matches(&self) -> bool {
        self.never
    }

    /// Returns why the filter is interpreted; `None`: it is machine code.
    pub fn why_interpreted(&self) -> Option<&str> {
        match &self.engine {
            Engine::Native(_) => None,
            Engine::Interpreter(_, why) => Some(why),
        }
    }
}

/// Link types (`LINKTYPE_*`) that filter terms distinguish, Ethernet first. A filter has to be valid for one of them.
const KNOWN: [u16; 40] = [
    1, 276, 113, 127, 105, 101, 9, 0, 108, 104, 50, 51, 119, 163, 192, 228, 229, 123, 140, 139, 8, 7, 129, 6,
    10, 100, 106, 107, 182, 122, 102, 103, 109, 114, 117, 143, 165, 197, 226, 240,
];

/// A filter for capture files, compiled for each link type they contain. Clones share the programs.
#[derive(Clone, Debug)]
pub struct FileFilter {
    filter: Filter,
    programs: Arc<Mutex<Programs>>,
}

#[derive(Debug, Default)]
struct Programs {
    /// The link types of all packets, if known.
    link_types: BTreeSet<u16>,
    /// By link type, and whether the byte order is swapped.
    made: HashMap<(u16, bool), Arc<Matcher>>,
}

impl FileFilter {
    /// Checks that the expression is valid for some link type, trying Ethernet first.
    ///
    /// This looks up all names, so that they are still known when the process can no longer look them up. The filter is
    /// compiled for the link types in the files once these are known.
    ///
    /// # Errors
    ///
    /// The expression is invalid for all link types.
    pub fn new(filter: Filter) -> Result<Self, FilterError> {
        let filter = filter.remembering_names();
        let [ethernet, others @ ..] = KNOWN;
        let Err(error) = filter.compile_for_file(ethernet, false) else {
            return Ok(Self { filter, programs: Arc::default() });
        };
        let other = others.into_iter().any(|link_type| filter.compile_for_file(link_type, false).is_ok());
        if other { Ok(Self { filter, programs: Arc::default() }) } else { Err(error) }
    }

    /// Returns the original filter.
    pub fn filter(&self) -> &Filter {
        &self.filter
    }

    /// Adds link types that occur. Terms that only apply to some of them are false for the others.
    pub fn expect(&self, link_types: impl IntoIterator<Item = u16>) {
        self.programs().link_types.extend(link_types);
    }

    /// Returns the program for packets of a link type; `swapped`: headers in host byte order are in the other order.
    ///
    /// # Errors
    ///
    /// The expression tests something that packets of this link type do not have, nor those of any other
    /// [expected](Self::expect) one.
    pub fn program(&self, link_type: u16, swapped: bool) -> Result<Arc<Matcher>, FilterError> {
        if !self.programs().made.contains_key(&(link_type, swapped)) {
            self.compile(link_type, swapped)?;
        }
        Ok(Arc::clone(&self.programs().made[&(link_type, swapped)]))
    }

    /// Returns why the filter is interpreted for some link type; `None`: it is not.
    pub fn why_interpreted(&self) -> Option<String> {
        self.programs().made.values().find_map(|program| program.why_interpreted()).map(str::to_owned)
    }

    fn programs(&self) -> MutexGuard<'_, Programs> {
        self.programs.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Compiles the filter for a link type.
    fn compile(&self, link_type: u16, swapped: bool) -> Result<(), FilterError> {
        let link_types = self.programs().link_types.clone();
        let filter = self.filter.clone().among(link_types);
        let compiled = filter.compile_for_file(link_type, swapped)?;
        self.programs().made.insert((link_type, swapped), Arc::new(Matcher::new(&compiled)));
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use weir_filter::graph::Verdict;

    use super::*;

    #[test]
    #[should_panic(expected = "a matcher knows two verdicts: yes and no")]
    fn a_third_verdict_is_not_taken_for_a_no() {
        let mut compiled = Filter::new("tcp").compile_for_file(1, false).expect("an expression");
        let root = compiled.graph.end(Verdict(2));
        compiled.graph.set_root(root);
        Matcher::new(&compiled);
    }
}
