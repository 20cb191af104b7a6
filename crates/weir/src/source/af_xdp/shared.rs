//! What a pump and the source tell each other, beside the pool.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use weir_sys::CallError;

use crate::source::signals::Signals;

/// Shared by both.
#[derive(Debug)]
pub(super) struct Shared {
    /// Packets but for `bytes`; the pump writes.
    captured: AtomicU64,
    bytes: AtomicU64,
    lost: AtomicU64,
    errors: AtomicU64,
    pub(super) signals: Arc<Signals>,
}

/// What a pump has counted.
#[derive(Clone, Copy, Debug)]
pub(super) struct Pumped {
    /// Packets laid down.
    pub(super) captured: u64,
    /// Their original bytes.
    pub(super) bytes: u64,
    /// Packets that found no frame.
    pub(super) lost: u64,
    /// Packets that made no sense.
    pub(super) errors: u64,
}

impl Shared {
    pub(super) fn new() -> Result<Self, CallError> {
        Ok(Self {
            captured: AtomicU64::new(0),
            bytes: AtomicU64::new(0),
            lost: AtomicU64::new(0),
            errors: AtomicU64::new(0),
            signals: Arc::new(Signals::new()?),
        })
    }

    /// The pump: one more packet, of so many bytes, in all. Before it is committed: who sees the record sees it counted.
    #[inline]
    pub(super) fn count(&self, captured: u64, bytes: u64) {
        // Relaxed: the commit releases these too.
        self.captured.store(captured, Ordering::Relaxed);
        self.bytes.store(bytes, Ordering::Relaxed);
    }

    /// The pump: so many packets could not be had, in all.
    pub(super) fn count_missing(&self, lost: u64, errors: u64) {
        // Relaxed: each is told for itself.
        self.lost.store(lost, Ordering::Relaxed);
        self.errors.store(errors, Ordering::Relaxed);
    }

    /// The source: all of that.
    pub(super) fn pumped(&self) -> Pumped {
        Pumped {
            captured: self.captured.load(Ordering::Relaxed),
            bytes: self.bytes.load(Ordering::Relaxed),
            lost: self.lost.load(Ordering::Relaxed),
            errors: self.errors.load(Ordering::Relaxed),
        }
    }
}
