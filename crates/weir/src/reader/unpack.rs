//! Additions to the decoders of compressed data: concatenated streams, and decompressing ahead.

use std::io::{self, BufRead, Read};
use std::sync::mpsc::{self, Receiver, Sender};
use std::thread;

use flate2::bufread::GzDecoder;
use lz4_flex::frame;

use super::input::Packed;

/// gzip with all members. Zeros after the last one, which pad tapes, are ignored.
pub(super) struct Gzip {
    /// `None`: at the end.
    member: Option<GzDecoder<Packed>>,
}

impl Gzip {
    pub(super) fn new(packed: Packed) -> Self {
        Self { member: Some(GzDecoder::new(packed)) }
    }
}

impl Read for Gzip {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        while let Some(member) = &mut self.member {
            let bytes = member.read(buffer)?;
            if bytes > 0 || buffer.is_empty() {
                return Ok(bytes);
            }
            self.member = self
                .member
                .take()
                .and_then(|member| next_member(member.into_inner()).transpose())
                .transpose()?;
        }
        Ok(0)
    }
}

fn next_member(mut packed: Packed) -> io::Result<Option<GzDecoder<Packed>>> {
    loop {
        let bytes = packed.fill_buf()?;
        if bytes.is_empty() {
            return Ok(None);
        }
        let zeros = bytes.iter().take_while(|byte| **byte == 0).count();
        let all = zeros == bytes.len();
        packed.consume(zeros);
        if !all {
            return Ok(Some(GzDecoder::new(packed)));
        }
    }
}

/// lz4 with all frames, except skippable ones.
pub(super) struct Lz4 {
    frames: frame::FrameDecoder<Metered>,
    /// The end of the last frame, in bytes of the input.
    boundary: u64,
}

/// Notices the end of the input, which the decoder mistakes for the end of a frame.
struct Metered {
    input: Packed,
    taken: u64,
    ended: bool,
}

impl Read for Metered {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let bytes = self.input.read(buffer)?;
        self.taken += bytes as u64;
        self.ended = bytes == 0;
        Ok(bytes)
    }
}

impl Lz4 {
    pub(super) fn new(packed: Packed) -> Self {
        let input = Metered { input: packed, taken: 0, ended: false };
        Self { frames: frame::FrameDecoder::new(input), boundary: 0 }
    }
}

impl Read for Lz4 {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        if buffer.is_empty() {
            return Ok(0);
        }
        loop {
            match self.frames.read(buffer) {
                Ok(0) => {
                    let input = self.frames.get_ref();
                    if input.ended && input.taken > self.boundary {
                        return Err(io::ErrorKind::UnexpectedEof.into());
                    }
                    if input.ended {
                        return Ok(0);
                    }
                    self.boundary = input.taken;
                }
                Ok(bytes) => return Ok(bytes),
                Err(error) => {
                    let length = to_skip(&error).ok_or(error)?;
                    let input = self.frames.get_mut();
                    let skipped = io::copy(&mut input.take(length), &mut io::sink())?;
                    if skipped < length {
                        return Err(io::ErrorKind::UnexpectedEof.into());
                    }
                    self.boundary = input.taken;
                }
            }
        }
    }
}

/// Returns the length of a skippable frame whose header the decoder has read.
fn to_skip(error: &io::Error) -> Option<u64> {
    match error.get_ref()?.downcast_ref::<frame::Error>()? {
        frame::Error::SkippableFrame(length) => Some(u64::from(*length)),
        _ => None,
    }
}

/// Bytes decoded at once, and how many such buffers may be ahead of the reader.
const GO: usize = 256 << 10;
const GOES: usize = 4;

/// Decodes in a separate thread, in parallel with the reader. If no thread can be started, the reader decodes.
pub(super) fn ahead(packed: Box<dyn Read + Send>) -> Box<dyn Read + Send> {
    let (full, ready) = mpsc::sync_channel(GOES);
    let (back, empty) = mpsc::channel::<Vec<u8>>();
    // The input is handed over when the thread is running; if the thread cannot be started, it is still here.
    let (hand_over, handed_over) = mpsc::channel::<Box<dyn Read + Send>>();
    let decode = move || {
        let Ok(mut packed) = handed_over.recv() else { return };
        loop {
            let mut buffer = empty.try_recv().unwrap_or_default();
            buffer.resize(GO, 0);
            let outcome = match packed.read(&mut buffer) {
                Ok(bytes) => {
                    buffer.truncate(bytes);
                    Ok(buffer)
                }
                Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
                Err(error) => Err(error),
            };
            let last = outcome.as_ref().map_or(true, Vec::is_empty);
            // An error means that the reader was dropped.
            if full.send(outcome).is_err() || last {
                return;
            }
        }
    };
    match thread::Builder::new().name("weir-unpack".to_owned()).spawn(decode) {
        Ok(_) => match hand_over.send(packed) {
            Ok(()) => Box::new(Ahead { ready, back, buffer: Vec::new(), at: 0, over: false }),
            Err(mpsc::SendError(packed)) => packed,
        },
        Err(_) => packed,
    }
}

/// The reader's side of [`ahead`].
struct Ahead {
    ready: Receiver<io::Result<Vec<u8>>>,
    back: Sender<Vec<u8>>,
    buffer: Vec<u8>,
    at: usize,
    /// The thread has reported the end or an error.
    over: bool,
}

impl Read for Ahead {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        if self.at == self.buffer.len() {
            if self.over {
                return Ok(0);
            }
            // Without a final message this is not the end of the file.
            let died = |_| io::Error::other("the decompression thread died");
            let next = self.ready.recv().map_err(died)?;
            self.over = next.as_ref().map_or(true, Vec::is_empty);
            // The thread may have ended, and then the buffer is not needed.
            let _ = self.back.send(std::mem::replace(&mut self.buffer, next?));
            self.at = 0;
        }
        let bytes = self.buffer.len().min(self.at + buffer.len()) - self.at;
        buffer[..bytes].copy_from_slice(&self.buffer[self.at..self.at + bytes]);
        self.at += bytes;
        Ok(bytes)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns some bytes, then panics.
    struct Dies(u32);

    impl Read for Dies {
        fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
            self.0 = self.0.checked_sub(1).expect("a test has this thread die");
            buffer[..3].copy_from_slice(b"abc");
            Ok(3)
        }
    }

    #[test]
    fn a_thread_that_dies_is_no_end_of_the_file() {
        let mut text = Vec::new();
        let error = ahead(Box::new(Dies(2))).read_to_end(&mut text).expect_err("it has died");
        assert!(error.to_string().contains("the decompression thread died"), "{error}");
        assert_eq!(text, b"abcabc");

        let mut all = ahead(Box::new(&b"abc"[..]));
        text.clear();
        assert_eq!(all.read_to_end(&mut text).expect("an end"), 3);
        assert_eq!(all.read(&mut [0; 4]).expect("still the end"), 0);
    }
}
