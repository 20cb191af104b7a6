//! Timing of delivery: what a thread that takes chunks does between busy and asleep.

use std::time::{Duration, Instant};

use rustix::event::Timespec;
use rustix::thread::{NanosleepRelativeResult, nanosleep};

use super::Ready;
use crate::Error;
use crate::deadline::after;
use crate::live::settings::Delivery;

/// Time between two checks of nearly empty queues with adaptive delivery: short enough to deliver a lone packet within
/// a millisecond, long enough to collect thousands at full load.
const NAP: Duration = Duration::from_micros(250);
/// Bytes of records that are delivered without a nap.
const BATCH: u32 = 128 << 10;
/// How long to sleep before one more check after arming the doorbell (`commit` in crates/weir-bpf/bpf/pool/writer.h).
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

    /// Arms the notifiers, so that a sleep ends once any queue has `bytes` more. Returns whether they are certain to ring.
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
    Notified,
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
    /// Too little is ready; check again at that time. No notifier is armed.
    Nap(Instant),
    /// Nothing is ready; check again when a notifier fires, or at that time.
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
pub(crate) struct WaitStrategy {
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

impl WaitStrategy {
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
                    Woken::Notified => self.rung(queues),
                    Woken::News => return Ok(false),
                    Woken::Time => {}
                }
                Ok(true)
            }
        }
    }

    /// Reacts to a notifier: the next round delivers any amount.
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
                self.due = after(now, timeout);
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

    /// Arms the notifiers for `bytes` in any queue. Returns `None` if a queue has them already, else the time at which to check
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

#[cfg(test)]
mod tests {
    use super::*;

    /// Queues whose notifiers ring only if a test says so.
    #[derive(Default)]
    struct Silent {
        /// Bytes in each queue, and whether its chunk is closed.
        queues: Vec<(u32, bool)>,
        /// What the notifiers are armed for.
        armed: Option<u32>,
        /// Notifiers cannot be relied on.
        unsure: bool,
        /// Arrives in queue 0 while the notifiers are being armed: none rings for it.
        meanwhile: u32,
        /// What ends the next sleep.
        woken: Option<Woken>,
    }

    impl Silent {
        fn with(queues: usize) -> Self {
            Self { queues: vec![(0, false); queues], ..Self::default() }
        }
    }

    impl Queues for Silent {
        type Taken = (usize, u32);

        fn count(&self) -> usize {
            self.queues.len()
        }

        fn ready(&mut self, queue: usize) -> Result<Ready, Error> {
            let (bytes, closed) = self.queues[queue];
            Ok(Ready { bytes, closed })
        }

        fn take(&mut self, queue: usize) -> Result<Option<Self::Taken>, Error> {
            let (bytes, _) = std::mem::take(&mut self.queues[queue]);
            Ok((bytes > 0).then_some((queue, bytes)))
        }

        fn arm(&mut self, bytes: u32) -> bool {
            self.armed = Some(bytes);
            self.queues[0].0 += std::mem::take(&mut self.meanwhile);
            !self.unsure
        }

        fn disarm(&mut self) {
            self.armed = None;
        }

        fn sleep(&mut self, _longest: Duration) -> Result<Woken, Error> {
            Ok(self.woken.take().unwrap_or(Woken::Time))
        }
    }

    /// What a step says, in a form that can be compared.
    fn step(wait_strategy: &mut WaitStrategy, queues: &mut Silent, now: Instant) -> String {
        let since = |time: Instant| format!("{:?}", time - now);
        match wait_strategy.step(queues, now).expect("no error") {
            Step::Taken((queue, bytes)) => format!("{bytes} of {queue}"),
            Step::Spin => "spin".to_owned(),
            Step::Nap(until) => format!("nap {}", since(until)),
            Step::Sleep(until) => {
                until.map_or_else(|| "sleep".to_owned(), |until| format!("sleep {}", since(until)))
            }
            Step::Over => "over".to_owned(),
        }
    }

