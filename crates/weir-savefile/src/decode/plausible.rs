//! Where a damaged file makes sense again.

use std::ops::Range;

use super::block;
use super::classic::Numbers;
use super::sections::Sections;
use super::{Decoder, Found, Header, State, Step, begins_file};
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
/// As many where their times are near one another, but far from all that was read before.
const LONG_ROW: usize = 8;
/// Seconds that a record may be away from one before the damage: a year.
const AWAY: u64 = 366 * 86_400;
/// The most times far from one another that are kept.
const MOST_TIMES: usize = 16;

/// Around when the packets are that were believed: clocks jump when they are set, and a file may be put together of several.
#[derive(Debug, Clone, Default)]
pub struct Times(Vec<u64>);

impl Times {
    /// Keeps the time stamp of a packet that is believed, in nanoseconds.
    pub fn learn(&mut self, timestamp: u64) {
        if !self.is_near(timestamp) && self.0.len() < MOST_TIMES {
            self.0.push(timestamp);
        }
    }

    /// Whether a packet of about this time was believed.
    pub fn is_near(&self, timestamp: u64) -> bool {
        self.0.iter().any(|time| are_near(*time, timestamp))
    }
}

fn are_near(one: u64, other: u64) -> bool {
    one.abs_diff(other) / 1_000_000_000 <= AWAY
}

impl Decoder {
    /// Whether reading may go on here, after damage. `ended`: the file has no more bytes than these.
    pub fn plausible(&self, bytes: &[u8], ended: bool, times: &Times) -> Plausible {
        match &self.state {
            State::Start => start(bytes),
            State::Pcapng(sections) => sections.plausible(bytes),
            State::Pcap(header) => match another_file(bytes, ended) {
                Plausible::No => header.plausible(bytes, ended, times),
                other => other,
            },
        }
    }

    /// Whether the record at the start of `bytes`, which stands where the one before says, leads to others that make
    /// sense. Of pcapng each block says itself whether it is whole.
    pub fn goes_on(&self, bytes: &[u8], ended: bool) -> Plausible {
        match &self.state {
            State::Pcap(header) => header.row(bytes, ended, ROW, 1, |numbers| header.makes_sense(numbers)),
            _ => Plausible::Yes,
        }
    }

    /// Whether the packet at the start of `bytes`, which [`step`](Self::step) takes for one and which leads to nothing that
    /// makes sense, is to be believed all the same: as the last one before a damaged place.
    pub fn is_credible(&self, bytes: &[u8], times: &Times) -> bool {
        match &self.state {
            State::Pcap(header) => bytes.get(..header.variant.record_header_len()).is_some_and(|head| {
                let numbers = header.numbers(head);
                let near = times.0.is_empty() || times.is_near(numbers.timestamp);
                header.makes_sense(&numbers) && near && numbers.captured.max(numbers.original_len) > 0
            }),
            _ => true,
        }
    }
}

/// The header of a pcap file with packets behind it.
fn another_file(bytes: &[u8], ended: bool) -> Plausible {
    if !begins_file(bytes) {
        return Plausible::No;
    }
    match Decoder::new().start(bytes) {
        Ok(Step::Found { used, found: Found::Header(header, _) }) => {
            match header.plausible(&bytes[used..], ended, &Times::default()) {
                Plausible::Need(need) => Plausible::Need(used + need),
                other => other,
            }
        }
        Ok(Step::Need(need)) => Plausible::Need(need),
        _ => Plausible::No,
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
        let lengths = numbers.captured <= numbers.original_len || numbers.original_len == 0;
        // What memory is filled with, zeros above all, is the same number again and again.
        let Numbers { timestamp, fraction, captured, original_len, .. } = *numbers;
        let pattern =
            timestamp / 1_000_000_000 == captured.into() && fraction == captured && original_len == captured;
        fraction < second && captured <= self.longest && lengths && !pattern
    }

    /// Whether a record that begins so may be the first behind a damaged place.
    fn may_follow(&self, numbers: &Numbers) -> bool {
        self.makes_sense(numbers)
            && (1..=self.longest).contains(&numbers.captured)
            && numbers.original_len <= self.longest
    }

    fn plausible(&self, bytes: &[u8], ended: bool, times: &Times) -> Plausible {
        let known = |numbers: &Numbers| self.may_follow(numbers) && times.is_near(numbers.timestamp);
        match self.row(bytes, ended, ROW, 1, known) {
            Plausible::No => {}
            other => return other,
        }
        let Some(head) = bytes.get(..self.variant.record_header_len()) else { return Plausible::No };
        let first = self.numbers(head).timestamp;
        let together = |numbers: &Numbers| self.may_follow(numbers) && are_near(first, numbers.timestamp);
        // Where nothing was believed yet there is nothing to be far from.
        let (records, fewest) = if times.0.is_empty() { (ROW, 1) } else { (LONG_ROW, ROW) };
        self.row(bytes, ended, records, fewest, together)
    }

    /// Whether so many records that `may` be some stand in a row; at the end of the file, and in front of another's header,
    /// the `fewest` are enough.
    fn row(
        &self,
        bytes: &[u8],
        ended: bool,
        records: usize,
        fewest: usize,
        may: impl Fn(&Numbers) -> bool,
    ) -> Plausible {
        let head = self.variant.record_header_len();
        let mut at = 0;
        for record in 0..records {
            let rest = bytes.get(at..).unwrap_or_default();
            if record >= fewest && ((ended && at == bytes.len()) || begins_file(rest)) {
                return Plausible::Yes;
            }
            let Some(header) = rest.get(..head) else {
                return Plausible::Need(at + head);
            };
            let numbers = self.numbers(header);
            if !may(&numbers) {
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
        assert_eq!(decoder.plausible(&[0; 64], true, &Times::default()), Plausible::No);
        assert_eq!(decoder.plausible(&[], true, &Times::default()), Plausible::Need(8));
    }
}
