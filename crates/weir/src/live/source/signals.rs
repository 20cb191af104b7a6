//! Signals between a source, its queue and the pump (the thread that fills the queue's pool), beside the pool.

use std::os::fd::{AsFd, BorrowedFd};
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicU8, AtomicU64, Ordering, fence};
use std::time::Duration;

use rustix::event::{PollFd, Timespec, poll};
use rustix::io::Errno;
use weir_ring::Consumer;
use weir_sys::CallError;

use crate::live::wait::Notifier;
use crate::live::wait::notifier::EventNotifier;

/// An order to the pump.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Order {
    /// Continue.
    Pump,
    /// Let nothing more in, copy what is left, and end.
    Finish,
    /// End immediately.
    Leave,
}

/// State shared by source, queue and pump.
#[derive(Debug)]
pub(super) struct Signals {
    /// Notify once this many bytes of records have been written since the start; `u64::MAX`: never. The source
    /// writes it; the pump resets it by exchange when it rings.
    wake_at: AtomicU64,
    /// Records have waited long enough. Set by the pump, cleared by the source.
    aged: AtomicBool,
    /// There is an error to report. Set by the pump, cleared by the source.
    troubled: AtomicBool,
    trouble: Mutex<Option<CallError>>,
    /// Records of a finished pump that did not fit into the pool, until the queue takes them.
    rest: Mutex<Option<Consumer>>,
    /// Written by the source.
    order: AtomicU8,
    /// Rung by the pump when there is something to check.
    notifier: EventNotifier,
    /// Rung by the source when there is a new order.
    pub(super) call: EventNotifier,
}

impl Signals {
    pub(super) fn new() -> Result<Self, CallError> {
        Ok(Self {
            wake_at: AtomicU64::new(u64::MAX),
            aged: AtomicBool::new(false),
            troubled: AtomicBool::new(false),
            trouble: Mutex::new(None),
            rest: Mutex::new(None),
            order: AtomicU8::new(Order::Pump as u8),
            notifier: EventNotifier::new()?,
            call: EventNotifier::new()?,
        })
    }

    /// Pump: has written and committed `written` bytes in total. Rings if the source sleeps until then.
    pub(super) fn ring_if_due(&self, written: u64) {
        // Pairs with the fence in `wake_at`. The pump commits, then loads `wake_at`; the source stores `wake_at`, then
        // checks what is committed. With a fence between these steps on both sides, at least one side sees what the
        // other did.
        fence(Ordering::SeqCst);
        if written >= self.wake_at.load(Ordering::Relaxed) {
            self.ring();
        }
    }

    /// Pump: makes the source check, whatever it waits for.
    fn ring(&self) {
        fence(Ordering::SeqCst); // as above
        if self.wake_at.swap(u64::MAX, Ordering::Relaxed) != u64::MAX {
            self.notifier.notify();
        }
    }

    /// Source: requests a ring. The caller then checks what is ready before it sleeps.
    pub(super) fn wake_at(&self, written: u64) {
        self.wake_at.store(written, Ordering::Relaxed);
        fence(Ordering::SeqCst); // pairs with the one in `ring_if_due`
    }

    /// Source: cancels `wake_at`.
    pub(super) fn wake_never(&self) {
        self.wake_at.store(u64::MAX, Ordering::Relaxed);
    }

    /// Pump: committed records have waited long enough.
    pub(super) fn set_aged(&self) {
        // Release: pairs with the exchange in `take_aged`.
        self.aged.store(true, Ordering::Release);
        self.ring();
    }

    /// Source: whether committed records have waited long enough.
    pub(super) fn aged(&self) -> bool {
        self.aged.load(Ordering::Relaxed)
    }

    /// Source: is about to take what is committed, including everything that `set_aged` referred to.
    pub(super) fn take_aged(&self) {
        // Acquire: pairs with the store in `set_aged`.
        self.aged.swap(false, Ordering::Acquire);
    }

    /// Pump: reports an error.
    pub(super) fn report(&self, trouble: CallError) {
        if let Ok(mut place) = self.trouble.lock() {
            *place = Some(trouble);
        }
        self.troubled.store(true, Ordering::Release);
        self.ring();
    }

    /// Source: whether there is an error.
    pub(super) fn troubled(&self) -> bool {
        self.troubled.load(Ordering::Acquire)
    }

    /// Source: takes the error.
    pub(super) fn take_trouble(&self) -> Option<CallError> {
        self.troubled.store(false, Ordering::Relaxed);
        self.trouble.lock().ok()?.take()
    }

    /// Source: the pump has finished, and these records did not fit into the pool.
    pub(super) fn leave_rest(&self, rest: Option<Consumer>) {
        if let Ok(mut place) = self.rest.lock() {
            *place = rest;
        }
    }

    /// Queue: takes those records, once.
    pub(super) fn take_rest(&self) -> Option<Consumer> {
        self.rest.lock().ok()?.take()
    }

    /// Source: gives the pump an order.
    pub(super) fn give(&self, order: Order) {
        self.order.store(order as u8, Ordering::Relaxed);
        self.call.notify();
    }

    /// Pump: returns the current order.
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

impl Notifier for Signals {
    fn fd(&self) -> BorrowedFd<'_> {
        self.notifier.as_fd()
    }

    fn quiet(&self) {
        self.notifier.quiet();
    }
}

/// Sleeps until one of `fds` is ready, for at most `longest`.
pub(super) fn wait(fds: &mut [PollFd<'_>], longest: Option<Duration>) {
    const SHORT: Duration = Duration::from_millis(1);
    let longest = longest.map(|longest| Timespec {
        tv_sec: i64::try_from(longest.as_secs()).unwrap_or(i64::MAX),
        tv_nsec: i64::from(longest.subsec_nanos()),
    });
    match poll(fds, longest.as_ref()) {
        Ok(_) | Err(Errno::INTR) => {}
        // The kernel only lacks memory: try again.
        Err(_) => std::thread::sleep(SHORT),
    }
}
