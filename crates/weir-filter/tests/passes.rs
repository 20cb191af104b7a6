//! No pass changes a verdict: random graphs on random packets, before and after.

use proptest::prelude::*;
use weir_filter::cbpf::{LiftError, Program, Rules};
use weir_filter::emit::cbpf::{EmitError, Target, emit, emit_plainly};
use weir_filter::graph::{
    Graph, Meta, Node, NodeId, Operation, Relation, Slot, TermId, Test, Value, ValueId, Verdict, Width,
};
use weir_filter::interpret::{Interpreter, Metadata, Packet, VlanTag};
use weir_filter::pass;
use weir_filter::set::{Contents, Member, Set, SetId};
use weir_judge::share;

/// Choices, one number each; zeros when they run out.
struct Choices<'a>(&'a [u32]);

impl Choices<'_> {
    fn number(&mut self) -> u32 {
        let Some((first, rest)) = self.0.split_first() else { return 0 };
        self.0 = rest;
        *first
    }

    fn below(&mut self, limit: usize) -> usize {
        self.number() as usize % limit
    }

    fn one<T: Copy>(&mut self, of: &[T]) -> T {
        of[self.below(of.len())]
    }
}

/// Numbers that packets have, and at which something wraps, shifts out or has another sign.
const NUMBERS: [u32; 16] =
    [0, 1, 2, 3, 4, 5, 8, 14, 15, 31, 32, 0x101, 0x0001_0203, 1 << 31, u32::MAX - 1, u32::MAX];
const OPERATIONS: [Operation; 10] = [
    Operation::Add,
    Operation::And,
    Operation::Subtract,
    Operation::ShiftLeft,
    Operation::ShiftRight,
    Operation::Multiply,
    Operation::Divide,
    Operation::Remainder,
    Operation::Or,
    Operation::Xor,
];
const RELATIONS: [Relation; 4] = [Relation::Equal, Relation::Greater, Relation::AtLeast, Relation::AnyBit];
const SLOTS: u16 = 2;

fn sets() -> Vec<Set> {
    let net = |number, bits| Member { key: [number], bits };
    let all = [
        Contents::Numbers(vec![0, 1, 3, 5, 8, 15, 0x101, u32::MAX]),
        Contents::Macs(vec![[0, 1], [1, 0x0001_0203], [1, u32::MAX], [2, 0]]),
        Contents::Ipv4(vec![net(0, 30), net(8, 32), net(0x0001_0000, 16), net(1 << 31, 1)]),
        Contents::Ipv6(vec![
            Member { key: [0, 1, 2, 3], bits: 128 },
            Member { key: [1, 2, 0, 0], bits: 64 },
            Member { key: [1, 3, 0, 0], bits: 70 },
        ]),
    ];
    all.into_iter().map(|contents| Set { name: None, contents }).collect()
}

fn value(graph: &mut Graph, choices: &mut Choices<'_>, made: &[ValueId]) -> ValueId {
    let width = choices.one(&[Width::Byte, Width::Half, Width::Word]);
    let offset = choices.one(&[0, 1, 2, 3, 4, 5, 8, 9, 10, 11, 12, 14, u32::MAX]);
    match choices.below(8) {
        0 | 1 => graph.load(None, offset, width),
        2 => {
            let base = choices.one(made);
            graph.load(Some(base), offset, width)
        }
        3 => {
            let meta = choices.one(&[Meta::VlanPresent, Meta::VlanTag, Meta::VlanProtocol, Meta::PacketType]);
            graph.value(if offset == 0 { Value::Length } else { Value::Meta(meta) })
        }
        4 | 5 => {
            let (operation, left) = (choices.one(&OPERATIONS), choices.one(made));
            let number = choices.one(&NUMBERS);
            graph.with(operation, left, number)
        }
        _ => {
            let (operation, left, right) = (choices.one(&OPERATIONS), choices.one(made), choices.one(made));
            graph.binary(operation, left, right)
        }
    }
}

