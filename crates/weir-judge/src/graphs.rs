//! Random graphs that obey the rules of [`weir_filter::graph`], with sets and packets for them. All engines must agree
//! on them.

use weir_filter::graph::{
    Graph, Meta, Node, NodeId, Operation, Relation, Slot, TermId, Test, Value, ValueId, Verdict, Width,
};
use weir_filter::interpret::{Metadata, VlanTag};
use weir_filter::set::{Contents, Member, Set, SetId};

/// A random number generator (xorshift64*). Seeds must keep their meaning when dependencies change.
#[derive(Clone, Debug)]
pub struct Dice(u64);

impl Dice {
    /// Creates a generator from `seed`.
    pub fn new(seed: u64) -> Self {
        Self(seed | 1)
    }

    /// Returns any number.
    pub fn word(&mut self) -> u32 {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        u32::try_from(self.0.wrapping_mul(0x2545_f491_4f6c_dd1d) >> 32).expect("in range")
    }

    /// Returns a number below `limit`.
    pub fn below(&mut self, limit: usize) -> usize {
        self.word() as usize % limit
    }

    /// Returns one of a few values.
    pub fn one<T: Copy>(&mut self, of: &[T]) -> T {
        of[self.below(of.len())]
    }

    /// Returns a small number, a single bit, all bits, or any number.
    pub fn number(&mut self) -> u32 {
        match self.below(6) {
            0 => self.word() & 0x1f,
            1 => 1 << self.below(32),
            2 => u32::MAX - (self.word() & 3),
            3 => self.word() & 0xffff,
            4 => 0x0800,
            _ => self.word(),
        }
    }
}

/// All operations of graphs.
pub const OPERATIONS: [Operation; 10] = [
    Operation::Add,
    Operation::Subtract,
    Operation::Multiply,
    Operation::Divide,
    Operation::Remainder,
    Operation::And,
    Operation::Or,
    Operation::Xor,
    Operation::ShiftLeft,
    Operation::ShiftRight,
];
const RELATIONS: [Relation; 4] = [Relation::Equal, Relation::Greater, Relation::AtLeast, Relation::AnyBit];
const METAS: [Meta; 6] =
    [Meta::Protocol, Meta::PacketType, Meta::Interface, Meta::VlanTag, Meta::VlanPresent, Meta::VlanProtocol];

/// A bit set of slots.
type Slots = u32;
const SLOTS: u16 = 4;

/// Builds a graph that obeys the rules: a node that reads a slot comes after one that assigns it.
struct Maker {
    dice: Dice,
    graph: Graph,
    /// The slots that each value reads.
    reads: Vec<Slots>,
    /// For each node, the slots that must be assigned before it, and those that may be assigned after it.
    nodes: Vec<(Slots, Slots)>,
}

impl Maker {
    fn note(&mut self, value: Value) -> ValueId {
        let reads = match value {
            Value::Slot(slot) => 1 << slot.0,
            Value::Load { base: Some(base), .. } => self.reads[base.0 as usize],
            Value::Binary { left, right, .. } => self.reads[left.0 as usize] | self.reads[right.0 as usize],
            _ => 0,
        };
        let id = self.graph.value(value);
        if id.0 as usize >= self.reads.len() {
            self.reads.resize(id.0 as usize, 0);
            self.reads.push(reads);
        }
        id
    }

    fn constant(&mut self) -> ValueId {
        let number = self.dice.number();
        self.note(Value::Constant(number))
    }

    fn new_value(&mut self) {
        let any =
            |maker: &mut Self| ValueId(u32::try_from(maker.dice.below(maker.reads.len())).expect("in range"));
        let width = self.dice.one(&[Width::Byte, Width::Half, Width::Word]);
        let value = match self.dice.below(12) {
            0 => Value::Constant(self.dice.number()),
            1 => Value::Length,
            2 => Value::Meta(self.dice.one(&METAS)),
            3 => Value::Slot(Slot(self.dice.one(&[0, 1, 2, 3]))),
            4..7 => {
                let far = self.dice.below(20) == 0;
                let offset = if far { self.dice.number() } else { self.dice.word() % 40 };
                Value::Load { base: None, offset, width }
            }
            7 | 8 => {
                let offset = self.dice.one(&[0, 1, 2, 5, 13, u32::MAX, 0x7fff_ffff, 0x8000_0000]);
                let (base, mask) = (any(self), self.note(Value::Constant(0x1f)));
                let small = self.dice.below(4) > 0;
                let masked = Value::Binary { operation: Operation::And, left: base, right: mask };
                let base = if small { self.note(masked) } else { base };
                Value::Load { base: Some(base), offset, width }
            }
            _ => {
                let operation = self.dice.one(&OPERATIONS);
                let right = if self.dice.below(2) == 0 { self.constant() } else { any(self) };
                Value::Binary { operation, left: any(self), right }
            }
        };
        self.note(value);
    }

