//! Makes frames whose outer VLAN tag was stripped match as they would with the tag.
//!
//! Reason: network cards and Linux strip the tag (`skb->vlan_tci`), so that a frame is four bytes shorter live than in
//! a file. An expression would mean one thing live and another in a file. A graph describes frames as they were on the
//! wire; the graph made here first tests whether a tag was stripped. If so, it continues in a copy, in which loads
//! beyond the tag are four bytes closer, and loads of the tag read metadata.
//!
//! Property: a frame whose tag is in the metadata gets the same verdict as the frame with the tag.

use foldhash::HashMap;

use super::bounds::Bounds;
use crate::graph::{
    Graph, MOST_SLOTS, Meta, Node, NodeId, Operation, Relation, Slot, TermId, Test, Value, ValueId, Width,
};

/// Offset of the tag in the frame.
const TAG: u32 = 12;

/// Offset of what followed the tag.
const BEHIND: u32 = 16;

/// Possible EtherTypes of a tag.
const TAGS: [u32; 3] = [0x8100, 0x88a8, 0x9100];

/// Length of a tag in bytes.
const LENGTH: u32 = 4;

/// Adapts `graph`, which describes frames as they were on the wire, to a receiver that strips tags. Returns `None` if
/// that needs too many slots, which are used for offsets computed from the packet.
pub fn stripped_tag(graph: &Graph) -> Option<Graph> {
    let reached = reached(graph);
    let mut copy =
        Copy { bounds: Bounds::of(graph, &reached), from: graph, to: graph.clone(), values: Vec::new() };
    for &value in graph.values() {
        let translated = copy.translate(value, &HashMap::default());
        copy.values.push(translated);
    }
    let root = copy.nodes(&reached)?;
    let mut graph = copy.to;
    let present = graph.meta(Meta::VlanPresent);
    let root = graph.equals(present, 1, (root, copy.from.root()), TermId::NONE);
    graph.set_root(root);
    Some(graph)
}

/// Returns where `node` continues if it compares the EtherType at the tag's offset with one that no tag has.
fn asks_in_vain(graph: &Graph, node: Node) -> Option<NodeId> {
    let Node::Branch { test: Test::Compare { relation: Relation::Equal, left, right }, other, .. } = node
    else {
        return None;
    };
    let of_tag = Value::Load { base: None, offset: TAG, width: Width::Half };
    let number = graph.as_constant(right)?;
    (graph.get(left) == of_tag && !TAGS.contains(&number)).then_some(other)
}

/// Returns whether each node is reachable for a tagged frame.
fn reached(graph: &Graph) -> Vec<bool> {
    let mut reached = vec![false; graph.nodes().len()];
    reached[graph.root().0 as usize] = true;
    for (index, &node) in graph.nodes().iter().enumerate().rev() {
        if reached[index] {
            match asks_in_vain(graph, node) {
                Some(next) => reached[next.0 as usize] = true,
                None => node.successors().for_each(|next| reached[next.0 as usize] = true),
            }
        }
    }
    reached
}

/// A copy of a graph under construction, added to the graph itself.
struct Copy<'a> {
    bounds: Bounds,
    from: &'a Graph,
    to: Graph,
    /// For each value, its equivalent without the tag; `None` if it needs a slot at each node that evaluates it.
    values: Vec<Option<ValueId>>,
}

/// Where a load reads.
enum Reach {
    /// Before the tag.
    Before,
    /// After the tag.
    Behind,
    /// At this offset, at least partly in the tag.
    Tag(u32),
    /// Depends on the packet.
    Unknown,
}

