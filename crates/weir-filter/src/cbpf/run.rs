//! Interpreter with the semantics of the kernel and of libpcap's `bpf_filter`.

use super::opcode::{ANCILLARY_XOR_X, ancillary_meta};
use super::{ANCILLARY, MEMORY_WORDS, Opcode, Operand, Program};
use crate::graph::{Operation, Width};
use crate::interpret::Packet;

/// Backward jumps after which a packet is rejected. libpcap uses them to walk chains of headers, advancing at least a
/// byte per step.
const MOST_JUMPS_BACK: u32 = 1 << 16;
/// First negative offset. Negative offsets are not in the packet, although Linux counts some of them from its network
/// and link-layer headers (`SKF_NET_OFF`, `SKF_LL_OFF`).
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
    /// Runs the program on `packet`; returns the number of bytes to keep, 0 for none.
    ///
    /// Registers and memory start as zeros. An invalid instruction rejects the packet when it is executed. Absolute
    /// loads from [`ANCILLARY`] on read the packet's [metadata](crate::interpret::Metadata), and reject the packet for
    /// fields it does not include (receiving CPU, random number).
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
    /// Executes an instruction. `None` rejects the packet, `Some(Some)` is the result.
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

    /// Jumps by `distance`, backward if it is negative.
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
