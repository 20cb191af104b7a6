//! Code generation, node by node.

mod context;
mod load;
mod question;
mod value;

use super::analysis::Analysis;
use super::assembler::{Assembler, Label};
use super::counter::Counter;
use super::instruction::{
    Alu, FP, Instruction, Jump, MAP_LOOKUP_ELEM, R0, R1, R2, R3, Register, Size, TAIL_CALL,
};
use super::stack::{self, KEY};
use super::{Context, Ending, Program, Symbol};
use crate::graph::{Graph, Node, NodeId, TermId, Test, ValueId, Verdict};
use crate::set::Set;

/// The program's argument.
pub(super) const CONTEXT: Register = Register(6);
/// Start of the packet, and end of its first buffer. A socket filter has no address of a packet: there [`END`] is its length.
const DATA: Register = Register(7);
const END: Register = Register(8);

/// Number of conditional jumps up to which code is laid out without regard to the verifier, which gives up with 8192
/// pending branches (`BPF_COMPLEXITY_LIMIT_JMP_SEQ`). Larger filters have no fast path; if that is not enough, branches
/// are laid out so that fewer are pending. The verifier then reaches the end of the program more often, and since Linux
/// 6.18 each time costs as much as the program is long.
const MOST_JUMPS: u64 = 8000;

/// What happens to the packet once the filter has decided.
#[derive(Clone, Copy, Debug)]
pub(super) enum Outcome<'a> {
    /// The program ends.
    End(Ending<'a>),
    /// If it was accepted, it is counted. Then the code that follows goes on with it.
    Count(Counter),
    /// If it was accepted, the program returns this number. If not, the code that follows goes on.
    Answer(u32),
}

/// A value that consecutive tests may share: a slot, or a load in the packet's byte order, and the mask applied to it.
type Held = (ValueId, Option<u32>);

/// Code generator.
pub(super) struct Code<'a> {
    graph: &'a Graph,
    sets: &'a [Set],
    context: Context,
    outcome: Outcome<'a>,
    analysis: &'a Analysis,
    /// Stack cell of each slot.
    cells: Vec<usize>,
    out: Assembler,
    /// For each node on the fast path, the bytes of the packet known to be there; `None` if it is unreachable.
    shown: Vec<Option<u32>>,
    /// For each node on the current path, the content of `r0` that is the same from all predecessors.
    held_at: Vec<Option<Held>>,
    /// Current content of `r0`.
    held: Option<Held>,
    /// Whether each node on the slow path is reachable.
    slow: Vec<bool>,
    /// The node being generated, and whether it is on the fast path.
    node: u32,
    fast: bool,
    /// Bytes of the packet known to be there.
    known: u32,
    /// Whether to keep few branches pending in the verifier: see [`MOST_JUMPS`].
    patient: bool,
}

