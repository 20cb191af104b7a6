//! IEEE 802.11: frames with data, and LLC in them.

use super::{Cut, Found, llc};
use crate::bytes::{byte, le16};

/// In the first two bytes (frame control): version and type, and what there must be: data, of version 0.
const TYPE: u16 = 0x000f;
const DATA: u16 = 0x0008;
/// Bits of the subtype: there is no data; there is a field for quality of service.
const NO_DATA: u16 = 0x0040;
const QUALITY: u16 = 0x0080;
/// To DS and From DS: from one access point to another, with four addresses.
const BETWEEN: u16 = 0x0300;
const PROTECTED: u16 = 0x4000;
/// With a field for quality of service: one for high throughput, too.
const ORDER: u16 = 0x8000;

/// In the field for quality of service: several packets, each with a header of its own.
const AGGREGATE: u8 = 0x80;
/// In the sequence control: the number of the fragment.
const FRAGMENT: u8 = 0x0f;

/// Returns the source and the destination of the data frame that begins at `at` (IEEE 802.11-2020, table 9-30).
pub(super) fn ends(frame: &[u8], at: usize) -> Option<[[u8; 6]; 2]> {
    const TO_DS: u16 = 0x0100;
    const FROM_DS: u16 = 0x0200;
    let control = le16(frame, at)?;
    if control & TYPE != DATA {
        return None;
    }
    let address = |offset| frame.get(at + offset..)?.first_chunk().copied();
    let (first, second, third) = (address(4)?, address(10)?, address(16)?);
    Some(match control & BETWEEN {
        0 => [second, first],
        TO_DS => [second, third],
        FROM_DS => [third, first],
        _ => [address(24)?, third],
    })
}

pub(super) fn frame(frame: &[u8]) -> Found {
    behind(frame, 0, false)
}

/// Finds the packet in the frame that begins at `at`. `padded`: its header has a length of a multiple of four bytes.
pub(super) fn behind(frame: &[u8], at: usize, padded: bool) -> Found {
    let control = le16(frame, at).ok_or(Cut)?;
    let has = |bits| control & bits == bits;
    if control & TYPE != DATA || has(NO_DATA) || has(PROTECTED) {
        return Ok(None);
    }
    let mut header = if has(BETWEEN) { 30 } else { 24 };
    if has(QUALITY) {
        if byte(frame, at + header).ok_or(Cut)? & AGGREGATE != 0 {
            return Ok(None);
        }
        header += if has(ORDER) { 6 } else { 2 };
    }
    // A later fragment.
    if byte(frame, at + 22).ok_or(Cut)? & FRAGMENT != 0 {
        return Ok(None);
    }
    if padded {
        header = header.next_multiple_of(4);
    }
    llc::behind(frame, at + header).map(Some)
}
