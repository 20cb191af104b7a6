//! Length of a program after the kernel converts it to eBPF (`bpf_convert_filter` in net/core/filter.c), where a jump
//! spans at most 32767 instructions.

use super::{ANCILLARY, Instruction, Opcode, Operand, Program};
use crate::graph::{Operation, Relation, Width};

/// The range of an eBPF jump, less eight: in programs of nearly 4096 instructions, Linux 6.18 was seen to reject jumps
/// six below the limit.
const FURTHEST: usize = i16::MAX as usize - 8;

impl Program {
    /// Returns the first jump that is too long once the program is converted. All jumps must go forward and stay within
    /// the program.
    pub(crate) fn goes_too_far(&self) -> Option<usize> {
        let lengths = self.instructions.iter().map(|instruction| instruction.converted_len());
        // The start of each instruction: the sum of the lengths before it.
        let begins: Vec<usize> =
            lengths.scan(0, |sum, length| Some(std::mem::replace(sum, *sum + length))).collect();
        let is_far = |&(at, instruction): &(usize, &Instruction)| {
            let to = at + 1 + instruction.k as usize;
            instruction.opcode() == Some(Opcode::Jump) && begins[to] - begins[at] > FURTHEST + 1
        };
        self.instructions.iter().enumerate().find(is_far).map(|(at, _)| at)
    }
}

impl Instruction {
    /// Returns the number of eBPF instructions that the kernel makes of this one, on processors that allow unaligned
    /// loads.
    fn converted_len(&self) -> usize {
        /// The call that loads bytes by the slow path, and the check of its result.
        const CALL: usize = 8;
        let is_set = usize::from(self.k != 0);
        let load = |width: Width| {
            let swap = usize::from(width != Width::Byte && cfg!(target_endian = "little"));
            let far = if self.k > i16::MAX as u32 { 2 } else { 0 };
            if self.k.cast_signed() < 0 { CALL } else { 4 + is_set + far + swap + CALL }
        };
        match self.opcode() {
            Some(Opcode::LoadAbsolute(_)) if self.k >= ANCILLARY => 4,
            Some(Opcode::LoadAbsolute(width)) => load(width),
            Some(Opcode::LoadIndirect(_)) => CALL + is_set,
            Some(Opcode::LoadXHeaderLength) => 1 + load(Width::Byte) + 5,
            Some(Opcode::Arithmetic(Operation::Divide | Operation::Remainder, Operand::X)) => 5,
            Some(Opcode::Branch(relation, operand)) => {
                let constant = usize::from(operand == Operand::Constant && self.k.cast_signed() < 0);
                let one_way = self.jf == 0 || (self.jt == 0 && relation != Relation::AnyBit);
                constant + if one_way { 1 } else { 2 }
            }
            Some(Opcode::ReturnConstant) => 2,
            _ => 1,
        }
    }
}
