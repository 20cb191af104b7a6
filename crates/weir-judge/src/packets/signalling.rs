//! ATM and SS7.

use super::{Depth, ethernet, network};
use crate::choices::Choices;

/// `LINKTYPE_SUNATM`: kind of traffic, virtual path, virtual channel.
pub(super) fn sun_atm(choices: &mut Choices<'_>) -> Vec<u8> {
    let kind = choices.pick(&[0x02u8, 0x01, 0x05, 0x06, 0x82, 0x00]);
    let mut bytes = vec![kind, choices.pick(&[0, 1, 7])];
    bytes.extend(choices.pick(&[5u16, 1, 2, 3, 4, 16, 100]).to_be_bytes());
    match kind & 0x0f {
        1 => {
            bytes.extend(choices.pick(&[[0xff, 0x00], [0, 0]]));
            bytes.extend(ethernet::frame(choices, Depth::OUTERMOST));
        }
        2 => bytes.extend(network::llc(choices, Depth::OUTERMOST)),
        _ => {
            // A Q.2931 message: discriminator, call reference, message type.
            bytes.extend([9, 3, 0, 0, 1, choices.pick(&[5, 2, 7, 15, 77, 0x5a, 0x7d])]);
            bytes.extend(choices.bytes(30));
        }
    }
    bytes
}

/// Q.703: sequence numbers, length indicator (fill-in, link status or message), service information, routing label. On
/// high-speed links (annex A), numbers and length are twice as long.
pub(super) fn mtp2(choices: &mut Choices<'_>) -> Vec<u8> {
    let length = choices.pick(&[20u8, 0x3f, 0, 1, 2, 3, 0x80]);
    let mut bytes;
    if choices.one_in(2) {
        bytes = choices.bytes(4);
        bytes.extend((u16::from(length) << 7).to_be_bytes());
    } else {
        bytes = choices.bytes(2);
        bytes.push(length);
    }
    bytes.push(choices.pick(&[3, 0x83, 5, 200]));
    // Destination 14 bits, origin 14 bits, link selection 4 bits, lowest first (Q.704).
    let destination: u32 = choices.pick(&[200, 100, 300]);
    let origin: u32 = choices.pick(&[100, 200, 300]);
    let selection: u32 = choices.pick(&[5, 3, 0]);
    bytes.extend((destination | origin << 14 | selection << 28).to_le_bytes());
    bytes.extend(choices.bytes(16));
    bytes
}

/// MTP2 after four bytes of information from the card.
pub(super) fn mtp2_with_header(choices: &mut Choices<'_>) -> Vec<u8> {
    let mut bytes = choices.bytes(4);
    bytes.extend(mtp2(choices));
    bytes
}
