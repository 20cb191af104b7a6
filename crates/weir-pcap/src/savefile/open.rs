//! Opening files.

use std::ffi::{CStr, c_int};
use std::fs;
use std::io;

use super::bytes::Bytes;
use super::classic::Classic;
use super::ng::Ng;
use super::{Format, Savefile, short};
use crate::stdio::{File, text_of};

/// Bytes of stdio's buffer for a pipe.
const PIPE_BUFFER: usize = 64 << 10;

/// Opens a file; `-` is standard input.
pub(crate) fn open(name: &CStr, precision: c_int) -> Result<(Savefile, c_int), String> {
    if name == c"-" {
        let file = File::standard_input().ok_or("The standard input is not open")?;
        return read(Bytes::exactly(file), file, false, precision);
    }
    let failed = |error: io::Error| format!("{}: {}", name.to_string_lossy(), text_of(&error));
    let file = File::open(name, c"rb").map_err(failed)?;
    let opened = bytes(file).map_err(failed);
    let opened = opened.and_then(|(bytes, shareable)| read(bytes, file, shareable, precision));
    opened.inspect_err(|_| file.close())
}

/// Returns the bytes of a file that only this library uses, and whether the program can read them from `file`.
fn bytes(file: File) -> io::Result<(Bytes, bool)> {
    let input = fs::File::from(file.duplicate()?);
    if !input.metadata()?.is_file() {
        file.set_buffer(PIPE_BUFFER);
        return Ok((Bytes::exactly(file), false));
    }
    Ok(match weir::parts::unpacked(&input)? {
        Some(unpacked) => (Bytes::ahead(unpacked), false),
        None => (Bytes::ahead(Box::new(Direct(input))), true),
    })
}

/// A file that is read by system calls and not by C's functions. Those are cancellation points, and a signal that
/// cancels the thread asynchronously, sent before cancellation was held back, still acts in them (glibc 2.36).
struct Direct(fs::File);

impl io::Read for Direct {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        Ok(rustix::io::read(&self.0, buffer)?)
    }
}

/// Reads a file that the program has opened.
pub(crate) fn given(file: File, precision: c_int) -> Result<(Savefile, c_int), String> {
    read(Bytes::exactly(file), file, false, precision)
}

/// Reads the beginning of a file. If it fails, the file is still open.
fn read(
    mut bytes: Bytes,
    file: File,
    shareable: bool,
    precision: c_int,
) -> Result<(Savefile, c_int), String> {
    let magic = bytes.take(4);
    let Ok(magic) = <[u8; 4]>::try_from(&*magic) else {
        let got = magic.len();
        return Err(short(&bytes, || {
            format!("truncated dump file; tried to read 4 file header bytes, only got {got}")
        }));
    };
    let mut buffer = 0;
    let (format, begin) = if let Some((classic, begin)) = Classic::begin(magic, &mut bytes, precision)? {
        buffer = Classic::buffer(&begin);
        (Format::Classic(classic), begin)
    } else if let Some((ng, begin)) = Ng::begin(magic, &mut bytes, precision, &mut buffer)? {
        (Format::Ng(ng), begin)
    } else {
        return Err("unknown file format".to_owned());
    };
    Ok((Savefile { bytes, format, file, shareable, begin, buffer }, precision))
}
