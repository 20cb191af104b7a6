//! Decompiler from a program to a graph, without registers.
//!
//! Instructions are executed symbolically, on values instead of numbers. Where paths meet with different contents of a
//! live register, the register becomes a slot, which each of these paths assigns.

use super::opcode::{ANCILLARY_XOR_X, LINK_LAYER, ancillary_meta};
use super::{ANCILLARY, Flaw, MEMORY_WORDS, Opcode, Operand, Program, Rules};
use crate::graph::{Graph, MOST_SLOTS, Node, NodeId, Operation, Slot, TermId, Test, Value, ValueId, Width};
use crate::pass::range::Ranges;

/// Values of more operations than this get a slot, so that values built from each other stay small.
const LARGEST_VALUE: u32 = 64;

/// Register numbers: A, X, then memory.
const A: usize = 0;
const X: usize = 1;
const REGISTERS: usize = 2 + MEMORY_WORDS;

/// Register contents.
type RegisterContents = [ValueId; REGISTERS];

/// A program that has no graph.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum LiftError {
    /// It is invalid or jumps backward.
    #[error(transparent)]
    Flaw(#[from] Flaw),
    /// It loads metadata that packet filters cannot test.
    #[error("instruction {at}: it loads data about the packet that only the kernel has")]
    Ancillary {
        /// Index of the instruction.
        at: usize,
    },
    /// It may load relative to the kernel's link or network header.
    #[error(
        "instruction {at}: the offset may be negative, in which case the kernel counts from a header, not from the first byte"
    )]
    Offset {
        /// Index of the instruction.
        at: usize,
    },
    /// It may load at an offset from X beyond 2^32.
    #[error("instruction {at}: the offset may wrap, in which case libpcap rejects the packet")]
    Wraps {
        /// Index of the instruction.
        at: usize,
    },
    /// Its paths meet with too many different register contents.
    #[error("the program has too many values that depend on the path taken")]
    Slots,
    /// It returns a computed number, or several different ones.
    #[error("instruction {at}: accepted packets do not all get the same length")]
    Answer {
        /// Index of the instruction.
        at: usize,
    },
}

/// The effect of an instruction on the graph, apart from registers.
#[derive(Clone, Copy)]
enum Effect {
    None,
    Read(ValueId),
    Assign(Slot, ValueId),
    Branch(Test, usize, usize),
    Jump(usize),
    Return(NodeId),
}

struct Lifter<'a> {
    program: &'a Program,
    /// The machine that runs the program.
    rules: Rules,
    graph: Graph,
    /// Number of operations in each value, computed on demand.
    sizes: Vec<u32>,
    /// Registers that are live at each instruction.
    live: Vec<u32>,
    /// Effect of each instruction.
    effects: Vec<Effect>,
    /// For each instruction, the slots to assign on the way to a successor.
    moves: Vec<Vec<(usize, Slot, ValueId)>>,
    accepted: Option<u32>,
    /// Loads at computed addresses: instruction, base and offset.
    indirect: Vec<(usize, ValueId, u32)>,
}

impl Program {
    /// Lifts the program to a graph with the verdicts of the kernel or of libpcap, depending on `rules`.
    ///
    /// libpcap gives zero for shifts by X of 32 or more, where the kernel takes the lowest five bits of X, and rejects
    /// packets at negative offsets and at offsets that wrap, where the kernel may find something. Only a program that
    /// [the kernel would take](Rules::Kernel) has a graph.
    pub fn lift(&self, rules: Rules) -> Result<Graph, LiftError> {
        self.check(Rules::Kernel)?;
        let mut lifter = Lifter {
            program: self,
            rules,
            graph: Graph::new(0),
            sizes: Vec::new(),
            live: self.live_registers(),
            effects: Vec::new(),
            moves: vec![Vec::new(); self.len()],
            accepted: None,
            indirect: Vec::new(),
        };
        lifter.run()?;
        let indirect = std::mem::take(&mut lifter.indirect);
        let graph = lifter.build();
        let mut ranges = Ranges::with_slots(&graph);
        let mut most = |base, offset: u32| u64::from(ranges.most(&graph, base)) + u64::from(offset);
        let limit = if rules == Rules::Kernel { u64::from(LINK_LAYER) } else { 1 << 32 };
        match indirect.iter().find(|&&(_, base, offset)| most(base, offset) >= limit) {
            Some(&(at, ..)) if rules == Rules::Kernel => Err(LiftError::Offset { at }),
            Some(&(at, ..)) => Err(LiftError::Wraps { at }),
            None => Ok(graph),
        }
    }

    /// Returns the successors of the instruction at `at`; none for a return.
    pub(super) fn successors(&self, at: usize) -> impl Iterator<Item = usize> {
        let instruction = self.instructions[at];
        let (first, second) = match instruction.opcode() {
            Some(Opcode::Jump) => (Some(at + 1 + instruction.k as usize), None),
            Some(Opcode::Branch(..)) => {
                (Some(at + 1 + usize::from(instruction.jt)), Some(at + 1 + usize::from(instruction.jf)))
            }
            Some(Opcode::ReturnConstant | Opcode::ReturnA) | None => (None, None),
            Some(_) => (Some(at + 1), None),
        };
        first.into_iter().chain(second)
    }

