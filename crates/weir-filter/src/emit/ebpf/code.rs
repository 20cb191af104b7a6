//! The code of each node, one behind the other.

mod context;
mod load;
mod question;
mod value;

use super::assembler::{Assembler, Label};
use super::instruction::{
    Alu, FP, Instruction, Jump, MAP_LOOKUP_ELEM, R0, R1, R2, R3, Register, Size, TAIL_CALL,
};
use super::plan::Plan;
use super::stack::{self, KEY};
use super::{Context, Ending, Program, Symbol};
use crate::graph::{Graph, Node, NodeId, TermId, Test, ValueId};
use crate::set::Set;

/// What the program is called with.
const CONTEXT: Register = Register(6);
/// Where the packet begins, and where its first buffer ends.
const DATA: Register = Register(7);
const END: Register = Register(8);

/// Conditional jumps up to which the verifier is left to its ways: it gives up when it keeps 8192 answers waiting
/// (`BPF_COMPLEXITY_LIMIT_JMP_SEQ`). Filters of more have no fast way; if that is not enough, ways are laid out so that fewer
/// wait. It then comes to an end of the program more often, and since Linux 6.18 each time costs as much as the program
/// is long.
const MOST_JUMPS: u64 = 8000;

/// A value that many questions in a row may be asked about: a slot, or a load, and the mask put on it, in the packet's byte
/// order.
type Held = (ValueId, Option<u32>);

/// Makes the code.
pub(super) struct Code<'a> {
    graph: &'a Graph,
    sets: &'a [Set],
    context: Context,
    ending: Ending,
    plan: &'a Plan,
    /// The cell of each slot.
    cells: Vec<usize>,
    out: Assembler,
    /// Of each fast node, the bytes of the packet that are known to be there when it is reached; `None`: nobody goes there.
    shown: Vec<Option<u32>>,
    /// Of each node, in the way that we are on, what is in `r0` when it is reached, whoever comes.
    held_at: Vec<Option<Held>>,
    /// What is in `r0` now.
    held: Option<Held>,
    /// Which slow nodes are reached.
    slow: Vec<bool>,
    /// The node whose code is made, and whether in the fast way.
    node: u32,
    fast: bool,
    /// Bytes that are known to be there.
    known: u32,
    /// Whether the verifier must be spared: see [`MOST_JUMPS`].
    patient: bool,
}

impl<'a> Code<'a> {
    pub(super) fn new(
        graph: &'a Graph,
        sets: &'a [Set],
        context: Context,
        ending: Ending,
        plan: &'a Plan,
        cells: Vec<usize>,
    ) -> Self {
        let nodes = graph.nodes().len();
        let [fast_jumps, slow_jumps] = plan.jumps;
        let both = if plan.needs_slow || !is_linear(context) { fast_jumps + slow_jumps } else { fast_jumps };
        let fast = context != Context::Socket && both <= MOST_JUMPS;
        Self {
            graph,
            sets,
            context,
            ending,
            plan,
            cells,
            out: Assembler::default(),
            shown: vec![None; nodes],
            held_at: vec![None; nodes],
            held: None,
            slow: vec![false; nodes],
            node: 0,
            fast,
            known: 0,
            patient: !fast && slow_jumps > MOST_JUMPS,
        }
    }

    /// The program, unless a jump would have to go further than jumps can.
    pub(super) fn run(mut self) -> Option<Program> {
        self.prologue();
        let root = self.graph.root();
        self.go(root, Some(root));
        if root.0 < 2 {
            // Nothing is asked: the end must still be gone to.
            self.out.jump(Instruction::always(), Label::Fast(root.0));
        }
        let last = root.0;
        if self.fast {
            self.nodes(last, Label::Fast);
            self.fast = false;
            self.held_at.fill(None);
        }
        self.nodes(last, Label::Slow);
        self.end(Graph::ACCEPT);
        self.end(Graph::REFUSE);
        let Assembler { code: instructions, relocations, out_of_reach, .. } = self.out;
        (!out_of_reach).then_some(Program { context: self.context, instructions, relocations })
    }

    fn nodes(&mut self, last: u32, label: fn(u32) -> Label) {
        for index in (2..=last).rev() {
            if self.reached(index) {
                self.out.bind(label(index));
                self.node = index;
                self.known = self.shown[index as usize].unwrap_or(0);
                self.held = self.held_at[index as usize];
                self.node_code(self.graph.node(NodeId(index)));
            }
        }
    }

    fn reached(&self, index: u32) -> bool {
        if self.fast { self.shown[index as usize].is_some() } else { self.slow[index as usize] }
    }

    /// The node whose code comes next; behind the last, that of acceptance.
    fn next(&self) -> Option<NodeId> {
        let next = (2..self.node).rev().find(|&index| self.reached(index)).map(NodeId);
        let is_last = || !self.fast || !self.slow.contains(&true);
        next.or_else(|| is_last().then_some(Graph::ACCEPT))
    }

