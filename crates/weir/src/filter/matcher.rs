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

/// Link types (`LINKTYPE_*`) for which a filter is tried before it is known what the files have: Ethernet; then those of the
/// terms that Ethernet has not: 802.11, ATM, SS7, PPP, packets without a link layer.
const TRIED: [u16; 6] = [1, 105, 123, 140, 9, 101];

/// A filter for capture files: a program for each link type that they turn out to have. Clones share them.
#[derive(Clone, Debug)]
pub struct FileFilter {
    filter: Filter,
    programs: Arc<Mutex<Programs>>,
}

/// By link type, and whether byte order is swapped.
type Programs = HashMap<(u16, bool), Arc<Matcher>>;

impl FileFilter {
    /// Compiles the filter for Ethernet, or for other packets if it asks for what these have: so all names are looked up, and
    /// who gives that up later has the answers.
    ///
    /// # Errors
    ///
    /// The expression is wrong for all of these.
    pub fn new(filter: Filter) -> Result<Self, FilterError> {
        let made = Self { filter: filter.remembering_names(), programs: Arc::default() };
        let [first, others @ ..] = TRIED;
        let Err(error) = made.compile(first, false) else { return Ok(made) };
        let other = others.into_iter().any(|link_type| made.compile(link_type, false).is_ok());
        if other { Ok(made) } else { Err(error) }
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

    /// Compiles for a link type.
    fn compile(&self, link_type: u16, swapped: bool) -> Result<(), FilterError> {
        let compiled = self.filter.compile_for_file(link_type, swapped)?;
        self.programs().insert((link_type, swapped), Arc::new(Matcher::new(&compiled)));
        Ok(())
    }
}
