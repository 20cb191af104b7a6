//! The memory that packets are received into and sent from, and the owner of each frame.

use std::fmt;
use std::os::fd::OwnedFd;
use std::sync::atomic::AtomicU32;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::{Arc, Mutex, PoisonError, Weak};

use crate::CallError;

use super::frame::{Frame, HEADROOM};
use super::mapping::Mapping;

/// The size of a frame. The kernel keeps the first 256 bytes free before a received packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FrameSize {
    /// 2048 bytes: packets up to 1792.
    TwoKib,
    /// 4096 bytes: packets up to 3840.
    FourKib,
}

/// The settings of a [`Umem`] and all sockets on it: the kernel binds later sockets like the first.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct UmemOptions {
    /// Number of frames, rounded up to a power of two.
    pub frames: u32,
    /// Size of the frames.
    pub frame_size: FrameSize,
    /// The card itself writes and reads the frames if the first socket's driver supports that. Otherwise the kernel
    /// copies.
    pub zero_copy: bool,
    /// A packet may span several frames (Linux 6.6). If false, packets longer than a frame are dropped.
    pub segments: bool,
}

impl FrameSize {
    /// Returns the size in bytes.
    pub fn bytes(self) -> u32 {
        match self {
            Self::TwoKib => 2048,
            Self::FourKib => 4096,
        }
    }

    /// Returns the longest packet, or part of one, that the kernel receives into a frame.
    pub fn room(self) -> u32 {
        self.bytes() - HEADROOM
    }
}

/// Frames for any number of sockets on any devices. Clones share the memory.
#[derive(Clone, Debug)]
pub struct Umem(pub(super) Arc<Memory>);

/// The state that clones share.
pub(super) struct Memory {
    mapping: Mapping,
    pub(super) options: UmemOptions,
    shift: u32,
    /// The owner of each frame (X3): the process, [`PROCESS`], or the number of the ring into which it was put and from
    /// whose counterpart it must come back.
    places: Box<[AtomicU32]>,
    /// The process's frames that nobody holds.
    free: Mutex<Vec<u32>>,
    /// Sockets on this memory. The lock is held while a socket is being bound.
    pub(super) sockets: Mutex<Sockets>,
}

/// The sockets of a [`Umem`].
#[derive(Debug, Default)]
pub(super) struct Sockets {
    /// Any of these shares its memory with the next socket.
    pub(super) open: Vec<Weak<OwnedFd>>,
    /// Ring numbers assigned so far.
    rings: u32,
}

impl Sockets {
    /// Returns a new number for a ring.
    pub(super) fn number(&mut self) -> u32 {
        self.rings += 1;
        self.rings
    }
}

/// A frame's owner that is not a ring.
const PROCESS: u32 = 0;

impl Umem {
    /// Maps the memory.
    ///
    /// # Errors
    ///
    /// There is not enough memory.
    pub fn new(options: UmemOptions) -> Result<Self, CallError> {
        let shift = options.frame_size.bytes().trailing_zeros();
        let asked = options.frames;
        let short = || CallError::new(format!("map {asked} AF_XDP frames"), std::io::ErrorKind::OutOfMemory);
        let frames = asked.checked_next_power_of_two().ok_or_else(short)?;
        let mapping = Mapping::anonymous((frames as usize) << shift)
            .map_err(|e| CallError::new(format!("map {frames} AF_XDP frames"), e))?;
        Ok(Self(Arc::new(Memory {
            mapping,
            options: UmemOptions { frames, ..options },
            shift,
            places: (0..frames).map(|_| AtomicU32::new(PROCESS)).collect(),
            free: Mutex::new((0..frames).rev().collect()),
            sockets: Mutex::default(),
        })))
    }

    /// Returns the settings, with the actual number of frames.
    pub fn options(&self) -> UmemOptions {
        self.0.options
    }

    /// Returns the total size of the frames in bytes.
    pub fn bytes(&self) -> u64 {
        self.0.len()
    }

    /// Appends up to `count` free frames, empty. Returns their number.
    pub fn take<'u>(&'u self, count: usize, into: &mut Vec<Frame<'u>>) -> usize {
        let mut free = self.0.free();
        let rest = free.len().saturating_sub(count);
        let taken = free.drain(rest..).map(|index| Frame::empty(&self.0, index));
        let before = into.len();
        into.extend(taken);
        into.len() - before
    }

    /// Returns the number of free frames, which nobody holds.
    pub fn free(&self) -> usize {
        self.0.free().len()
    }
}

impl fmt::Debug for Memory {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Memory").field("options", &self.options).finish_non_exhaustive()
    }
}

