//! The code of each node.

use super::assembler::{Assembler, Label};
use super::instruction::{
    Alu, FP, Instruction, Jump, MAP_LOOKUP_ELEM, R0, R1, R2, R3, R4, Register, SKB_LOAD_BYTES, Size,
    TAIL_CALL, XDP_GET_BUFF_LEN, XDP_LOAD_BYTES,
};
use super::plan::Plan;
use super::{Context, Ending, LINEAR_MOST, Program, Symbol};
use crate::graph::{Graph, KEY_WORDS, Meta, Node, NodeId, Operation, Relation, Test, Value, ValueId, Width};
use crate::set::{Contents, Set, SetId};

/// What the program is called with.
const CONTEXT: Register = Register(6);
/// Where the packet begins, and where its first buffer ends.
const DATA: Register = Register(7);
const END: Register = Register(8);

/// The stack, from its end on downwards: bytes from a helper; a key; what is kept while a value is computed; the tag that
/// was taken off; slots.
const BUFFER: i16 = -8;
const KEY: i16 = BUFFER - 24;
const TEMPORARY: i16 = KEY - 4 * (TEMPORARIES_I16);
const TAG: i16 = TEMPORARY - 16;
const TEMPORARIES_I16: i16 = 20;
/// Results that can be kept while a value is computed.
pub(super) const TEMPORARIES: usize = 20;
/// Slots that can be needed at a time.
pub(super) const CELLS: usize = 2 * DOUBLES;
/// Double words that they are in.
const DOUBLES: usize = 48;
/// The upper halves of double words are given away first: what is not aligned the verifier does not remember.
const CELL_BYTES: i16 = 8;
const CELL_PLACE: i16 = 4;
const _: () = assert!(TAG - CELL_BYTES * 48 >= -512 && TEMPORARY == -112 && TAG == -128);

/// Conditional jumps up to which the verifier is left to its ways: it gives up when it keeps 8192 answers waiting
/// (`BPF_COMPLEXITY_LIMIT_JMP_SEQ`). Filters of more have no fast way; if that is not enough, ways are laid out so that fewer
/// wait. It then comes to an end of the program more often, and since Linux 6.18 each time costs as much as the program
/// is long.
const MOST_JUMPS: u64 = 8000;

/// Offsets in `struct xdp_md` and `struct __sk_buff` (linux/bpf.h).
mod field {
    pub(super) const XDP_DATA: i16 = 0;
    pub(super) const XDP_DATA_END: i16 = 4;
    pub(super) const XDP_INGRESS_IFINDEX: i16 = 12;
    pub(super) const SKB_LEN: i16 = 0;
    pub(super) const SKB_PKT_TYPE: i16 = 4;
    pub(super) const SKB_PROTOCOL: i16 = 16;
    pub(super) const SKB_VLAN_PRESENT: i16 = 20;
    pub(super) const SKB_VLAN_TCI: i16 = 24;
    pub(super) const SKB_VLAN_PROTO: i16 = 28;
    pub(super) const SKB_IFINDEX: i16 = 40;
    pub(super) const SKB_DATA: i16 = 76;
    pub(super) const SKB_DATA_END: i16 = 80;
}

/// `PACKET_OUTGOING` (linux/if_packet.h).
const OUTGOING: u32 = 4;
const ETHERTYPE_AT: i16 = 12;

/// A step in the computation of a value.
enum Task {
    /// Computes the value into `r0`; temporaries from the number on are free.
    Value(ValueId, usize),
    /// Loads what is at `r0 + offset` into `r0`.
    Load { offset: u32, width: Width, form: Form },
    /// Puts a value that needs no computation into a register, without touching `r0` otherwise.
    Leaf(ValueId, Register),
    /// Keeps `r0`.
    Save(usize),
    /// Takes it back.
    Restore(usize, Register),
    /// `r1 = r0`
    Move,
    /// `r0 = r0 operation r1`
    Combine(Operation),
    /// `r0 = r0 operation number`
    Number(Operation, u32),
}

