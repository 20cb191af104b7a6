//! Wakes a reader that sleeps: `pcap_breakloop` in another thread or in a signal handler.

use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::atomic::{AtomicI32, Ordering};

use rustix::event::{EventfdFlags, eventfd};

/// What a sleeping reader looks at beside its packets (eventfd(2)).
#[derive(Debug)]
pub(crate) struct Notifier(OwnedFd);

impl Notifier {
    pub(super) fn new() -> io::Result<Self> {
        Ok(Self(eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK)?))
    }

    /// Forgets that it rang.
    pub(super) fn silence(&self) {
        // There is nothing to read if it did not ring.
        let _ = rustix::io::read(&self.0, &mut [0; 8]);
    }
}

impl AsFd for Notifier {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}

/// Notifies the waiting thread with this descriptor; a negative one is none. Safe in a signal handler: one write(2), which is no
/// cancellation point, and `errno` stays what it was.
pub(crate) fn ring(descriptor: &AtomicI32) {
    // Acquire, paired with the store when the handle was activated.
    let descriptor = descriptor.load(Ordering::Acquire);
    if descriptor >= 0 {
        // SAFETY: the descriptor is open as long as its handle (C4).
        let notifier = unsafe { BorrowedFd::borrow_raw(descriptor) };
        // A full counter has woken the reader already.
        let _ = rustix::io::write(notifier, &1u64.to_ne_bytes());
    }
}
