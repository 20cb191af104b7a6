//! From a path to the uncompressed bytes of a capture.

use std::fs::{File, Metadata};
#[cfg(feature = "live")]
use std::io::Seek as _;
use std::io::{self, BufReader, Cursor, Read};
use std::os::fd::AsFd as _;
use std::os::unix::fs::{FileExt as _, MetadataExt as _};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use rustix::io::Errno;

use super::follow::Overwritten;
use super::stream::{Any, Stream};
use super::{CompressionKind, Meter, ReadReason, unpack};
use crate::codec;

/// The source of a capture's bytes.
pub(super) struct Input {
    /// The uncompressed bytes.
    pub(super) bytes: Box<dyn Stream>,
    pub(super) compression: CompressionKind,
    /// Counts the bytes of the file itself.
    pub(super) meter: Meter,
}

/// Opens a path, or standard input for `-`. Returns the name for errors, and the size of a regular file.
pub(super) fn open(path: &Path) -> (String, Result<(File, Option<u64>), ReadReason>) {
    let failed = |source| ReadReason::Open(Arc::new(source));
    if path == Path::new("-") {
        let file = io::stdin().as_fd().try_clone_to_owned().map(File::from);
        return ("standard input".to_owned(), file.map_err(failed).map(sized));
    }
    let name = path.display().to_string();
    let file = File::open(path).map_err(failed).and_then(|file| match file.metadata() {
        Ok(metadata) if metadata.is_dir() => Err(ReadReason::Directory),
        Ok(_) => Ok(sized(file)),
        Err(error) => Err(failed(error)),
    });
    (name, file)
}

/// Opens a regular file that is read while somebody writes it.
pub(super) fn open_to_follow(path: &Path) -> (String, Result<File, ReadReason>) {
    let (name, opened) = open(path);
    let opened = opened.and_then(|(file, size)| match size {
        Some(_) => Ok(file),
        None => Err(ReadReason::Open(Arc::new(io::Error::other("only a regular file can be followed")))),
    });
    (name, opened)
}

/// A file that is only open while a piece of it is read, so that it rarely takes a descriptor.
pub(super) struct Sparing {
    path: PathBuf,
    /// Device and inode.
    file: (u64, u64),
    position: u64,
}

impl Sparing {
    /// `None`: the file is not a regular file, so it cannot be reopened at a position.
    pub(super) fn new(path: &Path, opened: &File) -> Option<Self> {
        let there = opened.metadata().ok().filter(Metadata::is_file)?;
        let named = path != Path::new("-");
        named.then(|| Self { path: path.to_owned(), file: (there.dev(), there.ino()), position: 0 })
    }
}

impl Stream for Sparing {}

impl Read for Sparing {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let file = File::open(&self.path)?;
        let there = file.metadata()?;
        if (there.dev(), there.ino()) != self.file {
            return Err(io::Error::from_raw_os_error(Errno::STALE.raw_os_error()));
        }
        let bytes = file.read_at(buffer, self.position)?;
        self.position += bytes as u64;
        Ok(bytes)
    }
}

fn sized(file: File) -> (File, Option<u64>) {
    let size = file.metadata().ok().filter(Metadata::is_file).map(|metadata| metadata.len());
    (file, size)
}

