//! An owned memory mapping.

use std::ffi::c_void;
use std::io;
use std::os::fd::AsFd;
use std::ptr::{NonNull, null_mut};

use rustix::mm::{MapFlags, ProtFlags, mmap, mmap_anonymous, munmap};

/// Pages mapped into this process, unmapped on drop.
#[derive(Debug)]
pub(super) struct Mapping {
    base: NonNull<c_void>,
    length: usize,
}

// SAFETY: A mapping is only an address range; X2 and X3 govern access to its contents.
unsafe impl Send for Mapping {}
// SAFETY: As above.
unsafe impl Sync for Mapping {}

impl Mapping {
    /// Maps `length` bytes of `fd` from `offset`, shared with the kernel and present at once.
    pub(super) fn shared(fd: impl AsFd, offset: u64, length: usize) -> io::Result<Self> {
        let flags = MapFlags::SHARED | MapFlags::POPULATE;
        // SAFETY: A new mapping at an address that the kernel chooses touches no other memory.
        let base =
            unsafe { mmap(null_mut(), length, ProtFlags::READ | ProtFlags::WRITE, flags, fd, offset) }?;
        Ok(Self::new(base, length))
    }

    /// Maps `length` bytes of zeros.
    pub(super) fn anonymous(length: usize) -> io::Result<Self> {
        let protection = ProtFlags::READ | ProtFlags::WRITE;
        // SAFETY: As above.
        let base = unsafe { mmap_anonymous(null_mut(), length, protection, MapFlags::PRIVATE) }?;
        Ok(Self::new(base, length))
    }

    fn new(base: *mut c_void, length: usize) -> Self {
        Self { base: NonNull::new(base).expect("mmap gives no null page unasked"), length }
    }

    /// Returns a pointer to the first byte, aligned to a page.
    pub(super) fn base(&self) -> *mut u8 {
        self.base.as_ptr().cast()
    }

    /// Returns the length in bytes.
    pub(super) fn len(&self) -> usize {
        self.length
    }
}

impl Drop for Mapping {
    fn drop(&mut self) {
        // SAFETY: This is the range that was mapped, and all borrows from it borrow `self`.
        let _ = unsafe { munmap(self.base.as_ptr(), self.length) };
    }
}
