//! Classic BPF: the programs of packet sockets and of libpcap, as the kernel describes them in
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
pub use text::TextError;

/// Words of scratch memory (`BPF_MEMWORDS`).
pub const MEMORY_WORDS: usize = 16;
/// Most instructions that the kernel takes (`BPF_MAXINSNS`).
pub const MOST_INSTRUCTIONS: usize = 4096;

/// `struct sock_filter`: one instruction.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Instruction {
    /// What it does: an [`Opcode`], if it is valid.
    pub code: u16,
    /// Instructions to skip if its question is answered with yes.
    pub jt: u8,
    /// And if with no.
    pub jf: u8,
    /// Its constant, offset or index.
    pub k: u32,
}

impl Instruction {
    /// An instruction that does not branch.
    pub fn new(opcode: Opcode, k: u32) -> Self {
        Self { code: opcode.code(), jt: 0, jf: 0, k }
    }

    /// What it does; `None` if nothing that the kernel knows.
    pub fn opcode(self) -> Option<Opcode> {
        Opcode::decode(self.code)
    }
}

/// A program. It may come from anywhere: [`Program::check`] says what is wrong with it, and [`Program::run`] runs it whatever that
/// is.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Program {
    /// From the first on.
    pub instructions: Vec<Instruction>,
}

impl Program {
    /// Number of instructions.
    pub fn len(&self) -> usize {
        self.instructions.len()
    }

    /// Has no instruction, which no program may.
    pub fn is_empty(&self) -> bool {
        self.instructions.is_empty()
    }
}