    /// A strategy that has armed the notifiers and sleeps, and the time.
    fn asleep(queues: &mut Silent) -> (WaitStrategy, Instant) {
        let (mut wait_strategy, now) = (WaitStrategy::new(Delivery::Adaptive), Instant::now());
        assert_eq!(step(&mut wait_strategy, queues, now), "nap 250µs");
        assert_eq!(step(&mut wait_strategy, queues, now + NAP / 2), "nap 125µs");
        assert_eq!(step(&mut wait_strategy, queues, now + NAP), "sleep 1ms");
        (wait_strategy, now + NAP)
    }

    #[test]
    fn a_missed_ring_is_made_up_for_within_a_millisecond() {
        let mut queues = Silent::with(2);
        let (mut wait_strategy, now) = asleep(&mut queues);
        assert_eq!(queues.armed, Some(1));
        // As long as that check is due, a sleep that something else ended does not forget it.
        assert_eq!(step(&mut wait_strategy, &mut queues, now + RECHECK / 4), "sleep 750µs");
        assert!(!wait_strategy.is_at_rest());
        queues.queues[1].0 = 60;
        assert_eq!(step(&mut wait_strategy, &mut queues, now + RECHECK), "60 of 1");
    }

    #[test]
    fn after_one_more_check_notifiers_are_trusted() {
        let mut queues = Silent::with(1);
        let (mut wait_strategy, now) = asleep(&mut queues);
        assert_eq!(step(&mut wait_strategy, &mut queues, now + RECHECK), "sleep");
        assert!(wait_strategy.is_at_rest());
        // What is found without a ring is no reason to arm them again.
        queues.queues[0].0 = BATCH;
        assert_eq!(step(&mut wait_strategy, &mut queues, now + RECHECK), format!("{BATCH} of 0"));
        assert_eq!(step(&mut wait_strategy, &mut queues, now + RECHECK), "sleep");
        queues.queues[0].0 = 60;
        wait_strategy.rung(&mut queues);
        assert_eq!((queues.armed, wait_strategy.is_at_rest()), (None, false));
        assert_eq!(step(&mut wait_strategy, &mut queues, now + RECHECK * 2), "60 of 0");
    }

    #[test]
    fn notifiers_that_may_not_fire_are_never_trusted() {
        let mut queues = Silent { unsure: true, ..Silent::with(1) };
        let (mut wait_strategy, now) = asleep(&mut queues);
        for checks in 1..4 {
            queues.armed = None;
            assert_eq!(step(&mut wait_strategy, &mut queues, now + RECHECK * checks), "sleep 1ms");
            assert_eq!((queues.armed, wait_strategy.is_at_rest()), (Some(1), false));
        }
    }

    #[test]
    fn what_comes_while_notifiers_are_armed_is_taken() {
        let mut queues = Silent::with(1);
        let (mut wait_strategy, now) = (WaitStrategy::new(Delivery::Adaptive), Instant::now());
        assert_eq!(step(&mut wait_strategy, &mut queues, now), "nap 250µs");
        queues.meanwhile = 60;
        assert_eq!(step(&mut wait_strategy, &mut queues, now + NAP), "60 of 0");
        assert_eq!(queues.armed, None);
    }

