//! Options of a [`Writer`](super::Writer).

use std::ffi::OsString;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use super::broker::FileBroker;
use super::template::Template;
use super::{Compression, DiskQueue};
use crate::format::Format;
use crate::reader::Section;

/// When one file ends and the next begins, and which files are kept. If several conditions are given, the first one met
/// ends a file.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Rotation {
    /// A file ends with the packet that brings it to this many bytes before compression. Closing statistics may follow,
    /// and what earlier files say of sockets ([`Writer::who`](super::Writer::who)) comes on top.
    pub size: Option<u64>,
    /// A file ends with this many packets.
    pub packets: Option<u64>,
    /// A file ends after this time, counted from the start, even without packets: see
    /// [`Writer::tick`](super::Writer::tick).
    pub period: Option<Duration>,
    /// Whether periods follow the local clock: a period of an hour ends on the hour.
    pub aligned: bool,
    /// With `size` or `packets`: the number of files to keep, including the current one. Older ones, including those
    /// that earlier runs wrote under the same names, are deleted. With `period` alone: the writer [is
    /// complete](super::Writer::is_complete) after this many files.
    pub files: Option<u32>,
    /// The total size on disk of the files to keep, in bytes; older ones are deleted, including those of earlier runs.
    pub keep_bytes: Option<u64>,
    /// The writer [is full](super::Writer::is_full) with the packet that brings all files together to this many bytes
    /// before compression; deleted files count. Closing statistics may follow, as may the headers of files that begin
    /// within the last chunk.
    pub in_all: Option<u64>,
}

impl Rotation {
    /// Returns whether there can be a second file.
    pub fn rotates(&self) -> bool {
        self.size.is_some() || self.packets.is_some() || self.period.is_some()
    }

    /// Returns whether `files` is the number of files to keep, rather than to write.
    pub(super) fn is_ring(&self) -> bool {
        self.size.is_some() || self.packets.is_some()
    }

    /// Returns the number of files to keep, if it is limited.
    pub(super) fn ring(&self) -> Option<u32> {
        self.files.filter(|_| self.is_ring())
    }
}

impl Template {
    /// Creates the template for a writer with these options.
    pub fn new(path: &Path, options: &WriterOptions) -> Self {
        let WriterOptions { rotation, strftime, user_application, .. } = options;
        Self::of(path, *strftime, rotation.rotates(), rotation.ring(), user_application)
    }
}

/// Options of a [`Writer`](super::Writer). More are added with time: begin with the default and set fields.
#[derive(Debug, Clone, Default)]
#[non_exhaustive]
pub struct WriterOptions {
    /// The format of the files.
    pub format: Format,
    /// Whether each [`write`](super::Writer::write) waits until the chunk is in the file, so that a program following
    /// the file sees it.
    pub flush_each: bool,
    /// A comment at the start of each file (pcapng only).
    pub comment: Option<String>,
    /// The section header of the file being rewritten; `None`: the header describes this machine (pcapng only).
    pub section: Option<Section>,
    /// Name and version of the capturing program, stored at the start of each file (pcapng only).
    pub user_application: String,
    /// How files are compressed.
    pub compression: Compression,
    /// When one file ends and the next begins.
    pub rotation: Rotation,
    /// Whether conversions such as `%H` in the path are replaced with the local time at which a file begins
    /// (`strftime`).
    pub strftime: bool,
    /// Whether an existing file is an error. Otherwise it is truncated; with rotation it is kept, and the next number
    /// is used.
    pub no_clobber: bool,
    /// Whether to go on when the disk or the quota is full, instead of failing. Packets without room are lost and counted
    /// ([`Written::lost`](super::Written::lost)), as are other blocks; later packets follow what is in the file, or begin the
    /// next one of the rotation. pcapng files tell the loss: in the next packet of each queue, and as a comment on statistics.
    /// This is for regular files other than standard output.
    pub keep_going: bool,
    /// Whether to `fsync` each finished file and its directory.
    pub fsync: bool,
    /// Whether new files are readable by their group, and not just by their owner.
    pub group_readable: bool,
    /// Opens and removes the files; `None`: this process does (`LocalBroker`).
    #[doc(hidden)]
    pub broker: Option<Arc<dyn FileBroker>>,
    /// The io_uring used to write regular files.
    pub queue: DiskQueue,
    /// A program to run for each finished file, with the file's path as its argument; no shell is involved.
    pub command: Option<OsString>,
}
