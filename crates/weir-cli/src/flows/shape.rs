//! What a file of flows consists of.

use std::io::{self, Write as _};
use std::mem;

use weir::flows::Flow;
use weir_render::flows::object;
use weir_render::json;
use zstd::stream::write::Encoder;

use super::folder::Format;

/// Makes the bytes of a file.
pub(super) enum Shape {
    Lines(Vec<u8>),
    /// With the lines that are to be compressed.
    Zstd(Box<Encoder<'static, Vec<u8>>>, Vec<u8>),
    Parquet(Box<weir_columns::Encoder>),
}

impl std::fmt::Debug for Shape {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Shape").finish_non_exhaustive()
    }
}

/// Written together.
const BLOCK: usize = 256 << 10;

impl Shape {
    pub(super) fn new(format: Format) -> io::Result<Self> {
        Ok(match format {
            Format::Lines => Self::Lines(Vec::new()),
            Format::Zstd => Self::Zstd(Box::new(Encoder::new(Vec::new(), 3)?), Vec::new()),
            Format::Parquet(columns) => {
                let program = concat!("weir ", env!("CARGO_PKG_VERSION"));
                let encoder = weir_columns::Encoder::new(program, columns).map_err(io::Error::other)?;
                Self::Parquet(Box::new(encoder))
            }
        })
    }

    /// Adds flows. Appends what is to be written by now. `names`: of interfaces, by number.
    pub(super) fn add(&mut self, flows: &[Flow], names: &[String], bytes: &mut Vec<u8>) -> io::Result<()> {
        let interface =
            |flow: &Flow| names.get(usize::from(flow.interface)).map(String::as_str).unwrap_or_default();
        match self {
            Self::Lines(block) => {
                lines(flows, interface, block)?;
                if block.len() >= BLOCK {
                    bytes.append(block);
                }
            }
            Self::Zstd(encoder, text) => {
                text.clear();
                lines(flows, interface, text)?;
                encoder.write_all(text)?;
                bytes.append(encoder.get_mut());
            }
            Self::Parquet(encoder) => encoder.add(flows, names, bytes).map_err(io::Error::other)?,
        }
        Ok(())
    }

    /// Appends the rest.
    pub(super) fn finish(&mut self, bytes: &mut Vec<u8>) -> io::Result<()> {
        match self {
            Self::Lines(block) => bytes.append(block),
            Self::Zstd(encoder, _) => {
                encoder.do_finish()?;
                bytes.append(&mut mem::take(encoder.get_mut()));
            }
            Self::Parquet(encoder) => encoder.finish(bytes).map_err(io::Error::other)?,
        }
        Ok(())
    }
}

fn lines<'a>(flows: &[Flow], interface: impl Fn(&Flow) -> &'a str, text: &mut Vec<u8>) -> io::Result<()> {
    for flow in flows {
        json::to_writer(&mut *text, &object(flow, interface(flow)))?;
        text.push(b'\n');
    }
    Ok(())
}
