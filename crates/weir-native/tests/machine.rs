//! Memory, threads, size: what holds beside the answers.

use std::fs;
use std::thread;

use weir_filter::graph::{Graph, NodeId, Operation, TermId, Verdict, Width};
use weir_filter::interpret::{Interpreter, Packet};
use weir_filter::set::{Contents, Member, Set, SetId};
use weir_judge::graphs::OPERATIONS;
use weir_native::Native;

fn packet(data: &[u8]) -> Packet<'_> {
    Packet { data, length: u32::try_from(data.len()).unwrap(), ..Packet::default() }
}

/// `[12:2] = 0x800`.
fn ethertype() -> Graph {
    let mut graph = Graph::new(100);
    let load = graph.load(None, 12, Width::Half);
    let root = graph.equals(load, 0x800, (Graph::ACCEPT, Graph::REFUSE), TermId(0));
    graph.set_root(root);
    graph
}

/// Flags of the mappings of this process.
fn mappings() -> Vec<String> {
    let maps = fs::read_to_string("/proc/self/maps").unwrap();
    maps.lines().map(|line| line.split_whitespace().nth(1).unwrap().to_owned()).collect()
}

#[test]
fn memory_is_never_writable_and_executable() {
    let executable = |maps: &[String]| maps.iter().filter(|flags| flags.contains('x')).count();
    let before = executable(&mappings());
    let filters: Vec<Native> = (0..64).map(|_| Native::new(&ethertype(), &[]).unwrap()).collect();
    let with = mappings();
    assert!(with.iter().all(|flags| !(flags.contains('w') && flags.contains('x'))), "{with:?}");
    assert!(executable(&with) > before, "the code is somewhere");
    let mut ip = [0; 60];
    ip[12] = 8;
    assert!(
        filters.iter().all(|filter| filter.run(&packet(&ip)) == 100 && filter.run(&packet(&ip[..13])) == 0)
    );
    drop(filters);
    // Other tests of this process may have code, too, but not 64 pages.
    assert!(executable(&mappings()) < before + 32, "memory is given back");
}

#[test]
fn several_threads_run_one_filter() {
    let members = (0..5000).map(|number| Member { key: [number * 7919], bits: 32 }).collect();
    let sets = [Set { name: None, contents: Contents::Ipv4(members) }];
    let mut graph = Graph::new(1);
    let address = graph.load(None, 0, Width::Word);
    let root = graph.member(SetId(0), &[address], (Graph::ACCEPT, Graph::REFUSE), TermId(0));
    graph.set_root(root);
    let native = Native::new(&graph, &sets).unwrap();
    thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| {
                for number in 0..20_000_u32 {
                    let expected = u32::from(number % 7919 == 0);
                    assert_eq!(native.run(&packet(&number.to_be_bytes())), expected, "{number}");
                }
            });
        }
    });
}

/// Code for a constant is not that for any number.
#[test]
fn operations_with_constants_are_those_with_values() {
    const EDGES: [u32; 10] = [0, 1, 2, 7, 31, 32, 33, 64, 1 << 31, u32::MAX];
    let bytes = EDGES.map(u32::to_be_bytes).concat();
    for operation in OPERATIONS {
        for constant in EDGES {
            let mut graph = Graph::new(1);
            let mut root = Graph::ACCEPT;
            for (offset, value) in (0..).step_by(4).zip(EDGES) {
                let Some(result) = operation.apply(value, constant) else { continue };
                let load = graph.load(None, offset, Width::Word);
                let made = graph.with(operation, load, constant);
                root = graph.equals(made, result, (root, Graph::REFUSE), TermId(0));
            }
            graph.set_root(root);
            let native = Native::new(&graph, &[]).unwrap();
            assert_eq!(native.run(&packet(&bytes)), 1, "{operation:?} {constant:#x}\n{graph}");
        }
    }
}

/// Few members are compared, more are a chain, a bit each, or a table: at each number of them the answers are the same.
#[test]
fn sets_of_each_size_are_looked_up() {
    for count in 1..=20_u32 {
        for (step, width) in [(2, Width::Half), (3000, Width::Half), (70_001, Width::Word)] {
            let members: Vec<u32> = (1..=count).map(|number| number * step).collect();
            let sets = [Set { name: None, contents: Contents::Numbers(members.clone()) }];
            let mut set = Graph::new(1);
            let load = set.load(None, 0, width);
            let root = set.member(SetId(0), &[load], (Graph::ACCEPT, Graph::REFUSE), TermId(0));
            set.set_root(root);
            let mut chain = Graph::new(1);
            let load = chain.load(None, 0, width);
            let root = members.iter().fold(Graph::REFUSE, |next, &number| {
                chain.equals(load, number, (Graph::ACCEPT, next), TermId(0))
            });
            chain.set_root(root);
            let (set, chain) = (Native::new(&set, &sets).unwrap(), Native::new(&chain, &[]).unwrap());
            for key in members.iter().flat_map(|&member| [member - 1, member, member + 1]).chain([0, 0xffff])
            {
                let data = if width == Width::Half { (key << 16).to_be_bytes() } else { key.to_be_bytes() };
                let there = u32::from(members.contains(&key));
                assert_eq!(
                    (set.run(&packet(&data)), chain.run(&packet(&data))),
                    (there, there),
                    "{key} of {count}"
                );
            }
        }
    }
}

