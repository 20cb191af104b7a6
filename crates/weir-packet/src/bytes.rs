//! Fields in network byte order.

/// Returns the byte at `at`.
#[inline]
pub fn byte(bytes: &[u8], at: usize) -> Option<u8> {
    bytes.get(at).copied()
}

/// Returns the two bytes at `at`.
#[inline]
pub fn be16(bytes: &[u8], at: usize) -> Option<u16> {
    bytes.get(at..)?.first_chunk().map(|&field| u16::from_be_bytes(field))
}

/// Returns the two bytes at `at`, the lowest first.
#[inline]
pub(crate) fn le16(bytes: &[u8], at: usize) -> Option<u16> {
    be16(bytes, at).map(u16::swap_bytes)
}

/// Returns the four bytes at `at`, the lowest first.
#[inline]
pub(crate) fn le32(bytes: &[u8], at: usize) -> Option<u32> {
    be32(bytes, at).map(u32::swap_bytes)
}

/// Returns the four bytes at `at`.
#[inline]
pub fn be32(bytes: &[u8], at: usize) -> Option<u32> {
    bytes.get(at..)?.first_chunk().map(|&field| u32::from_be_bytes(field))
}
