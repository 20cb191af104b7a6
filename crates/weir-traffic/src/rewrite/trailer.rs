//! The checksum at the end of a frame of 802.11, which captures in monitor mode have.

use std::ops::Range;

use weir_packet::link;

use crate::checksum::{OF_FRAMES, crc};

const LENGTH: usize = 4;

/// Returns what the checksum covers, if there is one: nothing else says so that reliably as that it is right.
pub(super) fn covered(link_type: u16, frame: &[u8]) -> Option<Range<usize>> {
    let begin = link::begin_of_wlan(link_type, frame)?;
    let (rest, checksum) = frame.split_last_chunk::<LENGTH>()?;
    let covered = begin..rest.len();
    let bytes = rest.get(covered.clone()).filter(|bytes| !bytes.is_empty())?;
    (crc(OF_FRAMES, bytes).to_le_bytes() == *checksum).then_some(covered)
}

/// Writes it.
pub(super) fn write(frame: &mut [u8], covered: Range<usize>) {
    let end = covered.end;
    let checksum = crc(OF_FRAMES, &frame[covered]).to_le_bytes();
    frame[end..end + LENGTH].copy_from_slice(&checksum);
}
