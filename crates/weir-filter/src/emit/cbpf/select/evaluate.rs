//! Evaluation of values into registers, without recursion: arithmetic may be nested as deep as the text is long.

use super::{EmitError, Held, Selector};
use crate::cbpf::{MEMORY_WORDS, Opcode, Operand};
use crate::graph::{Graph, Operation, Value, ValueId, Width};

/// A pending step of an evaluation.
enum Task {
    /// Load the value into A. X may be overwritten if [`needs_x`] says so.
    ToA(ValueId),
    /// Load the value into X. A may be overwritten, unless the value [reaches X directly](Selector::reaches_x_alone).
    ToX(ValueId),
    /// Store the value, which is in A, until it is [taken](Task::Take).
    Keep(ValueId),
    /// Load the stored value into X.
    Take(ValueId),
    /// Emit an instruction that leaves the value in A.
    Run(Opcode, u32, ValueId),
}

/// Computes, for each value, whether loading it into A may overwrite X.
pub(super) fn needs_x(graph: &Graph) -> Vec<bool> {
    let mut needs: Vec<bool> = Vec::with_capacity(graph.values().len());
    for &value in graph.values() {
        let two = |right| graph.as_constant(right).is_none();
        needs.push(match value {
            Value::Load { base: Some(_), .. } => true,
            Value::Binary { right, .. } if two(right) => true,
            Value::Binary { .. } if header_length(graph, value).is_some() => true,
            _ => value.operands().any(|operand| needs[operand.0 as usize]),
        });
    }
    needs
}

/// Returns the offset of the length byte, if `value` is the length of an IPv4 header.
fn header_length(graph: &Graph, value: Value) -> Option<u32> {
    let Value::Binary { operation, left, right } = value else { return None };
    match (operation, graph.as_constant(right)?) {
        (Operation::ShiftLeft, 2) | (Operation::Multiply, 4) => {}
        _ => return None,
    }
    let Value::Binary { operation: Operation::And, left, right } = graph.get(left) else { return None };
    match graph.get(left) {
        Value::Load { base: None, offset, width: Width::Byte } if graph.as_constant(right) == Some(0xf) => {
            Some(offset)
        }
        _ => None,
    }
}

