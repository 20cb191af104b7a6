//! The part of a file that is in memory.
//!
//! Files are read rather than mapped: if someone truncates a mapped file, its reader is killed by a signal, and mapping
//! is not faster (docs/performance.md).

use std::io;

use super::fetch::{Fetch, HEADROOM};
use super::stream::Stream;

/// Bytes requested from a stream at once: few enough for the second-level cache, and enough to make the cost of the
/// call negligible.
const PIECE: usize = 256 << 10;

/// The source of the bytes.
pub(super) enum Supply {
    /// Any stream.
    Stream(Box<dyn Stream>),
    /// A large uncompressed file.
    Blocks(Fetch),
}

/// A buffer with data that was read but not taken yet, and the source of the rest.
pub(super) struct Window {
    supply: Supply,
    buffer: Vec<u8>,
    /// The range that is not taken yet.
    start: usize,
    end: usize,
    /// Bytes read since the start of the input.
    read: u64,
    /// The position of the last bytes to be read again.
    refused: Option<u64>,
}

impl Window {
    pub(super) fn new(supply: Supply) -> Self {
        let length = if matches!(supply, Supply::Stream(_)) { PIECE } else { 0 };
        Self { supply, buffer: vec![0; length], start: 0, end: 0, read: 0, refused: None }
    }

    /// Returns the bytes that are read but not taken.
    #[inline]
    pub(super) fn bytes(&self) -> &[u8] {
        &self.buffer[self.start..self.end]
    }

    /// Takes `bytes` bytes, which stay in place until [`fill`](Self::fill). Returns their position for
    /// [`since`](Self::since).
    #[inline]
    pub(super) fn take(&mut self, bytes: usize) -> usize {
        let place = self.start;
        self.start = (place + bytes).min(self.end);
        place
    }

    /// Returns the bytes from a position returned by [`take`](Self::take).
    #[inline]
    pub(super) fn since(&self, place: usize) -> &[u8] {
        &self.buffer[place..self.end]
    }

    /// Returns the number of bytes taken since the start of the input.
    #[inline]
    pub(super) fn position(&self) -> u64 {
        self.read - (self.end - self.start) as u64
    }

    /// Returns whether [`fill`](Self::fill) would wait for somebody to write.
    pub(super) fn would_wait(&mut self) -> bool {
        match &mut self.supply {
            Supply::Stream(stream) => stream.would_wait(),
            Supply::Blocks(_) => false,
        }
    }

    /// Drops the bytes that are not taken, if it is worth reading them again.
    pub(super) fn again(&mut self) -> bool {
        let unused = self.end - self.start;
        let Supply::Stream(stream) = &mut self.supply else { return false };
        let position = self.read - unused as u64;
        if !stream.again(unused, self.refused != Some(position)) {
            return false;
        }
        self.refused = Some(position);
        self.read = position;
        self.end = self.start;
        true
    }

    /// Reads until there are `need` bytes; `false`: the input has ended. Memory grows only with data that really
    /// exists.
    #[cold]
    pub(super) fn fill(&mut self, need: usize) -> io::Result<bool> {
        while self.end - self.start < need {
            let more = match &mut self.supply {
                Supply::Stream(_) => self.read_on()?,
                Supply::Blocks(_) => self.next_block()?,
            };
            if more == 0 {
                return Ok(false);
            }
            self.read += more as u64;
        }
        Ok(true)
    }

    /// Reads more after the existing bytes. Returns how many.
    fn read_on(&mut self) -> io::Result<usize> {
        let Supply::Stream(input) = &mut self.supply else { return Ok(0) };
        self.buffer.copy_within(self.start..self.end, 0);
        self.end -= self.start;
        self.start = 0;
        if self.end == self.buffer.len() {
            self.buffer.resize(self.buffer.len() * 2, 0);
        }
        let room = &mut self.buffer[self.end..];
        let piece = room.len().min(PIECE);
        loop {
            match input.read(&mut room[..piece]) {
                Ok(bytes) => {
                    self.end += bytes;
                    return Ok(bytes);
                }
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
    }

    /// Copies the remaining bytes before the next block, or, if there are too many, the block after them.
    fn next_block(&mut self) -> io::Result<usize> {
        let Supply::Blocks(blocks) = &mut self.supply else { return Ok(0) };
        let left = self.end - self.start;
        if left > HEADROOM {
            let block = blocks.next(Vec::new())?;
            self.buffer.truncate(self.end);
            self.buffer.drain(..self.start);
            self.buffer.extend_from_slice(&block.buffer[HEADROOM..HEADROOM + block.bytes]);
            (self.start, self.end) = (0, self.buffer.len());
            return Ok(block.bytes);
        }
        // These are few bytes; the buffer is refilled.
        let kept = self.buffer[self.start..self.end].to_vec();
        let mut block = match blocks.next(std::mem::take(&mut self.buffer)) {
            Ok(block) => block,
            Err(error) => {
                (self.start, self.end, self.buffer) = (0, left, kept);
                return Err(error);
            }
        };
        (self.start, self.end) = (HEADROOM - left, HEADROOM + block.bytes);
        block.buffer[self.start..HEADROOM].copy_from_slice(&kept);
        self.buffer = block.buffer;
        Ok(block.bytes)
    }
}

#[cfg(test)]
mod tests {
    use std::io::Read;

    use super::super::stream::Any;
    use super::*;

    /// Returns one byte at a time.
    struct Drops(Vec<u8>);

    impl Read for Drops {
        fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
            if self.0.is_empty() || buffer.is_empty() {
                return Ok(0);
            }
            buffer[0] = self.0.remove(0);
            Ok(1)
        }
    }

    #[test]
    fn reads_no_more_than_is_needed() {
        let mut window = Window::new(Supply::Stream(Box::new(Any(Drops((0..10).collect())))));
        assert!(window.fill(3).unwrap());
        assert_eq!(window.bytes(), [0, 1, 2]);
        let place = window.take(2);
        assert_eq!((window.position(), window.bytes(), window.since(place)), (2, &[2][..], &[0, 1, 2][..]));
        assert!(window.fill(8).unwrap());
        assert_eq!((window.position(), window.bytes().len()), (2, 8));
        assert!(!window.fill(9).unwrap());
        assert_eq!(window.bytes(), [2, 3, 4, 5, 6, 7, 8, 9]);
    }

    #[test]
    fn memory_follows_the_bytes_not_the_promise() {
        let mut window = Window::new(Supply::Stream(Box::new(Any(io::repeat(7).take(1000)))));
        assert!(!window.fill(usize::MAX).unwrap());
        assert_eq!(window.buffer.len(), PIECE);
        let mut window = Window::new(Supply::Stream(Box::new(Any(io::repeat(7).take(3 << 20)))));
        assert!(window.fill(3 << 20).unwrap());
        assert_eq!((window.buffer.len(), window.bytes().len()), (4 << 20, 3 << 20));
    }
}
