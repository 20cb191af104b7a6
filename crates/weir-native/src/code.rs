//! Translation of a graph to Cranelift IR.
//!
//! Each node becomes a block. Blocks are built along the dominator tree: values that a node has computed, and bytes it
//! has shown to be in the packet, are available in everything it dominates and are tracked in [`Scope`]. Slots, which
//! depend on the path taken, become Cranelift variables.

use cranelift_codegen::ir::condcodes::IntCC;
use cranelift_codegen::ir::types::{I16, I32, I64};
use cranelift_codegen::ir::{self, Block, InstBuilder as _, MemFlagsData, SigRef};
use cranelift_frontend::{FunctionBuilder, Variable};
use weir_filter::graph::{
    Graph, Meta, Node, NodeId, Operation, Relation, Test, Value, ValueId, Verdict, Width,
};
use weir_filter::set::SetId;

use crate::analysis::{Analysis, NEVER, evaluated, operands};
use crate::scope::Scope;

/// How code looks a key up in a set.
pub(crate) enum Question {
    /// Compares with each of a few ranges of one-word keys.
    Ranges(Vec<(u32, u32)>),
    /// Tests a bit in a table of 2^16 bits at this address.
    Bit(i64),
    /// Calls `function(table, words...)`; the result is nonzero for members.
    Call {
        /// Address of the function.
        function: i64,
        /// Address of the table.
        table: i64,
        /// Number of words in a key.
        words: usize,
    },
}

/// Arguments of a filter's function.
#[derive(Clone, Copy)]
struct Arguments {
    /// Address of the packet's first byte.
    data: ir::Value,
    /// Captured length in bytes, 64 bits.
    captured: ir::Value,
    /// Length on the wire in bytes.
    length: ir::Value,
    /// Address of the metadata, one word per field in the order of [`place`].
    meta: ir::Value,
}

/// Returns the index of a metadata field.
pub(crate) fn place(meta: Meta) -> u16 {
    match meta {
        Meta::Protocol => 0,
        Meta::PacketType => 1,
        Meta::Interface => 2,
        Meta::VlanTag => 3,
        Meta::VlanPresent => 4,
        Meta::VlanProtocol => 5,
    }
}

/// Returns what code answers for a verdict: the result of a filter that accepts, if it is not 0, and otherwise the
/// verdict's number in the upper half. The lower half is always the result.
fn answer(graph: &Graph, verdict: Verdict) -> u64 {
    match (verdict, graph.snap_len) {
        (Verdict::ACCEPT, result @ 1..) => result.into(),
        (Verdict(number), _) => u64::from(number) << 32,
    }
}

/// Returns the verdict of an [`answer`].
#[expect(
    clippy::cast_possible_truncation,
    reason = "the upper half is a verdict's number, which has 16 bits"
)]
pub(crate) fn verdict(answer: u64) -> Verdict {
    match answer {
        1..=0xffff_ffff => Verdict::ACCEPT,
        _ => Verdict((answer >> 32) as u16),
    }
}

/// Emits the body of a function whose entry block exists and has the four arguments.
pub(crate) fn emit(
    graph: &Graph,
    questions: &[Option<Question>],
    builder: &mut FunctionBuilder<'_>,
    calls: &[SigRef],
) {
    let analysis = Analysis::new(graph);
    let first = builder.create_block();
    builder.append_block_params_for_function_params(first);
    builder.switch_to_block(first);
    builder.seal_block(first);
    let parameters = builder.block_params(first);
    let arguments = Arguments {
        data: parameters[0],
        captured: parameters[1],
        length: parameters[2],
        meta: parameters[3],
    };
    let [refuse, accept, short] = [(); 3].map(|()| builder.create_block());
    builder.set_cold_block(short);
    let slots = (0..graph.slots()).map(|_| builder.declare_var(I32)).collect();
    let blocks = vec![None; graph.nodes().len()];
    let scope = Scope::new(graph.values().len());
    let mut maker = Maker {
        graph,
        analysis,
        questions,
        calls,
        builder,
        arguments,
        refuse,
        accept,
        short,
        slots,
        blocks,
        scope,
    };
    let root = maker.block(graph.root());
    maker.builder.ins().jump(root, &[]);
    maker.nodes();
    maker.ends();
}