/// `nodes` begins with this many ends.
fn node(
    graph: &mut Graph,
    choices: &mut Choices<'_>,
    values: &[ValueId],
    nodes: &[NodeId],
    ends: usize,
) -> NodeId {
    // Mostly what was made last, so that graphs are deep.
    let near = &nodes[nodes.len().saturating_sub(4)..];
    let (then, other) = (
        choices.one(near),
        if choices.below(3) == 0 { nodes[choices.below(ends)] } else { choices.one(near) },
    );
    let left = choices.one(values);
    let number = choices.one(&NUMBERS);
    let number = graph.constant(number);
    let right = if choices.below(4) == 0 { choices.one(values) } else { number };
    let test = match choices.below(12) {
        0 => return graph.push(Node::Read { value: left, next: then }),
        1 => {
            let set = choices.below(sets().len());
            let words = sets()[set].words();
            let key: Vec<ValueId> = (0..words).map(|_| choices.one(values)).collect();
            let set = SetId(set.try_into().unwrap());
            return graph.member(set, &key, (then, other), TermId::NONE);
        }
        _ => Test::Compare { relation: choices.one(&RELATIONS), left, right },
    };
    graph.branch(test, then, other, TermId::NONE)
}

/// A graph in three layers: questions, ways that assign the slots, and questions that read them. It has up to this many
/// verdicts.
fn graph(choices: &[u32], verdicts: u16) -> Graph {
    let mut choices = Choices(choices);
    let choices = &mut choices;
    let mut graph = Graph::new(100);
    let slots: Vec<Slot> = (0..SLOTS).map(|_| graph.slot()).collect();
    let mut values = vec![graph.constant(1)];
    for _ in 0..5 {
        let value = value(&mut graph, choices, &values);
        values.push(value);
    }
    let mut inner: Vec<ValueId> = slots.iter().map(|slot| graph.value(Value::Slot(*slot))).collect();
    inner.extend(&values);
    for _ in 0..4 {
        let value = value(&mut graph, choices, &inner);
        inner.push(value);
    }
    let ends: Vec<NodeId> = (0..verdicts).map(|number| graph.end(Verdict(number))).collect();
    let mut nodes = ends.clone();
    for _ in 0..choices.below(10) {
        let node = node(&mut graph, choices, &inner, &nodes, ends.len());
        nodes.push(node);
    }
    let mut begins = ends.clone();
    for _ in 0..1 + choices.below(3) {
        let mut next = nodes[nodes.len() - 1 - choices.below(2)];
        for &slot in &slots {
            next = graph.push(Node::Assign { slot, value: choices.one(&values), next });
        }
        begins.push(next);
    }
    for _ in 0..choices.below(10) {
        let node = node(&mut graph, choices, &values, &begins, ends.len());
        begins.push(node);
    }
    graph.set_root(begins[begins.len() - 1]);
    graph
}

fn packets() -> impl Strategy<Value = Vec<(Vec<u8>, Metadata)>> {
    let byte = prop_oneof![3 => 0..4u8, 1 => any::<u8>()];
    let vlan = prop::option::of((0..6u16).prop_map(|tci| VlanTag { protocol: 0x8100, tci }));
    let meta =
        (0..5u8, vlan).prop_map(|(packet_type, vlan)| Metadata { packet_type, vlan, ..Metadata::default() });
    prop::collection::vec((prop::collection::vec(byte, 0..20), meta), 12)
}

fn choices() -> impl Strategy<Value = Vec<u32>> {
    prop::collection::vec(0..1_000_000u32, 20..260)
}

fn verdicts() -> impl Strategy<Value = u16> {
    prop_oneof![Just(2), 3..6u16]
}

fn packet((data, meta): &(Vec<u8>, Metadata)) -> Packet<'_> {
    Packet { data, length: data.len().try_into().expect("a small packet"), meta: *meta }
}

