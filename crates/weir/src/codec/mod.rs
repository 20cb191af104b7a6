//! Compression: one module per format, each behind the feature of the same name.

#[cfg(feature = "gzip")]
mod gzip;
#[cfg(feature = "lz4")]
mod lz4;
#[cfg(feature = "zstd")]
mod zstd;

use std::fmt;
use std::io::{self, BufRead, Read};

/// The compression of a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum CompressionKind {
    /// No compression.
    None,
    /// gzip (RFC 1952), with one or more members.
    Gzip,
    /// zstd (RFC 8878), with one or more frames.
    Zstd,
    /// The lz4 frame format, with one or more frames.
    Lz4,
}

impl fmt::Display for CompressionKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::None => "uncompressed",
            Self::Gzip => "gzip",
            Self::Zstd => "zstd",
            Self::Lz4 => "lz4",
        })
    }
}

/// The buffered bytes of a compressed file.
pub(crate) type Packed = Box<dyn BufRead + Send>;
/// Makes a decoder of all frames.
pub(crate) type Decode = fn(Packed) -> io::Result<Box<dyn Read + Send>>;
/// Compresses bytes into one frame in an empty buffer; for lz4, into blocks of the one frame.
pub(crate) type Encode = Box<dyn FnMut(&[u8], &mut Vec<u8>) -> io::Result<()> + Send>;

/// Returns whether this build supports the format.
pub(crate) fn has(compression: CompressionKind) -> bool {
    compression == CompressionKind::None || decoder(compression).is_some()
}

/// Returns a decoder, or `None` if none is needed or this build lacks the format.
pub(crate) fn decoder(compression: CompressionKind) -> Option<Decode> {
    match compression {
        #[cfg(feature = "gzip")]
        CompressionKind::Gzip => Some(gzip::decoder),
        #[cfg(feature = "lz4")]
        CompressionKind::Lz4 => Some(lz4::decoder),
        #[cfg(feature = "zstd")]
        CompressionKind::Zstd => Some(zstd::decoder),
        _ => None,
    }
}

/// The bytes in front of and behind all that [`encoder`] returns, for a file that is a single frame.
pub(crate) fn ends(compression: CompressionKind) -> Option<[&'static [u8]; 2]> {
    match compression {
        #[cfg(feature = "lz4")]
        CompressionKind::Lz4 => Some([&lz4::HEADER, &lz4::END]),
        _ => None,
    }
}

/// Returns a compressor, or `None` if none is needed or this build lacks the format. `level` is for zstd.
#[cfg_attr(not(feature = "zstd"), expect(unused_variables, reason = "only zstd has levels"))]
pub(crate) fn encoder(compression: CompressionKind, level: i32) -> io::Result<Option<Encode>> {
    match compression {
        #[cfg(feature = "gzip")]
        CompressionKind::Gzip => Ok(Some(Box::new(gzip::encode))),
        #[cfg(feature = "lz4")]
        CompressionKind::Lz4 => Ok(Some(Box::new(lz4::encode))),
        #[cfg(feature = "zstd")]
        CompressionKind::Zstd => zstd::encoder(level).map(Some),
        _ => Ok(None),
    }
}
