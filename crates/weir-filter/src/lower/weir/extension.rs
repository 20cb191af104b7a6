//! The numbers of IPv6 extension headers.

/// Hop-by-hop options, routing, destination options, mobility, HIP, shim6: their second byte counts units of eight
/// bytes after the first eight.
pub(super) const OPTIONS: [u32; 6] = [0, 43, 60, 135, 139, 140];

/// Fragment header: eight bytes.
pub(super) const FRAGMENT: u32 = 44;

/// Authentication header: its second byte counts units of four bytes after the first eight.
pub(super) const AUTHENTICATION: u32 = 51;

/// Returns whether this is the number of an IPv6 extension header that is walked.
pub(super) fn is_extension(number: u32) -> bool {
    OPTIONS.contains(&number) || number == FRAGMENT || number == AUTHENTICATION
}