impl Memory {
    fn free(&self) -> std::sync::MutexGuard<'_, Vec<u32>> {
        // Always consistent: nothing done under the lock can panic halfway.
        self.free.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns the start address in this process.
    pub(super) fn start(&self) -> u64 {
        self.mapping.base().addr() as u64
    }

    /// Returns the length in bytes.
    pub(super) fn len(&self) -> u64 {
        u64::from(self.options.frames) << self.shift
    }

    pub(super) fn frame_size(&self) -> u32 {
        1 << self.shift
    }

    /// Returns the address of byte `offset` of frame `index`, as used in the rings: bytes from the start of the memory.
    pub(super) fn address(&self, index: u32, offset: u32) -> u64 {
        (u64::from(index) << self.shift) + u64::from(offset)
    }

    /// Returns the frame that contains `address`, and the offset in it; `None` if it is outside all frames.
    pub(super) fn locate(&self, address: u64) -> Option<(u32, u32)> {
        let index = u32::try_from(address >> self.shift).ok().filter(|&index| index < self.options.frames)?;
        let offset = u32::try_from(address & (u64::from(self.frame_size()) - 1)).ok()?;
        Some((index, offset))
    }

    /// Notes that frame `index`, which the caller holds, goes into `ring`.
    pub(super) fn put(&self, index: u32, ring: u32) {
        // Relaxed: see `fetch`.
        self.places[index as usize].store(ring, Relaxed);
    }

    /// Takes frame `index` back for the process if it was in `ring`. Returns false if not: then the other side has made
    /// it up, or returned it twice.
    ///
    /// Only the owner of a ring's end asks for that ring. It stored that number before it gave the frame away. A thread
    /// never loads a value older than its own last store, so Relaxed suffices: another thread's frame never looks like
    /// ours. Accesses to the frame's bytes are ordered by the rings, and between threads by whatever passes the frame
    /// on.
    pub(super) fn fetch(&self, index: u32, ring: u32) -> bool {
        let place = &self.places[index as usize];
        let there = place.load(Relaxed) == ring;
        if there {
            place.store(PROCESS, Relaxed);
        }
        there
    }

    /// Frees frame `index`, which the process has and nobody holds any more.
    pub(super) fn let_go(&self, index: u32) {
        self.free().push(index);
    }

    /// Returns a pointer to the first byte of frame `index`.
    pub(super) fn frame(&self, index: u32) -> *mut u8 {
        debug_assert!(index < self.options.frames, "frame {index}");
        // SAFETY: inside the mapping: an index comes from `locate` or from the free frames (X3).
        unsafe { self.mapping.base().add((index as usize) << self.shift) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn options(frames: u32, frame_size: FrameSize) -> UmemOptions {
        UmemOptions { frames, frame_size, zero_copy: false, segments: false }
    }

    #[test]
    fn an_address_belongs_to_the_frame_it_lies_in() {
        for (size, bytes) in [(FrameSize::TwoKib, 2048), (FrameSize::FourKib, 4096)] {
            let umem = Umem::new(options(3, size)).unwrap();
            let memory = &umem.0;
            assert_eq!((memory.options.frames, memory.len()), (4, 4 * u64::from(bytes)));
            assert_eq!(memory.locate(0), Some((0, 0)));
            assert_eq!(memory.locate(u64::from(bytes) - 1), Some((0, bytes - 1)));
            assert_eq!(memory.locate(memory.address(3, 256)), Some((3, 256)));
            assert_eq!(memory.locate(memory.len()), None);
            assert_eq!(memory.locate(u64::MAX), None);
            assert_eq!(memory.locate(1 << 43), None);
        }
    }

    #[test]
    fn a_frame_comes_back_once_and_from_where_it_is() {
        let umem = Umem::new(options(2, FrameSize::TwoKib)).unwrap();
        umem.0.put(1, 5);
        assert!(!umem.0.fetch(1, 6) && !umem.0.fetch(0, 5), "it is elsewhere");
        assert!(umem.0.fetch(1, 5));
        assert!(!umem.0.fetch(1, 5), "a second time");
    }

    #[test]
    fn frames_are_taken_and_go_back_when_dropped() {
        let umem = Umem::new(options(4, FrameSize::TwoKib)).unwrap();
        let mut frames = Vec::new();
        assert_eq!((umem.take(3, &mut frames), umem.free()), (3, 1));
        assert_eq!((umem.take(3, &mut frames), umem.free()), (1, 0));
        assert_eq!(umem.take(1, &mut frames), 0);
        frames.truncate(1);
        assert_eq!(umem.free(), 3);
        let other = umem.clone();
        frames.clear();
        assert_eq!(other.free(), 4);
    }

    #[test]
    fn more_frames_than_there_can_be_are_an_error() {
        assert!(Umem::new(options(u32::MAX, FrameSize::FourKib)).is_err());
    }
}
