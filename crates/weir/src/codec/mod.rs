//! Compression: one module per format, each behind the feature of the same name.

#[cfg(feature = "gzip")]
mod gzip;
#[cfg(feature = "lz4")]
mod lz4;
#[cfg(feature = "zstd")]
mod zstd;

use std::io::{self, Read};

use crate::reader::{self, Packed};
use crate::writer;

/// Makes a decoder of all frames.
pub(crate) type Decode = fn(Packed) -> io::Result<Box<dyn Read + Send>>;
/// Compresses bytes into one frame in an empty buffer.
pub(crate) type Encode = Box<dyn FnMut(&[u8], &mut Vec<u8>) -> io::Result<()> + Send>;

/// Returns whether this build supports the format.
pub(crate) fn has(compression: reader::Compression) -> bool {
    compression == reader::Compression::None || decoder(compression).is_some()
}

/// Returns a decoder, or `None` if none is needed or this build lacks the format.
pub(crate) fn decoder(compression: reader::Compression) -> Option<Decode> {
    match compression {
        #[cfg(feature = "gzip")]
        reader::Compression::Gzip => Some(gzip::decoder),
        #[cfg(feature = "lz4")]
        reader::Compression::Lz4 => Some(lz4::decoder),
        #[cfg(feature = "zstd")]
        reader::Compression::Zstd => Some(zstd::decoder),
        _ => None,
    }
}

/// Returns a compressor, or `None` if none is needed or this build lacks the format.
pub(crate) fn encoder(compression: writer::Compression) -> io::Result<Option<Encode>> {
    match compression {
        #[cfg(feature = "gzip")]
        writer::Compression::Gzip => Ok(Some(Box::new(gzip::encode))),
        #[cfg(feature = "lz4")]
        writer::Compression::Lz4 => Ok(Some(Box::new(lz4::encode))),
        #[cfg(feature = "zstd")]
        writer::Compression::Zstd { level } => zstd::encoder(level).map(Some),
        _ => Ok(None),
    }
}
