//! One way of a TCP connection: segments in any order become the bytes that were sent. No I/O.
//!
//! Positions count bytes from the first one of the way. Bytes that arrive twice count as they came first, as a receiver has
//! them that does not wait. What is missing is waited for until the other end confirms later bytes, which it would not do
//! without it, or until too much waits behind it.

use std::collections::BTreeMap;

/// What a way goes on with.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Piece {
    Bytes(Vec<u8>),
    /// So many bytes are not in the capture.
    Missing(u64),
}

/// Memory of bytes that wait for missing ones, at most.
pub(super) const MOST_WAITING: usize = 8 << 20;

/// The bytes that one end sends.
#[derive(Debug, Default)]
pub(super) struct HalfStream {
    /// The sequence number of position 0; `None`: no segment was seen.
    zero: Option<u32>,
    /// Position 0 is where the way begins. Without a SYN this is not known until something is confirmed.
    begun: bool,
    /// The position of the next byte to return.
    next: i64,
    /// The end of all bytes known to have been sent.
    end: i64,
    /// The end of what the other end has confirmed.
    confirmed: i64,
    /// Bytes behind `next`, by position. They do not overlap.
    waiting: BTreeMap<i64, Vec<u8>>,
    /// The memory they take.
    held: usize,
    /// Bytes that came when they had been given up.
    late: u64,
    /// Bytes were given up because too much waited.
    pub(super) overfull: bool,
    /// The ranges given up, for `late`: the last ones.
    given_up: Vec<(i64, i64)>,
}

/// Ranges given up that are remembered.
const MOST_GIVEN_UP: usize = 1024;

impl HalfStream {
    /// Learns that the way begins behind this sequence number.
    pub(super) fn begin(&mut self, syn: u32, out: &mut impl FnMut(Piece)) {
        if self.begun {
            return;
        }
        let first = syn.wrapping_add(1);
        // What has come already keeps its place.
        self.next = self.position(first);
        self.begun = true;
        let before: Vec<i64> = self.waiting.range(..self.next).map(|(at, _)| *at).collect();
        for at in before {
            // The payload of SYN itself, or what is not of this connection.
            let bytes = self.waiting.remove(&at).unwrap_or_default();
            self.held -= cost(&bytes);
            let beyond = usize::try_from(self.next - at).unwrap_or(usize::MAX);
            if let Some(rest) = bytes.get(beyond..).filter(|rest| !rest.is_empty()) {
                self.keep(self.next, rest);
            }
        }
        self.go_on(out);
    }

    /// Takes a segment: its sequence number, the bytes captured, and how many it had.
    pub(super) fn segment(&mut self, sequence: u32, bytes: &[u8], sent: usize, out: &mut impl FnMut(Piece)) {
        if sent == 0 {
            return;
        }
        let at = self.position(sequence);
        if self.begun {
            let to = at + length(bytes);
            let late = |&(from, end): &(i64, i64)| to.min(end).saturating_sub(at.max(from)).max(0);
            self.late += self.given_up.iter().map(late).sum::<i64>().unsigned_abs();
        }
        self.end = self.end.max(at + i64::try_from(sent).unwrap_or(i64::MAX));
        let known = if self.begun { usize::try_from(self.next - at).unwrap_or(0) } else { 0 };
        if let Some(new) = bytes.get(known..) {
            self.insert(at + length(&bytes[..known]), new);
        }
        self.go_on(out);
        while self.held > MOST_WAITING {
            self.overfull = true;
            self.start();
            self.skip(out);
        }
    }

    /// Learns that the other end has everything before this sequence number.
    pub(super) fn confirmed(&mut self, acknowledgement: u32, out: &mut impl FnMut(Piece)) {
        if self.zero.is_none() {
            return;
        }
        let to = self.position(acknowledgement);
        // No window is larger (RFC 7323); other numbers are from nowhere.
        if to - self.end < 1 << 30 {
            self.confirmed = self.confirmed.max(to);
        }
        // More may be on its way to the capture.
        let to = to.min(self.end);
        if !self.begun && self.waiting.first_key_value().is_some_and(|(at, _)| *at < to) {
            self.start();
        }
        self.go_on(out);
        while self.begun && self.next < to {
            self.skip_to(to, out);
        }
    }

    /// Returns what is left. Nothing follows.
    pub(super) fn finish(&mut self, out: &mut impl FnMut(Piece)) {
        self.start();
        self.go_on(out);
        // The number beyond is that of FIN.
        if self.confirmed > self.end + 1 {
            self.end = self.confirmed;
        }
        while self.next < self.end {
            self.skip_to(self.end, out);
        }
    }

    /// Returns how many bytes came after they had been given up.
    pub(super) fn late(&self) -> u64 {
        self.late
    }

    /// Returns the position of a sequence number, which is less than 2 GiB away from the next byte.
    fn position(&mut self, sequence: u32) -> i64 {
        let zero = *self.zero.get_or_insert(sequence);
        #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "modulo 2^32")]
        let expected = zero.wrapping_add(self.next as u32);
        self.next + i64::from(sequence.wrapping_sub(expected).cast_signed())
    }

