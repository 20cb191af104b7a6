//! Instruction selection, keeping track of the contents of A, X and memory.
//!
//! A packet does not change, so the value in a register stays valid until it is overwritten. At a node, a register is
//! known to hold a value if it does on all paths there.

mod evaluate;
mod stores;

use super::EmitError;
use super::memory::Words;
use crate::cbpf::{Instruction, MEMORY_WORDS, Opcode, Operand};
use crate::graph::{Graph, Node, NodeId, Relation, Test, Value, ValueId, Verdict};

/// A sequence of instructions.
#[derive(Debug)]
pub(super) struct Block {
    /// All instructions but the last.
    pub(super) code: Vec<Instruction>,
    /// The last instruction.
    pub(super) end: End,
}

/// The end of a block.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum End {
    /// Returns a result.
    Return(u32),
    /// Falls through, or jumps.
    Goto(NodeId),
    /// Branches.
    Branch {
        /// Comparison of A with the operand.
        relation: Relation,
        /// Operand.
        operand: Operand,
        /// Value of a constant operand.
        k: u32,
        /// Target if it holds.
        then: NodeId,
        /// Target if it does not.
        other: NodeId,
    },
}

impl End {
    /// Returns the same end with other targets.
    pub(super) fn map(self, mut node: impl FnMut(NodeId) -> NodeId) -> Self {
        match self {
            Self::Return(_) => self,
            Self::Goto(next) => Self::Goto(node(next)),
            Self::Branch { relation, operand, k, then, other } => {
                Self::Branch { relation, operand, k, then: node(then), other: node(other) }
            }
        }
    }
}

/// Values in a register: several if a slot was assigned from it.
type Held = Vec<ValueId>;

/// Known contents of registers and memory.
#[derive(Clone, Debug, Default)]
struct RegisterContents {
    a: Held,
    x: Held,
    /// Temporary values, in words that no slot uses.
    memory: [Option<ValueId>; MEMORY_WORDS],
}

impl RegisterContents {
    fn meet(&mut self, other: &Self) {
        self.a.retain(|value| other.a.contains(value));
        self.x.retain(|value| other.x.contains(value));
        for (word, there) in self.memory.iter_mut().zip(other.memory) {
            *word = word.filter(|value| there == Some(*value));
        }
    }
}

struct Selector<'a> {
    graph: &'a Graph,
    words: &'a Words,
    state: RegisterContents,
    code: Vec<Instruction>,
    /// Number of pending uses of each temporary.
    pinned: [u32; MEMORY_WORDS],
    /// For each value, whether evaluating it may overwrite X.
    needs_x: Vec<bool>,
}

/// Generates the block of each node in `layout`.
pub(super) fn select(graph: &Graph, layout: &[NodeId], words: &Words) -> Result<Vec<Block>, EmitError> {
    let mut selector = Selector {
        graph,
        words,
        state: RegisterContents::default(),
        code: Vec::new(),
        pinned: [0; MEMORY_WORDS],
        needs_x: evaluate::needs_x(graph),
    };
    let mut states: Vec<Option<RegisterContents>> = vec![None; graph.nodes().len()];
    let mut blocks = Vec::with_capacity(layout.len());
    for &id in layout {
        selector.state = states[id.0 as usize].take().unwrap_or_default();
        let end = selector.node(graph.node(id))?;
        blocks.push(Block { code: std::mem::take(&mut selector.code), end });
        for next in graph.node(id).successors() {
            match &mut states[next.0 as usize] {
                Some(state) => state.meet(&selector.state),
                empty => *empty = Some(selector.state.clone()),
            }
        }
    }
    stores::drop_needless(layout, &mut blocks, graph.nodes().len());
    Ok(blocks)
}

impl Selector<'_> {
    fn node(&mut self, node: Node) -> Result<End, EmitError> {
        Ok(match node {
            Node::End(Verdict::REFUSE) => End::Return(0),
            Node::End(Verdict::ACCEPT) => End::Return(self.graph.snap_len),
            Node::End(verdict) => unreachable!("{verdict:?} was looked for"),
            Node::Read { value, next } => {
                self.load_a(value)?;
                End::Goto(next)
            }
            Node::Assign { slot, value, next } => {
                self.assign(self.words.of(slot), value)?;
                let id = self.graph.known(Value::Slot(slot));
                for held in [&mut self.state.a, &mut self.state.x] {
                    if held.contains(&value) {
                        held.extend(id);
                    }
                }
                End::Goto(next)
            }
            Node::Branch { test: Test::Compare { relation, left, right }, then, other, .. } => {
                self.compare(relation, (left, right), (then, other))?
            }
            Node::Branch { test: Test::Member { .. }, .. } => unreachable!("sets were expanded"),
        })
    }

    fn assign(&mut self, word: u8, value: ValueId) -> Result<(), EmitError> {
        if !self.state.a.contains(&value) {
            if self.state.x.contains(&value) || self.reaches_x_alone(value) {
                self.load_x(value)?;
                self.push(Opcode::StoreX, word.into());
                return Ok(());
            }
            self.load_a(value)?;
        }
        self.push(Opcode::Store, word.into());
        Ok(())
    }

    fn compare(
        &mut self,
        relation: Relation,
        (left, right): (ValueId, ValueId),
        (then, other): (NodeId, NodeId),
    ) -> Result<End, EmitError> {
        if let Some(k) = self.graph.as_constant(right) {
            self.load_a(left)?;
            return Ok(End::Branch { relation, operand: Operand::Constant, k, then, other });
        }
        if self.graph.as_constant(left).is_some() {
            let (relation, exchanged) = relation.exchanged();
            let ways = if exchanged { (other, then) } else { (then, other) };
            return self.compare(relation, (right, left), ways);
        }
        let swapped = self.load_both(left, right)?;
        let (relation, exchanged) = if swapped { relation.exchanged() } else { (relation, false) };
        let (then, other) = if exchanged { (other, then) } else { (then, other) };
        Ok(End::Branch { relation, operand: Operand::X, k: 0, then, other })
    }

    fn push(&mut self, opcode: Opcode, k: u32) {
        self.code.push(Instruction::new(opcode, k));
    }
}
