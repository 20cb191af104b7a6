//! Decompressing ahead of the reader.

use std::io::{self, Read};
use std::sync::mpsc::{self, Receiver, Sender, TryRecvError};
use std::thread;

use super::stream::{Any, Stream};

/// Bytes decoded at once, and how many such buffers may be ahead of the reader.
const GO: usize = 256 << 10;
const GOES: usize = 4;

/// Decodes in a separate thread, in parallel with the reader. If no thread can be started, the reader decodes.
pub(super) fn ahead(packed: Box<dyn Read + Send>) -> Box<dyn Stream> {
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
            Ok(()) => Box::new(Ahead { ready, next: None, back, buffer: Vec::new(), at: 0, over: false }),
            Err(mpsc::SendError(packed)) => Box::new(Any(packed)),
        },
        Err(_) => Box::new(Any(packed)),
    }
}

/// The reader's side of [`ahead`].
struct Ahead {
    ready: Receiver<io::Result<Vec<u8>>>,
    /// The next buffer, if it is already taken out of `ready`.
    next: Option<io::Result<Vec<u8>>>,
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
            let next = match self.next.take() {
                Some(next) => next,
                None => self.ready.recv().map_err(died)?,
            };
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

impl Stream for Ahead {
    fn would_wait(&mut self) -> bool {
        if self.at < self.buffer.len() || self.over || self.next.is_some() {
            return false;
        }
        match self.ready.try_recv() {
            Ok(next) => self.next = Some(next),
            Err(TryRecvError::Empty) => return true,
            // Reading reports it.
            Err(TryRecvError::Disconnected) => {}
        }
        false
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
