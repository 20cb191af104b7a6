//! Steps into the packet that a tunnel carries.

use weir_packet::{ethertype, most, port, ppp, protocol};

use super::find::Search;
use super::place::{Level, MOST_GTP_EXTENSIONS, NO_LINK, Place, assign};
use super::stage::{Kind, Stage};
use crate::graph::{Graph, NodeId, Operation, ValueId, Width};

/// The outcome of a step to the inner packet.
#[derive(Clone, Copy, Debug)]
pub(super) enum Door {
    /// There is none: continue as before.
    None,
    /// There may be one. The facts about the outer packet have been saved; repeat the step at this stage.
    Again(Stage),
    /// The inner packet is reached at this stage.
    Inside(Stage),
}

/// Returns where to continue after an outcome.
pub(super) type Enter<'a> = &'a mut dyn FnMut(Door) -> NodeId;

const GRE: u32 = protocol::GRE as u32;
const UDP: u32 = protocol::UDP as u32;
const IP_IN_IP: u32 = protocol::IPV4 as u32;
const IP6_IN_IP: u32 = protocol::IPV6 as u32;
const MPLS: u32 = ethertype::MPLS as u32;
const MPLS_UPSTREAM: u32 = ethertype::MPLS_UPSTREAM as u32;
const PPPOE: u32 = ethertype::PPPOE as u32;
const BRIDGED: u32 = ethertype::BRIDGED as u32;
/// Maximum number of labels of an MPLS stack to walk.
pub(super) const MOST_LABELS: u32 = most::LABELS as u32;
const BOTTOM: u32 = 1;

/// A step from a packet to the inner one.
pub(super) struct Entry<'a> {
    /// Search at the level of the outer packet.
    pub(super) search: Search<'a>,
    /// Stage of the outer packet.
    pub(super) stage: Stage,
    /// Level of the inner packet.
    pub(super) within: &'a Level,
}

