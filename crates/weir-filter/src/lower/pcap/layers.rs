//! Places of the headers that terms test.
//!
//! In libpcap's language some terms (`vlan`, `mpls`, `pppoes`, `geneve`, ...) move the headers for all later terms in
//! the text, regardless of the connectives. The places are therefore a state that changes in source order.

use super::Lowering;
use super::condition::Condition;
use crate::graph::{Operation, Relation, Slot, Value, ValueId, Width};

/// How packets begin, where that affects the meaning of a filter. Numbers are those of
/// <https://www.tcpdump.org/linktypes.html>.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs, reason = "the names are those of the link types")]
pub(super) enum Link {
    Ethernet,
    NetAnalyzer,
    Null,
    Loop,
    Enc,
    Raw,
    Ipv4,
    Ipv6,
    Sll,
    Sll2,
    Ppp,
    PppWithDirection,
    PppSerial,
    PppEther,
    PppBsdOs,
    CiscoHdlc,
    Slip,
    Wlan,
    Radiotap,
    Prism,
    Avs,
    Ppi,
    Fddi,
    TokenRing,
    Rfc1483,
    AtmClip,
    SunAtm,
    IpOverFibreChannel,
    ArcNet,
    LocalTalk,
    FrameRelay,
    MultilinkFrameRelay,
    /// Other headers with an EtherType at a fixed offset: IP over FireWire, Symantec's firewall.
    Typed,
    Ipnet,
    Pflog,
    Juniper,
    BacnetMsTp,
    /// Signalling System 7.
    Mtp,
    /// Only the start of the packet is known.
    Other,
}

/// Offset of a header that the link type does not have. Sums with it wrap, as in libpcap.
pub(super) const NOWHERE: u32 = u32::MAX;

/// A place in the packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Place {
    /// Slot with the base; without one, the place counts from the start of the packet.
    pub(super) variable: Option<Slot>,
    /// Offset in bytes.
    pub(super) constant: u32,
}

impl Place {
    /// Returns a fixed place.
    pub(super) fn at(constant: u32) -> Self {
        Self { variable: None, constant }
    }

    /// Returns the place in a slot.
    pub(super) fn in_slot(slot: Slot) -> Self {
        Self { variable: Some(slot), constant: 0 }
    }

    /// Returns the place `bytes` further on.
    pub(super) fn plus(self, bytes: u32) -> Self {
        Self { constant: self.constant.wrapping_add(bytes), ..self }
    }
}

/// Places of the headers.
#[derive(Clone, Copy, Debug)]
pub(super) struct Layers {
    /// Innermost link layer.
    pub(super) link: Link,
    /// Link layer around it.
    pub(super) previous_link: Link,
    /// Start of the innermost link layer.
    pub(super) link_header: Place,
    /// Start of the link layer around it.
    pub(super) previous_link_header: Place,
    /// Start of the outermost link layer, if constant.
    pub(super) outermost: u32,
    /// Place of the number that identifies the payload: an EtherType or its equivalent.
    pub(super) kind: Place,
    /// End of the link layer: for 802 networks, the LLC header.
    pub(super) payload: Place,
    /// Offset of the network header in the payload, after SNAP where that is usual.
    pub(super) network: u32,
    /// Offset of the network header in the payload if there is no SNAP header.
    pub(super) network_without_snap: u32,
    /// Number of MPLS labels passed.
    pub(super) labels: u32,
    /// Number of VLAN tags passed.
    pub(super) tags: u32,
    /// Whether the innermost link layer is in a tunnel that can carry something other than a frame.
    pub(super) tunnel: bool,
}

impl Layers {
    /// Enters a frame or packet of type `link` at `place`.
    pub(super) fn enter(&mut self, link: Link, place: Place) {
        (self.previous_link, self.previous_link_header) = (self.link, self.link_header);
        (self.link, self.link_header, self.tunnel) = (link, place, false);
    }

    /// Returns the slots that places count from.
    pub(super) fn slots(&self) -> impl Iterator<Item = Slot> {
        [self.link_header, self.previous_link_header, self.kind, self.payload]
            .into_iter()
            .filter_map(|place| place.variable)
    }
}

/// The base of an offset.
#[derive(Clone, Copy, Debug)]
pub(super) enum From {
    /// Start of the packet.
    Packet,
    /// Innermost link layer.
    Link,
    /// Link layer around it.
    PreviousLink,
    /// The number that identifies the payload.
    Kind,
    /// End of the link layer.
    Payload,
    /// Network header.
    Network,
    /// Network header, without SNAP.
    NetworkWithoutSnap,
    /// End of the IPv4 header, whatever its length.
    Transport4,
    /// End of the fixed IPv6 header, 40 bytes.
    Transport6,
}

impl Lowering<'_> {
    /// Returns the content of a slot.
    pub(super) fn slot(&mut self, slot: Slot) -> ValueId {
        self.graph.value(Value::Slot(slot))
    }

    /// Returns the base of a place, if it has one.
    pub(super) fn base(&mut self, place: Place) -> Option<ValueId> {
        place.variable.map(|slot| self.slot(slot))
    }

    /// Loads bytes at a place.
    pub(super) fn load_at(&mut self, place: Place, width: Width) -> ValueId {
        let base = self.base(place);
        self.graph.load(base, place.constant, width)
    }

    /// Returns the start of the network header.
    pub(super) fn network(&self) -> Place {
        self.layers.payload.plus(self.layers.network)
    }

    /// Loads bytes of a header.
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

    /// Returns the length of the IPv4 header plus the base of the network header's place.
    pub(super) fn behind_ipv4(&mut self) -> ValueId {
        let first = self.load(From::Network, 0, Width::Byte);
        let words = self.graph.with(Operation::And, first, 0xf);
        let length = self.graph.with(Operation::ShiftLeft, words, 2);
        match self.base(self.layers.payload) {
            Some(base) => self.graph.binary(Operation::Add, length, base),
            None => length,
        }
    }

    /// Tests `value relation number`.
    pub(super) fn compare(&mut self, relation: Relation, value: ValueId, number: u32) -> Condition {
        let number = self.graph.constant(number);
        Condition::Compare(relation, value, number)
    }

    /// Tests whether a field has a value.
    pub(super) fn field(&mut self, from: From, offset: u32, width: Width, number: u32) -> Condition {
        let value = self.load(from, offset, width);
        self.compare(Relation::Equal, value, number)
    }

    /// Tests whether a field has a value under a mask.
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

    /// Tests whether any of these bits of a byte is set.
    pub(super) fn bits(&mut self, from: From, offset: u32, mask: u32) -> Condition {
        let value = self.load(from, offset, Width::Byte);
        self.compare(Relation::AnyBit, value, mask)
    }

    /// Compares bytes, from the last to the first, in pieces as large as possible.
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
