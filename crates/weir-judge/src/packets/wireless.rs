//! IEEE 802.11, alone and after the headers that drivers add.

use super::{Depth, network, values};
use crate::choices::Choices;

/// A frame of any type. Data frames have an LLC header unless they are empty.
pub(super) fn frame(choices: &mut Choices<'_>) -> Vec<u8> {
    // Type and subtype: data, QoS data, beacon, probe and association requests, RTS, ACK, empty data.
    let first = choices.pick(&[0x08u8, 0x88, 0x80, 0x40, 0x00, 0xb4, 0xd4, 0x48, 0x18]);
    let flags = choices.pick(&[0u8, 1, 2, 3, 0x41]);
    let mut bytes = vec![first, flags, 0, 0];
    bytes.extend(values::mac(choices));
    if first == 0xd4 {
        return bytes;
    }
    bytes.extend(values::mac(choices));
    if first == 0xb4 {
        return bytes;
    }
    bytes.extend(values::mac(choices));
    bytes.extend(choices.bytes(2));
    let data = first & 0x0c == 0x08;
    if data && flags & 3 == 3 {
        bytes.extend(values::mac(choices));
    }
    if first & 0x8c == 0x88 {
        bytes.extend(choices.bytes(2));
    }
    match (data, first & 0x40 == 0) {
        (true, true) => bytes.extend(network::snap(choices, Depth::OUTERMOST)),
        (true, false) => {}
        (false, _) => bytes.extend(choices.bytes(30)),
    }
    bytes
}

/// A header of `length` bytes, with that length in little-endian order at offset 2, as in radiotap and PPI.
fn behind(choices: &mut Choices<'_>, length: u8, mut header: Vec<u8>) -> Vec<u8> {
    header.extend([length, 0]);
    let rest = usize::from(length) - header.len();
    header.extend(choices.bytes(rest));
    header.extend(frame(choices));
    header
}

/// Radiotap (<https://www.radiotap.org>).
pub(super) fn radiotap(choices: &mut Choices<'_>) -> Vec<u8> {
    let length = choices.pick(&[8, 18, 26, 64]);
    behind(choices, length, vec![0, 0])
}

/// PPI, with the link type after the length.
pub(super) fn ppi(choices: &mut Choices<'_>) -> Vec<u8> {
    let length = choices.pick(&[8u8, 32]);
    let mut bytes = vec![0, 0, length, 0];
    bytes.extend(choices.pick(&[105u32, 105, 1]).to_le_bytes());
    let rest = usize::from(length) - bytes.len();
    bytes.extend(choices.bytes(rest));
    bytes.extend(frame(choices));
    bytes
}

/// 144 bytes of PRISM, or an AVS header in its place, as some drivers send.
pub(super) fn prism(choices: &mut Choices<'_>) -> Vec<u8> {
    if choices.one_in(4) {
        return avs(choices);
    }
    let mut bytes = vec![0, 0, 0, 0x44];
    bytes.extend(choices.bytes(140));
    bytes.extend(frame(choices));
    bytes
}

/// AVS: magic number, then the length in network byte order.
pub(super) fn avs(choices: &mut Choices<'_>) -> Vec<u8> {
    let length = choices.pick(&[64u8, 80]);
    let mut bytes = vec![0x80, 0x21, 0x10, 0x01, 0, 0, 0, length];
    let rest = usize::from(length) - bytes.len();
    bytes.extend(choices.bytes(rest));
    bytes.extend(frame(choices));
    bytes
}
