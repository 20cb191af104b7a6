//! One handler.

use std::ops::ControlFlow;
use std::sync::Arc;
use std::time::{Duration, Instant};

use rustix::thread::{CpuSet, sched_setaffinity};
use weir_sys::CallError;

use super::seat::{HandlerState, Seat};
use super::team::{Duties, Team};
use crate::Error;
use crate::builder::Delivery;
use crate::chunk::Chunk;
use crate::patience::{Patience, Queues, Woken};
use crate::source::Ready;

/// Takes chunks from a capture beside others, in a thread of its own: [`crate::Capture::handlers`].
///
/// Dropped, also by a panic, it leaves its queues to the others, and what it holds goes back to the pool.
#[derive(Debug)]
pub struct Handler {
    team: Arc<Team>,
    number: usize,
    patience: Patience,
    duties: Duties,
    begun: bool,
    ended: bool,
}

/// The longest sleep, so that whatever keeps the watcher from its work is outlived.
const LONGEST_SLEEP: Duration = Duration::from_millis(100);

impl Handler {
    pub(super) fn new(team: Arc<Team>, number: usize, delivery: Delivery) -> Self {
        let patience = Patience::new(delivery);
        Self { team, number, patience, duties: Duties::default(), begun: false, ended: false }
    }

    /// Which it is, counted from 0.
    pub fn number(&self) -> usize {
        self.number
    }

    /// The next chunk; waits for one no longer than `wait`. Asking says that the one before is done. `None`: there was
    /// none, or nothing is left of a capture that was stopped ([`is_done`](Self::is_done)). The first call binds the
    /// thread to its processor, if one was asked for.
    ///
    /// # Errors
    ///
    /// A processor on which the thread may not run; shared memory that was overwritten.
    pub fn next(&mut self, wait: Duration) -> Result<Option<Chunk>, Error> {
        self.begin()?;
        self.seat().end();
        let deadline = Instant::now() + wait;
        let (chunk, taken_over) = self.find(deadline)?;
        if let Some(chunk) = &chunk {
            self.seat().begin(chunk.len(), taken_over);
        }
        Ok(chunk)
    }

    /// Whether the capture was stopped and this handler has taken what was left for it.
    pub fn is_done(&self) -> bool {
        self.ended
    }

    /// Calls `work` with each chunk until the capture has been stopped and everything is taken, or until `work` says
    /// [`ControlFlow::Break`]: then this handler leaves.
    ///
    /// # Errors
    ///
    /// Those of [`next`](Self::next).
    pub fn run(mut self, mut work: impl FnMut(Chunk) -> ControlFlow<()>) -> Result<(), Error> {
        while !self.ended {
            if let Some(chunk) = self.next(LONGEST_SLEEP)?
                && work(chunk).is_break()
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
                    CallError::new(format!("run handler {} on processor {processor}", self.number), error)
                })?;
            }
        }
        Ok(())
    }

    /// The next chunk, and whether it is of another's queue.
    fn find(&mut self, deadline: Instant) -> Result<(Option<Chunk>, bool), Error> {
        loop {
            if self.team.has_moved(&self.duties) {
                self.duties = self.team.duties(self.number);
                self.patience.begin_anew();
            }
            // Before its own: the other may be about to lose packets.
            if let Some(desk) = self.team.needy(&self.duties)
                && let Some(chunk) = desk.help()?
            {
                return Ok((Some(chunk), true));
            }
            let mut homes = Homes { team: &self.team, seat: self.number, homes: &self.duties.homes };
            if self.team.is_stopped() {
                let chunk = self.patience.rest(&mut homes)?;
                if chunk.is_some() || self.nothing_is_left()? {
                    self.ended = chunk.is_none();
                    return Ok((chunk, false));
                }
                std::thread::yield_now(); // a buddy has just claimed one of them
                continue;
            }
            if let Some(chunk) = self.patience.next(&mut homes, deadline)? {
                return Ok((Some(chunk), false));
            }
            if Instant::now() >= deadline {
                return Ok((None, false));
            }
        }
    }

    /// Whether nothing is left in this handler's queues, for sure.
    fn nothing_is_left(&self) -> Result<bool, Error> {
        for &home in &self.duties.homes {
            let Some(mut outlet) = self.team.desks[home].outlet.try_claim() else { return Ok(false) };
            if outlet.ready()?.bytes > 0 {
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

/// A handler's own queues. One that somebody else has claimed for a moment looks empty.
struct Homes<'a> {
    team: &'a Team,
    seat: usize,
    homes: &'a [usize],
}

impl Queues for Homes<'_> {
    fn count(&self) -> usize {
        self.homes.len()
    }

    fn ready(&mut self, queue: usize) -> Result<Ready, Error> {
        let outlet = self.team.desks[self.homes[queue]].outlet.try_claim();
        outlet.map_or_else(|| Ok(Ready::default()), |mut outlet| outlet.ready())
    }

    fn take(&mut self, queue: usize) -> Result<Option<Chunk>, Error> {
        let desk = &self.team.desks[self.homes[queue]];
        let Some(mut outlet) = desk.outlet.try_claim() else { return Ok(None) };
        let chunk = outlet.take()?;
        let waiting = outlet.waiting();
        drop(outlet);
        self.team.note(desk, waiting);
        Ok(chunk)
    }

    fn arm(&mut self, bytes: u32) -> bool {
        self.homes.iter().all(|&home| {
            let outlet = self.team.desks[home].outlet.try_claim();
            outlet.map(|mut outlet| outlet.queue.wake_after(bytes)).is_some()
        })
    }

    fn disarm(&mut self) {
        for &home in self.homes {
            if let Some(mut outlet) = self.team.desks[home].outlet.try_claim() {
                outlet.queue.wake_never();
            }
        }
    }

    fn sleep(&mut self, longest: Duration) -> Result<Woken, Error> {
        Ok(self.team.seats[self.seat].sleep(longest.min(LONGEST_SLEEP)))
    }
}
