//! The doorbell that a kernel program rings: a BPF ring buffer without data.

use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use crate::region::Region;
use crate::sync::{AtomicU64, Ordering};

/// A doorbell. Its descriptor is readable once the program has rung since the last [`Doorbell::quiet`].
#[derive(Debug)]
pub struct Doorbell {
    fd: OwnedFd,
    /// First page of a BPF ring buffer: the consumer's position, written by us.
    consumer: Region,
    /// Second page: the producer's position, written by the kernel.
    producer: Region,
}

impl Doorbell {
    /// Maps the ring buffer `fd` (`BPF_MAP_TYPE_RINGBUF`; layout in the kernel's `kernel/bpf/ringbuf.c`).
    ///
    /// # Errors
    ///
    /// The error of `mmap`.
    pub fn new(fd: OwnedFd) -> io::Result<Self> {
        let page = rustix::param::page_size();
        let consumer = Region::shared(&fd, 0, page, true)?;
        let producer = Region::shared(&fd, page as u64, page, false)?;
        Ok(Self { fd, consumer, producer })
    }

    /// Forgets all rings so far.
    pub fn quiet(&self) {
        // Acquire, paired with the kernel's smp_store_release of the position in __bpf_ringbuf_reserve.
        let rung = self.producer.at::<AtomicU64>(0).load(Ordering::Acquire);
        // Release, paired with the kernel's smp_load_acquire in ringbuf_avail_data_sz: earlier entries are no longer
        // ours.
        self.consumer.at::<AtomicU64>(0).store(rung, Ordering::Release);
    }
}

impl AsFd for Doorbell {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.fd.as_fd()
    }
}

#[cfg(all(test, not(miri)))]
mod tests {
    use std::fs::File;
    use std::os::unix::fs::FileExt;

    use rustix::fs::{MemfdFlags, memfd_create};

    use super::*;

    /// A file has the two pages of a ring buffer, too; whoever has it may write both.
    #[test]
    fn once_quiet_all_that_was_rung_is_consumed() {
        let page = rustix::param::page_size() as u64;
        let file = File::from(memfd_create("doorbell", MemfdFlags::CLOEXEC).expect("there is memory"));
        file.set_len(2 * page).expect("there is memory");
        let doorbell =
            Doorbell::new(file.try_clone().expect("a second descriptor").into()).expect("both pages");
        let word = |at| {
            let mut word = [0; 8];
            file.read_exact_at(&mut word, at).expect("both pages are there");
            u64::from_ne_bytes(word)
        };
        file.write_all_at(&24_u64.to_ne_bytes(), page).expect("both pages are there");
        assert_eq!((word(0), word(page)), (0, 24));
        doorbell.quiet();
        assert_eq!((word(0), word(page)), (24, 24));
    }
}
