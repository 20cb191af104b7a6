//! The parts that a packet's record is put together of.

/// Bytes of the two addresses that a VLAN tag stands behind.
const ADDRESSES: usize = 12;

/// A packet that begins with `begin`, and `tag` where it was stripped from.
#[inline]
pub(in crate::source) fn with_tag<'a>(begin: &'a [u8], tag: &'a [u8]) -> [&'a [u8]; 3] {
    let (addresses, behind) = begin.split_at(begin.len().min(ADDRESSES));
    [addresses, tag, behind]
}

/// As much of `bytes` as there is room `left` for.
#[inline]
pub(in crate::source) fn first<'a>(bytes: &'a [u8], left: &mut usize) -> &'a [u8] {
    let bytes = &bytes[..bytes.len().min(*left)];
    *left -= bytes.len();
    bytes
}
