//! Payloads of link layers.

use super::values;
use super::{Depth, transport};
use crate::choices::Choices;

/// The protocol field of a link layer.
pub(super) enum Kind {
    /// An EtherType.
    EtherType(u16),
    /// None: an LLC header comes first.
    Llc,
}

/// Any payload.
pub(super) fn any(choices: &mut Choices<'_>, depth: Depth) -> (Kind, Vec<u8>) {
    use Kind::{EtherType, Llc};
    match choices.below(24) {
        0..=8 => (EtherType(0x0800), ipv4(choices, depth)),
        9..=14 => (EtherType(0x86dd), ipv6(choices, depth)),
        15 => (EtherType(0x0806), arp(choices)),
        16 => (EtherType(0x8035), arp(choices)),
        17 | 18 => (EtherType(choices.pick(&[0x8847, 0x8847, 0x8848])), mpls(choices, depth)),
        19 => (EtherType(0x8864), pppoe(choices, depth)),
        20 => (EtherType(0x6003), decnet(choices)),
        21 => other(choices),
        _ => (Llc, llc(choices, depth)),
    }
}

/// IPv4 or IPv6, with its EtherType.
pub(super) fn ip(choices: &mut Choices<'_>, depth: Depth) -> (u16, Vec<u8>) {
    if choices.one_in(3) { (0x86dd, ipv6(choices, depth)) } else { (0x0800, ipv4(choices, depth)) }
}

fn other(choices: &mut Choices<'_>) -> (Kind, Vec<u8>) {
    let kind = choices.pick(&[
        0x88cc, 0x888e, 0x8863, 0x809b, 0x80f3, 0x8137, 0x6001, 0x6002, 0x6004, 0x6007, 0x9000, 0x0600,
        0x1234,
    ]);
    (Kind::EtherType(kind), choices.bytes(40))
}

pub(super) fn ipv4(choices: &mut Choices<'_>, depth: Depth) -> Vec<u8> {
    let (protocol, data) = transport::any(choices, depth, false);
    let words = choices.pick(&[5, 5, 5, 6, 8, 15]);
    let fragment = choices.pick(&[0u16, 0x4000, 0, 0x4000, 0x2000, 0x2010, 0x0010, 0x1fff]);
    let length = u16::try_from(usize::from(words) * 4 + data.len()).expect("packets are short");
    let mut bytes = vec![0x40 | words, choices.pick(&[0, 0xb8, 0x10])];
    bytes.extend(length.to_be_bytes());
    bytes.extend(choices.bytes(2));
    bytes.extend(fragment.to_be_bytes());
    bytes.extend([choices.pick(&[64, 1, 63, 255]), protocol, 0, 0]);
    bytes.extend(values::ipv4(choices));
    bytes.extend(values::ipv4(choices));
    bytes.resize(usize::from(words) * 4, 7);
    bytes.extend(data);
    bytes
}

pub(super) fn ipv6(choices: &mut Choices<'_>, depth: Depth) -> Vec<u8> {
    let (mut next, mut data) = transport::any(choices, depth, true);
    let headers = choices.pick(&[0, 0, 0, 1, 1, 2, 3, 8, 9, 0]);
    for _ in 0..headers {
        let kind = choices.pick(&[0u8, 43, 44, 60, 51, 135, 139, 140, 44]);
        data = extension(choices, kind, next, &data);
        next = kind;
    }
    let length = u16::try_from(data.len()).expect("packets are short");
    let mut bytes = vec![0x60, choices.pick(&[0, 0x12]), choices.byte(), 0];
    bytes.extend(length.to_be_bytes());
    bytes.extend([next, choices.pick(&[64, 255, 1])]);
    bytes.extend(values::ipv6(choices));
    bytes.extend(values::ipv6(choices));
    bytes.extend(data);
    bytes
}

/// An extension header (RFC 8200, section 4). The authentication header (RFC 4302) counts four-byte words, the others
/// eight-byte words.
fn extension(choices: &mut Choices<'_>, kind: u8, next: u8, data: &[u8]) -> Vec<u8> {
    let mut bytes = vec![next];
    match kind {
        44 => {
            bytes.push(0);
            bytes.extend(choices.pick(&[0u16, 1, 0x10, 0x11]).to_be_bytes());
            bytes.extend(choices.bytes(4));
        }
        51 => {
            bytes.push(4);
            bytes.extend(choices.bytes(22));
        }
        _ => {
            let eights = choices.pick(&[0u8, 1, 2]);
            bytes.push(eights);
            bytes.extend(choices.bytes(6 + usize::from(eights) * 8));
        }
    }
    bytes.extend(data);
    bytes
}

