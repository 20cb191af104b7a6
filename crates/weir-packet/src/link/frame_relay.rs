//! Frame relay: the address of Q.922, and what it carries (RFC 2427).

use super::{Cut, Found, Payload, llc, ppp};
use crate::bytes::{be16, byte};
use crate::numbers::ethertype;

/// Unnumbered information.
const CONTROL: u8 = 0x03;

/// Numbers of network protocols (ISO/IEC TR 9577; for PPP RFC 1973).
const SNAP: u8 = 0x80;
const IPV6: u8 = 0x8e;
const IPV4: u8 = 0xcc;
const PPP: u8 = 0xcf;

/// Circuits that carry the state of the link.
const MANAGEMENT: u16 = 0;

pub(super) fn frame(frame: &[u8]) -> Found {
    let Some(address) = address(frame)? else { return Ok(None) };
    if byte(frame, address).ok_or(Cut)? != CONTROL {
        // Cisco has an EtherType there.
        let kind = be16(frame, address).ok_or(Cut)?;
        let is_ethertype = circuit(frame) != MANAGEMENT && kind >= ethertype::FIRST;
        return Ok(is_ethertype.then_some(Payload { kind, at: address + 2 }));
    }
    // Padding may make the header even.
    let pad = usize::from(byte(frame, address + 1).ok_or(Cut)? == 0);
    let at = address + 2 + pad;
    match byte(frame, at - 1).ok_or(Cut)? {
        SNAP => llc::snap(frame, at),
        IPV4 => Ok(Some(Payload { kind: ethertype::IPV4, at })),
        IPV6 => Ok(Some(Payload { kind: ethertype::IPV6, at })),
        PPP => ppp::behind(frame, at),
        _ => Ok(None),
    }
}

/// Returns the length of the address: its last byte is odd, those before it are even. It has two to four.
fn address(frame: &[u8]) -> Result<Option<usize>, Cut> {
    for at in 0..4 {
        if byte(frame, at).ok_or(Cut)? & 1 != 0 {
            return Ok((at > 0).then_some(at + 1));
        }
    }
    Ok(None)
}

/// Returns the upper bits of the circuit's number, which are those of its first two bytes: of the numbers that are used,
/// only that of management has none of them.
fn circuit(frame: &[u8]) -> u16 {
    be16(frame, 0).unwrap_or_default() & 0xfcf0
}
