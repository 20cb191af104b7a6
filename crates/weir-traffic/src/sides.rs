//! The two sides of a conversation.

use std::collections::HashMap;
use std::net::IpAddr;

use weir_packet::bytes::be16;
use weir_packet::ethertype::{ARP, IPV4, IPV6};
use weir_packet::protocol::{TCP, has_ports};
use weir_packet::{Endpoint, Flow, FlowDirection, address};

use crate::layout::{Layout, network};
use crate::ranges::Addresses;

/// Who has sent a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Side {
    /// The one who began.
    Client,
    /// The one who answers.
    Server,
}

impl Side {
    fn other(self) -> Self {
        match self {
            Self::Client => Self::Server,
            Self::Server => Self::Client,
        }
    }
}

/// All packets between two hosts, as a [`Flow`] without ports.
const ANY: u8 = 0;

/// Tells from which side the packets of a capture come.
///
/// The client of a flow is who sent its first SYN, even if this comes later ([`Sides::learn`]). Without one, ports tell the
/// server: a well-known one (below 1024), or in TCP one that is not dynamic (below 32,768), if the other end has none like
/// that. Otherwise the client is who sent the first packet. Packets without ports, and ARP, go with the first flow between
/// their hosts, an ICMP error against the packet that it quotes. What is neither IP nor ARP is the client's.
#[derive(Debug, Default)]
pub struct Sides {
    clients: Vec<Addresses>,
    /// Whether the lower end is the client.
    flows: HashMap<Flow, bool>,
}

impl Sides {
    /// With `clients`, only hosts with one of these addresses are clients, whoever begins.
    pub fn new(clients: Vec<Addresses>) -> Self {
        Self { clients, flows: HashMap::new() }
    }

    /// Looks at a packet ahead of all others: who sends the SYN of a flow is its client before that, too.
    pub fn learn(&mut self, link_type: u16, frame: &[u8]) {
        let Some((IPV4 | IPV6, at)) = network(link_type, frame) else { return };
        let Some(packet) = frame.get(at..) else { return };
        if let Some(layout) = Layout::of(packet)
            && let Some(facts) = FlowFacts::of(&layout, packet)
            && let Some(begins) = facts.begins
        {
            let (flow, direction) = Flow::between(layout.protocol, facts.from, facts.to);
            self.flows.entry(flow).or_insert(begins == (direction == FlowDirection::Up));
        }
    }

    /// Returns who has sent the next packet. `link_type` is that of capture files.
    pub fn of(&mut self, link_type: u16, frame: &[u8]) -> Side {
        self.known(link_type, frame).unwrap_or(Side::Client)
    }

    fn known(&mut self, link_type: u16, frame: &[u8]) -> Option<Side> {
        let (kind, at) = network(link_type, frame)?;
        let packet = frame.get(at..)?;
        match kind {
            IPV4 | IPV6 => self.packet(packet, false),
            ARP => self.arp(packet),
            _ => None,
        }
    }

    fn packet(&mut self, packet: &[u8], quoted: bool) -> Option<Side> {
        let layout = Layout::of(packet)?;
        let transport = packet.get(layout.transport.clone())?;
        if !quoted
            && layout.quotes(packet)
            && let Some(side) = transport.get(8..).and_then(|quote| self.packet(quote, true))
        {
            return Some(side.other());
        }
        let [source, destination] = layout.addresses().map(|place| address(&packet[place]));
        let between = between(source?, destination?);
        let Some(facts) = FlowFacts::of(&layout, packet) else { return Some(self.side(between, None, true)) };
        let flow = Flow::between(layout.protocol, facts.from, facts.to);
        let side = self.side(flow, facts.begins, facts.is_of_client(layout.protocol));
        let (hosts, direction) = between;
        self.flows.entry(hosts).or_insert((side == Side::Client) == (direction == FlowDirection::Up));
        Some(side)
    }

    /// Of Ethernet and IPv4.
    fn arp(&mut self, packet: &[u8]) -> Option<Side> {
        let ends = packet.strip_prefix(&[0, 1, 8, 0, 6, 4]).filter(|rest| rest.len() >= 22)?;
        let between = between(address(&ends[8..12])?, address(&ends[18..22])?);
        // Who is asked is the server.
        let asks = Some(ends[1] == 1).filter(|_| !self.flows.contains_key(&between.0));
        Some(self.side(between, asks, true))
    }

