//! Timing of delivery: what a thread that takes chunks does between busy and asleep.

use std::time::{Duration, Instant};

use rustix::event::Timespec;
use rustix::thread::{NanosleepRelativeResult, nanosleep};

use crate::Error;
use crate::builder::Delivery;
use crate::source::Ready;

/// Time between two checks of nearly empty queues with adaptive delivery: short enough to deliver a lone packet within
/// a millisecond, long enough to collect thousands at full load.
const NAP: Duration = Duration::from_micros(250);
/// Bytes of records that are delivered without a nap.
const BATCH: u32 = 128 << 10;
/// How long to sleep before one more check after arming the doorbell (`commit` in crates/weir-bpf/src/writer.h).
const RECHECK: Duration = Duration::from_millis(1);

/// The queues of one thread, numbered from 0, and what it sleeps on.
pub(crate) trait Queues {
    /// What is taken from a queue.
    type Taken;

    /// Returns the number of queues.
    fn count(&self) -> usize;

    /// Returns what can be taken from a queue.
    fn ready(&mut self, queue: usize) -> Result<Ready, Error>;

    /// Takes it.
    fn take(&mut self, queue: usize) -> Result<Option<Self::Taken>, Error>;

    /// Arms the bells, so that a sleep ends once any queue has `bytes` more. Returns whether they are certain to ring.
    fn arm(&mut self, bytes: u32) -> bool;

    /// Cancels [`Queues::arm`].
    fn disarm(&mut self);

    /// Sleeps for at most `longest`.
    fn sleep(&mut self, longest: Duration) -> Result<Woken, Error>;
}

/// Why a sleep ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Woken {
    /// A queue has something.
    Bell,
    /// Something else happened that the caller wants to know about.
    News,
    /// The time is up.
    Time,
}

/// The state of a thread between busy and asleep.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Patience {
    delivery: Delivery,
    /// The queue to check next.
    turn: usize,
    /// Queues left in this round, in which any amount is delivered.
    round: usize,
    /// Whether this round has found anything.
    found: bool,
    /// Whether the doorbells are armed, and the queues were checked since.
    armed: Option<Armed>,
    /// When the next round of batched delivery is due.
    due: Instant,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Armed {
    Fresh,
    Rechecked,
}

impl Patience {
    pub(crate) fn new(delivery: Delivery) -> Self {
        Self { delivery, turn: 0, round: 0, found: true, armed: None, due: Instant::now() }
    }

    pub(crate) fn delivery(&self) -> Delivery {
        self.delivery
    }

    /// Delivers what there is next, without waiting for more.
    pub(crate) fn hurry(&mut self) {
        self.due = Instant::now();
    }

    /// Starts over with different queues.
    pub(crate) fn begin_anew(&mut self) {
        self.armed = None;
    }

    /// Returns the next chunk, waiting until `deadline`. `None`: there was none, a signal arrived, or there is news.
    pub(crate) fn next<Q: Queues>(
        &mut self,
        queues: &mut Q,
        deadline: Instant,
    ) -> Result<Option<Q::Taken>, Error> {
        match self.delivery {
            Delivery::Adaptive => self.adaptive(queues, deadline),
            Delivery::Batched { min_bytes, timeout } => {
                self.batched(queues, deadline, min_bytes.max(1), timeout)
            }
            Delivery::Active => self.active(queues, deadline),
        }
    }

    /// Returns what the next nonempty queue has, without waiting.
    pub(crate) fn rest<Q: Queues>(&mut self, queues: &mut Q) -> Result<Option<Q::Taken>, Error> {
        self.round = queues.count();
        self.round(queues)
    }

    fn adaptive<Q: Queues>(&mut self, queues: &mut Q, deadline: Instant) -> Result<Option<Q::Taken>, Error> {
        loop {
            if let Some(chunk) = self.round(queues)? {
                return Ok(Some(chunk));
            }
            if let Some(chunk) = self.sweep(queues, BATCH)? {
                self.found = true;
                return Ok(Some(chunk));
            }
            if self.found && self.armed.is_none() {
                self.begin_round(queues);
                if !nap(NAP) {
                    return Ok(None);
                }
                continue;
            }
            if self.sleep_until_ready(queues, 1, deadline)? {
                self.begin_round(queues);
                continue;
            }
            return Ok(None);
        }
    }

