//! Logical link control (IEEE 802.2), and the EtherType that an organization's header has (SNAP, RFC 1042).

use super::{Cut, Payload};
use crate::bytes::{be16, be32, byte};
use crate::numbers::ethertype;

/// The service access point of IP, and that of SNAP. The lowest bit is no part of it.
const IP: u8 = 0x06;
const SNAP: u8 = 0xaa;
/// Unnumbered information.
const INFORMATION: u8 = 0x03;

/// The organizations whose types are EtherTypes (RFC 1042, and IEEE 802.1H for bridges).
const ETHERNET: u32 = 0;
const BRIDGES: u32 = 0xf8;

/// Returns the packet behind LLC. [`ethertype::LLC`]: LLC itself, since what it carries is another one.
pub(crate) fn behind(bytes: &[u8], at: usize) -> Result<Payload, Cut> {
    let field = |offset| byte(bytes, at + offset).ok_or(Cut);
    let (to, from, control) = (field(0)? & !1, field(1)? & !1, field(2)?);
    let packet = match (to, from, control) {
        (SNAP, SNAP, INFORMATION) => snap(bytes, at + 3)?,
        (IP, IP, INFORMATION) => Some(Payload { kind: ethertype::IPV4, at: at + 3 }),
        _ => None,
    };
    Ok(packet.unwrap_or(Payload { kind: ethertype::LLC, at }))
}

/// Returns the packet behind SNAP, if an EtherType says what it is.
pub(super) fn snap(bytes: &[u8], at: usize) -> Result<Option<Payload>, Cut> {
    // Three bytes for the organization, two for the type.
    let kind = be16(bytes, at + 3).ok_or(Cut)?;
    let organization = be32(bytes, at).ok_or(Cut)? >> 8;
    let is_ethertype = matches!(organization, ETHERNET | BRIDGES) && kind >= ethertype::FIRST;
    Ok(is_ethertype.then_some(Payload { kind, at: at + 5 }))
}
