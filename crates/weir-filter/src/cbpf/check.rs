//! Validity of a program by the rules of the kernel or of libpcap.

use super::opcode::ancillary_name;
use super::{ANCILLARY, MEMORY_WORDS, MOST_INSTRUCTIONS, Opcode, Operand, Program};
use crate::graph::Operation;

/// The rules to check a program by.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Rules {
    /// The kernel's: `bpf_check_classic` and `bpf_convert_filter` in net/core/filter.c.
    Kernel,
    /// libpcap's rules for programs it runs itself: longer programs, backward jumps and reads of memory never written
    /// are allowed.
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
            if let Some(what) = self.wrong_at(at, rules) {
                return flaw(at, what);
            }
        }
        let Some(last) = self.len().checked_sub(1) else { return flaw(0, "the program is empty") };
        if !matches!(self.instructions[last].opcode(), Some(Opcode::ReturnConstant | Opcode::ReturnA)) {
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

    fn wrong_at(&self, at: usize, rules: Rules) -> Option<&'static str> {
        let instruction = self.instructions[at];
        let Some(opcode) = instruction.opcode() else { return Some("no such instruction") };
        let (k, kernel) = (instruction.k, rules == Rules::Kernel);
        let behind = self.len() - at - 1;
        match opcode {
            Opcode::LoadAbsolute(_) if kernel && k >= ANCILLARY && ancillary_name(k).is_none() => {
                Some("Linux defines nothing at this offset")
            }
            Opcode::LoadMemory | Opcode::LoadXMemory | Opcode::Store | Opcode::StoreX
                if k as usize >= MEMORY_WORDS =>
            {
                Some("memory has only 16 words")
            }
            Opcode::Arithmetic(Operation::Divide | Operation::Remainder, Operand::Constant) if k == 0 => {
                Some("divides by zero")
            }
            Opcode::Arithmetic(Operation::ShiftLeft | Operation::ShiftRight, Operand::Constant)
                if kernel && k >= 32 =>
            {
                Some("shifts by 32 bits or more")
            }
            Opcode::Jump => {
                let back = k.wrapping_neg() as usize <= at + 1 && !kernel && k.cast_signed() < 0;
                (k as usize >= behind && !back).then_some("jumps outside the program")
            }
            Opcode::Branch(..) if usize::from(instruction.jt.max(instruction.jf)) >= behind => {
                Some("jumps outside the program")
            }
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