impl Copy<'_> {
    fn nodes(&mut self, reached: &[bool]) -> Option<NodeId> {
        let mut nodes: Vec<NodeId> = vec![Graph::REFUSE, Graph::ACCEPT];
        for (index, &node) in self.from.nodes().iter().enumerate().skip(2) {
            if !reached[index] {
                nodes.push(Graph::REFUSE);
                continue;
            }
            if let Some(next) = asks_in_vain(self.from, node) {
                nodes.push(nodes[next.0 as usize]);
                continue;
            }
            let mut own = HashMap::default();
            let mut notes = Vec::new();
            for value in node.values() {
                self.note(value, &mut own, &mut notes)?;
            }
            let value = |id| self.operand(id, &own).expect("what only the packet knows was noted");
            let node = node.map(value, |id| nodes[id.0 as usize]);
            let node = self.to.push(node);
            let node = notes
                .into_iter()
                .rev()
                .fold(node, |next, (slot, value)| self.to.push(Node::Assign { slot, value, next }));
            nodes.push(node);
        }
        Some(nodes[self.from.root().0 as usize])
    }

    /// Assigns slots to those parts of `root` that cannot be expressed as values; returns `None` if that takes too
    /// many. Not recursive: values are nested as deep as the text.
    fn note(
        &mut self,
        root: ValueId,
        own: &mut HashMap<ValueId, ValueId>,
        notes: &mut Vec<(Slot, ValueId)>,
    ) -> Option<()> {
        let mut open = vec![root];
        while let Some(&id) = open.last() {
            if own.contains_key(&id) || self.values[id.0 as usize].is_some() {
                open.pop();
                continue;
            }
            let value = self.from.get(id);
            let missing = open.len();
            let known =
                |operand: &ValueId| own.contains_key(operand) || self.values[operand.0 as usize].is_some();
            open.extend(value.operands().filter(|operand| !known(operand)));
            if open.len() > missing {
                continue;
            }
            open.pop();
            let here = match self.translate(value, own) {
                Some(here) => here,
                None if self.to.slots() > MOST_SLOTS => return None,
                None => self.by_position(value, own, notes),
            };
            own.insert(id, here);
        }
        Some(())
    }

    fn operand(&self, id: ValueId, own: &HashMap<ValueId, ValueId>) -> Option<ValueId> {
        own.get(&id).copied().or(self.values[id.0 as usize])
    }

    /// Returns the equivalent of `value` without the tag, if it can be expressed as a value.
    fn translate(&mut self, value: Value, own: &HashMap<ValueId, ValueId>) -> Option<ValueId> {
        Some(match value {
            Value::Constant(_) | Value::Meta(_) | Value::Slot(_) => self.to.value(value),
            Value::Length => {
                let length = self.to.value(Value::Length);
                self.to.with(Operation::Add, length, LENGTH)
            }
            Value::Binary { operation, left, right } => {
                let (left, right) = (self.operand(left, own)?, self.operand(right, own)?);
                self.to.binary(operation, left, right)
            }
            Value::Load { base, offset, width } => {
                let reach = self.reach(base, offset, width);
                let base = match base {
                    Some(base) => Some(self.operand(base, own)?),
                    None => None,
                };
                match reach {
                    Reach::Before => self.to.load(base, offset, width),
                    Reach::Behind => self.to.load(base, offset.wrapping_sub(LENGTH), width),
                    Reach::Tag(offset) => self.tag(offset, width),
                    Reach::Unknown => return None,
                }
            }
        })
    }

    fn reach(&self, base: Option<ValueId>, offset: u32, width: Width) -> Reach {
        let Some((least, most)) = self.bounds.position(base, offset) else { return Reach::Unknown };
        if least >= BEHIND {
            Reach::Behind
        } else if u64::from(most) + width as u64 <= TAG.into() {
            Reach::Before
        } else if base.is_none() {
            Reach::Tag(offset)
        } else {
            Reach::Unknown
        }
    }

    /// Loads bytes of the tag or across its boundary, in the largest pieces that do not cross it.
    fn tag(&mut self, offset: u32, width: Width) -> ValueId {
        let (end, mut at) = (offset + width as u32, offset);
        let mut number = None;
        while at < end {
            let (piece, bytes) = match at {
                12 if end - at >= 2 => (self.to.meta(Meta::VlanProtocol), 2),
                14 if end - at >= 2 => (self.to.meta(Meta::VlanTag), 2),
                12..BEHIND => (self.tag_byte(at), 1),
                _ => {
                    let from = if at >= BEHIND { at - LENGTH } else { at };
                    let room = if at < TAG { TAG.min(end) - at } else { end - at };
                    let (width, bytes) = if room >= 2 { (Width::Half, 2) } else { (Width::Byte, 1) };
                    (self.to.load(None, from, width), bytes)
                }
            };
            number = Some(match number {
                None => piece,
                Some(before) => {
                    let shifted = self.to.with(Operation::ShiftLeft, before, 8 * bytes);
                    self.to.binary(Operation::Or, shifted, piece)
                }
            });
            at += bytes;
        }
        number.expect("a load has a byte")
    }

    fn tag_byte(&mut self, at: u32) -> ValueId {
        let half = self.to.meta(if at < 14 { Meta::VlanProtocol } else { Meta::VlanTag });
        if at.is_multiple_of(2) {
            self.to.with(Operation::ShiftRight, half, 8)
        } else {
            self.to.with(Operation::And, half, 0xff)
        }
    }

    /// Loads bytes at an offset known only from the packet, one by one: each may be before, in, or after the tag.
    fn by_position(
        &mut self,
        value: Value,
        own: &HashMap<ValueId, ValueId>,
        notes: &mut Vec<(Slot, ValueId)>,
    ) -> ValueId {
        let Value::Load { base: Some(base), offset, width } = value else {
            unreachable!("{value:?} is said in a value")
        };
        let base = self.operand(base, own).expect("operands come first");
        let first = self.to.with(Operation::Add, base, offset);
        let first = self.noted(first, notes);
        let mut number = None;
        for byte in 0..width as u32 {
            let at = self.to.with(Operation::Add, first, byte);
            let piece = self.byte_at(at);
            number = Some(match number {
                None => piece,
                Some(before) => {
                    let shifted = self.to.with(Operation::ShiftLeft, before, 8);
                    self.to.binary(Operation::Or, shifted, piece)
                }
            });
        }
        let number = number.expect("a load has a byte");
        self.noted(number, notes)
    }

    /// Returns a slot that holds `value` from here on.
    fn noted(&mut self, value: ValueId, notes: &mut Vec<(Slot, ValueId)>) -> ValueId {
        let slot = self.to.slot();
        notes.push((slot, value));
        self.to.value(Value::Slot(slot))
    }

    /// Loads the byte that was at `at`, without a branch.
    fn byte_at(&mut self, at: ValueId) -> ValueId {
        let to = &mut self.to;
        let sixteens = to.with(Operation::ShiftRight, at, 4);
        let behind = is_not_zero(to, sixteens);
        let fours = to.with(Operation::ShiftRight, at, 2);
        let other = to.with(Operation::Xor, fours, TAG / 4);
        let outside = is_not_zero(to, other);
        let four = to.with(Operation::ShiftLeft, behind, 2);
        let nearer = to.binary(Operation::Subtract, at, four);
        // If the byte is in the tag, load the first byte of the frame and discard it: this rejects only frames that
        // would not have the byte even with their tag.
        let nearer = to.binary(Operation::Multiply, nearer, outside);
        let loaded = to.load(Some(nearer), 0, Width::Byte);
        let loaded = to.binary(Operation::Multiply, loaded, outside);

        let protocol = to.meta(Meta::VlanProtocol);
        let control = to.meta(Meta::VlanTag);
        let high = to.with(Operation::ShiftLeft, protocol, 16);
        let tag = to.binary(Operation::Or, high, control);
        let index = to.with(Operation::And, at, 3);
        let bits = to.with(Operation::ShiftLeft, index, 3);
        let left = to.binary(Operation::ShiftLeft, tag, bits);
        let byte = to.with(Operation::ShiftRight, left, 24);
        let inside = to.with(Operation::Xor, outside, 1);
        let byte = to.binary(Operation::Multiply, byte, inside);
        to.binary(Operation::Or, loaded, byte)
    }
}

/// Returns 1 if `value` is not zero, else 0.
fn is_not_zero(graph: &mut Graph, value: ValueId) -> ValueId {
    let zero = graph.constant(0);
    let negative = graph.binary(Operation::Subtract, zero, value);
    let either = graph.binary(Operation::Or, value, negative);
    graph.with(Operation::ShiftRight, either, 31)
}
