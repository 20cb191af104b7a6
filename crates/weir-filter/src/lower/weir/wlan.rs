//! 802.11 frames: where they begin, and where their payload begins.

use super::find::{Arrive, Search};
use super::link::Radio;
use super::place::{NO_LINK, Place, assign};
use super::stage::{Kind, Stage};
use crate::graph::{Graph, NodeId, Operation, Value, ValueId, Width};

/// `LINKTYPE_IEEE802_11`, in PPI's byte order: little-endian.
const WLAN: u32 = 105u32.swap_bytes();
/// Length of a header with three addresses.
const SHORTEST: u32 = 24;
/// LLC for SNAP, unnumbered, and the first byte of the organisation.
const SNAP: u32 = 0xaaaa_0300;
/// The rest of the organisation: plain EtherTypes (RFC 1042), and those that bridges treat specially (IEEE 802.1H).
const ORGANISATIONS: [u32; 2] = [0, 0xf8];
/// Stands for the lack of an EtherType.
const NO_NUMBER: u32 = u32::MAX;

impl Search<'_> {
    /// Assigns the start of the frame, after the radio header. This must come before everything else.
    pub(super) fn radio(&mut self, next: NodeId) -> NodeId {
        let slot = self.level.slots.frame;
        let read = self.graph.known(Value::Slot(slot)).is_some();
        let Some(radio) = self.level.link.wlan.filter(|radio| read || *radio == Radio::Ppi) else {
            return next;
        };
        let little_endian = self.little_endian();
        let avs = self.graph.load(None, 4, Width::Word);
        match radio {
            Radio::None => next,
            Radio::Radiotap => assign(self.graph, slot, little_endian, next),
            Radio::Avs => assign(self.graph, slot, avs, next),
            // Drivers that claim Prism may send an AVS header, which begins with its version.
            Radio::Prism => {
                let first = self.graph.load(None, 0, Width::Word);
                let version = self.graph.with(Operation::And, first, 0xffff_f000);
                let prism = self.assign_number(slot, 144, next);
                let avs = assign(self.graph, slot, avs, next);
                self.equals(version, 0x8021_1000, avs, prism)
            }
            Radio::Ppi => {
                let next = if read { assign(self.graph, slot, little_endian, next) } else { next };
                let link_type = self.graph.load(None, 4, Width::Word);
                self.equals(link_type, WLAN, next, Graph::REFUSE)
            }
        }
    }

    /// Returns the length of a radio header, from bytes 2 and 3.
    fn little_endian(&mut self) -> ValueId {
        let [low, high] = [2, 3].map(|place| self.graph.load(None, place, Width::Byte));
        let high = self.graph.with(Operation::ShiftLeft, high, 8);
        self.graph.binary(Operation::Or, low, high)
    }

    /// Tests whether the frame carries data, and whether an EtherType identifies it.
    pub(super) fn payload(&mut self, to: Arrive<'_>) -> NodeId {
        let slots = self.level.slots;
        let frame = self.level.frame(self.graph);
        let llc = Place::noted(self.graph, slots.llc);
        let place = llc.value(self.graph);

        let other = to(Stage::Moved(Kind::Other));
        let number = self.graph.constant(NO_NUMBER);
        let other = self.note_network(Place::fixed(NO_LINK), number, other);
        let other = self.assign_number(slots.link, NO_LINK, other);
        let typed = to(Stage::Unknown);
        let typed = assign(self.graph, slots.link, place, typed);

        let rest = llc.load(self.graph, 4, Width::Half);
        let node = self.one_of(rest, &ORGANISATIONS, typed, other);
        let first = llc.load(self.graph, 0, Width::Word);
        let node = self.equals(first, SNAP, node, other);
        let with_data = self.note_payload(frame, node);
        let without = self.assign_number(slots.llc, NO_LINK, other);
        // Version 0, a data frame, and not of a subtype without data.
        let control = frame.load(self.graph, 0, Width::Byte);
        let kind = self.graph.with(Operation::And, control, 0x4f);
        self.equals(kind, 0x08, with_data, without)
    }

    /// Assigns the start of a data frame's payload: after three or four addresses and the QoS fields.
    fn note_payload(&mut self, frame: Place, next: NodeId) -> NodeId {
        let slot = self.level.slots.llc;
        let graph = &mut *self.graph;
        let [control, flags] = [0, 1].map(|place| frame.load(graph, place, Width::Byte));
        let quality = graph.with(Operation::ShiftRight, control, 7);
        let two = graph.with(Operation::ShiftLeft, quality, 1);
        // In QoS frames, the order bit announces four bytes of high-throughput control.
        let order = graph.with(Operation::ShiftRight, flags, 7);
        let throughput = graph.binary(Operation::And, quality, order);
        let four = graph.with(Operation::ShiftLeft, throughput, 2);
        // To and from the distribution system: a fourth address.
        let from = graph.with(Operation::ShiftRight, flags, 1);
        let both = graph.binary(Operation::And, flags, from);
        let both = graph.with(Operation::And, both, 1);
        let six = graph.with(Operation::Multiply, both, 6);
        let more = graph.binary(Operation::Add, two, four);
        let more = graph.binary(Operation::Add, more, six);

        let end = frame.plus(SHORTEST);
        let place = end.plus_value(graph, more).value(graph);
        let plain = assign(graph, slot, place, next);
        if self.level.link.wlan != Some(Radio::Radiotap) {
            return plain;
        }
        let rounded = graph.with(Operation::Add, more, 3);
        let rounded = graph.with(Operation::And, rounded, !3);
        let place = end.plus_value(graph, rounded).value(graph);
        let padded = assign(graph, slot, place, next);
        self.padded(padded, plain)
    }

    /// Branches on whether radiotap says that the 802.11 header is padded to a multiple of four bytes. The flags are
    /// the first field, or follow an eight-byte timestamp. With more than one word of presence bits, padding is not
    /// assumed.
    fn padded(&mut self, padded: NodeId, plain: NodeId) -> NodeId {
        let present = self.graph.load(None, 4, Width::Word);
        let flags = [8, 16].map(|place| {
            let flags = self.graph.load(None, place, Width::Byte);
            self.any_bit(flags, 0x20, padded, plain)
        });
        let node = self.any_bit(present, 0x0100_0000, flags[1], flags[0]);
        // In the first word, little-endian: flags are present, another word is not.
        let wanted = self.graph.with(Operation::And, present, 0x0200_0080);
        self.equals(wanted, 0x0200_0000, node, plain)
    }
}
