//! Frames that a host cannot do without: those of the login that somebody works in, and those that find neighbours.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

use weir_packet::protocol::{ICMPV6, TCP};
use weir_sys::cut_off::Login;

use super::live::Frame;

/// Lengths of payload in a login's packets: none, a line, as much as fits into a packet.
const PAYLOADS: [usize; 3] = [0, 100, 1400];

const IPV4: u16 = 0x0800;
const IPV6: u16 = 0x86dd;
const ARP: u16 = 0x0806;

/// Returns packets of a login, received and sent.
pub(super) fn of_login(login: &Login) -> Vec<Frame> {
    let both = [(login.client, login.server, false), (login.server, login.client, true)];
    let frame = |(from, to, sent), payload| Frame { bytes: segment(from, to, payload), sent };
    both.into_iter().flat_map(|way| PAYLOADS.map(|payload| frame(way, payload))).collect()
}

/// Returns a TCP segment of a connection.
fn segment(from: SocketAddr, to: SocketAddr, payload: usize) -> Vec<u8> {
    const ACK: u8 = 0x10;
    const PUSH: u8 = 0x08;
    let flags = if payload > 0 { ACK | PUSH } else { ACK };
    let mut tcp = [from.port().to_be_bytes(), to.port().to_be_bytes()].concat();
    tcp.extend([0, 0, 0, 1, 0, 0, 0, 1, 5 << 4, flags, 0xff, 0xff, 0, 0, 0, 0]);
    tcp.resize(tcp.len() + payload, 0);
    packet(from.ip(), to.ip(), TCP, 64, &tcp)
}

/// Returns an IP packet in a frame.
fn packet(from: IpAddr, to: IpAddr, protocol: u8, hops: u8, payload: &[u8]) -> Vec<u8> {
    let length = |header: usize| u16::try_from(header + payload.len()).unwrap_or(u16::MAX).to_be_bytes();
    match (from, to) {
        (IpAddr::V4(from), IpAddr::V4(to)) => {
            let [high, low] = length(20);
            let head = [0x45, 0, high, low, 0, 0, 0x40, 0, hops, protocol, 0, 0];
            ethernet(IPV4, &[&head, &from.octets()[..], &to.octets(), payload].concat())
        }
        _ => {
            let [from, to] = [from, to].map(|ip| match ip {
                IpAddr::V4(ip) => ip.to_ipv6_mapped(),
                IpAddr::V6(ip) => ip,
            });
            let [high, low] = length(0);
            let head = [0x60, 0, 0, 0, high, low, protocol, hops];
            ethernet(IPV6, &[&head, &from.octets()[..], &to.octets(), payload].concat())
        }
    }
}

fn ethernet(ethertype: u16, payload: &[u8]) -> Vec<u8> {
    let addresses = [2, 0, 0, 0, 0, 1, 2, 0, 0, 0, 0, 2];
    [&addresses[..], &ethertype.to_be_bytes(), payload].concat()
}

/// Returns the question for the neighbour of this host's `own` address, and its answer.
pub(super) fn of_neighbours(own: IpAddr) -> Vec<Frame> {
    match own {
        IpAddr::V4(own) => {
            let neighbour = Ipv4Addr::from_bits(own.to_bits() ^ 1);
            let frame = |operation, from: Ipv4Addr, to: Ipv4Addr, sent| {
                let head = [0, 1, 8, 0, 6, 4, 0, operation, 2, 0, 0, 0, 0, 2];
                let bytes = [&head, &from.octets()[..], &[2, 0, 0, 0, 0, 1], &to.octets()].concat();
                Frame { bytes: ethernet(ARP, &bytes), sent }
            };
            vec![frame(1, own, neighbour, true), frame(2, neighbour, own, false)]
        }
        IpAddr::V6(own) => {
            let neighbour = Ipv6Addr::from_bits(own.to_bits() ^ 1);
            // The multicast address of all whose addresses end like this one.
            let group: Ipv6Addr = [0xff02, 0, 0, 0, 0, 1, 0xff00, 0].into();
            let group = Ipv6Addr::from_bits(group.to_bits() | (neighbour.to_bits() & 0xff_ffff));
            let frame = |kind, from: Ipv6Addr, to: Ipv6Addr, sent| {
                let message = [&[kind, 0, 0, 0, 0, 0, 0, 0], &neighbour.octets()[..]].concat();
                Frame { bytes: packet(from.into(), to.into(), ICMPV6, 255, &message), sent }
            };
            vec![frame(135, own, group, true), frame(136, neighbour, own, false)]
        }
    }
}

#[cfg(test)]
mod tests {
    use weir_filter::interpret::{Interpreter, Metadata, Packet};
    use weir_filter::names::NoNames;
    use weir_filter::{Beside, Dialect, Options};

    use super::*;

    fn matches(text: &str, frame: &Frame) -> bool {
        let options = Options {
            dialect: Dialect::Weir,
            link_type: 1,
            snap_len: 262_144,
            metadata: Beside::Direction,
            swapped: false,
            others: &[],
            netmask: None,
            names: &NoNames,
        };
        let filter = weir_filter::compile(text, &options).expect("a filter");
        let length = u32::try_from(frame.bytes.len()).expect("short");
        let meta = Metadata::of_direction(Some(frame.sent));
        Interpreter::new(&filter.graph, &filter.ast.sets).run(&Packet { data: &frame.bytes, length, meta })
            > 0
    }

    #[test]
    fn the_frames_are_what_they_are_called() {
        let login = |client: &str, server: &str| Login {
            client: client.parse().expect("an address"),
            server: server.parse().expect("an address"),
        };
        let table = [
            (
                of_login(&login("192.0.2.9:50000", "192.0.2.1:22")),
                [
                    "inbound and src host 192.0.2.9 and tcp src port 50000 and tcp dst port 22",
                    "outbound and dst host 192.0.2.9 and tcp src port 22 and tcp[tcpflags] & tcp-ack != 0",
                ],
            ),
            (
                of_login(&login("[2001:db8::9]:50000", "[2001:db8::1]:22")),
                [
                    "inbound and src host 2001:db8::9 and tcp dst port 22",
                    "outbound and src host 2001:db8::1 and tcp dst port 50000",
                ],
            ),
            (
                of_neighbours([192, 0, 2, 1].into()),
                ["outbound and arp[6:2] = 1 and arp host 192.0.2.0", "inbound and arp[6:2] = 2"],
            ),
            (
                of_neighbours("2001:db8::1".parse().expect("an address")),
                ["outbound and icmp6[0] = 135 and ip6 multicast", "inbound and icmp6[0] = 136"],
            ),
        ];
        for (frames, filters) in table {
            for filter in filters {
                assert!(frames.iter().any(|frame| matches(filter, frame)), "{filter}");
            }
            for frame in &frames {
                let met = filters.iter().filter(|filter| matches(filter, frame)).count();
                assert_eq!(met, 1, "{frame:x?}");
            }
        }
    }
}
