//! A notifier for threads of this process.

use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use rustix::event::{EventfdFlags, eventfd};
use weir_sys::CallError;

/// A descriptor that is readable after a ring, until it is quieted.
#[derive(Debug)]
pub(crate) struct EventNotifier {
    fd: OwnedFd,
}

impl EventNotifier {
    pub(crate) fn new() -> Result<Self, CallError> {
        let fd = eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK)
            .map_err(|error| CallError::new("create an event descriptor", error))?;
        Ok(Self { fd })
    }

    pub(crate) fn notify(&self) {
        // This fails only if the 64-bit counter is full, and then the descriptor is readable.
        let _ = rustix::io::write(&self.fd, &1u64.to_ne_bytes());
    }

    pub(crate) fn quiet(&self) {
        // If there is nothing to read, it was not rung.
        let _ = rustix::io::read(&self.fd, &mut [0; 8]);
    }
}

impl AsFd for EventNotifier {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.fd.as_fd()
    }
}
