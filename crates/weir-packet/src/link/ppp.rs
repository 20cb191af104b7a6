//! PPP (RFC 1661), with or without the frame of HDLC (RFC 1662), and what Cisco puts into that.

use super::{Cut, Found, Payload};
use crate::bytes::{be16, byte};
use crate::numbers::{ethertype, ppp};

/// HDLC's address of all stations, and the control field of unnumbered information.
const ADDRESS: u8 = 0xff;
const CONTROL: u8 = 0x03;
/// The addresses of Cisco's HDLC: one station, and all.
const UNICAST: u8 = 0x0f;
const BROADCAST: u8 = 0x8f;

pub(super) fn frame(frame: &[u8]) -> Found {
    behind(frame, 0)
}

/// Finds the packet of the PPP that begins at `at`.
pub(super) fn behind(frame: &[u8], at: usize) -> Found {
    match be16(frame, at).ok_or(Cut)?.to_be_bytes() {
        [ADDRESS, CONTROL] => protocol(frame, at + 2),
        _ => protocol(frame, at),
    }
}

/// Finds the packet of PPP in HDLC's frame, or in that of Cisco.
pub(super) fn serial(frame: &[u8]) -> Found {
    byte(frame, 1).ok_or(Cut)?;
    match frame[0] {
        ADDRESS => protocol(frame, 2),
        UNICAST | BROADCAST => cisco(frame),
        _ => Ok(None),
    }
}

/// Finds the packet behind Cisco's address and control fields, and an EtherType.
pub(super) fn cisco(frame: &[u8]) -> Found {
    let kind = be16(frame, 2).ok_or(Cut)?;
    Ok((kind >= ethertype::FIRST).then_some(Payload { kind, at: 4 }))
}

/// The number of a protocol may be compressed to one byte; the last one is always odd, others are even.
fn protocol(frame: &[u8], at: usize) -> Found {
    let first = byte(frame, at).ok_or(Cut)?;
    let (protocol, at) = match first & 1 {
        1 => (first.into(), at + 1),
        _ => (be16(frame, at).ok_or(Cut)?, at + 2),
    };
    let kind = match protocol {
        ppp::IPV4 => ethertype::IPV4,
        ppp::IPV6 => ethertype::IPV6,
        ppp::MPLS => ethertype::MPLS,
        ppp::MPLS_UPSTREAM => ethertype::MPLS_UPSTREAM,
        _ => return Ok(None),
    };
    Ok(Some(Payload { kind, at }))
}