/// A frame with its tag, if it has one, in the metadata, and the same frame with its tag inside.
fn frames((data, meta): &(Vec<u8>, Metadata)) -> [(Vec<u8>, Metadata); 2] {
    let mut frame = data.clone();
    frame.resize(frame.len().max(18), 7);
    // No second tag.
    frame[12] &= 0x7f;
    let protocol = u16::from_be_bytes([frame[12], frame[13]]);
    let without = (frame.clone(), Metadata { protocol, ..*meta });
    let Some(tag) = meta.vlan else { return [without.clone(), without] };
    frame.splice(12..12, tag.protocol.to_be_bytes().into_iter().chain(tag.tci.to_be_bytes()));
    [without, (frame, Metadata { vlan: None, protocol: tag.protocol, ..*meta })]
}

fn same(
    before: &Graph,
    after: &Graph,
    packets: &[(Vec<u8>, Metadata)],
    name: &str,
) -> Result<(), TestCaseError> {
    let sets = sets();
    prop_assert_eq!(after.check(&sets), Ok(()), "{}:\n{}\n{}", name, before, after);
    let (judge, pass) = (Interpreter::new(before, &sets), Interpreter::new(after, &sets));
    for bytes in packets {
        let packet = packet(bytes);
        prop_assert_eq!(
            (judge.verdict(&packet), judge.run(&packet)),
            (pass.verdict(&packet), pass.run(&packet)),
            "{}: {:x?}\n{}\n{}",
            name,
            bytes,
            before,
            after
        );
    }
    Ok(())
}

