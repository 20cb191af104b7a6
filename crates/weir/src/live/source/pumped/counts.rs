//! Counters of a pump, which the source can read at any time.

use std::sync::atomic::{AtomicU64, Ordering};

/// Written only by the pump.
#[derive(Debug, Default)]
pub(in crate::live::source) struct Counts {
    captured: AtomicU64,
    bytes: AtomicU64,
    lost: AtomicU64,
    errors: AtomicU64,
}

/// Values of a pump's counters.
#[derive(Clone, Copy, Debug)]
pub(in crate::live::source) struct Pumped {
    /// Packets written to the pool.
    pub(in crate::live::source) captured: u64,
    /// Their original bytes.
    pub(in crate::live::source) bytes: u64,
    /// Packets for which the kernel had no room.
    pub(in crate::live::source) lost: u64,
    /// Unreadable packets.
    pub(in crate::live::source) errors: u64,
}

impl Counts {
    /// Pump: sets the packets and bytes captured so far. Called before the commit, so that whoever sees a record sees
    /// it counted.
    #[inline]
    pub(in crate::live::source) fn count(&self, captured: u64, bytes: u64) {
        // Relaxed: the commit also releases these.
        self.captured.store(captured, Ordering::Relaxed);
        self.bytes.store(bytes, Ordering::Relaxed);
    }

    /// Pump: sets the packets lost and the errors so far.
    pub(in crate::live::source) fn count_missing(&self, lost: u64, errors: u64) {
        // Relaxed: each counter stands for itself.
        self.lost.store(lost, Ordering::Relaxed);
        self.errors.store(errors, Ordering::Relaxed);
    }

    /// Source: reads all counters.
    pub(in crate::live::source) fn pumped(&self) -> Pumped {
        Pumped {
            captured: self.captured.load(Ordering::Relaxed),
            lost: self.lost.load(Ordering::Relaxed),
            errors: self.errors.load(Ordering::Relaxed),
            bytes: self.bytes.load(Ordering::Relaxed),
        }
    }
}
