//! Several filters in a function, one after another.
//!
//! ```text
//! r1: context, r2: memory,          saves them
//! r3: length,  r4: stripped tag     filter 0: what happens then is its outcome's
//!                                   filter 1: ...
//! ```
//!
//! The filters share no tests: each is optimized on its own. Small ones are in one function, since a call and its return cost
//! as much as a filter where returns are protected against speculation.
//!
//! Each finds the packet anew, and all of the stack that any of them uses has unknown content from the start. So the verifier
//! has little to remember between two of them of how the first one has decided. It does not forget everything: among
//! many large filters its work multiplies. So no function has more than [`TOGETHER`], and one calls all functions.

use super::analysis::Analysis;
use super::assembler::Assembler;
use super::code::{CONTEXT, Code, Outcome};
use super::counter::MEMORY;
use super::instruction::{Alu, FP, Instruction, Jump, R0, R1, R2, R3, R4, Register, Size};
use super::stack::{self, LENGTH};
use super::{Context, Error, Program, Relocation, Symbol, analysed, short_enough};
use crate::graph::Graph;
use crate::set::{Set, SetId};

/// Instructions of the filters of one function, but for a filter that alone has more.
pub(super) const TOGETHER: u64 = 2000;

/// A filter of a crowd.
pub(super) struct Member<'a> {
    graph: &'a Graph,
    sets: &'a [Set],
    outcome: Outcome<'static>,
    /// Where in the memory a 32-bit word has one of these bits if the filter is to run; it always runs if there are none.
    guards: Vec<(i16, u32)>,
}

impl<'a> Member<'a> {
    pub(super) fn new(
        (graph, sets): (&'a Graph, &'a [Set]),
        outcome: Outcome<'static>,
        guards: Vec<(i16, u32)>,
    ) -> Self {
        Self { graph, sets, outcome, guards }
    }
}

/// A member, and what its code needs.
struct Analysed<'a> {
    member: Member<'a>,
    analysis: Analysis,
    /// The stack cell of each slot.
    cells: Vec<usize>,
    /// Number of cells.
    count: usize,
    /// Sets of filters before it.
    sets_before: u32,
}

/// Generates a function that runs all members. Its arguments are the context, the address of a memory, the packet's length,
/// less than 2^32, and the stripped tag for [`Context::XdpTagged`], as `presence << 32 | EtherType << 16 | tag`. It returns
/// `none` unless a member's outcome is an answer.
pub(super) fn crowd(members: Vec<Member<'_>>, none: u32, context: Context) -> Result<Program, Error> {
    let (mut functions, mut group, mut size, mut sets_before) = (Vec::new(), Vec::new(), 0, 0);
    for member in members {
        let (analysis, (mut cells, count)) = analysed(member.graph, 2)?;
        if count <= stack::FEWER_CELLS {
            cells.iter_mut().for_each(|cell| *cell = stack::among_fewer(*cell));
        }
        if size + analysis.size > TOGETHER && !group.is_empty() {
            functions.push(function(&std::mem::take(&mut group), none, context)?);
            size = 0;
        }
        size += analysis.size;
        let sets = u32::try_from(member.sets.len()).expect("a filter has few sets");
        group.push(Analysed { member, analysis, cells, count, sets_before });
        sets_before += sets;
    }
    functions.push(function(&group, none, context)?);
    match functions.len() {
        1 => Ok(functions.remove(0)),
        _ => all(functions, none, context),
    }
}