    /// Returns a value that reads none of the slots that are assigned later.
    fn value(&mut self, assigned: Slots) -> ValueId {
        for _ in 0..8 {
            let index = self.dice.below(self.reads.len());
            if self.reads[index] & assigned == 0 {
                return ValueId(u32::try_from(index).expect("in range"));
            }
        }
        self.constant()
    }

    fn new_node(&mut self, sets: &[Set]) {
        let recent = self.nodes.len().min(12);
        let pick = |dice: &mut Dice, count: usize| {
            let back = if dice.below(3) == 0 { count } else { recent };
            NodeId(u32::try_from(count - 1 - dice.below(back)).expect("in range"))
        };
        let (next, other) = (pick(&mut self.dice, self.nodes.len()), pick(&mut self.dice, self.nodes.len()));
        let (mut needs, mut assigned) = self.nodes[next.0 as usize];
        let term = self.term();
        let node = match self.dice.below(8) {
            0 => Node::Read { value: self.value(assigned), next },
            1 | 2 => {
                let slot = u16::try_from(self.dice.below(SLOTS.into())).expect("in range");
                let value = self.value(assigned | 1 << slot);
                if assigned & 1 << slot != 0 {
                    return;
                }
                assigned |= 1 << slot;
                needs &= !(1 << slot);
                Node::Assign { slot: Slot(slot), value, next }
            }
            kind => {
                let there = self.nodes[other.0 as usize];
                needs |= there.0;
                assigned |= there.1;
                if needs & assigned != 0 {
                    return;
                }
                let test = if kind == 3 {
                    let set = self.dice.below(sets.len());
                    let words = sets[set].words();
                    let mut key = [ValueId(0); 4];
                    for index in 0..4 {
                        key[index] = if index < words { self.value(assigned) } else { key[words - 1] };
                    }
                    Test::Member { set: SetId(u32::try_from(set).expect("in range")), key }
                } else {
                    let right = if self.dice.below(3) > 0 { self.constant() } else { self.value(assigned) };
                    Test::Compare { relation: self.dice.one(&RELATIONS), left: self.value(assigned), right }
                };
                Node::Branch { test, then: next, other, term }
            }
        };
        let values: Vec<ValueId> = match node {
            Node::Branch { test: Test::Compare { left, right, .. }, .. } => vec![left, right],
            Node::Branch { test: Test::Member { key, .. }, .. } => key.to_vec(),
            Node::Assign { value, .. } | Node::Read { value, .. } => vec![value],
            Node::End(_) => vec![],
        };
        needs |= values.iter().fold(0, |slots, value| slots | self.reads[value.0 as usize]);
        if needs & assigned == 0 {
            self.graph.push(node);
            self.nodes.push((needs, assigned));
        }
    }

    /// Marks every fifth node as rarely reached.
    fn term(&self) -> TermId {
        if self.nodes.len() % 5 == 4 { TermId::RARE } else { TermId(0) }
    }

    /// Adds a chain of comparisons of several values with many numbers. All matches lead to the same node.
    fn new_chain(&mut self) {
        let (mut next, yes) = (self.nodes.len() - 1, self.dice.below(self.nodes.len()));
        let values: Vec<ValueId> = (0..=self.dice.below(5)).map(|_| self.value(Slots::MAX)).collect();
        for _ in 0..self.dice.below(40) {
            let (one, other) = (self.nodes[next], self.nodes[yes]);
            let (needs, assigned) = (one.0 | other.0, one.1 | other.1);
            if needs & assigned != 0 {
                return;
            }
            let left = self.dice.one(&values);
            let right = self.constant();
            let test = Test::Compare { relation: Relation::Equal, left, right };
            let id = |index| NodeId(u32::try_from(index).expect("in range"));
            self.graph.push(Node::Branch { test, then: id(yes), other: id(next), term: self.term() });
            self.nodes.push((needs, assigned));
            next = self.nodes.len() - 1;
        }
    }

