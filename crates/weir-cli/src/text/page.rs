//! Buffered text for standard output.

use std::collections::VecDeque;
use std::io::{self, IsTerminal as _};
use std::os::fd::AsFd;

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fs::{FileType, Stat, fstat};
use rustix::io::{Errno, retry_on_intr, write};

/// Size in bytes at which the text is written, if nothing has asked for it earlier.
const FULL: usize = 64 << 10;

/// A pipe that poll(2) calls writable takes so many bytes without waiting (`PIPE_BUF`, pipe(7)).
const AT_ONCE: usize = 4096;

/// Time between questions whether to go on waiting for a slow reader.
const PERIOD: Timespec = Timespec { tv_sec: 0, tv_nsec: 50_000_000 };

/// Text that is not written yet. It goes out when there is much of it, and whenever nothing more is waiting.
#[derive(Debug)]
pub(crate) struct Page {
    pub(crate) text: Vec<u8>,
    /// Where the text of a packet ends, for each packet.
    ends: VecDeque<usize>,
    /// Whether standard output may make its writer wait.
    may_wait: bool,
}

/// What has been written.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Progress {
    pub(crate) bytes: u64,
    /// Packets whose text is complete.
    pub(crate) packets: u64,
}

impl Page {
    pub(crate) fn new() -> Self {
        let is_pipe =
            |there: Stat| matches!(FileType::from_raw_mode(there.st_mode), FileType::Fifo | FileType::Socket);
        let may_wait = io::stdout().is_terminal() || fstat(io::stdout()).is_ok_and(is_pipe);
        Self { text: Vec::with_capacity(FULL + 4096), ends: VecDeque::new(), may_wait }
    }

    /// Ends the text of a packet.
    #[inline]
    pub(crate) fn end_packet(&mut self) {
        self.ends.push_back(self.text.len());
    }

    /// Returns whether it is time to write. To be asked between packets.
    #[inline]
    pub(crate) fn is_full(&self) -> bool {
        self.text.len() >= FULL
    }

    /// Writes everything.
    pub(crate) fn flush(&mut self) -> io::Result<()> {
        self.write(|| true, |_| ()).map(|_| ())
    }

    /// Writes everything, unless standard output makes it wait and `goes_on` returns false: then it returns `false`, and
    /// the rest is dropped. `progress` is told after each piece.
    pub(crate) fn write(
        &mut self,
        goes_on: impl Fn() -> bool,
        progress: impl Fn(Progress),
    ) -> io::Result<bool> {
        let result = self.write_to(io::stdout().as_fd(), goes_on, progress);
        self.text.clear();
        self.ends.clear();
        result
    }

    fn write_to(
        &mut self,
        output: impl AsFd,
        goes_on: impl Fn() -> bool,
        progress: impl Fn(Progress),
    ) -> io::Result<bool> {
        let mut at = 0;
        while at < self.text.len() {
            let rest = &self.text[at..];
            let piece = if self.may_wait { &rest[..rest.len().min(AT_ONCE)] } else { rest };
            if self.may_wait && !is_writable(&output)? {
                if !goes_on() {
                    return Ok(false);
                }
                continue;
            }
            let written = match retry_on_intr(|| write(&output, piece)) {
                Ok(0) => return Err(io::ErrorKind::WriteZero.into()),
                Ok(written) => written,
                // The output is in non-blocking mode.
                Err(Errno::AGAIN) => {
                    if !is_writable(&output)? && !goes_on() {
                        return Ok(false);
                    }
                    continue;
                }
                Err(error) => return Err(error.into()),
            };
            at += written;
            let mut packets = 0;
            while self.ends.front().is_some_and(|end| *end <= at) {
                self.ends.pop_front();
                packets += 1;
            }
            progress(Progress { bytes: written as u64, packets });
        }
        Ok(true)
    }
}