/// How loaded bytes are wanted.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Form {
    /// As a number.
    Number,
    /// As they are in the packet, because they are compared with a number that was turned round instead.
    Wire,
}

/// A value that many questions in a row may be asked about: a load, and the mask put on it, in the packet's byte order.
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

    fn prologue(&mut self) {
        self.out.push(Instruction::alu64(Alu::Move, CONTEXT, R1));
        let (data, end) = match self.context {
            Context::Xdp { .. } | Context::XdpTagged { .. } => (field::XDP_DATA, field::XDP_DATA_END),
            Context::Tc { .. } => (field::SKB_DATA, field::SKB_DATA_END),
            Context::Socket => return,
        };
        self.out.push(Instruction::load(Size::Word, DATA, CONTEXT, data));
        self.out.push(Instruction::load(Size::Word, END, CONTEXT, end));
        if matches!(self.context, Context::XdpTagged { .. }) {
            for (place, register) in [R2, R3, R4].into_iter().enumerate() {
                self.out.push(Instruction::store(Size::Word, FP, tag(place), register));
            }
        }
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

    /// Zero, without the verifier's knowing: it remembers zeros on the stack, and would look at what follows once more for
    /// each path that has another number there.
    fn forgettable_zero(&mut self) {
        let any = match self.context {
            Context::Xdp { .. } | Context::XdpTagged { .. } => field::XDP_INGRESS_IFINDEX,
            Context::Tc { .. } | Context::Socket => field::SKB_IFINDEX,
        };
        self.out.push(Instruction::load(Size::Word, R0, CONTEXT, any));
        self.out.push(Instruction::load(Size::Word, R1, CONTEXT, any));
        self.out.push(Instruction::alu(Alu::Subtract, R0, R1));
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
        if self.fast {
            let known = self.shown[index].map_or(self.known, |known| known.min(self.known));
            self.shown[index] = Some(known);
        } else {
            self.slow[index] = true;
        }
    }

    /// The place of a node in the way that we are on.
    fn place(&self, node: NodeId) -> Label {
        if self.fast || node.0 < 2 { Label::Fast(node.0) } else { Label::Slow(node.0) }
    }

    /// Goes on at `node`, while the code of `next` follows.
    fn go(&mut self, node: NodeId, next: Option<NodeId>) {
        self.note(node);
        if next != Some(node) {
            self.out.jump(Instruction::always(), self.place(node));
        }
    }

    fn compare(&mut self, relation: Relation, left: ValueId, right: ValueId, ways: (NodeId, NodeId)) {
        let number = match self.wire_form(relation, left, right) {
            Some((load, mask, number)) => {
                let Value::Load { base, offset, width } = self.graph.get(load) else {
                    unreachable!("only loads are in the packet")
                };
                if self.held != Some((load, None)) && self.held != Some((load, mask)) {
                    self.held = None;
                    match base {
                        None => self.load_fixed(offset, width, Form::Wire, R0),
                        Some(base) => {
                            let load = Task::Load { offset, width, form: Form::Wire };
                            self.tasks(vec![load, Task::Value(base, 0)]);
                        }
                    }
                }
                if let Some(mask) = mask
                    && self.held != Some((load, Some(mask)))
                {
                    self.out.push(Instruction::alu_number(Alu::And, R0, mask));
                }
                // Asking for one of several bits may leave other bits behind.
                self.held = Some((load, mask)).filter(|_| relation == Relation::Equal);
                Some(number)
            }
            None => {
                self.held = None;
                let number = self.graph.as_constant(right);
                match number {
                    Some(_) => self.value(left),
                    None => self.pair(left, right),
                }
                number
            }
        };
        self.branch(relation, number, ways);
    }

    /// The load, mask and number of a comparison that can as well be made in the packet's byte order.
    fn wire_form(
        &self,
        relation: Relation,
        left: ValueId,
        right: ValueId,
    ) -> Option<(ValueId, Option<u32>, u32)> {
        if !matches!(relation, Relation::Equal | Relation::AnyBit) {
            return None;
        }
        let number = self.graph.as_constant(right)?;
        let (load, mask) = match self.graph.get(left) {
            Value::Load { .. } => (left, None),
            Value::Binary { operation: Operation::And, left, right } => {
                (left, Some(self.graph.as_constant(right)?))
            }
            _ => return None,
        };
        let Value::Load { width, .. } = self.graph.get(load) else { return None };
        let turned = |number: u32| match width {
            Width::Byte => u8::try_from(number).ok().map(u32::from),
            Width::Half => u16::try_from(number).ok().map(|number| number.to_be().into()),
            Width::Word => Some(number.to_be()),
        };
        let mask = match mask {
            Some(mask) => Some(turned(mask)?),
            None => None,
        };
        Some((load, mask, turned(number)?))
    }

    /// Asks how `r0` compares with a number, or with `r1`.
    fn branch(&mut self, relation: Relation, number: Option<u32>, (then, other): (NodeId, NodeId)) {
        let next = self.next_after([then, other]);
        let (jump, target, straight) = match (relation, self.jumps_to_other(then, other, next)) {
            (Relation::Equal, false) => (Jump::Equal, then, other),
            (Relation::Equal, true) => (Jump::NotEqual, other, then),
            (Relation::Greater, false) => (Jump::Greater, then, other),
            (Relation::Greater, true) => (Jump::AtMost, other, then),
            (Relation::AtLeast, false) => (Jump::AtLeast, then, other),
            (Relation::AtLeast, true) => (Jump::Less, other, then),
            (Relation::AnyBit, false) => (Jump::AnyBit, then, other),
            (Relation::AnyBit, true) => {
                self.out.push(match number {
                    Some(number) => Instruction::alu_number(Alu::And, R0, number),
                    None => Instruction::alu(Alu::And, R0, R1),
                });
                self.out.jump(Instruction::jump_number(Jump::Equal, R0, 0), self.place(other));
                return self.go(then, next);
            }
        };
        let instruction = match number {
            Some(number) => Instruction::jump_number(jump, R0, number),
            None => Instruction::jump(jump, R0, R1),
        };
        self.out.jump(instruction, self.place(target));
        self.go(straight, next);
    }

    /// Which way is jumped to. The verifier goes straight on first, and keeps the jump waiting.
    fn jumps_to_other(&self, then: NodeId, other: NodeId, next: Option<NodeId>) -> bool {
        let waiting = |node: NodeId| self.plan.waiting[node.0 as usize];
        if self.patient { waiting(other) > waiting(then) } else { next == Some(then) }
    }

    fn member(&mut self, set: SetId, key: &[ValueId; KEY_WORDS], (then, other): (NodeId, NodeId)) {
        let contents = &self.sets[set.0 as usize];
        let words = contents.words();
        let trie = matches!(contents.contents, Contents::Ipv4(_) | Contents::Ipv6(_));
        for (index, word) in key[..words].iter().enumerate() {
            self.value(*word);
            if trie {
                self.out.push(Instruction::swap(R0, 32));
            }
            self.out.push(Instruction::store(Size::Word, FP, key_word(index + usize::from(trie)), R0));
        }
        if trie {
            let bits = if words == 1 { 32 } else { 128 };
            self.out.push(Instruction::store_number(Size::Word, FP, KEY, bits));
        }
        self.look_up(Symbol::Set(set));
        let next = self.next_after([then, other]);
        let (jump, target, straight) = if self.jumps_to_other(then, other, next) {
            (Jump::Equal, other, then)
        } else {
            (Jump::NotEqual, then, other)
        };
        self.out.jump(Instruction::jump64_number(jump, R0, 0), self.place(target));
        self.go(straight, next);
    }

    /// Two values into `r0` and `r1`.
    fn pair(&mut self, left: ValueId, right: ValueId) {
        let tasks = self.operands(left, right, 0);
        self.tasks(tasks);
    }

    fn value(&mut self, id: ValueId) {
        self.tasks(vec![Task::Value(id, 0)]);
    }

    /// Works through tasks, the last first. Not recursive: an expression may be nested as deep as its text is long.
    fn tasks(&mut self, mut tasks: Vec<Task>) {
        while let Some(task) = tasks.pop() {
            match task {
                Task::Value(id, free) => match self.graph.get(id) {
                    _ if self.is_leaf(id) => self.leaf(id, R0),
                    Value::Load { base: Some(base), offset, width } => {
                        tasks.push(Task::Load { offset, width, form: Form::Number });
                        tasks.push(Task::Value(base, free));
                    }
                    Value::Load { base: None, offset, width } => {
                        self.load_fixed(offset, width, Form::Number, R0);
                    }
                    Value::Binary { operation, left, right } => {
                        let by_number =
                            self.graph.as_constant(right).filter(|&number| takes(operation, number));
                        if let Some(number) = by_number {
                            tasks.push(Task::Number(operation, number));
                            tasks.push(Task::Value(left, free));
                        } else {
                            tasks.push(Task::Combine(operation));
                            tasks.extend(self.operands(left, right, free));
                        }
                    }
                    Value::Length => self.out_length(),
                    value => unreachable!("{value:?} is not computed"),
                },
                Task::Load { offset, width, form } => self.load(offset, width, form),
                Task::Leaf(id, register) => self.leaf(id, register),
                Task::Save(place) => {
                    self.out.push(Instruction::store(Size::Word, FP, temporary(place), R0));
                }
                Task::Restore(place, register) => {
                    self.out.push(Instruction::load(Size::Word, register, FP, temporary(place)));
                }
                Task::Move => self.out.push(Instruction::alu(Alu::Move, R1, R0)),
                Task::Combine(operation) => self.combine(operation),
                Task::Number(operation, number) => {
                    self.out.push(Instruction::alu_number(alu(operation), R0, number));
                }
            }
        }
    }

    /// What puts `left` into `r0` and `right` into `r1`, the last first.
    fn operands(&self, left: ValueId, right: ValueId, free: usize) -> Vec<Task> {
        let kept = |id: ValueId| self.plan.kept[id.0 as usize];
        if self.is_leaf(right) {
            vec![Task::Leaf(right, R1), Task::Value(left, free)]
        } else if self.is_leaf(left) {
            vec![Task::Leaf(left, R0), Task::Move, Task::Value(right, free)]
        } else if kept(left) >= kept(right) {
            let second = Task::Value(right, free + 1);
            vec![Task::Restore(free, R0), Task::Move, second, Task::Save(free), Task::Value(left, free)]
        } else {
            let second = Task::Value(left, free + 1);
            vec![Task::Restore(free, R1), second, Task::Save(free), Task::Value(right, free)]
        }
    }

    /// Whether a value is put into a register without a call, and without touching `r0` and `r1` otherwise.
    fn is_leaf(&self, id: ValueId) -> bool {
        match self.graph.get(id) {
            Value::Constant(_) | Value::Slot(_) | Value::Meta(_) => true,
            Value::Length => !self.length_by_call(),
            Value::Load { base: None, offset, width } => self.end_of_direct(offset, width).is_some(),
            _ => false,
        }
    }

    fn length_by_call(&self) -> bool {
        matches!(self.context, Context::Xdp { fragments: true } | Context::XdpTagged { fragments: true })
    }

    fn out_length(&mut self) {
        self.out.push(Instruction::alu64(Alu::Move, R1, CONTEXT));
        self.out.push(Instruction::call(XDP_GET_BUFF_LEN));
        self.out.push(Instruction::alu(Alu::Move, R0, R0));
    }

    fn leaf(&mut self, id: ValueId, register: Register) {
        match self.graph.get(id) {
            Value::Constant(number) => {
                self.out.push(Instruction::alu_number(Alu::Move, register, number));
            }
            Value::Slot(slot) => {
                let place = self.cell(slot.0);
                self.out.push(Instruction::load(Size::Word, register, FP, place));
            }
            Value::Meta(meta) => self.meta(meta, register),
            Value::Length => match self.context {
                Context::Tc { .. } | Context::Socket => {
                    self.out.push(Instruction::load(Size::Word, register, CONTEXT, field::SKB_LEN));
                }
                Context::Xdp { .. } | Context::XdpTagged { .. } => {
                    self.out.push(Instruction::alu64(Alu::Move, register, END));
                    self.out.push(Instruction::alu64(Alu::Subtract, register, DATA));
                    self.out.push(Instruction::alu(Alu::Move, register, register));
                }
            },
            Value::Load { offset, width, .. } => self.load_fixed(offset, width, Form::Number, register),
            value @ Value::Binary { .. } => unreachable!("{value:?} is computed"),
        }
    }

    fn meta(&mut self, meta: Meta, register: Register) {
        match self.context {
            Context::Tc { .. } | Context::Socket => self.skb_meta(meta, register),
            Context::Xdp { .. } | Context::XdpTagged { .. } => self.xdp_meta(meta, register),
        }
    }

    fn skb_meta(&mut self, meta: Meta, register: Register) {
        let at = match meta {
            Meta::PacketType if self.context == (Context::Tc { outgoing: true }) => {
                return self.out.push(Instruction::alu_number(Alu::Move, register, OUTGOING));
            }
            Meta::PacketType => field::SKB_PKT_TYPE,
            Meta::Protocol => field::SKB_PROTOCOL,
            Meta::Interface => field::SKB_IFINDEX,
            Meta::VlanTag => field::SKB_VLAN_TCI,
            Meta::VlanPresent => field::SKB_VLAN_PRESENT,
            Meta::VlanProtocol => field::SKB_VLAN_PROTO,
        };
        self.out.push(Instruction::load(Size::Word, register, CONTEXT, at));
        if matches!(meta, Meta::Protocol | Meta::VlanProtocol) {
            self.out.push(Instruction::swap(register, 16));
        }
    }

    fn xdp_meta(&mut self, meta: Meta, register: Register) {
        let tagged = matches!(self.context, Context::XdpTagged { .. });
        match meta {
            Meta::Interface => {
                let at = field::XDP_INGRESS_IFINDEX;
                self.out.push(Instruction::load(Size::Word, register, CONTEXT, at));
            }
            // What the driver would make of it, once the packet goes on to the stack.
            Meta::Protocol => {
                let short = self.out.local();
                self.out.push(Instruction::alu_number(Alu::Move, register, 0));
                self.out.push(Instruction::alu64(Alu::Move, R2, DATA));
                self.out.push(Instruction::alu64_number(Alu::Add, R2, i32::from(ETHERTYPE_AT) + 2));
                self.out.jump(Instruction::jump64(Jump::Greater, R2, END), short);
                self.out.push(Instruction::load(Size::Half, register, DATA, ETHERTYPE_AT));
                self.out.push(Instruction::swap(register, 16));
                self.out.bind(short);
            }
            Meta::VlanPresent if tagged => {
                self.out.push(Instruction::load(Size::Word, register, FP, tag(0)));
            }
            Meta::VlanProtocol if tagged => {
                self.out.push(Instruction::load(Size::Word, register, FP, tag(1)));
            }
            Meta::VlanTag if tagged => {
                self.out.push(Instruction::load(Size::Word, register, FP, tag(2)));
            }
            Meta::PacketType | Meta::VlanPresent | Meta::VlanProtocol | Meta::VlanTag => {
                self.out.push(Instruction::alu_number(Alu::Move, register, 0));
            }
        }
    }

    /// Loads from a fixed place; changes no other register than `r2` where [`Code::is_leaf`] says so.
    fn load_fixed(&mut self, offset: u32, width: Width, form: Form, register: Register) {
        if let Some(end) = self.end_of_direct(offset, width) {
            self.show(end);
            let offset = i16::try_from(offset).expect("below the most that is read directly");
            self.out.push(Instruction::load(size(width), register, DATA, offset));
            self.turn(width, form, register);
        } else {
            self.out.push(Instruction::alu_number(Alu::Move, R0, offset));
            self.load(0, width, form);
        }
    }

    /// Where a load from a fixed place ends, if it is made without a call.
    fn end_of_direct(&self, offset: u32, width: Width) -> Option<u32> {
        let end = offset.checked_add(width as u32).filter(|end| *end <= LINEAR_MOST)?;
        self.fast.then_some(end)
    }

    /// Makes sure that the packet has `end` bytes, and as many as are needed later in any case.
    fn show(&mut self, end: u32) {
        if self.known >= end {
            return;
        }
        let certain = self.plan.certain[self.node as usize];
        let end = if certain == u32::MAX { end } else { end.max(certain) };
        let bytes = i32::try_from(end).expect("below the most that is read directly");
        self.out.push(Instruction::alu64(Alu::Move, R2, DATA));
        self.out.push(Instruction::alu64_number(Alu::Add, R2, bytes));
        let miss = self.beyond_first_buffer();
        self.out.jump(Instruction::jump64(Jump::Greater, R2, END), miss);
        self.known = end;
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

    /// Where to go on if bytes are not in the first buffer.
    fn beyond_first_buffer(&mut self) -> Label {
        if is_linear(self.context) { Label::Fast(Graph::REFUSE.0) } else { self.slow_way() }
    }

    /// Where the filter begins again, by way of helpers.
    fn slow_way(&mut self) -> Label {
        let root = self.graph.root();
        self.slow[root.0 as usize] = true;
        Label::Slow(root.0)
    }

    /// `r0` = what is in the packet at `r0 + offset`.
    fn load(&mut self, offset: u32, width: Width, form: Form) {
        if offset != 0 {
            self.out.push(Instruction::alu_number(Alu::Add, R0, offset));
        }
        if self.fast {
            self.load_direct(width)
        } else {
            self.load_by_helper(width)
        }
        self.turn(width, form, R0);
    }

    fn load_direct(&mut self, width: Width) {
        let most = i32::try_from(LINEAR_MOST).expect("fifteen bits");
        let far = self.slow_way();
        self.out.jump(Instruction::jump64_number(Jump::Greater, R0, most), far);
        self.out.push(Instruction::alu64(Alu::Move, R2, DATA));
        self.out.push(Instruction::alu64(Alu::Add, R2, R0));
        self.out.push(Instruction::alu64(Alu::Move, R3, R2));
        self.out.push(Instruction::alu64_number(Alu::Add, R3, width as i32));
        let miss = self.beyond_first_buffer();
        self.out.jump(Instruction::jump64(Jump::Greater, R3, END), miss);
        self.out.push(Instruction::load(size(width), R0, R2, 0));
    }

    fn load_by_helper(&mut self, width: Width) {
        let helper = match self.context {
            Context::Xdp { .. } | Context::XdpTagged { .. } => XDP_LOAD_BYTES,
            Context::Tc { .. } | Context::Socket => SKB_LOAD_BYTES,
        };
        self.out.push(Instruction::alu(Alu::Move, R2, R0));
        self.out.push(Instruction::alu64(Alu::Move, R1, CONTEXT));
        self.out.push(Instruction::alu64(Alu::Move, R3, FP));
        self.out.push(Instruction::alu64_number(Alu::Add, R3, BUFFER.into()));
        self.out.push(Instruction::alu_number(Alu::Move, R4, width as u32));
        self.out.push(Instruction::call(helper));
        let refuse = Label::Fast(Graph::REFUSE.0);
        self.check(
            Instruction::jump64_number(Jump::NotEqual, R0, 0),
            Instruction::jump64_number(Jump::Equal, R0, 0),
            refuse,
        );
        self.out.push(Instruction::load(size(width), R0, FP, BUFFER));
    }

    fn turn(&mut self, width: Width, form: Form, register: Register) {
        match (form, width) {
            (Form::Wire, _) | (Form::Number, Width::Byte) => {}
            (Form::Number, Width::Half) => self.out.push(Instruction::swap(register, 16)),
            (Form::Number, Width::Word) => self.out.push(Instruction::swap(register, 32)),
        }
    }

    /// `r0 = r0 operation r1`, with the corners that eBPF has otherwise.
    fn combine(&mut self, operation: Operation) {
        match operation {
            Operation::Divide | Operation::Remainder => {
                let refuse = Label::Fast(Graph::REFUSE.0);
                self.check(
                    Instruction::jump_number(Jump::Equal, R1, 0),
                    Instruction::jump_number(Jump::NotEqual, R1, 0),
                    refuse,
                );
                self.out.push(Instruction::alu(alu(operation), R0, R1));
            }
            Operation::ShiftLeft | Operation::ShiftRight => {
                let near = self.out.local();
                self.out.jump(Instruction::jump_number(Jump::Less, R1, 32), near);
                self.out.push(Instruction::alu_number(Alu::Move, R0, 0));
                self.out.push(Instruction::alu_number(Alu::Move, R1, 0));
                self.out.bind(near);
                self.out.push(Instruction::alu(alu(operation), R0, R1));
            }
            _ => self.out.push(Instruction::alu(alu(operation), R0, R1)),
        }
    }

    /// Where a slot is on the stack.
    fn cell(&self, slot: u16) -> i16 {
        let cell = self.cells[usize::from(slot)];
        let place = if cell < DOUBLES { CELL_PLACE } else { 0 };
        let double = i16::try_from(cell % DOUBLES).expect("there are few cells");
        TAG - CELL_BYTES * (double + 1) + place
    }
}

/// Whether a packet has one buffer.
fn is_linear(context: Context) -> bool {
    matches!(context, Context::Xdp { fragments: false } | Context::XdpTagged { fragments: false })
}

/// Whether an operation by this number has no corner.
fn takes(operation: Operation, number: u32) -> bool {
    match operation {
        Operation::Divide | Operation::Remainder => number != 0,
        Operation::ShiftLeft | Operation::ShiftRight => number < 32,
        _ => true,
    }
}

fn alu(operation: Operation) -> Alu {
    match operation {
        Operation::Add => Alu::Add,
        Operation::Subtract => Alu::Subtract,
        Operation::Multiply => Alu::Multiply,
        Operation::Divide => Alu::Divide,
        Operation::Remainder => Alu::Remainder,
        Operation::And => Alu::And,
        Operation::Or => Alu::Or,
        Operation::Xor => Alu::Xor,
        Operation::ShiftLeft => Alu::ShiftLeft,
        Operation::ShiftRight => Alu::ShiftRight,
    }
}

fn size(width: Width) -> Size {
    match width {
        Width::Byte => Size::Byte,
        Width::Half => Size::Half,
        Width::Word => Size::Word,
    }
}

/// The place of one of a few things of four bytes from `from` on.
fn word_at(from: i16, index: usize) -> i16 {
    from + 4 * i16::try_from(index).expect("there are few")
}

fn temporary(index: usize) -> i16 {
    word_at(TEMPORARY, index)
}

fn key_word(index: usize) -> i16 {
    word_at(KEY, index)
}

/// Whether there was a tag, its EtherType, and the tag.
fn tag(index: usize) -> i16 {
    word_at(TAG, index)
}