/// Generates the function of some filters.
fn function(members: &[Analysed<'_>], none: u32, context: Context) -> Result<Program, Error> {
    let mut out = Assembler::default();
    out.push(Instruction::alu64(Alu::Move, CONTEXT, R1));
    out.push(Instruction::alu64(Alu::Move, MEMORY, R2));
    out.push(Instruction::store(Size::Word, FP, LENGTH, R3));
    if matches!(context, Context::XdpTagged { .. }) {
        save_tag(&mut out);
    }
    let cells = members.iter().map(|one| one.count).max().unwrap_or(0);
    let kept = members.iter().map(|one| one.analysis.most_kept).max().unwrap_or(0);
    let keys = members.iter().any(|one| !one.member.sets.is_empty());
    for word in stack::words(cells, kept, keys) {
        out.push(Instruction::store(Size::Word, FP, word, R3));
    }
    for Analysed { member, analysis, cells, sets_before, .. } in members {
        let Member { graph, sets, outcome, guards } = member;
        let (run, over) = (out.local(), out.local());
        for &(place, bits) in guards {
            out.push(Instruction::load(Size::Word, R0, MEMORY, place));
            out.jump(Instruction::jump_number(Jump::AnyBit, R0, bits), run);
        }
        if !guards.is_empty() {
            out.jump(Instruction::always(), over);
        }
        out.bind(run);
        let relocated = out.relocations.len();
        out = Code::new(graph, sets, context, *outcome, analysis, cells.clone(), out).append();
        for Relocation { symbol, .. } in &mut out.relocations[relocated..] {
            if let Symbol::Set(set) = symbol {
                *set = SetId(sets_before + set.0);
            }
        }
        out.bind(over);
    }
    out.push(Instruction::alu_number(Alu::Move, R0, none));
    out.push(Instruction::exit());
    short_enough(out.program(context), members.iter().map(|one| one.analysis.size).sum())
}

/// Generates a function that calls these with its own arguments, until one answers.
fn all(functions: Vec<Program>, none: u32, context: Context) -> Result<Program, Error> {
    const SAVED: [Register; 4] = [Register(6), Register(7), Register(8), Register(9)];
    const ARGUMENTS: [Register; 4] = [R1, R2, R3, R4];
    let moves = |to: [Register; 4], from: [Register; 4]| {
        to.into_iter().zip(from).map(|(to, from)| Instruction::alu64(Alu::Move, to, from))
    };
    // Arguments, call, and a return if there is an answer.
    let calling = ARGUMENTS.len() + 3;
    let mut instructions: Vec<Instruction> = moves(SAVED, ARGUMENTS).collect();
    let mut start = instructions.len() + functions.len() * calling + 1;
    for function in &functions {
        instructions.extend(moves(ARGUMENTS, SAVED));
        // Relative to the instruction after the call.
        let distance =
            i32::try_from(start - (instructions.len() + 1)).map_err(|_| Error::TooLong(start as u64))?;
        instructions.push(Instruction::call_function(distance));
        instructions.push(Instruction { offset: 1, ..Instruction::jump_number(Jump::Equal, R0, none) });
        instructions.push(Instruction::exit());
        start += function.instructions.len();
    }
    instructions.push(Instruction::exit());
    let mut relocations = Vec::new();
    for function in functions {
        let before = instructions.len();
        let moved = function.relocations.into_iter().map(|one| Relocation { at: before + one.at, ..one });
        relocations.extend(moved);
        instructions.extend(function.instructions);
    }
    short_enough(Some(Program { context, instructions, relocations }), start as u64)
}

/// Saves the parts of the stripped tag where filters look for them.
fn save_tag(out: &mut Assembler) {
    out.push(Instruction::alu64(Alu::Move, R0, R4));
    out.push(Instruction::alu64_number(Alu::ShiftRight, R0, 32));
    out.push(Instruction::store(Size::Word, FP, stack::tag(0), R0));
    out.push(Instruction::alu(Alu::Move, R0, R4));
    out.push(Instruction::alu_number(Alu::ShiftRight, R0, 16));
    out.push(Instruction::store(Size::Word, FP, stack::tag(1), R0));
    out.push(Instruction::alu_number(Alu::And, R4, 0xffff));
    out.push(Instruction::store(Size::Word, FP, stack::tag(2), R4));
}
