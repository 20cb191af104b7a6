//! IP payloads.

use super::values::{payload, port, vni};
use super::{Depth, ethernet, network};
use crate::choices::Choices;

/// A protocol number and payload.
pub(super) fn any(choices: &mut Choices<'_>, depth: Depth, ipv6: bool) -> (u8, Vec<u8>) {
    let icmp = if ipv6 { 58 } else { 1 };
    let protocol = choices.pick(&[
        6, 17, 6, 17, 6, 132, icmp, icmp, 1, 58, 2, 47, 4, 41, 50, 51, 89, 103, 112, 9, 59, 255, 0, 17, 47,
    ]);
    (protocol, of(protocol, choices, depth))
}

fn of(protocol: u8, choices: &mut Choices<'_>, depth: Depth) -> Vec<u8> {
    match protocol {
        6 => tcp(choices),
        17 => udp(choices, depth),
        132 => sctp(choices),
        1 => icmp(choices, &[8, 0, 3, 11]),
        58 => icmp(choices, &[128, 129, 135, 136, 1]),
        2 => icmp(choices, &[0x16, 0x11, 0x17]),
        47 => gre(choices, depth),
        4 => depth.inside().map_or_else(Vec::new, |depth| network::ipv4(choices, depth)),
        41 => depth.inside().map_or_else(Vec::new, |depth| network::ipv6(choices, depth)),
        51 => {
            let mut header = vec![6, 4, 0, 0];
            header.extend(choices.bytes(20));
            header.extend(tcp(choices));
            header
        }
        _ => choices.bytes(24),
    }
}

fn ports(choices: &mut Choices<'_>) -> Vec<u8> {
    let (source, destination) = (port(choices), port(choices));
    [source.to_be_bytes(), destination.to_be_bytes()].concat()
}

fn tcp(choices: &mut Choices<'_>) -> Vec<u8> {
    let mut bytes = ports(choices);
    bytes.extend(choices.bytes(8));
    let words = choices.pick(&[5, 5, 8, 15, 4]);
    let flags = choices.pick(&[0x10, 0x02, 0x12, 0x18, 0x04, 0x01, 0x29, 0xff, 0xc2]);
    bytes.extend([words << 4, flags]);
    bytes.extend(choices.pick(&[502u16, 65535, 80, 0]).to_be_bytes());
    bytes.extend(choices.bytes(4));
    bytes.resize(usize::from(words.max(5)) * 4, 1);
    bytes.extend(payload(choices));
    bytes
}

fn udp(choices: &mut Choices<'_>, depth: Depth) -> Vec<u8> {
    let source = port(choices);
    let tunnel = depth.inside().filter(|_| choices.one_in(3));
    let (destination, data) = match tunnel {
        None => (port(choices), payload(choices)),
        Some(depth) => match choices.below(3) {
            0 => (choices.pick(&[4789, 8472]), vxlan(choices, depth)),
            1 => (6081, geneve(choices, depth)),
            _ => (2152, gtp(choices, depth)),
        },
    };
    let length = u16::try_from(data.len() + 8).expect("packets are short");
    let mut bytes = [source, destination, length, choices.half()].map(u16::to_be_bytes).concat();
    bytes.extend(data);
    bytes
}

fn sctp(choices: &mut Choices<'_>) -> Vec<u8> {
    let mut bytes = ports(choices);
    bytes.extend(choices.bytes(8));
    bytes.extend([choices.pick(&[1, 0, 3]), 0, 0, 20]);
    bytes.extend(choices.bytes(16));
    bytes
}

/// ICMP, ICMPv6 or IGMP, which all begin with type, code and checksum.
fn icmp(choices: &mut Choices<'_>, kinds: &[u8]) -> Vec<u8> {
    let mut bytes = vec![choices.pick(kinds), choices.pick(&[0, 4, 1])];
    bytes.extend(choices.bytes(6));
    bytes.extend(payload(choices));
    bytes
}

/// The payload of a tunnel: protocol (an EtherType) and packet.
fn carried(choices: &mut Choices<'_>, depth: Depth) -> (u16, Vec<u8>) {
    match choices.below(4) {
        0 => (0x0800, network::ipv4(choices, depth)),
        1 => (0x86dd, network::ipv6(choices, depth)),
        2 => (0x6558, ethernet::frame(choices, depth)),
        _ => (choices.pick(&[0x0806, 0x880b, 0x1234]), choices.bytes(30)),
    }
}

/// GRE (RFC 2784, RFC 2890), and version 1 (RFC 2637).
fn gre(choices: &mut Choices<'_>, depth: Depth) -> Vec<u8> {
    let Some(depth) = depth.inside() else { return Vec::new() };
    let flags = choices.pick(&[0u8, 0x20, 0x80, 0xb0, 0x10, 0x40]);
    let (protocol, packet) = carried(choices, depth);
    let mut bytes = vec![flags, choices.pick(&[0, 0, 0, 1])];
    bytes.extend(protocol.to_be_bytes());
    for flag in [0x80, 0x20, 0x10] {
        if flags & flag != 0 {
            bytes.extend(choices.bytes(4));
        }
    }
    bytes.extend(packet);
    bytes
}

/// VXLAN (RFC 7348).
fn vxlan(choices: &mut Choices<'_>, depth: Depth) -> Vec<u8> {
    let mut bytes = vec![choices.pick(&[0x08, 0x08, 0x08, 0]), 0, 0, 0];
    bytes.extend(vni(choices));
    bytes.push(0);
    bytes.extend(ethernet::frame(choices, depth));
    bytes
}

/// Geneve (RFC 8926).
fn geneve(choices: &mut Choices<'_>, depth: Depth) -> Vec<u8> {
    let words = choices.pick(&[0, 1, 3]);
    let (protocol, packet) = carried(choices, depth);
    let mut bytes = vec![choices.pick(&[0, 0, 0, 0x40]) | words, choices.pick(&[0, 0x40])];
    bytes.extend(protocol.to_be_bytes());
    bytes.extend(vni(choices));
    bytes.push(0);
    bytes.extend(choices.bytes(usize::from(words) * 4));
    bytes.extend(packet);
    bytes
}

/// GTP (3GPP TS 29.281); only messages of type 255 contain a packet.
fn gtp(choices: &mut Choices<'_>, depth: Depth) -> Vec<u8> {
    let flags = choices.pick(&[0x30u8, 0x32, 0x34, 0x20]);
    let mut body = Vec::new();
    if flags & 7 != 0 {
        body.extend([0, 7, 0]);
        body.push(if flags & 4 == 0 { 0 } else { 0x85 });
        if flags & 4 != 0 {
            body.extend([1, 0, 0, 0]);
        }
    }
    body.extend(network::ip(choices, depth).1);
    let length = u16::try_from(body.len()).expect("packets are short");
    let mut bytes = vec![flags, choices.pick(&[255, 255, 255, 1])];
    bytes.extend(length.to_be_bytes());
    bytes.extend(choices.bytes(4));
    bytes.extend(body);
    bytes
}
