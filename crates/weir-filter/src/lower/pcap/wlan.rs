//! 802.11: a header whose length and addresses depend on its first two bytes, often preceded by a radio header.

use super::condition::Condition;
use super::layers::Link;
use super::layers::{From, Place};
use super::{Lowered, Lowering};
use crate::ast::Direction;
use crate::graph::{Operation, Relation, Slot, Value, ValueId, Width};

/// Bits in the first byte of frame control.
const CONTROL: u32 = 0x04;
const DATA: u32 = 0x08;
const QOS: u32 = 0x80;
const TYPE_MASK: u32 = 0x0c;
const SUBTYPE_MASK: u32 = 0xf0;
const CTS: u32 = 0xc0;
const ACK: u32 = 0xd0;
/// Bits in its second byte.
const TO_DS: u32 = 0x01;
const FROM_DS: u32 = 0x02;

/// Slots for places after headers of variable length, assigned before any term is tested.
#[derive(Clone, Copy, Debug)]
pub(super) struct Prefix {
    /// Start of 802.11, after the radio header.
    header: Option<Slot>,
    /// Start of its payload.
    payload: Slot,
}

impl Lowering<'_> {
    /// Makes places count from slots if the link type's headers are of variable length.
    pub(super) fn find_prefix(&mut self) -> Option<Prefix> {
        let link = self.layers.link;
        if !link.is_wlan() && link != Link::Pflog {
            return None;
        }
        let header = link.has_radio_header().then(|| self.graph.slot());
        let payload = self.graph.slot();
        if let Some(slot) = header {
            self.layers.link_header = Place::in_slot(slot);
            self.layers.previous_link_header = self.layers.link_header;
        }
        self.layers.payload = Place::in_slot(payload);
        Some(Prefix { header, payload })
    }

    /// Assigns the places that terms use. This must come before the first term.
    pub(super) fn note_prefix(&mut self, prefix: Prefix) -> Condition {
        let payload_used = self.is_used(prefix.payload);
        if !payload_used && !prefix.header.is_some_and(|slot| self.is_used(slot)) {
            return Condition::Always(true);
        }
        if self.outermost == Link::Pflog {
            let length = self.graph.load(None, 0, Width::Byte);
            return Condition::Note(prefix.payload, self.rounded_up(length));
        }
        let mut parts = Vec::new();
        if let Some(slot) = prefix.header {
            parts.push(self.note_radio_header(slot));
        }
        if payload_used {
            parts.push(self.note_payload(prefix));
        }
        Condition::All(parts)
    }

    fn is_used(&self, slot: Slot) -> bool {
        self.graph.values().contains(&Value::Slot(slot))
    }

    /// Assigns the length of the radio header.
    fn note_radio_header(&mut self, slot: Slot) -> Condition {
        match self.outermost {
            // Drivers that claim Prism may send an AVS header, which begins with its version.
            Link::Prism => {
                let cookie = self.masked((From::Packet, 0, Width::Word), 0xffff_f000, 0x8021_1000);
                let (avs, prism) = (self.graph.load(None, 4, Width::Word), self.graph.constant(144));
                cookie.choose(Condition::Note(slot, avs), Condition::Note(slot, prism))
            }
            Link::Avs => Condition::Note(slot, self.graph.load(None, 4, Width::Word)),
            _ => {
                let [low, high] = [2, 3].map(|place| self.graph.load(None, place, Width::Byte));
                let high = self.graph.with(Operation::ShiftLeft, high, 8);
                Condition::Note(slot, self.graph.binary(Operation::Or, low, high))
            }
        }
    }

    /// Assigns the start of the payload: 24 bytes after the header's start, 26 in QoS data frames.
    fn note_payload(&mut self, prefix: Prefix) -> Condition {
        let header = match prefix.header {
            Some(slot) => self.slot(slot),
            None => self.graph.constant(0),
        };
        let control = self.graph.load(Some(header), 0, Width::Byte);
        let [short, long] = [24, 26].map(|length| self.graph.with(Operation::Add, header, length));
        let plain = Condition::Note(prefix.payload, short);
        let [short, long] = [short, long].map(|end| self.note_padded(prefix.payload, end));
        let [data, other, qos] = [DATA, CONTROL, QOS].map(|bit| self.compare(Relation::AnyBit, control, bit));
        data.choose(other.choose(plain.clone(), qos.choose(long, short)), plain)
    }

    /// Assigns the end of a data frame's 802.11 header, including padding if radiotap's flags announce any.
    ///
    /// Like libpcap, it checks the innermost link type, so padding is ignored if `pppoes` or a tunnel is in the
    /// expression.
    fn note_padded(&mut self, slot: Slot, end: ValueId) -> Condition {
        let unpadded = Condition::Note(slot, end);
        if self.layers.link != Link::Radiotap {
            return unpadded;
        }
        // First word of presence bits, little-endian: flags, another word, an eight-byte timestamp.
        let present = self.graph.load(None, 4, Width::Word);
        let [flags, further, stamp] =
            [0x0200_0000, 0x80, 0x0100_0000].map(|bit| self.compare(Relation::AnyBit, present, bit));
        let [first, second] = [8, 16].map(|place| self.bits(From::Packet, place, 0x20));
        let padded = Condition::All(vec![flags, further.negated(), stamp.choose(second, first)]);
        let rounded = self.rounded_up(end);
        padded.choose(Condition::Note(slot, rounded), unpadded)
    }

    /// Rounds `value` up to a multiple of four.
    fn rounded_up(&mut self, value: ValueId) -> ValueId {
        let value = self.graph.with(Operation::Add, value, 3);
        self.graph.with(Operation::And, value, !3)
    }

    /// Tests for data frames.
    pub(super) fn is_wlan_data(&mut self) -> Condition {
        self.bits(From::Link, 0, CONTROL).negated().and(self.bits(From::Link, 0, DATA))
    }

    /// Applies `test` to the source or destination address of data and management frames, whose offset varies.
    pub(super) fn wlan_end(
        &mut self,
        source: bool,
        mut test: impl FnMut(&mut Self, u32) -> Condition,
    ) -> Condition {
        let far = if source { 24 } else { 16 };
        let to_ds = self.bits(From::Link, 1, TO_DS);
        let near = if source { 10 } else { 4 };
        let in_data = if source {
            // From the distribution system: after the address of the access point.
            let relayed =
                Condition::Any(vec![to_ds.clone().negated().and(test(self, 16)), to_ds.and(test(self, far))]);
            let from_ds = self.bits(From::Link, 1, FROM_DS);
            Condition::Any(vec![from_ds.clone().negated().and(test(self, near)), from_ds.and(relayed)])
        } else {
            Condition::Any(vec![to_ds.clone().negated().and(test(self, near)), to_ds.and(test(self, far))])
        };
        let data = self.bits(From::Link, 0, DATA);
        let either = Condition::Any(vec![data.clone().negated().and(test(self, near)), data.and(in_data)]);
        self.bits(From::Link, 0, CONTROL).negated().and(either)
    }

    /// Tests a MAC address of 802.11.
    pub(super) fn wlan_address(&mut self, address: [u8; 6], direction: Direction) -> Lowered {
        let is_at = |this: &mut Self, place| this.bytes(From::Link, place, &address);
        Ok(match direction {
            Direction::Source => self.wlan_end(true, is_at),
            Direction::Destination => self.wlan_end(false, is_at),
            Direction::And => self.wlan_end(true, is_at).and(self.wlan_end(false, is_at)),
            Direction::Default | Direction::Or => self.wlan_end(true, is_at).or(self.wlan_end(false, is_at)),
            Direction::Address(1) => is_at(self, 4),
            Direction::Address(2) => self.has_transmitter().and(is_at(self, 10)),
            Direction::Address(3) => self.first(TYPE_MASK, CONTROL).negated().and(is_at(self, 16)),
            Direction::Address(_) => {
                let both = TO_DS | FROM_DS;
                self.masked((From::Link, 1, Width::Byte), both, both).and(is_at(self, 24))
            }
            Direction::Receiver => self.bits(From::Link, 0, DATA).and(is_at(self, 4)),
            Direction::Transmitter => {
                let data = self.bits(From::Link, 0, DATA);
                data.and(self.has_transmitter()).and(is_at(self, 10))
            }
        })
    }

    /// Tests for frames with a transmitter address, which CTS and ACK frames lack.
    fn has_transmitter(&mut self) -> Condition {
        let other = self.first(TYPE_MASK, CONTROL).negated();
        let named = self.first(SUBTYPE_MASK, CTS).negated().and(self.first(SUBTYPE_MASK, ACK).negated());
        other.or(named)
    }

    /// Tests the first byte under a mask.
    fn first(&mut self, mask: u32, value: u32) -> Condition {
        self.masked((From::Link, 0, Width::Byte), mask, value)
    }

    /// Lowers `type` and `subtype`: the first byte.
    pub(super) fn wlan_type(&mut self, value: u32, mask: u32) -> Lowered {
        if !self.layers.link.has_wlan_types() {
            return Err(self.cannot("the type of 802.11 frames"));
        }
        Ok(self.first(mask, value))
    }

    /// Lowers `dir`: two bits of the second byte.
    pub(super) fn wlan_direction(&mut self, direction: u32) -> Lowered {
        if !self.layers.link.has_wlan_types() {
            return Err(self.cannot("the direction of 802.11 frames"));
        }
        Ok(self.masked((From::Link, 1, Width::Byte), TO_DS | FROM_DS, direction))
    }
}
