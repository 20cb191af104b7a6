//! The numbers of IPv6 extension headers.

use weir_packet::protocol;

/// Hop-by-hop options, routing, destination options, mobility, HIP, shim6: their second byte counts units of eight
/// bytes after the first eight.
pub(super) const OPTIONS: [u32; 6] = [
    protocol::HOP_BY_HOP as u32,
    protocol::ROUTING as u32,
    protocol::DESTINATION as u32,
    protocol::MOBILITY as u32,
    protocol::HIP as u32,
    protocol::SHIM6 as u32,
];

/// Fragment header: eight bytes.
pub(super) const FRAGMENT: u32 = protocol::FRAGMENT as u32;

/// Authentication header: its second byte counts units of four bytes after the first eight.
pub(super) const AUTHENTICATION: u32 = protocol::AUTHENTICATION as u32;

/// Returns whether this is the number of an IPv6 extension header that is walked.
pub(super) fn is_extension(number: u32) -> bool {
    u8::try_from(number).is_ok_and(weir_packet::is_extension)
}
