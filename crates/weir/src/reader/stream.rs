//! Streams of bytes that can tell whether reading would wait.

use std::fs::File;
use std::io::{self, Read};

use rustix::event::{PollFd, PollFlags, Timespec, poll};

/// Bytes that may still have to arrive.
pub(super) trait Stream: Read + Send {
    /// Returns whether reading would wait for somebody to write, as far as can be told.
    fn would_wait(&mut self) -> bool {
        false
    }

    /// Steps back by the last `unused` bytes, which cannot be decoded, because they may have changed meanwhile.
    /// `progress`: something before them was decoded since the last call. Returns whether it is worth reading them again.
    fn again(&mut self, _unused: usize, _progress: bool) -> bool {
        false
    }
}

impl Stream for File {
    fn would_wait(&mut self) -> bool {
        let mut fds = [PollFd::new(self, PollFlags::IN)];
        // Regular files are always ready, at their end, too.
        poll(&mut fds, Some(&Timespec::default())).is_ok_and(|ready| ready == 0)
    }
}

/// Any bytes. Nothing is known about when they arrive.
pub(super) struct Any<R>(pub(super) R);

impl<R: Read> Read for Any<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        self.0.read(buffer)
    }
}

impl<R: Read + Send> Stream for Any<R> {}