/// A pass by its name.
type Pass = (&'static str, fn(&Graph) -> Graph);

proptest! {
    #![proptest_config(ProptestConfig::with_cases(share::cases(500)))]

    #[test]
    fn each_pass_changes_no_verdict(choices in choices(), packets in packets(), verdicts in verdicts()) {
        let graph = graph(&choices, verdicts);
        prop_assert_eq!(graph.check(&sets()), Ok(()));
        let passes: [Pass; 8] = [
            ("merge", pass::merge),
            ("simplify", pass::simplify),
            ("thread", pass::thread),
            ("gather", pass::gather),
            ("slots", pass::slots),
            ("certain", pass::certain),
            ("expand_sets", |graph| pass::expand_sets(graph, &sets())),
            ("optimise", |graph| pass::optimise(graph, &sets())),
        ];
        let merged = pass::merge(&pass::thread(&graph));
        for (name, pass) in passes {
            same(&graph, &pass(&graph), &packets, name)?;
            same(&merged, &pass(&merged), &packets, name)?;
        }
    }

    #[test]
    fn where_the_tag_is_changes_no_verdict(choices in choices(), packets in packets(), verdicts in verdicts()) {
        let graph = graph(&choices, verdicts);
        let sets = sets();
        let judge = Interpreter::new(&graph, &sets);
        let asks_beside = graph.values().iter().any(|value| {
            matches!(value, Value::Meta(Meta::VlanPresent | Meta::VlanTag | Meta::VlanProtocol))
        });
        let passes = [
            ("inside", pass::inner_tag(&graph, false)),
            ("inside or beside", pass::inner_tag(&graph, true)),
            ("stripped", pass::stripped_tag(&graph)),
        ];
        for (name, adapted) in passes {
            let adapted = adapted.expect("the graph is small");
            prop_assert_eq!(adapted.check(&sets), Ok(()), "{}:\n{}", name, adapted);
            let adapted = pass::optimise(&adapted, &sets);
            let adapted = Interpreter::new(&adapted, &sets);
            for bytes in &packets {
                let [without, within] = frames(bytes);
                // A graph that describes frames with their tags does not ask for tags beside them.
                if name == "stripped" && asks_beside {
                    continue;
                }
                let cases = match name {
                    "inside" => vec![(&within, &without)],
                    "stripped" => vec![(&without, &within)],
                    _ => vec![(&within, &without), (&without, &without)],
                };
                for (there, here) in cases {
                    let verdict = judge.verdict(&packet(here));
                    prop_assert_eq!(adapted.verdict(&packet(there)), verdict, "{}: {:x?}\n{}", name, there, graph);
                }
            }
        }
    }

    #[test]
    fn classic_bpf_gives_the_same_verdicts(choices in choices(), packets in packets(), verdicts in verdicts()) {
        let graph = graph(&choices, verdicts);
        let sets = sets();
        let judge = Interpreter::new(&graph, &sets);
        let emits = [emit, emit_plainly].into_iter();
        for (emit, target) in emits.flat_map(|emit| [(emit, Target::Kernel), (emit, Target::Library)]) {
            let program = match emit(&graph, &sets, target) {
                Ok(program) => program,
                Err(EmitError::Verdicts { verdicts }) => {
                    prop_assert!((3..=graph.verdicts()).contains(&verdicts), "{} {}", verdicts, graph);
                    continue;
                }
                Err(error) => {
                    prop_assert_eq!(error, EmitError::Memory, "{}", graph);
                    continue;
                }
            };
            prop_assert_eq!(program.check(Rules::Kernel), Ok(()), "{}\n{}", graph, program.listing());
            let lifted = [Rules::Library, Rules::Kernel].map(|rules| (rules, program.lift(rules)));
            let lifted = lifted.each_ref().map(|(rules, graph)| {
                (rules, graph.as_ref().map(|graph| Interpreter::new(graph, &sets)))
            });
            for bytes in &packets {
                let packet = packet(bytes);
                let verdict = judge.run(&packet);
                let shown = || format!("{bytes:x?}\n{graph}\n{}", program.listing());
                prop_assert_eq!(program.run(&packet), verdict, "{:?} {}", target, shown());
                prop_assert!(judge.verdict(&packet) <= Verdict::ACCEPT, "{:?} {}", target, shown());
                for (rules, lifted) in &lifted {
                    match lifted {
                        Ok(lifted) => prop_assert_eq!(lifted.run(&packet), verdict, "lifted {}", shown()),
                        // A load at a computed place, which for the kernel may be one before its headers, and for
                        // libpcap one before the packet.
                        Err(LiftError::Offset { .. }) if **rules == Rules::Kernel => {}
                        Err(LiftError::Wraps { .. }) if **rules == Rules::Library => {}
                        Err(error) => prop_assert!(false, "{} {}", error, shown()),
                    }
                }
            }
        }
    }
}

/// Passes take time in proportion to the graph: here, that they end at all.
#[test]
fn a_chain_of_many_questions_is_no_trouble() {
    let mut graph = Graph::new(100);
    let value = graph.load(None, 26, Width::Word);
    let again = graph.load(None, 30, Width::Word);
    let mut next = Graph::REFUSE;
    for number in 0..30_000 {
        for value in [value, again] {
            next = graph.equals(value, number, (Graph::ACCEPT, next), TermId::NONE);
        }
    }
    graph.set_root(next);
    let graph = pass::optimise(&graph, &[]);
    assert_eq!(graph.nodes().len(), 60_002);
    let program: Program = emit(&graph, &[], Target::Library).unwrap();
    assert_eq!(program.check(Rules::Library), Ok(()));
    assert!(matches!(emit(&graph, &[], Target::Kernel), Err(EmitError::TooLong { .. })));
    let mut data = vec![0xff; 34];
    data[30..].copy_from_slice(&29_999u32.to_be_bytes());
    assert_eq!(program.run(&Packet { data: &data, length: 34, ..Packet::default() }), 100);
    data[33] ^= 0xc0;
    data[32] ^= 0xff;
    assert_eq!(program.run(&Packet { data: &data, length: 34, ..Packet::default() }), 0);
}
