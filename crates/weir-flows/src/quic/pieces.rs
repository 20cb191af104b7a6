//! A hello whose pieces come in any order, in frames of several packets: some clients mix them on purpose.

use std::ops::Range;

use weir_parse::bytes::{Bytes, Cut};

/// The longest hello.
const LONGEST: usize = 16 * 1024;
/// The most gaps between the pieces.
const GAPS: usize = 64;
const CLIENT_HELLO: u8 = 1;
/// Type and length.
const HEAD: usize = 4;

/// What there is of a hello.
#[derive(Debug, Default)]
pub(super) struct Pieces {
    bytes: Vec<u8>,
    /// Which bytes are there, in order, with gaps between them.
    there: Vec<Range<usize>>,
}

/// What a piece has done.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Put {
    /// Something is missing.
    Part,
    /// The hello is there to its end.
    Whole,
}

impl Pieces {
    /// Adds a piece.
    ///
    /// # Errors
    ///
    /// It cannot be one of a hello, or there are too many.
    pub(super) fn put(&mut self, offset: u64, piece: &[u8]) -> Result<Put, Cut> {
        let begin = usize::try_from(offset).map_err(|_| Cut)?;
        let end = begin.checked_add(piece.len()).filter(|end| *end <= LONGEST).ok_or(Cut)?;
        if self.bytes.len() < end {
            self.bytes.reserve_exact(end - self.bytes.len());
            self.bytes.resize(end, 0);
        }
        self.bytes[begin..end].copy_from_slice(piece);
        // Those that it touches become one with it.
        let first = self.there.partition_point(|there| there.end < begin);
        let behind = self.there.partition_point(|there| there.start <= end);
        let mut joined = begin..end;
        if let [one, ..] = &self.there[first..behind] {
            joined.start = joined.start.min(one.start);
        }
        if let [.., last] = &self.there[first..behind] {
            joined.end = joined.end.max(last.end);
        }
        self.there.splice(first..behind, [joined]);
        if self.there.len() > GAPS {
            return Err(Cut);
        }
        self.state()
    }

    fn state(&self) -> Result<Put, Cut> {
        let there = match self.there.first() {
            Some(there) if there.start == 0 => there.end,
            _ => return Ok(Put::Part),
        };
        let bytes = Bytes::new(&self.bytes[..there], there);
        if bytes.u8(0).is_ok_and(|kind| kind != CLIENT_HELLO) {
            return Err(Cut);
        }
        match bytes.u24(1) {
            Ok(length) if HEAD + length as usize <= there => Ok(Put::Whole),
            Ok(length) if HEAD + length as usize > LONGEST => Err(Cut),
            _ => Ok(Put::Part),
        }
    }

    /// Returns the hello, and what was sent behind it.
    pub(super) fn bytes(&self) -> Bytes<'_> {
        Bytes::new(&self.bytes, self.bytes.len())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pieces_in_any_order_become_the_hello() {
        let hello: Vec<u8> = [1, 0, 0, 60].into_iter().chain(0..60).collect();
        // Steps that lead through all pieces, each but the last with another one behind it; some overlap.
        for (size, step) in [(1, 1), (1, 63), (7, 3), (7, 9), (16, 3), (64, 1), (9, 7)] {
            let begins: Vec<_> = (0..64).step_by(size).collect();
            let mut pieces = Pieces::default();
            for index in 0..begins.len() {
                let begin = begins[index * step % begins.len()];
                let end = (begin + size + 2).min(64);
                let put = pieces.put(begin as u64, &hello[begin..end]);
                // The last may be there before its own piece, since they overlap.
                assert!(put.is_ok());
                if put == Ok(Put::Whole) {
                    break;
                }
            }
            assert_eq!((pieces.state(), pieces.bytes().data), (Ok(Put::Whole), &hello[..]), "{size} {step}");
        }
    }

    #[test]
    fn what_cannot_be_a_hello_takes_no_memory() {
        let mut pieces = Pieces::default();
        for (offset, piece) in
            [(LONGEST as u64, &[1][..]), (u64::MAX, &[1]), (0, &[2]), (0, &[1, 0, 0x40, 0])]
        {
            pieces = Pieces::default();
            assert_eq!(pieces.put(offset, piece), Err(Cut), "{offset}");
        }
        assert!(pieces.bytes.capacity() <= LONGEST);
        let mut pieces = Pieces::default();
        let results: Vec<_> = (1..100).map(|at| pieces.put(at * 2, &[0])).collect();
        assert_eq!(results.iter().filter(|put| put.is_ok()).count(), GAPS);
    }
}
