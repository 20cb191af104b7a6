//! Explanations of terms in English.

use super::notation::mac;
use super::{Ast, AtmKind, Direction, Expr, LlcKind, MtpKind, Network, Primitive, Protocol, Term};
use crate::set::SetId;

impl Ast {
    /// Returns for each term whether it is asked only of the packet inside a tunnel.
    pub fn are_inner(&self) -> Vec<bool> {
        let mut inner = vec![true; self.terms.len()];
        let mut nodes: Vec<_> = self.root.into_iter().collect();
        while let Some(node) = nodes.pop() {
            match &self.nodes[node.0 as usize] {
                Expr::And(operands) | Expr::Or(operands) => nodes.extend(operands),
                Expr::Not(operand) => nodes.push(*operand),
                Expr::Inner(_) => {}
                Expr::Term(index) => inner[*index as usize] = false,
            }
        }
        inner
    }

    /// Describes what a term matches, to complete the sentence "it matches ...".
    pub fn explain(&self, term: &Term) -> String {
        let shown = self.notation(&term.primitive);
        match &term.primitive {
            Primitive::Host { protocol, direction, networks, .. } => {
                let list: Vec<String> = networks.iter().map(ToString::to_string).collect();
                let whole = networks.iter().all(|network| !network.to_string().contains(['/', ' ']));
                let relation = if whole { "is" } else { "is in" };
                let whose = ends(*direction, "address", relation, &list.join(" or "));
                format!("{} whose {whose}", with_addresses(*protocol, networks))
            }
            Primitive::HostIn { protocol, direction, ipv4, ipv6 } => {
                let members = self.size(*ipv4) + self.size(*ipv6);
                let whose = ends(*direction, "address", "is in", &self.set(*ipv4, members));
                let packets = protocol.map_or("IPv4, ARP, RARP and IPv6 packets", packets);
                format!("{packets} whose {whose}")
            }
            Primitive::Mac { direction, addresses } => {
                let list = addresses.iter().map(|address| mac(*address)).collect::<Vec<_>>().join(" or ");
                format!("frames whose {}", ends(*direction, "MAC address", "is", &list))
            }
            Primitive::MacIn { direction, set } => {
                let set = self.set(*set, self.size(*set));
                format!("frames whose {}", ends(*direction, "MAC address", "is in", &set))
            }
            Primitive::ArcNet { direction, address } => {
                format!(
                    "frames whose {}",
                    ends(*direction, "ARCNET address", "is", &format!("{address:#04x}"))
                )
            }
            Primitive::DecNetHost { direction, address } => {
                let address = format!("{}.{}", address >> 10, address & 1023);
                format!("DECnet packets whose {}", ends(*direction, "address", "is", &address))
            }
            Primitive::Port { protocol, direction, first, last, .. } => {
                let (relation, ports) = if first == last {
                    ("is", first.to_string())
                } else {
                    ("is one of", format!("{first} to {last}"))
                };
                format!("{} whose {}", segments(*protocol), ends(*direction, "port", relation, &ports))
            }
            Primitive::PortIn { protocol, direction, set } => {
                let set = self.set(*set, self.size(*set));
                format!("{} whose {}", segments(*protocol), ends(*direction, "port", "is in", &set))
            }
            Primitive::Proto { protocol, number } => match protocol {
                Some(Protocol::Link) if *number < 256 => {
                    format!("frames with LLC service access point {number:#04x}")
                }
                Some(Protocol::Link) => format!("frames with EtherType {number:#06x}"),
                Some(protocol) => format!("{} that carry protocol {number}", packets(*protocol)),
                None => format!("IPv4 and IPv6 packets that carry protocol {number}"),
            },
            Primitive::ProtoChain { protocol, number } => {
                let packets = protocol.map_or("IPv4 and IPv6 packets", packets);
                format!("{packets} with protocol {number} anywhere in their header chain")
            }
            Primitive::Protocol(protocol) => packets(*protocol).to_owned(),
            Primitive::Gateway { .. } => {
                "packets forwarded by the named host: they have its MAC address, but not its IP address"
                    .to_owned()
            }
            Primitive::Broadcast(Some(Protocol::Ip)) => "IPv4 packets to a broadcast address".to_owned(),
            Primitive::Broadcast(_) => "frames to the broadcast address".to_owned(),
            Primitive::Multicast(Some(Protocol::Ip)) => "IPv4 packets to a multicast address".to_owned(),
            Primitive::Multicast(Some(Protocol::Ip6)) => "IPv6 packets to a multicast address".to_owned(),
            Primitive::Multicast(_) => "frames to a multicast or broadcast address".to_owned(),
            Primitive::Less(length) => format!("packets of {length} bytes or fewer"),
            Primitive::Greater(length) => format!("packets of {length} bytes or more"),
            Primitive::Byte { .. } => format!("packets for which {shown}"),
            Primitive::Inbound => "received packets".to_owned(),
            Primitive::Outbound => "sent packets".to_owned(),
            Primitive::IfIndex(number) => format!("packets on interface number {number}"),
            Primitive::Vlan(None) => "frames with a VLAN tag".to_owned(),
            Primitive::Vlan(Some(number)) => format!("frames tagged with VLAN {number}"),
            Primitive::VlanIn { set } => {
                format!("frames with a VLAN tag whose ID is in {}", self.set(*set, self.size(*set)))
            }
            Primitive::Mpls(number) => numbered("MPLS packets", "the label", *number),
            Primitive::PppoeDiscovery => "PPPoE discovery packets".to_owned(),
            Primitive::PppoeSession(number) => numbered("PPPoE session packets", "the session", *number),
            Primitive::Geneve(number) => numbered("Geneve packets", "the network", *number),
            Primitive::Vxlan(number) => numbered("VXLAN packets", "the network", *number),
            Primitive::Tunnel => "packets that carry another packet in a tunnel".to_owned(),
            Primitive::Llc(kind) => match kind {
                LlcKind::Any => "frames with an LLC header".to_owned(),
                LlcKind::Information => "LLC information frames".to_owned(),
                LlcKind::Supervisory => "supervisory LLC frames".to_owned(),
                LlcKind::Unnumbered => "unnumbered LLC frames".to_owned(),
                LlcKind::SupervisoryKind(_) | LlcKind::UnnumberedKind(_) => {
                    format!("LLC frames of type `{shown}`")
                }
            },
            Primitive::WlanType { .. } => format!("802.11 frames of {shown}"),
            Primitive::WlanDirection(number) => format!(
                "802.11 frames {}",
                match number {
                    0 => "within a cell or ad hoc",
                    1 => "to the distribution system",
                    2 => "from the distribution system",
                    3 => "between access points",
                    _ => "with an invalid direction",
                }
            ),
            Primitive::Atm(AtmKind::Vpi(_) | AtmKind::Vci(_)) => format!("ATM cells with {shown}"),
            Primitive::Atm(_) => format!("ATM cells of type `{shown}`"),
            Primitive::Mtp(MtpKind::Field { .. }) => format!("SS7 signal units with {shown}"),
            Primitive::Mtp(_) => format!("SS7 signal units of type `{shown}`"),
            Primitive::Relation { .. } => format!("packets for which {shown}"),
        }
    }

