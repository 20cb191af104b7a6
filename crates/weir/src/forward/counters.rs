//! What became of the packets that reached a thread.

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use super::stats::ForwardCounters;

/// Counters for the packets of one lane that reached its thread. Only that thread writes them, except for the last two.
#[derive(Debug, Default)]
pub(super) struct Counters {
    pub(super) forwarded: AtomicU64,
    pub(super) changed: AtomicU64,
    pub(super) dropped: AtomicU64,
    pub(super) no_room: AtomicU64,
    pub(super) unable: AtomicU64,
    /// Written by the stack's thread, like `errors`.
    pub(super) passed: AtomicU64,
    pub(super) errors: AtomicU64,
}

impl Counters {
    pub(super) fn add(counter: &AtomicU64, packets: usize) {
        // Relaxed: an independent number with one writer.
        counter.store(counter.load(Relaxed) + packets as u64, Relaxed);
    }

    /// Adds them to the kernel's counters.
    pub(super) fn add_to(&self, counters: &mut ForwardCounters) {
        counters.forwarded += self.forwarded.load(Relaxed);
        counters.changed += self.changed.load(Relaxed);
        counters.dropped += self.dropped.load(Relaxed);
        counters.no_room += self.no_room.load(Relaxed);
        counters.unable += self.unable.load(Relaxed);
        counters.passed += self.passed.load(Relaxed);
        counters.errors += self.errors.load(Relaxed);
    }
}
