//! A filter inside a program instead of in front of it, for programs that may not use tail calls.
//!
//! ```text
//! program      calls place              the same, with its calls moved
//! place        answers a number   --->  the filter's instructions
//! functions                             functions
//! ```
//!
//! The program is C, with a placeholder function for the filter (`place` in place.h). libbpf has concatenated its
//! functions and filled in its maps. This module replaces the placeholder's instructions with the filter's; in a program
//! that is bound to its device, preceded by room for what the verifier adds (`leave_room` in stripped.h).

use std::ops::Range;

use libbpf_rs::libbpf_sys::bpf_insn;
use weir_filter::emit::ebpf::{Instruction, Register};

use crate::layout;

/// The number in the function that a filter's instructions replace, as an instruction has it.
const PLACE: i32 = layout::mark::PLACE.0.cast_signed();

/// A program with a placeholder for a filter.
#[derive(Debug)]
pub(crate) struct Code {
    instructions: Vec<Instruction>,
    /// The placeholder function.
    place: Range<usize>,
}

impl Code {
    /// Takes the code of a loaded program. It contains descriptors of the maps, which must be open when it is loaded
    /// again.
    ///
    /// # Panics
    ///
    /// If the program does not have exactly one placeholder.
    pub(crate) fn new(instructions: &[bpf_insn]) -> Self {
        Self::of(instructions.iter().map(instruction).collect())
    }

    fn of(instructions: Vec<Instruction>) -> Self {
        let is_marked = |instruction: &Instruction| instruction.immediate == PLACE;
        let mut marks = (0..instructions.len()).filter(|&at| is_marked(&instructions[at]));
        let mark = marks.next().expect("the program has a place for a filter");
        assert_eq!(marks.next(), None, "the program has the number of the place elsewhere, too");
        let starts = || (0..instructions.len()).filter_map(|at| callee(&instructions, at));
        let start = starts().filter(|&start| start <= mark).max().unwrap_or(0);
        let end = starts().filter(|&start| start > mark).min().unwrap_or(instructions.len());
        Self { instructions, place: start..end }
    }

    /// Returns the instructions of a program that is bound to its device, with `filter` in place: see
    /// [`with`](Self::with).
    pub(crate) fn with_room(&self, filter: &[u64]) -> Vec<u64> {
        self.with(&[room(filter.len()), filter.to_vec()].concat())
    }

    /// Returns the program's instructions with `filter` in place: a function with the placeholder's arguments, which may
    /// be followed by functions that it calls.
    pub(crate) fn with(&self, filter: &[u64]) -> Vec<u64> {
        let moved = |at: usize| if at < self.place.end { at } else { at - self.place.len() + filter.len() };
        let word = |at: usize| {
            let mut instruction = self.instructions[at];
            if let Some(callee) = callee(&self.instructions, at) {
                instruction.immediate = distance(moved(at) + 1, moved(callee));
            }
            instruction.to_word()
        };
        let before = (0..self.place.start).map(word);
        let behind = (self.place.end..self.instructions.len()).map(word);
        before.chain(filter.iter().copied()).chain(behind).collect()
    }
}

/// Returns two instructions that never run for each of the `length` instructions of a filter. The verifier removes
/// them. In exchange, it adds at most three to an instruction (a division; a set lookup gets two), and fewer than half
/// of a filter's instructions are of these kinds.
fn room(length: usize) -> Vec<u64> {
    /// A jump reaches at most 32767 instructions.
    const MOST: usize = 1 << 14;
    // `r0 = 0`; `if r0 == 0 goto +0`: opcode, registers, offset, immediate, from the lowest byte up.
    const ZERO: u64 = 0xb7;
    const OVER: u64 = 0x15;
    let skipped = |length: usize| [ZERO, OVER | (length as u64) << 16].into_iter().chain(vec![ZERO; length]);
    let all = 2 * length;
    (0..all).step_by(MOST).flat_map(|at| skipped(MOST.min(all - at))).collect()
}

/// Returns where the function called at `at` begins, if there is a call.
fn callee(instructions: &[Instruction], at: usize) -> Option<usize> {
    let call = instructions[at];
    let there =
        || (at + 1).checked_add_signed(call.immediate as isize).expect("libbpf has put the functions there");
    call.is_local_call().then(there)
}

fn distance(from: usize, to: usize) -> i32 {
    let place = |at| i32::try_from(at).expect("a program is shorter than that");
    place(to) - place(from)
}

fn instruction(from: &bpf_insn) -> Instruction {
    Instruction {
        code: from.code,
        destination: Register(from.dst_reg()),
        source: Register(from.src_reg()),
        offset: from.off,
        immediate: from.imm,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// `code`, `source`, `immediate`.
    fn program(instructions: &[(u8, u8, i32)]) -> Vec<Instruction> {
        let one = |&(code, source, immediate): &(u8, u8, i32)| Instruction {
            code,
            destination: Register(0),
            source: Register(source),
            offset: 0,
            immediate,
        };
        instructions.iter().map(one).collect()
    }

    const EXIT: (u8, u8, i32) = (0x95, 0, 0);
    const MARK: (u8, u8, i32) = (0xb7, 0, PLACE);

    fn call(distance: i32) -> (u8, u8, i32) {
        (0x85, 1, distance)
    }

    fn words(instructions: &[(u8, u8, i32)]) -> Vec<u64> {
        program(instructions).into_iter().map(Instruction::to_word).collect()
    }

    #[test]
    fn calls_follow_what_moves() {
        // A helper's number is not a distance.
        let helper = (0x85, 0, 2);
        let code = Code::of(program(&[call(2), call(3), EXIT, MARK, EXIT, helper, call(-4), EXIT]));
        assert_eq!(code.place, 3..5);
        assert_eq!(code.with_room(&[7, 8, 9]), {
            let mut expected = words(&[call(2), call(4 + 8), EXIT]);
            expected.extend(room(3));
            expected.extend([7, 8, 9]);
            expected.extend(words(&[helper, call(-5 - 8), EXIT]));
            expected
        });
        let last = Code::of(program(&[call(2), call(3), EXIT, helper, EXIT, MARK, EXIT]));
        assert_eq!(last.place, 5..7);
        assert_eq!(last.with(&[7]).len(), 5 + 1);
    }

    #[test]
    fn a_filter_brings_twice_its_length_of_room() {
        assert_eq!(room(0), []);
        let dead = |length: usize| [vec![0xb7, 0x15 | (length as u64) << 16], vec![0xb7; length]].concat();
        assert_eq!(room(1), dead(2));
        assert_eq!(room(20_000), [dead(1 << 14), dead(1 << 14), dead(40_000 - (2 << 14))].concat());
    }
}
