//! The state shared by all handlers of a capture.

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use weir_ring::{FULL, Neediest};

use super::desk::Desk;
use super::plan::{Order, Seating, members};
use super::seat::Seat;
use crate::Error;
use crate::chunk::Chunk;
use crate::live::outlet::Outlet;
use crate::live::wait_strategy::Woken;
use crate::stats::{HandlerState, HandlerStats};

/// The queues and handlers of a capture, and which handlers help each other.
#[derive(Debug)]
pub(crate) struct Team {
    pub(super) desks: Box<[Desk]>,
    pub(super) seats: Box<[Seat]>,
    groups: Box<[Group]>,
    keeps_flows: bool,
    /// Nothing more arrives; the rest is being taken.
    stopped: AtomicBool,
    /// Incremented when a queue gets another handler.
    moves: AtomicUsize,
}

/// Queues whose handlers help each other.
#[derive(Debug)]
struct Group {
    desks: Vec<usize>,
    /// A hint that one of them is, or was just now, too full. Cleared by a handler that finds none.
    alarm: AtomicBool,
}

impl Team {
    /// Seats handlers at `outlets`.
    pub(crate) fn new(outlets: Vec<Outlet>, seating: Seating) -> Self {
        let Seating { processors, groups, threshold, order } = seating;
        let (handlers, queues) = (processors.len(), outlets.len());
        let desk = |(number, outlet): (usize, Outlet)| {
            let group = groups.iter().position(|group| group.contains(&number));
            let members = || group.map_or(1, |group| members(&groups[group], queues, handlers));
            let keeps_flows = (order == Order::Flow).then(members);
            Desk::new(outlet, number % handlers, group, threshold, keeps_flows)
        };
        Self {
            desks: outlets.into_iter().enumerate().map(desk).collect(),
            seats: processors.into_iter().map(Seat::new).collect(),
            groups: groups.into_iter().map(|desks| Group { desks, alarm: AtomicBool::new(false) }).collect(),
            keeps_flows: order == Order::Flow,
            stopped: AtomicBool::new(false),
            moves: AtomicUsize::new(1),
        }
    }

    /// Returns the account of each handler so far.
    pub(crate) fn stats(&self) -> Vec<HandlerStats> {
        self.seats.iter().enumerate().map(|(number, seat)| seat.stats(number)).collect()
    }

    /// Returns whether any handler is still running.
    pub(crate) fn is_manned(&self) -> bool {
        self.seats.iter().any(|seat| seat.is_running())
    }

    /// Signals that nothing more arrives: handlers take the rest, and end.
    pub(crate) fn stop(&self) {
        // Release, paired with the load in `is_stopped`: a thread that sees this sees everything that has arrived.
        self.stopped.store(true, Ordering::Release);
        self.seats.iter().for_each(|seat| seat.ring(Woken::News));
    }

    pub(super) fn is_stopped(&self) -> bool {
        self.stopped.load(Ordering::Acquire)
    }

    /// Returns chunks that no handler has taken, once none is left to do so.
    pub(crate) fn rest(&self) -> Result<Option<Chunk>, Error> {
        if self.is_manned() {
            return Ok(None);
        }
        for mut stock in self.desks.iter().filter_map(Desk::try_claim) {
            if let Some(chunk) = stock.both().0.take()? {
                return Ok(Some(chunk));
            }
        }
        Ok(None)
    }

    /// Returns the queues of handler `seat`, and the groups in which it helps.
    pub(super) fn duties(&self, seat: usize) -> Duties {
        // Acquire, paired with the addition in `leave`.
        let moves = self.moves.load(Ordering::Acquire);
        let at_home = |desk: &usize| self.desks[*desk].home() == seat;
        let homes: Vec<usize> = (0..self.desks.len()).filter(at_home).collect();
        let helps = |group: &usize| {
            seat >= self.desks.len() || homes.iter().any(|&desk| self.desks[desk].group() == Some(*group))
        };
        let groups = (0..self.groups.len()).filter(helps).collect();
        Duties { moves, homes, groups }
    }

    /// Returns whether [`Team::duties`] would return something else now.
    pub(super) fn has_moved(&self, duties: &Duties) -> bool {
        self.moves.load(Ordering::Acquire) != duties.moves
    }

    /// Removes handler `seat`; others take over its queues. If none is left, what was laid out is discarded.
    pub(super) fn leave(&self, seat: usize, state: HandlerState) {
        self.seats[seat].end();
        // Set before claiming any queue: a leaving handler that passes its queue to this one, thinking it is running,
        // has done so by the time this one claims that queue.
        self.seats[seat].set_state(state);
        let mut heir = seat;
        for desk in &self.desks {
            let _claimed = desk.claim();
            let mut others = (1..=self.seats.len()).map(|step| (heir + step) % self.seats.len());
            let Some(other) = others.find(|&other| self.seats[other].is_running()) else {
                desk.abandon();
                continue;
            };
            heir = other;
            if desk.home() == seat {
                desk.set_home(heir);
            }
        }
        // Release, paired with the load in `duties`.
        self.moves.fetch_add(1, Ordering::Release);
        self.seats.iter().filter(|seat| seat.is_running()).for_each(|seat| seat.ring(Woken::News));
    }

