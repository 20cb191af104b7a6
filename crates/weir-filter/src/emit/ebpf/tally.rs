//! Several filters in one function, which counts the packets that each of them accepts.
//!
//! ```text
//! r1: context, r2: counters,        saves them
//! r3: length,  r4: stripped tag     filter 0: goes on if it refuses; if it accepts, adds to its counter
//!                                   filter 1: ...
//! ```
//!
//! The filters run one after another and share no tests: each is optimized on its own. They are not functions, since a call and
//! its return cost as much as a filter where returns are protected against speculation.
//!
//! Each finds the packet anew, and all of the stack that any of them uses has unknown content from the start. So the verifier
//! has nothing to remember between two of them of how the first one has decided, and the work adds up instead of multiplying.

use super::assembler::Assembler;
use super::code::{CONTEXT, Code, Outcome};
use super::instruction::{Alu, FP, Instruction, R0, R1, R2, R3, R4, Register, Size};
use super::stack::{self, LENGTH};
use super::{Context, Error, Program, Relocation, Symbol, planned, short_enough};
use crate::graph::Graph;
use crate::set::{Set, SetId};

/// The address of the counters.
const COUNTERS: Register = Register(9);

/// Bytes of a counter: packets, then bytes, 64 bits each.
pub const COUNTER_BYTES: u32 = 16;

/// The counter of a filter: its offset.
#[derive(Clone, Copy, Debug)]
pub(super) struct Counter(i16);

impl Counter {
    /// Counts the packet.
    pub(super) fn add(self, out: &mut Assembler) {
        out.push(Instruction::load(Size::Double, R0, COUNTERS, self.0));
        out.push(Instruction::alu64_number(Alu::Add, R0, 1));
        out.push(Instruction::store(Size::Double, COUNTERS, self.0, R0));
        out.push(Instruction::load(Size::Word, R1, FP, LENGTH));
        out.push(Instruction::load(Size::Double, R0, COUNTERS, self.0 + 8));
        out.push(Instruction::alu64(Alu::Add, R0, R1));
        out.push(Instruction::store(Size::Double, COUNTERS, self.0 + 8, R0));
    }
}

/// Generates a function that runs all `filters`, each with its sets, and adds 1 and the packet's length to the counter
/// of each that accepts: filter *n* has counter *n* + 1. The function has four arguments: the context; the address of the
/// counters; the length, less than 2^32; and the stripped tag for [`Context::XdpTagged`], as
/// `presence << 32 | EtherType << 16 | tag`.
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
    let plans = filters.iter().map(|(graph, _)| planned(graph)).collect::<Result<Vec<_>, Error>>()?;
    let mut out = Assembler::default();
    out.push(Instruction::alu64(Alu::Move, CONTEXT, R1));
    out.push(Instruction::alu64(Alu::Move, COUNTERS, R2));
    out.push(Instruction::store(Size::Word, FP, LENGTH, R3));
    if matches!(context, Context::XdpTagged { .. }) {
        save_tag(&mut out);
    }
    let cells = plans.iter().map(|(_, (_, count))| *count).max().unwrap_or(0);
    let kept = plans.iter().map(|(plan, _)| plan.most_kept).max().unwrap_or(0);
    let keys = filters.iter().any(|(_, sets)| !sets.is_empty());
    for word in stack::words(cells, kept, keys) {
        out.push(Instruction::store(Size::Word, FP, word, R3));
    }
    let (mut sets_before, mut size) = (0, 0);
    for (number, ((graph, sets), (plan, (cells, _)))) in filters.iter().zip(plans).enumerate() {
        let counter = i16::try_from(COUNTER_BYTES as usize * (number + 1)).expect("there are few filters");
        let outcome = Outcome::Count(Counter(counter));
        let relocated = out.relocations.len();
        out = Code::new(graph, sets, context, outcome, &plan, cells, out).append();
        for Relocation { symbol, .. } in &mut out.relocations[relocated..] {
            if let Symbol::Set(set) = symbol {
                *set = SetId(sets_before + set.0);
            }
        }
        sets_before += u32::try_from(sets.len()).expect("a filter has few sets");
        size += plan.size;
    }
    out.push(Instruction::alu_number(Alu::Move, R0, 0));
    out.push(Instruction::exit());
    short_enough(out.program(context), size)
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
            let program = tally(&filters, context).expect("it fits");
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
