//! Frames that are sent with one call.

use rustix::io::Errno;
use weir_sys::packet;

/// Frames of a batch. More would save little: a call costs about as much as a frame.
const FRAMES: usize = 64;
/// Bytes of a batch, unless its first frame is longer.
const BYTES: usize = 256 << 10;

/// A socket, and copies of frames that wait for the call.
#[derive(Debug)]
pub(super) struct Batch {
    socket: packet::Sender,
    bytes: Vec<u8>,
    /// Where each frame begins and ends.
    frames: Vec<(usize, usize)>,
    /// Frames that were sent.
    done: usize,
}

impl Batch {
    pub(super) fn new(socket: packet::Sender) -> Self {
        Self { socket, bytes: Vec::new(), frames: Vec::new(), done: 0 }
    }

    /// Copies a frame. Returns whether there was room.
    pub(super) fn put(&mut self, frame: &[u8]) -> bool {
        let (begin, end) = (self.bytes.len(), self.bytes.len() + frame.len());
        if self.frames.len() == FRAMES || (begin > 0 && end > BYTES) {
            return false;
        }
        self.bytes.extend_from_slice(frame);
        self.frames.push((begin, end));
        true
    }

    /// Sends a frame that is not copied, while there are no others; returns whether it was sent.
    pub(super) fn send_alone(&self, frame: &[u8]) -> bool {
        self.socket.send(frame).is_ok()
    }

    /// Sends the frames; returns how many were sent. The others stay.
    pub(super) fn send(&mut self) -> (u32, Result<(), Errno>) {
        let left = self.frames[self.done..].iter().map(|&(begin, end)| &self.bytes[begin..end]);
        let (sent, result) = match self.socket.send_many(left) {
            Ok(sent) => (sent, Ok(())),
            Err(error) => (0, Err(error)),
        };
        self.done += sent;
        let rest = self.frames.len() - self.done;
        if rest == 0 {
            self.forget();
        }
        // The next call says what is wrong with the next frame.
        let result = result.and(if rest == 0 { Ok(()) } else { Err(Errno::AGAIN) });
        (u32::try_from(sent).expect("a batch is small"), result)
    }

    /// Drops the frames.
    pub(super) fn forget(&mut self) {
        self.bytes.clear();
        self.frames.clear();
        self.done = 0;
    }
}
