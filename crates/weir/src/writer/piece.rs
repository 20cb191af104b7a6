//! The pieces that a file is put together from.

use std::io;

use weir_savefile::{pcap, record};

use super::Format;
use crate::Chunk;

/// Bytes of the file and what they hold.
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
}

impl AsRef<[u8]> for Load {
    fn as_ref(&self) -> &[u8] {
        match self {
            Self::Chunk(chunk) => chunk.bytes(),
            Self::Bytes(bytes) => bytes,
        }
    }
}

/// What the bytes are, for the account.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Content {
    /// What stands around the packets: the start of the file, statistics.
    Frame,
    /// Records of one queue.
    Packets { interface: u32, queue: u32, count: u64 },
}

/// What became of a piece.
#[derive(Debug)]
pub(super) struct Outcome {
    /// Bytes, from its first on, that are good: all, or whole records of it.
    pub(super) bytes: u64,
    /// What those bytes hold.
    pub(super) content: Content,
    /// Why they are not all.
    pub(super) error: Option<io::Error>,
}

impl Piece {
    /// The piece is written from its first byte to its last.
    pub(super) fn complete(&self) -> Outcome {
        Outcome { bytes: self.load.as_ref().len() as u64, content: self.content, error: None }
    }

    /// No more than its first `written` bytes could be written. This is the one case where records are looked at.
    pub(super) fn cut(&self, written: usize, error: io::Error, format: Format) -> Outcome {
        let arrived = &self.load.as_ref()[..written];
        let (content, bytes) = match self.content {
            Content::Frame => (Content::Frame, 0),
            Content::Packets { interface, queue, .. } => {
                let (count, bytes) = whole_records(format, arrived);
                (Content::Packets { interface, queue, count: count as u64 }, bytes)
            }
        };
        Outcome { bytes: bytes as u64, content, error: Some(error) }
    }

    /// The buffer, emptied for its next use; a chunk goes back to its pool.
    pub(super) fn into_buffer(self) -> Option<Vec<u8>> {
        match self.load {
            Load::Chunk(_) => None,
            Load::Bytes(mut bytes) => {
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
