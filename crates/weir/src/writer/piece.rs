//! The pieces that a file is put together from.

use std::io;
use std::ops::Range;
use std::sync::Arc;

use weir_savefile::{pcap, record};

use super::Format;
use crate::Chunk;

/// Bytes of the file and what they hold.
#[derive(Default)]
pub(super) struct Piece {
    pub(super) load: Load,
    pub(super) content: Content,
}

/// Where the bytes are.
pub(super) enum Load {
    /// In the pool. Dropping it gives the memory back.
    Chunk(Chunk),
    /// In a buffer of ours.
    Bytes(Vec<u8>),
    /// A range of one of these, which goes when the last of its ranges does.
    Range(Arc<Self>, Range<usize>),
    /// A compressed frame of so many bytes: whole or worth nothing.
    Frame { bytes: Vec<u8>, plain: u64 },
}

impl Load {
    /// The first `at` bytes, and the rest.
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

impl AsRef<[u8]> for Load {
    fn as_ref(&self) -> &[u8] {
        match self {
            Self::Chunk(chunk) => chunk.bytes(),
            Self::Bytes(bytes) | Self::Frame { bytes, .. } => bytes,
            Self::Range(whole, range) => &(**whole).as_ref()[range.clone()],
        }
    }
}

/// The packets that the bytes hold, in their order; none for what stands around packets: the start of the file,
/// statistics.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Content {
    runs: Vec<Run>,
}

/// Packets of one queue, one behind the other.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Run {
    pub(super) interface: u32,
    pub(super) queue: u32,
    pub(super) count: u64,
}

impl Content {
    /// Packets of one queue.
    pub(super) fn of_queue(interface: u32, queue: u32, count: u64) -> Self {
        Self { runs: vec![Run { interface, queue, count }] }
    }

    /// So many more packets.
    #[inline]
    pub(super) fn push(&mut self, interface: u32, queue: u32, count: u64) {
        match self.runs.last_mut() {
            Some(run) if (run.interface, run.queue) == (interface, queue) => run.count += count,
            _ => self.runs.push(Run { interface, queue, count }),
        }
    }

    pub(super) fn runs(&self) -> &[Run] {
        &self.runs
    }

    /// Packets.
    pub(super) fn count(&self) -> u64 {
        self.runs.iter().map(|run| run.count).sum()
    }

    /// Takes the first `packets` out.
    pub(super) fn split(&mut self, packets: u64) -> Self {
        let mut first = Self { runs: self.runs.clone() };
        first.truncate(packets);
        let mut gone = packets;
        for run in &mut self.runs {
            let here = run.count.min(gone);
            run.count -= here;
            gone -= here;
        }
        self.runs.retain(|run| run.count > 0);
        first
    }

    /// Keeps the first `packets`.
    fn truncate(&mut self, packets: u64) {
        let mut left = packets;
        for run in &mut self.runs {
            run.count = run.count.min(left);
            left -= run.count;
        }
        self.runs.retain(|run| run.count > 0);
    }
}

/// What became of a piece.
#[derive(Debug)]
pub(super) struct Outcome {
    /// Bytes, from its first on, that are good: all, or whole records of it.
    pub(super) bytes: u64,
    /// The same before compression.
    pub(super) plain: u64,
    /// What those bytes hold.
    pub(super) content: Content,
    /// Why they are not all.
    pub(super) error: Option<io::Error>,
}

impl Default for Load {
    fn default() -> Self {
        Self::Bytes(Vec::new())
    }
}

impl From<Load> for Piece {
    /// Bytes that hold no packet.
    fn from(load: Load) -> Self {
        Self { load, content: Content::default() }
    }
}

impl Piece {
    /// The piece is written from its first byte to its last.
    pub(super) fn complete(&mut self) -> Outcome {
        let bytes = self.load.as_ref().len() as u64;
        let plain = if let Load::Frame { plain, .. } = self.load { plain } else { bytes };
        Outcome { bytes, plain, content: std::mem::take(&mut self.content), error: None }
    }

    /// No more than its first `written` bytes could be written. This is the one case where records are looked at.
    pub(super) fn cut(&mut self, written: usize, error: io::Error, format: Format) -> Outcome {
        let mut content = std::mem::take(&mut self.content);
        let (count, bytes) = match self.load {
            Load::Frame { .. } => (0, 0),
            _ if content.runs.is_empty() => (0, 0),
            _ => whole_records(format, &self.load.as_ref()[..written]),
        };
        content.truncate(count as u64);
        Outcome { bytes: bytes as u64, plain: bytes as u64, content, error: Some(error) }
    }

    /// The buffer, emptied for its next use; a chunk goes back to its pool.
    pub(super) fn into_buffer(self) -> Option<Vec<u8>> {
        match self.load {
            Load::Chunk(_) | Load::Range(..) => None,
            Load::Bytes(mut bytes) | Load::Frame { mut bytes, .. } => {
                bytes.clear();
                Some(bytes)
            }
        }
    }
}

/// How many whole records `bytes` begins with, and how many bytes they take.
fn whole_records(format: Format, bytes: &[u8]) -> (usize, usize) {
    match format {
        Format::Pcap { .. } => pcap::whole_records(bytes),
        Format::Pcapng => {
            let mut records = record::Records::new(bytes);
            let count = records.by_ref().filter(Result::is_ok).count();
            (count, records.offset())
        }
    }
}

/// Calls `write` with what is left of `bytes` and where that begins, until all is written. Says how far it came.
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
