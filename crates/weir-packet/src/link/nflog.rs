//! Packets that netfilter logged (linux/netfilter/nfnetlink_log.h): attributes, one of which is the packet.

use super::{Cut, Found, Payload};
use crate::bytes::{byte, le16};
use crate::numbers::ethertype;

/// Address family, version, number of the group.
const HEADER: usize = 4;
/// Length and type of an attribute.
const ATTRIBUTE: usize = 4;
/// `NFULA_PAYLOAD`.
const PAYLOAD: u16 = 9;

/// Address families of Linux.
const INET: u8 = 2;
const INET6: u8 = 10;

pub(super) fn frame(frame: &[u8]) -> Found {
    let (family, version) = (byte(frame, 0).ok_or(Cut)?, byte(frame, 1).ok_or(Cut)?);
    let kind = match (family, version) {
        (INET, 0) => ethertype::IPV4,
        (INET6, 0) => ethertype::IPV6,
        _ => return Ok(None),
    };
    let mut at = HEADER;
    loop {
        // Their byte order is that of the host that captured; nearly all of them are little-endian.
        let (length, number) = (le16(frame, at).ok_or(Cut)?, le16(frame, at + 2).ok_or(Cut)?);
        let length = usize::from(length);
        if length < ATTRIBUTE {
            return Ok(None);
        }
        if number == PAYLOAD {
            return Ok(Some(Payload { kind, at: at + ATTRIBUTE }));
        }
        at += length.next_multiple_of(4);
    }
}
