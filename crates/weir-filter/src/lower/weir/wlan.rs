//! Frames of 802.11: where they begin, and where what they carry begins.

use super::find::{Arrive, Search};
use super::link::Radio;
use super::place::{NO_LINK, Place, assign};
use super::stage::{Kind, Stage};
use crate::graph::{Graph, NodeId, Operation, Value, ValueId, Width};

/// `LINKTYPE_IEEE802_11`, as PPI has it: little-endian.
const WLAN: u32 = 105u32.swap_bytes();
/// Header of a frame with three addresses.
const SHORTEST: u32 = 24;
/// LLC of SNAP, unnumbered, and the organisation's first byte.
const SNAP: u32 = 0xaaaa_0300;
/// The rest of the organisation: EtherTypes as they are (RFC 1042), and those of which a bridge has to know (IEEE 802.1H).
const ORGANISATIONS: [u32; 2] = [0, 0xf8];
/// In place of an EtherType: none.
const NO_NUMBER: u32 = u32::MAX;

impl Search<'_> {
    /// Notes where the frame begins behind the header of the radio, in front of everything.
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
            // Drivers that say Prism may send the header of AVS, which begins with its version.
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

    /// The length of a radio header, in bytes 2 and 3.
    fn little_endian(&mut self) -> ValueId {
        let [low, high] = [2, 3].map(|place| self.graph.load(None, place, Width::Byte));
        let high = self.graph.with(Operation::ShiftLeft, high, 8);
        self.graph.binary(Operation::Or, low, high)
    }

    /// Whether the frame carries data, and whether an EtherType says which.
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
        // Of version 0, data, and not of a subtype without.
        let control = frame.load(self.graph, 0, Width::Byte);
        let kind = self.graph.with(Operation::And, control, 0x4f);
        self.equals(kind, 0x08, with_data, without)
    }

    /// Notes where a data frame's payload begins: behind three or four addresses and what comes with quality of service.
    fn note_payload(&mut self, frame: Place, next: NodeId) -> NodeId {
        let slot = self.level.slots.llc;
        let graph = &mut *self.graph;
        let [control, flags] = [0, 1].map(|place| frame.load(graph, place, Width::Byte));
        let quality = graph.with(Operation::ShiftRight, control, 7);
        let two = graph.with(Operation::ShiftLeft, quality, 1);
        // The bit for order says there that four bytes of high-throughput control follow.
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

    /// Whether radiotap says that the header of 802.11 is padded to a multiple of four bytes. Its flags come first, behind a
    /// time stamp of eight bytes; where there are further words of presence bits, nobody pads.
    fn padded(&mut self, padded: NodeId, plain: NodeId) -> NodeId {
        let present = self.graph.load(None, 4, Width::Word);
        let flags = [8, 16].map(|place| {
            let flags = self.graph.load(None, place, Width::Byte);
            self.any_bit(flags, 0x20, padded, plain)
        });
        let node = self.any_bit(present, 0x0100_0000, flags[1], flags[0]);
        // Of the first word, little-endian: flags are there, and no further word is.
        let wanted = self.graph.with(Operation::And, present, 0x0200_0080);
        self.equals(wanted, 0x0200_0000, node, plain)
    }
}