    fn end(&mut self, node: NodeId) {
        let label = Label::Fast(node.0);
        let fallen_into = self.shown[node.0 as usize].is_some() || self.slow[node.0 as usize];
        if !self.out.is_awaited(label) && !fallen_into {
            return;
        }
        self.out.bind(label);
        let accepted = node == Graph::ACCEPT;
        let answer = match self.ending {
            Ending::Return { accept, refuse } => {
                if accepted {
                    accept
                } else {
                    refuse
                }
            }
            Ending::Counted { accept } => {
                if accepted {
                    accept
                } else {
                    self.count();
                    0
                }
            }
            Ending::Call { accept, refuse, otherwise } => {
                self.out.push(Instruction::alu64(Alu::Move, R1, CONTEXT));
                self.out.push_map(Instruction::map(R2), Symbol::Outcomes);
                let index = if accepted { accept } else { refuse };
                self.out.push(Instruction::alu_number(Alu::Move, R3, index));
                self.out.push(Instruction::call(TAIL_CALL));
                otherwise
            }
        };
        self.out.push(Instruction::alu_number(Alu::Move, R0, answer));
        self.out.push(Instruction::exit());
    }

    /// One more packet is refused on this CPU.
    fn count(&mut self) {
        let none = self.out.local();
        self.out.push(Instruction::store_number(Size::Word, FP, KEY, 0));
        self.look_up(Symbol::Refused);
        self.out.jump(Instruction::jump64_number(Jump::Equal, R0, 0), none);
        self.out.push(Instruction::load(Size::Double, R1, R0, 0));
        self.out.push(Instruction::alu64_number(Alu::Add, R1, 1));
        self.out.push(Instruction::store(Size::Double, R0, 0, R1));
        self.out.bind(none);
    }

    /// `r0` = the address of the entry of `map` whose key is at [`KEY`], or 0.
    fn look_up(&mut self, map: Symbol) {
        self.out.push_map(Instruction::map(R1), map);
        self.out.push(Instruction::alu64(Alu::Move, R2, FP));
        self.out.push(Instruction::alu64_number(Alu::Add, R2, KEY.into()));
        self.out.push(Instruction::call(MAP_LOOKUP_ELEM));
    }

    fn node_code(&mut self, node: Node) {
        if !matches!(node, Node::Branch { test: Test::Compare { .. }, .. }) {
            self.held = None;
        }
        match node {
            Node::Refuse | Node::Accept => {}
            Node::Read { value, next } => {
                self.value(value);
                let following = self.next_after([next]);
                self.go(next, following);
            }
            Node::Assign { slot, value, next } => {
                let place = self.cell(slot.0);
                if self.graph.as_constant(value) == Some(0) {
                    self.forgettable_zero();
                } else {
                    self.value(value);
                }
                self.out.push(Instruction::store(Size::Word, FP, place, R0));
                let following = self.next_after([next]);
                self.go(next, following);
            }
            Node::Branch { test, then, other, .. } => match test {
                Test::Compare { relation, left, right } => self.compare(relation, left, right, (then, other)),
                Test::Member { set, key } => self.member(set, &key, (then, other)),
            },
        }
    }

    /// Notes that these nodes are gone to, and says which node comes next.
    fn next_after<const N: usize>(&mut self, nodes: [NodeId; N]) -> Option<NodeId> {
        nodes.iter().for_each(|node| self.note(*node));
        self.next()
    }

    fn note(&mut self, node: NodeId) {
        let index = node.0 as usize;
        self.held_at[index] = if self.reached(node.0) {
            self.held_at[index].filter(|held| self.held == Some(*held))
        } else {
            self.held
        };
        if self.stays_fast(node) {
            let known = self.shown[index].map_or(self.known, |known| known.min(self.known));
            self.shown[index] = Some(known);
        } else {
            self.slow[index] = true;
        }
    }

    /// The place of a node in the way that we are on, or from which on it is slow.
    fn place(&self, node: NodeId) -> Label {
        if self.stays_fast(node) || node.0 < 2 { Label::Fast(node.0) } else { Label::Slow(node.0) }
    }

    /// Whether a node that is gone to has code in the fast way: what is rarely asked has not, for the verifier's sake.
    fn stays_fast(&self, node: NodeId) -> bool {
        self.fast && !matches!(self.graph.node(node), Node::Branch { term: TermId::RARE, .. })
    }

    /// Goes on at `node`, while the code of `next` follows.
    fn go(&mut self, node: NodeId, next: Option<NodeId>) {
        self.note(node);
        if next != Some(node) {
            self.out.jump(Instruction::always(), self.place(node));
        }
    }

    /// Goes to `miss` if `fails`; the verifier looks at that first where it must be spared.
    fn check(&mut self, fails: Instruction, holds: Instruction, miss: Label) {
        if self.patient {
            let on = self.out.local();
            self.out.jump(holds, on);
            self.out.jump(Instruction::always(), miss);
            self.out.bind(on);
        } else {
            self.out.jump(fails, miss);
        }
    }

    /// Where a slot is on the stack.
    fn cell(&self, slot: u16) -> i16 {
        stack::cell(self.cells[usize::from(slot)])
    }
}

/// Whether a packet has one buffer.
fn is_linear(context: Context) -> bool {
    matches!(context, Context::Xdp { fragments: false, .. } | Context::XdpTagged { fragments: false, .. })
}
