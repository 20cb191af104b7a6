//! The parts from which a packet's record is assembled.

/// Bytes of the two addresses before a VLAN tag.
const ADDRESSES: usize = 12;

/// Returns the parts of a packet that begins with `begin`, with `tag` where it was stripped.
#[inline]
pub(in crate::live::source) fn with_tag<'a>(begin: &'a [u8], tag: &'a [u8]) -> [&'a [u8]; 3] {
    let (addresses, behind) = begin.split_at(begin.len().min(ADDRESSES));
    [addresses, tag, behind]
}

/// Returns the start of `bytes` that fits into `left`, and reduces `left`.
#[inline]
pub(in crate::live::source) fn first<'a>(bytes: &'a [u8], left: &mut usize) -> &'a [u8] {
    let bytes = &bytes[..bytes.len().min(*left)];
    *left -= bytes.len();
    bytes
}