struct Maker<'a, 'f> {
    graph: &'a Graph,
    analysis: Analysis,
    questions: &'a [Option<Question>],
    /// Signatures of [`Question::Call`], by number of words.
    calls: &'a [SigRef],
    builder: &'a mut FunctionBuilder<'f>,
    arguments: Arguments,
    /// Block that returns the result for a rejected packet.
    refuse: Block,
    /// Block that returns the result for an accepted packet.
    accept: Block,
    /// Block for packets that are too short, and for divisors of zero.
    short: Block,
    slots: Vec<Variable>,
    blocks: Vec<Option<Block>>,
    scope: Scope,
}

impl Maker<'_, '_> {
    /// Returns the block of a node.
    fn block(&mut self, node: NodeId) -> Block {
        match node {
            Graph::ACCEPT => self.accept,
            node if self.analysis.hopeless(node) => self.refuse,
            node => *self.blocks[node.0 as usize].get_or_insert_with(|| self.builder.create_block()),
        }
    }

    /// Emits all nodes, each after its immediate dominator and with that node's facts in scope.
    fn nodes(&mut self) {
        enum Task {
            Make(NodeId),
            /// Drops what was recorded since this mark.
            Forget(usize),
        }
        let root = self.graph.root();
        let mut tasks = vec![Task::Make(root)];
        while let Some(task) = tasks.pop() {
            match task {
                Task::Forget(mark) => self.scope.forget(mark),
                Task::Make(node) if node == Graph::ACCEPT || self.analysis.hopeless(node) => {}
                Task::Make(node) => {
                    tasks.push(Task::Forget(self.scope.mark()));
                    let block = self.block(node);
                    self.builder.switch_to_block(block);
                    self.builder.seal_block(block);
                    self.node(node);
                    tasks.extend(
                        self.analysis.dominated[node.0 as usize].iter().rev().map(|&node| Task::Make(node)),
                    );
                }
            }
        }
    }

    fn ends(&mut self) {
        let ends =
            [(self.accept, Verdict::ACCEPT), (self.refuse, Verdict::REFUSE), (self.short, Verdict::REFUSE)];
        for (block, verdict) in ends {
            self.builder.switch_to_block(block);
            self.builder.seal_block(block);
            self.end(verdict);
        }
    }

    fn end(&mut self, verdict: Verdict) {
        let answer = answer(self.graph, verdict);
        let answer = self.builder.ins().iconst(I64, answer.cast_signed());
        self.builder.ins().return_(&[answer]);
    }

    fn node(&mut self, id: NodeId) {
        self.require(self.analysis.needs[id.0 as usize]);
        let node = self.graph.node(id);
        match node {
            Node::End(verdict) => self.end(verdict),
            Node::Read { value, next } => {
                self.value(value);
                let next = self.block(next);
                self.builder.ins().jump(next, &[]);
            }
            Node::Assign { slot, value, next } => {
                let value = self.value(value);
                self.builder.def_var(self.slots[usize::from(slot.0)], value);
                let next = self.block(next);
                self.builder.ins().jump(next, &[]);
            }
            Node::Branch { test, then, other, .. } => {
                let ways = (self.block(then), self.block(other));
                match test {
                    Test::Compare { relation, left, right } => self.compare(relation, left, right, ways),
                    Test::Member { set, .. } => {
                        // The last of adjacent words needs the longest packet: load it first.
                        let mut words: Vec<ValueId> = evaluated(node).collect();
                        words.reverse();
                        let mut words: Vec<ir::Value> =
                            words.into_iter().map(|word| self.value(word)).collect();
                        words.reverse();
                        self.member(set, &words, ways);
                    }
                }
            }
        }
    }