    fn batched<Q: Queues>(
        &mut self,
        queues: &mut Q,
        deadline: Instant,
        min_bytes: u32,
        timeout: Duration,
    ) -> Result<Option<Q::Taken>, Error> {
        loop {
            if let Some(chunk) = self.round(queues)? {
                return Ok(Some(chunk));
            }
            if let Some(chunk) = self.sweep(queues, min_bytes)? {
                return Ok(Some(chunk));
            }
            if Instant::now() >= self.due {
                self.due = Instant::now() + timeout;
                self.begin_round(queues);
                continue;
            }
            if !self.sleep_until_ready(queues, min_bytes, deadline.min(self.due))?
                && (Instant::now() >= deadline || Instant::now() < self.due)
            {
                return Ok(None);
            }
        }
    }

    fn active<Q: Queues>(&mut self, queues: &mut Q, deadline: Instant) -> Result<Option<Q::Taken>, Error> {
        loop {
            self.begin_round(queues);
            if let Some(chunk) = self.round(queues)? {
                return Ok(Some(chunk));
            }
            if Instant::now() >= deadline {
                return Ok(None);
            }
            std::hint::spin_loop();
        }
    }

    /// Starts a round, in which each queue may deliver any amount, once.
    fn begin_round(&mut self, queues: &impl Queues) {
        self.round = queues.count();
        self.found = false;
    }

    /// Returns what the next queue in this round has.
    fn round<Q: Queues>(&mut self, queues: &mut Q) -> Result<Option<Q::Taken>, Error> {
        while self.round > 0 {
            self.round -= 1;
            if let Some(chunk) = self.take_turn(queues, 1)? {
                self.found = true;
                return Ok(Some(chunk));
            }
        }
        Ok(None)
    }

    /// Returns what the next queue with at least `min_bytes` or a closed chunk has.
    fn sweep<Q: Queues>(&mut self, queues: &mut Q, min_bytes: u32) -> Result<Option<Q::Taken>, Error> {
        for _ in 0..queues.count() {
            if let Some(chunk) = self.take_turn(queues, min_bytes)? {
                return Ok(Some(chunk));
            }
        }
        Ok(None)
    }

    /// Checks the queue whose turn it is, and passes the turn on.
    fn take_turn<Q: Queues>(&mut self, queues: &mut Q, min_bytes: u32) -> Result<Option<Q::Taken>, Error> {
        let queue = self.turn % queues.count();
        self.turn = queue + 1;
        let ready = queues.ready(queue)?;
        if ready.bytes < min_bytes && !ready.closed {
            return Ok(None);
        }
        queues.take(queue)
    }

    /// Sleeps until a queue has `bytes`, or until `deadline`. Returns whether there is something; false also if there
    /// is news.
    fn sleep_until_ready(
        &mut self,
        queues: &mut impl Queues,
        bytes: u32,
        deadline: Instant,
    ) -> Result<bool, Error> {
        if self.armed.is_none() && queues.arm(bytes) {
            self.armed = Some(Armed::Fresh);
        }
        loop {
            for queue in 0..queues.count() {
                let ready = queues.ready(queue)?;
                if ready.bytes >= bytes || ready.closed {
                    self.disarm(queues);
                    return Ok(true);
                }
            }
            let left = deadline.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return Ok(false);
            }
            let sure = self.armed == Some(Armed::Rechecked);
            self.armed = self.armed.map(|_| Armed::Rechecked);
            match queues.sleep(if sure { left } else { left.min(RECHECK) })? {
                Woken::Bell => {
                    self.disarm(queues);
                    return Ok(true);
                }
                Woken::News => return Ok(false),
                Woken::Time => {}
            }
        }
    }

    fn disarm(&mut self, queues: &mut impl Queues) {
        queues.disarm();
        self.armed = None;
    }
}

/// Sleeps. Returns false if a signal ended the sleep early.
fn nap(length: Duration) -> bool {
    matches!(nanosleep(&timespec(length)), NanosleepRelativeResult::Ok)
}

pub(crate) fn timespec(length: Duration) -> Timespec {
    Timespec {
        tv_sec: i64::try_from(length.as_secs()).unwrap_or(i64::MAX),
        tv_nsec: i64::from(length.subsec_nanos()),
    }
}
