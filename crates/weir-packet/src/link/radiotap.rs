//! What the radio knows about a frame of 802.11 (<https://www.radiotap.org>), in front of it.

use super::{Cut, Found, wlan};
use crate::bytes::{byte, le16, le32};

/// Bits in the word that says which fields there are: a time of eight bytes, and flags behind it; another such word follows.
const TIME: u32 = 1;
const FLAGS: u32 = 1 << 1;
const MORE: u32 = 1 << 31;
/// In the flags: padding makes the length of 802.11's header a multiple of four bytes.
const PADDED: u8 = 0x20;

/// Version, padding, length, and the first word.
const LEAST: usize = 8;

pub(super) fn frame(frame: &[u8]) -> Found {
    let Some(length) = length(frame)? else { return Ok(None) };
    let header = frame.get(..length).ok_or(Cut)?;
    let padded = flags(header).is_some_and(|flags| flags & PADDED != 0);
    wlan::behind(frame, length, padded)
}

/// Returns the length of the header.
pub(super) fn length(frame: &[u8]) -> Result<Option<usize>, Cut> {
    let length = usize::from(le16(frame, 2).ok_or(Cut)?);
    Ok((length >= LEAST).then_some(length))
}

fn flags(header: &[u8]) -> Option<u8> {
    let first = le32(header, 4)?;
    let mut at = LEAST;
    let mut word = first;
    while word & MORE != 0 {
        word = le32(header, at)?;
        at += 4;
    }
    if first & FLAGS == 0 {
        return None;
    }
    if first & TIME != 0 {
        at = at.next_multiple_of(8) + 8;
    }
    byte(header, at)
}
