//! Finds the place where a damaged file becomes readable again.

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
    /// Undecided until there are this many bytes; at the end of the file it counts as no.
    Need(usize),
}

/// Consecutive records that must make sense before the first is accepted. Almost any few small numbers pass for one
/// pcap header, but not for three that lead to each other.
const ROW: usize = 3;
/// Consecutive records required if their timestamps are close to each other but far from all earlier ones.
const LONG_ROW: usize = 8;
/// Seconds by which a record's timestamp may differ from one before the damage: a year.
const AWAY: u64 = 366 * 86_400;
/// Most distant timestamps that are kept.
const MOST_TIMES: usize = 16;

/// The approximate times of accepted packets. There may be several: clocks are set, and files are concatenated.
#[derive(Debug, Clone, Default)]
pub struct Times(Vec<u64>);

impl Times {
    /// Adds the timestamp of an accepted packet, in nanoseconds.
    pub fn learn(&mut self, timestamp: u64) {
        if !self.is_near(timestamp) && self.0.len() < MOST_TIMES {
            self.0.push(timestamp);
        }
    }

    /// Returns whether a packet of about this time has been accepted.
    pub fn is_near(&self, timestamp: u64) -> bool {
        self.0.iter().any(|time| are_near(*time, timestamp))
    }
}

fn are_near(one: u64, other: u64) -> bool {
    one.abs_diff(other) / 1_000_000_000 <= AWAY
}

impl Decoder {
    /// Returns whether reading can resume here after damage. `ended`: the file ends with `bytes`.
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

    /// Returns whether the record at the start of `bytes`, which directly follows the previous one, leads to others
    /// that make sense. Always yes for pcapng, where each block shows whether it is whole.
    pub fn goes_on(&self, bytes: &[u8], ended: bool) -> Plausible {
        match &self.state {
            State::Pcap(header) => header.row(bytes, ended, ROW, 1, |numbers| header.makes_sense(numbers)),
            _ => Plausible::Yes,
        }
    }

    /// Returns whether to accept a packet at the start of `bytes` that [`step`](Self::step) has read but that does not
    /// lead to another: it may be the last one before a damaged place.
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

/// Checks for the header of a pcap file with packets after it.
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

/// Checks for a section header, where no section has begun.
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
        // Filled memory, mostly zeros, repeats the same number.
        let Numbers { timestamp, fraction, captured, original_len, .. } = *numbers;
        let pattern =
            timestamp / 1_000_000_000 == captured.into() && fraction == captured && original_len == captured;
        fraction < second && captured <= self.longest && lengths && !pattern
    }

    /// Returns whether a record with this header may be the first after a damaged place.
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
        // As long as no packet has been accepted, no timestamp is far from the others.
        let (records, fewest) = if times.0.is_empty() { (ROW, 1) } else { (LONG_ROW, ROW) };
        self.row(bytes, ended, records, fewest, together)
    }

    /// Checks for `records` consecutive records that `may` accepts. `fewest` are enough at the end of the file and
    /// before another file's header.
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

/// Returns the section header block without the section length, for a file from which parts are missing.
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
