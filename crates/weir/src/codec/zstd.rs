//! Zstandard (RFC 8878).

use std::io::{self, Read};

use zstd::bulk::Compressor;
use zstd::stream::read::Decoder;
use zstd::zstd_safe::{CParameter, compress_bound};

use super::{Encode, Packed};

pub(super) fn decoder(packed: Packed) -> io::Result<Box<dyn Read + Send>> {
    Ok(Box::new(Decoder::with_buffer(packed)?))
}

/// Returns a compressor whose frames have a size and a checksum.
pub(super) fn encoder(level: i32) -> io::Result<Encode> {
    let mut compressor = Compressor::new(level)?;
    compressor.set_parameter(CParameter::ChecksumFlag(true))?;
    compressor.set_parameter(CParameter::ContentSizeFlag(true))?;
    Ok(Box::new(move |plain, out| {
        out.reserve(compress_bound(plain.len()));
        compressor.compress_to_buffer(plain, out)?;
        Ok(())
    }))
}
