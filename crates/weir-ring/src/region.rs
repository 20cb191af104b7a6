//! An owned memory mapping.

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

// SAFETY: a region is an address range. It is accessed through atomics, or through slices whose exclusivity R2 to R4
// guarantee.
unsafe impl Send for Region {}
// SAFETY: as above.
unsafe impl Sync for Region {}

impl Region {
    /// Maps `length` bytes of `fd` from `offset`, shared; writable only if `writable`.
    ///
    /// # Errors
    ///
    /// The error of `mmap`.
    pub(crate) fn shared(fd: impl AsFd, offset: u64, length: usize, writable: bool) -> io::Result<Self> {
        let protection = if writable { ProtFlags::READ | ProtFlags::WRITE } else { ProtFlags::READ };
        // SAFETY: a new mapping at an address that the kernel chooses touches no other memory.
        let base = unsafe { mmap(std::ptr::null_mut(), length, protection, MapFlags::SHARED, fd, offset) }?;
        Ok(Self { base: non_null(base), length })
    }

    /// Maps `length` bytes of zeros, which the system allocates page by page when they are touched.
    ///
    /// # Errors
    ///
    /// The error of `mmap`.
    pub(crate) fn anonymous(length: usize) -> io::Result<Self> {
        let protection = ProtFlags::READ | ProtFlags::WRITE;
        // Miri supports no other flag.
        let flags = if cfg!(miri) { MapFlags::PRIVATE } else { MapFlags::PRIVATE | MapFlags::NORESERVE };
        // SAFETY: as in `shared`.
        let base = unsafe { mmap_anonymous(std::ptr::null_mut(), length, protection, flags) }?;
        // Huge pages, if the system provides them on request: fewer page faults and TLB misses.
        #[cfg(not(miri))]
        // SAFETY: this advice does not change the memory's contents.
        let _ = unsafe { madvise(base, length, Advice::LinuxHugepage) };
        Ok(Self { base: non_null(base), length })
    }

    /// Returns a pointer to the first byte.
    pub(crate) fn base(&self) -> *mut u8 {
        self.base.as_ptr().cast()
    }

    /// Returns the length in bytes.
    pub(crate) fn len(&self) -> usize {
        self.length
    }

    /// Returns the eight-byte word `index` of the region.
    ///
    /// # Panics
    ///
    /// If it is out of range; indices are our own (R5).
    pub(crate) fn word(&self, index: usize) -> &AtomicU64 {
        assert!(index < self.length / 8, "word {index} of a region of {} bytes", self.length);
        // SAFETY: inside the mapping, as checked above.
        let word = unsafe { self.base.as_ptr().cast::<u64>().add(index) };
        // SAFETY: aligned, since mappings begin on a page, and mapped as long as `self`. The kernel accesses such words
        // with aligned 64-bit loads and stores, so an atomic on this side suffices.
        unsafe { AtomicU64::from_ptr(word) }
    }
}

impl Drop for Region {
    fn drop(&mut self) {
        // SAFETY: this is the range that was mapped, and no borrow of `self` is left.
        let _ = unsafe { munmap(self.base.as_ptr(), self.length) };
    }
}

fn non_null(base: *mut c_void) -> NonNull<c_void> {
    NonNull::new(base).expect("mmap never maps the null page without being told to")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    #[should_panic(expected = "word 512 of a region of 4096 bytes")]
    fn there_are_no_words_beyond_the_region() {
        let region = Region::anonymous(4096).expect("there is memory");
        region.word(511);
        region.word(512);
    }
}
