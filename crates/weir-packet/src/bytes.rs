//! Fields in network byte order.

/// Returns the byte at `at`.
#[inline]
pub fn byte(bytes: &[u8], at: usize) -> Option<u8> {
    bytes.get(at).copied()
}

/// Returns the two bytes at `at`.
#[inline]
pub fn word(bytes: &[u8], at: usize) -> Option<u16> {
    bytes.get(at..)?.first_chunk().map(|&field| u16::from_be_bytes(field))
}

/// Returns the two bytes at `at`, the lowest first.
#[inline]
pub(crate) fn word_le(bytes: &[u8], at: usize) -> Option<u16> {
    word(bytes, at).map(u16::swap_bytes)
}

/// Returns the four bytes at `at`, the lowest first.
#[inline]
pub(crate) fn long_le(bytes: &[u8], at: usize) -> Option<u32> {
    long(bytes, at).map(u32::swap_bytes)
}

/// Returns the four bytes at `at`.
#[inline]
pub fn long(bytes: &[u8], at: usize) -> Option<u32> {
    bytes.get(at..)?.first_chunk().map(|&field| u32::from_be_bytes(field))
}
