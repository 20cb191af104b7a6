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

/// The number in a function that a filter's instructions replace, as an instruction has it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Mark(i32);

impl Mark {
    /// That of the only placeholder, or the first of two.
    pub(crate) const PLACE: Self = Self(layout::mark::PLACE.0.cast_signed());
    /// That of another one.
    pub(crate) const OTHER_PLACE: Self = Self(layout::mark::OTHER_PLACE.0.cast_signed());
}

/// A program with placeholders for filters.
#[derive(Debug)]
pub(crate) struct Code {
    instructions: Vec<Instruction>,
    /// The placeholder functions, in the order of their marks.
    places: Vec<Range<usize>>,
}

impl Code {
    /// Takes the code of a loaded program. It contains descriptors of the maps, which must be open when it is loaded
    /// again.
    ///
    /// # Panics
    ///
    /// If the program does not have exactly one placeholder with each of these marks.
    pub(crate) fn new(instructions: &[bpf_insn], marks: &[Mark]) -> Self {
        Self::of(instructions.iter().map(instruction).collect(), marks)
    }

    fn of(instructions: Vec<Instruction>, marks: &[Mark]) -> Self {
        let places = marks.iter().map(|&mark| place(&instructions, mark)).collect();
        Self { instructions, places }
    }

    /// Returns the instructions of a program that is bound to its device, with `filter` in place: see
    /// [`with`](Self::with).
    pub(crate) fn with_room(&self, filter: &[u64]) -> Vec<u64> {
        self.with(&[&[room(filter.len()), filter.to_vec()].concat()])
    }

    /// Returns the program's instructions with `filters` in their places: each is a function with the placeholder's arguments,
    /// which may be followed by functions that it calls.
    pub(crate) fn with(&self, filters: &[&[u64]]) -> Vec<u64> {
        debug_assert_eq!(filters.len(), self.places.len(), "a filter for each place");
        let filled = || self.places.iter().zip(filters);
        let moved = |at: usize| {
            let before = filled().filter(|(place, _)| place.end <= at);
            before.fold(at, |at, (place, filter)| at + filter.len() - place.len())
        };
        let mut words = Vec::new();
        for (at, &(mut instruction)) in self.instructions.iter().enumerate() {
            match filled().find(|(place, _)| place.contains(&at)) {
                Some((place, filter)) if at == place.start => words.extend_from_slice(filter),
                Some(_) => {}
                None => {
                    if let Some(callee) = callee(&self.instructions, at) {
                        instruction.immediate = distance(moved(at) + 1, moved(callee));
                    }
                    words.push(instruction.to_word());
                }
            }
        }
        words
    }
}

/// Returns the function that has this mark.
fn place(instructions: &[Instruction], mark: Mark) -> Range<usize> {
    let mut marks = (0..instructions.len()).filter(|&at| instructions[at].immediate == mark.0);
    let at = marks.next().expect("the program has a place for a filter");
    assert_eq!(marks.next(), None, "the program has the number of the place elsewhere, too");
    let starts = || (0..instructions.len()).filter_map(|at| callee(instructions, at));
    let start = starts().filter(|&start| start <= at).max().unwrap_or(0);
    let end = starts().filter(|&start| start > at).min().unwrap_or(instructions.len());
    start..end
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
    use std::slice;

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
    const MARK: (u8, u8, i32) = (0xb7, 0, Mark::PLACE.0);
    const OTHER: (u8, u8, i32) = (0xb7, 0, Mark::OTHER_PLACE.0);

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
        let marks = [Mark::PLACE];
        let code = Code::of(program(&[call(2), call(3), EXIT, MARK, EXIT, helper, call(-4), EXIT]), &marks);
        assert_eq!(code.places[..], *slice::from_ref(&(3..5)));
        assert_eq!(code.with_room(&[7, 8, 9]), {
            let mut expected = words(&[call(2), call(4 + 8), EXIT]);
            expected.extend(room(3));
            expected.extend([7, 8, 9]);
            expected.extend(words(&[helper, call(-5 - 8), EXIT]));
            expected
        });
        let last = Code::of(program(&[call(2), call(3), EXIT, helper, EXIT, MARK, EXIT]), &marks);
        assert_eq!(last.places[..], *slice::from_ref(&(5..7)));
        assert_eq!(last.with(&[&[7]]).len(), 5 + 1);
    }

    #[test]
    fn two_filters_take_their_places_or_one_of_them() {
        let all = [call(3), call(4), call(5), EXIT, OTHER, EXIT, MARK, EXIT, call(-5), EXIT];
        let both = Code::of(program(&all), &[Mark::PLACE, Mark::OTHER_PLACE]);
        assert_eq!(both.places, [6..8, 4..6]);
        let mut expected = words(&[call(3), call(5), call(5), EXIT]);
        expected.extend([7, 8, 9, 5]);
        expected.extend(words(&[call(-5), EXIT]));
        assert_eq!(both.with(&[&[5], &[7, 8, 9]]), expected);
        let one = Code::of(program(&all), &[Mark::OTHER_PLACE]);
        let mut expected = words(&[call(3), call(3), call(4), EXIT]);
        expected.push(7);
        expected.extend(words(&[MARK, EXIT, call(-4), EXIT]));
        assert_eq!(one.with(&[&[7]]), expected);
    }

    #[test]
    fn a_filter_brings_twice_its_length_of_room() {
        assert_eq!(room(0), []);
        let dead = |length: usize| [vec![0xb7, 0x15 | (length as u64) << 16], vec![0xb7; length]].concat();
        assert_eq!(room(1), dead(2));
        assert_eq!(room(20_000), [dead(1 << 14), dead(1 << 14), dead(40_000 - (2 << 14))].concat());
    }
}
