//! Assembly of blocks into a program: computes jump distances and keeps returns within reach.
//!
//! The program is written from end to start, so the targets of jumps are known. A target more than 255 instructions
//! away gets a landing pad right after the branch, where control never falls through into it; branches further up share
//! the pad. It is a copy of the return, or a jump. The kernel (`check_load_and_stores`) assumes that memory written
//! before a return is written after it too, although control never continues there, so in a program that uses memory
//! all pads are jumps.

use super::select::{Block, End};
use crate::cbpf::{Instruction, Opcode, Program};
use crate::graph::{Graph, NodeId};

/// Longest jump of a branch.
const FURTHEST: usize = u8::MAX as usize;

struct Assembler<'a> {
    graph: &'a Graph,
    /// Whether the program writes memory.
    stores: bool,
    /// Instructions, last first.
    reversed: Vec<Instruction>,
    /// Start of each node.
    begins: Vec<usize>,
    /// Start of each node or its nearest landing pad.
    places: Vec<usize>,
}

/// Assembles the blocks of `layout`.
pub(super) fn assemble(graph: &Graph, layout: &[NodeId], blocks: Vec<Block>) -> Program {
    let stores =
        |block: &Block| block.code.iter().any(|i| matches!(i.opcode(), Some(Opcode::Store | Opcode::StoreX)));
    let stores = blocks.iter().any(stores);
    let mut assembler = Assembler {
        graph,
        stores,
        reversed: Vec::new(),
        begins: vec![0; graph.nodes().len()],
        places: vec![0; graph.nodes().len()],
    };
    for (id, block) in layout.iter().zip(blocks).rev() {
        assembler.end(block.end);
        assembler.reversed.extend(block.code.into_iter().rev());
        assembler.begins[id.0 as usize] = assembler.reversed.len();
        assembler.places[id.0 as usize] = assembler.reversed.len();
    }
    assembler.reversed.reverse();
    Program { instructions: assembler.reversed }
}

impl Assembler<'_> {
    fn end(&mut self, end: End) {
        match end {
            End::Return(answer) => self.reversed.push(Instruction::new(Opcode::ReturnConstant, answer)),
            End::Goto(next) if self.distance(next) == 0 => {}
            End::Goto(next) => self.land(next),
            End::Branch { relation, operand, k, then, other } => {
                while let Some(far) = [then, other].into_iter().find(|next| self.distance(*next) > FURTHEST) {
                    self.land(far);
                }
                let distance = |next| u8::try_from(self.distance(next)).expect("it is within reach");
                let (jt, jf) = (distance(then), distance(other));
                self.reversed.push(Instruction { code: Opcode::Branch(relation, operand).code(), jt, jf, k });
            }
        }
    }

    /// Returns the distance from the next instruction to `next`, or to its landing pad.
    fn distance(&self, next: NodeId) -> usize {
        self.reversed.len() - self.places[next.0 as usize]
    }

    /// Writes a landing pad for `next`.
    fn land(&mut self, next: NodeId) {
        let instruction = match next {
            Graph::REFUSE if !self.stores => Instruction::new(Opcode::ReturnConstant, 0),
            Graph::ACCEPT if !self.stores => Instruction::new(Opcode::ReturnConstant, self.graph.snap_len),
            _ => {
                let distance = self.reversed.len() - self.begins[next.0 as usize];
                let distance = u32::try_from(distance).expect("a program is counted in 32 bits");
                Instruction::new(Opcode::Jump, distance)
            }
        };
        self.reversed.push(instruction);
        self.places[next.0 as usize] = self.reversed.len();
    }
}