#[test]
fn expressions_may_be_deep_and_chains_long() {
    let mut graph = Graph::new(1);
    let byte = graph.load(None, 0, Width::Byte);
    let sum = (0..20_000).fold(byte, |sum, number| graph.with(Operation::Xor, sum, 0x10 + number));
    let mut root = graph.equals(sum, 7, (Graph::ACCEPT, Graph::REFUSE), TermId(0));
    for offset in 0..2000 {
        let load = graph.load(None, offset % 61, Width::Byte);
        root = graph.equals(load, offset % 251, (Graph::ACCEPT, root), TermId(0));
    }
    graph.set_root(root);
    let (native, interpreter) = (Native::new(&graph, &[]).unwrap(), Interpreter::new(&graph, &[]));
    for first in 0..=255 {
        let data: Vec<u8> = (0..64_u8).map(|byte| byte.wrapping_mul(97) ^ first | 0xfc).collect();
        assert_eq!(native.run(&packet(&data)), interpreter.run(&packet(&data)), "{first}");
    }
}

#[test]
fn what_always_and_never_matches() {
    let always = Native::new(&Graph::new(77), &[]).unwrap();
    assert_eq!(always.run(&packet(&[])), 77);
    let mut never = Graph::new(77);
    never.set_root(Graph::REFUSE);
    assert_eq!(Native::new(&never, &[]).unwrap().run(&packet(&[1, 2, 3])), 0);
    // Division by zero on every way.
    let mut graph = Graph::new(77);
    let (one, zero) = (graph.constant(1), graph.constant(0));
    let quotient = graph.binary(Operation::Divide, one, zero);
    let root = graph.equals(quotient, 1, (Graph::ACCEPT, Graph::ACCEPT), TermId(0));
    graph.set_root(root);
    assert_eq!(Native::new(&graph, &[]).unwrap().run(&packet(&[0; 60])), 0);
    assert_eq!(NodeId(2), root);
}

/// Whatever the snap length, and whether or not a test is asked.
#[test]
fn each_verdict_is_told_from_the_others() {
    for snap_len in [0, 1, u32::MAX] {
        for number in [0, 1, 2, 77, u16::MAX] {
            let mut graph = Graph::new(snap_len);
            let end = graph.end(Verdict(number));
            let byte = graph.load(None, 0, Width::Byte);
            let test = graph.equals(byte, 5, (end, Graph::REFUSE), TermId(0));
            for (root, other) in [(end, number), (test, 0)] {
                graph.set_root(root);
                let native = Native::new(&graph, &[]).unwrap();
                for (byte, expected) in [(5, number), (6, other)] {
                    let data = [byte];
                    let verdict = native.verdict(&packet(&data));
                    assert_eq!(verdict, Verdict(expected), "{snap_len}\n{graph}");
                    let result = if verdict == Verdict::ACCEPT { snap_len } else { 0 };
                    assert_eq!(native.run(&packet(&data)), result, "{snap_len}\n{graph}");
                }
            }
        }
    }
}

#[test]
fn code_can_be_read() {
    let listing = Native::listing(&Graph::new(77), &[]).unwrap();
    assert!(listing.contains("0x4d") && listing.contains("ret"), "{listing}");
}

/// Hosts one by one, in either direction: as sets, with the second address asked for only where the first is not enough.
#[test]
fn long_alternatives_become_sets() {
    let mut graph = Graph::new(1);
    let (source, destination) = (graph.load(None, 0, Width::Word), graph.load(None, 4, Width::Word));
    let mut next = Graph::REFUSE;
    for number in (0..3000).rev() {
        next = graph.equals(destination, number * 7, (Graph::ACCEPT, next), TermId(0));
        next = graph.equals(source, number * 7, (Graph::ACCEPT, next), TermId(0));
    }
    graph.set_root(next);
    let (native, interpreter) = (Native::new(&graph, &[]).unwrap(), Interpreter::new(&graph, &[]));
    assert!(native.code_len() < 1000, "{} bytes", native.code_len());
    for (source, destination) in
        [(0, 1), (1, 0), (7, 1), (1, 7), (1, 2999 * 7), (2999 * 7, 1), (1, 3000 * 7), (5, 6)]
    {
        let bytes = [u32::to_be_bytes(source), u32::to_be_bytes(destination)].concat();
        for end in [3, 4, 7, 8] {
            let packet = packet(&bytes[..end]);
            assert_eq!(native.run(&packet), interpreter.run(&packet), "{source} {destination} {end}");
        }
    }
}
