//! What the pump and the source tell each other, beside the pool.

use std::os::fd::{AsFd, BorrowedFd};
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicU8, AtomicU64, Ordering, fence};

use weir_ring::{Counters, Reader};
use weir_sys::CallError;

use super::super::Bell;
use super::sieve::Sieve;
use crate::bell::EventBell;

/// What the pump is to do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Order {
    /// Go on.
    Pump,
    /// Let nothing more in, copy what is in, and end.
    Finish,
    /// End.
    Leave,
}

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
    /// Ring the bell once so many bytes of records have been laid down since the beginning; `u64::MAX`: do not. The
    /// source writes, the pump takes it by exchange when it rings.
    wake_at: AtomicU64,
    /// Records have waited long enough. The pump sets it, the source clears it.
    aged: AtomicBool,
    /// There is trouble to be told. The pump sets it, the source clears it.
    troubled: AtomicBool,
    trouble: Mutex<Option<CallError>>,
    /// What a pump that has finished found no room for, until the queue takes it.
    rest: Mutex<Option<Reader>>,
    /// The source writes.
    order: AtomicU8,
    /// Rung by the pump: it is worth looking.
    bell: EventBell,
    /// Rung by the source: there is a new order.
    pub(super) call: EventBell,
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
            wake_at: AtomicU64::new(u64::MAX),
            aged: AtomicBool::new(false),
            troubled: AtomicBool::new(false),
            trouble: Mutex::new(None),
            rest: Mutex::new(None),
            order: AtomicU8::new(Order::Pump as u8),
            bell: EventBell::new()?,
            call: EventBell::new()?,
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

    /// The pump has laid down `written` bytes in all, and committed them: rings if the source sleeps for that.
    pub(super) fn ring_if_due(&self, written: u64) {
        // With the fence in `wake_at`: the pump commits and then looks here, the source writes here and then looks for
        // what is committed. Of two that fence between the one and the other at least one sees what the other did.
        fence(Ordering::SeqCst);
        if written >= self.wake_at.load(Ordering::Relaxed) {
            self.ring();
        }
    }

    /// The pump: the source must look, whatever it waits for.
    fn ring(&self) {
        fence(Ordering::SeqCst); // as above
        if self.wake_at.swap(u64::MAX, Ordering::Relaxed) != u64::MAX {
            self.bell.ring();
        }
    }

    /// The source: have the bell rung, then look at what is ready, then sleep.
    pub(super) fn wake_at(&self, written: u64) {
        self.wake_at.store(written, Ordering::Relaxed);
        fence(Ordering::SeqCst); // with the one in `ring_if_due`
    }

    /// The source is awake.
    pub(super) fn wake_never(&self) {
        self.wake_at.store(u64::MAX, Ordering::Relaxed);
    }

    /// The pump: what is committed has waited long enough.
    pub(super) fn set_aged(&self) {
        // Release, with the exchange in `take_aged`.
        self.aged.store(true, Ordering::Release);
        self.ring();
    }

    /// The source: whether it has.
    pub(super) fn aged(&self) -> bool {
        self.aged.load(Ordering::Relaxed)
    }

    /// The source takes what is committed, all that was meant by `set_aged` included.
    pub(super) fn take_aged(&self) {
        // Acquire, with the store in `set_aged`.
        self.aged.swap(false, Ordering::Acquire);
    }

    /// The pump has met with trouble.
    pub(super) fn report(&self, trouble: CallError) {
        if let Ok(mut place) = self.trouble.lock() {
            *place = Some(trouble);
        }
        self.troubled.store(true, Ordering::Release);
        self.ring();
    }

    /// The source: whether it has.
    pub(super) fn troubled(&self) -> bool {
        self.troubled.load(Ordering::Acquire)
    }

    /// The source: which.
    pub(super) fn take_trouble(&self) -> Option<CallError> {
        self.troubled.store(false, Ordering::Relaxed);
        self.trouble.lock().ok()?.take()
    }

    /// The source: the pump has finished, and had no room for this.
    pub(super) fn leave_rest(&self, rest: Option<Reader>) {
        if let Ok(mut place) = self.rest.lock() {
            *place = rest;
        }
    }

    /// The queue: what was left, once.
    pub(super) fn take_rest(&self) -> Option<Reader> {
        self.rest.lock().ok()?.take()
    }

    /// The source tells the pump what to do next.
    pub(super) fn give(&self, order: Order) {
        self.order.store(order as u8, Ordering::Relaxed);
        self.call.ring();
    }

    /// The pump: what to do.
    #[inline]
    pub(super) fn order(&self) -> Order {
        // Relaxed: an order carries no data.
        match self.order.load(Ordering::Relaxed) {
            order if order == Order::Pump as u8 => Order::Pump,
            order if order == Order::Finish as u8 => Order::Finish,
            _ => Order::Leave,
        }
    }
}

impl Bell for Shared {
    fn fd(&self) -> BorrowedFd<'_> {
        self.bell.as_fd()
    }

    fn quiet(&self) {
        self.bell.quiet();
    }
}
