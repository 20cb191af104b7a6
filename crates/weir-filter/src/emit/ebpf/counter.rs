//! The counters of a [tally](super::tally).

use super::assembler::Assembler;
use super::instruction::{Alu, FP, Instruction, R0, R1, Register, Size};
use super::stack::LENGTH;

/// The address of the counters.
pub(super) const COUNTERS: Register = Register(9);

/// Bytes of a counter: packets, then bytes, 64 bits each.
pub const COUNTER_BYTES: u32 = 16;

/// The counter of a filter: its offset.
#[derive(Clone, Copy, Debug)]
pub(super) struct Counter(i16);

impl Counter {
    /// That of filter `number`: the first counter is for all packets.
    ///
    /// # Panics
    ///
    /// If there are more than 1000 filters.
    pub(super) fn of(number: usize) -> Self {
        Self(i16::try_from(COUNTER_BYTES as usize * (number + 1)).expect("there are few filters"))
    }

    /// Counts the packet.
    pub(super) fn add(self, out: &mut Assembler) {
        out.push(Instruction::load(Size::Double, R0, COUNTERS, self.0));
        out.push(Instruction::alu64_number(Alu::Add, R0, 1));
        out.push(Instruction::store(Size::Double, COUNTERS, self.0, R0));
        out.push(Instruction::load(Size::Word, R1, FP, LENGTH));
        out.push(Instruction::load(Size::Double, R0, COUNTERS, self.0 + 8));
        out.push(Instruction::alu64(Alu::Add, R0, R1));
        out.push(Instruction::store(Size::Double, COUNTERS, self.0 + 8, R0));
    }
}
