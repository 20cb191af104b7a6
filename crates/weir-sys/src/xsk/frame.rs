//! Frames held by the process.

use std::mem::ManuallyDrop;
use std::slice;

use super::umem::Memory;

/// Bytes that the kernel keeps free before a received packet (`XDP_PACKET_HEADROOM`).
pub(super) const HEADROOM: u32 = 256;

/// A frame with a packet, or with a part of a packet that spans several frames. Only its holder can access its bytes:
/// while the kernel has a frame, there is no such value. Dropping it makes it available to
/// [`Umem::take`](super::Umem::take).
#[derive(Debug)]
pub struct Frame<'u> {
    memory: &'u Memory,
    index: u32,
    /// Offset and length of the packet: `start + length` is at most the frame's size.
    start: u32,
    length: u32,
    continues: bool,
}

impl<'u> Frame<'u> {
    /// Creates the value of frame `index`, which the process has and nobody holds (X3).
    pub(super) fn empty(memory: &'u Memory, index: u32) -> Self {
        Self { memory, index, start: HEADROOM, length: 0, continues: false }
    }

    /// Like [`empty`](Self::empty), with the `length` bytes from `start`. If they are not inside the frame, frees it
    /// and returns `None`.
    pub(super) fn full(memory: &'u Memory, part: FrameDescriptor) -> Option<Self> {
        let frame = Self::empty(memory, part.index);
        let end = part.start.checked_add(part.length)?;
        let FrameDescriptor { start, length, continues, .. } = part;
        (end <= memory.frame_size()).then_some(())?;
        let mut frame = frame;
        (frame.start, frame.length, frame.continues) = (start, length, continues);
        Some(frame)
    }

    /// Gives up the frame, to put it into a ring.
    pub(super) fn into_descriptor(self) -> FrameDescriptor {
        let frame = ManuallyDrop::new(self);
        FrameDescriptor {
            index: frame.index,
            start: frame.start,
            length: frame.length,
            continues: frame.continues,
        }
    }

    /// Returns the memory that the frame belongs to.
    pub(super) fn memory(&self) -> &'u Memory {
        self.memory
    }

    /// Returns the packet.
    pub fn bytes(&self) -> &[u8] {
        self.range(self.start, self.length)
    }

    /// Returns the packet, to change it.
    pub fn bytes_mut(&mut self) -> &mut [u8] {
        self.range_mut(self.start, self.length)
    }

    /// Returns the packet's length in bytes.
    pub fn len(&self) -> usize {
        self.length as usize
    }

    /// Returns whether the packet is empty.
    pub fn is_empty(&self) -> bool {
        self.length == 0
    }

    /// Returns whether the packet continues in the next frame.
    pub fn continues(&self) -> bool {
        self.continues
    }

    /// Sets whether the packet continues in the next frame.
    ///
    /// # Panics
    ///
    /// If `continues` is true and the memory was created for packets of a single frame
    /// ([`UmemOptions::segments`](super::UmemOptions::segments)).
    pub fn set_continues(&mut self, continues: bool) {
        assert!(!continues || self.memory.options.segments, "packets of one frame were asked for");
        self.continues = continues;
    }

    /// Returns the free bytes before the packet.
    pub fn headroom(&self) -> usize {
        self.start as usize
    }

    /// Returns the free bytes after the packet.
    pub fn tailroom(&self) -> usize {
        (self.memory.frame_size() - self.start - self.length) as usize
    }

    /// Returns the `count` bytes before the packet, where an XDP program may have left metadata; `None` if there are
    /// fewer. They are not cleared.
    pub fn in_front(&mut self, count: usize) -> Option<&mut [u8]> {
        let count = u32::try_from(count).ok()?;
        let from = self.start.checked_sub(count)?;
        Some(self.range_mut(from, count))
    }

    /// Begins the packet `count` bytes earlier, and returns these bytes, which are not cleared; `None` if there is no
    /// room.
    pub fn grow_head(&mut self, count: usize) -> Option<&mut [u8]> {
        let count = u32::try_from(count).ok()?;
        self.start = self.start.checked_sub(count)?;
        self.length += count;
        Some(self.range_mut(self.start, count))
    }

    /// Removes the first `count` bytes of the packet, or all if it has fewer.
    pub fn shrink_head(&mut self, count: usize) {
        let count = u32::try_from(count).unwrap_or(u32::MAX).min(self.length);
        self.start += count;
        self.length -= count;
    }

    /// Ends the packet `count` bytes later, and returns these bytes, which are not cleared; `None` if there is no room.
    pub fn grow_tail(&mut self, count: usize) -> Option<&mut [u8]> {
        if count > self.tailroom() {
            return None;
        }
        let end = self.start + self.length;
        let count = u32::try_from(count).ok()?;
        self.length += count;
        Some(self.range_mut(end, count))
    }

    /// Keeps the first `length` bytes, or all if it has fewer.
    pub fn truncate(&mut self, length: usize) {
        self.length = u32::try_from(length).unwrap_or(u32::MAX).min(self.length);
    }

    fn range(&self, from: u32, length: u32) -> &[u8] {
        // SAFETY: the callers' `from` is inside the frame.
        let first = unsafe { self.memory.frame(self.index).add(from as usize) };
        // SAFETY: so is the end. Initialised, since the kernel maps zeros. X3: nothing writes to it while `self`, the
        // only value of this frame, is borrowed.
        unsafe { slice::from_raw_parts(first, length as usize) }
    }

    fn range_mut(&mut self, from: u32, length: u32) -> &mut [u8] {
        // SAFETY: as in `range`.
        let first = unsafe { self.memory.frame(self.index).add(from as usize) };
        // SAFETY: as in `range`; X3: nothing else reads it either, since `self` is borrowed mutably.
        unsafe { slice::from_raw_parts_mut(first, length as usize) }
    }
}

