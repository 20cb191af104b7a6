//! Runs a program: the meaning of the kernel and of libpcap's `bpf_filter`.

use super::opcode::{ANCILLARY_XOR_X, ancillary_meta};
use super::{ANCILLARY, MEMORY_WORDS, Opcode, Operand, Program};
use crate::graph::{Operation, Width};
use crate::interpret::Packet;

/// Jumps backward after which a packet is refused: libpcap walks chains of headers with them, each step at least a byte
/// further on.
const MOST_JUMPS_BACK: u32 = 1 << 16;
/// Offsets from here on are negative, and are no bytes of the packet, though Linux takes some of them for offsets from its
/// network and its link-layer header (`SKF_NET_OFF`, `SKF_LL_OFF`).
const NEGATIVE: u32 = 1 << 31;

#[derive(Default)]
struct Machine {
    a: u32,
    x: u32,
    memory: [u32; MEMORY_WORDS],
    at: usize,
    jumps_back: u32,
}

impl Program {
    /// The answer for `packet`: how many of its bytes to keep, 0 for none. Registers and memory begin with zeros. A program
    /// that breaks the rules refuses the packet where it does so.
    ///
    /// Absolute loads from [`ANCILLARY`] on take what the packet's [metadata](crate::interpret::Metadata) says; of what it
    /// does not know (the receiving CPU, a random number), they refuse the packet.
    pub fn run(&self, packet: &Packet<'_>) -> u32 {
        let mut machine = Machine::default();
        loop {
            match machine.step(self, packet) {
                Some(None) => {}
                Some(Some(answer)) => return answer,
                None => return 0,
            }
        }
    }
}

impl Machine {
    /// One instruction: `None` refuses the packet, `Some(Some)` answers.
    fn step(&mut self, program: &Program, packet: &Packet<'_>) -> Option<Option<u32>> {
        let instruction = *program.instructions.get(self.at)?;
        let k = instruction.k;
        self.at += 1;
        let operand = |machine: &Self, operand| match operand {
            Operand::Constant => k,
            Operand::X => machine.x,
        };
        match instruction.opcode()? {
            Opcode::LoadAbsolute(_) if k == ANCILLARY_XOR_X => self.a ^= self.x,
            Opcode::LoadAbsolute(_) if k >= ANCILLARY => self.a = packet.meta.get(ancillary_meta(k)?),
            Opcode::LoadAbsolute(width) => self.a = bytes(packet, k, width)?,
            Opcode::LoadIndirect(width) => self.a = bytes(packet, self.x.wrapping_add(k), width)?,
            Opcode::LoadConstant => self.a = k,
            Opcode::LoadLength => self.a = packet.length,
            Opcode::LoadMemory => self.a = *self.memory.get(k as usize)?,
            Opcode::LoadXConstant => self.x = k,
            Opcode::LoadXLength => self.x = packet.length,
            Opcode::LoadXMemory => self.x = *self.memory.get(k as usize)?,
            Opcode::LoadXHeaderLength => self.x = (bytes(packet, k, Width::Byte)? & 0xf) * 4,
            Opcode::Store => *self.memory.get_mut(k as usize)? = self.a,
            Opcode::StoreX => *self.memory.get_mut(k as usize)? = self.x,
            Opcode::Arithmetic(operation, from) => self.a = operation.apply(self.a, operand(self, from))?,
            Opcode::Negate => self.a = Operation::Subtract.apply(0, self.a)?,
            Opcode::Jump => self.jump(k)?,
            Opcode::Branch(relation, from) => {
                let holds = relation.holds(self.a, operand(self, from));
                self.at += usize::from(if holds { instruction.jt } else { instruction.jf });
            }
            Opcode::ReturnConstant => return Some(Some(k)),
            Opcode::ReturnA => return Some(Some(self.a)),
            Opcode::CopyToX => self.x = self.a,
            Opcode::CopyToA => self.a = self.x,
        }
        Some(None)
    }

    /// Jumps `distance` on, or back if that is negative.
    fn jump(&mut self, distance: u32) -> Option<()> {
        if distance >= NEGATIVE {
            self.jumps_back += 1;
            self.at = self.at.checked_sub(distance.wrapping_neg() as usize)?;
            return (self.jumps_back <= MOST_JUMPS_BACK).then_some(());
        }
        self.at += distance as usize;
        Some(())
    }
}

fn bytes(packet: &Packet<'_>, offset: u32, width: Width) -> Option<u32> {
    (offset < NEGATIVE).then(|| packet.load(offset, width)).flatten()
}
