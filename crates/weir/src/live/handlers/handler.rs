//! A single handler.

use std::cmp::Reverse;
use std::ops::ControlFlow;
use std::sync::Arc;
use std::time::{Duration, Instant};

use rustix::thread::{CpuSet, sched_setaffinity};
use weir_sys::CallError;

use super::seat::Seat;
use super::share::Share;
use super::team::{Duties, Team};
use crate::Error;
use crate::live::settings::Delivery;
use crate::live::source::Ready;
use crate::live::wait_strategy::{Queues, WaitStrategy, Woken};
use crate::stats::HandlerState;

/// Takes packets from a capture, alongside other handlers and in its own thread: [`crate::Capture::handlers`].
///
/// When a handler is dropped, even by a panic, the others take over its queues and its chunks go back to the pool.
#[derive(Debug)]
pub struct Handler {
    team: Arc<Team>,
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
    /// Returns the handlers of a team.
    pub(crate) fn all(team: &Arc<Team>, delivery: Delivery) -> Vec<Self> {
        let handler = |number| Self {
            team: Arc::clone(team),
            number,
            wait_strategy: WaitStrategy::new(delivery),
            duties: Duties::default(),
            begun: false,
            ended: false,
        };
        (0..team.seats.len()).map(handler).collect()
    }

    /// Returns the number of the handler, counted from 0.
    pub fn number(&self) -> usize {
        self.number
    }

    /// Returns the next packets, waiting up to `wait`.
    ///
    /// Calling this also means that the previous share is done. `None`: there were no packets, or the capture was
    /// stopped and nothing is left ([`is_done`](Self::is_done)). The first call binds the thread to its processor, if
    /// one was requested.
    ///
    /// # Errors
    ///
    /// The thread may not run on that processor, or shared memory was overwritten.
    pub fn next(&mut self, wait: Duration) -> Result<Option<Share>, Error> {
        self.begin()?;
        self.seat().end();
        let deadline = Instant::now() + wait;
        let (share, taken_over) = self.find(deadline)?;
        if let Some(share) = &share {
            self.seat().begin(share.len(), taken_over);
        }
        Ok(share)
    }

    /// Returns whether the capture was stopped and this handler has taken everything left for it.
    pub fn is_done(&self) -> bool {
        self.ended
    }

    /// Calls `work` with each share until the capture was stopped and everything is taken. If `work` returns
    /// [`ControlFlow::Break`], this handler leaves.
    ///
    /// # Errors
    ///
    /// See [`next`](Self::next).
    pub fn run(mut self, mut work: impl FnMut(Share) -> ControlFlow<()>) -> Result<(), Error> {
        while !self.ended {
            if let Some(share) = self.next(LONGEST_SLEEP)?
                && work(share).is_break()
            {
                break;
            }
        }
        Ok(())
    }

    fn seat(&self) -> &Seat {
        &self.team.seats[self.number]
    }

    fn begin(&mut self) -> Result<(), Error> {
        if !self.begun {
            self.begun = true;
            if let Some(processor) = self.seat().processor() {
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
            if self.team.has_moved(&self.duties) {
                self.duties = self.team.duties(self.number);
                self.wait_strategy.begin_anew();
            }
            // Help before taking from our own queues: the other one may be about to lose packets.
            if let Some(desk) = self.team.needy(&self.duties)
                && let Some(share) = self.team.help(desk, self.number)?
            {
                return Ok((Some(share), true));
            }
            if let Some((share, taken_over)) = self.part()? {
                return Ok((Some(share), taken_over));
            }
            let stopped = self.team.is_stopped();
            let until = if self.may_be_due_soon() { deadline.min(Instant::now() + SOON) } else { deadline };
            let mut homes = Homes { team: &self.team, seat: self.number, homes: &self.duties.homes };
            let share = match stopped {
                true => self.wait_strategy.rest(&mut homes)?,
                false => self.wait_strategy.next(&mut homes, until)?,
            };
            if share.is_some() {
                return Ok((share, false));
            }
            if stopped {
                if self.nothing_is_left()? {
                    self.ended = true;
                    return Ok((None, false));
                }
                std::thread::sleep(SOON); // a queue is claimed, or others have to finish first
            }
            if Instant::now() >= deadline {
                return Ok((None, false));
            }
        }
    }

    /// Takes a part of the fullest divided queue, unless whole chunks are waiting in our own queues. Also returns
    /// whether the queue is another handler's.
    fn part(&self) -> Result<Option<(Share, bool)>, Error> {
        if !self.team.keeps_flows() || self.team.has_whole(&self.duties) {
            return Ok(None);
        }
        let mut divided: Vec<_> = self.team.divided(&self.duties).collect();
        divided.sort_by_cached_key(|desk| Reverse(desk.fullness()));
        for desk in divided {
            if let Some(share) = self.team.part(desk, self.number)? {
                return Ok(Some((share, desk.home() != self.number)));
            }
        }
        Ok(None)
    }

    /// Returns whether there may be work that no notifier announces.
    fn may_be_due_soon(&self) -> bool {
        self.team.keeps_flows() && self.team.reachable(&self.duties).any(|desk| desk.is_unsettled())
    }

    /// Returns whether certainly nothing is left for this handler to do.
    fn nothing_is_left(&mut self) -> Result<bool, Error> {
        for desk in self.team.reachable(&self.duties) {
            let helped = self.team.keeps_flows() || desk.home() == self.number;
            let Some(is_empty) = desk.is_empty()? else { return Ok(false) };
            if helped && !is_empty {
                return Ok(false);
            }
        }
        Ok(!self.team.has_moved(&self.duties))
    }
}

impl Drop for Handler {
    fn drop(&mut self) {
        let state = match self.ended {
            true => HandlerState::Ended,
            false if std::thread::panicking() => HandlerState::Panicked,
            false => HandlerState::Left,
        };
        self.team.leave(self.number, state);
    }
}

/// The queues of a handler. One that is claimed at the moment appears empty.
struct Homes<'a> {
    team: &'a Team,
    seat: usize,
    homes: &'a [usize],
}

impl Queues for Homes<'_> {
    type Taken = Share;

    fn count(&self) -> usize {
        self.homes.len()
    }

    fn ready(&mut self, queue: usize) -> Result<Ready, Error> {
        self.team.desks[self.homes[queue]].ready()
    }

    fn take(&mut self, queue: usize) -> Result<Option<Share>, Error> {
        let desk = &self.team.desks[self.homes[queue]];
        let (share, waiting) = desk.take()?;
        self.team.note(desk, waiting);
        Ok(share)
    }

    fn arm(&mut self, bytes: u32) -> bool {
        let stocks = self.homes.iter().map(|&home| self.team.desks[home].try_claim());
        stocks
            .map(|stock| stock.map(|mut stock| stock.both().0.queue.wake_after(bytes)))
            .all(|armed| armed.is_some())
    }

    fn disarm(&mut self) {
        for mut stock in self.homes.iter().filter_map(|&home| self.team.desks[home].try_claim()) {
            stock.both().0.queue.wake_never();
        }
    }

    fn sleep(&mut self, longest: Duration) -> Result<Woken, Error> {
        Ok(self.team.seats[self.seat].sleep(longest.min(LONGEST_SLEEP)))
    }
}
