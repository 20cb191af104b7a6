//! Where the headers are that terms ask about.
//!
//! In libpcap's language some terms (`vlan`, `mpls`, `pppoes`, `geneve`, ...) move the headers for all terms that come later
//! in the text, whatever connects them. So this is a state, changed in the order of the text.

use super::Lowering;
use super::condition::Condition;
use super::link::Link;
use crate::graph::{Operation, Relation, Slot, Value, ValueId, Width};

/// Where a header is that the link type does not have. Sums with it wrap, as libpcap's do.
pub(super) const NOWHERE: u32 = u32::MAX;

/// A place in the packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Place {
    /// What it counts from, besides the beginning of the packet.
    pub(super) variable: Option<Slot>,
    /// Bytes from there.
    pub(super) constant: u32,
}

impl Place {
    /// At a fixed place.
    pub(super) fn at(constant: u32) -> Self {
        Self { variable: None, constant }
    }

    /// Where a slot says.
    pub(super) fn in_slot(slot: Slot) -> Self {
        Self { variable: Some(slot), constant: 0 }
    }

    /// Some bytes further.
    pub(super) fn plus(self, bytes: u32) -> Self {
        Self { constant: self.constant.wrapping_add(bytes), ..self }
    }
}

/// Where the headers are.
#[derive(Clone, Copy, Debug)]
pub(super) struct Layers {
    /// The innermost link layer.
    pub(super) link: Link,
    /// The one outside of it.
    pub(super) previous_link: Link,
    /// Where the innermost link layer begins.
    pub(super) link_header: Place,
    /// Where the one outside of it begins.
    pub(super) previous_link_header: Place,
    /// Where the first one begins, as far as that is constant.
    pub(super) outermost: u32,
    /// What tells the protocol of the payload: an EtherType, or what stands for it.
    pub(super) kind: Place,
    /// What comes behind the link layer: for 802 networks, LLC.
    pub(super) payload: Place,
    /// Where the network header begins in the payload; behind SNAP, where that is usual.
    pub(super) network: u32,
    /// The same without SNAP.
    pub(super) network_without_snap: u32,
    /// MPLS labels passed.
    pub(super) labels: u32,
    /// VLAN tags passed.
    pub(super) tags: u32,
    /// The innermost link layer is in a tunnel that need not carry frames.
    pub(super) tunnel: bool,
}

impl Layers {
    /// Goes into the frame or packet of `link` that begins at `place`.
    pub(super) fn enter(&mut self, link: Link, place: Place) {
        (self.previous_link, self.previous_link_header) = (self.link, self.link_header);
        (self.link, self.link_header, self.tunnel) = (link, place, false);
    }

    /// What the places count from.
    pub(super) fn slots(&self) -> impl Iterator<Item = Slot> {
        [self.link_header, self.previous_link_header, self.kind, self.payload]
            .into_iter()
            .filter_map(|place| place.variable)
    }
}

/// What an offset counts from.
#[derive(Clone, Copy, Debug)]
pub(super) enum From {
    /// The beginning of the packet.
    Packet,
    /// The innermost link layer.
    Link,
    /// The link layer outside of it.
    PreviousLink,
    /// What tells the protocol.
    Kind,
    /// What is behind the link layer.
    Payload,
    /// The network header.
    Network,
    /// The network header, there being no SNAP.
    NetworkWithoutSnap,
    /// Behind the IPv4 header, however long.
    Transport4,
    /// Behind the first 40 bytes of the IPv6 header.
    Transport6,
}

impl Lowering<'_> {
    /// What a slot holds.
    pub(super) fn slot(&mut self, slot: Slot) -> ValueId {
        self.graph.value(Value::Slot(slot))
    }

    /// What a place counts from, if it does.
    pub(super) fn base(&mut self, place: Place) -> Option<ValueId> {
        place.variable.map(|slot| self.slot(slot))
    }

    /// Bytes at a place.
    pub(super) fn load_at(&mut self, place: Place, width: Width) -> ValueId {
        let base = self.base(place);
        self.graph.load(base, place.constant, width)
    }

    /// Where the network header begins.
    pub(super) fn network(&self) -> Place {
        self.layers.payload.plus(self.layers.network)
    }

    /// Bytes of a header.
    pub(super) fn load(&mut self, from: From, offset: u32, width: Width) -> ValueId {
        let layers = &self.layers;
        let place = match from {
            From::Packet => Place::at(0),
            From::Link => layers.link_header,
            From::PreviousLink => layers.previous_link_header,
            From::Kind => layers.kind,
            From::Payload => layers.payload,
            From::Network => self.network(),
            From::NetworkWithoutSnap => layers.payload.plus(layers.network_without_snap),
            From::Transport6 => self.network().plus(40),
            From::Transport4 => {
                let behind = self.behind_ipv4();
                let constant = self.network().constant.wrapping_add(offset);
                return self.graph.load(Some(behind), constant, width);
            }
        };
        self.load_at(place.plus(offset), width)
    }

    /// Length of the IPv4 header, plus what the network header's place counts from.
    pub(super) fn behind_ipv4(&mut self) -> ValueId {
        let first = self.load(From::Network, 0, Width::Byte);
        let words = self.graph.with(Operation::And, first, 0xf);
        let length = self.graph.with(Operation::ShiftLeft, words, 2);
        match self.base(self.layers.payload) {
            Some(base) => self.graph.binary(Operation::Add, length, base),
            None => length,
        }
    }

    /// `value relation number`.
    pub(super) fn compare(&mut self, relation: Relation, value: ValueId, number: u32) -> Condition {
        let number = self.graph.constant(number);
        Condition::Compare(relation, value, number)
    }

    /// A field that has a value.
    pub(super) fn field(&mut self, from: From, offset: u32, width: Width, number: u32) -> Condition {
        let value = self.load(from, offset, width);
        self.compare(Relation::Equal, value, number)
    }

    /// A field that has a value under a mask.
    pub(super) fn masked(
        &mut self,
        (from, offset, width): (From, u32, Width),
        mask: u32,
        number: u32,
    ) -> Condition {
        let mut value = self.load(from, offset, width);
        if mask != u32::MAX {
            value = self.graph.with(Operation::And, value, mask);
        }
        self.compare(Relation::Equal, value, number)
    }

    /// A byte of which some of these bits are set.
    pub(super) fn bits(&mut self, from: From, offset: u32, mask: u32) -> Condition {
        let value = self.load(from, offset, Width::Byte);
        self.compare(Relation::AnyBit, value, mask)
    }

    /// Bytes that are these: compared from the last to the first, as many at once as can be.
    pub(super) fn bytes(&mut self, from: From, offset: u32, bytes: &[u8]) -> Condition {
        let mut parts = Vec::new();
        let mut rest = bytes;
        while !rest.is_empty() {
            let width = match rest.len() {
                4.. => Width::Word,
                2.. => Width::Half,
                _ => Width::Byte,
            };
            let (front, back) = rest.split_at(rest.len() - width as usize);
            let number = back.iter().fold(0, |number, &byte| number << 8 | u32::from(byte));
            let place = u32::try_from(front.len()).expect("a header's field is short");
            parts.push(self.field(from, offset.wrapping_add(place), width, number));
            rest = front;
        }
        Condition::All(parts)
    }
}