impl Drop for Frame<'_> {
    fn drop(&mut self) {
        self.memory.let_go(self.index);
    }
}

/// A frame in transit between a ring and a [`Frame`]. It does not hold the frame: its bytes are not accessed through
/// this.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct FrameDescriptor {
    pub(super) index: u32,
    pub(super) start: u32,
    pub(super) length: u32,
    pub(super) continues: bool,
}

#[cfg(test)]
mod tests {
    use crate::xsk::{FrameSize, Umem, UmemOptions};

    fn umem() -> Umem {
        let options =
            UmemOptions { frames: 2, frame_size: FrameSize::TwoKib, zero_copy: false, segments: false };
        Umem::new(options).unwrap()
    }

    #[test]
    fn a_packet_grows_and_shrinks_inside_of_its_frame() {
        let umem = umem();
        let mut frames = Vec::new();
        umem.take(2, &mut frames);
        let [frame, other] = &mut frames[..] else { unreachable!() };
        other.grow_tail(1792).unwrap().fill(7);
        assert_eq!((frame.headroom(), frame.tailroom(), frame.is_empty()), (256, 1792, true));
        frame.grow_tail(4).unwrap().copy_from_slice(b"data");
        frame.grow_head(5).unwrap().copy_from_slice(b"some ");
        assert_eq!(frame.bytes(), b"some data");
        frame.shrink_head(3);
        frame.truncate(3);
        assert_eq!((frame.bytes(), frame.len(), frame.headroom()), (&b"e d"[..], 3, 254));
        frame.bytes_mut()[0] = b'E';
        assert_eq!(frame.bytes(), b"E d");
        frame.in_front(2).unwrap().copy_from_slice(b"xy");
        assert_eq!(frame.grow_head(2).unwrap(), b"xy");

        assert!(frame.grow_head(253).is_none() && frame.in_front(253).is_none());
        assert!(frame.grow_tail(1792).is_none() && frame.grow_head(usize::MAX).is_none());
        frame.shrink_head(usize::MAX);
        frame.truncate(usize::MAX);
        assert_eq!((frame.len(), frame.headroom()), (0, 257));
        assert!(frame.grow_tail(frame.tailroom()).is_some());
        assert_eq!(frame.bytes().len(), 2048 - 257);
        assert!(other.bytes().iter().all(|&byte| byte == 7), "the neighbour is untouched");
    }

    #[test]
    #[should_panic(expected = "packets of one frame")]
    fn a_packet_continues_only_where_that_was_asked_for() {
        let umem = umem();
        let mut frames = Vec::new();
        umem.take(1, &mut frames);
        frames[0].set_continues(true);
    }
}
