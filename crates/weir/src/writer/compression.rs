//! How files are compressed.

use std::path::Path;

use crate::codec;

/// How a file is compressed: in independent pieces of at most 4 MiB, so that a truncated file is readable up to its
/// last whole piece.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub enum Compression {
    /// No compression.
    #[default]
    None,
    /// Zstandard, one frame per piece. Each frame has its size and a checksum. A table of all frames at the end (zstd's seekable format)
    /// allows reading from the middle.
    Zstd {
        /// A level in [`Compression::ZSTD_LEVELS`]; lower is faster, and negative levels are faster still.
        level: i32,
    },
    /// gzip, one member per piece; slower than the others.
    Gzip,
    /// LZ4, the fastest: one frame of independent blocks, since Wireshark 4.0 finds no frame behind the first 128 KiB.
    Lz4,
}

impl Compression {
    /// The levels that zstd supports.
    pub const ZSTD_LEVELS: std::ops::RangeInclusive<i32> = -100..=22;
    /// The default level: as small as level 1 with mixed traffic and small packets, in half the time.
    pub const ZSTD_LEVEL: i32 = -1;

    /// Returns the compression, without its level.
    pub(super) fn kind(self) -> codec::CompressionKind {
        match self {
            Self::None => codec::CompressionKind::None,
            Self::Zstd { .. } => codec::CompressionKind::Zstd,
            Self::Gzip => codec::CompressionKind::Gzip,
            Self::Lz4 => codec::CompressionKind::Lz4,
        }
    }

    /// Returns the compression that the suffix of a file name asks for.
    pub fn of_name(path: &Path) -> Option<Self> {
        match path.extension()?.to_str()? {
            "zst" | "zstd" => Some(Self::Zstd { level: Self::ZSTD_LEVEL }),
            "gz" => Some(Self::Gzip),
            "lz4" => Some(Self::Lz4),
            _ => None,
        }
    }
}
