//! Interpreter with the semantics of the kernel and of libpcap's `bpf_filter`.

use std::array;
use std::sync::LazyLock;

use super::opcode::{ANCILLARY_XOR_X, ancillary_meta};
use super::{ANCILLARY, Instruction, MEMORY_WORDS, Opcode, Operand, Program, Rules};
use crate::graph::{Operation, Width};
use crate::interpret::Packet;

/// Backward jumps after which a packet is rejected. libpcap uses them to walk chains of headers, advancing at least a
/// byte per step.
const MOST_JUMPS_BACK: u32 = 1 << 16;
/// First negative offset. Negative offsets are not in the packet, although Linux counts some of them from its network
/// and link-layer headers (`SKF_NET_OFF`, `SKF_LL_OFF`).
const NEGATIVE: u32 = 1 << 31;

/// The opcode of each code, because decoding one takes longer than running it.
static OPCODES: LazyLock<[Option<Opcode>; 256]> =
    LazyLock::new(|| array::from_fn(|code| u16::try_from(code).ok().and_then(Opcode::decode)));

#[derive(Default)]
struct Machine {
    a: u32,
    x: u32,
    memory: [u32; MEMORY_WORDS],
    at: usize,
    jumps_back: u32,
}

impl Program {
    /// Runs the program on `packet` like the kernel; see [`run`].
    pub fn run(&self, packet: &Packet<'_>) -> u32 {
        run(Rules::Kernel, |at| self.instructions.get(at).copied(), packet)
    }
}

/// Runs a program on `packet`; returns the number of bytes to keep, 0 for none. `fetch` returns the instruction at an
/// index, `None` if the program has no such.
///
/// Registers and memory start as zeros. An invalid instruction rejects the packet when it is executed. By the rules of
/// the kernel, absolute loads from [`ANCILLARY`] on read the packet's [metadata](crate::interpret::Metadata), and
/// reject the packet for fields it does not include (receiving CPU, random number); offsets from X may be negative. By
/// those of libpcap, all of these reject the packet.
pub fn run(rules: Rules, fetch: impl Fn(usize) -> Option<Instruction>, packet: &Packet<'_>) -> u32 {
    let mut machine = Machine::default();
    let opcodes = &*OPCODES;
    loop {
        let Some(instruction) = fetch(machine.at) else { return 0 };
        let Some(&Some(opcode)) = opcodes.get(usize::from(instruction.code)) else { return 0 };
        match machine.step(rules, opcode, instruction, packet) {
            Some(None) => {}
            Some(Some(answer)) => return answer,
            None => return 0,
        }
    }
}

impl Machine {
    /// Executes an instruction. `None` rejects the packet, `Some(Some)` is the result.
    #[inline]
    fn step(
        &mut self,
        rules: Rules,
        opcode: Opcode,
        instruction: Instruction,
        packet: &Packet<'_>,
    ) -> Option<Option<u32>> {
        let kernel = rules == Rules::Kernel;
        let k = instruction.k;
        self.at += 1;
        let operand = |machine: &Self, operand| match operand {
            Operand::Constant => k,
            Operand::X => machine.x,
        };
        match opcode {
            Opcode::LoadAbsolute(_) if kernel && k == ANCILLARY_XOR_X => self.a ^= self.x,
            Opcode::LoadAbsolute(_) if kernel && k >= ANCILLARY => {
                self.a = packet.meta.get(ancillary_meta(k)?)
            }
            Opcode::LoadAbsolute(width) => self.a = bytes(packet, k, width)?,
            Opcode::LoadIndirect(width) if kernel => self.a = bytes(packet, self.x.wrapping_add(k), width)?,
            Opcode::LoadIndirect(width) => self.a = bytes(packet, self.x.checked_add(k)?, width)?,
            Opcode::LoadConstant => self.a = k,
            Opcode::LoadLength => self.a = packet.length,
            Opcode::LoadMemory => self.a = *self.memory.get(k as usize)?,
            Opcode::LoadXConstant => self.x = k,
            Opcode::LoadXLength => self.x = packet.length,
            Opcode::LoadXMemory => self.x = *self.memory.get(k as usize)?,
            Opcode::LoadXHeaderLength => self.x = (bytes(packet, k, Width::Byte)? & 0xf) * 4,
            Opcode::Store => *self.memory.get_mut(k as usize)? = self.a,
            Opcode::StoreX => *self.memory.get_mut(k as usize)? = self.x,
            // The kernel takes no such program. libpcap leaves it to the processor, which takes the lowest five bits.
            Opcode::Arithmetic(
                operation @ (Operation::ShiftLeft | Operation::ShiftRight),
                Operand::Constant,
            ) if !kernel => self.a = operation.apply(self.a, k % 32)?,
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
    #[inline]
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

#[inline]
fn bytes(packet: &Packet<'_>, offset: u32, width: Width) -> Option<u32> {
    (offset < NEGATIVE).then(|| packet.load(offset, width)).flatten()
}
