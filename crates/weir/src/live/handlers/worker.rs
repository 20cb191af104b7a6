//! The state of a handler's thread that others see, and how it is woken.

use std::sync::atomic::{AtomicBool, AtomicU8, AtomicU64, Ordering};
use std::sync::{Condvar, Mutex, PoisonError};
use std::time::{Duration, Instant};

use crate::live::wait::strategy::Woken;
use crate::stats::{HandlerState, HandlerStats};

impl HandlerState {
    fn of(word: u8) -> Self {
        [Self::Running, Self::Ended, Self::Left, Self::Panicked][usize::from(word)]
    }
}

/// The thread of a handler. Only the handler writes, unless noted otherwise.
#[derive(Debug)]
pub(super) struct Worker {
    processor: Option<u32>,
    state: AtomicU8,
    /// Why it was woken, until it notices; written by any thread.
    rung: Mutex<Option<Woken>>,
    wake: Condvar,
    asleep: AtomicBool,
    packets: AtomicU64,
    chunks: AtomicU64,
    taken_over: AtomicU64,
    /// Time with chunks in hand, in nanoseconds, without the current one.
    busy: AtomicU64,
    /// When it took the current one, in nanoseconds since `began`, plus one; 0: none.
    since: AtomicU64,
    began: Instant,
}

impl Worker {
    pub(super) fn new(processor: Option<u32>) -> Self {
        Self {
            processor,
            state: AtomicU8::new(HandlerState::Running as u8),
            rung: Mutex::new(None),
            wake: Condvar::new(),
            asleep: AtomicBool::new(false),
            packets: AtomicU64::new(0),
            chunks: AtomicU64::new(0),
            taken_over: AtomicU64::new(0),
            busy: AtomicU64::new(0),
            since: AtomicU64::new(0),
            began: Instant::now(),
        }
    }

    pub(super) fn processor(&self) -> Option<u32> {
        self.processor
    }

    pub(super) fn state(&self) -> HandlerState {
        HandlerState::of(self.state.load(Ordering::Relaxed))
    }

    pub(super) fn set_state(&self, state: HandlerState) {
        self.state.store(state as u8, Ordering::Relaxed);
    }

    pub(super) fn is_running(&self) -> bool {
        self.state() == HandlerState::Running
    }

    /// Sleeps until it is woken.
    pub(super) fn sleep(&self, longest: Duration) -> Woken {
        let rung = self.rung.lock().unwrap_or_else(PoisonError::into_inner);
        // Relaxed: if another thread misses this, the handler finds the work before it sleeps, or is rung a millisecond
        // later.
        self.asleep.store(true, Ordering::Relaxed);
        let waited = self.wake.wait_timeout_while(rung, longest, |rung| rung.is_none());
        let (mut rung, _) = waited.unwrap_or_else(PoisonError::into_inner);
        self.asleep.store(false, Ordering::Relaxed);
        rung.take().unwrap_or(Woken::Time)
    }

    pub(super) fn is_asleep(&self) -> bool {
        self.asleep.load(Ordering::Relaxed)
    }

    /// Wakes the handler, or prevents its next sleep.
    pub(super) fn ring(&self, what: Woken) {
        let mut rung = self.rung.lock().unwrap_or_else(PoisonError::into_inner);
        if *rung != Some(Woken::News) {
            *rung = Some(what);
        }
        self.wake.notify_one();
    }

    /// Records that it takes `packets` packets, perhaps from another handler's queue.
    pub(super) fn begin(&self, packets: usize, taken_over: bool) {
        self.since.store(self.now() + 1, Ordering::Relaxed);
        add(&self.packets, packets as u64);
        add(&self.chunks, 1);
        add(&self.taken_over, u64::from(taken_over));
    }

    /// Records that it is done with them.
    pub(super) fn end(&self) {
        let since = self.since.swap(0, Ordering::Relaxed);
        if since > 0 {
            add(&self.busy, self.now().saturating_sub(since - 1));
        }
    }

    pub(super) fn stats(&self, number: usize) -> HandlerStats {
        let since = self.since.load(Ordering::Relaxed);
        let in_hand = since.checked_sub(1).map(|since| self.now().saturating_sub(since));
        let get = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        HandlerStats {
            handler: number,
            processor: self.processor,
            state: self.state(),
            packets: get(&self.packets),
            chunks: get(&self.chunks),
            taken_over: get(&self.taken_over),
            busy: Duration::from_nanos(get(&self.busy) + in_hand.unwrap_or(0)),
            in_hand: in_hand.map(Duration::from_nanos),
        }
    }

    fn now(&self) -> u64 {
        u64::try_from(self.began.elapsed().as_nanos()).unwrap_or(u64::MAX)
    }
}

/// Adds to a counter that only the calling thread writes.
fn add(counter: &AtomicU64, more: u64) {
    // Relaxed: the counters are independent.
    counter.store(counter.load(Ordering::Relaxed) + more, Ordering::Relaxed);
}
