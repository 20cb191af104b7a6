//! What the pump and the source tell each other, beside the pool.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::mpsc::{self, SyncSender};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use weir_ring::Counters;
use weir_sys::CallError;

use super::sieve::Sieve;
use crate::source::pumped::{Counts, Pumped};
use crate::source::signals::Signals;

/// A sieve on its way to the pump.
#[derive(Debug)]
enum Handover {
    Nothing,
    /// One, or none is to be asked; and where the one before is left.
    Wanted(Option<Sieve>, SyncSender<Option<Sieve>>),
    /// There is no pump any more.
    Ended,
}

/// Shared by both.
#[derive(Debug)]
pub(super) struct Shared {
    pub(super) counts: Counts,
    /// Packets that were not wanted; the pump writes.
    filtered: AtomicU64,
    /// The kernel has refused packets and told nobody how many. Once set it stays.
    uncounted: AtomicBool,
    /// The sieve that the pump is to take: there is one, and which.
    exchanged: AtomicBool,
    sieve: Mutex<Handover>,
    pub(super) signals: Arc<Signals>,
}

impl Shared {
    pub(super) fn new() -> Result<Self, CallError> {
        Ok(Self {
            counts: Counts::default(),
            filtered: AtomicU64::new(0),
            uncounted: AtomicBool::new(false),
            exchanged: AtomicBool::new(false),
            sieve: Mutex::new(Handover::Nothing),
            signals: Arc::new(Signals::new()?),
        })
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

    /// From now on the kernel refuses packets, and nobody counts them; whether they were counted up to now.
    pub(super) fn stop_counting(&self) -> bool {
        !self.uncounted.swap(true, Ordering::Relaxed)
    }

    /// No packet was refused since they are no longer counted.
    pub(super) fn go_on_counting(&self) {
        self.uncounted.store(false, Ordering::Relaxed);
    }

    /// Has the pump ask `sieve` from now on, and waits until it is done with the block that it may be in. Gives the one before;
    /// `None`: the pump has ended.
    pub(super) fn exchange(&self, sieve: Option<Sieve>) -> Option<Option<Sieve>> {
        let (leave, left) = mpsc::sync_channel(1);
        {
            let mut place = self.handover();
            if matches!(*place, Handover::Ended) {
                return None;
            }
            *place = Handover::Wanted(sieve, leave);
        }
        // Release, with the exchange in `take_sieve`.
        self.exchanged.store(true, Ordering::Release);
        self.signals.call.ring();
        left.recv().ok()
    }

    /// The pump, between two blocks: takes the sieve that it is to ask, if there is a new one. Before it looks for an order, as it
    /// quiets the bell that is rung for both.
    #[inline]
    pub(super) fn take_sieve(&self, sieve: &mut Option<Sieve>) {
        if !self.exchanged.load(Ordering::Relaxed) || !self.exchanged.swap(false, Ordering::Acquire) {
            return;
        }
        self.signals.call.quiet();
        if let Handover::Wanted(wanted, leave) = std::mem::replace(&mut *self.handover(), Handover::Nothing) {
            let _nobody_waits_any_more = leave.send(std::mem::replace(sieve, wanted));
        }
    }

    /// The pump has ended: who waits for it waits no more.
    pub(super) fn end(&self) {
        *self.handover() = Handover::Ended;
    }

    fn handover(&self) -> MutexGuard<'_, Handover> {
        self.sieve.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The source: all counters of packets that were. A packet in the kernel's ring is seen when it is copied, so that they always close.
    pub(super) fn counters(&self) -> Counters {
        let Pumped { captured, bytes, lost, errors } = self.counts.pumped();
        Counters { seen: captured + lost + errors, captured, bytes, lost, errors, ..Counters::default() }
    }
}
