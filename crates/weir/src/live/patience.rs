//! Timing of delivery: what a thread that takes chunks does between busy and asleep.

use std::time::{Duration, Instant};

use rustix::event::Timespec;
use rustix::thread::{NanosleepRelativeResult, nanosleep};

use crate::Error;
use crate::live::settings::Delivery;
use crate::live::source::Ready;

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

/// The result of one check of the queues.
#[derive(Debug)]
pub(crate) enum Step<T> {
    /// Packets were taken.
    Taken(T),
    /// Nothing is ready; check again at once.
    Spin,
    /// Too little is ready; check again at that time. No bell is armed.
    Nap(Instant),
    /// Nothing is ready; check again when a bell rings, or at that time.
    Sleep(Option<Instant>),
    /// Nothing is left, and nothing more will arrive.
    Over,
}

impl<T> Step<T> {
    /// Limits the wait to `time`.
    pub(crate) fn by(self, time: Option<Instant>) -> Self {
        match (self, time) {
            (Self::Nap(until), Some(time)) => Self::Nap(until.min(time)),
            (Self::Sleep(until), Some(time)) => {
                Self::Sleep(Some(until.map_or(time, |until| until.min(time))))
            }
            (step, _) => step,
        }
    }
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
    /// End of the nap in which few packets may become more.
    nap: Option<Instant>,
    armed: Armed,
    /// When the next round of batched delivery is due.
    due: Instant,
}

/// The state of the doorbells.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Armed {
    No,
    /// Armed, but a ring may be missed: check the queues once more at that time.
    Fresh(Instant),
    /// Armed: anything that arrives rings.
    Surely,
}

impl Patience {
    pub(crate) fn new(delivery: Delivery) -> Self {
        Self { delivery, turn: 0, round: 0, found: true, nap: None, armed: Armed::No, due: Instant::now() }
    }

    pub(crate) fn delivery(&self) -> Delivery {
        self.delivery
    }

    /// Delivers what there is next, without waiting for more.
    pub(crate) fn hurry(&mut self) {
        self.due = Instant::now();
        self.nap = None;
    }

    /// Notes that the caller has taken packets from the queues itself. With adaptive delivery, more are awaited in a nap, so
    /// that not each of them rings.
    pub(crate) fn busy(&mut self, queues: &mut impl Queues, now: Instant) {
        if self.delivery == Delivery::Adaptive {
            self.disarm(queues);
            self.begin_round(queues);
            self.nap = Some(now + NAP);
        }
    }

    /// Returns the end of the nap, if it is not over.
    pub(crate) fn napping(&mut self, now: Instant) -> Option<Instant> {
        self.nap = self.nap.filter(|until| now < *until);
        self.nap
    }

    /// Whether anything that arrives rings, so that no queue has to be checked before.
    pub(crate) fn is_at_rest(&self) -> bool {
        self.armed == Armed::Surely
    }

    /// Starts over with different queues.
    pub(crate) fn begin_anew(&mut self) {
        self.armed = Armed::No;
        self.nap = None;
    }

    /// Returns the next chunk, waiting until `deadline`. `None`: there was none, a signal arrived, or there is news.
    pub(crate) fn next<Q: Queues>(
        &mut self,
        queues: &mut Q,
        deadline: Instant,
    ) -> Result<Option<Q::Taken>, Error> {
        loop {
            match self.step(queues, Instant::now())? {
                Step::Taken(taken) => return Ok(Some(taken)),
                wait => {
                    if !self.wait(queues, wait, deadline)? {
                        return Ok(None);
                    }
                }
            }
        }
    }

    /// Waits as `step` says, but no longer than until `deadline`. Returns whether to check again: false if the time is up,
    /// a signal arrived, or there is news.
    pub(crate) fn wait<Q: Queues>(
        &mut self,
        queues: &mut Q,
        step: Step<Q::Taken>,
        deadline: Instant,
    ) -> Result<bool, Error> {
        let left = |until: Instant| until.saturating_duration_since(Instant::now());
        match step {
            Step::Taken(_) | Step::Over => Ok(false),
            Step::Spin => {
                std::hint::spin_loop();
                Ok(!left(deadline).is_zero())
            }
            Step::Nap(until) => {
                self.nap = None;
                let length = left(until.min(deadline));
                Ok(length.is_zero() || nap(length))
            }
            Step::Sleep(until) => {
                let longest = left(deadline);
                if longest.is_zero() {
                    return Ok(false);
                }
                match queues.sleep(until.map_or(longest, |until| left(until).min(longest)))? {
                    Woken::Bell => self.rung(queues),
                    Woken::News => return Ok(false),
                    Woken::Time => {}
                }
                Ok(true)
            }
        }
    }