pub(super) fn arp(choices: &mut Choices<'_>) -> Vec<u8> {
    let mut bytes = vec![0, 1, 8, 0, 6, 4, 0, choices.pick(&[1, 2, 3, 4])];
    for _ in 0..2 {
        bytes.extend(values::mac(choices));
        bytes.extend(values::ipv4(choices));
    }
    bytes.resize(46, 0);
    bytes
}

fn mpls(choices: &mut Choices<'_>, depth: Depth) -> Vec<u8> {
    let labels = choices.pick(&[1, 2, 3, 1]);
    let mut bytes = Vec::new();
    for index in 1..=labels {
        let label: u32 = choices.pick(&[100, 200, 1024, 0, 2]);
        bytes.extend((label << 12 | u32::from(index == labels) << 8 | 64).to_be_bytes());
    }
    bytes.extend(if choices.one_in(5) { choices.bytes(30) } else { ip(choices, depth).1 });
    bytes
}

pub(super) fn pppoe(choices: &mut Choices<'_>, depth: Depth) -> Vec<u8> {
    let (protocol, data) = ppp(choices, depth);
    let length = u16::try_from(data.len() + 2).expect("packets are short");
    let mut bytes = vec![0x11, 0];
    bytes.extend(choices.pick(&[17u16, 1, 0]).to_be_bytes());
    bytes.extend(length.to_be_bytes());
    bytes.extend(protocol.to_be_bytes());
    bytes.extend(data);
    bytes
}

/// A PPP protocol number and payload.
pub(super) fn ppp(choices: &mut Choices<'_>, depth: Depth) -> (u16, Vec<u8>) {
    match choices.below(8) {
        0..=3 => (0x0021, ipv4(choices, depth)),
        4 | 5 => (0x0057, ipv6(choices, depth)),
        6 => (0xc021, choices.bytes(20)),
        _ => (choices.pick(&[0x0023, 0x0025, 0x0027, 0x0029, 0x002b, 0x0031, 0x003f]), choices.bytes(30)),
    }
}

/// Short and long routing headers, with and without padding (DECnet phase IV).
fn decnet(choices: &mut Choices<'_>) -> Vec<u8> {
    let address =
        |choices: &mut Choices<'_>| choices.pick(&[(10u16 << 10) | 5, (1 << 10) | 1, 77]).to_le_bytes();
    let mut bytes = vec![30, 0];
    if choices.one_in(2) {
        bytes.push(0x81);
    }
    if choices.one_in(2) {
        bytes.push(0x02);
        bytes.extend(address(choices));
        bytes.extend(address(choices));
        bytes.push(0);
    } else {
        bytes.extend([0x06, 0, 0, 0xaa, 0, 4, 0]);
        bytes.extend(address(choices));
        bytes.extend([0, 0, 0xaa, 0, 4, 0]);
        bytes.extend(address(choices));
    }
    bytes.extend(choices.bytes(20));
    bytes
}

/// IEEE 802.2 and its payload.
pub(super) fn llc(choices: &mut Choices<'_>, depth: Depth) -> Vec<u8> {
    let body = match choices.below(9) {
        0..=2 => return snap(choices, depth),
        3 | 4 => vec![0xfe, 0xfe, 0x03],
        5 => vec![0x42, 0x42, 0x03],
        6 => vec![0xe0, 0xe0, 0x03],
        _ => {
            let service = choices.pick(&[0xf0, 0x04, 0xaa, 0xfe, 0x06]);
            let control =
                choices.pick(&[0x03, 0x00, 0x01, 0x05, 0x09, 0x63, 0x43, 0x6f, 0xe3, 0xaf, 0x87, 0x02]);
            vec![service, service | choices.pick(&[0, 1]), control]
        }
    };
    let mut bytes = body;
    bytes.extend([choices.pick(&[0x83, 0x81, 0x82]), 27, 1, 0]);
    bytes.extend([choices.pick(&[15, 16, 17, 18, 20, 24, 25, 26, 27]), 1, 0, 0]);
    bytes.extend(choices.bytes(35));
    bytes
}

/// An EtherType or AppleTalk's protocol after an LLC header (RFC 1042).
pub(super) fn snap(choices: &mut Choices<'_>, depth: Depth) -> Vec<u8> {
    let (organisation, kind, data) = match choices.below(6) {
        0..=2 => {
            let (kind, data) = ip(choices, depth);
            ([0, 0, 0], kind, data)
        }
        3 => ([0, 0, 0], 0x0806, arp(choices)),
        4 => ([8, 0, 7], 0x809b, choices.bytes(30)),
        _ => ([0, 0, 0], choices.pick(&[0x80f3, 0x1234, 0x8137]), choices.bytes(30)),
    };
    let mut bytes = vec![0xaa, 0xaa, 0x03];
    bytes.extend(organisation);
    bytes.extend(kind.to_be_bytes());
    bytes.extend(data);
    bytes
}
