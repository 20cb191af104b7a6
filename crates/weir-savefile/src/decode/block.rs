//! The framing and options common to all pcapng blocks.

use std::ops::Range;

use super::{Doubt, Fault, LONGEST_BLOCK};
use crate::ByteOrder;
use crate::options::Options;
use crate::pcapng::{BYTE_ORDER_MAGIC, SECTION_HEADER};

/// Length of the type and length fields in front of the body.
pub(super) const FRONT: usize = 8;
/// Length of these fields plus the trailing copy of the length.
const FRAME: usize = FRONT + 4;

/// The type, length and byte order of a block.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Frame {
    pub(crate) kind: u32,
    /// Length of the whole block.
    pub(crate) length: usize,
    /// For a section header, the byte order it declares; otherwise the one that was passed in.
    pub(crate) order: ByteOrder,
}

/// Reads the frame of the block at the start of `bytes`. Inner `Err`: that many bytes are needed.
pub(crate) fn frame(bytes: &[u8], order: ByteOrder) -> Result<Result<Frame, usize>, Fault> {
    let Some(kind) = order.u32_at(bytes, 0) else { return Ok(Err(FRONT)) };
    let order = if kind == SECTION_HEADER {
        // The byte order comes after the length.
        let Some(magic) = bytes.get(FRONT..).and_then(|bytes| bytes.first_chunk::<4>()) else {
            return Ok(Err(FRONT + 4));
        };
        [ByteOrder::Little, ByteOrder::Big]
            .into_iter()
            .find(|order| order.u32(*magic) == BYTE_ORDER_MAGIC)
            .ok_or(Fault::ByteOrder(*magic))?
    } else {
        order
    };
    let Some(length) = order.u32_at(bytes, 4) else { return Ok(Err(FRONT)) };
    if !length.is_multiple_of(4) || (length as usize) < FRAME {
        return Err(Fault::Length { kind, length });
    }
    if length > LONGEST_BLOCK {
        return Err(Fault::TooLong { length, limit: LONGEST_BLOCK });
    }
    let end = length as usize;
    let Some(tail) = bytes.get(..end).and_then(|block| order.u32_at(block, end - 4)) else {
        return Ok(Err(end));
    };
    if tail != length {
        return Err(Fault::Tail { kind, length, tail });
    }
    Ok(Ok(Frame { kind, length: end, order }))
}

/// Passes each option to `take`, which returns whether the value is valid.
pub(super) fn each_option<'a>(
    order: ByteOrder,
    list: &'a [u8],
    kind: u32,
    mut take: impl FnMut(u16, &'a [u8]) -> bool,
) -> Option<Doubt> {
    let mut doubt = None;
    for option in Options::in_order(order, list) {
        if !option.is_ok_and(|option| take(option.code, option.value)) {
            doubt = Some(Doubt::Options(kind));
        }
    }
    doubt
}

/// Returns an option value as text; `None` if it is not UTF-8. Some writers append a NUL byte, which is removed.
pub(super) fn text(value: &[u8]) -> Option<&str> {
    std::str::from_utf8(value).ok().map(|text| text.trim_end_matches('\0'))
}

/// Returns the range of `inner` within `outer`, which must contain it.
pub(super) fn place(outer: &[u8], inner: &[u8]) -> Range<usize> {
    let start = inner.as_ptr().addr() - outer.as_ptr().addr();
    start..start + inner.len()
}