impl<'a> Code<'a> {
    pub(super) fn new(
        graph: &'a Graph,
        sets: &'a [Set],
        context: Context,
        outcome: Outcome<'a>,
        analysis: &'a Analysis,
        cells: Vec<usize>,
        out: Assembler,
    ) -> Self {
        let nodes = graph.nodes().len();
        let [fast_jumps, slow_jumps] = analysis.jumps;
        let both =
            if analysis.needs_slow || !is_linear(context) { fast_jumps + slow_jumps } else { fast_jumps };
        let fast = context != Context::Socket && both <= MOST_JUMPS;
        Self {
            graph,
            sets,
            context,
            outcome,
            analysis,
            cells,
            out,
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

    /// Generates the program; returns `None` if a jump is too long.
    pub(super) fn run(mut self) -> Option<Program> {
        self.prologue();
        let context = self.context;
        self.append().program(context)
    }

    /// Generates the code without what the program begins with.
    pub(super) fn append(mut self) -> Assembler {
        self.locate();
        let root = self.graph.root();
        self.go(root, Some(root));
        if self.is_end(root) {
            // There are no tests, but the end must still be reached.
            self.out.jump(Instruction::always(), Label::Fast(root.0));
        }
        let last = root.0;
        if self.fast {
            self.nodes(last, Label::Fast);
            self.fast = false;
            self.held_at.fill(None);
        }
        self.nodes(last, Label::Slow);
        self.end(Graph::ACCEPT, Verdict::ACCEPT);
        self.end(Graph::REFUSE, Verdict::REFUSE);
        for index in 2..=last {
            if let Node::End(verdict) = self.graph.node(NodeId(index)) {
                self.end(NodeId(index), verdict);
            }
        }
        self.out
    }

    fn nodes(&mut self, last: u32, label: fn(u32) -> Label) {
        for index in (2..=last).rev() {
            if self.reached(index) && !self.is_end(NodeId(index)) {
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

    /// Returns the node generated next: after the last one, the accepting end.
    fn next(&self) -> Option<NodeId> {
        let mut below = (2..self.node).rev();
        let next = below.find(|&index| self.reached(index) && !self.is_end(NodeId(index))).map(NodeId);
        let is_last = || !self.fast || !self.slow.contains(&true);
        next.or_else(|| is_last().then_some(Graph::ACCEPT))
    }

    /// Returns whether the filter ends there. Such a node has the same code on both paths.
    fn is_end(&self, node: NodeId) -> bool {
        matches!(self.graph.node(node), Node::End(_))
    }

    fn end(&mut self, node: NodeId, verdict: Verdict) {
        let label = Label::Fast(node.0);
        let fallen_into = self.shown[node.0 as usize].is_some() || self.slow[node.0 as usize];
        if !self.out.is_awaited(label) && !fallen_into {
            return;
        }
        self.out.bind(label);
        let accepted = verdict == Verdict::ACCEPT;
        let ending = match self.outcome {
            Outcome::Count(counter) if accepted => return counter.add(&mut self.out),
            Outcome::Answer(answer) if accepted => {
                self.out.push(Instruction::alu_number(Alu::Move, R0, answer));
                return self.out.push(Instruction::exit());
            }
            Outcome::Count(_) | Outcome::Answer(_) => return,
            Outcome::End(ending) => ending,
        };
        let answer = match ending {
            Ending::Return(answers) => answers[usize::from(verdict.0)],
            Ending::Counted { accept } => {
                if accepted {
                    accept
                } else {
                    self.count();
                    0
                }
            }
            Ending::Call { outcomes, otherwise } => {
                self.out.push(Instruction::alu64(Alu::Move, R1, CONTEXT));
                self.out.push_map(Instruction::map(R2), Symbol::Outcomes);
                self.out.push(Instruction::alu_number(Alu::Move, R3, outcomes[usize::from(verdict.0)]));
                self.out.push(Instruction::call(TAIL_CALL));
                otherwise
            }
        };
        self.out.push(Instruction::alu_number(Alu::Move, R0, answer));
        self.out.push(Instruction::exit());
    }

    /// Counts a rejected packet on this CPU.
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

    /// Sets `r0` to the address of the entry of `map` whose key is at [`KEY`], or 0.
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
            Node::End(_) => {}
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

    /// Marks the nodes as reachable and returns the node generated next.
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

    /// Returns the label of a node on the current path, or where it enters the slow path.
    fn place(&self, node: NodeId) -> Label {
        if self.stays_fast(node) || self.is_end(node) { Label::Fast(node.0) } else { Label::Slow(node.0) }
    }

    /// Returns whether a successor has code on the fast path. Rarely reached nodes do not, to spare the verifier.
    fn stays_fast(&self, node: NodeId) -> bool {
        self.fast && !matches!(self.graph.node(node), Node::Branch { term: TermId::RARE, .. })
    }

    /// Continues at `node`, with `next` being generated next.
    fn go(&mut self, node: NodeId, next: Option<NodeId>) {
        self.note(node);
        if next != Some(node) {
            self.out.jump(Instruction::always(), self.place(node));
        }
    }

    /// Jumps to `miss` if `fails`. If the verifier must be spared, lays the code out so that it follows `miss` first.
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

    /// Returns the stack offset of a slot.
    fn cell(&self, slot: u16) -> i16 {
        stack::cell(self.cells[usize::from(slot)])
    }
}

/// Returns whether packets have a single buffer.
fn is_linear(context: Context) -> bool {
    matches!(context, Context::Xdp { fragments: false, .. } | Context::XdpTagged { fragments: false, .. })
}
