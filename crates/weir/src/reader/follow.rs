//! A file that somebody is still writing.

use std::fmt;
use std::fs::File;
use std::io::{self, Read};
use std::os::unix::fs::FileExt as _;
use std::thread;
use std::time::Duration;

use rustix::fs::{SeekFrom, seek};
use rustix::io::Errno;

use super::stream::Stream;

/// Time between looks at the end of the file.
const PERIOD: Duration = Duration::from_millis(50);

/// So many bytes at the beginning tell one capture from another: header and first packet, with its time.
const HEAD: usize = 1024;

/// Reads a file to its end, and then what is added.
///
/// weir writes several pieces at a time, so that a later one may be there before an earlier one. Where whole pages are
/// missing, the file has a hole, before which reading stops. Less is noticed by whoever decodes the bytes, who reads
/// [again](Stream::again).
///
/// Others, such as tcpdump in a ring, begin a file anew in its place. The beginning of the file shows it, even if the file
/// has grown beyond the position by then.
pub(super) struct Follow {
    file: File,
    position: u64,
    /// The size when it was looked at last.
    size: u64,
    /// The beginning of the file, as far as it has been read, up to [`HEAD`] bytes.
    head: Vec<u8>,
    /// Asked at the end of the file: whether more may come.
    goes_on: Box<dyn FnMut() -> bool + Send>,
    /// Looks in a row at bytes that cannot be decoded.
    looks: u32,
}

/// Most looks at bytes that cannot be decoded: two seconds.
const MOST_LOOKS: u32 = 40;

impl Follow {
    pub(super) fn new(file: File, goes_on: Box<dyn FnMut() -> bool + Send>) -> Self {
        Self { file, position: 0, size: 0, head: Vec::new(), goes_on, looks: 0 }
    }

    /// Reads what there is.
    fn look(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let size = self.file.metadata()?.len();
        let there = if size < self.position { 0 } else { self.there(size) };
        let most = usize::try_from(there).unwrap_or(usize::MAX).min(buffer.len());
        let bytes = self.file.read_at(&mut buffer[..most], self.position)?;
        // Looked at afterwards: what was read before the file began anew is still of the old one.
        if size < self.position || !self.has_its_head()? {
            let unread = self.size.saturating_sub(self.position);
            return Err(io::Error::other(Overwritten { unread }));
        }
        self.size = size;
        let here = usize::try_from(self.position).unwrap_or(usize::MAX);
        if here <= self.head.len() {
            let new = buffer[..bytes].iter().skip(self.head.len() - here);
            self.head.extend(new.take(HEAD - self.head.len()));
        }
        self.position += bytes as u64;
        Ok(bytes)
    }

    /// Returns whether the file begins as it did. What was zero may have come late.
    fn has_its_head(&self) -> io::Result<bool> {
        let mut head = [0; HEAD];
        let head = &mut head[..self.head.len()];
        match self.file.read_exact_at(head, 0) {
            Ok(()) => Ok(self.head.iter().zip(head).all(|(old, new)| old == new || *old == 0)),
            Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => Ok(false),
            Err(error) => Err(error),
        }
    }

    /// Returns the number of bytes to read before the end or a hole.
    fn there(&self, size: u64) -> u64 {
        // The end of the file counts as a hole. Not every file system knows holes.
        let hole = match seek(&self.file, SeekFrom::Hole(self.position)) {
            Ok(hole) => hole,
            Err(Errno::NXIO) => self.position,
            Err(_) => size,
        };
        hole.min(size).saturating_sub(self.position)
    }
}

/// The file was begun anew while it was read.
#[derive(Debug)]
pub(super) struct Overwritten {
    /// Bytes that were seen to be there and are gone unread. There may have been more.
    pub(super) unread: u64,
}

impl fmt::Display for Overwritten {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the file was begun anew while it was read")
    }
}

impl std::error::Error for Overwritten {}

impl Read for Follow {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        loop {
            let bytes = self.look(buffer)?;
            if bytes > 0 || buffer.is_empty() {
                return Ok(bytes);
            }
            if !(self.goes_on)() {
                // Something may have been added meanwhile.
                return self.look(buffer);
            }
            thread::sleep(PERIOD);
        }
    }
}

impl Stream for Follow {
    fn would_wait(&mut self) -> bool {
        self.file.metadata().is_ok_and(|file| file.len() >= self.position && self.there(file.len()) == 0)
    }

    fn again(&mut self, unused: usize, progress: bool) -> bool {
        self.looks = if progress { 1 } else { self.looks + 1 };
        if self.looks > MOST_LOOKS {
            return false;
        }
        self.position = self.position.saturating_sub(unused as u64);
        thread::sleep(PERIOD);
        true
    }
}
