//! eBPF: programs for XDP, for tc, and for sockets.
//!
//! The verifier looks at each path to each place unless it has seen the same or a more general state there, so code is made
//! so that states at a place are alike: what is known at compile time alone is said once, and what a path has found out is
//! on the stack, where the verifier forgets it.
//!
//! Bytes of the packet are read in one of two ways. *Fast*: from where the packet lies, once a comparison has shown that
//! they are there; a comparison reaches as far as every way to acceptance needs, and holds for all that follows. *Slow*:
//! by a helper, which also finds bytes behind the first buffer. Where a packet may have several buffers, a program has
//! its nodes in both ways, but for those that are rarely asked: when a comparison fails, the same node is asked in the slow way,
//! and so are those below it. So "beyond the first buffer" is never taken for "beyond the packet".

mod assembler;
mod code;
mod instruction;
mod plan;
mod slots;
mod stack;
#[cfg(test)]
mod tests;

use std::fmt;

pub use instruction::{Instruction, Register};

use crate::graph::Graph;
use crate::set::{Set, SetId};
use plan::Plan;

/// Where a program runs: what it is called with, and how it reads the packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Context {
    /// `struct xdp_md`. No tag was taken off, and packets arrive ([`crate::graph::Meta::PacketType`] 0).
    Xdp {
        /// Packets may come in several buffers; the program is then loaded with `BPF_F_XDP_HAS_FRAGS`.
        fragments: bool,
        /// Index of the interface that all packets come from, which then is not asked for: drivers are that may have forgotten
        /// it while the program is taken off (veth with GRO), and the kernel would follow a null pointer.
        interface: Option<u32>,
    },
    /// A function that an XDP program calls: `r1` is its context, `r2` whether a tag was taken off, `r3` its EtherType and
    /// `r4` the tag, in host byte order.
    XdpTagged {
        /// As above.
        fragments: bool,
        /// As above.
        interface: Option<u32>,
    },
    /// `struct __sk_buff` of tc and tcx, from the link-layer header on.
    Tc {
        /// At egress: every packet goes out ([`crate::graph::Meta::PacketType`] 4), as packet sockets see it.
        outgoing: bool,
    },
    /// `struct __sk_buff` of a socket filter (`SO_ATTACH_BPF`).
    Socket,
}

/// How a program answers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ending {
    /// By what it returns.
    Return {
        /// If the packet is wanted.
        accept: u32,
        /// If not.
        refuse: u32,
    },
    /// By what it returns, 0 if the packet is not wanted, which it counts in [`Symbol::Refused`].
    Counted {
        /// If the packet is wanted.
        accept: u32,
    },
    /// By the program that goes on, one of [`Symbol::Outcomes`].
    Call {
        /// Index of that for packets that are wanted.
        accept: u32,
        /// Index of that for others.
        refuse: u32,
        /// What is returned if it is not there.
        otherwise: u32,
    },
}

/// A map that a program needs; its descriptor is the immediate number of the load ([`Relocation::at`]).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Symbol {
    /// A set: a hash if its members are exact, with a key of [`Set::words`] words in host byte order; else a trie
    /// (`BPF_MAP_TYPE_LPM_TRIE`) whose key is the number of bits in host byte order and the address as in packets.
    Set(SetId),
    /// The programs of [`Ending::Call`]: `BPF_MAP_TYPE_PROG_ARRAY`.
    Outcomes,
    /// One counter of 64 bits per CPU: `BPF_MAP_TYPE_PERCPU_ARRAY`.
    Refused,
}

/// A place where the address of a map is loaded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Relocation {
    /// Index of the instruction.
    pub at: usize,
    /// Which map.
    pub symbol: Symbol,
}

/// A program for the kernel.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Program {
    /// For whom.
    pub context: Context,
    /// What it does.
    pub instructions: Vec<Instruction>,
    /// The maps it needs, where they are needed.
    pub relocations: Vec<Relocation>,
}

/// A graph that no program can be made of.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Error {
    /// More than the kernel looks at.
    #[error(
        "the filter takes {0} eBPF instructions, and the kernel takes up to {MOST_INSTRUCTIONS}: use sets; in \
         the process (`--source af_packet`) there is no limit"
    )]
    TooLong(u64),
    /// More results at a time than the stack has room for.
    #[error(
        "the filter keeps {needed} results at a time, and an eBPF program has room for {most}: nest its arithmetic less deep"
    )]
    TooManyResults {
        /// Results.
        needed: usize,
        /// Room for them.
        most: usize,
    },
}

/// `BPF_COMPLEXITY_LIMIT_INSNS`: what the verifier of Linux 5.2 and later takes, and looks at.
pub const MOST_INSTRUCTIONS: u64 = 1_000_000;

/// Bytes up to which a packet is read directly. The verifier lets an address go 65 535 bytes beyond the packet's beginning;
/// an instruction's offset has half of that.
const LINEAR_MOST: u32 = 0x7fff;

/// Makes a program of `graph`, whose sets are `sets`.
///
/// # Errors
///
/// It would be too long for the kernel, or needs more memory than a program has.
pub fn emit(graph: &Graph, sets: &[Set], context: Context, ending: Ending) -> Result<Program, Error> {
    let plan = Plan::new(graph);
    if plan.size > MOST_INSTRUCTIONS {
        return Err(Error::TooLong(plan.size));
    }
    let (cells, count) = slots::cells(graph);
    for (needed, most) in [(plan.most_kept, stack::TEMPORARIES), (count, stack::CELLS)] {
        if needed > most {
            return Err(Error::TooManyResults { needed, most });
        }
    }
    let program = code::Code::new(graph, sets, context, ending, &plan, cells).run();
    let program = program.ok_or(Error::TooLong(plan.size))?;
    match program.instructions.len() as u64 {
        length if length > MOST_INSTRUCTIONS => Err(Error::TooLong(length)),
        _ => Ok(program),
    }
}

impl Program {
    /// The instructions as the kernel takes them, with the descriptor that `descriptor` gives for each map.
    pub fn words(&self, mut descriptor: impl FnMut(Symbol) -> i32) -> Vec<u64> {
        let mut instructions = self.instructions.clone();
        for relocation in &self.relocations {
            instructions[relocation.at].immediate = descriptor(relocation.symbol);
        }
        instructions.into_iter().map(Instruction::to_word).collect()
    }

    /// The maps it needs, each once.
    pub fn symbols(&self) -> Vec<Symbol> {
        let mut symbols: Vec<Symbol> = self.relocations.iter().map(|relocation| relocation.symbol).collect();
        symbols.sort_unstable();
        symbols.dedup();
        symbols
    }
}

impl fmt::Display for Program {
    /// One instruction a line, with its number, in the notation of the kernel's verifier.
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
