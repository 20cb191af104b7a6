//! Several filters in one function, which counts the packets that each of them accepts.
//!
//! ```text
//! r1: context, r2: counters,        tally      calls each filter; if it accepts, adds to its counter
//! r3: length,  r4: stripped tag     filter 0   returns whether it accepts
//!                                   filter 1   ...
//! ```
//!
//! The filters run one after another and share no tests: each is verified and optimized on its own. The verifier forgets
//! between two of them how the first one has decided, so the work adds up instead of multiplying.

use super::instruction::{Alu, Instruction, Jump, R0, R1, R2, R3, R4, Register, Size};
use super::{Context, Ending, Error, MOST_INSTRUCTIONS, Program, Relocation, Symbol, emit};
use crate::graph::Graph;
use crate::set::{Set, SetId};

/// The function's arguments, where calls preserve them.
const CONTEXT: Register = Register(6);
const COUNTERS: Register = Register(7);
const LENGTH: Register = Register(8);
const TAG: Register = Register(9);

/// Bytes of a counter: packets, then bytes, 64 bits each.
pub const COUNTER_BYTES: u32 = 16;

/// Generates a function that runs all `filters`, each with its sets, and adds 1 and the packet's length to the counter
/// of each that accepts: filter *n* has counter *n* + 1. The function has four arguments: the context; the address of the
/// counters; the length; and the stripped tag for [`Context::XdpTagged`], as `presence << 32 | EtherType << 16 | tag`.
///
/// Sets are numbered as if the filters' sets were concatenated.
///
/// # Errors
///
/// Fails if a filter or all together would be too long for the kernel.
///
/// # Panics
///
/// If there are more than 1000 filters.
pub fn tally(filters: &[(&Graph, &[Set])], context: Context) -> Result<Program, Error> {
    let answer = Ending::Return { accept: 1, refuse: 0 };
    let functions = filters.iter().map(|(graph, sets)| emit(graph, sets, context, answer));
    let functions = functions.collect::<Result<Vec<Program>, Error>>()?;
    let calls = filters.len() * call(context, 0, 0).len();
    let mut instructions = vec![
        Instruction::alu64(Alu::Move, CONTEXT, R1),
        Instruction::alu64(Alu::Move, COUNTERS, R2),
        Instruction::alu64(Alu::Move, LENGTH, R3),
        Instruction::alu64(Alu::Move, TAG, R4),
    ];
    let end = [Instruction::alu_number(Alu::Move, R0, 0), Instruction::exit()];
    let mut start = instructions.len() + calls + end.len();
    for (number, function) in functions.iter().enumerate() {
        let distance = start - instructions.len();
        instructions.extend(call(context, number, distance));
        start += function.instructions.len();
    }
    if start as u64 > MOST_INSTRUCTIONS {
        return Err(Error::TooLong(start as u64));
    }
    instructions.extend(end);
    let (mut relocations, mut sets_before) = (Vec::new(), 0);
    for (function, (_, sets)) in functions.into_iter().zip(filters) {
        let before = instructions.len();
        relocations.extend(function.relocations.into_iter().map(|relocation| Relocation {
            at: before + relocation.at,
            symbol: match relocation.symbol {
                Symbol::Set(set) => Symbol::Set(SetId(sets_before + set.0)),
                other => other,
            },
        }));
        sets_before += u32::try_from(sets.len()).expect("a filter has few sets");
        instructions.extend(function.instructions);
    }
    Ok(Program { context, instructions, relocations })
}

/// Calls filter `number`, `distance` instructions after the first of these, and counts the packet if it accepts.
fn call(context: Context, number: usize, distance: usize) -> Vec<Instruction> {
    let mut code = vec![Instruction::alu64(Alu::Move, R1, CONTEXT)];
    if matches!(context, Context::XdpTagged { .. }) {
        code.extend([
            Instruction::alu64(Alu::Move, R2, TAG),
            Instruction::alu64_number(Alu::ShiftRight, R2, 32),
            Instruction::alu(Alu::Move, R3, TAG),
            Instruction::alu_number(Alu::ShiftRight, R3, 16),
            Instruction::alu(Alu::Move, R4, TAG),
            Instruction::alu_number(Alu::And, R4, 0xffff),
        ]);
    }
    // Relative to the instruction after the call.
    let distance = i32::try_from(distance.saturating_sub(code.len() + 1)).expect("filters are shorter");
    code.push(Instruction::call_function(distance));
    let packets = i16::try_from(COUNTER_BYTES as usize * (number + 1)).expect("there are few filters");
    let add = [
        Instruction::load(Size::Double, R0, COUNTERS, packets),
        Instruction::alu64_number(Alu::Add, R0, 1),
        Instruction::store(Size::Double, COUNTERS, packets, R0),
        Instruction::load(Size::Double, R0, COUNTERS, packets + 8),
        Instruction::alu64(Alu::Add, R0, LENGTH),
        Instruction::store(Size::Double, COUNTERS, packets + 8, R0),
    ];
    let offset = i16::try_from(add.len()).expect("they are six");
    code.push(Instruction { offset, ..Instruction::jump_number(Jump::Equal, R0, 0) });
    code.extend(add);
    code
}

#[cfg(test)]
mod tests {
    use super::*;
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

    /// The function of these filters, and the code of each alone.
    fn tallied(texts: &[&str], context: Context) -> (Program, Vec<Vec<Instruction>>) {
        let filters: Vec<_> = texts.iter().map(|text| filter(text)).collect();
        let filters: Vec<_> = filters.iter().map(|one| (&one.graph, &one.ast.sets[..])).collect();
        let answer = Ending::Return { accept: 1, refuse: 0 };
        let alone = filters.iter().map(|(graph, sets)| emit(graph, sets, context, answer).expect("it fits"));
        let alone = alone.map(|program| program.instructions).collect();
        (tally(&filters, context).expect("it fits"), alone)
    }

    #[test]
    fn each_call_reaches_its_filter() {
        for context in
            [Context::Tc { outgoing: false }, Context::XdpTagged { fragments: false, interface: None }]
        {
            let (program, alone) = tallied(&["udp port 53", "", "tcp", "vlan 5"], context);
            let code = &program.instructions;
            let callee =
                |at: usize| (at + 1).checked_add_signed(code[at].immediate as isize).expect("inside");
            let calls = (0..code.len()).filter(|&at| code[at].is_local_call());
            let starts: Vec<usize> = calls.map(callee).collect();
            assert_eq!(starts.len(), alone.len(), "{program}");
            let mut end = starts[0];
            for (start, alone) in starts.into_iter().zip(alone) {
                assert_eq!(start, end, "{program}");
                end += alone.len();
                assert_eq!(code[start..end], alone, "{program}");
            }
            assert_eq!(end, code.len());
        }
    }

    #[test]
    fn sets_are_numbered_across_filters() {
        let texts = ["src host in {10.1.2.3, 10.1.2.4}", "tcp", "udp dst port in {53, 5353, 5355}"];
        let filters = texts.map(filter);
        let filters: Vec<_> = filters.iter().map(|one| (&one.graph, &one.ast.sets[..])).collect();
        let context = Context::Tc { outgoing: false };
        let program = tally(&filters, context).expect("it fits");
        let (mut expected, mut before) = (Vec::new(), 0);
        for (graph, sets) in &filters {
            let alone = emit(graph, sets, context, Ending::Return { accept: 1, refuse: 0 }).expect("it fits");
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
