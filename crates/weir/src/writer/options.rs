//! What can be asked of a [`Writer`](super::Writer).

use std::ffi::OsString;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use weir_savefile::pcap::Resolution;

use super::{DiskQueue, Keeper};
use crate::reader::Section;

/// What kind of file a [`Writer`](super::Writer) writes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Format {
    /// pcapng: several interfaces, losses and statistics in the file.
    #[default]
    Pcapng,
    /// Classic pcap: packets of one link type, nothing else.
    Pcap {
        /// Whether time stamps keep their nanoseconds; else microseconds, which older readers want.
        nanoseconds: bool,
    },
}

impl Format {
    /// What a pcap file of this format counts time in; `None`: it is no pcap file.
    pub(crate) fn pcap(self) -> Option<Resolution> {
        match self {
            Self::Pcapng => None,
            Self::Pcap { nanoseconds: true } => Some(Resolution::Nano),
            Self::Pcap { nanoseconds: false } => Some(Resolution::Micro),
        }
    }
}

/// How the file is compressed: in frames of at most 4 MiB, each whole by itself, so that a file that was cut off reads up
/// to its last whole frame.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Compression {
    /// Not at all.
    #[default]
    None,
    /// Zstandard, each frame with its size and a checksum, and at the end a table of all frames (zstd's seekable format),
    /// by which a reader can begin in the middle.
    Zstd {
        /// [`Compression::ZSTD_LEVELS`]; lower is faster, below 0 faster still.
        level: i32,
    },
    /// gzip, one member a frame; slower than the others.
    Gzip,
    /// LZ4, the fastest.
    Lz4,
}

impl Compression {
    /// The levels that zstd has.
    pub const ZSTD_LEVELS: std::ops::RangeInclusive<i32> = -100..=22;
    /// The usual level: of mixed traffic and of small packets it makes as little as level 1, and takes half the time.
    pub const ZSTD_LEVEL: i32 = -1;

    /// What the end of a file's name asks for.
    pub fn of_name(path: &Path) -> Option<Self> {
        match path.extension()?.to_str()? {
            "zst" | "zstd" => Some(Self::Zstd { level: Self::ZSTD_LEVEL }),
            "gz" => Some(Self::Gzip),
            "lz4" => Some(Self::Lz4),
            _ => None,
        }
    }
}

/// When one file ends and the next begins, and which files are kept. Several criteria may be given; the first that is met
/// ends a file.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Rotation {
    /// A file ends with the packet that brings it to this many bytes, before compression. Its closing statistics may come
    /// on top.
    pub size: Option<u64>,
    /// A file ends with this many packets.
    pub packets: Option<u64>,
    /// A file ends when this time is over, counted from the beginning, whether packets come or not: see
    /// [`Writer::tick`](super::Writer::tick).
    pub period: Option<Duration>,
    /// Periods are those of the local clock: a period of an hour ends with the full hour.
    pub aligned: bool,
    /// With `size` or `packets`: the newest files that are kept, the one being written included; older ones, of earlier
    /// runs into files of the same names, too, are deleted. With `period` alone: the writer [is complete](super::Writer::is_complete) after so many files.
    pub files: Option<u32>,
    /// The newest files, of earlier runs, too, are kept as long as together they have no more than this many bytes on the disk.
    pub keep_bytes: Option<u64>,
    /// The writer [is full](super::Writer::is_full) with the packet that brings all files together to this many bytes, before
    /// compression; deleted ones count. Closing statistics may come on top, and the headers of files that begin within the last
    /// chunk.
    pub in_all: Option<u64>,
}

impl Rotation {
    /// Whether there can be a second file.
    pub fn rotates(&self) -> bool {
        self.size.is_some() || self.packets.is_some() || self.period.is_some()
    }

    /// `files` is a number of files to keep, not one to write.
    pub(super) fn is_ring(&self) -> bool {
        self.size.is_some() || self.packets.is_some()
    }
}

/// How to write.
#[derive(Debug, Clone, Default)]
pub struct WriterOptions {
    /// What kind of file.
    pub format: Format,
    /// Whether each [`write`](super::Writer::write) comes back only when the chunk is in the file, so that who follows the
    /// file sees it.
    pub flush_each: bool,
    /// A text at the start of each file (pcapng only).
    pub comment: Option<String>,
    /// What the start of each file says else, where that is not of this machine but of the file that is rewritten (pcapng only).
    pub section: Option<Section>,
    /// Name and version of the program that captures, at the start of each file (pcapng only).
    pub user_application: String,
    /// How files are compressed.
    pub compression: Compression,
    /// When one file ends and the next begins.
    pub rotation: Rotation,
    /// Whether conversions such as `%H` in the path stand for the local time at which a file begins (`strftime`).
    pub strftime: bool,
    /// Whether a file that is there already is an error; else it is emptied, or with rotation, where no file that was there
    /// is overwritten, the next number is taken.
    pub no_clobber: bool,
    /// Whether each finished file is brought to the disk (`fsync`), with its name.
    pub fsync: bool,
    /// Whether the group of a new file may read it; else its owner alone.
    pub group_readable: bool,
    /// Who opens and removes the files; `None`: the process itself ([`Here`](super::Here)).
    pub keeper: Option<Arc<dyn Keeper>>,
    /// What regular files are written through.
    pub queue: DiskQueue,
    /// A program to run for each finished file, with the file's path as its argument; no shell is involved.
    pub command: Option<OsString>,
}