    /// Calls others if `waiting` closed chunks at `desk` are too many.
    pub(super) fn note(&self, desk: &Desk, waiting: u32) {
        if let Some(group) = desk.group()
            && desk.is_too_full_with(waiting)
        {
            self.alarm(group);
        }
    }

    /// Calls everyone who helps at `desk`, because there is work.
    pub(super) fn call(&self, desk: &Desk) {
        if let Some(group) = desk.group() {
            self.alarm(group);
        }
    }

    fn alarm(&self, group: usize) {
        self.groups[group].alarm.store(true, Ordering::Relaxed);
        let helps = |number: usize| self.duties_in(number, group);
        for (number, seat) in self.seats.iter().enumerate() {
            if seat.is_asleep() && helps(number) {
                seat.ring(Woken::News);
            }
        }
    }

    fn duties_in(&self, seat: usize, group: usize) -> bool {
        let home = |&desk: &usize| self.desks[desk].home() == seat;
        seat >= self.desks.len() || self.groups[group].desks.iter().any(home)
    }

    /// Returns the queue that needs help most: the fullest one, among the queues of other handlers in `duties`' groups,
    /// that is too full and fuller than all queues of this handler.
    pub(super) fn needy(&self, duties: &Duties) -> Option<&Desk> {
        let mut neediest = Neediest::default();
        for group in duties.groups.iter().map(|&group| &self.groups[group]) {
            if !group.alarm.load(Ordering::Relaxed) {
                continue;
            }
            let mut calm = true;
            for &number in &group.desks {
                let desk = &self.desks[number];
                let fullness = desk.fullness();
                calm &= fullness <= FULL;
                if !duties.homes.contains(&number) {
                    neediest.look(desk, fullness);
                }
            }
            if calm {
                group.alarm.store(false, Ordering::Relaxed);
            }
        }
        neediest.beyond(duties.homes.iter().map(|&home| self.desks[home].fullness()))
    }

    /// Checks all queues for the watcher. Wakes handlers that sleep although there is work, and calls others if a
    /// handler is held up and cannot do so itself.
    pub(super) fn look(&self) {
        for desk in &self.desks {
            let seat = &self.seats[desk.home()];
            if seat.is_asleep()
                && let Some(mut stock) = desk.try_claim()
            {
                // The handler will see the error.
                if stock.both().0.ready().map_or(true, |ready| ready.bytes > 0) {
                    seat.ring(Woken::Notified);
                }
            }
            if desk.group().is_some() {
                let ready = desk.ready_chunks();
                desk.lane().most_ready.fetch_max(ready, Ordering::Relaxed);
                self.note(desk, ready);
            }
        }
    }

    /// Returns whether the order of flows is kept.
    pub(super) fn keeps_flows(&self) -> bool {
        self.keeps_flows
    }

    /// Returns the divided queues in `duties`' groups.
    pub(super) fn divided<'a>(&'a self, duties: &'a Duties) -> impl Iterator<Item = &'a Desk> {
        self.reachable(duties).filter(|desk| desk.is_divided())
    }

    /// Returns all queues in `duties`' groups, and the handler's own.
    pub(super) fn reachable<'a>(&'a self, duties: &'a Duties) -> impl Iterator<Item = &'a Desk> {
        let desks = duties.groups.iter().flat_map(|&group| &self.groups[group].desks);
        let alone = duties.homes.iter().filter(|&&home| self.desks[home].group().is_none());
        desks.chain(alone).map(|&desk| &self.desks[desk])
    }

    /// Returns whether a closed chunk is waiting in one of the handler's own queues that is not divided.
    pub(super) fn has_whole(&self, duties: &Duties) -> bool {
        let mut homes = duties.homes.iter().map(|&home| &self.desks[home]);
        homes.any(|desk| !desk.is_divided() && desk.ready_chunks() > 0)
    }

    /// Returns whether a queue may fill up without notifying.
    pub(super) fn must_be_watched(&self) -> bool {
        !self.groups.is_empty() && self.seats.iter().any(|seat| seat.is_running() && !seat.is_asleep())
    }
}

/// The duties of a handler at the time `moves` was read.
#[derive(Debug, Default)]
pub(super) struct Duties {
    moves: usize,
    pub(super) homes: Vec<usize>,
    groups: Vec<usize>,
}