    #[test]
    fn few_packets_are_awaited_in_a_nap_and_many_are_taken_at_once() {
        let mut queues = Silent::with(2);
        let (mut wait_strategy, now) = asleep(&mut queues);
        queues.queues = vec![(60, false), (60, false)];
        wait_strategy.rung(&mut queues);
        assert_eq!(step(&mut wait_strategy, &mut queues, now), "60 of 0");
        queues.queues[0] = (60, false);
        assert_eq!(step(&mut wait_strategy, &mut queues, now), "60 of 1");
        // Each queue has had its turn in this round.
        assert_eq!(step(&mut wait_strategy, &mut queues, now), "nap 250µs");
        assert_eq!(step(&mut wait_strategy, &mut queues, now + NAP), "60 of 0");
        queues.queues[1] = (BATCH - 1, false);
        assert_eq!(
            step(&mut wait_strategy, &mut queues, now + NAP),
            format!("{} of 1", BATCH - 1),
            "its turn"
        );
        queues.queues[1] = (BATCH - 1, false);
        assert_eq!(step(&mut wait_strategy, &mut queues, now + NAP), "nap 250µs");
        wait_strategy.hurry();
        queues.queues[1] = (BATCH, false);
        assert!(step(&mut wait_strategy, &mut queues, now + NAP).ends_with(" of 1"));
        queues.queues[0] = (1, true);
        wait_strategy.begin_anew();
        assert_eq!(step(&mut wait_strategy, &mut queues, now + NAP), "1 of 0");
    }

    #[test]
    fn a_batch_comes_when_it_is_large_enough_or_its_time_is_up() {
        let timeout = Duration::from_millis(40);
        let mut queues = Silent::with(1);
        let mut wait_strategy = WaitStrategy::new(Delivery::Batched { min_bytes: 1000, timeout });
        let now = wait_strategy.due;
        // The first round is due at once.
        assert_eq!(step(&mut wait_strategy, &mut queues, now), "sleep 1ms");
        assert_eq!(queues.armed, Some(1000));
        queues.queues[0].0 = 999;
        assert_eq!(step(&mut wait_strategy, &mut queues, now + RECHECK), "sleep 39ms");
        queues.queues[0].0 = 1000;
        assert_eq!(step(&mut wait_strategy, &mut queues, now + RECHECK), "1000 of 0");
        queues.queues[0] = (10, true);
        assert_eq!(step(&mut wait_strategy, &mut queues, now + RECHECK), "10 of 0", "its chunk is closed");
        queues.queues[0].0 = 1;
        assert_eq!(step(&mut wait_strategy, &mut queues, now + timeout - RECHECK), "sleep 1ms");
        assert_eq!(step(&mut wait_strategy, &mut queues, now + timeout), "1 of 0");
        queues.queues[0].0 = 1;
        assert_eq!(step(&mut wait_strategy, &mut queues, now + timeout), "sleep 40ms", "due again later");
        wait_strategy.hurry();
        assert_eq!(step(&mut wait_strategy, &mut queues, now + timeout), "1 of 0");
    }

    #[test]
    fn active_delivery_never_sleeps() {
        let mut queues = Silent::with(2);
        let (mut wait_strategy, now) = (WaitStrategy::new(Delivery::Active), Instant::now());
        assert_eq!(step(&mut wait_strategy, &mut queues, now), "spin");
        queues.queues = vec![(1, false), (1, false)];
        let mut taken = [(); 3].map(|()| step(&mut wait_strategy, &mut queues, now));
        taken.sort();
        assert_eq!(taken, ["1 of 0", "1 of 1", "spin"]);
        assert_eq!(queues.armed, None);
    }

    #[test]
    fn a_wait_ends_with_news_and_goes_on_after_a_notifier() {
        let mut queues = Silent::with(1);
        let (mut wait_strategy, _) = asleep(&mut queues);
        let later = Instant::now() + Duration::from_secs(60);
        let mut wait = |woken, deadline| {
            queues.woken = Some(woken);
            let goes_on = wait_strategy.wait(&mut queues, Step::Sleep(None), deadline).expect("no error");
            (goes_on, queues.armed.is_some())
        };
        assert_eq!(wait(Woken::News, later), (false, true));
        assert_eq!(wait(Woken::Time, later), (true, true));
        assert_eq!(wait(Woken::Notified, Instant::now()), (false, true), "the time is up");
        assert_eq!(wait(Woken::Notified, later), (true, false));
        queues.queues[0].0 = 60;
        assert_eq!(wait_strategy.next(&mut queues, later).expect("no error"), Some((0, 60)));
        assert_eq!(wait_strategy.rest(&mut queues).expect("no error"), None);
    }
}
