//! Code generation for eBPF: programs for XDP, tc and sockets.
//!
//! The verifier follows every path to a place unless it has seen the same or a more general state there. The code is
//! therefore written so that states at a place are alike: facts known only at compile time are stated once, and what a
//! path has found out is kept on the stack, where the verifier forgets it.
//!
//! Packet bytes are read on one of two paths. The *fast* path reads them directly, once a comparison has shown that
//! they are there. A comparison covers all bytes needed on every path to acceptance, and holds for everything that
//! follows. The *slow* path calls a helper, which also finds bytes beyond the first buffer. Where packets may have
//! several buffers, a program contains its nodes on both paths, except those rarely reached. If a comparison fails, the
//! same node is executed again on the slow path, and so are the nodes after it. Bytes beyond the first buffer are thus
//! never mistaken for bytes beyond the packet.
//!
//! A socket filter has no direct access and only this path. It has an instruction of its own for loads, which costs less
//! than the helper's copy of a few bytes.

mod analysis;
mod assembler;
mod code;
mod counter;
mod counting;
mod crowd;
mod first;
mod instruction;
mod slots;
mod stack;
#[cfg(test)]
mod tests;

use std::fmt;

pub use counter::Count;
pub use counting::counting;
pub use first::{Candidate, NONE, first};
pub use instruction::{Instruction, Register};

use crate::graph::Graph;
use crate::set::{Set, SetId};
use analysis::Analysis;
use assembler::Assembler;

/// Where a program runs, which determines its argument and how it reads the packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Context {
    /// `struct xdp_md`. There is no stripped tag, and all packets are incoming ([`crate::graph::Meta::PacketType`] 0).
    Xdp {
        /// Whether packets may have several buffers. If so, the program is loaded with `BPF_F_XDP_HAS_FRAGS`.
        fragments: bool,
        /// Index of the interface that all packets come from, used instead of the context's. While a program is being
        /// detached, some drivers (veth with GRO) no longer know the interface, and the kernel would follow a null
        /// pointer.
        interface: Option<u32>,
    },
    /// A function called by an XDP program: `r1` is its context, `r2` whether a tag was stripped, `r3` the tag's
    /// EtherType and `r4` the tag, in host byte order.
    XdpTagged {
        /// The same as in [`Context::Xdp`].
        fragments: bool,
        /// The same as in [`Context::Xdp`].
        interface: Option<u32>,
    },
    /// `struct __sk_buff` of tc and tcx, with the packet from its link-layer header on.
    Tc {
        /// Whether it runs at egress, where all packets are outgoing ([`crate::graph::Meta::PacketType`] 4), as packet
        /// sockets see them.
        outgoing: bool,
    },
    /// `struct __sk_buff` of a socket filter (`SO_ATTACH_BPF`).
    Socket,
}

/// How a program reports its verdict ([`crate::graph::Verdict`]).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ending<'a> {
    /// Returns the number that is here for the verdict.
    Return(&'a [u32]),
    /// Returns a number, 0 for a rejected packet, and counts rejected packets in [`Symbol::Refused`].
    Counted {
        /// Return value for an accepted packet.
        accept: u32,
    },
    /// Tail-calls one of the programs in [`Symbol::Outcomes`].
    Call {
        /// For each verdict, the index of its program.
        outcomes: &'a [u32],
        /// Return value if that program is missing.
        otherwise: u32,
    },
}

/// A map that a program needs. Its descriptor is the immediate of the load ([`Relocation::at`]).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Symbol {
    /// A set. Exact members are in a hash whose key is [`Set::words`] words in host byte order; others in a trie
    /// (`BPF_MAP_TYPE_LPM_TRIE`) whose key is the prefix length in host byte order and the address as in packets.
    Set(SetId),
    /// Programs for [`Ending::Call`]: `BPF_MAP_TYPE_PROG_ARRAY`.
    Outcomes,
    /// A 64-bit counter per CPU: `BPF_MAP_TYPE_PERCPU_ARRAY`.
    Refused,
}

/// An instruction that loads the address of a map.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Relocation {
    /// Index of the instruction.
    pub at: usize,
    /// Map.
    pub symbol: Symbol,
}

/// An eBPF program.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Program {
    /// Where it runs.
    pub context: Context,
    /// Code.
    pub instructions: Vec<Instruction>,
    /// Maps it needs, and where.
    pub relocations: Vec<Relocation>,
}