/// Waits for a moment until the output takes something. Errors of the output are left to write(2).
fn is_writable(output: &impl AsFd) -> io::Result<bool> {
    let mut outputs = [PollFd::new(output, PollFlags::OUT)];
    match poll(&mut outputs, Some(&PERIOD)) {
        Ok(ready) => Ok(ready > 0),
        Err(Errno::INTR) => Ok(false),
        Err(error) => Err(error.into()),
    }
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;
    use std::io::Read as _;

    use rustix::pipe::pipe;

    use super::*;

    #[test]
    fn what_a_stuck_pipe_took_is_counted_to_the_packet() {
        a_stuck_pipe_is_counted_to_the_packet(true);
        a_stuck_pipe_is_counted_to_the_packet(false);
    }

    /// `may_wait`: false for a device in non-blocking mode, of which nobody is asked whether it makes its writer wait.
    fn a_stuck_pipe_is_counted_to_the_packet(may_wait: bool) {
        let (reader, writer) = pipe().expect("a pipe");
        rustix::io::ioctl_fionbio(&writer, !may_wait).expect("a mode");
        let mut page = Page { text: Vec::new(), ends: VecDeque::new(), may_wait };
        // A pipe holds 64 KiB.
        for _ in 0..1000 {
            page.text.extend([b'a'; 100]);
            page.end_packet();
        }
        let (bytes, packets) = (Cell::new(0), Cell::new(0));
        let whole = page.write_to(
            &writer,
            || false,
            |progress| {
                bytes.set(bytes.get() + progress.bytes);
                packets.set(packets.get() + progress.packets);
            },
        );
        assert!(!whole.expect("no error"));
        drop(writer);
        let mut text = Vec::new();
        std::fs::File::from(reader).read_to_end(&mut text).expect("text");
        assert_eq!((bytes.get(), packets.get()), (text.len() as u64, text.len() as u64 / 100));
        assert!(text.len() >= 60_000, "{}", text.len());
    }

    /// A page of a thousand packets, written to `output`: how that ended, and what was told on the way.
    fn written(output: impl AsFd, may_wait: bool) -> (io::Result<bool>, u64, u64) {
        let mut page = Page { text: Vec::new(), ends: VecDeque::new(), may_wait };
        for number in 0..1000_u32 {
            page.text.extend(format!("{number:0>99}\n").bytes());
            page.end_packet();
        }
        let (bytes, packets) = (Cell::new(0), Cell::new(0));
        let result = page.write_to(
            output,
            || true,
            |progress| {
                bytes.set(bytes.get() + progress.bytes);
                packets.set(packets.get() + progress.packets);
            },
        );
        (result, bytes.get(), packets.get())
    }

    /// Short writes, and writes that would wait, which the reader decides.
    #[test]
    fn a_slow_reader_gets_everything_once_whether_the_output_blocks_or_not() {
        for (blocks, may_wait) in [(true, true), (true, false), (false, true), (false, false)] {
            let (reader, writer) = pipe().expect("a pipe");
            rustix::io::ioctl_fionbio(&writer, !blocks).expect("a mode");
            let reading = std::thread::spawn(move || {
                let (mut reader, mut text, mut piece) = (std::fs::File::from(reader), Vec::new(), [0; 777]);
                while let Ok(length @ 1..) = reader.read(&mut piece) {
                    text.extend_from_slice(&piece[..length]);
                    std::thread::yield_now();
                }
                text
            });
            let (whole, bytes, packets) = written(&writer, may_wait);
            drop(writer);
            assert!(whole.expect("no error"), "{blocks} {may_wait}");
            let text = String::from_utf8(reading.join().expect("no panic")).expect("text");
            assert_eq!((bytes, packets, text.len()), (100_000, 1000, 100_000), "{blocks} {may_wait}");
            assert!(text.lines().zip(0..).all(|(line, number)| line.parse() == Ok(number)), "{text}");
        }
    }

    #[test]
    fn an_output_that_takes_no_more_is_an_error_and_no_packet_is_counted() {
        let full = std::fs::OpenOptions::new().write(true).open("/dev/full").expect("it is there");
        let (_, closed) = pipe().expect("a pipe");
        for (output, kind) in [(full.into(), io::ErrorKind::StorageFull), (closed, io::ErrorKind::BrokenPipe)]
        {
            let output: std::os::fd::OwnedFd = output;
            for may_wait in [true, false] {
                let (result, bytes, packets) = written(&output, may_wait);
                assert_eq!(result.expect_err("no room").kind(), kind);
                assert_eq!((bytes, packets), (0, 0));
            }
        }
    }
}