    /// Continues only for packets of at least `bytes` bytes.
    fn require(&mut self, bytes: u64) {
        debug_assert_ne!(bytes, NEVER, "it leads nowhere");
        if bytes <= self.scope.length() {
            return;
        }
        self.scope.note_length(bytes);
        let bytes = self.builder.ins().iconst(I64, bytes.cast_signed());
        let enough =
            self.builder.ins().icmp(IntCC::UnsignedGreaterThanOrEqual, self.arguments.captured, bytes);
        self.go_on_if(enough);
    }

    /// Continues only if `condition` holds.
    fn go_on_if(&mut self, condition: ir::Value) {
        let next = self.builder.create_block();
        self.builder.ins().brif(condition, next, &[], self.short, &[]);
        self.builder.switch_to_block(next);
        self.builder.seal_block(next);
    }

    fn number(&mut self, number: u32) -> ir::Value {
        self.builder.ins().iconst(I32, i64::from(number))
    }

    /// Returns a value, computed unless a dominator already has. Not recursive: expressions may be deep.
    fn value(&mut self, id: ValueId) -> ir::Value {
        let mut pending = vec![id];
        while let Some(&id) = pending.last() {
            if self.scope.value(id).is_some() {
                pending.pop();
                continue;
            }
            let before = pending.len();
            pending
                .extend(operands(self.graph.get(id)).filter(|&operand| self.scope.value(operand).is_none()));
            if pending.len() == before {
                let made = self.make(id);
                self.scope.note(id, made);
            }
        }
        self.made(id)
    }

    fn made(&self, id: ValueId) -> ir::Value {
        self.scope.value(id).expect("it was just made")
    }

    /// Emits a value whose operands exist.
    fn make(&mut self, id: ValueId) -> ir::Value {
        match self.graph.get(id) {
            Value::Constant(number) => self.number(number),
            Value::Length => self.arguments.length,
            Value::Meta(meta) => {
                let offset = i32::from(place(meta)) * 4;
                self.builder.ins().load(I32, MemFlagsData::trusted(), self.arguments.meta, offset)
            }
            Value::Slot(slot) => self.builder.use_var(self.slots[usize::from(slot.0)]),
            Value::Load { width, .. } => {
                let raw = self.raw(id);
                self.ordered(raw, width)
            }
            Value::Binary { operation, left, right } => {
                let constant = self.graph.as_constant(right);
                self.binary(operation, self.made(left), self.made(right), constant)
            }
        }
    }

    /// Emits a load, without byte swapping, whose base exists.
    fn raw(&mut self, id: ValueId) -> ir::Value {
        if let Some(raw) = self.scope.raw(id) {
            return raw;
        }
        let Value::Load { base, offset, width } = self.graph.get(id) else {
            unreachable!("it is a load");
        };
        let end = u64::from(offset) + width as u64;
        let (address, offset) = match base {
            None => {
                self.require(end);
                (self.arguments.data, u64::from(offset))
            }
            Some(base) => self.address(base, u64::from(offset), end),
        };
        let (address, offset) = match i32::try_from(offset) {
            Ok(offset) => (address, offset),
            Err(_) => (self.builder.ins().iadd_imm_u(address, offset.cast_signed()), 0),
        };
        let flags = MemFlagsData::new().with_notrap();
        let raw = match width {
            Width::Byte => self.builder.ins().uload8(I32, flags, address, offset),
            Width::Half => self.builder.ins().uload16(I32, flags, address, offset),
            Width::Word => self.builder.ins().load(I32, flags, address, offset),
        };
        self.scope.note_raw(id, raw);
        raw
    }

