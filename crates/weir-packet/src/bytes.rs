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

/// Returns the four bytes at `at`.
#[inline]
pub fn long(bytes: &[u8], at: usize) -> Option<u32> {
    bytes.get(at..)?.first_chunk().map(|&field| u32::from_be_bytes(field))
}
