//! The doorbell that a kernel program rings: a BPF ring buffer without data.

use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use crate::region::Region;
use crate::sync::Ordering;

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
        let rung = self.producer.word(0).load(Ordering::Acquire);
        // Release, paired with the kernel's smp_load_acquire in ringbuf_avail_data_sz: earlier entries are no longer
        // ours.
        self.consumer.word(0).store(rung, Ordering::Release);
    }
}

impl AsFd for Doorbell {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.fd.as_fd()
    }
}
