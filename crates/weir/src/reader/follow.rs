//! A file that somebody is still writing.

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

/// Reads a file to its end, and then what is added.
///
/// weir writes several pieces at a time, so that a later one may be there before an earlier one. Where whole pages are
/// missing, the file has a hole, before which reading stops. Less is noticed by whoever decodes the bytes, who reads
/// [again](Stream::again).
pub(super) struct Follow {
    file: File,
    position: u64,
    /// Asked at the end of the file: whether more may come.
    goes_on: Box<dyn FnMut() -> bool + Send>,
    /// Looks in a row at bytes that cannot be decoded.
    looks: u32,
}

/// Most looks at bytes that cannot be decoded: two seconds.
const MOST_LOOKS: u32 = 40;

impl Follow {
    pub(super) fn new(file: File, goes_on: Box<dyn FnMut() -> bool + Send>) -> Self {
        Self { file, position: 0, goes_on, looks: 0 }
    }

    /// Reads what there is.
    fn look(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let there = self.there()?;
        let most = usize::try_from(there).unwrap_or(usize::MAX).min(buffer.len());
        let bytes = self.file.read_at(&mut buffer[..most], self.position)?;
        self.position += bytes as u64;
        Ok(bytes)
    }

    /// Returns the number of bytes to read before the end or a hole.
    fn there(&self) -> io::Result<u64> {
        let size = self.file.metadata()?.len();
        if size < self.position {
            return Err(io::Error::other("the file was truncated while it was read"));
        }
        // The end of the file counts as a hole. Not every file system knows holes.
        let hole = match seek(&self.file, SeekFrom::Hole(self.position)) {
            Ok(hole) => hole,
            Err(Errno::NXIO) => self.position,
            Err(_) => size,
        };
        Ok(hole.min(size).saturating_sub(self.position))
    }
}

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
        self.there().is_ok_and(|bytes| bytes == 0)
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
