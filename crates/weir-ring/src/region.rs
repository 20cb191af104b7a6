//! A mapping, owned.

use std::ffi::c_void;
use std::io;
use std::os::fd::AsFd;
use std::ptr::NonNull;

#[cfg(not(miri))]
use rustix::mm::{Advice, madvise};
use rustix::mm::{MapFlags, ProtFlags, mmap, mmap_anonymous, munmap};

use crate::sync::AtomicU64;

/// Memory mapped into this process, unmapped on drop.
#[derive(Debug)]
pub(crate) struct Region {
    base: NonNull<c_void>,
    length: usize,
}

// SAFETY: a region is an address range; access to it goes through atomics, or through slices whose exclusivity R2 to R4
// establish.
unsafe impl Send for Region {}
// SAFETY: as above.
unsafe impl Sync for Region {}

impl Region {
    /// Maps `length` bytes of `fd` from `offset`, shared; writable for us only if `writable`.
    ///
    /// # Errors
    ///
    /// What `mmap` says.
    pub(crate) fn shared(fd: impl AsFd, offset: u64, length: usize, writable: bool) -> io::Result<Self> {
        let protection = if writable { ProtFlags::READ | ProtFlags::WRITE } else { ProtFlags::READ };
        // SAFETY: a new mapping at an address of the kernel's choice touches nobody else's memory.
        let base = unsafe { mmap(std::ptr::null_mut(), length, protection, MapFlags::SHARED, fd, offset) }?;
        Ok(Self { base: non_null(base), length })
    }

    /// Maps `length` bytes of fresh zeros, taken from the system page by page as they are touched.
    ///
    /// # Errors
    ///
    /// What `mmap` says.
    pub(crate) fn anonymous(length: usize) -> io::Result<Self> {
        let protection = ProtFlags::READ | ProtFlags::WRITE;
        // Miri knows no other flag.
        let flags = if cfg!(miri) { MapFlags::PRIVATE } else { MapFlags::PRIVATE | MapFlags::NORESERVE };
        // SAFETY: as in `shared`.
        let base = unsafe { mmap_anonymous(std::ptr::null_mut(), length, protection, flags) }?;
        // Large pages, where the system gives them for the asking: fewer faults and fewer misses in the TLB.
        #[cfg(not(miri))]
        // SAFETY: advice that changes nothing that the memory holds.
        let _ = unsafe { madvise(base, length, Advice::LinuxHugepage) };
        Ok(Self { base: non_null(base), length })
    }

    /// The first byte.
    pub(crate) fn base(&self) -> *mut u8 {
        self.base.as_ptr().cast()
    }

    /// Bytes.
    pub(crate) fn len(&self) -> usize {
        self.length
    }

    /// Word `index` of the region, in units of eight bytes.
    ///
    /// # Panics
    ///
    /// If it lies outside: indices are ours (R5).
    pub(crate) fn word(&self, index: usize) -> &AtomicU64 {
        assert!(index < self.length / 8, "word {index} of a region of {} bytes", self.length);
        // SAFETY: inside of the mapping by the check above.
        let word = unsafe { self.base.as_ptr().cast::<u64>().add(index) };
        // SAFETY: aligned, since mappings begin on a page; mapped as long as `self`; the kernel accesses such words with
        // whole aligned loads and stores, so an atomic on this side is all it takes.
        unsafe { AtomicU64::from_ptr(word) }
    }
}

impl Drop for Region {
    fn drop(&mut self) {
        // SAFETY: the range is the one that was mapped, and nothing borrowed from `self` is left.
        let _ = unsafe { munmap(self.base.as_ptr(), self.length) };
    }
}

fn non_null(base: *mut c_void) -> NonNull<c_void> {
    NonNull::new(base).expect("mmap never maps the null page without being told to")
}
