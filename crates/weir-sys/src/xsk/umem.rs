//! The memory that packets are received into and sent from, and who has which frame of it.

use std::fmt;
use std::os::fd::OwnedFd;
use std::sync::atomic::AtomicU32;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::{Arc, Mutex, PoisonError, Weak};

use crate::CallError;

use super::frame::{Frame, HEADROOM};
use super::mapping::Mapping;

/// Bytes of one frame. The kernel keeps the first 256 free in front of a packet that it receives.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FrameSize {
    /// 2048 bytes: packets up to 1792.
    TwoKib,
    /// 4096 bytes: packets up to 3840.
    FourKib,
}

/// How a [`Umem`] is to be, and all sockets on it: the kernel binds the later ones as the first.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct UmemOptions {
    /// How many frames; rounded up to a power of two.
    pub frames: u32,
    /// Their size.
    pub frame_size: FrameSize,
    /// Where the first socket's driver can, the card itself writes to the frames and reads from them. Else, and without
    /// this, the kernel copies.
    pub zero_copy: bool,
    /// A packet may take several frames (Linux 6.6). Without, one that is longer than a frame is dropped.
    pub segments: bool,
}

impl FrameSize {
    /// Bytes.
    pub fn bytes(self) -> u32 {
        match self {
            Self::TwoKib => 2048,
            Self::FourKib => 4096,
        }
    }

    /// The longest packet, or part of one, that the kernel receives into a frame.
    pub fn room(self) -> u32 {
        self.bytes() - HEADROOM
    }
}

/// Frames, for any number of sockets on any devices. A clone is the same memory.
#[derive(Clone, Debug)]
pub struct Umem(pub(super) Arc<Memory>);

/// What the clones share.
pub(super) struct Memory {
    mapping: Mapping,
    pub(super) options: UmemOptions,
    shift: u32,
    /// Who has each frame (X3): the process, [`PROCESS`], or the ring with that number, into which it was put and out of
    /// whose counterpart it has to come.
    places: Box<[AtomicU32]>,
    /// Frames of the process that nobody holds.
    free: Mutex<Vec<u32>>,
    /// Sockets on this memory; the lock is held while one is bound.
    pub(super) sockets: Mutex<Sockets>,
}

/// The sockets of a [`Umem`].
#[derive(Debug, Default)]
pub(super) struct Sockets {
    /// Any of these lends its memory to the next.
    pub(super) open: Vec<Weak<OwnedFd>>,
    /// Rings that were numbered.
    rings: u32,
}

impl Sockets {
    /// A number for a ring.
    pub(super) fn number(&mut self) -> u32 {
        self.rings += 1;
        self.rings
    }
}

/// A frame's place that is not a ring's number.
const PROCESS: u32 = 0;

impl Umem {
    /// Maps memory.
    ///
    /// # Errors
    ///
    /// There is not so much memory.
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

    /// How it was made, with the number of frames that there are.
    pub fn options(&self) -> UmemOptions {
        self.0.options
    }

    /// Bytes of all frames.
    pub fn bytes(&self) -> u64 {
        self.0.len()
    }

    /// Appends up to `count` frames that nobody holds, empty; how many there were.
    pub fn take<'u>(&'u self, count: usize, into: &mut Vec<Frame<'u>>) -> usize {
        let mut free = self.0.free();
        let rest = free.len().saturating_sub(count);
        let taken = free.drain(rest..).map(|index| Frame::empty(&self.0, index));
        let before = into.len();
        into.extend(taken);
        into.len() - before
    }

    /// Frames that nobody holds.
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
        // Whole at any time: nothing that is done under the lock can panic half-way.
        self.free.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Where it begins in this process.
    pub(super) fn start(&self) -> u64 {
        self.mapping.base().addr() as u64
    }

    /// Bytes.
    pub(super) fn len(&self) -> u64 {
        u64::from(self.options.frames) << self.shift
    }

    pub(super) fn frame_size(&self) -> u32 {
        1 << self.shift
    }

    /// Where byte `offset` of frame `index` is, as the rings count: in bytes from the beginning.
    pub(super) fn address(&self, index: u32, offset: u32) -> u64 {
        (u64::from(index) << self.shift) + u64::from(offset)
    }

    /// The frame that `address` lies in, and where in it; `None` outside of all.
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

    /// The process has frame `index` again, if it was in `ring`. Else the other side has made it up, or gives it a second
    /// time.
    ///
    /// Only the owner of a ring's end asks for that ring. It wrote that number last before it gave the frame away, and no
    /// load after its own later store can give the earlier value, so Relaxed will do: another thread's frame never looks
    /// like ours. What happens to the frame's bytes is ordered by the rings, and from thread to thread by whatever the
    /// frame was sent by.
    pub(super) fn fetch(&self, index: u32, ring: u32) -> bool {
        let place = &self.places[index as usize];
        let there = place.load(Relaxed) == ring;
        if there {
            place.store(PROCESS, Relaxed);
        }
        there
    }

    /// Frame `index`, of the process, is held by nobody any more.
    pub(super) fn let_go(&self, index: u32) {
        self.free().push(index);
    }

    /// The first byte of frame `index`.
    pub(super) fn frame(&self, index: u32) -> *mut u8 {
        debug_assert!(index < self.options.frames, "frame {index}");
        // SAFETY: inside of the mapping: whoever has an index got it from `locate` or from the free ones (X3).
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
