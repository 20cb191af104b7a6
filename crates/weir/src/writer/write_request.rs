//! Requests to write: the pieces that make up a file.

use std::collections::BTreeMap;
use std::io;
use std::ops::Range;
use std::sync::Arc;

use weir_savefile::pcap;
use weir_savefile::record::Records;

use super::Format;
use crate::Chunk;

/// Bytes of a file, and which packets they hold.
#[derive(Default)]
pub(super) struct WriteRequest {
    pub(super) data: Data,
    pub(super) content: Content,
}

/// The memory that holds the bytes.
pub(super) enum Data {
    /// In the pool; dropping the chunk returns the memory.
    Chunk(Chunk),
    /// In our own buffer.
    Bytes(Vec<u8>),
    /// Part of other data, which is dropped with its last part.
    Range(Arc<Self>, Range<usize>),
    /// A compressed frame and its uncompressed size; worthless unless complete.
    Frame { bytes: Vec<u8>, plain: u64 },
}

impl Data {
    /// Splits after the first `at` bytes.
    pub(super) fn split(self, at: usize) -> (Self, Self) {
        let (whole, Range { start, end }) = match self {
            Self::Range(whole, range) => (whole, range),
            whole => {
                let end = whole.as_ref().len();
                (Arc::new(whole), 0..end)
            }
        };
        let at = (start + at).min(end);
        (Self::Range(Arc::clone(&whole), start..at), Self::Range(whole, at..end))
    }
}

impl Data {
    /// Returns the number of lost packets that the records tell of.
    pub(super) fn lost(&self) -> u64 {
        match self {
            Self::Chunk(chunk) => chunk.lost(),
            // Only the first record of the chunk can tell of any.
            Self::Range(whole, range) if whole.begins_with_losses() && range.start > 0 => 0,
            Self::Range(whole, _) if whole.begins_with_losses() => whole.lost(),
            _ => Records::new(self.as_ref()).flatten().map(|record| record.dropcount).sum(),
        }
    }

    fn begins_with_losses(&self) -> bool {
        matches!(self, Self::Chunk(chunk) if chunk.begins_with_losses())
    }
}

impl AsRef<[u8]> for Data {
    fn as_ref(&self) -> &[u8] {
        match self {
            Self::Chunk(chunk) => chunk.bytes(),
            Self::Bytes(bytes) | Self::Frame { bytes, .. } => bytes,
            Self::Range(whole, range) => &(**whole).as_ref()[range.clone()],
        }
    }
}

/// Numbers of packets by interface and queue.
pub(super) type Counted = BTreeMap<(u32, u32), u64>;

/// The packets in a request, in order; none for the file header and statistics.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Content {
    runs: Vec<Run>,
    /// The number of packets. Where queues alternate there are as many runs, and somebody asks for it at each packet.
    count: u64,
}

/// Consecutive packets of one queue.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Run {
    pub(super) interface: u32,
    pub(super) queue: u32,
    pub(super) count: u64,
}

impl Content {
    /// Packets of one queue.
    pub(super) fn of_queue(interface: u32, queue: u32, count: u64) -> Self {
        Self { runs: vec![Run { interface, queue, count }], count }
    }

    /// Adds `count` packets.
    #[inline]
    pub(super) fn push(&mut self, interface: u32, queue: u32, count: u64) {
        self.count += count;
        match self.runs.last_mut() {
            Some(run) if (run.interface, run.queue) == (interface, queue) => run.count += count,
            _ => self.runs.push(Run { interface, queue, count }),
        }
    }

    pub(super) fn runs(&self) -> &[Run] {
        &self.runs
    }

    /// The number of packets.
    pub(super) fn count(&self) -> u64 {
        self.count
    }

    /// Splits off the first `packets`.
    pub(super) fn split(&mut self, packets: u64) -> Self {
        let mut first = Self { runs: self.runs.clone(), count: self.count };
        first.truncate(packets);
        let mut gone = packets;
        for run in &mut self.runs {
            let here = run.count.min(gone);
            run.count -= here;
            gone -= here;
        }
        self.count -= packets - gone;
        self.runs.retain(|run| run.count > 0);
        first
    }

    /// Keeps only the first `packets`.
    fn truncate(&mut self, packets: u64) {
        let mut left = packets;
        for run in &mut self.runs {
            run.count = run.count.min(left);
            left -= run.count;
        }
        self.count = packets - left;
        self.runs.retain(|run| run.count > 0);
    }
}

