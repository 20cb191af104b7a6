//! Evaluation of values, without recursion.

use super::Code;
use super::load::ByteOrder;
use crate::emit::ebpf::assembler::Label;
use crate::emit::ebpf::instruction::{Alu, FP, Instruction, Jump, R0, R1, Register, Size};
use crate::emit::ebpf::stack::temporary;
use crate::graph::{Graph, Operation, Value, ValueId, Width};

/// A step in the evaluation of a value.
pub(super) enum Task {
    /// Computes a value into `r0`. Temporaries from this index on are free.
    Value(ValueId, usize),
    /// Loads what is at `r0 + offset` into `r0`.
    Load { offset: u32, width: Width, order: ByteOrder },
    /// Loads a value that needs no computation into a register, without clobbering `r0` unless it is that register.
    Leaf(ValueId, Register),
    /// Saves `r0` to a temporary.
    Save(usize),
    /// Restores a temporary to a register.
    Restore(usize, Register),
    /// `r1 = r0`
    Move,
    /// `r0 = r0 operation r1`
    Combine(Operation),
    /// `r0 = r0 operation number`
    Number(Operation, u32),
}

impl Code<'_> {
    /// Computes two values into `r0` and `r1`.
    pub(super) fn pair(&mut self, left: ValueId, right: ValueId) {
        let tasks = self.operands(left, right, 0);
        self.tasks(tasks);
    }

    pub(super) fn value(&mut self, id: ValueId) {
        self.tasks(vec![Task::Value(id, 0)]);
    }

    /// Executes tasks from the last to the first. Not recursive: an expression may be nested as deep as its text is
    /// long.
    pub(super) fn tasks(&mut self, mut tasks: Vec<Task>) {
        while let Some(task) = tasks.pop() {
            match task {
                Task::Value(id, free) => match self.graph.get(id) {
                    _ if self.is_leaf(id) => self.leaf(id, R0),
                    Value::Load { base: Some(base), offset, width } => {
                        tasks.push(Task::Load { offset, width, order: ByteOrder::Number });
                        tasks.push(Task::Value(base, free));
                    }
                    Value::Load { base: None, offset, width } => {
                        self.load_fixed(offset, width, ByteOrder::Number, R0);
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
                    Value::Length => self.length_of_all_buffers(),
                    value => unreachable!("{value:?} is not computed"),
                },
                Task::Load { offset, width, order } => self.load(offset, width, order),
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

    /// Returns the tasks that compute `left` into `r0` and `right` into `r1`, in reverse order.
    fn operands(&self, left: ValueId, right: ValueId, free: usize) -> Vec<Task> {
        let kept = |id: ValueId| self.analysis.kept[id.0 as usize];
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

    /// Returns whether a value can be loaded into a register without a call and without clobbering `r0` or `r1`.
    pub(super) fn is_leaf(&self, id: ValueId) -> bool {
        match self.graph.get(id) {
            Value::Constant(_) | Value::Slot(_) | Value::Meta(_) => true,
            Value::Length => !self.length_by_call(),
            Value::Load { base: None, offset, width } => self.end_of_direct(offset, width).is_some(),
            _ => false,
        }
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
            Value::Length => self.length(register),
            Value::Load { offset, width, .. } => self.load_fixed(offset, width, ByteOrder::Number, register),
            value @ Value::Binary { .. } => unreachable!("{value:?} is computed"),
        }
    }

    /// Emits `r0 = r0 operation r1`, with extra code where eBPF's semantics differ.
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
}

/// Returns whether an operation by this number has the same semantics in eBPF.
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
