//! Removes stores of values that are never loaded: a slot may stay in X for its whole lifetime.

use super::{Block, End};
use crate::cbpf::{Instruction, Opcode};
use crate::graph::NodeId;

/// Removes dead stores from the blocks of `layout`, in a graph of `nodes` nodes.
pub(super) fn drop_needless(layout: &[NodeId], blocks: &mut [Block], nodes: usize) {
    // Bit k: M[k] is loaded from here on before it is stored.
    let mut needed = vec![0u16; nodes];
    for (id, block) in layout.iter().zip(blocks).rev() {
        let mut now = match block.end {
            End::Return(_) => 0,
            End::Goto(next) => needed[next.0 as usize],
            End::Branch { then, other, .. } => needed[then.0 as usize] | needed[other.0 as usize],
        };
        let mut kept: Vec<Instruction> = Vec::with_capacity(block.code.len());
        for &instruction in block.code.iter().rev() {
            let bit = || 1 << instruction.k;
            match instruction.opcode() {
                Some(Opcode::Store | Opcode::StoreX) if now & bit() == 0 => continue,
                Some(Opcode::Store | Opcode::StoreX) => now &= !bit(),
                Some(Opcode::LoadMemory | Opcode::LoadXMemory) => now |= bit(),
                _ => {}
            }
            kept.push(instruction);
        }
        kept.reverse();
        block.code = kept;
        needed[id.0 as usize] = now;
    }
}
