//! The counters of a [counting](super::counting) function.

use std::mem::offset_of;

use super::assembler::Assembler;
use super::instruction::{Alu, FP, Instruction, R0, R1, Register, Size};
use super::stack::LENGTH;

/// The address of the memory that a crowd of filters is given.
pub(super) const MEMORY: Register = Register(9);

/// A counter, as it is in memory.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(C)]
pub struct Count {
    /// Packets.
    pub packets: u64,
    /// Their bytes.
    pub bytes: u64,
}

/// The counter of a filter: its offset in bytes.
#[derive(Clone, Copy, Debug)]
pub(super) struct Counter(usize);

impl Counter {
    /// That of filter `number`: the first counter is for all packets.
    pub(super) fn of(number: usize) -> Self {
        Self(size_of::<Count>() * (number + 1))
    }

    /// Returns the offset of a field of it.
    fn place(self, field: usize) -> i16 {
        i16::try_from(self.0 + field).expect("there are few filters")
    }

    /// Counts the packet.
    ///
    /// # Panics
    ///
    /// If there are more than 1000 filters.
    pub(super) fn add(self, out: &mut Assembler) {
        let (packets, bytes) = (self.place(offset_of!(Count, packets)), self.place(offset_of!(Count, bytes)));
        out.push(Instruction::load(Size::Double, R0, MEMORY, packets));
        out.push(Instruction::alu64_number(Alu::Add, R0, 1));
        out.push(Instruction::store(Size::Double, MEMORY, packets, R0));
        out.push(Instruction::load(Size::Word, R1, FP, LENGTH));
        out.push(Instruction::load(Size::Double, R0, MEMORY, bytes));
        out.push(Instruction::alu64(Alu::Add, R0, R1));
        out.push(Instruction::store(Size::Double, MEMORY, bytes, R0));
    }
}
