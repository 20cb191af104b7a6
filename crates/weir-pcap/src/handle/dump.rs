//! A dump of `pcap_live_dump`: a thread of ours, which has the capture as long as it writes.

use std::mem::ManuallyDrop;
use std::os::fd::OwnedFd;
use std::process;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;

use crate::filter::Filter;
use crate::live::Live;

/// A running dump, or one that has ended and whose result was not collected yet.
pub(crate) struct Dump {
    /// `None`: it was waited for.
    pub(crate) thread: Option<JoinHandle<Option<Ended>>>,
    /// Where the thread is.
    pub(crate) process: u32,
    /// Tells the thread to end.
    pub(crate) quit: Arc<AtomicBool>,
    /// Wakes it.
    pub(crate) notifier: OwnedFd,
    /// Readable once it has nothing left to do.
    pub(crate) over: Arc<OwnedFd>,
}

/// What the thread leaves.
pub(crate) struct Ended {
    pub(crate) live: Box<Live>,
    pub(crate) filter: Option<Box<Filter>>,
    pub(crate) result: Result<(), String>,
}

impl Dump {
    pub(crate) fn has_ended(&self) -> bool {
        self.thread.as_ref().is_none_or(JoinHandle::is_finished)
    }

    /// Waits for the thread.
    pub(crate) fn join(&mut self) -> Option<Ended> {
        self.thread.take()?.join().ok().flatten()
    }
}

impl Drop for Dump {
    fn drop(&mut self) {
        if self.process != process::id() {
            // The thread exists in the parent only; nothing can be done with its handle here.
            let _not_ours = ManuallyDrop::new(self.thread.take());
            return;
        }
        self.quit.store(true, Ordering::Relaxed);
        // A full counter has woken it already.
        let _ = rustix::io::write(&self.notifier, &1u64.to_ne_bytes());
        drop(self.join());
    }
}