    /// Returns the address and remaining offset for a load from `base`, after checking that it lies within the packet.
    fn address(&mut self, base: ValueId, offset: u64, end: u64) -> (ir::Value, u64) {
        let start = self.made(base);
        let wraps = u64::from(self.analysis.limits[base.0 as usize]) + end > u64::from(u32::MAX);
        if wraps {
            let start = self.builder.ins().iadd_imm_u(start, offset.cast_signed());
            let start = self.builder.ins().uextend(I64, start);
            self.within(start, end - offset);
            return (self.builder.ins().iadd(self.arguments.data, start), 0);
        }
        let start = self.builder.ins().uextend(I64, start);
        if self.scope.reached(base) < end {
            self.within(start, end);
            self.scope.note_reached(base, end);
        }
        (self.builder.ins().iadd(self.arguments.data, start), offset)
    }

    /// Continues only if `start + bytes` lies within the packet.
    fn within(&mut self, start: ir::Value, bytes: u64) {
        let end = self.builder.ins().iadd_imm_u(start, bytes.cast_signed());
        let enough = self.builder.ins().icmp(IntCC::UnsignedGreaterThanOrEqual, self.arguments.captured, end);
        self.go_on_if(enough);
    }

    /// Converts bytes in memory order to the number they stand for in network byte order.
    fn ordered(&mut self, raw: ir::Value, width: Width) -> ir::Value {
        if cfg!(target_endian = "big") {
            return raw;
        }
        match width {
            Width::Byte => raw,
            Width::Half => {
                let half = self.builder.ins().ireduce(I16, raw);
                let half = self.builder.ins().bswap(half);
                self.builder.ins().uextend(I32, half)
            }
            Width::Word => self.builder.ins().bswap(raw),
        }
    }

    fn binary(
        &mut self,
        operation: Operation,
        left: ir::Value,
        right: ir::Value,
        constant: Option<u32>,
    ) -> ir::Value {
        match operation {
            Operation::Add => self.builder.ins().iadd(left, right),
            Operation::Subtract => self.builder.ins().isub(left, right),
            Operation::Multiply => self.builder.ins().imul(left, right),
            Operation::And => self.builder.ins().band(left, right),
            Operation::Or => self.builder.ins().bor(left, right),
            Operation::Xor => self.builder.ins().bxor(left, right),
            Operation::Divide | Operation::Remainder => {
                if constant.is_none_or(|divisor| divisor == 0) {
                    let divides = self.builder.ins().icmp_imm_u(IntCC::NotEqual, right, 0);
                    self.go_on_if(divides);
                }
                match operation {
                    Operation::Divide => self.builder.ins().udiv(left, right),
                    _ => self.builder.ins().urem(left, right),
                }
            }
            Operation::ShiftLeft | Operation::ShiftRight => {
                // Cranelift takes the shift amount modulo 32.
                let shifted = match operation {
                    Operation::ShiftLeft => self.builder.ins().ishl(left, right),
                    _ => self.builder.ins().ushr(left, right),
                };
                if constant.is_some_and(|shift| shift < 32) {
                    return shifted;
                }
                let small = self.builder.ins().icmp_imm_u(IntCC::UnsignedLessThan, right, 32);
                let zero = self.number(0);
                self.builder.ins().select(small, shifted, zero)
            }
        }
    }

    fn compare(&mut self, relation: Relation, left: ValueId, right: ValueId, ways: (Block, Block)) {
        if let Some(number) = self.graph.as_constant(right)
            && let Some((bytes, number)) = self.as_it_lies(relation, left, number)
        {
            let condition = match (relation, number) {
                (Relation::AnyBit, number) => self.builder.ins().band(bytes, number),
                (_, number) => self.builder.ins().icmp(IntCC::Equal, bytes, number),
            };
            self.builder.ins().brif(condition, ways.0, &[], ways.1, &[]);
            return;
        }
        let (left, right) = (self.value(left), self.value(right));
        let condition = match relation {
            Relation::Equal => self.builder.ins().icmp(IntCC::Equal, left, right),
            Relation::Greater => self.builder.ins().icmp(IntCC::UnsignedGreaterThan, left, right),
            Relation::AtLeast => self.builder.ins().icmp(IntCC::UnsignedGreaterThanOrEqual, left, right),
            Relation::AnyBit => self.builder.ins().band(left, right),
        };
        self.builder.ins().brif(condition, ways.0, &[], ways.1, &[]);
    }

