//! Packet filters as native code, for files and user-space paths.
//!
//! A [`Graph`] becomes one function, made by [Cranelift]: nodes are blocks, values and slots registers, and a load is a load
//! once the packet is known to be long enough. That is asked as rarely as possible: once for all bytes at fixed places that
//! every way to acceptance reads, and once for what lies behind the same base. What it means is what
//! [`weir_filter::interpret`] spells out.
//!
//! Long alternatives become sets. Small sets are compared one by one, ports are a table of bits; for the rest the code calls back into safe code.
//!
//! # What unsafe code relies on
//!
//! - N1: the function was made by this crate for the signature that it is called by, and lives as long as its [`Native`].
//! - N2: it reads nothing but bytes of the packet that it has shown to be there, six words of metadata, and tables of its
//!   [`Native`], which never move nor change.
//! - N3: memory is never writable and executable at once: Cranelift's memory is mapped writable, filled, and made executable
//!   and read-only before anyone has the function's address. A test looks into `/proc/self/maps`.
//!
//! [Cranelift]: https://cranelift.dev

mod code;
mod group;
mod machine;
mod plan;
mod scope;
mod table;

use std::any::Any;
use std::borrow::Cow;
use std::fmt;
use std::sync::Arc;

use weir_filter::graph::{Graph, Meta, Node, Test, Value};
use weir_filter::interpret::{Metadata, Packet};
use weir_filter::set::Set;

use self::machine::{Function, Machine};
use self::table::Table;

/// Questions that are still compiled, long alternatives counted as sets. Compiling takes some 10 microseconds each; what is
/// larger is better interpreted, or written with sets.
pub const MOST_NODES: usize = 1 << 16;

/// A filter as machine code. It may be run by several threads at once.
pub struct Native {
    machine: Machine,
    /// Whether it asks for what is known beside the bytes.
    asks_metadata: bool,
    _tables: Vec<Option<Memory>>,
}

/// Something that code holds the address of: it stays where it is, as it is.
type Memory = Arc<dyn Any + Send + Sync>;

/// Why there is no code.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// Cranelift makes no code for this processor.
    #[error("no native code for this processor: {0}")]
    Processor(String),
    /// The graph has too many nodes.
    #[error("the filter is too large for native code: {0} questions, {MOST_NODES} at most")]
    TooLarge(usize),
    /// Code generation or memory for it failed.
    #[error("cannot make native code: {0}")]
    Code(String),
}

impl Native {
    /// Compiles `graph`, whose sets are `sets`.
    ///
    /// # Errors
    ///
    /// The processor is not served, the graph is too large, or the process may not have executable memory.
    pub fn new(graph: &Graph, sets: &[Set]) -> Result<Self, Error> {
        let Prepared { graph, questions, tables } = prepared(graph, sets)?;
        let machine = Machine::new(&graph, &questions)?;
        let asks_metadata = graph.values().iter().any(|value| matches!(value, Value::Meta(_)));
        Ok(Self { machine, asks_metadata, _tables: tables })
    }

    /// What the filter answers: the snap length, or 0.
    #[inline]
    pub fn run(&self, packet: &Packet<'_>) -> u32 {
        self.runner().run(packet)
    }

    /// The same for many packets, what does not change between them looked up once.
    #[inline]
    pub fn runner(&self) -> Runner<'_> {
        Runner { function: self.machine.function(), asks_metadata: self.asks_metadata, _code: self }
    }

    /// The code of `graph` in the notation of Cranelift's assembler, for people.
    ///
    /// # Errors
    ///
    /// As [`Native::new`].
    pub fn listing(graph: &Graph, sets: &[Set]) -> Result<String, Error> {
        let prepared = prepared(graph, sets)?;
        machine::listing(&prepared.graph, &prepared.questions)
    }

    /// Bytes of machine code.
    pub fn code_len(&self) -> usize {
        self.machine.code_len()
    }
}

/// What code is made of.
struct Prepared<'a> {
    graph: Cow<'a, Graph>,
    /// How the code asks each set; none for those that it does not.
    questions: Vec<Option<code::Question>>,
    /// What questions hold the addresses of.
    tables: Vec<Option<Memory>>,
}

fn prepared<'a>(graph: &'a Graph, sets: &[Set]) -> Result<Prepared<'a>, Error> {
    let (graph, added) = match group::grouped(graph, sets.len()) {
        Some((graph, added)) => (Cow::Owned(graph), added),
        None => (Cow::Borrowed(graph), Vec::new()),
    };
    let reached = group::callers(&graph);
    let size = reached.iter().filter(|&&callers| callers > 0).count();
    if size > MOST_NODES {
        return Err(Error::TooLarge(size));
    }
    let mut asked = vec![false; sets.len() + added.len()];
    for (node, callers) in graph.nodes().iter().zip(reached) {
        if let (Node::Branch { test: Test::Member { set, .. }, .. }, 1..) = (node, callers) {
            asked[set.0 as usize] = true;
        }
    }
    let (mut questions, mut tables) = (Vec::new(), Vec::new());
    for (set, asked) in sets.iter().chain(&added).zip(asked) {
        let (question, memory) = if asked { machine::question(Table::new(set)) } else { (None, None) };
        questions.push(question);
        tables.push(memory);
    }
    Ok(Prepared { graph, questions, tables })
}

/// Runs a [`Native`] on packets.
#[derive(Clone, Copy)]
pub struct Runner<'a> {
    function: Function,
    asks_metadata: bool,
    _code: &'a Native,
}

impl Runner<'_> {
    /// What the filter answers: the snap length, or 0.
    #[inline]
    pub fn run(&self, packet: &Packet<'_>) -> u32 {
        match self.asks_metadata {
            true => self.function.call(packet.data, packet.length, &words(&packet.meta)),
            // Six words on the stack would be written for each packet.
            false => self.function.call(packet.data, packet.length, const { &[0; 6] }),
        }
    }
}

/// What is known beside the bytes, as the code reads it.
fn words(metadata: &Metadata) -> [u32; 6] {
    let mut words = [0; 6];
    let all = [
        Meta::Protocol,
        Meta::PacketType,
        Meta::Interface,
        Meta::VlanTag,
        Meta::VlanPresent,
        Meta::VlanProtocol,
    ];
    for meta in all {
        words[usize::from(code::place(meta))] = metadata.get(meta);
    }
    words
}

impl fmt::Debug for Native {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Native").field("code_len", &self.code_len()).finish_non_exhaustive()
    }
}

impl fmt::Debug for Runner<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Runner").finish_non_exhaustive()
    }
}