    fn size(&self, set: SetId) -> usize {
        self.sets[set.0 as usize].len()
    }

    /// Describes a set by its name and size.
    fn set(&self, set: SetId, members: usize) -> String {
        let members = format!("{members} member{}", if members == 1 { "" } else { "s" });
        match &self.sets[set.0 as usize].name {
            Some(name) => format!("the set @{name} ({members})"),
            None => format!("a set of {members}"),
        }
    }
}

/// Describes which of two ends has a value.
fn ends(direction: Direction, what: &str, relation: &str, value: &str) -> String {
    let ends = match direction {
        Direction::Default | Direction::Or => format!("source or destination {what}"),
        Direction::Source => format!("source {what}"),
        Direction::Destination => format!("destination {what}"),
        Direction::And => {
            let each = format!("source {what} {relation} {value} and whose destination {what}");
            return format!("{each} {relation} {value}");
        }
        Direction::Address(number) => format!("802.11 address {number}, a {what},"),
        Direction::Receiver => format!("receiver's {what}"),
        Direction::Transmitter => format!("transmitter's {what}"),
    };
    format!("{ends} {relation} {value}")
}

fn numbered(packets: &str, what: &str, number: Option<u32>) -> String {
    number.map_or_else(|| packets.to_owned(), |number| format!("{packets} with {what} {number}"))
}

