//! Several filters in a function, which counts the packets that each of them accepts.
//!
//! ```text
//! r1: context, r2: counters,        saves them
//! r3: length,  r4: stripped tag     filter 0: goes on if it refuses; if it accepts, adds to its counter
//!                                   filter 1: ...
//! ```
//!
//! The filters run one after another and share no tests: each is optimized on its own. Small ones are in one function, since a
//! call and its return cost as much as a filter where returns are protected against speculation.
//!
//! Each finds the packet anew, and all of the stack that any of them uses has unknown content from the start. So the verifier
//! has little to remember between two of them of how the first one has decided. It does not forget everything: among
//! many large filters its work multiplies. So no function has more than [`TOGETHER`], and one calls all functions.

use super::analysis::Analysis;
use super::assembler::Assembler;
use super::code::{CONTEXT, Code, Outcome};
use super::counter::{COUNTERS, Counter};
use super::instruction::{Alu, FP, Instruction, R0, R1, R2, R3, R4, Register, Size};
use super::stack::{self, LENGTH};
use super::{Context, Error, Program, Relocation, Symbol, analysed, short_enough};
use crate::graph::Graph;
use crate::set::{Set, SetId};

/// Instructions of the filters of one function, but for a filter that alone has more.
const TOGETHER: u64 = 2000;

/// Generates a function that runs all `filters`, each with its sets, and adds 1 and the packet's length to the counter
/// of each that accepts: filter *n* has counter *n* + 1. The function has four arguments: the context; the address of the
/// counters; the length, less than 2^32; and the stripped tag for [`Context::XdpTagged`], as
/// `presence << 32 | EtherType << 16 | tag`.
///
/// Sets are numbered as if the filters' sets were concatenated.
///
/// # Errors
///
/// Fails if a filter or all together would be too long for the kernel, or if a filter has more verdicts than acceptance
/// and rejection.
///
/// # Panics
///
/// If there are more than 1000 filters.
pub fn counting(filters: &[(&Graph, &[Set])], context: Context) -> Result<Program, Error> {
    let (mut functions, mut group, mut size, mut sets_before) = (Vec::new(), Vec::new(), 0, 0);
    for (number, (graph, sets)) in filters.iter().enumerate() {
        let (analysis, (cells, count)) = analysed(graph, 2)?;
        if size + analysis.size > TOGETHER && !group.is_empty() {
            functions.push(function(&std::mem::take(&mut group), context)?);
            size = 0;
        }
        size += analysis.size;
        let counter = Counter::of(number);
        group.push(Member { graph, sets, analysis, cells, count, counter, sets_before });
        sets_before += u32::try_from(sets.len()).expect("a filter has few sets");
    }
    functions.push(function(&group, context)?);
    match functions.len() {
        1 => Ok(functions.remove(0)),
        _ => all(functions, context),
    }
}

/// A filter of a function.
struct Member<'a> {
    graph: &'a Graph,
    sets: &'a [Set],
    analysis: Analysis,
    /// The stack cell of each slot.
    cells: Vec<usize>,
    /// Number of cells.
    count: usize,
    counter: Counter,
    /// Sets of filters before it.
    sets_before: u32,
}

