//! Validity of a program by the rules of the kernel or of libpcap.

use super::opcode::{ALU, JMP, LD, LDX, MEM, MSH, RET, ST, STX, X, ancillary_name};
use super::{ANCILLARY, Instruction, MEMORY_WORDS, MOST_INSTRUCTIONS, Opcode, Operand, Program};
use crate::graph::Operation;

const UNKNOWN: &str = "no such instruction";
const OUTSIDE: &str = "jumps outside the program";
const BY_ZERO: &str = "divides by zero";

/// Bits of codes: operations and a relation (linux/bpf_common.h).
const DIVIDE: u16 = 0x30;
const REMAINDER: u16 = 0x90;
const XOR: u16 = 0xa0;
const ANY_BIT: u16 = 0x40;

/// The rules to check a program by.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Rules {
    /// The kernel's: `bpf_check_classic` and `bpf_convert_filter` in net/core/filter.c.
    Kernel,
    /// libpcap's rules for programs it runs itself (`bpf_validate`): longer programs, backward jumps and reads of
    /// memory never written are allowed, and many codes that are no instructions.
    Library,
}

/// A flaw in a program.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("instruction {at}: {what}")]
pub struct Flaw {
    /// Index of the instruction.
    pub at: usize,
    /// Description.
    pub what: &'static str,
}

impl Program {
    /// Checks the program; returns the first flaw.
    pub fn check(&self, rules: Rules) -> Result<(), Flaw> {
        let flaw = |at, what| Err(Flaw { at, what });
        if rules == Rules::Kernel && self.len() > MOST_INSTRUCTIONS {
            return flaw(MOST_INSTRUCTIONS, "the kernel accepts at most 4096 instructions");
        }
        for at in 0..self.len() {
            let wrong = match rules {
                Rules::Kernel => self.wrong_for_kernel(at),
                Rules::Library => self.wrong_for_library(at),
            };
            if let Some(what) = wrong {
                return flaw(at, what);
            }
        }
        let Some(last) = self.len().checked_sub(1) else { return flaw(0, "the program is empty") };
        let end = self.instructions[last];
        let ends = match rules {
            Rules::Kernel => matches!(end.opcode(), Some(Opcode::ReturnConstant | Opcode::ReturnA)),
            Rules::Library => end.code & 7 == RET,
        };
        if !ends {
            return flaw(last, "the last instruction is not a return");
        }
        if rules == Rules::Library {
            return Ok(());
        }
        if let Some(at) = self.reads_unwritten() {
            return flaw(at, "reads memory that may not have been written");
        }
        match self.goes_too_far() {
            Some(at) => flaw(at, "jumps too far: the kernel replaces the loads in between with longer code"),
            None => Ok(()),
        }
    }

    fn wrong_for_kernel(&self, at: usize) -> Option<&'static str> {
        let instruction = self.instructions[at];
        let Some(opcode) = instruction.opcode() else { return Some(UNKNOWN) };
        let k = instruction.k;
        let behind = self.len() - at - 1;
        match opcode {
            Opcode::LoadAbsolute(_) if k >= ANCILLARY && ancillary_name(k).is_none() => {
                Some("Linux defines nothing at this offset")
            }
            Opcode::LoadMemory | Opcode::LoadXMemory | Opcode::Store | Opcode::StoreX => wrong_word(k),
            Opcode::Arithmetic(Operation::Divide | Operation::Remainder, Operand::Constant) if k == 0 => {
                Some(BY_ZERO)
            }
            Opcode::Arithmetic(Operation::ShiftLeft | Operation::ShiftRight, Operand::Constant)
                if k >= 32 =>
            {
                Some("shifts by 32 bits or more")
            }
            Opcode::Jump => (k as usize >= behind).then_some(OUTSIDE),
            Opcode::Branch(..) => wrong_branch(instruction, behind),
            _ => None,
        }
    }

    /// libpcap looks only at those bits of the code that it needs to see what could go wrong.
    fn wrong_for_library(&self, at: usize) -> Option<&'static str> {
        let instruction = self.instructions[at];
        let k = instruction.k;
        match (instruction.code & 7, instruction.code & 0xf0) {
            (LD | LDX, mode) if mode & 0xe0 == MEM => wrong_word(k),
            (LD | LDX, mode) => (mode & 0xe0 > MSH).then_some(UNKNOWN),
            (ST | STX, _) => wrong_word(k),
            (ALU, DIVIDE | REMAINDER) if instruction.code & X == 0 && k == 0 => Some(BY_ZERO),
            (ALU, operation) => (operation > XOR).then_some(UNKNOWN),
            // Backward jumps are additions that wrap.
            (JMP, 0) => {
                let to = u32::try_from(at + 1).ok()?.wrapping_add(k);
                (to as usize >= self.len()).then_some(OUTSIDE)
            }
            (JMP, ..=ANY_BIT) => wrong_branch(instruction, self.len() - at - 1),
            (JMP, _) => Some(UNKNOWN),
            _ => None,
        }
    }

    /// Returns the first instruction that reads memory which some path to it has not written. Where this matters, all
    /// jumps go forward.
    fn reads_unwritten(&self) -> Option<usize> {
        // Bit k: M[k] was written on every path here.
        let mut written = vec![u16::MAX; self.len()];
        let mut now = 0;
        for (at, instruction) in self.instructions.iter().enumerate() {
            now &= written[at];
            let mut reaches = |distance: u32, now: u16| {
                if let Some(there) = written.get_mut(at + 1 + distance as usize) {
                    *there &= now;
                }
            };
            match instruction.opcode()? {
                Opcode::Store | Opcode::StoreX => now |= 1 << instruction.k,
                Opcode::LoadMemory | Opcode::LoadXMemory if now & 1 << instruction.k == 0 => return Some(at),
                Opcode::Jump => {
                    reaches(instruction.k, now);
                    now = u16::MAX;
                }
                Opcode::Branch(..) => {
                    reaches(instruction.jt.into(), now);
                    reaches(instruction.jf.into(), now);
                    now = u16::MAX;
                }
                _ => {}
            }
        }
        None
    }
}

fn wrong_word(k: u32) -> Option<&'static str> {
    (k as usize >= MEMORY_WORDS).then_some("memory has only 16 words")
}

fn wrong_branch(instruction: Instruction, behind: usize) -> Option<&'static str> {
    (usize::from(instruction.jt.max(instruction.jf)) >= behind).then_some(OUTSIDE)
}