/// Returns the name for packets with ports.
fn segments(protocol: Option<Protocol>) -> &'static str {
    protocol.map_or("TCP, UDP and SCTP packets", packets)
}

/// Returns the name for packets with addresses of these families.
fn with_addresses(protocol: Option<Protocol>, networks: &[Network]) -> &'static str {
    let v4 = networks.iter().any(|network| matches!(network, Network::V4(..)));
    let v6 = networks.iter().any(|network| matches!(network, Network::V6(..)));
    match protocol {
        Some(protocol) => packets(protocol),
        None if v4 && v6 => "IPv4, ARP, RARP and IPv6 packets",
        None if v6 => "IPv6 packets",
        None => "IPv4, ARP and RARP packets",
    }
}

/// Returns the name for a protocol's packets.
fn packets(protocol: Protocol) -> &'static str {
    match protocol {
        Protocol::Link => "frames",
        Protocol::Ip => "IPv4 packets",
        Protocol::Ip6 => "IPv6 packets",
        Protocol::Arp => "ARP packets",
        Protocol::Rarp => "RARP packets",
        Protocol::Tcp => "TCP segments",
        Protocol::Udp => "UDP datagrams",
        Protocol::Sctp => "SCTP packets",
        Protocol::Icmp => "ICMP messages",
        Protocol::Icmp6 => "ICMPv6 messages",
        Protocol::Igmp => "IGMP messages",
        Protocol::Igrp => "IGRP packets",
        Protocol::Pim => "PIM messages",
        Protocol::Vrrp => "VRRP packets",
        Protocol::Carp => "CARP packets",
        Protocol::Ah => "packets with an IPsec authentication header (AH)",
        Protocol::Esp => "IPsec ESP packets",
        Protocol::AppleTalk => "AppleTalk packets",
        Protocol::Aarp => "AppleTalk ARP packets",
        Protocol::DecNet => "DECnet packets",
        Protocol::Lat => "DEC LAT packets",
        Protocol::Sca => "DEC SCA packets",
        Protocol::Moprc => "DEC MOP remote console packets",
        Protocol::Mopdl => "DEC MOP dump and load packets",
        Protocol::Iso => "OSI packets",
        Protocol::Esis => "ES-IS packets",
        Protocol::Isis => "IS-IS packets",
        Protocol::Clnp => "CLNP packets",
        Protocol::Stp => "spanning tree frames",
        Protocol::Ipx => "IPX packets",
        Protocol::NetBeui => "NetBEUI frames",
        Protocol::IsisL1 => "level 1 IS-IS packets",
        Protocol::IsisL2 => "level 2 IS-IS packets",
        Protocol::IsisIih => "IS-IS hellos",
        Protocol::IsisLsp => "IS-IS link state packets",
        Protocol::IsisSnp => "IS-IS sequence number packets",
        Protocol::IsisCsnp => "IS-IS complete sequence number packets",
        Protocol::IsisPsnp => "IS-IS partial sequence number packets",
        Protocol::Radio => "frames with a radio header",
    }
}
