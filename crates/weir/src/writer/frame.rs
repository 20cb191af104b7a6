//! A piece of a file as one compressed frame, and the table of zstd frames.

use std::io;

use super::Compression;
use crate::codec;

/// Maximum size of a frame before compression, in bytes: a reader has to decompress this much to find one packet.
pub(super) const LARGEST: usize = 4 << 20;

/// A compressor; each thread has its own.
pub(super) struct Codec(codec::Encode);

impl Codec {
    /// `None`: no compression.
    pub(super) fn new(compression: Compression) -> io::Result<Option<Self>> {
        let level = if let Compression::Zstd { level } = compression { level } else { 0 };
        Ok(codec::encoder(compression.kind(), level)?.map(Self))
    }

    /// Compresses `plain` into one frame, replacing the contents of `out`.
    pub(super) fn frame(&mut self, plain: &[u8], out: &mut Vec<u8>) -> io::Result<()> {
        out.clear();
        #[cfg(test)]
        assert!(!is_poison(plain), "a test has this thread die");
        (self.0)(plain, out)
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