    /// Without a SYN, the way begins with the first byte that was captured.
    fn start(&mut self) {
        if !self.begun
            && let Some((at, _)) = self.waiting.first_key_value()
        {
            self.next = *at;
            self.begun = true;
        }
    }

    /// Keeps those bytes that are not there already.
    fn insert(&mut self, at: i64, bytes: &[u8]) {
        let end = at + length(bytes);
        let mut from = at;
        let before = self.waiting.range(..=at).next_back().map(|(at, bytes)| at + length(bytes));
        from = from.max(before.unwrap_or(from));
        while from < end {
            let following = self.waiting.range(from..).next().map(|(at, bytes)| (*at, at + length(bytes)));
            let (to, next) = following.filter(|(at, _)| *at < end).unwrap_or((end, end));
            if from < to {
                let range = usize::try_from(from - at).unwrap_or(0)..usize::try_from(to - at).unwrap_or(0);
                self.keep(from, &bytes[range]);
            }
            from = next;
        }
    }

    fn keep(&mut self, at: i64, bytes: &[u8]) {
        self.held += cost(bytes);
        self.waiting.insert(at, bytes.to_vec());
    }

    /// Returns what is next.
    fn go_on(&mut self, out: &mut impl FnMut(Piece)) {
        while self.begun
            && let Some(bytes) = self.waiting.remove(&self.next)
        {
            self.held -= cost(&bytes);
            self.next += length(&bytes);
            out(Piece::Bytes(bytes));
        }
    }

    /// Gives up what is missing before the first bytes that wait.
    fn skip(&mut self, out: &mut impl FnMut(Piece)) {
        let to = self.waiting.first_key_value().map(|(at, _)| *at);
        self.skip_to(to.unwrap_or(self.next), out);
    }

    /// Gives up what is missing before `most`, or before the first bytes that wait, and goes on.
    fn skip_to(&mut self, most: i64, out: &mut impl FnMut(Piece)) {
        let to = self.waiting.first_key_value().map_or(most, |(at, _)| (*at).min(most));
        if to > self.next {
            out(Piece::Missing((to - self.next).unsigned_abs()));
            if self.given_up.len() == MOST_GIVEN_UP {
                self.given_up.remove(0);
            }
            self.given_up.push((self.next, to));
            self.next = to;
        }
        self.go_on(out);
    }
}

fn length(bytes: &[u8]) -> i64 {
    i64::try_from(bytes.len()).unwrap_or(i64::MAX)
}