    fn live_registers(&self) -> Vec<u32> {
        let mut live = vec![0; self.len()];
        for at in (0..self.len()).rev() {
            let after = self.successors(at).fold(0, |all, next| all | live[next]);
            let (reads, writes) = self.instructions[at]
                .opcode()
                .map_or((0, 0), |opcode| registers(opcode, self.instructions[at].k as usize));
            live[at] = after & !writes | reads;
        }
        live
    }
}

/// Returns the registers that an instruction reads and writes, as bit masks.
fn registers(opcode: Opcode, k: usize) -> (u32, u32) {
    const A_BIT: u32 = 1 << A;
    const X_BIT: u32 = 1 << X;
    let memory = || 1 << (2 + k);
    let operand = |operand| if operand == Operand::X { X_BIT } else { 0 };
    match opcode {
        Opcode::LoadAbsolute(_) if k == ANCILLARY_XOR_X as usize => (A_BIT | X_BIT, A_BIT),
        Opcode::LoadAbsolute(_) | Opcode::LoadConstant | Opcode::LoadLength => (0, A_BIT),
        Opcode::LoadIndirect(_) | Opcode::CopyToA => (X_BIT, A_BIT),
        Opcode::LoadMemory => (memory(), A_BIT),
        Opcode::LoadXConstant | Opcode::LoadXLength | Opcode::LoadXHeaderLength => (0, X_BIT),
        Opcode::LoadXMemory => (memory(), X_BIT),
        Opcode::Store => (A_BIT, memory()),
        Opcode::StoreX => (X_BIT, memory()),
        Opcode::Arithmetic(_, from) => (A_BIT | operand(from), A_BIT),
        Opcode::Negate => (A_BIT, A_BIT),
        Opcode::Branch(_, from) => (A_BIT | operand(from), 0),
        Opcode::CopyToX => (A_BIT, X_BIT),
        Opcode::ReturnA => (A_BIT, 0),
        Opcode::Jump | Opcode::ReturnConstant => (0, 0),
    }
}

