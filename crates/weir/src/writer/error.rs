//! What can go wrong with a file, each with what to do about it.

use std::fmt;
use std::io;
use std::path::PathBuf;
use std::sync::Arc;

use weir_savefile::record::Malformed;

/// What was safely written before an error; it stays readable.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Kept {
    /// Packets.
    pub packets: u64,
    /// Bytes of the file.
    pub bytes: u64,
}

impl fmt::Display for Kept {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} packets ({} bytes) before that are safely written", self.packets, self.bytes)
    }
}

/// Why a [`Writer`](super::Writer) could not be made, or stopped.
#[derive(Debug, Clone, thiserror::Error)]
#[non_exhaustive]
pub enum WriteError {
    /// The path leads to a directory.
    #[error("cannot write to {}: it is a directory; name a file, for instance {}", .path.display(), .path.join("capture.pcapng").display())]
    Directory {
        /// As given.
        path: PathBuf,
    },
    /// The directory that the file is to be in does not exist.
    #[error("cannot create {}: there is no directory {}; make it with `mkdir -p {}`", .path.display(), .parent.display(), .parent.display())]
    NoParent {
        /// As given.
        path: PathBuf,
        /// What is missing.
        parent: PathBuf,
    },
    /// The user may not write there.
    #[error("cannot write to {}: {source}; choose a directory you may write to, or change its permissions", .path.display())]
    NotPermitted {
        /// As given.
        path: PathBuf,
        /// The kernel's answer.
        source: Arc<io::Error>,
    },
    /// The file system does not take files.
    #[error("cannot write to {}: {source}; choose a place on another file system", .path.display())]
    ReadOnly {
        /// As given.
        path: PathBuf,
        /// The kernel's answer.
        source: Arc<io::Error>,
    },
    /// The file is there, and must not be overwritten.
    #[error("cannot overwrite {}: it exists, and --no-clobber is given; choose another name", .path.display())]
    Exists {
        /// As given.
        path: PathBuf,
    },
    /// Another program, perhaps another capture, writes to the file.
    #[error("{} is being written by another program{holder}; choose another file", .path.display())]
    Locked {
        /// As given.
        path: PathBuf,
        /// Who, in brackets and after a space, where the kernel says so.
        holder: String,
    },
    /// A file that was closed for a while is not what it was.
    #[error("{} was changed by another program; what was written before is still there, the rest is missing", .path.display())]
    Changed {
        /// The file.
        path: PathBuf,
    },
    /// The path is no pattern of time.
    #[error("cannot make a file name of {}: {reason}; write %% for a percent sign", .path.display())]
    Pattern {
        /// As given.
        path: PathBuf,
        /// What is wrong.
        reason: String,
    },
    /// What cannot be followed by a second file.
    #[error(
        "{name} is not a regular file and cannot be followed by a second one; name a file, or do not rotate"
    )]
    NoRotation {
        /// The pipe or device.
        name: String,
    },
    /// The program for finished files is not there.
    #[error("cannot run `{command}` for finished files: no such program; name one in PATH, or give its path")]
    Command {
        /// As given.
        command: String,
    },
    /// Somebody else has put something there.
    #[error("cannot write to {}: user {owner} has put a {what}; choose another place, or remove it", .path.display())]
    Foreign {
        /// As given.
        path: PathBuf,
        /// The number of the user.
        owner: u32,
        /// What, and where.
        what: &'static str,
    },
    /// A FIFO that nobody reads.
    #[error("cannot write to {}: it is a FIFO without a reader; start the reader first", .path.display())]
    Unread {
        /// As given.
        path: PathBuf,
    },
    /// The disk has refused what the kernel had taken for it.
    #[error("cannot fsync {}: {source}; its contents may be incomplete", .path.display())]
    Sync {
        /// The file.
        path: PathBuf,
        /// The kernel's answer.
        source: Arc<io::Error>,
    },
    /// The file cannot be opened for another reason.
    #[error("cannot open {} for writing: {source}", .path.display())]
    Open {
        /// As given.
        path: PathBuf,
        /// The kernel's answer.
        source: Arc<io::Error>,
    },
    /// The interfaces have several link types, and the format has room for one.
    #[error("a pcap file holds a single link type, but {each}; write pcapng, or one file per interface")]
    LinkTypes {
        /// Each interface with its link type.
        each: String,
    },
    /// A packet or block that no file can hold.
    #[error("cannot write a packet: {reason}")]
    Packet {
        /// What is wrong with it.
        reason: String,
    },
    /// No room for more.
    #[error("no space left for {name}: {source}; {kept}. Free some space, or choose another place")]
    Full {
        /// The file.
        name: String,
        /// The kernel's answer.
        source: Arc<io::Error>,
        /// What is safe.
        kept: Kept,
    },
    /// The file is as large as it may become.
    #[error(
        "{name} cannot grow further: {source}; {kept}. Raise the limit (`ulimit -f`) or write smaller files"
    )]
    TooLarge {
        /// The file.
        name: String,
        /// The kernel's answer.
        source: Arc<io::Error>,
        /// What is safe.
        kept: Kept,
    },
    /// Nobody reads the pipe any more.
    #[error("the reader of {name} has closed it; {kept}")]
    Closed {
        /// The pipe.
        name: String,
        /// What is safe.
        kept: Kept,
    },
    /// The file cannot be written for another reason.
    #[error("cannot write to {name}: {source}; {kept}")]
    Write {
        /// The file.
        name: String,
        /// The kernel's answer.
        source: Arc<io::Error>,
        /// What is safe.
        kept: Kept,
    },
    /// The writer was closed before.
    #[error("cannot write: the file is already closed")]
    Finished,
    /// A chunk that is to be rewritten is no run of records.
    #[error("a chunk holds a {0}; please report this: it is a bug, or something else writes to the pool")]
    Malformed(Malformed),
}

impl WriteError {
    /// From the error of a write.
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

/// Whether room is what is missing.
pub(super) fn is_full(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded)
}
