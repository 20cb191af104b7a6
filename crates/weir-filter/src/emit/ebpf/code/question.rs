//! Tests: comparisons, look-ups and branches.

use super::Code;
use super::load::ByteOrder;
use super::value::Task;
use crate::emit::ebpf::Symbol;
use crate::emit::ebpf::instruction::{Alu, FP, Instruction, Jump, R0, R1, Size};
use crate::emit::ebpf::stack::{KEY, key_word};
use crate::graph::{KEY_WORDS, NodeId, Operation, Relation, Value, ValueId, Width};
use crate::set::{Contents, SetId};

impl Code<'_> {
    pub(super) fn compare(
        &mut self,
        relation: Relation,
        left: ValueId,
        right: ValueId,
        ways: (NodeId, NodeId),
    ) {
        let number = match self.wire_form(relation, left, right) {
            Some((value, mask, number)) => {
                if self.held != Some((value, None)) && self.held != Some((value, mask)) {
                    self.held = None;
                    match self.graph.get(value) {
                        Value::Load { base: None, offset, width } => {
                            self.load_fixed(offset, width, ByteOrder::Wire, R0);
                        }
                        Value::Load { base: Some(base), offset, width } => {
                            let load = Task::Load { offset, width, order: ByteOrder::Wire };
                            self.tasks(vec![load, Task::Value(base, 0)]);
                        }
                        _ => self.value(value),
                    }
                }
                if let Some(mask) = mask
                    && self.held != Some((value, Some(mask)))
                {
                    self.out.push(Instruction::alu_number(Alu::And, R0, mask));
                }
                // Testing for any of several bits may leave other bits in the register.
                self.held = Some((value, mask)).filter(|_| relation == Relation::Equal);
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

    /// Returns value, mask and number of a comparison that works in packet byte order. Slots have no byte order.
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
        let (value, mask) = match self.graph.get(left) {
            Value::Binary { operation: Operation::And, left, right } => {
                (left, Some(self.graph.as_constant(right)?))
            }
            _ => (left, None),
        };
        let width = match self.graph.get(value) {
            Value::Load { width, .. } => Some(width),
            Value::Slot(_) => None,
            _ => return None,
        };
        let as_loaded = self.loads_numbers();
        let turned = |number: u32| match width {
            Some(Width::Byte) => u8::try_from(number).ok().map(u32::from),
            Some(Width::Half) if as_loaded => u16::try_from(number).ok().map(u32::from),
            Some(Width::Half) => u16::try_from(number).ok().map(|number| number.to_be().into()),
            Some(Width::Word) if !as_loaded => Some(number.to_be()),
            Some(Width::Word) | None => Some(number),
        };
        let mask = match mask {
            Some(mask) => Some(turned(mask)?),
            None => None,
        };
        Some((value, mask, turned(number)?))
    }

    /// Branches on a comparison of `r0` with a number, or with `r1`.
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

    /// Returns whether to jump to `other` and fall through to `then`. The verifier follows the fall-through first and
    /// keeps the jump pending.
    fn jumps_to_other(&self, then: NodeId, other: NodeId, next: Option<NodeId>) -> bool {
        let waiting = |node: NodeId| self.analysis.waiting[node.0 as usize];
        if self.patient { waiting(other) > waiting(then) } else { next == Some(then) }
    }

    pub(super) fn member(&mut self, set: SetId, key: &[ValueId; KEY_WORDS], (then, other): (NodeId, NodeId)) {
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
}