impl Entry<'_> {
    /// Enters the inner packet, if there is one.
    pub(super) fn enter(&mut self, to: Enter<'_>) -> NodeId {
        let kind = match (self.stage, self.stage.kind()) {
            (Stage::Later, _) | (_, None | Some(Kind::Arp)) => return to(Door::None),
            (_, Some(kind)) => kind,
        };
        match (self.stage, kind) {
            (Stage::Chained | Stage::Held(Kind::Ip4), _) => self.over_ip(to),
            (Stage::Held(_), _) => self.over_link(to),
            (_, Kind::Other) => self.perhaps_over_link(to),
            _ => self.perhaps_over_ip(to),
        }
    }

    /// Tests for the few protocols that may carry a packet, before saving anything.
    fn perhaps_over_ip(&mut self, to: Enter<'_>) -> NodeId {
        let protocol = self.search.level.protocol(self.search.graph, self.stage);
        let four = self.stage.kind() == Some(Kind::Ip4);
        let next = to(Door::Again(if four { Stage::Held(Kind::Ip4) } else { Stage::Chained }));
        let again = self.keep(next);
        let none = to(Door::None);
        self.search.one_of(protocol, &[UDP, GRE, IP_IN_IP, IP6_IN_IP], again, none)
    }

    /// Tests for the few EtherTypes that may carry a packet, before saving anything.
    fn perhaps_over_link(&mut self, to: Enter<'_>) -> NodeId {
        let level = self.search.level;
        let number = level.kind(self.search.graph, self.stage);
        let next = to(Door::Again(Stage::Held(Kind::Other)));
        let again = self.keep(next);
        let numbers: Vec<u32> =
            [MPLS, MPLS_UPSTREAM, PPPOE].into_iter().filter_map(|kind| level.link.number_of(kind)).collect();
        let none = to(Door::None);
        self.search.one_of(number, &numbers, again, none)
    }

    fn graph(&mut self) -> &mut Graph {
        self.search.graph
    }

    fn equals(&mut self, value: ValueId, number: u32, then: NodeId, other: NodeId) -> NodeId {
        self.search.equals(value, number, then, other)
    }

    fn any_bit(&mut self, value: ValueId, mask: u32, then: NodeId, other: NodeId) -> NodeId {
        self.search.any_bit(value, mask, then, other)
    }

    fn masked(&mut self, value: ValueId, mask: u32, number: u32, then: NodeId, other: NodeId) -> NodeId {
        let value = self.graph().with(Operation::And, value, mask);
        self.equals(value, number, then, other)
    }

    /// Handles tunnels over IP: by protocol, and over UDP by port.
    fn over_ip(&mut self, to: Enter<'_>) -> NodeId {
        let none = to(Door::None);
        let level = self.search.level;
        let protocol = level.protocol(self.search.graph, self.stage);
        let transport = level.transport(self.search.graph, self.stage);
        let udp = self.udp(transport, to);
        let gre = self.gre(transport, to);
        let ip4 = self.network_at(transport, Kind::Ip4, to);
        let ip6 = self.network_at(transport, Kind::Ip6, to);
        let mut node = none;
        for (number, there) in [(IP6_IN_IP, ip6), (IP_IN_IP, ip4), (GRE, gre), (UDP, udp)] {
            let there = self.unless_later(there, none);
            node = self.equals(protocol, number, there, node);
        }
        node
    }

    /// Continues at `then` unless this is a later fragment.
    fn unless_later(&mut self, then: NodeId, other: NodeId) -> NodeId {
        if self.stage.kind() != Some(Kind::Ip4) {
            return then;
        }
        let network = self.search.level.network(self.search.graph, self.stage);
        let piece = network.load(self.graph(), 6, Width::Half);
        self.any_bit(piece, 0x1fff, other, then)
    }

    /// Handles VXLAN (RFC 7348), Geneve (RFC 8926) and GTP-U (3GPP TS 29.281).
    fn udp(&mut self, transport: Place, to: Enter<'_>) -> NodeId {
        let none = to(Door::None);
        let port = transport.load(self.graph(), 2, Width::Half);
        let header = transport.plus(8);
        let flags = header.load(self.graph(), 0, Width::Byte);

        let there = self.ethernet_at(header.plus(8), to);
        let vxlan = self.any_bit(flags, 8, there, none);

        let words = self.graph().with(Operation::And, flags, 0x3f);
        let options = self.graph().with(Operation::ShiftLeft, words, 2);
        let inside = header.plus(8).plus_value(self.graph(), options);
        let carried = header.load(self.graph(), 2, Width::Half);
        let there = self.carried(inside, carried, to);
        let geneve = self.masked(flags, 0xc0, 0, there, none);

        let gtp = self.gtp(header, to);
        let mut node = none;
        for (number, there) in
            [(port::GTP_U, gtp), (port::GENEVE, geneve), (port::LINUX_VXLAN, vxlan), (port::VXLAN, vxlan)]
        {
            node = self.equals(port, number.into(), there, node);
        }
        node
    }

    /// Handles GRE (RFC 2784, 2890), version 0, without source routing.
    fn gre(&mut self, header: Place, to: Enter<'_>) -> NodeId {
        let none = to(Door::None);
        let graph = &mut *self.search.graph;
        let flags = header.load(graph, 0, Width::Half);
        let mut inside = header.plus(4);
        // Checksum, key and sequence number take four bytes each if their bit is set.
        for shift in [13, 11, 10] {
            let bit = graph.with(Operation::ShiftRight, flags, shift);
            let four = graph.with(Operation::And, bit, 4);
            inside = inside.plus_value(graph, four);
        }
        let carried = header.load(graph, 2, Width::Half);
        let there = self.carried(inside, carried, to);
        self.masked(flags, 0x4007, 0, there, none)
    }

    /// Enters a payload identified by an EtherType.
    fn carried(&mut self, inside: Place, ether_type: ValueId, to: Enter<'_>) -> NodeId {
        let mut node = self.other_at(inside, ether_type, to);
        let ethernet = self.ethernet_at(inside, to);
        node = self.equals(ether_type, BRIDGED, ethernet, node);
        for kind in [Kind::Ip6, Kind::Ip4] {
            let number = kind.ether_type().expect("IP has one").into();
            let there = self.network_at(inside, kind, to);
            node = self.equals(ether_type, number, there, node);
        }
        node
    }

    /// Handles GTP-U user data, after optional fields and extension headers.
    fn gtp(&mut self, header: Place, to: Enter<'_>) -> NodeId {
        let none = to(Door::None);
        let flags = header.load(self.graph(), 0, Width::Byte);
        let message = header.load(self.graph(), 1, Width::Byte);
        let mut deeper = none;
        for index in (0..=MOST_GTP_EXTENSIONS).rev() {
            // The byte before a header or the payload is its type, 0 for the payload.
            let place = match index.checked_sub(1) {
                None => header.plus(12),
                Some(step) => Place::noted(self.search.graph, self.within.slots.options[step]),
            };
            let payload = self.versioned(place, to);
            let next = place.load(self.graph(), u32::MAX, Width::Byte);
            let more = match self.within.slots.options.get(index) {
                None => none,
                Some(&slot) => {
                    let words = place.load(self.graph(), 0, Width::Byte);
                    let length = self.graph().with(Operation::ShiftLeft, words, 2);
                    let behind = place.plus_value(self.graph(), length).value(self.graph());
                    let noted = assign(self.graph(), slot, behind, deeper);
                    self.equals(words, 0, none, noted)
                }
            };
            deeper = self.equals(next, 0, payload, more);
        }
        // The sequence number and the N-PDU number take the same four bytes, even if only one is there.
        let behind_options = self.versioned(header.plus(12), to);
        let extended = self.any_bit(flags, 4, deeper, behind_options);
        let short = self.versioned(header.plus(8), to);
        let node = self.any_bit(flags, 7, extended, short);
        let node = self.equals(message, 255, node, none);
        self.masked(flags, 0xf0, 0x30, node, none)
    }

    /// Handles MPLS (RFC 3032) and PPPoE sessions (RFC 2516).
    fn over_link(&mut self, to: Enter<'_>) -> NodeId {
        let none = to(Door::None);
        let level = self.search.level;
        let link = level.link;
        let number = level.kind(self.search.graph, self.stage);
        let network = level.network(self.search.graph, self.stage);
        let session = network.load(self.graph(), 6, Width::Half);
        let mut node = none;
        for (kind, ppp) in [(Kind::Ip6, ppp::IPV6), (Kind::Ip4, ppp::IPV4)] {
            let there = self.network_at(network.plus(8), kind, to);
            node = self.equals(session, ppp.into(), there, node);
        }
        let pppoe = node;
        let mut labels = none;
        for label in (0..MOST_LABELS).rev() {
            let last = network.load(self.graph(), 4 * label + 2, Width::Byte);
            let inside = network.plus(4 * label + 4);
            let there = self.behind_labels(inside, to);
            labels = self.any_bit(last, BOTTOM, there, labels);
        }
        let numbers = |ether_type| link.number_of(ether_type);
        node = none;
        if let Some(session) = numbers(PPPOE) {
            node = self.equals(number, session, pppoe, node);
        }
        for ether_type in [MPLS_UPSTREAM, MPLS] {
            if let Some(mpls) = numbers(ether_type) {
                node = self.equals(number, mpls, labels, node);
            }
        }
        node
    }

    /// Identifies the payload after a label stack by its first four bits: IP, or Ethernet after a control word (RFC
    /// 4385).
    fn behind_labels(&mut self, inside: Place, to: Enter<'_>) -> NodeId {
        let ethernet = self.ethernet_at(inside.plus(4), to);
        let none = to(Door::None);
        let ip4 = self.network_at(inside, Kind::Ip4, to);
        let ip6 = self.network_at(inside, Kind::Ip6, to);
        let first = inside.load(self.graph(), 0, Width::Byte);
        let other = self.masked(first, 0xf0, 0, ethernet, none);
        self.search.version(inside, [ip4, ip6, other])
    }

    /// Enters an IP packet of either version.
    fn versioned(&mut self, inside: Place, to: Enter<'_>) -> NodeId {
        let none = to(Door::None);
        let ip4 = self.network_at(inside, Kind::Ip4, to);
        let ip6 = self.network_at(inside, Kind::Ip6, to);
        self.search.version(inside, [ip4, ip6, none])
    }

    fn network_at(&mut self, inside: Place, kind: Kind, to: Enter<'_>) -> NodeId {
        let number = self.graph().constant(kind.ether_type().expect("IP has one").into());
        let next = to(Door::Inside(Stage::Moved(kind)));
        self.without_link(inside, number, next)
    }

    fn other_at(&mut self, inside: Place, number: ValueId, to: Enter<'_>) -> NodeId {
        let next = to(Door::Inside(Stage::Moved(Kind::Other)));
        self.without_link(inside, number, next)
    }

    fn without_link(&mut self, inside: Place, number: ValueId, next: NodeId) -> NodeId {
        let slots = self.within.slots;
        let place = inside.value(self.graph());
        let next = self.search.assign_number(slots.link, NO_LINK, next);
        let next = assign(self.graph(), slots.kind, number, next);
        assign(self.graph(), slots.network, place, next)
    }

    fn ethernet_at(&mut self, inside: Place, to: Enter<'_>) -> NodeId {
        let place = inside.value(self.graph());
        let next = to(Door::Inside(Stage::Unknown));
        assign(self.search.graph, self.within.slots.link, place, next)
    }

    /// Saves facts about the outer packet that are not in slots yet, for the inner packet and the terms after it.
    fn keep(&mut self, mut next: NodeId) -> NodeId {
        let (level, stage) = (self.search.level, self.stage);
        let graph = &mut *self.search.graph;
        if stage == Stage::Plain {
            let transport = level.transport(graph, stage);
            let protocol = level.protocol(graph, stage);
            next = self.search.note_transport(transport, protocol, next);
        } else {
            // Read only for IPv6, but each path must assign what some path reads.
            let none = graph.constant(0);
            next = self.search.note_transport(Place::fixed(40), none, next);
        }
        let number = match stage {
            Stage::Plain | Stage::Fixed(_) => match stage.kind().and_then(Kind::ether_type) {
                Some(ether_type) => self.search.graph.constant(ether_type.into()),
                None => level.kind(self.search.graph, stage),
            },
            _ => return next,
        };
        let network = level.network(self.search.graph, stage);
        self.search.note_network(network, number, next)
    }
}
