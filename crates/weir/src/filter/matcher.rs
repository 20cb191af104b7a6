//! Filters that this process runs itself.

use std::collections::HashMap;
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
    Interpreter(Box<Interpreter<'static>>),
}

impl Matcher {
    /// Makes machine code. Where that is not possible, because the filter is too large, the processor not served, or
    /// executable memory forbidden, the filter is interpreted: many times slower, with the same answers.
    pub fn new(compiled: &Compiled) -> Self {
        let engine = match Native::new(&compiled.graph, &compiled.ast.sets) {
            Ok(native) => Engine::Native(Box::new(native)),
            Err(_) => {
                let interpreter = Interpreter::owning(compiled.graph.clone(), &compiled.ast.sets);
                Engine::Interpreter(Box::new(interpreter))
            }
        };
        Self { engine, never: compiled.graph.root() == Graph::REFUSE }
    }

    /// Whether the packet is wanted.
    #[inline]
    pub fn matches(&self, packet: &Packet<'_>) -> bool {
        match &self.engine {
            Engine::Native(native) => native.run(packet) > 0,
            Engine::Interpreter(interpreter) => interpreter.run(packet) > 0,
        }
    }

    /// It is known that no packet matches.
    pub fn never_matches(&self) -> bool {
        self.never
    }

    /// Whether it is machine code.
    pub fn is_native(&self) -> bool {
        matches!(self.engine, Engine::Native(_))
    }
}

/// Link types that most files have (`LINKTYPE_*`): Ethernet, Linux cooked v1 and v2, raw IP, null in either byte order.
const USUAL: [(u16, bool); 6] = [(1, false), (113, false), (276, false), (101, false), (0, false), (0, true)];

/// Questions and members of sets from which on a filter is compiled for Ethernet alone before it is known what for.
const LARGE: usize = 10_000;

/// A filter for capture files: a program for each link type that they turn out to have. Clones share them.
#[derive(Clone, Debug)]
pub struct FileFilter {
    filter: Filter,
    programs: Arc<Mutex<Programs>>,
}

/// By link type, and whether byte order is swapped.
type Programs = HashMap<(u16, bool), Arc<Matcher>>;

impl FileFilter {
    /// Compiles the filter for the usual link types at once: whoever gives up executable memory later, or name look-ups, has
    /// them by then. For other link types it is then interpreted.
    ///
    /// # Errors
    ///
    /// The expression is wrong for all of these.
    pub fn new(filter: Filter) -> Result<Self, FilterError> {
        let made = Self { filter: filter.remembering_names(), programs: Arc::default() };
        let mut first = None;
        for (link_type, swapped) in USUAL {
            match made.compile(link_type, swapped) {
                Ok(size) if size >= LARGE => return Ok(made),
                Ok(_) => {}
                Err(error) => _ = first.get_or_insert(error),
            }
        }
        match first {
            Some(error) if made.programs().is_empty() => Err(error),
            _ => Ok(made),
        }
    }

    /// The filter as it was asked for.
    pub fn filter(&self) -> &Filter {
        &self.filter
    }

    /// The program for packets of a link type; `swapped`: its headers in host byte order are in the other order.
    ///
    /// # Errors
    ///
    /// The expression asks for what packets of this link type do not have.
    pub fn program(&self, link_type: u16, swapped: bool) -> Result<Arc<Matcher>, FilterError> {
        if !self.programs().contains_key(&(link_type, swapped)) {
            self.compile(link_type, swapped)?;
        }
        Ok(Arc::clone(&self.programs()[&(link_type, swapped)]))
    }

    fn programs(&self) -> MutexGuard<'_, Programs> {
        self.programs.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Compiles for a link type; the size of what was compiled.
    fn compile(&self, link_type: u16, swapped: bool) -> Result<usize, FilterError> {
        let compiled = self.filter.compile_for_file(link_type, swapped)?;
        let members: usize = compiled.ast.sets.iter().map(weir_filter::set::Set::len).sum();
        let size = compiled.graph.nodes().len() + members;
        self.programs().insert((link_type, swapped), Arc::new(Matcher::new(&compiled)));
        Ok(size)
    }
}