/// Identifies the compression by the first bytes and adds a decoder. `ahead`: the decoder may use a thread.
pub(super) fn sniff(input: Box<dyn Stream>, ahead: bool) -> Result<Input, ReadReason> {
    let meter = Meter::new();
    let mut input = Counted { input, meter: meter.clone() };
    let failed = |error| explain(CompressionKind::None, error);
    let first = up_to(&mut input, 4).map_err(failed)?;
    if first.is_empty() {
        return Err(ReadReason::Empty);
    }
    let mut magic = first.clone();
    let mut front = first;
    // Both zstd and lz4 files may begin with skippable frames; only what follows tells them apart.
    while let Some(length) = skippable(&magic, &mut input, &mut front).map_err(failed)? {
        let skipped = io::copy(&mut (&mut input).take(length), &mut io::sink()).map_err(failed)?;
        magic = up_to(&mut input, 4).map_err(failed)?;
        if skipped < length || magic.len() < 4 {
            return Err(ReadReason::CompressedCut(CompressionKind::Zstd));
        }
        front.clone_from(&magic);
    }
    let whole = Whole { front: Cursor::new(front), rest: input };
    let compression = match magic[..] {
        [0x1f, 0x8b, ..] => CompressionKind::Gzip,
        [0x28, 0xb5, 0x2f, 0xfd] => CompressionKind::Zstd,
        [0x04, 0x22, 0x4d, 0x18] => CompressionKind::Lz4,
        _ => {
            return Ok(Input { bytes: Box::new(whole), compression: CompressionKind::None, meter });
        }
    };
    let packed = BufReader::with_capacity(128 << 10, whole);
    let decode = codec::decoder(compression).ok_or(ReadReason::NoCodec(compression))?;
    let bytes = decode(Box::new(packed)).map_err(failed)?;
    Ok(Input { bytes: if ahead { unpack::ahead(bytes) } else { Box::new(Any(bytes)) }, compression, meter })
}

/// See [`crate::parts::unpacked`].
#[cfg(feature = "live")]
pub(crate) fn unpacked(mut file: &File) -> io::Result<Option<Box<dyn Read + Send>>> {
    let found: Option<Box<dyn Read + Send>> = match sniff(Box::new(file.try_clone()?), false) {
        Ok(input) if input.compression != CompressionKind::None => Some(Box::new(input.bytes)),
        Ok(_) | Err(ReadReason::Empty) => None,
        // Whoever reads the file meets it again.
        Err(ReadReason::Io(error)) if error.raw_os_error().is_some() => None,
        Err(reason) => return Err(io::Error::other(reason)),
    };
    if found.is_none() {
        file.rewind()?;
    }
    Ok(found)
}

/// Returns the length of a skippable frame with this magic number, up to whose content the input is read; `front`
/// collects the bytes read.
fn skippable(magic: &[u8], input: &mut Counted, front: &mut Vec<u8>) -> io::Result<Option<u64>> {
    let [0x50..=0x5f, 0x2a, 0x4d, 0x18] = *magic else { return Ok(None) };
    let length = up_to(input, 4)?;
    front.extend_from_slice(&length);
    Ok(length[..].try_into().ok().map(|length| u64::from(u32::from_le_bytes(length))))
}

/// Reads the next bytes, or fewer at the end.
fn up_to(input: &mut Counted, bytes: u64) -> io::Result<Vec<u8>> {
    let mut found = Vec::new();
    input.take(bytes).read_to_end(&mut found)?;
    Ok(found)
}

/// Converts an error of [`Input::bytes`].
pub(super) fn explain(compression: CompressionKind, error: io::Error) -> ReadReason {
    if let Some(Overwritten { unread }) = error.get_ref().and_then(|error| error.downcast_ref()) {
        return ReadReason::Overwritten { unread: *unread };
    }
    // Errors from the system have a number; errors from decoders do not.
    if compression == CompressionKind::None || error.raw_os_error().is_some() {
        return ReadReason::Io(Arc::new(error));
    }
    match error.kind() {
        io::ErrorKind::UnexpectedEof => ReadReason::CompressedCut(compression),
        _ => ReadReason::CompressedDamaged { compression, source: Arc::new(error) },
    }
}

/// Bytes read to recognize the format, and the rest.
struct Whole {
    front: Cursor<Vec<u8>>,
    rest: Counted,
}

impl Read for Whole {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        match self.front.read(buffer)? {
            0 => self.rest.read(buffer),
            bytes => Ok(bytes),
        }
    }
}

impl Stream for Whole {
    fn would_wait(&mut self) -> bool {
        self.front.position() == self.front.get_ref().len() as u64 && self.rest.input.would_wait()
    }

    fn again(&mut self, unused: usize, progress: bool) -> bool {
        self.rest.input.again(unused, progress)
    }
}

/// A reader that counts bytes.
struct Counted {
    input: Box<dyn Stream>,
    meter: Meter,
}

impl Read for Counted {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let bytes = self.input.read(buffer)?;
        self.meter.take(bytes);
        Ok(bytes)
    }
}