    /// Returns both operands in memory byte order, so that no swap is needed, if the left one is an optionally masked
    /// load and the relation does not depend on byte order.
    fn as_it_lies(
        &mut self,
        relation: Relation,
        left: ValueId,
        number: u32,
    ) -> Option<(ir::Value, ir::Value)> {
        if !matches!(relation, Relation::Equal | Relation::AnyBit) || self.scope.value(left).is_some() {
            return None;
        }
        let (load, mask) = match self.graph.get(left) {
            Value::Load { .. } => (left, None),
            Value::Binary { operation: Operation::And, left: load, right } => {
                (load, Some(self.graph.as_constant(right)?))
            }
            _ => return None,
        };
        let Value::Load { base, width, .. } = self.graph.get(load) else { return None };
        let turned = match width {
            Width::Byte => number,
            Width::Half => u16::try_from(number).ok()?.to_be().into(),
            Width::Word => number.to_be(),
        };
        if let Some(base) = base {
            self.value(base);
        }
        let mut bytes = self.raw(load);
        if let Some(mask) = mask {
            let mask = match width {
                Width::Byte => mask & 0xff,
                Width::Half => u32::from(u16::try_from(mask & 0xffff).ok()?.to_be()),
                Width::Word => mask.to_be(),
            };
            let mask = self.number(mask);
            bytes = self.builder.ins().band(bytes, mask);
        }
        let turned = self.number(turned);
        Some((bytes, turned))
    }

    fn member(&mut self, set: SetId, words: &[ir::Value], ways: (Block, Block)) {
        let question =
            self.questions[set.0 as usize].as_ref().expect("it was made for each set that is asked for");
        match question {
            Question::Ranges(ranges) => {
                for &(start, end) in ranges {
                    let inside = if start == end {
                        self.builder.ins().icmp_imm_u(IntCC::Equal, words[0], i64::from(start))
                    } else {
                        let start_value = self.number(start);
                        let from_start = self.builder.ins().isub(words[0], start_value);
                        let room = i64::from(end - start);
                        self.builder.ins().icmp_imm_u(IntCC::UnsignedLessThanOrEqual, from_start, room)
                    };
                    let next = self.builder.create_block();
                    self.builder.ins().brif(inside, ways.0, &[], next, &[]);
                    self.builder.switch_to_block(next);
                    self.builder.seal_block(next);
                }
                self.builder.ins().jump(ways.1, &[]);
            }
            &Question::Bit(table) => {
                let small = self.builder.ins().icmp_imm_u(IntCC::UnsignedLessThanOrEqual, words[0], 0xffff);
                let next = self.builder.create_block();
                self.builder.ins().brif(small, next, &[], ways.1, &[]);
                self.builder.switch_to_block(next);
                self.builder.seal_block(next);
                let word = self.builder.ins().ushr_imm_u(words[0], 5);
                let word = self.builder.ins().uextend(I64, word);
                let offset = self.builder.ins().ishl_imm_u(word, 2);
                let table = self.builder.ins().iconst(I64, table);
                let address = self.builder.ins().iadd(table, offset);
                let bits = self.builder.ins().load(I32, MemFlagsData::trusted(), address, 0);
                // The shift amount is taken modulo 32, as intended here.
                let bit = self.builder.ins().ushr(bits, words[0]);
                let bit = self.builder.ins().band_imm_u(bit, 1);
                self.builder.ins().brif(bit, ways.0, &[], ways.1, &[]);
            }
            &Question::Call { function, table, words: count } => {
                let function = self.builder.ins().iconst(I64, function);
                let mut arguments = vec![self.builder.ins().iconst(I64, table)];
                arguments.extend(&words[..count]);
                let call = self.builder.ins().call_indirect(self.calls[count], function, &arguments);
                let inside = self.builder.inst_results(call)[0];
                self.builder.ins().brif(inside, ways.0, &[], ways.1, &[]);
            }
        }
    }
}