/// A graph that does not fit into an eBPF program.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Error {
    /// Too many instructions for the verifier.
    #[error(
        "the filter needs {0} eBPF instructions, but the kernel accepts at most {MOST_INSTRUCTIONS}: use \
         sets; a filter that runs in the process (source `af_packet`) has no limit"
    )]
    TooLong(u64),
    /// Too many intermediate results for the stack.
    #[error(
        "the filter needs {needed} values at a time, but an eBPF program has room for {most}: use less deeply nested arithmetic"
    )]
    TooManyResults {
        /// Number of results to keep at a time.
        needed: usize,
        /// Number that the stack has room for.
        most: usize,
    },
    /// The program's receiver does not know all verdicts.
    #[error("the filter has {needed} verdicts, but its receiver knows {known}")]
    Verdicts {
        /// Number of verdicts ([`Graph::verdicts`]).
        needed: usize,
        /// Number that the receiver knows.
        known: usize,
    },
}

impl Ending<'_> {
    /// Returns the number of verdicts that can be reported.
    fn verdicts(self) -> usize {
        match self {
            Self::Return(known) | Self::Call { outcomes: known, .. } => known.len(),
            Self::Counted { .. } => 2,
        }
    }
}

/// `BPF_COMPLEXITY_LIMIT_INSNS`: limit of the verifier of Linux 5.2 and later on the instructions in a program, and on
/// those it processes.
pub const MOST_INSTRUCTIONS: u64 = 1_000_000;

/// Number of bytes at the start of a packet that can be read directly. The verifier allows addresses up to 65 535 bytes
/// from the packet's start; an instruction's offset reaches half as far.
const LINEAR_MOST: u32 = 0x7fff;

/// Generates a program from `graph`, whose sets are `sets`.
///
/// # Errors
///
/// Fails if the program would be too long for the kernel or needs more memory than a program has, or if `ending` lacks a
/// verdict.
pub fn emit(graph: &Graph, sets: &[Set], context: Context, ending: Ending<'_>) -> Result<Program, Error> {
    let (analysis, (cells, _)) = analysed(graph, ending.verdicts())?;
    let outcome = code::Outcome::End(ending);
    let code = code::Code::new(graph, sets, context, outcome, &analysis, cells, Assembler::default());
    short_enough(code.run(), analysis.size)
}

/// Returns the analysis of a graph with at most `known` verdicts, the stack cell of each of its slots, and the number of
/// cells.
fn analysed(graph: &Graph, known: usize) -> Result<(Analysis, (Vec<usize>, usize)), Error> {
    let needed = graph.verdicts();
    if needed > known {
        return Err(Error::Verdicts { needed, known });
    }
    let analysis = Analysis::new(graph);
    if analysis.size > MOST_INSTRUCTIONS {
        return Err(Error::TooLong(analysis.size));
    }
    let (cells, count) = slots::cells(graph);
    for (needed, most) in [(analysis.most_kept, stack::TEMPORARIES), (count, stack::CELLS)] {
        if needed > most {
            return Err(Error::TooManyResults { needed, most });
        }
    }
    Ok((analysis, (cells, count)))
}

/// Returns the program, if there is one that the kernel may take. `size`: how long it is at least, if there is none.
fn short_enough(program: Option<Program>, size: u64) -> Result<Program, Error> {
    let program = program.ok_or(Error::TooLong(size))?;
    match program.instructions.len() as u64 {
        length if length > MOST_INSTRUCTIONS => Err(Error::TooLong(length)),
        _ => Ok(program),
    }
}

impl Program {
    /// Returns the program in the kernel's encoding, with map descriptors from `descriptor`.
    pub fn words(&self, mut descriptor: impl FnMut(Symbol) -> i32) -> Vec<u64> {
        let mut instructions = self.instructions.clone();
        for relocation in &self.relocations {
            instructions[relocation.at].immediate = descriptor(relocation.symbol);
        }
        instructions.into_iter().map(Instruction::to_word).collect()
    }

    /// Returns the maps it needs, each once.
    pub fn symbols(&self) -> Vec<Symbol> {
        let mut symbols: Vec<Symbol> = self.relocations.iter().map(|relocation| relocation.symbol).collect();
        symbols.sort_unstable();
        symbols.dedup();
        symbols
    }
}

impl fmt::Display for Program {
    /// Writes one numbered instruction per line, in the notation of the kernel's verifier.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut relocations = self.relocations.iter().peekable();
        let mut second_half = false;
        for (at, instruction) in self.instructions.iter().enumerate() {
            if std::mem::take(&mut second_half) {
                continue;
            }
            second_half = instruction.is_wide();
            match relocations.next_if(|relocation| relocation.at == at) {
                Some(relocation) => {
                    writeln!(f, "{at:>6}: r{} = {}", instruction.destination.0, relocation.symbol)?;
                }
                None => writeln!(f, "{at:>6}: {instruction}")?,
            }
        }
        Ok(())
    }
}

impl fmt::Display for Symbol {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Set(set) => write!(f, "map set{}", set.0),
            Self::Outcomes => write!(f, "map outcomes"),
            Self::Refused => write!(f, "map refused"),
        }
    }
}