impl Selector<'_> {
    /// Loads `value` into A.
    pub(super) fn load_a(&mut self, value: ValueId) -> Result<(), EmitError> {
        self.work(vec![Task::ToA(value)])
    }

    /// Loads `value` into X.
    pub(super) fn load_x(&mut self, value: ValueId) -> Result<(), EmitError> {
        self.work(vec![Task::ToX(value)])
    }

    /// Loads one value into A and the other into X; returns whether `left` is the one in X.
    pub(super) fn load_both(&mut self, left: ValueId, right: ValueId) -> Result<bool, EmitError> {
        let mut tasks = Vec::new();
        let swapped = self.pair(left, right, true, &mut tasks);
        self.work(tasks)?;
        Ok(swapped)
    }

    /// Returns whether `value` can be loaded into X without using A.
    pub(super) fn reaches_x_alone(&self, value: ValueId) -> bool {
        match self.graph.get(value) {
            Value::Constant(_) | Value::Length | Value::Slot(_) => true,
            shape @ Value::Binary { .. } => {
                header_length(self.graph, shape).is_some() || self.kept(value).is_some()
            }
            _ => self.kept(value).is_some(),
        }
    }

    fn work(&mut self, mut tasks: Vec<Task>) -> Result<(), EmitError> {
        while let Some(task) = tasks.pop() {
            match task {
                Task::ToA(value) => self.plan_a(value, &mut tasks),
                Task::ToX(value) => self.plan_x(value, &mut tasks),
                Task::Keep(value) => self.keep(value)?,
                Task::Take(value) => {
                    let word = self.kept(value).expect("what is kept stays until it is taken");
                    self.pinned[usize::from(word)] -= 1;
                    self.set_x(Opcode::LoadXMemory, word.into(), vec![value]);
                }
                Task::Run(opcode, k, value) => self.set_a(opcode, k, vec![value]),
            }
        }
        Ok(())
    }

    fn set_a(&mut self, opcode: Opcode, k: u32, held: Held) {
        self.push(opcode, k);
        self.state.a = held;
    }

    fn set_x(&mut self, opcode: Opcode, k: u32, held: Held) {
        self.push(opcode, k);
        self.state.x = held;
    }

    /// Returns the word of memory that holds `value`.
    fn kept(&self, value: ValueId) -> Option<u8> {
        if let Value::Slot(slot) = self.graph.get(value) {
            return Some(self.words.of(slot));
        }
        let word = self.state.memory.iter().position(|held| *held == Some(value))?;
        u8::try_from(word).ok()
    }

    fn keep(&mut self, value: ValueId) -> Result<(), EmitError> {
        let kept = self.kept(value);
        let word = match kept {
            Some(word) => word,
            None => {
                let mut free = self.words.free..u8::try_from(MEMORY_WORDS).expect("there are 16");
                free.find(|word| self.pinned[usize::from(*word)] == 0).ok_or(EmitError::Memory)?
            }
        };
        self.pinned[usize::from(word)] += 1;
        if kept.is_none() {
            self.push(Opcode::Store, word.into());
            self.state.memory[usize::from(word)] = Some(value);
        }
        Ok(())
    }

    fn plan_a(&mut self, value: ValueId, tasks: &mut Vec<Task>) {
        if self.state.a.contains(&value) {
            return;
        }
        if self.state.x.contains(&value) {
            let held = self.state.x.clone();
            return self.set_a(Opcode::CopyToA, 0, held);
        }
        if let Some(word) = self.kept(value) {
            return self.set_a(Opcode::LoadMemory, word.into(), vec![value]);
        }
        let shape = self.graph.get(value);
        match shape {
            Value::Constant(number) => self.set_a(Opcode::LoadConstant, number, vec![value]),
            Value::Length => self.set_a(Opcode::LoadLength, 0, vec![value]),
            Value::Meta(meta) => self.set_a(Opcode::LoadAbsolute(Width::Word), meta.offset(), vec![value]),
            Value::Load { base: None, offset, width } => {
                self.set_a(Opcode::LoadAbsolute(width), offset, vec![value]);
            }
            Value::Load { base: Some(base), offset, width } => {
                tasks.push(Task::Run(Opcode::LoadIndirect(width), offset, value));
                tasks.push(Task::ToX(base));
            }
            Value::Slot(_) => unreachable!("a slot has a word"),
            Value::Binary { .. } if header_length(self.graph, shape).is_some() => {
                tasks.extend([Task::Run(Opcode::CopyToA, 0, value), Task::ToX(value)]);
            }
            Value::Binary { operation: Operation::Subtract, left, right }
                if self.graph.as_constant(left) == Some(0) =>
            {
                tasks.extend([Task::Run(Opcode::Negate, 0, value), Task::ToA(right)]);
            }
            Value::Binary { operation, left, right } => {
                self.plan_binary(value, operation, left, right, tasks)
            }
        }
    }

    fn plan_binary(
        &mut self,
        value: ValueId,
        operation: Operation,
        left: ValueId,
        right: ValueId,
        tasks: &mut Vec<Task>,
    ) {
        if let Some(k) = self.graph.as_constant(right) {
            tasks.push(Task::Run(Opcode::Arithmetic(operation, Operand::Constant), k, value));
            tasks.push(Task::ToA(left));
            return;
        }
        if operation.commutes()
            && let Some(k) = self.graph.as_constant(left)
        {
            tasks.push(Task::Run(Opcode::Arithmetic(operation, Operand::Constant), k, value));
            tasks.push(Task::ToA(right));
            return;
        }
        tasks.push(Task::Run(Opcode::Arithmetic(operation, Operand::X), 0, value));
        self.pair(left, right, operation.commutes(), tasks);
    }

    /// Plans to load one value into A and the other into X. If `either` order will do, returns whether `left` is the
    /// one in X.
    fn pair(&mut self, left: ValueId, right: ValueId, either: bool, tasks: &mut Vec<Task>) -> bool {
        let needs_x = |value: ValueId| self.needs_x[value.0 as usize];
        let alone = |value| self.reaches_x_alone(value);
        let stays = |value, other| self.state.x.contains(&value) && !needs_x(other);
        // Whether the second can be loaded into X after the first is in A.
        let behind = |first, second| first == second || alone(second) || stays(second, first);
        let orders = [(left, right, false), (right, left, true)];
        let orders = &orders[..if either { 2 } else { 1 }];
        if let Some(&(a, x, swapped)) = orders.iter().find(|(a, x, _)| behind(*a, *x)) {
            tasks.extend([Task::ToX(x), Task::ToA(a)]);
            return swapped;
        }
        if let Some(&(a, x, swapped)) = orders.iter().find(|(a, ..)| !needs_x(*a)) {
            tasks.extend([Task::ToA(a), Task::ToX(x)]);
            return swapped;
        }
        tasks.extend([Task::Take(right), Task::ToA(left), Task::Keep(right), Task::ToA(right)]);
        false
    }

    fn plan_x(&mut self, value: ValueId, tasks: &mut Vec<Task>) {
        if self.state.x.contains(&value) {
            return;
        }
        if self.state.a.contains(&value) {
            let held = self.state.a.clone();
            return self.set_x(Opcode::CopyToX, 0, held);
        }
        if let Some(word) = self.kept(value) {
            return self.set_x(Opcode::LoadXMemory, word.into(), vec![value]);
        }
        let shape = self.graph.get(value);
        match shape {
            Value::Constant(number) => self.set_x(Opcode::LoadXConstant, number, vec![value]),
            Value::Length => self.set_x(Opcode::LoadXLength, 0, vec![value]),
            _ => match header_length(self.graph, shape) {
                Some(offset) => self.set_x(Opcode::LoadXHeaderLength, offset, vec![value]),
                None => tasks.extend([Task::ToX(value), Task::ToA(value)]),
            },
        }
    }
}
