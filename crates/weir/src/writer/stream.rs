//! Pipes, terminals, devices, and standard output, whatever it is. One write at a time, in order, at the current
//! position. Where writing does not wait, as with a FIFO, requests wait here for their reader.

use std::collections::VecDeque;
use std::fs::File;
use std::io::{self, Seek as _, SeekFrom, Write as _};
use std::time::Duration;

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;

use super::write_request::WriteRequest;
use super::{Format, Output, Written};

/// Most requests that wait for their reader unless whoever writes [asks](Output::is_behind) before: as many as compression
/// may give at once, and some more.
const MOST: usize = 16;

pub(super) struct Stream {
    file: File,
    /// Standard output may be a regular file, where a partial record can be removed.
    regular: bool,
    format: Format,
    written: Written,
    /// Requests that are not written completely.
    waiting: VecDeque<WriteRequest>,
    /// Bytes written of the first of them.
    at: usize,
    spare: Option<Vec<u8>>,
}

impl Stream {
    pub(super) fn new(file: File, format: Format) -> io::Result<Self> {
        let regular = file.metadata()?.is_file();
        let (written, waiting) = (Written::default(), VecDeque::new());
        Ok(Self { file, regular, format, written, waiting, at: 0, spare: None })
    }

    /// Writes until everything is written, or the next write would wait.
    fn advance(&mut self) -> io::Result<()> {
        while let Some(mut request) = self.waiting.pop_front() {
            let outcome = match self.write(request.data.as_ref()) {
                Ok(true) => request.complete(),
                Ok(false) => {
                    self.waiting.push_front(request);
                    return Ok(());
                }
                Err(error) => request.cut(self.at, error, self.format),
            };
            self.written.add(&outcome);
            self.spare = request.into_buffer().or_else(|| self.spare.take());
            let at = std::mem::take(&mut self.at);
            let Some(error) = outcome.error else { continue };
            self.waiting.clear();
            if self.regular {
                // The error of the write says more than one from truncating could.
                let _ = self.take_back(at as u64 - outcome.bytes);
            }
            return Err(error);
        }
        Ok(())
    }

    /// Writes the rest of a request. Returns `false` if that would wait.
    fn write(&mut self, bytes: &[u8]) -> io::Result<bool> {
        while self.at < bytes.len() {
            match self.file.write(&bytes[self.at..]) {
                Ok(0) => return Err(io::ErrorKind::WriteZero.into()),
                Ok(written) => self.at += written,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(false),
                Err(error) => return Err(error),
            }
        }
        Ok(true)
    }

    /// Waits until the reader has room, or until a signal. `longest`: at most so long.
    fn wait(&self, longest: Option<Duration>) -> io::Result<()> {
        let longest = longest.and_then(|longest| Timespec::try_from(longest).ok());
        match poll(&mut [PollFd::new(&self.file, PollFlags::OUT)], longest.as_ref()) {
            Ok(_) | Err(Errno::INTR) => Ok(()),
            Err(error) => Err(error.into()),
        }
    }

    /// Waits until no more than `most` requests wait.
    fn wait_for(&mut self, most: usize) -> io::Result<()> {
        self.advance()?;
        while self.waiting.len() > most {
            self.wait(None)?;
            self.advance()?;
        }
        Ok(())
    }

    /// Removes the last `bytes`, unless someone else has written after them.
    fn take_back(&mut self, bytes: u64) -> io::Result<()> {
        let end = self.file.stream_position()?;
        if bytes > 0 && end == self.file.metadata()?.len() {
            self.file.set_len(end - bytes)?;
            self.file.seek(SeekFrom::Start(end - bytes))?;
        }
        Ok(())
    }
}

impl Output for Stream {
    fn put(&mut self, request: WriteRequest) -> io::Result<()> {
        self.waiting.push_back(request);
        self.wait_for(MOST)
    }

    fn settle(&mut self) -> io::Result<()> {
        self.wait_for(0)
    }

    fn settle_within(&mut self, longest: Duration) -> io::Result<()> {
        self.advance()?;
        if !self.waiting.is_empty() && !longest.is_zero() {
            self.wait(Some(longest))?;
            self.advance()?;
        }
        Ok(())
    }

    fn is_behind(&self) -> bool {
        !self.waiting.is_empty()
    }

    fn written(&self) -> &Written {
        &self.written
    }

    fn buffer(&mut self) -> Vec<u8> {
        self.spare.take().unwrap_or_default()
    }
}

impl Drop for Stream {
    fn drop(&mut self) {
        let _ = self.settle();
    }
}
