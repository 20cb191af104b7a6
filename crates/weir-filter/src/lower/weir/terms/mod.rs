//! The formula of each term, at a stage where everything it needs is known.

mod address;
mod frame;
mod tag;
mod value;
mod wlan;

use weir_packet::{ethertype, port};

use self::wlan::{FROM_DS, TO_DS};
use super::extension::is_extension;
use super::formula::Formula;
use super::link::{Numbers, of_ppp};
use super::place::{Level, Place};
use super::stage::{Kind, Layer, Stage};
use crate::ast::{Arith, ArithId, Ast, Primitive, Protocol};
use crate::graph::{Graph, Meta, Value, ValueId, Width};
use crate::{Beside, Options};

/// `PACKET_OUTGOING` (linux/if_packet.h): a packet sent by this host.
const OUTGOING: u32 = 4;

/// A place in the plan where a term is tested.
pub(super) struct Site<'a> {
    pub(super) graph: &'a mut Graph,
    pub(super) ast: &'a Ast,
    pub(super) options: &'a Options<'a>,
    pub(super) level: &'a Level,
    pub(super) stage: Stage,
    pub(super) asked: &'a [Kind],
}

/// A protocol over IP: its number, and the IP versions that carry it.
#[derive(Clone, Copy, Debug)]
pub(super) struct OverIp {
    pub(super) number: u32,
    pub(super) ip4: bool,
    pub(super) ip6: bool,
}

/// Returns the protocol over IP that a keyword stands for, if any.
pub(super) fn over_ip(protocol: Protocol) -> Option<OverIp> {
    let (number, ip4, ip6) = match protocol {
        Protocol::Tcp => (6, true, true),
        Protocol::Udp => (17, true, true),
        Protocol::Sctp => (132, true, true),
        Protocol::Icmp => (1, true, false),
        Protocol::Icmp6 => (58, false, true),
        Protocol::Igmp => (2, true, false),
        Protocol::Igrp => (9, true, false),
        Protocol::Pim => (103, true, true),
        Protocol::Vrrp | Protocol::Carp => (112, true, true),
        Protocol::Ah => (51, true, true),
        Protocol::Esp => (50, true, true),
        _ => return None,
    };
    Some(OverIp { number, ip4, ip6 })
}

/// Returns the kinds of network header that a term distinguishes.
pub(super) fn asks(ast: &Ast, primitive: &Primitive) -> Vec<Kind> {
    const BOTH: [Kind; 2] = [Kind::Ip4, Kind::Ip6];
    let of = |protocol: Protocol| match protocol {
        Protocol::Ip => vec![Kind::Ip4],
        Protocol::Ip6 => vec![Kind::Ip6],
        Protocol::Arp => vec![Kind::Arp],
        other => over_ip(other).map_or_else(Vec::new, |over| {
            let both = [(over.ip4, Kind::Ip4), (over.ip6, Kind::Ip6)];
            both.into_iter().filter(|(carried, _)| *carried).map(|(_, kind)| kind).collect()
        }),
    };
    match primitive {
        Primitive::Host { protocol, networks, .. }
        | Primitive::Gateway { protocol, addresses: networks, .. } => address::asked(*protocol, networks),
        Primitive::HostIn { protocol, .. } => protocol.map_or_else(|| Kind::ASKED.to_vec(), of),
        Primitive::Port { .. } | Primitive::PortIn { .. } | Primitive::Geneve(_) | Primitive::Vxlan(_) => {
            BOTH.to_vec()
        }
        Primitive::Tunnel => BOTH.to_vec(),
        Primitive::Proto { protocol: Some(Protocol::Link), number } => kind_of(*number).into_iter().collect(),
        Primitive::Proto { protocol, .. } | Primitive::ProtoChain { protocol, .. } => {
            protocol.map_or_else(|| BOTH.to_vec(), of)
        }
        Primitive::Protocol(protocol)
        | Primitive::Broadcast(Some(protocol))
        | Primitive::Multicast(Some(protocol)) => of(*protocol),
        Primitive::Relation { left, right, .. } => {
            accessors(ast, [*left, *right]).into_iter().flat_map(|(protocol, _)| of(protocol)).collect()
        }
        _ => Vec::new(),
    }
}

