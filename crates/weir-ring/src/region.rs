//! An owned memory mapping.

use std::ffi::c_void;
use std::io;
use std::os::fd::AsFd;
use std::ptr::NonNull;

#[cfg(not(miri))]
use rustix::mm::{Advice, madvise};
use rustix::mm::{MapFlags, ProtFlags, mmap, mmap_anonymous, munmap};

use crate::shared::Shared;

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

    /// Returns the value at `offset` bytes from the start.
    ///
    /// # Panics
    ///
    /// If it is out of range or not aligned; offsets are our own (R5).
    pub(crate) fn at<T: Shared>(&self, offset: usize) -> &T {
        let end = offset.checked_add(size_of::<T>());
        assert!(
            offset.is_multiple_of(align_of::<T>()) && end.is_some_and(|end| end <= self.length),
            "{} bytes at {offset} of a region of {}",
            size_of::<T>(),
            self.length
        );
        let value = self.base().wrapping_add(offset).cast::<T>();
        // SAFETY: inside the mapping and aligned, as checked above, since mappings begin on a page; mapped as long as
        // `self`. Any bytes are a `T`. The kernel accesses such words with aligned loads and stores of their size, so
        // atomics on this side suffice.
        unsafe { &*value }
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
    use std::panic::{AssertUnwindSafe, catch_unwind};

    use super::*;
    use crate::sync::AtomicU64;

    #[test]
    fn there_are_only_whole_words_of_the_region() {
        let region = Region::anonymous(4096).expect("there is memory");
        region.at::<AtomicU64>(4088);
        for offset in [4092, 4096, usize::MAX - 7] {
            let beyond = catch_unwind(AssertUnwindSafe(|| region.at::<AtomicU64>(offset)));
            let said = beyond.expect_err("not inside");
            let said = said.downcast_ref::<String>().expect("a message");
            assert_eq!(said, &format!("8 bytes at {offset} of a region of 4096"));
        }
    }
}
