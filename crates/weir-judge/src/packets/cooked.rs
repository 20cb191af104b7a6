//! Link layers that the kernel generates, and serial lines.

use super::network::{self, Kind};
use super::{Depth, values};
use crate::choices::Choices;

/// Returns an EtherType, or Linux's number for 802.2 (`ETH_P_802_2`).
fn protocol(kind: &Kind) -> [u8; 2] {
    match kind {
        Kind::EtherType(kind) => kind.to_be_bytes(),
        Kind::Llc => [0, 4],
    }
}

/// Returns a packet type from `PACKET_HOST` to `PACKET_OUTGOING`.
fn packet_type(choices: &mut Choices<'_>) -> u8 {
    choices.pick(&[0, 4, 1, 2, 3])
}

/// `LINKTYPE_LINUX_SLL`.
pub(super) fn sll(choices: &mut Choices<'_>) -> Vec<u8> {
    let mut bytes = vec![0, packet_type(choices), 0, 1, 0, 6];
    bytes.extend(values::mac(choices));
    bytes.extend([0, 0]);
    let (kind, data) = network::any(choices, Depth::OUTERMOST);
    bytes.extend(protocol(&kind));
    bytes.extend(data);
    bytes
}

/// `LINKTYPE_LINUX_SLL2`.
pub(super) fn sll2(choices: &mut Choices<'_>) -> Vec<u8> {
    let (kind, data) = network::any(choices, Depth::OUTERMOST);
    let mut bytes = protocol(&kind).to_vec();
    bytes.extend([0, 0, 0, 0, 0, choices.pick(&[2, 3, 1])]);
    bytes.extend([0, 1, packet_type(choices), 6]);
    bytes.extend(values::mac(choices));
    bytes.extend([0, 0]);
    bytes.extend(data);
    bytes
}

/// `LINKTYPE_NULL` and `LINKTYPE_LOOP`: the address family, whose number for IPv6 differs between systems.
pub(super) fn null(choices: &mut Choices<'_>, order: fn(u32) -> [u8; 4]) -> Vec<u8> {
    let (kind, data) = network::ip(choices, Depth::OUTERMOST);
    let family = if kind == 0x0800 { 2 } else { choices.pick(&[10, 24, 28, 30]) };
    let mut bytes = order(family).to_vec();
    if choices.one_in(6) {
        bytes.reverse();
    }
    bytes.extend(data);
    bytes
}

/// PPP in the framing of RFC 1662.
pub(super) fn ppp(choices: &mut Choices<'_>) -> Vec<u8> {
    let mut bytes = choices.pick(&[[0xff, 0x03], [0xff, 0x03], [0x00, 0x21], [0x0f, 0x00]]).to_vec();
    let (protocol, data) = network::ppp(choices, Depth::OUTERMOST);
    bytes.extend(protocol.to_be_bytes());
    bytes.extend(data);
    bytes
}

/// PPP after a PPPoE header (RFC 2516).
pub(super) fn pppoe(choices: &mut Choices<'_>) -> Vec<u8> {
    network::pppoe(choices, Depth::OUTERMOST)
}

/// Cisco HDLC.
pub(super) fn cisco_hdlc(choices: &mut Choices<'_>) -> Vec<u8> {
    let mut bytes = vec![0x0f, 0];
    let (kind, data) = network::any(choices, Depth::OUTERMOST);
    match kind {
        Kind::EtherType(kind) => {
            bytes.extend(kind.to_be_bytes());
            bytes.extend(data);
        }
        // All that is left of LLC is a byte of padding.
        Kind::Llc => {
            bytes.extend([0xfe, 0xfe]);
            bytes.extend(&data[2..]);
        }
    }
    bytes
}

/// RFC 2427: a DLCI and a network-layer protocol identifier.
pub(super) fn frame_relay(choices: &mut Choices<'_>) -> Vec<u8> {
    let mut bytes = vec![0x18, 0x41, 0x03];
    match choices.below(8) {
        0..=4 => {
            bytes.push(0xcc);
            bytes.extend(network::ipv4(choices, Depth::OUTERMOST));
        }
        5 => {
            bytes.push(0x8e);
            bytes.extend(network::ipv6(choices, Depth::OUTERMOST));
        }
        _ => {
            bytes.push(choices.pick(&[0x81, 0x82, 0x83, 0x08]));
            bytes.extend(choices.bytes(30));
        }
    }
    bytes
}

/// Sixteen bytes with the direction and a compressed header, then IP; or IP at once, where libpcap looks for it.
pub(super) fn slip(choices: &mut Choices<'_>) -> Vec<u8> {
    if choices.one_in(2) {
        return network::ip(choices, Depth::OUTERMOST).1;
    }
    let mut bytes = vec![choices.pick(&[0, 1])];
    bytes.extend(choices.bytes(15));
    bytes.extend(network::ip(choices, Depth::OUTERMOST).1);
    bytes
}