/// Returns the kind that a number in the frame's header stands for, as an EtherType or a PPP number.
fn kind_of(number: u32) -> Option<Kind> {
    let number = of_ppp(number).unwrap_or(number);
    Kind::ASKED.into_iter().find(|kind| kind.ether_type().map(u32::from) == Some(number))
}

/// Returns how many headers must be found before a term can be tested.
pub(super) fn layer(ast: &Ast, primitive: &Primitive) -> Layer {
    let of = |protocol: Protocol| match protocol {
        Protocol::Link | Protocol::Radio => Layer::Frame,
        Protocol::Ah => Layer::Network,
        other if over_ip(other).is_some_and(|over| over.ip6) => Layer::Transport,
        _ => Layer::Network,
    };
    match primitive {
        Primitive::Mac { .. }
        | Primitive::MacIn { .. }
        | Primitive::ArcNet { .. }
        | Primitive::Less(_)
        | Primitive::Greater(_)
        | Primitive::Byte { .. }
        | Primitive::Inbound
        | Primitive::Outbound
        | Primitive::IfIndex(_)
        | Primitive::WlanType { .. }
        | Primitive::WlanDirection(_)
        | Primitive::Atm(_)
        | Primitive::Mtp(_)
        | Primitive::Broadcast(None | Some(Protocol::Link))
        | Primitive::Multicast(None | Some(Protocol::Link)) => Layer::Frame,
        Primitive::Vlan(_) | Primitive::VlanIn { .. } => Layer::Tags,
        Primitive::Proto { protocol: Some(Protocol::Link), number } if super::link::TAGS.contains(number) => {
            Layer::Tags
        }
        Primitive::Port { .. } | Primitive::PortIn { .. } | Primitive::Geneve(_) | Primitive::Vxlan(_) => {
            Layer::Transport
        }
        Primitive::Tunnel => Layer::Transport,
        Primitive::Proto { protocol: None | Some(Protocol::Ip6), number } if !is_extension(*number) => {
            Layer::Transport
        }
        Primitive::Protocol(protocol) => of(*protocol),
        Primitive::Relation { left, right, .. } => accessors(ast, [*left, *right])
            .into_iter()
            .map(|(protocol, _)| of(protocol))
            .max()
            .unwrap_or(Layer::Frame),
        _ => Layer::Network,
    }
}

/// Returns whether a term walks a chain of headers itself. Where it does not, as in IPv4, its formula is used.
pub(crate) fn walks_chain(primitive: &Primitive) -> bool {
    match *primitive {
        Primitive::ProtoChain { .. } | Primitive::Protocol(Protocol::Ah) => true,
        Primitive::Proto { protocol: None | Some(Protocol::Ip6), number } => is_extension(number),
        _ => false,
    }
}

/// A chain of headers that a term walks.
#[derive(Clone, Copy, Debug)]
pub(super) struct Chain {
    /// Start of the first header.
    pub(super) header: Place,
    /// Number of the first header.
    pub(super) number: ValueId,
    /// Number to look for.
    pub(super) wanted: u32,
    /// Whether to walk all IPv6 extension headers, or only the authentication header.
    pub(super) ip6: bool,
}

/// Returns the accessors in arithmetic expressions, from left to right, an index after its accessor.
pub(super) fn accessors(ast: &Ast, roots: [ArithId; 2]) -> Vec<(Protocol, ArithId)> {
    let mut found = Vec::new();
    let mut open: Vec<ArithId> = roots.into_iter().rev().collect();
    while let Some(id) = open.pop() {
        match ast.arithmetic[id.0 as usize] {
            Arith::Number(_) | Arith::Length => {}
            Arith::Accessor { protocol, index, .. } => {
                found.push((protocol, id));
                open.push(index);
            }
            Arith::Negate(operand) => open.push(operand),
            Arith::Binary { left, right, .. } => open.extend([right, left]),
        }
    }
    found
}

