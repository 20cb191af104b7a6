//! Makes frames whose outer VLAN tag was stripped match as they would with the tag.
//!
//! Reason: network cards and Linux strip the tag (`skb->vlan_tci`), so that a frame is four bytes shorter live than in
//! a file. An expression would mean one thing live and another in a file. A graph describes frames as they were on the
//! wire; the graph made here first tests whether a tag was stripped. If so, it continues in a copy, in which loads
//! beyond the tag are four bytes closer, and loads of the tag read metadata.
//!
//! Property: a frame whose tag is in the metadata gets the same verdict as the frame with the tag.

use weir_packet::ethertype::TAGS_OF_LIBPCAP;

use super::rewrite::{Load, PacketLayout, copy};
use crate::graph::{Graph, Meta, Node, NodeId, Operation, Relation, TermId, Test, Value, ValueId, Width};

/// Offset of the tag in the frame.
pub(super) const TAG: u32 = 12;

/// Offset of what followed the tag.
const BEHIND: u32 = 16;

/// Length of a tag in bytes.
pub(super) const LENGTH: u32 = 4;

/// Adapts `graph`, which describes frames as they were on the wire, to a receiver that strips tags. Returns `None` if
/// that needs too many slots, which are used for offsets computed from the packet.
pub fn stripped_tag(graph: &Graph) -> Option<Graph> {
    let mut to = graph.clone();
    let root = copy(graph, &mut to, &Stripped)?;
    let present = to.meta(Meta::VlanPresent);
    let root = to.equals(present, 1, (root, graph.root()), TermId::NONE);
    to.set_root(root);
    Some(to)
}

/// A frame whose tag was stripped.
struct Stripped;

impl PacketLayout for Stripped {
    fn length(&self, to: &mut Graph) -> ValueId {
        let length = to.value(Value::Length);
        to.with(Operation::Add, length, LENGTH)
    }

    fn load(&self, to: &mut Graph, load: Load) -> Option<ValueId> {
        if load.is_before(TAG) {
            Some(load.add(to, 0))
        } else if load.span?.0 >= BEHIND {
            Some(load.add(to, LENGTH.wrapping_neg()))
        } else {
            load.base.is_none().then(|| in_tag(to, load.offset, load.width))
        }
    }

    fn byte_at(&self, to: &mut Graph, at: ValueId) -> ValueId {
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
    /// The tag's EtherType is none that `node` may ask for.
    fn shortcut(&self, graph: &Graph, node: Node) -> Option<NodeId> {
        let Node::Branch { test: Test::Compare { relation: Relation::Equal, left, right }, other, .. } = node
        else {
            return None;
        };
        let of_tag = Value::Load { base: None, offset: TAG, width: Width::Half };
        let number = graph.as_constant(right)?;
        (graph.get(left) == of_tag && !is_tag(number)).then_some(other)
    }
}

/// Whether an instruction may ask for the EtherType of a tag with this number.
fn is_tag(number: u32) -> bool {
    TAGS_OF_LIBPCAP.iter().any(|tag| u32::from(*tag) == number)
}

/// Loads bytes of the tag or across its boundary, in the largest pieces that do not cross it.
fn in_tag(to: &mut Graph, offset: u32, width: Width) -> ValueId {
    let (end, mut at) = (offset + width as u32, offset);
    let mut number = None;
    while at < end {
        let (piece, bytes) = match at {
            12 if end - at >= 2 => (to.meta(Meta::VlanProtocol), 2),
            14 if end - at >= 2 => (to.meta(Meta::VlanTag), 2),
            12..BEHIND => (tag_byte(to, at), 1),
            _ => {
                let from = if at >= BEHIND { at - LENGTH } else { at };
                let room = if at < TAG { TAG.min(end) - at } else { end - at };
                let (width, bytes) = if room >= 2 { (Width::Half, 2) } else { (Width::Byte, 1) };
                (to.load(None, from, width), bytes)
            }
        };
        number = Some(match number {
            None => piece,
            Some(before) => {
                let shifted = to.with(Operation::ShiftLeft, before, 8 * bytes);
                to.binary(Operation::Or, shifted, piece)
            }
        });
        at += bytes;
    }
    number.expect("a load has a byte")
}

fn tag_byte(to: &mut Graph, at: u32) -> ValueId {
    let half = to.meta(if at < 14 { Meta::VlanProtocol } else { Meta::VlanTag });
    if at.is_multiple_of(2) {
        to.with(Operation::ShiftRight, half, 8)
    } else {
        to.with(Operation::And, half, 0xff)
    }
}

/// Returns 1 if `value` is not zero, else 0.
fn is_not_zero(graph: &mut Graph, value: ValueId) -> ValueId {
    let zero = graph.constant(0);
    let negative = graph.binary(Operation::Subtract, zero, value);
    let either = graph.binary(Operation::Or, value, negative);
    graph.with(Operation::ShiftRight, either, 31)
}