    /// Makes the last node the root, after assignments of the slots that it needs.
    fn finish(mut self) -> Graph {
        let mut root = NodeId(u32::try_from(self.nodes.len() - 1).expect("in range"));
        let needs = self.nodes[root.0 as usize].0;
        for slot in (0..SLOTS).filter(|slot| needs & 1 << slot != 0) {
            let value = self.value(Slots::MAX);
            root = self.graph.push(Node::Assign { slot: Slot(slot), value, next: root });
        }
        self.graph.set_root(root);
        self.graph
    }
}

/// Returns sets of all kinds.
pub fn sets(dice: &mut Dice) -> Vec<Set> {
    let mut contents = Vec::new();
    for most in [3, 40, 300] {
        let count = dice.below(most);
        contents.push(Contents::Numbers((0..count).map(|_| dice.number() & 0xffff).collect()));
        contents.push(Contents::Numbers((0..count).map(|_| dice.number()).collect()));
        contents.push(Contents::Macs((0..count).map(|_| [dice.number() & 3, dice.word() & 7]).collect()));
        let mut prefix = |words: u32| {
            let bits = u8::try_from(dice.word() % (words * 32 + 1)).expect("in range");
            let mut key = [0; 4];
            for (word, at) in key.iter_mut().zip((0..words).map(|word| word * 32)) {
                let own = u32::from(bits).saturating_sub(at).min(32);
                *word = dice.number() & u32::MAX.checked_shl(32 - own).unwrap_or(0);
            }
            (key, bits)
        };
        let four = |(key, bits): ([u32; 4], u8)| Member { key: [key[0]], bits };
        contents.push(Contents::Ipv4((0..count).map(|_| four(prefix(1))).collect()));
        let six = |(key, bits): ([u32; 4], u8)| Member { key, bits };
        contents.push(Contents::Ipv6((0..count).map(|_| six(prefix(4))).collect()));
    }
    let mut sets: Vec<Set> = contents.into_iter().map(|contents| Set { name: None, contents }).collect();
    sets.iter_mut().for_each(|set| set.contents.normalise());
    sets
}

/// Returns a graph of about `nodes` nodes that refers to `sets`.
pub fn graph(dice: Dice, sets: &[Set], nodes: usize) -> Graph {
    graph_of(dice, sets, nodes, 2)
}

/// Returns a graph of about `nodes` nodes that refers to `sets` and has up to this many verdicts, two at least.
pub fn graph_of(dice: Dice, sets: &[Set], nodes: usize, verdicts: u16) -> Graph {
    let mut graph = Graph::new(262_144);
    for _ in 0..SLOTS {
        graph.slot();
    }
    (2..verdicts).for_each(|number| _ = graph.end(Verdict(number)));
    let mut maker = Maker { dice, graph, reads: Vec::new(), nodes: vec![(0, 0); verdicts.into()] };
    maker.constant();
    for _ in 0..nodes {
        maker.new_value();
        maker.new_value();
        maker.new_node(sets);
        if maker.dice.below(8) == 0 {
            maker.new_chain();
        }
    }
    maker.finish()
}

/// Returns up to 69 bytes of a packet.
pub fn bytes(dice: &mut Dice) -> Vec<u8> {
    let length = dice.below(70);
    (0..length).map(|_| u8::try_from(dice.number() & 0xff).expect("in range")).collect()
}

/// Returns packet metadata.
pub fn metadata(dice: &mut Dice) -> Metadata {
    let tag = VlanTag { protocol: 0x8100, tci: u16::try_from(dice.number() & 0xffff).expect("in range") };
    Metadata {
        protocol: u16::try_from(dice.number() & 0xffff).expect("in range"),
        packet_type: u8::try_from(dice.below(5)).expect("in range"),
        interface: dice.number(),
        vlan: (dice.below(2) == 0).then_some(tag),
    }
}
