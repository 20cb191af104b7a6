//! A single handler.

use std::cmp::Reverse;
use std::ops::ControlFlow;
use std::sync::Arc;
use std::time::{Duration, Instant};

use rustix::thread::{CpuSet, sched_setaffinity};
use weir_sys::CallError;

use super::share::Share;
use super::worker::Worker;
use super::worker_group::{Duties, WorkerGroup};
use crate::Error;
use crate::deadline::after;
use crate::live::settings::Delivery;
use crate::live::wait::Ready;
use crate::live::wait::next::Next;
use crate::live::wait::strategy::{Queues, WaitStrategy, Woken};
use crate::stats::HandlerState;

/// Takes packets from a capture, alongside other handlers and in its own thread: [`crate::Capture::handlers`].
///
/// When a handler is dropped, even by a panic, the others take over its queues and its chunks go back to the pool.
#[derive(Debug)]
pub struct Handler {
    group: Arc<WorkerGroup>,
    number: usize,
    wait_strategy: WaitStrategy,
    duties: Duties,
    begun: bool,
    ended: bool,
}

/// Maximum sleep, so that handlers continue even if the watcher is held up.
const LONGEST_SLEEP: Duration = Duration::from_millis(100);
/// Interval for checking what other handlers have to finish first.
const SOON: Duration = Duration::from_micros(100);

impl Handler {
    /// Returns the handlers of a group.
    pub(crate) fn all(group: &Arc<WorkerGroup>, delivery: Delivery) -> Vec<Self> {
        let handler = |number| Self {
            group: Arc::clone(group),
            number,
            wait_strategy: WaitStrategy::new(delivery),
            duties: Duties::default(),
            begun: false,
            ended: false,
        };
        (0..group.workers.len()).map(handler).collect()
    }

    /// Returns the number of the handler, counted from 0.
    pub fn number(&self) -> usize {
        self.number
    }

    /// Returns the next packets, waiting up to `wait`.
    ///
    /// Calling this also means that the previous share is done. [`Next::Over`]: the capture was stopped, and nothing is left
    /// for this handler. The first call binds the thread to its processor, if one was requested.
    ///
    /// # Errors
    ///
    /// The thread may not run on that processor, or shared memory was overwritten.
    pub fn next(&mut self, wait: Duration) -> Result<Next<Share>, Error> {
        if self.ended {
            return Ok(Next::Over);
        }
        self.begin()?;
        self.worker().end();
        let deadline = after(Instant::now(), wait);
        let (share, taken_over) = self.find(deadline)?;
        Ok(match share {
            Some(share) => {
                self.worker().begin(share.len(), taken_over);
                Next::Taken(share)
            }
            None if self.ended => Next::Over,
            None => Next::NotYet,
        })
    }

    /// Calls `work` with each share until the capture was stopped and everything is taken. If `work` returns
    /// [`ControlFlow::Break`], this handler leaves.
    ///
    /// # Errors
    ///
    /// See [`next`](Self::next).
    pub fn run(mut self, mut work: impl FnMut(Share) -> ControlFlow<()>) -> Result<(), Error> {
        loop {
            match self.next(LONGEST_SLEEP)? {
                Next::Taken(share) => {
                    if work(share).is_break() {
                        return Ok(());
                    }
                }
                Next::NotYet => {}
                Next::Over => return Ok(()),
            }
        }
    }

    fn worker(&self) -> &Worker {
        &self.group.workers[self.number]
    }

    fn begin(&mut self) -> Result<(), Error> {
        if !self.begun {
            self.begun = true;
            if let Some(processor) = self.worker().processor() {
                let mut only = CpuSet::new();
                only.set(processor as usize);
                sched_setaffinity(None, &only).map_err(|error| {
                    CallError::new(format!("pin handler {} to CPU {processor}", self.number), error)
                })?;
            }
        }
        Ok(())
    }

