//! PPI, which puts facts about the capture in front of a packet of another link type.

use super::{Cut, Found, Payload, is_cut, is_known, payload};
use crate::bytes::{le16, le32};
use crate::numbers::link_type;

/// Version, flags, length, and the link type; fields may follow.
const LEAST: usize = 8;

pub(super) fn frame(frame: &[u8]) -> Found {
    let Some((link, at)) = inside(frame)? else { return Ok(None) };
    let inner = frame.get(at..).ok_or(Cut)?;
    match payload(link, inner) {
        Some(packet) => Ok(Some(Payload { at: at + packet.at, ..packet })),
        None if is_cut(link, inner) => Err(Cut),
        None => Ok(None),
    }
}

/// Returns the link type of the packet inside, and where it begins; `None`: nobody knows it.
pub(crate) fn inside(frame: &[u8]) -> Result<Option<(u16, usize)>, Cut> {
    let mut at = 0;
    loop {
        let length = usize::from(le16(frame, at + 2).ok_or(Cut)?);
        let inner = le32(frame, at + 4).ok_or(Cut)?;
        if length < LEAST {
            return Ok(None);
        }
        at += length;
        match u16::try_from(inner) {
            // In itself, as often as it likes.
            Ok(link_type::PPI) => {}
            Ok(link) if is_known(link) => return Ok(Some((link, at))),
            _ => return Ok(None),
        }
    }
}