/// The result of writing a request.
#[derive(Debug)]
pub(super) struct Outcome {
    /// Number of valid bytes from the start of the request: all of it, or whole records.
    pub(super) bytes: u64,
    /// The same before compression.
    pub(super) plain: u64,
    /// The packets in those bytes.
    pub(super) content: Content,
    /// Why some bytes are missing.
    pub(super) error: Option<io::Error>,
}

impl Default for Data {
    fn default() -> Self {
        Self::Bytes(Vec::new())
    }
}

impl From<Data> for WriteRequest {
    /// Wraps bytes without packets.
    fn from(data: Data) -> Self {
        Self { data, content: Content::default() }
    }
}

impl WriteRequest {
    /// The whole request was written.
    pub(super) fn complete(&mut self) -> Outcome {
        let bytes = self.data.as_ref().len() as u64;
        let plain = if let Data::Frame { plain, .. } = self.data { plain } else { bytes };
        Outcome { bytes, plain, content: std::mem::take(&mut self.content), error: None }
    }

    /// Only the first `written` bytes were written. Only here are its records parsed.
    pub(super) fn cut(&mut self, written: usize, error: io::Error, format: Format) -> Outcome {
        let mut content = std::mem::take(&mut self.content);
        let (count, bytes) = match self.data {
            Data::Frame { .. } => (0, 0),
            _ if content.runs.is_empty() => (0, 0),
            _ => whole_records(format, &self.data.as_ref()[..written]),
        };
        content.truncate(count as u64);
        Outcome { bytes: bytes as u64, plain: bytes as u64, content, error: Some(error) }
    }

    /// Returns the buffer, emptied for reuse; a chunk goes back to its pool.
    pub(super) fn into_buffer(self) -> Option<Vec<u8>> {
        match self.data {
            Data::Chunk(_) | Data::Range(..) => None,
            Data::Bytes(mut bytes) | Data::Frame { mut bytes, .. } => {
                bytes.clear();
                Some(bytes)
            }
        }
    }
}

/// Counts the whole records at the start of `bytes`, and their bytes.
fn whole_records(format: Format, bytes: &[u8]) -> (usize, usize) {
    match format {
        Format::Pcap { .. } => pcap::whole_records(bytes),
        Format::Pcapng => {
            let mut records = Records::new(bytes);
            let count = records.by_ref().filter(Result::is_ok).count();
            (count, records.offset())
        }
    }
}

/// Calls `write` with the remaining bytes and their offset until everything is written. Returns how many bytes were.
pub(super) fn write_all(
    bytes: &[u8],
    mut write: impl FnMut(&[u8], usize) -> io::Result<usize>,
) -> (usize, io::Result<()>) {
    let mut at = 0;
    while at < bytes.len() {
        match write(&bytes[at..], at) {
            Ok(0) => return (at, Err(io::ErrorKind::WriteZero.into())),
            Ok(written) => at += written,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return (at, Err(error)),
        }
    }
    (at, Ok(()))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Takes at most so many bytes at a time, is interrupted in between, and ends with `last` where it has `room` bytes.
    fn take(
        bytes: &[u8],
        most: usize,
        room: usize,
        last: fn() -> io::Result<usize>,
    ) -> (Vec<u8>, usize, io::Result<()>) {
        let (mut taken, mut calls) = (Vec::new(), 0);
        let (at, result) = write_all(bytes, |rest, at| {
            calls += 1;
            assert_eq!(at, taken.len(), "it goes on behind what was taken");
            match rest.len().min(most).min(room - at) {
                _ if calls % 2 == 0 => Err(io::ErrorKind::Interrupted.into()),
                0 => last(),
                some => {
                    taken.extend_from_slice(&rest[..some]);
                    Ok(some)
                }
            }
        });
        (taken, at, result)
    }

    #[test]
    fn short_writes_go_on_behind_what_was_taken() {
        let bytes: Vec<u8> = (0..100).collect();
        for most in [1, 7, 99, 100, 1000] {
            let (taken, at, result) = take(&bytes, most, 1000, || unreachable!("there is room"));
            result.unwrap();
            assert_eq!((taken, at), (bytes.clone(), 100));
        }
    }

    #[test]
    fn an_error_tells_how_much_was_taken_before() {
        let bytes: Vec<u8> = (0..100).collect();
        let full = || Err(io::ErrorKind::StorageFull.into());
        for (last, kind) in
            [(full as fn() -> _, io::ErrorKind::StorageFull), (|| Ok(0), io::ErrorKind::WriteZero)]
        {
            for room in [0, 1, 50, 99] {
                let (taken, at, result) = take(&bytes, 7, room, last);
                assert_eq!((&taken[..], at), (&bytes[..room], room));
                assert_eq!(result.unwrap_err().kind(), kind);
            }
        }
    }
}