    /// `begins`: whether the packet is the first of its flow, or answers it, if it says so. `guess`: whether it is the
    /// client's, if nothing else tells.
    fn side(&mut self, (flow, direction): (Flow, FlowDirection), begins: Option<bool>, guess: bool) -> Side {
        let is_lower = direction == FlowDirection::Up;
        if !self.clients.is_empty() {
            let from = flow.ends[usize::from(!is_lower)].address;
            let is_client = self.clients.iter().any(|clients| clients.contains(from));
            return if is_client { Side::Client } else { Side::Server };
        }
        if let Some(begins) = begins {
            self.flows.insert(flow, begins == is_lower);
        }
        let lower_is_client = *self.flows.entry(flow).or_insert(is_lower == guess);
        if lower_is_client == is_lower { Side::Client } else { Side::Server }
    }
}

/// What a packet with ports says about its flow.
#[derive(Clone, Copy, Debug)]
struct FlowFacts {
    from: Endpoint,
    to: Endpoint,
    /// Whether the packet is the first, or answers it, if it says so.
    begins: Option<bool>,
}

impl FlowFacts {
    fn of(layout: &Layout, packet: &[u8]) -> Option<Self> {
        const SYN: u8 = 2;
        const ACK: u8 = 16;
        if !has_ports(layout.protocol) || layout.is_later() {
            return None;
        }
        let transport = packet.get(layout.transport.clone())?;
        let [source, destination] = layout.addresses().map(|place| address(&packet[place]));
        let flags = transport.get(13).filter(|_| layout.protocol == TCP);
        Some(Self {
            from: Endpoint { address: source?, port: be16(transport, 0)? },
            to: Endpoint { address: destination?, port: be16(transport, 2)? },
            begins: flags.filter(|&flags| flags & SYN != 0).map(|flags| flags & ACK == 0),
        })
    }

    /// Whether the ports look like those of a packet from the client. If they tell nothing, it is: it is the first.
    fn is_of_client(&self, protocol: u8) -> bool {
        /// The ports that Linux gives to clients begin here.
        const DYNAMIC: u16 = 32_768;
        let limits = if protocol == TCP { &[1024, DYNAMIC][..] } else { &[1024] };
        let serves = |port: u16| limits.iter().position(|&limit| port < limit).unwrap_or(limits.len());
        serves(self.from.port) >= serves(self.to.port)
    }
}

/// Returns all packets between two hosts, and which way one goes.
fn between(from: IpAddr, to: IpAddr) -> (Flow, FlowDirection) {
    Flow::between(ANY, Endpoint { address: from, port: 0 }, Endpoint { address: to, port: 0 })
}

#[cfg(test)]
mod tests {
    use weir_packet::protocol::UDP;

    use super::*;
    use Side::{Client, Server};

    /// A packet of IPv4 from a host to another, with ports.
    fn packet(from: (u8, u16), to: (u8, u16), protocol: u8, flags: u8) -> Vec<u8> {
        let mut packet =
            vec![0x45, 0, 0, 40, 0, 0, 0, 0, 64, protocol, 0, 0, 10, 0, 0, from.0, 10, 0, 0, to.0];
        packet.extend([from.1.to_be_bytes(), to.1.to_be_bytes()].concat());
        packet.extend([0, 0, 0, 0, 0, 0, 0, 0, 0x50, flags, 0, 0, 0, 0, 0, 0]);
        packet
    }

    fn sides(sides: &mut Sides, packets: &[Vec<u8>]) -> Vec<Side> {
        packets.iter().map(|packet| sides.of(101, packet)).collect()
    }

    #[test]
    fn the_first_syn_tells_the_client() {
        let (a, b) = ((1, 5000), (2, 80));
        let packets = [
            packet(b, a, TCP, 0x12),
            packet(a, b, TCP, 0x10),
            packet(a, b, TCP, 0x02),
            packet(b, a, TCP, 0x12),
            // Another flow, without its beginning, and one the other way round.
            packet((2, 8081), a, TCP, 0x10),
            packet(a, (2, 8081), TCP, 0x10),
            packet((2, 9), (1, 22), TCP, 0x02),
            packet((1, 22), (2, 9), TCP, 0x12),
        ];
        let expected = [Server, Client, Client, Server, Client, Server, Client, Server];
        assert_eq!(sides(&mut Sides::default(), &packets), expected);
    }

