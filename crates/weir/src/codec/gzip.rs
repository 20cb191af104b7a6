//! gzip (RFC 1952).

use std::io::{self, BufRead as _, Read, Write as _};

use flate2::bufread::GzDecoder;
use flate2::write::GzEncoder;

use super::Packed;

/// A decoder of all members. Zeros after the last one, which pad tapes, are ignored.
struct Decoder {
    /// `None`: at the end.
    member: Option<GzDecoder<Packed>>,
}

pub(super) fn decoder(packed: Packed) -> io::Result<Box<dyn Read + Send>> {
    Ok(Box::new(Decoder { member: Some(GzDecoder::new(packed)) }))
}

impl Read for Decoder {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        while let Some(member) = &mut self.member {
            let bytes = member.read(buffer)?;
            if bytes > 0 || buffer.is_empty() {
                return Ok(bytes);
            }
            self.member = self
                .member
                .take()
                .and_then(|member| next_member(member.into_inner()).transpose())
                .transpose()?;
        }
        Ok(0)
    }
}

fn next_member(mut packed: Packed) -> io::Result<Option<GzDecoder<Packed>>> {
    loop {
        let bytes = packed.fill_buf()?;
        if bytes.is_empty() {
            return Ok(None);
        }
        let zeros = bytes.iter().take_while(|byte| **byte == 0).count();
        let all = zeros == bytes.len();
        packed.consume(zeros);
        if !all {
            return Ok(Some(GzDecoder::new(packed)));
        }
    }
}

/// Files as small as those of `gzip -1`; level 1 makes them 6 to 30 % larger, and does not compress short headers between random
/// payloads at all.
const LEVEL: u32 = 2;

/// Compresses bytes into one member.
pub(super) fn encode(plain: &[u8], out: &mut Vec<u8>) -> io::Result<()> {
    let mut encoder = GzEncoder::new(out, flate2::Compression::new(LEVEL));
    encoder.write_all(plain)?;
    encoder.finish()?;
    Ok(())
}
