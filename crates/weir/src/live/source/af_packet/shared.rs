//! State shared by the pump and the source, beside the pool.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::mpsc::{self, SyncSender};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use weir_ring::Counters;
use weir_sys::CallError;

use super::pump_filter::PumpFilter;
use crate::live::source::pumped::{Counts, Pumped};
use crate::live::source::signals::Signals;

/// A filter on its way to the pump.
#[derive(Debug)]
enum Handover {
    Nothing,
    /// The new filter, if any, and where to leave the old one.
    Wanted(Option<PumpFilter>, SyncSender<Option<PumpFilter>>),
    /// The pump has ended.
    Ended,
}

/// State shared by the pump and the source.
#[derive(Debug)]
pub(super) struct Shared {
    pub(super) counts: Counts,
    /// Packets rejected by the pump's filter. Written by the pump.
    filtered: AtomicU64,
    /// Packets that sampling did not select, and fragments that it could not assign to a flow. Written by the pump.
    sampled_out: AtomicU64,
    orphans: AtomicU64,
    /// The kernel has rejected packets without a count. Never reset once packets were rejected.
    uncounted: AtomicBool,
    /// Whether there is a filter for the pump, and which.
    exchanged: AtomicBool,
    handover: Mutex<Handover>,
    pub(super) signals: Arc<Signals>,
}

impl Shared {
    pub(super) fn new() -> Result<Self, CallError> {
        Ok(Self {
            counts: Counts::default(),
            filtered: AtomicU64::new(0),
            sampled_out: AtomicU64::new(0),
            orphans: AtomicU64::new(0),
            uncounted: AtomicBool::new(false),
            exchanged: AtomicBool::new(false),
            handover: Mutex::new(Handover::Nothing),
            signals: Arc::new(Signals::new()?),
        })
    }

    /// Pump: sets the number of packets rejected so far.
    pub(super) fn count_filtered(&self, filtered: u64) {
        // Relaxed: the counter stands for itself.
        self.filtered.store(filtered, Ordering::Relaxed);
    }

    /// Pump: sets the number of packets sampled out so far, and of orphans.
    pub(super) fn count_sampled(&self, sampled_out: u64, orphans: u64) {
        // Relaxed: each counter stands for itself.
        self.sampled_out.store(sampled_out, Ordering::Relaxed);
        self.orphans.store(orphans, Ordering::Relaxed);
    }

    /// Source: returns the number of rejected packets, if it is known.
    pub(super) fn filtered(&self) -> Option<u64> {
        let uncounted = self.uncounted.load(Ordering::Relaxed);
        (!uncounted).then(|| self.filtered.load(Ordering::Relaxed))
    }

    /// Notes that the kernel now rejects packets without a count. Returns whether they were counted until now.
    pub(super) fn stop_counting(&self) -> bool {
        !self.uncounted.swap(true, Ordering::Relaxed)
    }

    /// Undoes `stop_counting`, if no packet was rejected since.
    pub(super) fn go_on_counting(&self) {
        self.uncounted.store(false, Ordering::Relaxed);
    }

    /// Makes the pump use `filter`, waits until it has finished the current block, and returns the old filter; `None` if
    /// the pump has ended.
    pub(super) fn exchange(&self, filter: Option<PumpFilter>) -> Option<Option<PumpFilter>> {
        let (leave, left) = mpsc::sync_channel(1);
        {
            let mut place = self.handover();
            if matches!(*place, Handover::Ended) {
                return None;
            }
            *place = Handover::Wanted(filter, leave);
        }
        // Release: pairs with the exchange in `take_filter`.
        self.exchanged.store(true, Ordering::Release);
        self.signals.call.notify();
        left.recv().ok()
    }

    /// Pump, between two blocks: takes the new filter, if there is one. Must be called before it checks for orders,
    /// because this clears the notifier that is rung for both.
    #[inline]
    pub(super) fn take_filter(&self, filter: &mut Option<PumpFilter>) {
        if !self.exchanged.load(Ordering::Relaxed) || !self.exchanged.swap(false, Ordering::Acquire) {
            return;
        }
        self.signals.call.quiet();
        if let Handover::Wanted(wanted, leave) = std::mem::replace(&mut *self.handover(), Handover::Nothing) {
            let _nobody_waits_any_more = leave.send(std::mem::replace(filter, wanted));
        }
    }

    /// The pump has ended: releases whoever waits for it.
    pub(super) fn end(&self) {
        *self.handover() = Handover::Ended;
    }

    fn handover(&self) -> MutexGuard<'_, Handover> {
        self.handover.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Source: returns all counters. A packet in the kernel's ring is counted as seen when it is copied, so that the
    /// counters always add up.
    pub(super) fn counters(&self) -> Counters {
        let Pumped { captured, bytes, lost, errors } = self.counts.pumped();
        let sampled_out = self.sampled_out.load(Ordering::Relaxed);
        let orphans = self.orphans.load(Ordering::Relaxed);
        let seen = captured + lost + errors + sampled_out;
        Counters { seen, captured, bytes, lost, errors, sampled_out, orphans, ..Counters::default() }
    }
}
