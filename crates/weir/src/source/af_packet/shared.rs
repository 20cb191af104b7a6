//! What the pump and the source tell each other, beside the pool.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};

use weir_ring::Counters;
use weir_sys::CallError;

use super::sieve::Sieve;
use crate::source::signals::Signals;

/// Shared by both.
#[derive(Debug)]
pub(super) struct Shared {
    /// Packets but for `bytes`; the pump writes.
    captured: AtomicU64,
    bytes: AtomicU64,
    lost: AtomicU64,
    errors: AtomicU64,
    filtered: AtomicU64,
    /// The kernel has refused packets and told nobody how many. Once set it stays.
    uncounted: AtomicBool,
    /// The sieve that the pump is to take: there is one, and which. `Some(None)`: none.
    exchanged: AtomicBool,
    sieve: Mutex<Option<Option<Sieve>>>,
    pub(super) signals: Arc<Signals>,
}

impl Shared {
    pub(super) fn new() -> Result<Self, CallError> {
        Ok(Self {
            captured: AtomicU64::new(0),
            bytes: AtomicU64::new(0),
            lost: AtomicU64::new(0),
            errors: AtomicU64::new(0),
            filtered: AtomicU64::new(0),
            uncounted: AtomicBool::new(false),
            exchanged: AtomicBool::new(false),
            sieve: Mutex::new(None),
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

    /// The pump: so many packets were not wanted, in all.
    pub(super) fn count_filtered(&self, filtered: u64) {
        // Relaxed: told for itself.
        self.filtered.store(filtered, Ordering::Relaxed);
    }

    /// The source: how many were not wanted, if that is known.
    pub(super) fn filtered(&self) -> Option<u64> {
        let uncounted = self.uncounted.load(Ordering::Relaxed);
        (!uncounted).then(|| self.filtered.load(Ordering::Relaxed))
    }

    /// From now on the kernel refuses packets, and nobody counts them.
    pub(super) fn stop_counting(&self) {
        self.uncounted.store(true, Ordering::Relaxed);
    }

    /// Has the pump ask `sieve` from its next block on.
    pub(super) fn exchange(&self, sieve: Option<Sieve>) {
        if let Ok(mut place) = self.sieve.lock() {
            *place = Some(sieve);
        }
        // Release, with the exchange in `take_sieve`.
        self.exchanged.store(true, Ordering::Release);
    }

    /// The pump: the sieve to take, if there is a new one.
    #[inline]
    pub(super) fn take_sieve(&self) -> Option<Option<Sieve>> {
        if !self.exchanged.load(Ordering::Relaxed) || !self.exchanged.swap(false, Ordering::Acquire) {
            return None;
        }
        self.sieve.lock().ok()?.take()
    }

    /// The source: all counters of packets that were. A packet in the kernel's ring is seen when it is copied, so that they always close.
    pub(super) fn counters(&self) -> Counters {
        let captured = self.captured.load(Ordering::Relaxed);
        let lost = self.lost.load(Ordering::Relaxed);
        let errors = self.errors.load(Ordering::Relaxed);
        let bytes = self.bytes.load(Ordering::Relaxed);
        Counters { seen: captured + lost + errors, captured, bytes, lost, errors, filtered: 0 }
    }
}
