//! Packet filters as native code, for files and user-space paths.
//!
//! [Cranelift] compiles a [`Graph`] to one function: nodes are blocks, values and slots are registers, and a load is a
//! plain load once the packet is known to be long enough. Length checks are rare: one for all bytes at fixed offsets
//! that every path to acceptance reads, and one for the loads that share a base. [`weir_filter::interpret`] defines the
//! semantics.
//!
//! Long alternatives become sets. Small sets are compared range by range, sets of ports are bit tables, and all others
//! are looked up by calling back into safe code.
//!
//! [`libpcap`] runs filters with the system's libpcap, to compare them.
//!
//! # What the unsafe code relies on
//!
//! - N1: this crate compiled the function for the signature it is called with, and the function lives as long as its
//!   [`Native`].
//! - N2: the function reads only bytes of the packet that it has checked to be there, six words of metadata, and tables
//!   of its [`Native`], which never move or change.
//! - N3: memory is never writable and executable at once. Cranelift maps it writable and fills it, then makes it
//!   executable and read-only before anything has the function's address. A test checks `/proc/self/maps`.
//!
//! [Cranelift]: https://cranelift.dev

mod analysis;
mod code;
mod group;
pub mod libpcap;
mod machine;
mod scope;
mod table;

use std::any::Any;
use std::borrow::Cow;
use std::fmt;
use std::sync::Arc;

use weir_filter::graph::{Graph, Meta, Node, Test, Value, Verdict};
use weir_filter::interpret::{Metadata, Packet};
use weir_filter::set::Set;

use self::machine::{Function, Machine};
use self::table::Table;

/// Maximum number of nodes to compile, with long alternatives counted as sets. Compiling takes some 10 microseconds per
/// node; larger filters are better interpreted, or written with sets.
pub const MOST_NODES: usize = 1 << 16;

/// A filter compiled to machine code. Several threads may run it at once.
pub struct Native {
    machine: Machine,
    /// Whether the code reads metadata.
    asks_metadata: bool,
    _tables: Vec<Option<Memory>>,
}

/// Memory whose address is in the code. It neither moves nor changes.
type Memory = Arc<dyn Any + Send + Sync>;

/// An error of compilation to native code.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// Cranelift does not support this processor.
    #[error("no native code for this processor: {0}")]
    Processor(String),
    /// The graph has too many nodes.
    #[error("the filter is too large for native code: {0} tests, at most {MOST_NODES}")]
    TooLarge(usize),
    /// Cranelift could not generate the code or allocate memory for it.
    #[error("cannot make native code: {0}")]
    Code(String),
    /// The code could not be made executable.
    #[error(
        "executable memory is forbidden, by a sandbox or by the service manager (MemoryDenyWriteExecute=yes)"
    )]
    NotExecutable,
}

impl Native {
    /// Compiles `graph`, whose sets are `sets`.
    ///
    /// # Errors
    ///
    /// Fails if the processor is not supported, the graph is too large, or the process may not have executable memory.
    pub fn new(graph: &Graph, sets: &[Set]) -> Result<Self, Error> {
        let Prepared { graph, questions, tables } = prepared(graph, sets)?;
        let machine = Machine::new(&graph, &questions)?;
        let asks_metadata = graph.values().iter().any(|value| matches!(value, Value::Meta(_)));
        Ok(Self { machine, asks_metadata, _tables: tables })
    }

    /// Returns the filter's result: the snap length if the packet is accepted, or 0.
    #[inline]
    pub fn run(&self, packet: &Packet<'_>) -> u32 {
        self.runner().run(packet)
    }

    /// Returns what the filter decides.
    #[inline]
    pub fn verdict(&self, packet: &Packet<'_>) -> Verdict {
        self.runner().verdict(packet)
    }

    /// Returns a runner for many packets, which saves per-packet set-up.
    #[inline]
    pub fn runner(&self) -> Runner<'_> {
        Runner { function: self.machine.function(), asks_metadata: self.asks_metadata, _code: self }
    }

    /// Returns the code of `graph` as a readable listing in the notation of Cranelift's assembler.
    ///
    /// # Errors
    ///
    /// The same as [`Native::new`].
    pub fn listing(graph: &Graph, sets: &[Set]) -> Result<String, Error> {
        let prepared = prepared(graph, sets)?;
        machine::listing(&prepared.graph, &prepared.questions)
    }

    /// Returns the size of the machine code in bytes.
    pub fn code_len(&self) -> usize {
        self.machine.code_len()
    }
}

/// Input of code generation.
struct Prepared<'a> {
    graph: Cow<'a, Graph>,
    /// How the code looks up each set; `None` for unused sets.
    questions: Vec<Option<code::Question>>,
    /// Tables whose addresses are in `questions`.
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
    /// Returns the filter's result: the snap length if the packet is accepted, or 0.
    #[inline]
    #[expect(clippy::cast_possible_truncation, reason = "the lower half is the result")]
    pub fn run(&self, packet: &Packet<'_>) -> u32 {
        self.answer(packet) as u32
    }

    /// Returns what the filter decides.
    #[inline]
    pub fn verdict(&self, packet: &Packet<'_>) -> Verdict {
        code::verdict(self.answer(packet))
    }

    /// Returns what the code answers: see [`code::verdict`].
    #[inline]
    fn answer(&self, packet: &Packet<'_>) -> u64 {
        match self.asks_metadata {
            true => self.function.call(packet.data, packet.length, &words(&packet.meta)),
            // A constant, so that six words need not be written to the stack for each packet.
            false => self.function.call(packet.data, packet.length, const { &[0; 6] }),
        }
    }
}

/// Returns the metadata in the layout that the code reads.
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

#[cfg(test)]
mod tests {
    use weir_filter::graph::{Relation, TermId, Width};

    use super::*;

    #[test]
    fn what_is_too_large_is_an_error_and_what_just_fits_is_not() {
        // With the two nodes of the verdicts.
        for (tests, fits) in [(MOST_NODES - 2, true), (MOST_NODES - 1, false)] {
            let mut graph = Graph::new(1);
            let mut next = Graph::REFUSE;
            let word = graph.load(None, 0, Width::Word);
            for number in 0..u32::try_from(tests).unwrap() {
                let bound = graph.constant(number);
                next = graph.compare(Relation::Greater, word, bound, (Graph::ACCEPT, next), TermId(0));
            }
            graph.set_root(next);
            assert_eq!(prepared(&graph, &[]).is_ok(), fits, "{tests}");
            if !fits {
                assert!(
                    matches!(Native::new(&graph, &[]), Err(Error::TooLarge(nodes)) if nodes == MOST_NODES + 1)
                );
            }
        }
    }
}
