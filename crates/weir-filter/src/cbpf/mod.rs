//! Classic BPF: programs for packet sockets and for libpcap, as described in the kernel's
//! Documentation/networking/filter.rst.

mod check;
mod converted;
mod cost;
mod expression;
mod image;
mod lift;
mod opcode;
mod run;
mod text;

pub use check::{Flaw, Rules};
pub use cost::Cost;
pub use expression::NoExpression;
pub use lift::LiftError;
pub use opcode::{ANCILLARY, Opcode, Operand, ancillary_meta};
pub use run::run;
pub use text::TextError;

/// Words of scratch memory (`BPF_MEMWORDS`).
pub const MEMORY_WORDS: usize = 16;
/// Maximum number of instructions that the kernel accepts (`BPF_MAXINSNS`).
pub const MOST_INSTRUCTIONS: usize = 4096;

/// An instruction: `struct sock_filter`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Instruction {
    /// Operation: the code of an [`Opcode`], if valid.
    pub code: u16,
    /// Number of instructions to skip if a branch is taken.
    pub jt: u8,
    /// Number of instructions to skip if it is not.
    pub jf: u8,
    /// Constant, offset or index.
    pub k: u32,
}

impl Instruction {
    /// Creates an instruction that does not branch.
    pub fn new(opcode: Opcode, k: u32) -> Self {
        Self { code: opcode.code(), jt: 0, jf: 0, k }
    }

    /// Returns the operation; `None` if the kernel does not know it.
    pub fn opcode(self) -> Option<Opcode> {
        Opcode::decode(self.code)
    }
}

/// A program, possibly from an untrusted source: [`Program::check`] finds flaws in it, and [`Program::run`] runs even
/// flawed programs safely.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Program {
    /// Instructions in order.
    pub instructions: Vec<Instruction>,
}

impl Program {
    /// Returns the number of instructions.
    pub fn len(&self) -> usize {
        self.instructions.len()
    }

    /// Returns whether the program has no instructions, which makes it invalid.
    pub fn is_empty(&self) -> bool {
        self.instructions.is_empty()
    }
}
