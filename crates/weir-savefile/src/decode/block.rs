//! What all blocks of pcapng have in common: their frame, and their options.

use std::ops::Range;

use super::{Doubt, Fault, LONGEST_BLOCK};
use crate::ByteOrder;
use crate::options::Options;
use crate::pcapng::{BYTE_ORDER_MAGIC, SECTION_HEADER};

/// Type and length, in front of a body.
pub(super) const FRONT: usize = 8;
/// They and the length once more, behind it.
const FRAME: usize = FRONT + 4;

/// What frames a block.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Frame {
    pub(crate) kind: u32,
    /// Of the whole block.
    pub(crate) length: usize,
    /// Of a section header: the one that it says; else the one asked for.
    pub(crate) order: ByteOrder,
}

/// The frame of the block at the start of `bytes`. Inner `Err`: so many bytes are needed.
pub(crate) fn frame(bytes: &[u8], order: ByteOrder) -> Result<Result<Frame, usize>, Fault> {
    let Some(kind) = order.u32_at(bytes, 0) else { return Ok(Err(FRONT)) };
    let order = if kind == SECTION_HEADER {
        // Its byte order stands behind its length.
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

/// Shows each option to `take`, which says whether it makes sense.
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

/// Texts that are no UTF-8 are left out. Some writers end them with a zero.
pub(super) fn text(value: &[u8]) -> Option<&str> {
    std::str::from_utf8(value).ok().map(|text| text.trim_end_matches('\0'))
}

/// Where `inner` lies in `outer`, of which it is a part.
pub(super) fn place(outer: &[u8], inner: &[u8]) -> Range<usize> {
    let start = inner.as_ptr().addr() - outer.as_ptr().addr();
    start..start + inner.len()
}
