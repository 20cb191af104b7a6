//! Places in a packet, and the slots of a level in which found ones are kept.

use super::link::{ETHERNET, Link, Radio};
use super::stage::{Kind, Stage};
use crate::graph::{Graph, Node, NodeId, Operation, Slot, Value, ValueId, Width};

/// A place in the packet: bytes from its beginning, or from what only the packet knows.
#[derive(Clone, Copy, Debug)]
pub(super) struct Place {
    base: Option<ValueId>,
    offset: u32,
}

impl Place {
    /// So many bytes from the packet's beginning.
    pub(super) fn fixed(offset: u32) -> Self {
        Self { base: None, offset }
    }

    /// Where `slot` says.
    pub(super) fn noted(graph: &mut Graph, slot: Slot) -> Self {
        Self { base: Some(graph.value(Value::Slot(slot))), offset: 0 }
    }

    /// So many bytes on.
    pub(super) fn plus(self, bytes: u32) -> Self {
        Self { offset: self.offset.wrapping_add(bytes), ..self }
    }

    /// As many bytes on as `value` says.
    pub(super) fn plus_value(self, graph: &mut Graph, value: ValueId) -> Self {
        if let Some(number) = graph.as_constant(value) {
            return self.plus(number);
        }
        let base = match self.base {
            Some(base) => graph.binary(Operation::Add, base, value),
            None => value,
        };
        Self { base: Some(base), ..self }
    }

    /// What is `bytes` behind it.
    pub(super) fn load(self, graph: &mut Graph, bytes: u32, width: Width) -> ValueId {
        graph.load(self.base, self.offset.wrapping_add(bytes), width)
    }

    /// The place as a number.
    pub(super) fn value(self, graph: &mut Graph) -> ValueId {
        match self.base {
            Some(base) => graph.with(Operation::Add, base, self.offset),
            None => graph.constant(self.offset),
        }
    }
}

/// Most IPv6 extension headers that are walked.
pub(super) const MOST_EXTENSIONS: usize = 8;

/// Most extension headers of GTP-U that are walked.
pub(super) const MOST_GTP_EXTENSIONS: usize = 4;

/// In the slots `link` and `llc`: the packet has no such header. Behind all packets, but not so far that what is counted from
/// it wraps.
pub(super) const NO_LINK: u32 = 1 << 28;

/// What the paths through a level note.
#[derive(Clone, Copy, Debug)]
pub(super) struct Slots {
    /// Where the Ethernet header begins, on inner levels; SNAP, in frames of 802.11; or [`NO_LINK`].
    pub(super) link: Slot,
    /// Where the frame of 802.11 begins.
    pub(super) frame: Slot,
    /// Where its LLC header begins, or [`NO_LINK`].
    pub(super) llc: Slot,
    /// Where the network header begins.
    pub(super) network: Slot,
    /// Its number in the header before: an EtherType if it is IPv4, IPv6 or ARP.
    pub(super) kind: Slot,
    /// Where the transport header begins.
    pub(super) transport: Slot,
    /// Its number.
    pub(super) protocol: Slot,
    /// Of each extension header but the first, where it begins and which it is.
    pub(super) steps: [(Slot, Slot); MOST_EXTENSIONS],
    /// Where each extension header of the tunnel before (GTP-U) begins.
    pub(super) options: [Slot; MOST_GTP_EXTENSIONS],
}

impl Slots {
    /// For a level that notes nothing.
    pub(super) const NONE: Self = Self {
        link: Slot(0),
        frame: Slot(0),
        llc: Slot(0),
        network: Slot(0),
        kind: Slot(0),
        transport: Slot(0),
        protocol: Slot(0),
        steps: [(Slot(0), Slot(0)); MOST_EXTENSIONS],
        options: [Slot(0); MOST_GTP_EXTENSIONS],
    };