impl Lifter<'_> {
    fn run(&mut self) -> Result<(), LiftError> {
        let zero = self.graph.constant(0);
        // For each instruction, the states in which it is reached and from where.
        let mut arrivals: Vec<Vec<(usize, RegisterContents)>> = vec![Vec::new(); self.program.len()];
        for at in 0..self.program.len() {
            if self.graph.slots() > MOST_SLOTS {
                return Err(LiftError::Slots);
            }
            let mut state = match at {
                0 => [zero; REGISTERS],
                _ => self.meet(at, std::mem::take(&mut arrivals[at])).unwrap_or([zero; REGISTERS]),
            };
            let effect = self.step(at, &mut state)?;
            self.effects.push(effect);
            for next in self.program.successors(at) {
                if arrivals[next].last().is_none_or(|(from, _)| *from != at) {
                    arrivals[next].push((at, state));
                }
            }
        }
        Ok(())
    }

    /// Merges the states in which `at` is reached; returns `None` if it is unreachable.
    fn meet(&mut self, at: usize, arrivals: Vec<(usize, RegisterContents)>) -> Option<RegisterContents> {
        let (_, mut state) = *arrivals.first()?;
        for (register, value) in state.iter_mut().enumerate() {
            let same = arrivals.iter().all(|(_, other)| other[register] == *value);
            if same || self.live[at] & 1 << register == 0 {
                continue;
            }
            let slot = self.graph.slot();
            for (from, other) in &arrivals {
                self.moves[*from].push((at, slot, other[register]));
            }
            *value = self.graph.value(Value::Slot(slot));
        }
        Some(state)
    }

    fn step(&mut self, at: usize, state: &mut RegisterContents) -> Result<Effect, LiftError> {
        let instruction = self.program.instructions[at];
        let k = instruction.k;
        let word = 2 + k as usize;
        let graph = &mut self.graph;
        let Some(opcode) = instruction.opcode() else { return Ok(Effect::None) };
        match opcode {
            Opcode::LoadAbsolute(_) if k == ANCILLARY_XOR_X => {
                state[A] = graph.binary(Operation::Xor, state[A], state[X]);
                return Ok(self.kept_small(&mut state[A]));
            }
            Opcode::LoadAbsolute(_) if k >= ANCILLARY => {
                state[A] = graph.meta(ancillary_meta(k).ok_or(LiftError::Ancillary { at })?);
            }
            Opcode::LoadAbsolute(_) | Opcode::LoadXHeaderLength
                if k >= LINK_LAYER && self.rules == Rules::Kernel =>
            {
                return Err(LiftError::Offset { at });
            }
            Opcode::LoadAbsolute(width) => {
                state[A] = graph.load(None, k, width);
                return Ok(Effect::Read(state[A]));
            }
            Opcode::LoadIndirect(width) => {
                self.indirect.push((at, state[X], k));
                state[A] = graph.load(Some(state[X]), k, width);
                return Ok(self.kept_small(&mut state[A]));
            }
            Opcode::LoadConstant => state[A] = graph.constant(k),
            Opcode::LoadLength => state[A] = graph.value(Value::Length),
            Opcode::LoadMemory => state[A] = state[word],
            Opcode::LoadXConstant => state[X] = graph.constant(k),
            Opcode::LoadXLength => state[X] = graph.value(Value::Length),
            Opcode::LoadXMemory => state[X] = state[word],
            Opcode::LoadXHeaderLength => {
                let byte = graph.load(None, k, Width::Byte);
                let nibble = graph.with(Operation::And, byte, 0xf);
                state[X] = graph.with(Operation::ShiftLeft, nibble, 2);
                return Ok(Effect::Read(byte));
            }
            Opcode::Store => state[word] = state[A],
            Opcode::StoreX => state[word] = state[X],
            Opcode::Arithmetic(operation, from) => {
                let mut right = operand(graph, from, k, state);
                let shifts = matches!(operation, Operation::ShiftLeft | Operation::ShiftRight);
                if shifts && self.rules == Rules::Kernel {
                    right = graph.with(Operation::And, right, 31);
                }
                state[A] = graph.binary(operation, state[A], right);
                return Ok(self.kept_small(&mut state[A]));
            }
            Opcode::Negate => {
                let zero = graph.constant(0);
                state[A] = graph.binary(Operation::Subtract, zero, state[A]);
                return Ok(self.kept_small(&mut state[A]));
            }
            Opcode::Jump => return Ok(Effect::Jump(at + 1 + k as usize)),
            Opcode::Branch(relation, from) => {
                let right = operand(graph, from, k, state);
                let test = Test::Compare { relation, left: state[A], right };
                let target = |distance: u8| at + 1 + usize::from(distance);
                return Ok(Effect::Branch(test, target(instruction.jt), target(instruction.jf)));
            }
            Opcode::ReturnConstant => return self.answer(at, k),
            Opcode::ReturnA => {
                let number = graph.as_constant(state[A]).ok_or(LiftError::Answer { at })?;
                return self.answer(at, number);
            }
            Opcode::CopyToX => state[X] = state[A],
            Opcode::CopyToA => state[A] = state[X],
        }
        Ok(Effect::None)
    }

    fn answer(&mut self, at: usize, length: u32) -> Result<Effect, LiftError> {
        if length == 0 {
            return Ok(Effect::Return(Graph::REFUSE));
        }
        if *self.accepted.get_or_insert(length) != length {
            return Err(LiftError::Answer { at });
        }
        Ok(Effect::Return(Graph::ACCEPT))
    }

    /// Returns the effect of computing `value`, which moves to a slot if it is large.
    fn kept_small(&mut self, value: &mut ValueId) -> Effect {
        let computed = *value;
        if self.size(computed) > LARGEST_VALUE {
            let slot = self.graph.slot();
            *value = self.graph.value(Value::Slot(slot));
            return Effect::Assign(slot, computed);
        }
        if self.graph.may_refuse(computed) { Effect::Read(computed) } else { Effect::None }
    }

    fn size(&mut self, id: ValueId) -> u32 {
        for index in self.sizes.len()..=id.0 as usize {
            let operands = self.graph.values()[index].operands();
            self.sizes.push(1 + operands.map(|operand| self.sizes[operand.0 as usize]).sum::<u32>());
        }
        self.sizes[id.0 as usize]
    }

    /// Builds the nodes, from the last instruction to the first.
    fn build(mut self) -> Graph {
        self.graph.snap_len = self.accepted.unwrap_or(0);
        let mut begins = vec![Graph::REFUSE; self.program.len()];
        for at in (0..self.program.len()).rev() {
            begins[at] = match self.effects[at] {
                Effect::Return(node) => node,
                Effect::Jump(next) => self.arrive(at, next, &begins),
                Effect::None => self.arrive(at, at + 1, &begins),
                Effect::Read(value) => {
                    let next = self.arrive(at, at + 1, &begins);
                    self.graph.push(Node::Read { value, next })
                }
                Effect::Assign(slot, value) => {
                    let next = self.arrive(at, at + 1, &begins);
                    self.graph.push(Node::Assign { slot, value, next })
                }
                Effect::Branch(test, then, other) => {
                    let (then, other) = (self.arrive(at, then, &begins), self.arrive(at, other, &begins));
                    self.graph.branch(test, then, other, TermId::NONE)
                }
            };
        }
        self.graph.set_root(begins[0]);
        self.graph
    }

    /// Returns the node where the edge from one instruction to another begins.
    fn arrive(&mut self, from: usize, to: usize, begins: &[NodeId]) -> NodeId {
        let moves = self.moves[from].iter().filter(|(next, ..)| *next == to);
        moves.fold(begins[to], |next, &(_, slot, value)| self.graph.push(Node::Assign { slot, value, next }))
    }
}

fn operand(graph: &mut Graph, from: Operand, k: u32, state: &RegisterContents) -> ValueId {
    match from {
        Operand::Constant => graph.constant(k),
        Operand::X => state[X],
    }
}
