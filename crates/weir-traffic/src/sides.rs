//! The two sides of a conversation.

use std::collections::HashMap;
use std::net::IpAddr;

use crate::layout::{ARP, IPV4, IPV6, Layout, TCP, UDP, address, network, word};
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

/// Address and port; port 0 where there is none.
type Endpoint = (IpAddr, u16);
/// Protocol, and both endpoints, the lower one first. Protocol 0: all packets between two hosts.
type Key = (u8, [Endpoint; 2]);

/// Tells from which side the packets of a capture come.
///
/// The client of a flow is who sent its first SYN; without one, who sent the first packet. Packets without ports, and ARP,
/// go with the first flow between their hosts, an ICMP error against the packet that it quotes. What is neither IP nor ARP
/// is the client's.
#[derive(Debug, Default)]
pub struct Sides {
    clients: Vec<Addresses>,
    /// Whether the lower endpoint is the client.
    flows: HashMap<Key, bool>,
}

impl Sides {
    /// With `clients`, only hosts with one of these addresses are clients, whoever begins.
    pub fn new(clients: Vec<Addresses>) -> Self {
        Self { clients, flows: HashMap::new() }
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
        let (source, destination) = (source?, destination?);
        let has_ports = matches!(layout.protocol, TCP | UDP) && !layout.is_later();
        let ports = word(transport, 0).zip(word(transport, 2)).filter(|_| has_ports);
        let Some((from, to)) = ports else { return Some(self.side(0, (source, 0), (destination, 0), None)) };
        const SYN: u8 = 2;
        const ACK: u8 = 16;
        let flags = transport.get(13).filter(|_| layout.protocol == TCP);
        let begins = flags.filter(|&flags| flags & SYN != 0).map(|flags| flags & ACK == 0);
        let side = self.side(layout.protocol, (source, from), (destination, to), begins);
        self.flows
            .entry(key(0, (source, 0), (destination, 0)).0)
            .or_insert_with(|| (side == Side::Client) == (source <= destination));
        Some(side)
    }

    /// Of Ethernet and IPv4.
    fn arp(&mut self, packet: &[u8]) -> Option<Side> {
        let ends = packet.strip_prefix(&[0, 1, 8, 0, 6, 4]).filter(|rest| rest.len() >= 22)?;
        let (sender, target) = (address(&ends[8..12])?, address(&ends[18..22])?);
        // Who is asked is the server.
        let asks =
            Some(ends[1] == 1).filter(|_| !self.flows.contains_key(&key(0, (sender, 0), (target, 0)).0));
        Some(self.side(0, (sender, 0), (target, 0), asks))
    }

    /// `begins`: whether the packet is the first of its flow, or answers it, if it says so.
    fn side(&mut self, protocol: u8, from: Endpoint, to: Endpoint, begins: Option<bool>) -> Side {
        if !self.clients.is_empty() {
            let is_client = self.clients.iter().any(|clients| clients.contains(from.0));
            return if is_client { Side::Client } else { Side::Server };
        }
        let (key, is_lower) = key(protocol, from, to);
        if let Some(begins) = begins {
            self.flows.insert(key, begins == is_lower);
        }
        let lower_is_client = *self.flows.entry(key).or_insert(is_lower);
        if lower_is_client == is_lower { Side::Client } else { Side::Server }
    }
}

/// Returns the key of a flow, and whether `from` is the lower endpoint.
fn key(protocol: u8, from: Endpoint, to: Endpoint) -> (Key, bool) {
    if from <= to { ((protocol, [from, to]), true) } else { ((protocol, [to, from]), false) }
}

#[cfg(test)]
mod tests {
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
            packet((2, 81), a, TCP, 0x10),
            packet(a, (2, 81), TCP, 0x10),
            packet((2, 9), (1, 22), TCP, 0x02),
            packet((1, 22), (2, 9), TCP, 0x12),
        ];
        let expected = [Server, Client, Client, Server, Client, Server, Client, Server];
        assert_eq!(sides(&mut Sides::default(), &packets), expected);
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
