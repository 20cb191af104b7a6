//! Stopping a capture from anywhere.

use std::os::fd::{AsFd, BorrowedFd};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use weir_sys::CallError;

use super::notifier::EventNotifier;

/// Stops a capture from any thread or signal handler; from [`crate::Capture::stop_handle`]. It may outlive the capture.
#[derive(Clone, Debug)]
pub struct StopHandle {
    asked: Arc<Asked>,
}

#[derive(Debug)]
struct Asked {
    given: AtomicBool,
    notifier: EventNotifier,
}

impl StopHandle {
    pub(crate) fn new() -> Result<Self, CallError> {
        Ok(Self { asked: Arc::new(Asked { given: AtomicBool::new(false), notifier: EventNotifier::new()? }) })
    }

    /// Stops the capture like [`crate::Capture::stop`]: the thread in [`Capture::next`](crate::Capture::next) wakes at once,
    /// however quiet the link, and carries it out. What was captured can still be taken.
    ///
    /// Safe in a signal handler: it stores to an atomic and calls write(2) (see signal-safety(7)).
    pub fn stop(&self) {
        // Relaxed: it carries no data, and the system call below orders it before the wake-up.
        self.asked.given.store(true, Ordering::Relaxed);
        self.asked.notifier.notify();
    }

    /// Returns whether a stop was asked for.
    pub fn is_stopped(&self) -> bool {
        self.asked.given.load(Ordering::Relaxed)
    }
}

impl AsFd for StopHandle {
    /// Borrows a descriptor that becomes readable with the first [`StopHandle::stop`] and stays so.
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.asked.notifier.as_fd()
    }
}