/// Generates the function of some filters.
fn function(members: &[Member<'_>], context: Context) -> Result<Program, Error> {
    let mut out = Assembler::default();
    out.push(Instruction::alu64(Alu::Move, CONTEXT, R1));
    out.push(Instruction::alu64(Alu::Move, COUNTERS, R2));
    out.push(Instruction::store(Size::Word, FP, LENGTH, R3));
    if matches!(context, Context::XdpTagged { .. }) {
        save_tag(&mut out);
    }
    let cells = members.iter().map(|member| member.count).max().unwrap_or(0);
    let kept = members.iter().map(|member| member.analysis.most_kept).max().unwrap_or(0);
    let keys = members.iter().any(|member| !member.sets.is_empty());
    for word in stack::words(cells, kept, keys) {
        out.push(Instruction::store(Size::Word, FP, word, R3));
    }
    for Member { graph, sets, analysis, cells, counter, sets_before, .. } in members {
        let outcome = Outcome::Count(*counter);
        let relocated = out.relocations.len();
        out = Code::new(graph, sets, context, outcome, analysis, cells.clone(), out).append();
        for Relocation { symbol, .. } in &mut out.relocations[relocated..] {
            if let Symbol::Set(set) = symbol {
                *set = SetId(sets_before + set.0);
            }
        }
    }
    out.push(Instruction::alu_number(Alu::Move, R0, 0));
    out.push(Instruction::exit());
    short_enough(out.program(context), members.iter().map(|member| member.analysis.size).sum())
}

/// Generates a function that calls all of these with its own arguments.
fn all(functions: Vec<Program>, context: Context) -> Result<Program, Error> {
    const SAVED: [Register; 4] = [Register(6), Register(7), Register(8), Register(9)];
    const ARGUMENTS: [Register; 4] = [R1, R2, R3, R4];
    let moves = |to: [Register; 4], from: [Register; 4]| {
        to.into_iter().zip(from).map(|(to, from)| Instruction::alu64(Alu::Move, to, from))
    };
    let calling = ARGUMENTS.len() + 1;
    let mut instructions: Vec<Instruction> = moves(SAVED, ARGUMENTS).collect();
    let mut start = instructions.len() + functions.len() * calling + 2;
    for function in &functions {
        instructions.extend(moves(ARGUMENTS, SAVED));
        // Relative to the instruction after the call.
        let distance =
            i32::try_from(start - (instructions.len() + 1)).map_err(|_| Error::TooLong(start as u64))?;
        instructions.push(Instruction::call_function(distance));
        start += function.instructions.len();
    }
    instructions.push(Instruction::alu_number(Alu::Move, R0, 0));
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

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;
    use crate::emit::ebpf::{Ending, emit};
    use crate::names::NoNames;
    use crate::{Beside, Dialect, Filter, Options};

    fn filter(text: &str) -> Filter {
        let options = Options {
            dialect: Dialect::Weir,
            link_type: 1,
            snap_len: 65_535,
            metadata: Beside::All,
            swapped: false,
            others: &[],
            netmask: None,
            names: &NoNames,
        };
        crate::compile(text, &options).expect("it compiles")
    }

    #[test]
    fn each_filter_has_its_counter_and_none_is_called() {
        let texts = ["udp port 53", "", "tcp", "vlan 5"];
        let filters = texts.map(filter);
        let filters: Vec<_> = filters.iter().map(|one| (&one.graph, &one.ast.sets[..])).collect();
        for context in
            [Context::Tc { outgoing: false }, Context::XdpTagged { fragments: false, interface: None }]
        {
            let program = counting(&filters, context).expect("it fits");
            let is_store = |code: &&Instruction| {
                code.destination == COUNTERS
                    && **code == Instruction::store(Size::Double, COUNTERS, code.offset, R0)
            };
            let stores: Vec<i16> =
                program.instructions.iter().filter(is_store).map(|code| code.offset).collect();
            assert_eq!(stores, [16, 24, 32, 40, 48, 56, 64, 72], "{program}");
            assert!(!program.instructions.iter().any(|code| code.is_local_call()), "{program}");
            assert_eq!(program.instructions.iter().filter(|code| **code == Instruction::exit()).count(), 1);
        }
    }

    #[test]
    fn many_large_filters_are_several_functions() {
        let large = filter("host in {10.1.2.3, 10.1.2.4} and (tcp or udp) and not port 53");
        let small = filter("tcp");
        let size = analysed(&large.graph, 2).expect("it fits").0.size;
        let fit = usize::try_from(TOGETHER / size).expect("small");
        let large = (&large.graph, &large.ast.sets[..]);
        let filters = [vec![large; 2 * fit + 1], vec![(&small.graph, &small.ast.sets[..])]].concat();
        let context = Context::Tc { outgoing: false };
        let program = counting(&filters, context).expect("it fits");
        let count = |what: &dyn Fn(&Instruction) -> bool| {
            program.instructions.iter().filter(|code| what(code)).count()
        };
        assert_eq!(count(&|code| code.is_local_call()), 3, "{program}");
        assert_eq!(count(&|code| *code == Instruction::exit()), 4, "one for all, and one for each");
        let numbered = program.relocations.iter().filter_map(|one| match one.symbol {
            Symbol::Set(set) => Some(set.0),
            _ => None,
        });
        let sets = filters.iter().map(|(_, sets)| sets.len()).sum::<usize>();
        let numbers: BTreeSet<u32> = numbered.collect();
        assert!(numbers.into_iter().eq(0..u32::try_from(sets).expect("few")), "{program}");
    }

    #[test]
    fn sets_are_numbered_across_filters() {
        let texts = ["src host in {10.1.2.3, 10.1.2.4}", "tcp", "udp dst port in {53, 5353, 5355}"];
        let filters = texts.map(filter);
        let filters: Vec<_> = filters.iter().map(|one| (&one.graph, &one.ast.sets[..])).collect();
        let context = Context::Tc { outgoing: false };
        let program = counting(&filters, context).expect("it fits");
        let (mut expected, mut before) = (Vec::new(), 0);
        for (graph, sets) in &filters {
            let alone = emit(graph, sets, context, Ending::Return(&[0, 1])).expect("it fits");
            expected.extend(alone.symbols().into_iter().map(|symbol| match symbol {
                Symbol::Set(set) => Symbol::Set(SetId(before + set.0)),
                other => panic!("{other}"),
            }));
            before += u32::try_from(sets.len()).expect("few");
        }
        assert!(expected.len() >= 2, "{expected:?}");
        assert_eq!(program.symbols(), expected);
        for relocation in &program.relocations {
            assert!(program.instructions[relocation.at].is_wide(), "{program}");
        }
    }
}
