//! Ethernet and similar link layers.

use super::network::{self, Kind};
use super::{Depth, values};
use crate::choices::Choices;

/// Ethernet with up to five tags.
pub(super) fn frame(choices: &mut Choices<'_>, depth: Depth) -> Vec<u8> {
    let mut bytes = [values::mac(choices), values::mac(choices)].concat();
    let tags = choices.pick(&[0, 0, 0, 1, 1, 2, 0, 1, 2, 3, 0, 0, 0, 4, 5, 0]);
    for _ in 0..tags {
        bytes.extend(choices.pick(&[0x8100u16, 0x88a8, 0x8100, 0x9100]).to_be_bytes());
        bytes.extend(values::tci(choices).to_be_bytes());
    }
    let (kind, data) = network::any(choices, depth);
    let kind = match kind {
        Kind::EtherType(kind) => kind,
        Kind::Llc => u16::try_from(data.len()).expect("packets are short"),
    };
    bytes.extend(kind.to_be_bytes());
    bytes.extend(data);
    bytes
}

/// IEEE 802.5, with a route if the source address announces one.
pub(super) fn token_ring(choices: &mut Choices<'_>) -> Vec<u8> {
    let mut bytes = vec![0x10, 0x40];
    bytes.extend(values::mac(choices));
    let mut source = values::mac(choices);
    source[0] = choices.pick(&[0, 0, 0x80]);
    bytes.extend(source);
    if source[0] == 0x80 {
        bytes.extend([2, 0]);
    }
    bytes.extend(network::llc(choices, Depth::OUTERMOST));
    bytes
}

pub(super) fn fddi(choices: &mut Choices<'_>) -> Vec<u8> {
    let mut bytes = vec![choices.pick(&[0x50, 0x51, 0x57, 0xd0, 0x41])];
    bytes.extend(values::mac(choices));
    bytes.extend(values::mac(choices));
    bytes.extend(network::llc(choices, Depth::OUTERMOST));
    bytes
}

/// RFC 1201 after source and destination; Linux inserts a two-byte offset.
pub(super) fn arcnet(choices: &mut Choices<'_>, linux: bool) -> Vec<u8> {
    let mut bytes = vec![choices.pick(&[5, 7]), choices.pick(&[7, 5, 0])];
    if linux {
        bytes.extend([0, 0]);
    }
    let (kind, data) = if choices.one_in(4) {
        (213, network::arp(choices))
    } else {
        (212, network::ipv4(choices, Depth::OUTERMOST))
    };
    bytes.push(kind);
    bytes.extend([0, 0, 1]);
    bytes.extend(data);
    bytes
}

/// IP over Fibre Channel (RFC 2625).
pub(super) fn fibre_channel(choices: &mut Choices<'_>) -> Vec<u8> {
    let mut bytes = vec![choices.pick(&[0x10, 0x11]), 0];
    bytes.extend(values::mac(choices));
    bytes.extend([0x10, 0]);
    bytes.extend(values::mac(choices));
    bytes.extend(network::snap(choices, Depth::OUTERMOST));
    bytes
}

/// Ethernet after the four bytes of a Hilscher netANALYZER.
pub(super) fn analyser(choices: &mut Choices<'_>) -> Vec<u8> {
    let mut bytes = choices.bytes(4);
    bytes.extend(frame(choices, Depth::OUTERMOST));
    bytes
}
