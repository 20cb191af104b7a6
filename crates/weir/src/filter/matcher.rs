//! Filters that this process runs itself.

use std::collections::{BTreeSet, HashMap};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use weir_filter::graph::Graph;
use weir_filter::interpret::{Interpreter, Packet};
use weir_native::Native;

use super::{Compiled, Filter, FilterError};

/// A compiled filter that can be asked: machine code, or an interpreter where there is none.
#[derive(Debug)]
pub struct Matcher {
    engine: Engine,
    never: bool,
}

#[derive(Debug)]
enum Engine {
    Native(Box<Native>),
    /// And why it is not machine code.
    Interpreter(Box<Interpreter<'static>>, String),
}

impl Matcher {
    /// Makes machine code. Where that is not possible, because the filter is too large, the processor not served, or
    /// executable memory forbidden, the filter is interpreted: many times slower, with the same answers.
    pub fn new(compiled: &Compiled) -> Self {
        let engine = match Native::new(&compiled.graph, &compiled.ast.sets) {
            Ok(native) => Engine::Native(Box::new(native)),
            Err(error) => {
                let interpreter = Interpreter::owning(compiled.graph.clone(), &compiled.ast.sets);
                Engine::Interpreter(Box::new(interpreter), error.to_string())
            }
        };
        Self { engine, never: compiled.graph.root() == Graph::REFUSE }
    }

    /// Whether the packet is wanted.
    #[inline]
    pub fn matches(&self, packet: &Packet<'_>) -> bool {
        match &self.engine {
            Engine::Native(native) => native.run(packet) > 0,
            Engine::Interpreter(interpreter, _) => interpreter.run(packet) > 0,
        }
    }

    /// It is known that no packet matches.
    pub fn never_matches(&self) -> bool {
        self.never
    }

    /// Why it is interpreted; `None`: it is machine code.
    pub fn why_interpreted(&self) -> Option<&str> {
        match &self.engine {
            Engine::Native(_) => None,
            Engine::Interpreter(_, why) => Some(why),
        }
    }
}

/// Link types (`LINKTYPE_*`) whose packets are told apart by terms, Ethernet first: a filter has to make sense for one of them.
const KNOWN: [u16; 40] = [
    1, 276, 113, 127, 105, 101, 9, 0, 108, 104, 50, 51, 119, 163, 192, 228, 229, 123, 140, 139, 8, 7, 129, 6,
    10, 100, 106, 107, 182, 122, 102, 103, 109, 114, 117, 143, 165, 197, 226, 240,
];

/// A filter for capture files: a program for each link type that they turn out to have. Clones share them.
#[derive(Clone, Debug)]
pub struct FileFilter {
    filter: Filter,
    programs: Arc<Mutex<Programs>>,
}

#[derive(Debug, Default)]
struct Programs {
    /// Of all packets, as far as they are known.
    link_types: BTreeSet<u16>,
    /// By link type, and whether byte order is swapped.
    made: HashMap<(u16, bool), Arc<Matcher>>,
}

impl FileFilter {
    /// Finds out whether the expression makes sense for packets of any kind, Ethernet first: so all names are looked up, and
    /// who gives that up later has the answers. What the files have it is compiled for when that is known.
    ///
    /// # Errors
    ///
    /// The expression is wrong for all link types.
    pub fn new(filter: Filter) -> Result<Self, FilterError> {
        let filter = filter.remembering_names();
        let [ethernet, others @ ..] = KNOWN;
        let Err(error) = filter.compile_for_file(ethernet, false) else {
            return Ok(Self { filter, programs: Arc::default() });
        };
        let other = others.into_iter().any(|link_type| filter.compile_for_file(link_type, false).is_ok());
        if other { Ok(Self { filter, programs: Arc::default() }) } else { Err(error) }
    }

    /// The filter as it was asked for.
    pub fn filter(&self) -> &Filter {
        &self.filter
    }

    /// There are packets of these link types: what can be asked of some of them only is false for the others.
    pub fn expect(&self, link_types: impl IntoIterator<Item = u16>) {
        self.programs().link_types.extend(link_types);
    }

    /// The program for packets of a link type; `swapped`: its headers in host byte order are in the other order.
    ///
    /// # Errors
    ///
    /// The expression asks for what no packets of this link type have, nor others that are [expected](Self::expect).
    pub fn program(&self, link_type: u16, swapped: bool) -> Result<Arc<Matcher>, FilterError> {
        if !self.programs().made.contains_key(&(link_type, swapped)) {
            self.compile(link_type, swapped)?;
        }
        Ok(Arc::clone(&self.programs().made[&(link_type, swapped)]))
    }

    /// Why packets of some link type are asked about by an interpreter; `None`: none are.
    pub fn why_interpreted(&self) -> Option<String> {
        self.programs().made.values().find_map(|program| program.why_interpreted()).map(str::to_owned)
    }

    fn programs(&self) -> MutexGuard<'_, Programs> {
        self.programs.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Compiles for a link type.
    fn compile(&self, link_type: u16, swapped: bool) -> Result<(), FilterError> {
        let link_types = self.programs().link_types.clone();
        let filter = self.filter.clone().among(link_types);
        let compiled = filter.compile_for_file(link_type, swapped)?;
        self.programs().made.insert((link_type, swapped), Arc::new(Matcher::new(&compiled)));
        Ok(())
    }
}
