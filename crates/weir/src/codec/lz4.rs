//! The lz4 frame format. A file is one frame of independent blocks: Wireshark 4.0 finds no frame that begins behind the first
//! 128 KiB of a file.

use std::io::{self, Read, Write as _};

use lz4_flex::frame::{self, BlockMode, BlockSize, FrameEncoder, FrameInfo};

use super::Packed;

/// A decoder of all frames, except skippable ones.
struct Decoder {
    /// One for each frame: it does not take a frame whose blocks are of another size than those of the frame before. Always `Some`
    /// between calls.
    frame: Option<frame::FrameDecoder<Metered>>,
    /// The end of the last frame, in bytes of the input.
    boundary: u64,
}

/// Notices the end of the input, which the decoder mistakes for the end of a frame.
struct Metered {
    input: Packed,
    taken: u64,
    ended: bool,
}

impl Read for Metered {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let bytes = self.input.read(buffer)?;
        self.taken += bytes as u64;
        self.ended = bytes == 0;
        Ok(bytes)
    }
}

pub(super) fn decoder(packed: Packed) -> io::Result<Box<dyn Read + Send>> {
    let input = Metered { input: packed, taken: 0, ended: false };
    Ok(Box::new(Decoder { frame: Some(frame::FrameDecoder::new(input)), boundary: 0 }))
}

impl Read for Decoder {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        if buffer.is_empty() {
            return Ok(0);
        }
        while let Some(frame) = &mut self.frame {
            let skip = match frame.read(buffer) {
                Ok(0) => 0,
                Ok(bytes) => return Ok(bytes),
                Err(error) => to_skip(&error).ok_or(error)?,
            };
            let input = frame.get_mut();
            let skipped = io::copy(&mut input.take(skip), &mut io::sink())?;
            if skipped < skip || (skip == 0 && input.ended && input.taken > self.boundary) {
                return Err(io::ErrorKind::UnexpectedEof.into());
            }
            if skip == 0 && input.ended {
                break;
            }
            self.boundary = input.taken;
            self.frame = self.frame.take().map(|frame| frame::FrameDecoder::new(frame.into_inner()));
        }
        Ok(0)
    }
}

/// Returns the length of a skippable frame whose header the decoder has read.
fn to_skip(error: &io::Error) -> Option<u64> {
    match error.get_ref()?.downcast_ref::<frame::Error>()? {
        frame::Error::SkippableFrame(length) => Some(u64::from(*length)),
        _ => None,
    }
}

/// The header of a frame: magic number; version 1, independent blocks with checksums; blocks of at most 1 MiB; a checksum.
pub(super) const HEADER: [u8; 7] = [0x04, 0x22, 0x4d, 0x18, 0x70, 0x60, 0x33];
/// The end of a frame: a block without bytes.
pub(super) const END: [u8; 4] = [0; 4];

/// Compresses bytes into blocks that can be anywhere in a frame with this header.
pub(super) fn encode(plain: &[u8], out: &mut Vec<u8>) -> io::Result<()> {
    let info = FrameInfo::new()
        .block_checksums(true)
        .block_mode(BlockMode::Independent)
        .block_size(BlockSize::Max1MB);
    let mut encoder = FrameEncoder::with_frame_info(info, &mut *out);
    encoder.write_all(plain)?;
    encoder.finish().map_err(io::Error::other)?;
    debug_assert!(plain.is_empty() || (out.starts_with(&HEADER) && out.ends_with(&END)));
    out.truncate(out.len().saturating_sub(END.len()));
    out.drain(..HEADER.len().min(out.len()));
    Ok(())
}
