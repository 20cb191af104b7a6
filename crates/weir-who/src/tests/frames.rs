//! Small frames.

use std::net::IpAddr;

use weir_packet::{Endpoint, ethertype, protocol};

use super::end;

pub(super) const SYN: u8 = 2;
pub(super) const RST: u8 = 4;
pub(super) const ACK: u8 = 16;

/// An Ethernet frame, to one host.
pub(super) fn ethernet(kind: u16, payload: &[u8]) -> Vec<u8> {
    [&[2, 0, 0, 0, 0, 2, 2, 0, 0, 0, 0, 1][..], &kind.to_be_bytes(), payload].concat()
}

/// The same, to all hosts of the network.
pub(super) fn to_all(mut frame: Vec<u8>) -> Vec<u8> {
    frame[..6].fill(0xff);
    frame
}

/// An IP packet between two addresses, in its frame.
pub(super) fn ip(from: IpAddr, to: IpAddr, number: u8, payload: &[u8]) -> Vec<u8> {
    let (kind, packet) = packet(from, to, number, payload);
    ethernet(kind, &packet)
}

/// An IP packet and its EtherType.
pub(super) fn packet(from: IpAddr, to: IpAddr, number: u8, payload: &[u8]) -> (u16, Vec<u8>) {
    match (from, to) {
        (IpAddr::V4(from), IpAddr::V4(to)) => {
            let [high, low] = u16::try_from(20 + payload.len()).expect("short").to_be_bytes();
            let head = [0x45, 0, high, low, 0, 9, 0, 0, 64, number, 0, 0];
            let packet = [&head[..], &from.octets(), &to.octets(), payload].concat();
            (ethertype::IPV4, packet)
        }
        (from, to) => {
            let bytes = |address| match address {
                IpAddr::V4(address) => address.to_ipv6_mapped().octets(),
                IpAddr::V6(address) => address.octets(),
            };
            let [high, low] = u16::try_from(payload.len()).expect("short").to_be_bytes();
            let head = [0x60, 0, 0, 0, high, low, number, 64];
            (ethertype::IPV6, [&head[..], &bytes(from), &bytes(to), payload].concat())
        }
    }
}

fn ports(from: Endpoint, to: Endpoint) -> [u8; 4] {
    let [[a, b], [c, d]] = [from.port, to.port].map(u16::to_be_bytes);
    [a, b, c, d]
}

pub(super) fn udp_between(from: Endpoint, to: Endpoint) -> Vec<u8> {
    ip(from.address, to.address, protocol::UDP, &[&ports(from, to)[..], &[0, 9, 0, 0, 7]].concat())
}

pub(super) fn tcp_between(from: Endpoint, to: Endpoint, flags: u8) -> Vec<u8> {
    let rest = [0, 0, 0, 1, 0, 0, 0, 1, 0x50, flags, 0, 9, 0, 0, 0, 0];
    ip(from.address, to.address, protocol::TCP, &[&ports(from, to)[..], &rest].concat())
}

pub(super) fn udp(from: &str, to: &str) -> Vec<u8> {
    udp_between(end(from), end(to))
}

/// A segment with data.
pub(super) fn tcp(from: &str, to: &str) -> Vec<u8> {
    flagged(from, to, ACK)
}

pub(super) fn flagged(from: &str, to: &str, flags: u8) -> Vec<u8> {
    tcp_between(end(from), end(to), flags)
}

fn addresses(from: &str, to: &str) -> (IpAddr, IpAddr) {
    (from.parse().expect("an address"), to.parse().expect("an address"))
}

/// A message of ICMP or ICMPv6: its type, then what comes behind its checksum.
pub(super) fn icmp(from: &str, to: &str, kind: u8, rest: &[u8]) -> Vec<u8> {
    let (from, to) = addresses(from, to);
    let number = if from.is_ipv4() { protocol::ICMP } else { protocol::ICMPV6 };
    ip(from, to, number, &[&[kind, 0, 0, 0][..], rest].concat())
}

/// A packet of another protocol.
pub(super) fn plain(from: &str, to: &str, number: u8, payload: &[u8]) -> Vec<u8> {
    let (from, to) = addresses(from, to);
    ip(from, to, number, payload)
}