    /// Slots for what a level notes: where its network header is, and more if its IPv6 extension headers are walked, if it is
    /// inside of another, or a frame of 802.11.
    pub(super) fn new(graph: &mut Graph, walked: bool, inside: bool, wlan: bool) -> Self {
        let mut slots = Self { network: graph.slot(), kind: graph.slot(), ..Self::NONE };
        if walked {
            slots.transport = graph.slot();
            slots.protocol = graph.slot();
            slots.steps = Self::steps(graph);
        }
        if inside {
            slots.link = graph.slot();
            slots.options = std::array::from_fn(|_| graph.slot());
        }
        if wlan {
            (slots.link, slots.frame, slots.llc) = (graph.slot(), graph.slot(), graph.slot());
        }
        slots
    }

    /// Slots for a walk through extension headers.
    pub(super) fn steps(graph: &mut Graph) -> [(Slot, Slot); MOST_EXTENSIONS] {
        std::array::from_fn(|_| (graph.slot(), graph.slot()))
    }
}

/// A packet among those that are one inside the other: the captured one, or what an `inner(...)` looks at.
#[derive(Clone, Copy, Debug)]
pub(super) struct Level {
    /// Its link layer, if it has one.
    pub(super) link: Link,
    /// Whether it is inside of another.
    pub(super) inside: bool,
    /// What its paths note.
    pub(super) slots: Slots,
}

impl Level {
    /// The captured packet.
    pub(super) fn outermost(link: Link, slots: Slots) -> Self {
        Self { link, inside: false, slots }
    }

    /// What a tunnel carries.
    pub(super) fn within(slots: Slots) -> Self {
        Self { link: ETHERNET, inside: true, slots }
    }

    /// Whether the packet alone tells where its link header begins.
    pub(super) fn is_noted(&self) -> bool {
        self.inside || self.link.wlan.is_some()
    }

    /// Where its link header begins, with the number of what comes next.
    pub(super) fn link_header(&self, graph: &mut Graph) -> Place {
        if self.is_noted() { Place::noted(graph, self.slots.link) } else { Place::fixed(0) }
    }

    /// Where its frame begins, with the addresses.
    pub(super) fn frame(&self, graph: &mut Graph) -> Place {
        match self.link.wlan {
            None => self.link_header(graph),
            Some(Radio::None) => Place::fixed(0),
            Some(_) => Place::noted(graph, self.slots.frame),
        }
    }

    /// Where its network header begins, at a stage at which that is known.
    pub(super) fn network(&self, graph: &mut Graph, stage: Stage) -> Place {
        match stage {
            Stage::Fixed(_) | Stage::Plain => Place::fixed(self.link.header),
            _ => Place::noted(graph, self.slots.network),
        }
    }

    /// Where its transport header begins, at a stage at which that is known.
    pub(super) fn transport(&self, graph: &mut Graph, stage: Stage) -> Place {
        let network = self.network(graph, stage);
        match stage {
            Stage::Plain => network.plus(40),
            Stage::Chained => Place::noted(graph, self.slots.transport),
            _ => {
                let first = network.load(graph, 0, Width::Byte);
                let words = graph.with(Operation::And, first, 0xf);
                let length = graph.with(Operation::ShiftLeft, words, 2);
                network.plus_value(graph, length)
            }
        }
    }

    /// The number of the transport protocol, at a stage at which that is known.
    pub(super) fn protocol(&self, graph: &mut Graph, stage: Stage) -> ValueId {
        match stage {
            Stage::Chained | Stage::Later => graph.value(Value::Slot(self.slots.protocol)),
            Stage::Plain => self.network(graph, stage).load(graph, 6, Width::Byte),
            _ => self.network(graph, stage).load(graph, 9, Width::Byte),
        }
    }

    /// The number of the network protocol in the header before.
    pub(super) fn kind(&self, graph: &mut Graph, stage: Stage) -> ValueId {
        match stage {
            Stage::Fixed(Kind::Other) => graph.load(None, self.link.kind, self.link.width()),
            _ => graph.value(Value::Slot(self.slots.kind)),
        }
    }
}

/// Notes `value` before going on at `next`.
pub(super) fn assign(graph: &mut Graph, slot: Slot, value: ValueId, next: NodeId) -> NodeId {
    graph.push(Node::Assign { slot, value, next })
}