    /// Reacts to a bell: the next round delivers any amount.
    pub(crate) fn rung(&mut self, queues: &mut impl Queues) {
        self.disarm(queues);
        if self.delivery == Delivery::Adaptive {
            self.begin_round(queues);
        }
    }

    /// Checks the queues without waiting.
    pub(crate) fn step<Q: Queues>(&mut self, queues: &mut Q, now: Instant) -> Result<Step<Q::Taken>, Error> {
        if let Some(until) = self.napping(now) {
            return Ok(Step::Nap(until));
        }
        match self.delivery {
            Delivery::Adaptive => self.adaptive(queues, now),
            Delivery::Batched { min_bytes, timeout } => self.batched(queues, now, min_bytes.max(1), timeout),
            Delivery::Active => {
                self.begin_round(queues);
                Ok(self.round(queues)?.map_or(Step::Spin, Step::Taken))
            }
        }
    }

    /// Returns what the next nonempty queue has, without waiting.
    pub(crate) fn rest<Q: Queues>(&mut self, queues: &mut Q) -> Result<Option<Q::Taken>, Error> {
        self.round = queues.count();
        self.round(queues)
    }

    fn adaptive<Q: Queues>(&mut self, queues: &mut Q, now: Instant) -> Result<Step<Q::Taken>, Error> {
        loop {
            if let Some(chunk) = self.round(queues)? {
                return Ok(Step::Taken(chunk));
            }
            if let Some(chunk) = self.sweep(queues, BATCH)? {
                self.found = true;
                return Ok(Step::Taken(chunk));
            }
            if self.found && self.armed == Armed::No {
                self.begin_round(queues);
                self.nap = Some(now + NAP);
                return Ok(Step::Nap(now + NAP));
            }
            match self.arm(queues, 1, now)? {
                Some(until) => return Ok(Step::Sleep(until)),
                None => self.begin_round(queues),
            }
        }
    }

    fn batched<Q: Queues>(
        &mut self,
        queues: &mut Q,
        now: Instant,
        min_bytes: u32,
        timeout: Duration,
    ) -> Result<Step<Q::Taken>, Error> {
        loop {
            if let Some(chunk) = self.round(queues)? {
                return Ok(Step::Taken(chunk));
            }
            if let Some(chunk) = self.sweep(queues, min_bytes)? {
                return Ok(Step::Taken(chunk));
            }
            if now >= self.due {
                self.due = now + timeout;
                self.begin_round(queues);
                continue;
            }
            if let Some(until) = self.arm(queues, min_bytes, now)? {
                return Ok(Step::Sleep(until).by(Some(self.due)));
            }
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

    /// Arms the bells for `bytes` in any queue. Returns `None` if a queue has them already, else the time at which to check
    /// again even if none rings.
    fn arm(
        &mut self,
        queues: &mut impl Queues,
        bytes: u32,
        now: Instant,
    ) -> Result<Option<Option<Instant>>, Error> {
        if self.armed == Armed::No && queues.arm(bytes) {
            self.armed = Armed::Fresh(now + RECHECK);
        }
        for queue in 0..queues.count() {
            let ready = queues.ready(queue)?;
            if ready.bytes >= bytes || ready.closed {
                self.disarm(queues);
                return Ok(None);
            }
        }
        Ok(Some(match self.armed {
            Armed::No => Some(now + RECHECK),
            Armed::Fresh(at) if now < at => Some(at),
            Armed::Fresh(_) | Armed::Surely => {
                self.armed = Armed::Surely;
                None
            }
        }))
    }

    fn disarm(&mut self, queues: &mut impl Queues) {
        queues.disarm();
        self.armed = Armed::No;
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
