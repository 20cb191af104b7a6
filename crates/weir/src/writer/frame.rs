//! A piece of a file as one compressed frame, and the table of zstd frames.

use std::io::{self, Write as _};

use flate2::write::GzEncoder;
use lz4_flex::frame::{BlockMode, BlockSize, FrameEncoder, FrameInfo};
use zstd::zstd_safe::{CParameter, compress_bound};

use super::Compression;

/// Maximum size of a frame before compression, in bytes: a reader has to decompress this much to find one packet.
pub(super) const LARGEST: usize = 4 << 20;

/// A compressor; each thread has its own.
pub(super) enum Codec {
    Zstd(zstd::bulk::Compressor<'static>),
    Gzip,
    Lz4,
}

impl Codec {
    /// `None`: no compression.
    pub(super) fn new(compression: Compression) -> io::Result<Option<Self>> {
        Ok(Some(match compression {
            Compression::None => return Ok(None),
            Compression::Zstd { level } => {
                let mut compressor = zstd::bulk::Compressor::new(level)?;
                compressor.set_parameter(CParameter::ChecksumFlag(true))?;
                compressor.set_parameter(CParameter::ContentSizeFlag(true))?;
                Self::Zstd(compressor)
            }
            Compression::Gzip => Self::Gzip,
            Compression::Lz4 => Self::Lz4,
        }))
    }

    /// Compresses `plain` into one frame, replacing the contents of `out`.
    pub(super) fn frame(&mut self, plain: &[u8], out: &mut Vec<u8>) -> io::Result<()> {
        out.clear();
        #[cfg(test)]
        assert!(!is_poison(plain), "a test has this thread die");
        match self {
            Self::Zstd(compressor) => {
                out.reserve(compress_bound(plain.len()));
                compressor.compress_to_buffer(plain, out)?;
            }
            Self::Gzip => {
                let mut encoder = GzEncoder::new(out, flate2::Compression::fast());
                encoder.write_all(plain)?;
                encoder.finish()?;
            }
            Self::Lz4 => {
                let info = FrameInfo::new()
                    .content_size(Some(plain.len() as u64))
                    .content_checksum(true)
                    .block_mode(BlockMode::Independent)
                    .block_size(BlockSize::Max1MB);
                let mut encoder = FrameEncoder::with_frame_info(info, out);
                encoder.write_all(plain)?;
                encoder.finish().map_err(io::Error::other)?;
            }
        }
        Ok(())
    }
}

/// Makes the compressing thread panic, for a test.
#[cfg(test)]
pub(super) const POISON: &[u8] = b"the thread that compresses this dies";

#[cfg(test)]
fn is_poison(plain: &[u8]) -> bool {
    plain.windows(POISON.len()).any(|window| window == POISON)
}

/// The table of the frames in a zstd file (contrib/seekable_format of zstd, version 0.1.0). It is a skippable frame at
/// the end of the file, which other readers ignore.
#[derive(Debug, Default)]
pub(super) struct SeekTable {
    /// Compressed and uncompressed sizes.
    frames: Vec<(u32, u32)>,
}

impl SeekTable {
    const SKIPPABLE: u32 = 0x184d_2a5e;
    const SEEKABLE: u32 = 0x8f92_eab1;
    const FOOTER: usize = 9;

    pub(super) fn push(&mut self, compressed: usize, plain: u64) {
        let size = |bytes| u32::try_from(bytes).unwrap_or(u32::MAX);
        self.frames.push((size(compressed as u64), size(plain)));
    }

    /// Encodes the table; like everything in zstd, it is little-endian.
    pub(super) fn frame(&self) -> Vec<u8> {
        let size = self.frames.len() * 8 + Self::FOOTER;
        let number = |n: usize| u32::try_from(n).unwrap_or(u32::MAX).to_le_bytes();
        let mut out = Vec::with_capacity(size + 8);
        out.extend_from_slice(&Self::SKIPPABLE.to_le_bytes());
        out.extend_from_slice(&number(size));
        for (compressed, plain) in &self.frames {
            out.extend_from_slice(&compressed.to_le_bytes());
            out.extend_from_slice(&plain.to_le_bytes());
        }
        out.extend_from_slice(&number(self.frames.len()));
        // No checksums in the table, since each frame has its own.
        out.push(0);
        out.extend_from_slice(&Self::SEEKABLE.to_le_bytes());
        out
    }
}
