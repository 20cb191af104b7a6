//! What a pump counts, read by the source at any time.

use std::sync::atomic::{AtomicU64, Ordering};

/// Written by the pump alone.
#[derive(Debug, Default)]
pub(in crate::source) struct Counts {
    captured: AtomicU64,
    bytes: AtomicU64,
    lost: AtomicU64,
    errors: AtomicU64,
}

/// What a pump has counted.
#[derive(Clone, Copy, Debug)]
pub(in crate::source) struct Pumped {
    /// Packets laid down.
    pub(in crate::source) captured: u64,
    /// Their original bytes.
    pub(in crate::source) bytes: u64,
    /// Packets for which the kernel had no room.
    pub(in crate::source) lost: u64,
    /// Packets that made no sense.
    pub(in crate::source) errors: u64,
}

impl Counts {
    /// The pump: one more packet, of so many bytes, in all. Before it is committed: who sees the record sees it counted.
    #[inline]
    pub(in crate::source) fn count(&self, captured: u64, bytes: u64) {
        // Relaxed: the commit releases these too.
        self.captured.store(captured, Ordering::Relaxed);
        self.bytes.store(bytes, Ordering::Relaxed);
    }

    /// The pump: so many packets could not be had, in all.
    pub(in crate::source) fn count_missing(&self, lost: u64, errors: u64) {
        // Relaxed: each is told for itself.
        self.lost.store(lost, Ordering::Relaxed);
        self.errors.store(errors, Ordering::Relaxed);
    }

    /// The source: all of that.
    pub(in crate::source) fn pumped(&self) -> Pumped {
        Pumped {
            captured: self.captured.load(Ordering::Relaxed),
            lost: self.lost.load(Ordering::Relaxed),
            errors: self.errors.load(Ordering::Relaxed),
            bytes: self.bytes.load(Ordering::Relaxed),
        }
    }
}
