//! From blocks to a program: distances, and returns where they are within reach.
//!
//! The program is written from its end to its beginning, so that where a jump goes is known. What is more than 255
//! instructions away gets a landing place behind the instruction that asks, where nothing falls into it, and all that ask
//! further up share it: a return once more, or a jump. The kernel (`check_load_and_stores`) takes what memory holds before a
//! return for what it holds behind it, though nothing goes on there; so a program that uses memory has jumps alone.

use super::select::{Block, End};
use crate::cbpf::{Instruction, Opcode, Program};
use crate::graph::{Graph, NodeId};

/// Furthest that a branch jumps.
const FURTHEST: usize = u8::MAX as usize;

struct Assembler<'a> {
    graph: &'a Graph,
    /// Whether it writes memory.
    stores: bool,
    /// Last instruction first.
    reversed: Vec<Instruction>,
    /// Where each node begins.
    begins: Vec<usize>,
    /// The same, or the nearest landing place for it.
    places: Vec<usize>,
}

/// Puts the blocks of `layout` together.
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

    /// Instructions between the one to be written and where `next` begins.
    fn distance(&self, next: NodeId) -> usize {
        self.reversed.len() - self.places[next.0 as usize]
    }

    /// Writes a landing place for `next`.
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
