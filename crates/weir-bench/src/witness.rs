//! What a reader saw, in a few numbers that can be known beforehand.

use std::io::{self, Read};
use std::ops::Range;

use serde::{Deserialize, Serialize};
use weir_lab::Traffic;

use super::savefile::Packets;

/// Behind the number in frames of one flow without VLAN tag: Ethernet, IPv4 and UDP headers, and ten bytes of the signature.
const NUMBERED: usize = 14 + 20 + 8 + 10;

/// The sum of all frames, and whether they came in the order in which they were sent.
///
/// Two witnesses are equal only if the same frames were seen, all bytes of them (but for changes that cancel each other
/// out), in the same order.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Witness {
    pub(super) packets: u64,
    pub(super) bytes: u64,
    /// Of all bytes, as words.
    sum: u64,
    /// Frames that did not follow upon the one before.
    pub(super) breaks: u64,
    /// The number that should come next.
    next: u64,
}

impl Witness {
    /// Takes one frame. Reads all of it.
    #[inline]
    pub(super) fn take(&mut self, frame: &[u8]) {
        self.packets += 1;
        self.bytes += frame.len() as u64;
        self.sum = self.sum.wrapping_add(words(frame));
        let number = frame.get(NUMBERED - 8..).and_then(|rest| rest.first_chunk());
        // Of 48 bits: the stream is before it.
        let number = number.map_or(u64::MAX, |bytes| u64::from_be_bytes(*bytes) & ((1 << 48) - 1));
        self.breaks += u64::from(number != self.next);
        self.next = number.wrapping_add(1);
    }

    /// Returns whether the reader provably saw the first `kept` bytes of all packets with these numbers, in order. If packets were
    /// lost, it checks only that those seen have the right lengths, and that losses explain all gaps.
    pub(super) fn is_right(
        &self,
        traffic: &Traffic,
        kept: usize,
        sequences: Range<u64>,
        delivered: u64,
        problems: &mut Vec<String>,
    ) -> bool {
        if self.packets != delivered {
            problems.push(format!("{delivered} packets delivered, {} found", self.packets));
        }
        let missing = (sequences.end - sequences.start).saturating_sub(self.packets);
        if missing > 0 {
            if self.bytes != self.packets * traffic.size().min(kept) as u64 || self.breaks > missing {
                problems.push(format!("wrong lengths or order: {self:?} with {missing} missing"));
            }
            return false;
        }
        let expected = Self::of_starts(traffic, kept, sequences);
        if *self != expected {
            problems.push(format!("wrong bytes or order: {self:?} instead of {expected:?}"));
        }
        *self == expected
    }

    /// What is in a capture file.
    pub(super) fn read(file: impl Read) -> io::Result<Self> {
        let mut packets = Packets::new(file)?;
        let mut witness = Self::default();
        while let Some(packet) = packets.next()? {
            witness.take(packet);
        }
        Ok(witness)
    }

    /// What a reader sees who misses nothing of the frames of these numbers. They have to be of one flow.
    pub(super) fn of(traffic: &Traffic, sequences: Range<u64>) -> Self {
        Self::of_starts(traffic, usize::MAX, sequences)
    }

    /// The witness of a reader that keeps at most `kept` bytes of each frame.
    fn of_starts(traffic: &Traffic, kept: usize, sequences: Range<u64>) -> Self {
        let mut witness = Self { next: sequences.start, ..Self::default() };
        let mut frame = Vec::new();
        for sequence in sequences {
            traffic.tables().write(sequence, 0, 0, &mut frame);
            witness.take(&frame[..kept.min(frame.len())]);
        }
        witness
    }
}

/// The sum of all bytes, eight at a time.
fn words(data: &[u8]) -> u64 {
    let (words, rest) = data.as_chunks();
    let sum = words.iter().fold(0, |sum: u64, word| sum.wrapping_add(u64::from_ne_bytes(*word)));
    rest.iter().fold(sum, |sum, &byte| sum.wrapping_add(u64::from(byte)))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn traffic() -> Traffic {
        Traffic::new(83).expect("size")
    }

    fn seen(order: impl IntoIterator<Item = u64>) -> Witness {
        let mut witness = Witness::default();
        order.into_iter().for_each(|sequence| witness.take(&traffic().frame(sequence)));
        witness
    }

    #[test]
    fn foreknowledge_is_right() {
        // Past a byte's end, so that a carry shows.
        assert_eq!(Witness::of(&traffic(), 0..300), seen(0..300));
        assert_eq!(Witness::of(&traffic(), 0..0), Witness::default());
    }

    #[test]
    fn whatever_is_wrong_shows() {
        let right = Witness::of(&traffic(), 0..4);
        for wrong in
            [vec![0, 1, 2], vec![0, 1, 3, 2], vec![0, 1, 1, 3], vec![1, 2, 3, 4], vec![0, 1, 2, 3, 3]]
        {
            assert_ne!(seen(wrong.iter().copied()), right, "{wrong:?}");
        }
        assert_eq!(seen([0, 2, 3, 3]).breaks, 2);
        for place in 0..traffic().size() {
            let mut changed = Witness::default();
            let mut frame = traffic().frame(0);
            frame[place] ^= 0x10;
            changed.take(&frame);
            assert_ne!(changed, seen([0]), "{place}");
        }
    }
}
