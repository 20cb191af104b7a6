//! Why a file could not be read, or not to its end.

use std::fmt;
use std::io;
use std::sync::Arc;

use weir_savefile::decode::{Doubt, Fault};

use super::Compression;
use crate::filter::FilterError;

/// A file that cannot be read, or not to its end. What is whole before the place was given out.
#[derive(Debug, Clone, thiserror::Error)]
pub struct ReadError {
    /// The file, as it was asked for; `standard input`.
    pub file: String,
    /// Where the reading ended: bytes from the start of the capture, uncompressed. `None`: it never began.
    pub position: Option<u64>,
    /// Of a compressed file: bytes of the file itself that were taken until then. The place is near them.
    pub compressed: Option<u64>,
    /// Packets that were whole before it.
    pub packets: u64,
    /// What was wrong.
    #[source]
    pub reason: ReadReason,
}

/// What is wrong with a file.
#[derive(Debug, Clone, thiserror::Error)]
#[non_exhaustive]
pub enum ReadReason {
    /// It cannot be opened.
    #[error("cannot be opened: {0}")]
    Open(Arc<io::Error>),
    /// It is a directory.
    #[error("is a directory")]
    Directory,
    /// It has no bytes at all.
    #[error("is empty: it lacks even a capture file header")]
    Empty,
    /// It ends in the middle of something.
    #[error("ends too early: at least {missing} bytes are missing")]
    Cut {
        /// How many would have been needed to go on.
        missing: u64,
    },
    /// What comes next makes no sense.
    #[error("{0}")]
    Damaged(Fault),
    /// All was read, but for blocks whose inside makes no sense.
    #[error("{blocks} damaged blocks were skipped, the first at byte {first}: {fault}")]
    LeftOut {
        /// How many.
        blocks: u64,
        /// Where the first begins.
        first: u64,
        /// What is wrong with the first.
        fault: Fault,
    },
    /// The compressed data end in the middle.
    #[error("{0} data that end too early")]
    CompressedCut(Compression),
    /// The compressed data are damaged, or something else follows them.
    #[error("{compression} data that are damaged: {source}")]
    CompressedDamaged {
        /// What they say they are.
        compression: Compression,
        /// The decoder's words.
        source: Arc<io::Error>,
    },
    /// The filter asks for what packets of this interface do not have.
    #[error("interface {interface}: {error}")]
    Filter {
        /// Number of the interface.
        interface: u32,
        /// What is wrong.
        error: Box<FilterError>,
    },
    /// The system could not read.
    #[error("cannot be read: {0}")]
    Io(Arc<io::Error>),
}

impl fmt::Display for ReadError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: ", self.file)?;
        if let ReadReason::Filter { .. } = self.reason {
            // Several lines, the last of which shows a place in the one before; and the file is in order.
            return write!(f, "{}", self.reason);
        }
        if let Some(position) = self.position
            && !matches!(self.reason, ReadReason::LeftOut { .. })
        {
            write!(f, "at byte {position}")?;
            if let Some(compressed) = self.compressed {
                write!(f, " (before byte {compressed} of the compressed file)")?;
            }
            f.write_str(": ")?;
        }
        write!(f, "{}", self.reason)?;
        match (self.position, self.packets) {
            (None, _) => Ok(()),
            (_, 1) => f.write_str("; 1 packet before it is intact"),
            (_, packets) => write!(f, "; {packets} packets before it are intact"),
        }
    }
}

impl ReadError {
    /// What to do about it, where there is something.
    pub fn hint(&self) -> Option<&'static str> {
        match &self.reason {
            ReadReason::Cut { .. }
            | ReadReason::CompressedCut(_)
            | ReadReason::CompressedDamaged { .. }
            | ReadReason::LeftOut { .. } => {
                Some("save the intact packets with: weir read --repair FILE -w NEW")
            }
            ReadReason::Damaged(Fault::Magic(_) | Fault::Undocumented(_) | Fault::Version { .. }) => {
                Some("weir reads pcap and pcapng, also compressed by gzip, zstd or lz4")
            }
            ReadReason::Damaged(_) => Some("save the intact packets with: weir read --repair FILE -w NEW"),
            _ => None,
        }
    }
}

/// Something that was odd, but did not end the reading.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Warning {
    /// What.
    pub what: Oddity,
    /// Where it was met first: bytes from the start of the capture, uncompressed.
    pub position: u64,
    /// How many times.
    pub times: u64,
}

/// What a [`Warning`] is about.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Oddity {
    /// Given out, but something of it is not to be believed.
    Doubt(Doubt),
    /// Left out: its inside makes no sense.
    LeftOut(Fault),
    /// No packet of an interface that begins here can match the filter.
    NeverMatches,
}

impl fmt::Display for Warning {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "at byte {}: ", self.position)?;
        match self.what {
            Oddity::Doubt(doubt) => write!(f, "{doubt}")?,
            Oddity::LeftOut(fault) => write!(f, "left out: {fault}")?,
            Oddity::NeverMatches => write!(f, "the filter can never match packets of this link type")?,
        }
        match self.times {
            1 => Ok(()),
            times => write!(f, " ({times} times)"),
        }
    }
}
