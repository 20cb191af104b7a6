//! Assembler with forward jumps.
//!
//! A jump's offset has 16 bits. If its target is not known in time, the assembler lays an *island*: one jump per
//! pending target, which normal control flow jumps over. All jumps go forward.

use foldhash::HashMap;

use super::instruction::Instruction;
use super::{Context, Program, Relocation, Symbol};

/// A jump target.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(super) enum Label {
    /// A node on the fast path, with direct access to the packet. Nodes 0 and 1 end both paths.
    Fast(u32),
    /// A node on the slow path, which uses helpers.
    Slow(u32),
    /// A place within a node.
    Local(u32),
}

/// Once a jump is older than [`AGE_MOST`], all jumps older than this are led to an island. Both are well below 2^15,
/// since an island itself takes room.
const AGE_ISLAND: usize = 8_000;
const AGE_MOST: usize = 16_000;

/// A program under construction.
#[derive(Debug, Default)]
pub(super) struct Assembler {
    pub(super) code: Vec<Instruction>,
    pub(super) relocations: Vec<Relocation>,
    /// Pending jumps to each label.
    awaited: HashMap<Label, Vec<usize>>,
    /// Lower bound of the index of every pending jump.
    oldest: usize,
    locals: u32,
    /// Whether some jump was too long in spite of all islands, so that the code is unusable.
    out_of_reach: bool,
}

impl Assembler {
    /// Allocates a local label.
    pub(super) fn local(&mut self) -> Label {
        self.locals += 1;
        Label::Local(self.locals)
    }

    /// Adds an instruction that does not jump.
    pub(super) fn push(&mut self, instruction: Instruction) {
        self.keep_in_reach();
        self.code.push(instruction);
    }

    /// Adds a load of a map's address.
    pub(super) fn push_map(&mut self, [low, high]: [Instruction; 2], symbol: Symbol) {
        self.push(low);
        self.relocations.push(Relocation { at: self.code.len() - 1, symbol });
        self.code.push(high);
    }

    /// Adds a conditional or unconditional jump to a label not yet bound.
    pub(super) fn jump(&mut self, instruction: Instruction, to: Label) {
        self.keep_in_reach();
        self.await_at(self.code.len(), to);
        self.code.push(instruction);
    }

    /// Binds a label to the next instruction.
    pub(super) fn bind(&mut self, label: Label) {
        for at in self.awaited.remove(&label).unwrap_or_default() {
            self.aim(at, self.code.len());
        }
    }

    /// Returns whether there are pending jumps to a label.
    pub(super) fn is_awaited(&self, label: Label) -> bool {
        self.awaited.contains_key(&label)
    }

    /// Returns the program, unless a jump is too long.
    pub(super) fn program(self, context: Context) -> Option<Program> {
        let Self { code: instructions, relocations, out_of_reach, .. } = self;
        (!out_of_reach).then_some(Program { context, instructions, relocations })
    }

    fn await_at(&mut self, at: usize, to: Label) {
        if self.awaited.is_empty() {
            self.oldest = at;
        }
        self.awaited.entry(to).or_default().push(at);
    }

    fn aim(&mut self, at: usize, to: usize) {
        match i16::try_from(to - at - 1) {
            Ok(offset) => self.code[at].offset = offset,
            Err(_) => self.out_of_reach = true,
        }
    }

    fn keep_in_reach(&mut self) {
        if self.awaited.is_empty() || self.code.len() - self.oldest < AGE_MOST {
            return;
        }
        let here = self.code.len();
        let old = |at: &usize| here - at >= AGE_ISLAND;
        // Each list begins with its oldest jump.
        let mut late: Vec<Label> = self
            .awaited
            .iter()
            .filter(|(_, jumps)| jumps.first().is_some_and(old))
            .map(|(&label, _)| label)
            .collect();
        late.sort_unstable();
        if !late.is_empty() {
            let over = self.code.len();
            self.code.push(Instruction::always());
            for label in late {
                let jumps = self.awaited.remove(&label).unwrap_or_default();
                let island = self.code.len();
                jumps.into_iter().for_each(|at| self.aim(at, island));
                self.awaited.insert(label, vec![island]);
                self.code.push(Instruction::always());
            }
            self.aim(over, self.code.len());
        }
        let oldest = self.awaited.values().filter_map(|jumps| jumps.first()).min();
        self.oldest = oldest.copied().unwrap_or(self.code.len());
    }
}