    #[test]
    fn ports_tell_the_server_of_a_flow_that_has_begun() {
        for (protocol, from, to, side) in [
            (TCP, 443, 5000, Server),
            (TCP, 5000, 443, Client),
            (TCP, 8080, 50_000, Server),
            (TCP, 50_000, 8080, Client),
            (TCP, 50_000, 40_000, Client),
            (TCP, 8080, 9090, Client),
            (TCP, 22, 1023, Client),
            (UDP, 53, 50_000, Server),
            (UDP, 123, 123, Client),
            // Who sends first, unless a port is well known.
            (UDP, 5060, 50_000, Client),
        ] {
            let mut sides = Sides::default();
            let packets =
                [packet((1, from), (2, to), protocol, 0x10), packet((2, to), (1, from), protocol, 0x10)];
            assert_eq!(packets.map(|packet| sides.of(101, &packet)), [side, side.other()], "{from} > {to}");
        }
    }

    #[test]
    fn protocols_with_ports_have_sides() {
        // SCTP, DCCP, UDP-Lite: who has a well-known port serves.
        for protocol in [132, 33, 136] {
            let packets = [packet((1, 80), (2, 5000), protocol, 0), packet((2, 5000), (1, 80), protocol, 0)];
            assert_eq!(sides(&mut Sides::default(), &packets), [Server, Client], "{protocol}");
        }
    }

    #[test]
    fn a_later_syn_tells_the_client_of_earlier_packets() {
        let (a, b) = ((1, 80), (2, 50_000));
        let packets = [packet(b, a, TCP, 0x10), packet(a, b, TCP, 0x02), packet(b, a, TCP, 0x12)];
        for learned in [&packets[..], &packets[2..]] {
            let mut all = Sides::default();
            learned.iter().for_each(|packet| all.learn(101, packet));
            assert_eq!(sides(&mut all, &packets), [Server, Client, Server]);
        }
        assert_eq!(sides(&mut Sides::default(), &packets), [Client, Client, Server], "not learned");
    }

    #[test]
    fn what_has_no_ports_goes_with_its_hosts() {
        let (a, b) = ((1, 5000), (2, 53));
        let mut fragment = packet(b, a, UDP, 0);
        fragment[7] = 9;
        let mut error = packet(b, a, 1, 0);
        error.truncate(20);
        error.extend([3, 3, 0, 0, 0, 0, 0, 0]);
        error.extend(packet(a, b, UDP, 0));
        let packets = [packet(a, b, UDP, 0), fragment, error, packet(b, a, 1, 0), packet(a, b, 1, 0)];
        assert_eq!(sides(&mut Sides::default(), &packets), [Client, Server, Server, Server, Client]);
    }

    #[test]
    fn who_asks_for_an_address_is_the_client() {
        let arp = |operation: u8, sender: u8, target: u8| {
            let head = [&[0; 12][..], &[8, 6, 0, 1, 8, 0, 6, 4, 0, operation], &[2; 6], &[10, 0, 0, sender]];
            [&head.concat()[..], &[0; 6], &[10, 0, 0, target]].concat()
        };
        let mut sides = Sides::default();
        for (frame, side) in [(arp(1, 9, 1), Client), (arp(2, 1, 9), Server), (arp(1, 1, 9), Server)] {
            assert_eq!(sides.of(1, &frame), side);
        }
        assert_eq!(sides.of(1, &[0xff; 60]), Client, "anything else");
        assert_eq!(sides.of(1, &[]), Client);
    }

    #[test]
    fn named_clients_are_clients_whoever_begins() {
        let clients = vec!["10.0.0.2".parse().expect("an address")];
        let (a, b) = ((1, 5000), (2, 80));
        let packets = [packet(a, b, TCP, 2), packet(b, a, TCP, 0x12), packet(b, a, UDP, 0)];
        assert_eq!(sides(&mut Sides::new(clients), &packets), [Server, Client, Client]);
    }
}