impl Site<'_> {
    /// Returns the formula that `primitive` tests here, unless [`Site::chain`] returns a chain.
    pub(super) fn formula(&mut self, primitive: &Primitive) -> Formula {
        match primitive {
            Primitive::Host { protocol, direction, networks, .. } => {
                self.host(*protocol, *direction, networks)
            }
            Primitive::HostIn { protocol, direction, ipv4, ipv6 } => {
                self.host_in(*protocol, *direction, *ipv4, *ipv6)
            }
            Primitive::Mac { direction, addresses } => self.mac(*direction, addresses),
            Primitive::MacIn { direction, set } => self.mac_in(*direction, *set),
            Primitive::Port { protocol, direction, first, last, .. } => {
                self.port(*protocol, *direction, *first, *last)
            }
            Primitive::PortIn { protocol, direction, set } => self.port_in(*protocol, *direction, *set),
            Primitive::Gateway { protocol, macs, addresses } => self.gateway(*protocol, macs, addresses),
            Primitive::DecNetHost { direction, address } => self.decnet_host(*direction, *address),
            Primitive::Broadcast(Some(Protocol::Ip)) => self.ip_broadcast(),
            Primitive::Broadcast(_) => self.broadcast(),
            Primitive::Multicast(protocol) => self.multicast(*protocol),
            Primitive::Proto { protocol, number } => self.proto(*protocol, *number),
            Primitive::Protocol(protocol) => self.protocol(*protocol),
            Primitive::Vlan(None) => self.tagged(|_, _| Formula::Always),
            Primitive::Vlan(Some(number)) => self.tagged(|graph, tag| Formula::equals(graph, tag, *number)),
            Primitive::VlanIn { set } => self.tagged(|_, tag| Formula::member(*set, &[tag])),
            Primitive::Mpls(label) => self.mpls(*label),
            Primitive::PppoeDiscovery => self.frame_protocol(0x8863),
            Primitive::PppoeSession(session) => self.pppoe(*session),
            Primitive::Vxlan(network) => {
                self.over_udp(&[port::VXLAN, port::LINUX_VXLAN], 0x08, 0x08, *network)
            }
            Primitive::Geneve(network) => self.over_udp(&[port::GENEVE], 0xc0, 0, *network),
            Primitive::Llc(kind) => self.llc(*kind),
            Primitive::Less(length) => self.length_below(length.checked_add(1)),
            Primitive::Greater(length) => self.length_below(Some(*length)).not(),
            Primitive::Byte { index, operator, value } => self.byte(*index, *operator, *value),
            Primitive::WlanType { value, mask } => self.wlan_byte(0, *mask, *value),
            Primitive::WlanDirection(direction) => self.wlan_byte(1, TO_DS | FROM_DS, *direction),
            Primitive::Inbound => self.inbound(),
            Primitive::Outbound => self.outbound(),
            Primitive::IfIndex(number) => self.interface(*number),
            Primitive::Relation { left, comparison, right } => self.relation(*left, *comparison, *right),
            Primitive::ProtoChain { .. } => Formula::Never,
            Primitive::Tunnel => unreachable!("the plan enters the packet inside"),
            Primitive::ArcNet { .. } | Primitive::Atm(_) | Primitive::Mtp(_) => {
                unreachable!("refused on these link types")
            }
        }
    }

    /// Returns the chain of headers that `primitive` walks here, if any.
    pub(super) fn chain(&mut self, primitive: &Primitive) -> Option<Chain> {
        let (protocol, wanted) = match *primitive {
            Primitive::ProtoChain { protocol, number } => (protocol, number),
            Primitive::Proto { number, .. } if walks_chain(primitive) => (Some(Protocol::Ip6), number),
            Primitive::Protocol(Protocol::Ah) => (Some(Protocol::Ip6), 51),
            _ => return None,
        };
        let network = self.network();
        match (self.kind(), protocol) {
            (Kind::Ip4, None | Some(Protocol::Ip)) => {
                let number = network.load(self.graph, 9, Width::Byte);
                let header = self.level.transport(self.graph, self.stage);
                Some(Chain { header, number, wanted, ip6: false })
            }
            (Kind::Ip6, None | Some(Protocol::Ip6)) => {
                let number = network.load(self.graph, 6, Width::Byte);
                Some(Chain { header: network.plus(40), number, wanted, ip6: true })
            }
            _ => None,
        }
    }

    fn kind(&self) -> Kind {
        self.stage.kind().expect("the network header was found")
    }

    fn network(&mut self) -> Place {
        self.level.network(self.graph, self.stage)
    }

    /// Tests whether the frame's payload is of type `ether_type`.
    fn is_kind(&mut self, ether_type: u32) -> Formula {
        let kind = self.kind();
        let ether_type = match self.level.link.numbers {
            Numbers::Ppp => of_ppp(ether_type).unwrap_or(ether_type),
            _ => ether_type,
        };
        if let Some(own) = kind.ether_type() {
            return if u32::from(own) == ether_type { Formula::Always } else { Formula::Never };
        }
        if self.asked.iter().any(|kind| kind.ether_type().map(u32::from) == Some(ether_type)) {
            return Formula::Never;
        }
        let Some(number) = self.level.link.number_of(ether_type) else { return Formula::Never };
        let kind = self.level.kind(self.graph, self.stage);
        Formula::equals(self.graph, kind, number)
    }

    /// Tests for a protocol, over one of the IP versions that carry it.
    fn carries(&mut self, over: OverIp) -> Formula {
        let there = match self.kind() {
            Kind::Ip4 => over.ip4,
            Kind::Ip6 => over.ip6,
            Kind::Arp | Kind::Other => false,
        };
        if !there {
            return Formula::Never;
        }
        let protocol = self.level.protocol(self.graph, self.stage);
        Formula::equals(self.graph, protocol, over.number)
    }

    /// Tests whether the packet is not a later fragment, and so has the transport header.
    fn has_transport(&mut self) -> Formula {
        match self.stage {
            Stage::Later => Formula::Never,
            stage if stage.kind() == Some(Kind::Ip4) => {
                let piece = self.network().load(self.graph, 6, Width::Half);
                Formula::any_bit(self.graph, piece, 0x1fff).not()
            }
            _ => Formula::Always,
        }
    }

    fn protocol(&mut self, protocol: Protocol) -> Formula {
        match protocol {
            Protocol::Ip => self.is_kind(ethertype::IPV4.into()),
            Protocol::Ip6 => self.is_kind(ethertype::IPV6.into()),
            Protocol::Arp => self.is_kind(ethertype::ARP.into()),
            Protocol::Rarp => self.is_kind(0x8035),
            other => match over_ip(other) {
                Some(over) => self.carries(over),
                None => self.frame_word(other),
            },
        }
    }

    fn proto(&mut self, protocol: Option<Protocol>, number: u32) -> Formula {
        match protocol {
            None => self.carries(OverIp { number, ip4: true, ip6: true }),
            Some(Protocol::Ip) => self.carries(OverIp { number, ip4: true, ip6: false }),
            Some(Protocol::Ip6) => self.carries(OverIp { number, ip4: false, ip6: true }),
            Some(Protocol::Iso) => self.iso(number),
            Some(Protocol::Isis) => self.isis(&[number]),
            _ if super::link::TAGS.contains(&number) => self.tag_type(number),
            _ => self.frame_protocol(number),
        }
    }

    fn length_below(&mut self, bound: Option<u32>) -> Formula {
        let Some(bound) = bound else { return Formula::Always };
        let length = self.graph.value(Value::Length);
        Formula::at_least(self.graph, length, bound).not()
    }

    /// Returns the packet type, with the numbers of [`Meta::PacketType`].
    fn packet_type(&mut self) -> ValueId {
        match self.options.link_type {
            113 => self.graph.load(None, 0, Width::Half),
            276 => self.graph.load(None, 10, Width::Byte),
            _ => self.graph.meta(Meta::PacketType),
        }
    }

    /// Tests for packets sent by this host.
    fn outbound(&mut self) -> Formula {
        let packet_type = self.packet_type();
        Formula::equals(self.graph, packet_type, OUTGOING)
    }

    /// Tests for packets known not to be sent by this host.
    fn inbound(&mut self) -> Formula {
        let packet_type = self.packet_type();
        let perhaps_unknown = self.options.metadata == Beside::Direction;
        match self.graph.get(packet_type) {
            // The number for an unknown direction is larger than all others.
            Value::Meta(_) if perhaps_unknown => Formula::at_least(self.graph, packet_type, OUTGOING).not(),
            _ => Formula::equals(self.graph, packet_type, OUTGOING).not(),
        }
    }

    fn interface(&mut self, number: u32) -> Formula {
        let interface = match self.options.link_type {
            276 => self.graph.load(None, 4, Width::Word),
            _ => self.graph.meta(Meta::Interface),
        };
        Formula::equals(self.graph, interface, number)
    }
}
