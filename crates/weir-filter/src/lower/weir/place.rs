//! Places in a packet, and the slots in which a level keeps those it has found.

use weir_packet::most;

use super::link::{ETHERNET, Link, Radio};
use super::stage::{Kind, Stage};
use crate::graph::{Graph, Node, NodeId, Operation, Slot, Value, ValueId, Width};

/// A place in the packet: an offset from its start, or from a value known only at run time.
#[derive(Clone, Copy, Debug)]
pub(super) struct Place {
    base: Option<ValueId>,
    offset: u32,
}

impl Place {
    /// Returns the place at a fixed offset.
    pub(super) fn fixed(offset: u32) -> Self {
        Self { base: None, offset }
    }

    /// Returns the place in a slot.
    pub(super) fn noted(graph: &mut Graph, slot: Slot) -> Self {
        Self { base: Some(graph.value(Value::Slot(slot))), offset: 0 }
    }

    /// Returns the place `bytes` further on.
    pub(super) fn plus(self, bytes: u32) -> Self {
        Self { offset: self.offset.wrapping_add(bytes), ..self }
    }

    /// Returns the place `value` bytes further on.
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

    /// Loads the bytes at an offset from the place.
    pub(super) fn load(self, graph: &mut Graph, bytes: u32, width: Width) -> ValueId {
        graph.load(self.base, self.offset.wrapping_add(bytes), width)
    }

    /// Returns the place as a number.
    pub(super) fn value(self, graph: &mut Graph) -> ValueId {
        match self.base {
            Some(base) => graph.with(Operation::Add, base, self.offset),
            None => graph.constant(self.offset),
        }
    }
}

/// Maximum number of IPv6 extension headers to walk.
pub(super) const MOST_EXTENSIONS: usize = most::EXTENSIONS as usize;

/// Maximum number of GTP-U extension headers to walk.
pub(super) const MOST_GTP_EXTENSIONS: usize = most::GTP_EXTENSIONS as usize;

/// Place in the slots `link` and `llc` if the packet has no such header: beyond all packets, but not so far that
/// offsets from it wrap.
pub(super) const NO_LINK: u32 = 1 << 28;

/// Slots that the paths through a level assign.
#[derive(Clone, Copy, Debug)]
pub(super) struct Slots {
    /// Start of the Ethernet header, on inner levels; of SNAP, in 802.11 frames; or [`NO_LINK`].
    pub(super) link: Slot,
    /// Start of the 802.11 frame.
    pub(super) frame: Slot,
    /// Start of its LLC header, or [`NO_LINK`].
    pub(super) llc: Slot,
    /// Start of the network header.
    pub(super) network: Slot,
    /// Number of the network protocol in the header before; the EtherType for IPv4, IPv6 and ARP.
    pub(super) kind: Slot,
    /// Start of the transport header.
    pub(super) transport: Slot,
    /// Number of the transport protocol.
    pub(super) protocol: Slot,
    /// Start and number of each extension header except the first.
    pub(super) steps: [(Slot, Slot); MOST_EXTENSIONS],
    /// Start of each extension header of the enclosing tunnel (GTP-U).
    pub(super) options: [Slot; MOST_GTP_EXTENSIONS],
}

impl Slots {
    /// For a level that assigns no slots.
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

    /// Allocates the slots of a level: the start of its network header, and more if its IPv6 extension headers are
    /// walked, or if it is an inner packet or an 802.11 frame.
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

    /// Allocates slots for walking extension headers.
    pub(super) fn steps(graph: &mut Graph) -> [(Slot, Slot); MOST_EXTENSIONS] {
        std::array::from_fn(|_| (graph.slot(), graph.slot()))
    }
}

/// A level of encapsulation: the captured packet, or the one that an `inner(...)` tests.
#[derive(Clone, Copy, Debug)]
pub(super) struct Level {
    /// Its link layer, if it has one.
    pub(super) link: Link,
    /// Whether it is an inner packet.
    pub(super) inside: bool,
    /// Slots that its paths assign.
    pub(super) slots: Slots,
}

impl Level {
    /// Creates the level of the captured packet.
    pub(super) fn outermost(link: Link, slots: Slots) -> Self {
        Self { link, inside: false, slots }
    }

    /// Creates the level of a tunnel's payload.
    pub(super) fn within(slots: Slots) -> Self {
        Self { link: ETHERNET, inside: true, slots }
    }

    /// Returns whether its link header begins at a varying offset.
    pub(super) fn is_noted(&self) -> bool {
        self.inside || self.link.wlan.is_some()
    }

    /// Returns the start of its link header, where the number of the payload is.
    pub(super) fn link_header(&self, graph: &mut Graph) -> Place {
        if self.is_noted() { Place::noted(graph, self.slots.link) } else { Place::fixed(0) }
    }

    /// Returns the start of its frame, where the addresses are.
    pub(super) fn frame(&self, graph: &mut Graph) -> Place {
        match self.link.wlan {
            None => self.link_header(graph),
            Some(Radio::None) => Place::fixed(0),
            Some(_) => Place::noted(graph, self.slots.frame),
        }
    }

    /// Returns the start of its network header, at a stage where that is known.
    pub(super) fn network(&self, graph: &mut Graph, stage: Stage) -> Place {
        match stage {
            Stage::Fixed(_) | Stage::Plain => Place::fixed(self.link.header),
            _ => Place::noted(graph, self.slots.network),
        }
    }

    /// Returns the start of its transport header, at a stage where that is known.
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

    /// Returns the number of the transport protocol, at a stage where that is known.
    pub(super) fn protocol(&self, graph: &mut Graph, stage: Stage) -> ValueId {
        match stage {
            Stage::Chained | Stage::Later => graph.value(Value::Slot(self.slots.protocol)),
            Stage::Plain => self.network(graph, stage).load(graph, 6, Width::Byte),
            _ => self.network(graph, stage).load(graph, 9, Width::Byte),
        }
    }

    /// Returns the number of the network protocol in the header before.
    pub(super) fn kind(&self, graph: &mut Graph, stage: Stage) -> ValueId {
        match stage {
            Stage::Fixed(Kind::Other) => graph.load(None, self.link.kind, self.link.width()),
            _ => graph.value(Value::Slot(self.slots.kind)),
        }
    }
}

/// Adds an assignment of `value` that continues at `next`.
pub(super) fn assign(graph: &mut Graph, slot: Slot, value: ValueId, next: NodeId) -> NodeId {
    graph.push(Node::Assign { slot, value, next })
}