    /// Finds the next share; also returns whether it is from another handler's queue.
    fn find(&mut self, deadline: Instant) -> Result<(Option<Share>, bool), Error> {
        loop {
            if self.group.has_moved(&self.duties) {
                self.duties = self.group.duties(self.number);
                self.wait_strategy.begin_anew();
            }
            // Help before taking from our own queues: the other one may be about to lose packets.
            if let Some(queue) = self.group.needy(&self.duties)
                && let Some(share) = self.group.help(queue, self.number)?
            {
                return Ok((Some(share), true));
            }
            if let Some((share, taken_over)) = self.part()? {
                return Ok((Some(share), taken_over));
            }
            let stopped = self.group.is_stopped();
            let until = if self.may_be_due_soon() { deadline.min(Instant::now() + SOON) } else { deadline };
            let mut homes = Homes { group: &self.group, number: self.number, homes: &self.duties.homes };
            let share = match stopped {
                true => self.wait_strategy.rest(&mut homes)?,
                false => self.wait_strategy.next(&mut homes, until)?,
            };
            if share.is_some() {
                return Ok((share, false));
            }
            if stopped {
                if self.nothing_is_left()? {
                    self.end();
                    return Ok((None, false));
                }
                std::thread::sleep(SOON); // a queue is claimed, or others have to finish first
            }
            if Instant::now() >= deadline {
                return Ok((None, false));
            }
        }
    }

    /// This handler has nothing left to do: nobody waits for it, even if it lives on.
    fn end(&mut self) {
        self.ended = true;
        self.group.leave(self.number, HandlerState::Ended);
    }

    /// Takes a part of the fullest divided queue, unless whole chunks are waiting in our own queues. Also returns
    /// whether the queue is another handler's.
    fn part(&self) -> Result<Option<(Share, bool)>, Error> {
        if !self.group.keeps_flows() || self.group.has_whole(&self.duties) {
            return Ok(None);
        }
        let mut divided: Vec<_> = self.group.divided(&self.duties).collect();
        divided.sort_by_cached_key(|queue| Reverse(queue.fullness()));
        for queue in divided {
            if let Some(share) = self.group.part(queue, self.number)? {
                return Ok(Some((share, queue.home() != self.number)));
            }
        }
        Ok(None)
    }

    /// Returns whether there may be work that no notifier announces.
    fn may_be_due_soon(&self) -> bool {
        self.group.keeps_flows() && self.group.reachable(&self.duties).any(|queue| queue.is_unsettled())
    }

    /// Returns whether certainly nothing is left for this handler to do.
    fn nothing_is_left(&mut self) -> Result<bool, Error> {
        for queue in self.group.reachable(&self.duties) {
            let helped = self.group.keeps_flows() || queue.home() == self.number;
            let Some(is_empty) = queue.is_empty()? else { return Ok(false) };
            if helped && !is_empty {
                return Ok(false);
            }
        }
        Ok(!self.group.has_moved(&self.duties))
    }
}

impl Drop for Handler {
    fn drop(&mut self) {
        if !self.ended {
            let state = if std::thread::panicking() { HandlerState::Panicked } else { HandlerState::Left };
            self.group.leave(self.number, state);
        }
    }
}

/// The queues of a handler. One that is claimed at the moment appears empty.
struct Homes<'a> {
    group: &'a WorkerGroup,
    number: usize,
    homes: &'a [usize],
}

impl Queues for Homes<'_> {
    type Taken = Share;

    fn count(&self) -> usize {
        self.homes.len()
    }

    fn ready(&mut self, queue: usize) -> Result<Ready, Error> {
        self.group.queues[self.homes[queue]].ready()
    }

    fn take(&mut self, queue: usize) -> Result<Option<Share>, Error> {
        let queue = &self.group.queues[self.homes[queue]];
        let (share, waiting) = queue.take()?;
        self.group.note(queue, waiting);
        Ok(share)
    }

    fn arm(&mut self, bytes: u32) -> bool {
        let contents = self.homes.iter().map(|&home| self.group.queues[home].try_claim());
        contents
            .map(|contents| contents.map(|mut contents| contents.both().0.queue.wake_after(bytes)))
            .all(|armed| armed.is_some())
    }

    fn disarm(&mut self) {
        for mut contents in self.homes.iter().filter_map(|&home| self.group.queues[home].try_claim()) {
            contents.both().0.queue.wake_never();
        }
    }

    fn sleep(&mut self, longest: Duration) -> Result<Woken, Error> {
        Ok(self.group.workers[self.number].sleep(longest.min(LONGEST_SLEEP)))
    }
}
