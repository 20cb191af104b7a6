//! Why a file could not be read, or not completely.

use std::fmt;
use std::io;
use std::sync::Arc;

use weir_savefile::decode::{Doubt, Fault};

use super::CompressionKind;
use crate::filter::FilterError;

/// A file that cannot be read, or not completely. All intact data before the error has been delivered.
#[derive(Debug, Clone, thiserror::Error)]
pub struct ReadError {
    /// The file name as given, or `standard input`.
    pub file: String,
    /// Where reading stopped, in bytes from the start of the uncompressed capture. `None`: reading never began.
    pub position: Option<u64>,
    /// For a compressed file: how many bytes of the file itself had been read. The problem is near there.
    pub compressed: Option<u64>,
    /// Number of intact packets before the error.
    pub packets: u64,
    /// The reason.
    #[source]
    pub reason: ReadReason,
}

/// What is wrong with a file.
#[derive(Debug, Clone, thiserror::Error)]
#[non_exhaustive]
pub enum ReadReason {
    /// The file cannot be opened.
    #[error("cannot be opened: {0}")]
    Open(Arc<io::Error>),
    /// The file is a directory.
    #[error("is a directory")]
    Directory,
    /// The file is empty.
    #[error("is empty: it has no capture file header")]
    Empty,
    /// The file is truncated.
    #[error("truncated: at least {missing} bytes are missing")]
    Cut {
        /// How many bytes are missing, at least.
        missing: u64,
    },
    /// The next data in the file is invalid.
    #[error("{0}")]
    Damaged(Fault),
    /// The file was read to the end, but blocks with invalid contents were skipped.
    #[error("{blocks} damaged blocks were skipped, the first at byte {first}: {fault}")]
    LeftOut {
        /// Number of skipped blocks.
        blocks: u64,
        /// Position of the first one, in bytes.
        first: u64,
        /// What is wrong with the first one.
        fault: Fault,
    },
    /// The compressed data is truncated.
    #[error("truncated {0} data")]
    CompressedCut(CompressionKind),
    /// The compressed data is damaged, or followed by something else.
    #[error("damaged {compression} data: {source}")]
    CompressedDamaged {
        /// The compression format.
        compression: CompressionKind,
        /// The error from the decoder.
        source: Arc<io::Error>,
    },
    /// This build lacks the feature for the file's compression.
    #[error(
        "{0} data, which this program cannot read: it was built without the feature `{0}` of the library weir"
    )]
    NoCodec(CompressionKind),
    /// The filter tests something that packets of this interface do not have.
    #[error("interface {interface}: {error}")]
    Filter {
        /// The number of the interface.
        interface: u32,
        /// The error from the filter.
        error: Box<FilterError>,
    },
    /// The file was begun anew while it was [followed](super::Reader::follow), as tcpdump does in a ring.
    #[error("begun anew by its writer: at least {unread} bytes were not read")]
    Overwritten {
        /// Bytes that were seen to be there, but not read in time. There may have been more.
        unread: u64,
    },
    /// Reading failed.
    #[error("cannot be read: {0}")]
    Io(Arc<io::Error>),
}

impl fmt::Display for ReadError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: ", self.file)?;
        if let ReadReason::Filter { .. } = self.reason {
            // The error has several lines, the last of which points into the one above. The file itself is fine.
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
    /// Returns whether [`repair`](super::repair) can save the packets that are intact.
    pub fn is_repairable(&self) -> bool {
        match &self.reason {
            ReadReason::Cut { .. }
            | ReadReason::CompressedCut(_)
            | ReadReason::CompressedDamaged { .. }
            | ReadReason::LeftOut { .. } => true,
            ReadReason::Damaged(fault) => !is_foreign(fault),
            _ => false,
        }
    }

    /// Returns advice on what to do, if there is any.
    pub fn hint(&self) -> Option<&'static str> {
        match &self.reason {
            _ if self.is_repairable() => Some("the intact packets can be saved in a new file"),
            ReadReason::Damaged(_) => {
                Some("weir reads pcap and pcapng files, plain or compressed with gzip, zstd or lz4")
            }
            ReadReason::NoCodec(_) => Some("decompress it first, or build the program with that feature"),
            _ => None,
        }
    }
}

/// Whether the file is of another kind, rather than damaged.
fn is_foreign(fault: &Fault) -> bool {
    matches!(fault, Fault::Magic(_) | Fault::Undocumented(_) | Fault::Version { .. })
}

/// Something unusual in a file that did not prevent reading it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct Warning {
    /// What it is.
    pub what: Oddity,
    /// Where it first occurred, in bytes from the start of the uncompressed capture.
    pub position: u64,
    /// How often it occurred.
    pub times: u64,
}

/// The subject of a [`Warning`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Oddity {
    /// The data was delivered, but part of it is doubtful.
    Doubt(Doubt),
    /// A block with invalid contents was skipped.
    LeftOut(Fault),
    /// No packet of an interface that starts here can match the filter.
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
