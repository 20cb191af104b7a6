//! What a source, its queue and the thread that fills the queue's pool, the pump, tell each other beside the pool.

use std::os::fd::{AsFd, BorrowedFd};
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicU8, AtomicU64, Ordering, fence};
use std::time::Duration;

use rustix::event::{PollFd, Timespec, poll};
use rustix::io::Errno;
use weir_ring::Reader;
use weir_sys::CallError;

use super::Bell;
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

/// Shared by all.
#[derive(Debug)]
pub(super) struct Signals {
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

impl Signals {
    pub(super) fn new() -> Result<Self, CallError> {
        Ok(Self {
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

impl Bell for Signals {
    fn fd(&self) -> BorrowedFd<'_> {
        self.bell.as_fd()
    }

    fn quiet(&self) {
        self.bell.quiet();
    }
}

/// Sleeps until one of `fds` is as it is wanted, for at most `longest`.
pub(super) fn wait(fds: &mut [PollFd<'_>], longest: Option<Duration>) {
    const SHORT: Duration = Duration::from_millis(1);
    let longest = longest.map(|longest| Timespec {
        tv_sec: i64::try_from(longest.as_secs()).unwrap_or(i64::MAX),
        tv_nsec: i64::from(longest.subsec_nanos()),
    });
    match poll(fds, longest.as_ref()) {
        Ok(_) | Err(Errno::INTR) => {}
        // Only for want of kernel memory: worth another try.
        Err(_) => std::thread::sleep(SHORT),
    }
}
