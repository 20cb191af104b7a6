//! A piece of a file as one compressed frame, and what stands around the frames.

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

    /// Compresses `plain` into one frame (for lz4: into blocks of one), replacing the contents of `out`.
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

/// What stands around the frames of a file.
#[derive(Debug)]
pub(super) enum Around {
    /// gzip: nothing.
    Nothing,
    /// zstd: a table at the end.
    Table(SeekTable),
    /// lz4: the header and the end of the only frame, and whether the header is in the file.
    Ends([&'static [u8]; 2], bool),
}

impl Around {
    pub(super) fn of(compression: Compression) -> Self {
        match compression {
            Compression::Zstd { .. } => Self::Table(SeekTable::default()),
            other => codec::ends(other.kind()).map_or(Self::Nothing, |ends| Self::Ends(ends, false)),
        }
    }

    /// Puts what stands in front of a frame there, and remembers it. `plain`: its size before compression.
    pub(super) fn push(&mut self, frame: &mut Vec<u8>, plain: u64) {
        match self {
            Self::Nothing => {}
            Self::Table(table) => table.push(frame.len(), plain),
            Self::Ends([header, _], begun) => {
                if !std::mem::replace(begun, true) {
                    frame.splice(0..0, header.iter().copied());
                }
            }
        }
    }

    /// What stands behind the last frame.
    pub(super) fn end(&self) -> Option<Vec<u8>> {
        match self {
            Self::Table(table) => Some(table.frame()),
            Self::Ends([_, end], true) => Some(end.to_vec()),
            Self::Nothing | Self::Ends(_, false) => None,
        }
    }

    /// What stands behind a frame that is the last one because the next has failed. A table has no room then.
    pub(super) fn cut(&mut self) -> Option<Vec<u8>> {
        match self {
            Self::Ends([_, end], begun) => std::mem::take(begun).then(|| end.to_vec()),
            Self::Nothing | Self::Table(_) => None,
        }
    }

    /// Forgets the frames behind the first `bytes` of the file, as they are not there.
    pub(super) fn keep(&mut self, bytes: u64) {
        match self {
            Self::Nothing => {}
            Self::Table(table) => table.keep(bytes),
            Self::Ends(_, begun) => *begun &= bytes > 0,
        }
    }

    /// Forgets all frames, as the file has been emptied.
    pub(super) fn clear(&mut self) {
        match self {
            Self::Nothing => {}
            Self::Table(table) => *table = SeekTable::default(),
            Self::Ends(_, begun) => *begun = false,
        }
    }
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

    fn keep(&mut self, bytes: u64) {
        let mut end = 0;
        let within = |(compressed, _): &&(u32, u32)| {
            end += u64::from(*compressed);
            end <= bytes
        };
        let frames = self.frames.iter().take_while(within).count();
        self.frames.truncate(frames);
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
