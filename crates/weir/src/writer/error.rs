//! Errors while writing files, each with advice on what to do.

use std::fmt;
use std::io;
use std::path::PathBuf;
use std::sync::Arc;

use weir_savefile::record::Malformed;

use crate::reader;

/// What was safely written before an error, and stays readable.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Kept {
    /// Number of packets.
    pub packets: u64,
    /// Number of bytes.
    pub bytes: u64,
}

impl fmt::Display for Kept {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} packets ({} bytes) before it are safely written", self.packets, self.bytes)
    }
}

/// The reason why a [`Writer`](super::Writer) could not be created, or stopped.
#[derive(Debug, Clone, thiserror::Error)]
#[non_exhaustive]
pub enum WriteError {
    /// The path is a directory.
    #[error("cannot write to {}: it is a directory; name a file, for instance {}", .path.display(), .path.join("capture.pcapng").display())]
    Directory {
        /// The path as given.
        path: PathBuf,
    },
    /// The directory for the file does not exist.
    #[error("cannot create {}: no directory {}; create it with `mkdir -p {}`", .path.display(), .parent.display(), .parent.display())]
    NoParent {
        /// The path as given.
        path: PathBuf,
        /// The missing directory.
        parent: PathBuf,
    },
    /// Permission denied.
    #[error("cannot write to {}: {source}; choose a directory you may write to, or change its permissions", .path.display())]
    NotPermitted {
        /// The path as given.
        path: PathBuf,
        /// The error from the kernel.
        source: Arc<io::Error>,
    },
    /// The file system is read-only.
    #[error("cannot write to {}: {source}; choose a place on another file system", .path.display())]
    ReadOnly {
        /// The path as given.
        path: PathBuf,
        /// The error from the kernel.
        source: Arc<io::Error>,
    },
    /// The file exists and must not be overwritten.
    #[error("cannot overwrite {}: it exists; choose another name", .path.display())]
    Exists {
        /// The path as given.
        path: PathBuf,
    },
    /// Another program, perhaps another capture, is writing the file.
    #[error("{} is being written by another program{holder}; choose another file", .path.display())]
    Locked {
        /// The path as given.
        path: PathBuf,
        /// That program, in parentheses after a space, if the kernel reports it.
        holder: String,
    },
    /// A file was changed while it was closed temporarily.
    #[error("{} was changed by another program; earlier data is still there, the rest is missing", .path.display())]
    Changed {
        /// The path of the file.
        path: PathBuf,
    },
    /// The path is not a valid time format.
    #[error("cannot make a file name from {}: {reason}; write %% for a percent sign", .path.display())]
    Pattern {
        /// The path as given.
        path: PathBuf,
        /// The problem.
        reason: String,
    },
    /// A pipe or device cannot be rotated.
    #[error("cannot rotate {name}: it is not a regular file; name a file, or do not rotate")]
    NoRotation {
        /// The pipe or device.
        name: String,
    },
    /// The program for finished files was not found.
    #[error("cannot run `{command}` for finished files: no such program; name one in PATH, or give its path")]
    Command {
        /// The command as given.
        command: String,
    },
    /// Another user has created a file or link there.
    #[error("cannot write to {}: user {owner} put a {what}; choose another place, or remove it", .path.display())]
    Foreign {
        /// The path as given.
        path: PathBuf,
        /// The user ID.
        owner: u32,
        /// What it is, and where.
        what: &'static str,
    },
    /// A FIFO has no reader.
    #[error("cannot write to {}: it is a FIFO without a reader; start the reader first", .path.display())]
    Unread {
        /// The path as given.
        path: PathBuf,
    },
    /// `fsync` failed for data that the kernel had accepted.
    #[error("cannot fsync {}: {source}; its contents may be incomplete", .path.display())]
    Sync {
        /// The path of the file.
        path: PathBuf,
        /// The error from the kernel.
        source: Arc<io::Error>,
    },
    /// The file cannot be opened for another reason.
    #[error("cannot open {} for writing: {source}", .path.display())]
    Open {
        /// The path as given.
        path: PathBuf,
        /// The error from the kernel.
        source: Arc<io::Error>,
    },
    /// The interfaces have several link types, but the format holds only one.
    #[error("a pcap file holds a single link type, but {each}; write pcapng, or one file per interface")]
    LinkTypes {
        /// Each interface with its link type.
        each: String,
    },
    /// This build lacks the feature for the requested compression.
    #[error(
        "cannot compress with {0}: this program was built without the feature `{0}` of the library weir; write the file uncompressed"
    )]
    NoCodec(reader::CompressionKind),
    /// A packet or block does not fit into any file.
    #[error("cannot write a packet: {reason}")]
    Packet {
        /// The problem.
        reason: String,
    },
    /// No space left, or the quota is exceeded.
    #[error("no space left for {name}: {source}; {kept}. Free some space, or choose another place")]
    Full {
        /// The name of the file.
        name: String,
        /// The error from the kernel.
        source: Arc<io::Error>,
        /// What was safely written.
        kept: Kept,
    },
    /// The file has reached the maximum size.
    #[error(
        "{name} cannot grow further: {source}; {kept}. Raise the limit (`ulimit -f`) or write smaller files"
    )]
    TooLarge {
        /// The name of the file.
        name: String,
        /// The error from the kernel.
        source: Arc<io::Error>,
        /// What was safely written.
        kept: Kept,
    },
    /// The reader has closed the pipe.
    #[error("the reader of {name} has closed it; {kept}")]
    Closed {
        /// The name of the pipe.
        name: String,
        /// What was safely written.
        kept: Kept,
    },
    /// The file cannot be written for another reason.
    #[error("cannot write to {name}: {source}; {kept}")]
    Write {
        /// The name of the file.
        name: String,
        /// The error from the kernel.
        source: Arc<io::Error>,
        /// What was safely written.
        kept: Kept,
    },
    /// The writer is already closed.
    #[error("cannot write: the file is already closed")]
    Finished,
    /// A chunk to be converted does not hold valid records.
    #[error("a chunk holds a {0}; please report this: it is a bug, or another program writes to the pool")]
    Malformed(Malformed),
}

impl WriteError {
    /// Converts the error of a write.
    pub(super) fn from_write(name: &str, source: io::Error, kept: Kept) -> Self {
        use io::ErrorKind::{BrokenPipe, FileTooLarge};
        let name = name.to_owned();
        let (kind, full) = (source.kind(), is_full(&source));
        let source = Arc::new(source);
        match kind {
            _ if full => Self::Full { name, source, kept },
            FileTooLarge => Self::TooLarge { name, source, kept },
            BrokenPipe => Self::Closed { name, kept },
            _ => Self::Write { name, source, kept },
        }
    }
}

impl WriteError {
    /// Returns whether the disk or quota is full.
    pub(super) fn is_full(&self) -> bool {
        matches!(self, Self::Full { source, .. } | Self::Open { source, .. } if is_full(source))
    }
}

/// Returns whether the disk or quota is full.
pub(super) fn is_full(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded)
}
