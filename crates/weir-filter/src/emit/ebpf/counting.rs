//! Several filters in a function, which counts the packets that each of them accepts.

use super::code::Outcome;
use super::counter::Counter;
use super::crowd::{Member, crowd};
use super::{Context, Error, Program};
use crate::graph::Graph;
use crate::set::Set;

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
    let member = |(number, filter)| Member::new(filter, Outcome::Count(Counter::of(number)), Vec::new());
    crowd(filters.iter().copied().enumerate().map(member).collect(), 0, context)
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;
    use crate::emit::ebpf::counter::MEMORY;
    use crate::emit::ebpf::crowd::TOGETHER;
    use crate::emit::ebpf::instruction::{Instruction, R0, Size};
    use crate::emit::ebpf::{Ending, Symbol, analysed, emit};
    use crate::names::NoNames;
    use crate::set::SetId;
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
                code.destination == MEMORY
                    && **code == Instruction::store(Size::Double, MEMORY, code.offset, R0)
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
        assert_eq!(
            count(&|code| *code == Instruction::exit()),
            7,
            "one for all, one behind each call, one of each"
        );
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
