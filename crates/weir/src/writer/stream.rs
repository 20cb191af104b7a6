//! Pipes, terminals, devices, and standard output, whatever it is. One write at a time, in order, at the current
//! position.

use std::fs::File;
use std::io::{self, Seek as _, SeekFrom, Write as _};

use rustix::event::{PollFd, PollFlags, poll};

use super::piece::{Piece, write_all};
use super::{Format, Output, Written};

pub(super) struct Stream {
    file: File,
    /// Standard output may be a regular file, where a partial record can be removed.
    regular: bool,
    format: Format,
    written: Written,
    spare: Option<Vec<u8>>,
}

impl Stream {
    pub(super) fn new(file: File, format: Format) -> io::Result<Self> {
        let regular = file.metadata()?.is_file();
        Ok(Self { file, regular, format, written: Written::default(), spare: None })
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
    fn put(&mut self, mut piece: Piece) -> io::Result<()> {
        let file = &mut self.file;
        let (arrived, result) = write_all(piece.load.as_ref(), |rest, _| match file.write(rest) {
            // The process that started us may have made the pipe non-blocking.
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                poll(&mut [PollFd::new(file, PollFlags::OUT)], None)?;
                Err(io::ErrorKind::Interrupted.into())
            }
            result => result,
        });
        let outcome = match result {
            Ok(()) => piece.complete(),
            Err(error) => piece.cut(arrived, error, self.format),
        };
        self.written.add(&outcome);
        self.spare = piece.into_buffer().or_else(|| self.spare.take());
        let Some(error) = outcome.error else {
            return Ok(());
        };
        if self.regular {
            // The error of the write says more than one from truncating could.
            let _ = self.take_back(arrived as u64 - outcome.bytes);
        }
        Err(error)
    }

    fn settle(&mut self) -> io::Result<()> {
        Ok(())
    }

    fn written(&self) -> &Written {
        &self.written
    }

    fn buffer(&mut self) -> Vec<u8> {
        self.spare.take().unwrap_or_default()
    }
}