/// Returns the memory that bytes take which wait, with that of their entry.
fn cost(bytes: &[u8]) -> usize {
    bytes.len() + 64
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// What comes of these segments; `None`: the other end confirms everything up to here.
    fn all(begin: Option<u32>, segments: &[(u32, &[u8])]) -> String {
        let mut half = HalfStream::default();
        let mut text = String::new();
        let mut out = |piece: Piece| match piece {
            Piece::Bytes(bytes) => text.push_str(&String::from_utf8(bytes).expect("text")),
            Piece::Missing(count) => text.push_str(&format!("[{count}]")),
        };
        begin.into_iter().for_each(|syn| half.begin(syn, &mut out));
        segments.iter().for_each(|(at, bytes)| half.segment(*at, bytes, bytes.len(), &mut out));
        half.finish(&mut out);
        text
    }

    #[test]
    fn bytes_are_in_order_and_once() {
        for (segments, expected) in [
            (&[(11, &b"abc"[..]), (14, b"def")][..], "abcdef"),
            (&[(14, b"def"), (11, b"abc")], "abcdef"),
            (&[(11, b"abc"), (11, b"abc"), (14, b"def"), (12, b"bc")], "abcdef"),
            // What came first wins.
            (&[(13, b"CDE"), (11, b"abcdefg")], "abCDEfg"),
            (&[(11, b"abc"), (12, b"XYZ")], "abcZ"),
            (&[(12, b"b"), (14, b"d"), (10, b"0abcde")], "abcde"),
            // A keep-alive repeats the byte before.
            (&[(10, b"\0"), (11, b"abc")], "abc"),
            (&[(11, b"abc"), (16, b"fgh")], "abc[2]fgh"),
            (&[(13, b"cde")], "[2]cde"),
        ] {
            assert_eq!(all(Some(10), segments), expected, "{segments:?}");
        }
        assert_eq!(all(None, &[(20, b"later"), (15, b"first")]), "firstlater");
        assert_eq!(all(Some(u32::MAX - 3), &[(u32::MAX - 2, b"abcd"), (1, b"efg")]), "abcdefg");
    }

    #[test]
    fn what_is_confirmed_is_not_waited_for() {
        let mut half = HalfStream::default();
        let mut seen = Vec::new();
        half.begin(0, &mut |_| {});
        half.segment(1, b"ab", 2, &mut |piece| seen.push(piece));
        half.segment(5, b"ef", 2, &mut |piece| seen.push(piece));
        half.confirmed(3, &mut |piece| seen.push(piece));
        assert_eq!(seen, [Piece::Bytes(b"ab".to_vec())], "the third and fourth may come");
        half.confirmed(7, &mut |piece| seen.push(piece));
        assert_eq!(seen[1..], [Piece::Missing(2), Piece::Bytes(b"ef".to_vec())]);
        half.segment(2, b"bcde", 4, &mut |piece| seen.push(piece));
        assert_eq!((seen.len(), half.late()), (3, 2));
        // A wrong number gives nothing up that was never seen.
        half.confirmed(1_500_000_000, &mut |piece| seen.push(piece));
        assert_eq!(seen.len(), 3);
        // Half of a segment was captured.
        half.segment(7, b"gh", 10, &mut |piece| seen.push(piece));
        half.finish(&mut |piece| seen.push(piece));
        assert_eq!(seen[3..], [Piece::Bytes(b"gh".to_vec()), Piece::Missing(8)]);

        // What was confirmed last was not captured; but FIN has a number, too.
        for (acknowledgement, expected) in [(4, vec![]), (5, vec![Piece::Missing(2)])] {
            let (mut half, mut seen) = (HalfStream::default(), Vec::new());
            half.begin(0, &mut |_| {});
            half.segment(1, b"ab", 2, &mut |_| {});
            half.confirmed(acknowledgement, &mut |piece| seen.push(piece));
            half.finish(&mut |piece| seen.push(piece));
            assert_eq!(seen, expected);
        }
    }

    #[test]
    fn memory_has_a_limit() {
        let mut half = HalfStream::default();
        let (mut bytes, mut missing) = (0, 0);
        half.begin(0, &mut |_| {});
        let segment = vec![7; 60_000];
        for number in 0..1000u32 {
            half.segment(100 + number * 60_000, &segment, segment.len(), &mut |piece| match piece {
                Piece::Bytes(piece) => bytes += piece.len(),
                Piece::Missing(count) => missing += count,
            });
            assert!(half.held <= MOST_WAITING);
        }
        assert_eq!((bytes, missing, half.overfull), (60_000_000, 99, true));
    }

    proptest! {
        /// Whatever comes, what waits is in order, apart, behind what was returned, and counted.
        #[test]
        fn any_segments_keep_the_books(
            base: u32,
            events in prop::collection::vec((0..4u8, 0..9000u32, 0..2000usize, 0..2000usize), 0..80),
            far in any::<u32>(),
        ) {
            let mut half = HalfStream::default();
            let bytes = [0; 2000];
            let (mut returned, mut missing) = (0i64, 0u64);
            let mut out = |piece: Piece| match piece {
                Piece::Bytes(bytes) => returned += length(&bytes),
                Piece::Missing(count) => missing += count,
            };
            for (number, (kind, at, length, cut)) in events.iter().enumerate() {
                let sequence = if number % 20 == 19 { far } else { base.wrapping_add(*at) };
                match kind {
                    0 => half.begin(sequence, &mut out),
                    1 => half.confirmed(sequence, &mut out),
                    _ => half.segment(sequence, &bytes[..*length], length + cut, &mut out),
                }
                let held: usize = half.waiting.values().map(|bytes| cost(bytes)).sum();
                prop_assert_eq!(held, half.held);
                let mut end = if half.begun { half.next + 1 } else { i64::MIN };
                for (at, bytes) in &half.waiting {
                    prop_assert!(*at >= end && !bytes.is_empty());
                    end = at + super::length(bytes);
                }
            }
            half.finish(&mut out);
            prop_assert!(half.waiting.is_empty() && half.held == 0);
            prop_assert!(returned.unsigned_abs() <= events.iter().map(|(_, _, length, _)| *length as u64).sum());
        }

        /// Any cut, order and repetition of the same bytes gives these bytes.
        #[test]
        fn any_order_gives_the_same_bytes(
            syn: u32,
            (sent, cuts) in prop::collection::vec(any::<u8>(), 1..400).prop_flat_map(|sent| {
                let length = sent.len();
                (Just(sent), prop::collection::vec((0..length, 1..60usize), 0..60))
            }),
            order in any::<prop::sample::Index>(),
        ) {
            // All bytes once, in pieces of seven, and others beside them.
            let whole = (0..sent.len()).step_by(7).map(|at| (at, 7));
            let mut segments: Vec<(usize, usize)> = cuts.into_iter().chain(whole).collect();
            let turn = order.index(segments.len());
            segments.rotate_left(turn);
            let mut half = HalfStream::default();
            let mut got = Vec::new();
            let mut out = |piece: Piece| match piece {
                Piece::Bytes(bytes) => got.extend(bytes),
                Piece::Missing(count) => panic!("{count} are missing"),
            };
            let begin = segments.len() / 2;
            for (number, (at, length)) in segments.iter().enumerate() {
                if number == begin {
                    half.begin(syn, &mut out);
                }
                let bytes = &sent[*at..(at + length).min(sent.len())];
                let sequence = syn.wrapping_add(1).wrapping_add(u32::try_from(*at).expect("short"));
                half.segment(sequence, bytes, bytes.len(), &mut out);
            }
            half.finish(&mut out);
            prop_assert_eq!(got, sent);
        }
    }
}
