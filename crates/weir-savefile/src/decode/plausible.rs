//! Where a damaged file makes sense again.

use std::ops::Range;

use super::block;
use super::classic::Numbers;
use super::sections::Sections;
use super::{Decoder, Header, State};
use crate::ByteOrder;
use crate::pcap::Resolution;
use crate::pcapng;
use crate::record;

/// Whether bytes look like the start of a block or record.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Plausible {
    /// They do not.
    No,
    /// They do.
    Yes,
    /// That can be said when there are so many bytes; at the end of the file it is a no.
    Need(usize),
}

/// Records in a row that have to make sense before the first is believed. One pcap header passes for any few small
/// numbers; three that lead to each other do not.
const ROW: usize = 3;
/// Seconds that a record may be away from the one before the damage: a year.
const AWAY: u64 = 366 * 86_400;

impl Decoder {
    /// Whether reading may go on here, after damage. `ended`: the file has no more bytes than these. `last`: the time
    /// stamp of the last packet, in nanoseconds.
    pub fn plausible(&self, bytes: &[u8], ended: bool, last: Option<u64>) -> Plausible {
        match &self.state {
            State::Start => start(bytes),
            State::Pcapng(sections) => sections.plausible(bytes),
            State::Pcap(header) => header.plausible(bytes, ended, last),
        }
    }

    /// Whether the packet at the start of `bytes`, which [`step`](Self::step) takes for one, says about itself what
    /// cannot be. pcap has nothing but this to tell damage by.
    pub fn doubtful(&self, bytes: &[u8]) -> bool {
        match &self.state {
            State::Pcap(header) => bytes
                .get(..header.variant.record_header_len())
                .is_some_and(|head| !header.makes_sense(&header.numbers(head))),
            _ => false,
        }
    }
}

/// Before the first section: the header of one.
fn start(bytes: &[u8]) -> Plausible {
    framed(bytes, ByteOrder::NATIVE, |kind| kind == pcapng::SECTION_HEADER)
}

fn framed(bytes: &[u8], order: ByteOrder, known: impl Fn(u32) -> bool) -> Plausible {
    if !order.u32_at(bytes, 0).is_none_or(known) {
        return Plausible::No;
    }
    match block::frame(bytes, order) {
        Ok(Ok(_)) => Plausible::Yes,
        Ok(Err(need)) => Plausible::Need(need),
        Err(_) => Plausible::No,
    }
}

impl Sections {
    fn plausible(&self, bytes: &[u8]) -> Plausible {
        let known = |kind| {
            matches!(
                kind,
                pcapng::SECTION_HEADER
                    | pcapng::INTERFACE_DESCRIPTION
                    | pcapng::PACKET
                    | pcapng::SIMPLE_PACKET
                    | pcapng::NAME_RESOLUTION
                    | pcapng::INTERFACE_STATISTICS
                    | record::KIND
                    | pcapng::DECRYPTION_SECRETS
                    | pcapng::CUSTOM
                    | pcapng::CUSTOM_STAYS
            )
        };
        framed(bytes, self.order(), known)
    }
}

impl Header {
    fn makes_sense(&self, numbers: &Numbers) -> bool {
        let second = match self.variant.resolution {
            Resolution::Micro => 1_000_000,
            Resolution::Nano => 1_000_000_000,
        };
        // Some programs leave the original length at 0.
        numbers.fraction < second && (numbers.captured <= numbers.original_len || numbers.original_len == 0)
    }

    /// Whether a record that begins so may follow a damaged place.
    fn may_follow(&self, numbers: &Numbers, last: Option<u64>) -> bool {
        let away = |last: u64| (last / 1_000_000_000).abs_diff(numbers.timestamp / 1_000_000_000);
        self.makes_sense(numbers)
            && (1..=self.longest).contains(&numbers.captured)
            && numbers.original_len <= self.longest
            && last.is_none_or(|last| away(last) <= AWAY)
    }

    fn plausible(&self, bytes: &[u8], ended: bool, last: Option<u64>) -> Plausible {
        let head = self.variant.record_header_len();
        let mut at = 0;
        for record in 0..ROW {
            if ended && record > 0 && at == bytes.len() {
                return Plausible::Yes;
            }
            let Some(header) = bytes.get(at..).and_then(|bytes| bytes.get(..head)) else {
                return Plausible::Need(at + head);
            };
            let numbers = self.numbers(header);
            if !self.may_follow(&numbers, last) {
                return Plausible::No;
            }
            at += head + numbers.captured as usize;
        }
        if at <= bytes.len() { Plausible::Yes } else { Plausible::Need(at) }
    }
}

/// The block of a section header as it may stand in a file of which parts are missing: it does not say how long the
/// section is.
pub fn section_without_length(block: &[u8]) -> Vec<u8> {
    const LENGTH: Range<usize> = 16..24;
    let mut section = block.to_vec();
    if let Some(length) = section.get_mut(LENGTH) {
        length.fill(0xff);
    }
    section
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_is_plausible_in_a_file_that_has_not_begun() {
        let decoder = Decoder::new();
        assert_eq!(decoder.plausible(&[0; 64], true, None), Plausible::No);
        assert_eq!(decoder.plausible(&[], true, None), Plausible::Need(8));
    }
}
