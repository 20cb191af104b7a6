//! Makes a graph for frames without their outer VLAN tag match the frames that still contain it.
//!
//! Reason: a program in classic BPF of another compiler, such as one that a user of libpcap sets, expects what a packet
//! socket shows: the outer tag in the metadata and not in the frame. XDP sees frames before Linux strips the tag.
//!
//! Property: a frame that contains its tag gets the same verdict as the frame whose tag is in the metadata.

use weir_packet::ethertype::TAGS_OF_LINUX;

use super::rewrite::{Load, PacketLayout, copy};
use super::stripped_tag::{LENGTH, TAG};
use crate::graph::{Graph, Meta, Operation, TermId, Value, ValueId, Width};

/// Adapts `graph`, which describes frames without their outer tag, to frames that contain it. `beside`: the tag may
/// also be in the metadata instead. Returns `None` if that needs too many slots, which are used for offsets computed from the
/// packet.
pub fn inner_tag(graph: &Graph, beside: bool) -> Option<Graph> {
    let mut to = graph.clone();
    let tagged = copy(graph, &mut to, &Tagged)?;
    let mut root = copy(graph, &mut to, &Untagged)?;
    if tagged == root {
        // The filter accepts or rejects every packet.
        return Some(graph.clone());
    }
    let ether_type = to.load(None, TAG, Width::Half);
    for tag in TAGS_OF_LINUX {
        root = to.equals(ether_type, tag.into(), (tagged, root), TermId::NONE);
    }
    if beside {
        let present = to.meta(Meta::VlanPresent);
        root = to.equals(present, 1, (graph.root(), root), TermId::NONE);
    }
    to.set_root(root);
    Some(to)
}

/// A frame that contains a tag.
struct Tagged;

impl PacketLayout for Tagged {
    fn meta(&self, to: &mut Graph, meta: Meta) -> ValueId {
        match meta {
            Meta::VlanPresent => to.constant(1),
            Meta::VlanProtocol => to.load(None, TAG, Width::Half),
            Meta::VlanTag => to.load(None, TAG + 2, Width::Half),
            Meta::Protocol => to.load(None, TAG + LENGTH, Width::Half),
            Meta::PacketType | Meta::Interface => to.meta(meta),
        }
    }

    fn length(&self, to: &mut Graph) -> ValueId {
        let length = to.value(Value::Length);
        to.with(Operation::Subtract, length, LENGTH)
    }

    fn load(&self, to: &mut Graph, load: Load) -> Option<ValueId> {
        let (least, most) = load.span?;
        if load.is_before(TAG) {
            Some(load.add(to, 0))
        } else if least >= TAG && most <= u32::MAX - LENGTH {
            Some(load.add(to, LENGTH))
        } else {
            None
        }
    }

    fn byte_at(&self, to: &mut Graph, at: ValueId) -> ValueId {
        // Negative from the tag on. Where the difference wraps, no frame has a byte.
        let last = to.constant(TAG - 1);
        let before = to.binary(Operation::Subtract, last, at);
        let behind = to.with(Operation::ShiftRight, before, 31);
        let four = to.with(Operation::Multiply, behind, LENGTH);
        let farther = to.binary(Operation::Add, at, four);
        to.load(Some(farther), 0, Width::Byte)
    }
}

/// A frame without a tag.
struct Untagged;

impl PacketLayout for Untagged {
    fn meta(&self, to: &mut Graph, meta: Meta) -> ValueId {
        match meta {
            Meta::VlanPresent | Meta::VlanProtocol | Meta::VlanTag => to.constant(0),
            Meta::Protocol => to.load(None, TAG, Width::Half),
            Meta::PacketType | Meta::Interface => to.meta(meta),
        }
    }
}
