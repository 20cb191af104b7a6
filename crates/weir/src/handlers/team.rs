//! What all handlers of a capture share.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use weir_ring::{Claim, Gauge};

use super::handler::Handler;
use super::plan::Seating;
use super::seat::{HandlerState, Seat};
use crate::Error;
use crate::account::HandlerAccount;
use crate::builder::Delivery;
use crate::chunk::{Chunk, Lane};
use crate::outlet::Outlet;
use crate::patience::Woken;

/// The queues, who takes from them, and who helps.
#[derive(Debug)]
pub(crate) struct Team {
    pub(super) desks: Box<[Desk]>,
    pub(super) seats: Box<[Seat]>,
    groups: Box<[Group]>,
    /// Nothing arrives any more: what is left is taken.
    stopped: AtomicBool,
    /// Grows when a queue gets another handler.
    moves: AtomicUsize,
}

/// A queue, laid out for whoever claims it.
#[derive(Debug)]
pub(super) struct Desk {
    pub(super) outlet: Claim<Outlet>,
    gauge: Gauge,
    lane: Arc<Lane>,
    /// The handler that takes from it as long as it can.
    home: AtomicUsize,
    group: Option<usize>,
    /// More closed chunks than this, and others help.
    limit: u32,
}

/// Queues whose handlers help one another.
#[derive(Debug)]
struct Group {
    desks: Vec<usize>,
    /// One of them is too full, or was a moment ago. A hint: whoever finds none clears it.
    alarm: AtomicBool,
}

impl Team {
    /// Seats handlers at `outlets`.
    pub(crate) fn new(
        outlets: Vec<Outlet>,
        seating: Seating,
        delivery: Delivery,
    ) -> (Arc<Self>, Vec<Handler>) {
        let Seating { processors, groups, threshold } = seating;
        let handlers = processors.len();
        let desk = |(number, outlet): (usize, Outlet)| {
            let gauge = outlet.gauge().clone();
            let fill = gauge.fill();
            // One is being written to, one is in its handler's hands.
            let can_wait = (fill.free + fill.open + fill.ready + fill.held).saturating_sub(2).max(1);
            Desk {
                lane: Arc::clone(&outlet.lane),
                outlet: Claim::new(outlet),
                gauge,
                home: AtomicUsize::new(number % handlers),
                group: groups.iter().position(|group| group.contains(&number)),
                limit: can_wait * u32::from(threshold) / 100,
            }
        };
        let team = Arc::new(Self {
            desks: outlets.into_iter().enumerate().map(desk).collect(),
            seats: processors.into_iter().map(Seat::new).collect(),
            groups: groups.into_iter().map(|desks| Group { desks, alarm: AtomicBool::new(false) }).collect(),
            stopped: AtomicBool::new(false),
            moves: AtomicUsize::new(1),
        });
        let handlers =
            (0..handlers).map(|number| Handler::new(Arc::clone(&team), number, delivery)).collect();
        (team, handlers)
    }

    /// What became of each handler so far.
    pub(crate) fn account(&self) -> Vec<HandlerAccount> {
        self.seats.iter().enumerate().map(|(number, seat)| seat.account(number)).collect()
    }

    /// Whether anybody still takes chunks.
    pub(crate) fn is_manned(&self) -> bool {
        self.seats.iter().any(Seat::is_running)
    }

    /// Nothing arrives any more: handlers take what is left, and end.
    pub(crate) fn stop(&self) {
        // Release, with the load in `is_stopped`: who sees it sees all that has arrived.
        self.stopped.store(true, Ordering::Release);
        self.seats.iter().for_each(|seat| seat.ring(Woken::News));
    }

    pub(super) fn is_stopped(&self) -> bool {
        self.stopped.load(Ordering::Acquire)
    }

    /// What no handler has taken, once none is left to take it.
    pub(crate) fn rest(&self) -> Result<Option<Chunk>, Error> {
        if self.is_manned() {
            return Ok(None);
        }
        for mut outlet in self.desks.iter().filter_map(|desk| desk.outlet.try_claim()) {
            if let Some(chunk) = outlet.take()? {
                return Ok(Some(chunk));
            }
        }
        Ok(None)
    }

    /// The queues of handler `seat`, and the groups in which it helps; with a number that grows when they change.
    pub(super) fn duties(&self, seat: usize) -> Duties {
        // Acquire, with the addition in `leave`.
        let moves = self.moves.load(Ordering::Acquire);
        let at_home = |desk: &usize| self.desks[*desk].home.load(Ordering::Relaxed) == seat;
        let homes: Vec<usize> = (0..self.desks.len()).filter(at_home).collect();
        let helps = |group: &usize| {
            seat >= self.desks.len() || homes.iter().any(|&desk| self.desks[desk].group == Some(*group))
        };
        let groups = (0..self.groups.len()).filter(helps).collect();
        Duties { moves, homes, groups }
    }

    /// Whether [`Team::duties`] would say something else now.
    pub(super) fn has_moved(&self, duties: &Duties) -> bool {
        self.moves.load(Ordering::Acquire) != duties.moves
    }

    /// A handler goes: its queues get another one.
    pub(super) fn leave(&self, seat: usize, state: HandlerState) {
        self.seats[seat].end();
        self.seats[seat].set_state(state);
        let mut next = seat;
        for desk in self.desks.iter().filter(|desk| desk.home.load(Ordering::Relaxed) == seat) {
            let mut after = (1..=self.seats.len()).map(|step| (next + step) % self.seats.len());
            let Some(heir) = after.find(|&other| self.seats[other].is_running()) else { return };
            desk.home.store(heir, Ordering::Relaxed);
            next = heir;
        }
        // Release, with the load in `duties`.
        self.moves.fetch_add(1, Ordering::Release);
        self.seats.iter().filter(|seat| seat.is_running()).for_each(|seat| seat.ring(Woken::News));
    }

    /// The handler at `desk` has seen it filled so far: if that is too far, others are called.
    pub(super) fn note(&self, desk: &Desk, waiting: u32) {
        if let Some(group) = desk.group
            && waiting > desk.limit
        {
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
        let home = |&desk: &usize| self.desks[desk].home.load(Ordering::Relaxed) == seat;
        seat >= self.desks.len() || self.groups[group].desks.iter().any(home)
    }

    /// The queue that needs help most, among those of `duties`' groups that are somebody else's: the fullest of those that
    /// are too full, and fuller than all that the handler has itself.
    pub(super) fn needy(&self, duties: &Duties) -> Option<&Desk> {
        let mut neediest: Option<(&Desk, u64)> = None;
        for group in duties.groups.iter().map(|&group| &self.groups[group]) {
            if !group.alarm.load(Ordering::Relaxed) {
                continue;
            }
            let mut calm = true;
            for &number in &group.desks {
                let desk = &self.desks[number];
                let fullness = desk.fullness();
                calm &= fullness <= FULL;
                let more = neediest.is_none_or(|(_, most)| fullness > most);
                if fullness > FULL && more && !duties.homes.contains(&number) {
                    neediest = Some((desk, fullness));
                }
            }
            if calm {
                group.alarm.store(false, Ordering::Relaxed);
            }
        }
        let (desk, fullness) = neediest?;
        let own = duties.homes.iter().map(|&home| self.desks[home].fullness()).max();
        (own.unwrap_or(0) < fullness).then_some(desk)
    }

    /// The watcher's look: wakes those who sleep beside a queue that has something, and calls help where a handler is held
    /// up and cannot.
    pub(super) fn look(&self) {
        for desk in &self.desks {
            let seat = &self.seats[desk.home.load(Ordering::Relaxed)];
            if seat.is_asleep()
                && let Some(mut outlet) = desk.outlet.try_claim()
            {
                // An error is for the handler to meet.
                if outlet.ready().is_err() || outlet.ready().is_ok_and(|ready| ready.bytes > 0) {
                    seat.ring(Woken::Bell);
                }
            }
            if desk.group.is_some() {
                let ready = desk.gauge.fill().ready;
                desk.lane.most_ready.fetch_max(ready, Ordering::Relaxed);
                self.note(desk, ready);
            }
        }
    }

    /// Whether a queue may fill without anybody's being rung.
    pub(super) fn must_be_watched(&self) -> bool {
        !self.groups.is_empty() && self.seats.iter().any(|seat| seat.is_running() && !seat.is_asleep())
    }
}

/// What a handler has to do, as it was when `moves` was read.
#[derive(Debug, Default)]
pub(super) struct Duties {
    moves: usize,
    pub(super) homes: Vec<usize>,
    groups: Vec<usize>,
}

/// The fullness of a queue that is just not too full.
const FULL: u64 = 1000;

impl Desk {
    /// How full it is, in thousandths of what is not yet too full.
    fn fullness(&self) -> u64 {
        let (ready, limit) = (u64::from(self.gauge.fill().ready), u64::from(self.limit));
        match ready.checked_sub(limit + 1) {
            Some(more) => FULL + 1 + more * FULL / limit.max(1),
            None => ready * FULL / limit.max(1),
        }
    }

    /// Takes a whole chunk, or what is left of one, for a handler that helps.
    pub(super) fn help(&self) -> Result<Option<Chunk>, Error> {
        let Some(mut outlet) = self.outlet.try_claim() else { return Ok(None) };
        if self.gauge.fill().ready <= self.limit || !outlet.ready()?.closed {
            return Ok(None);
        }
        let chunk = outlet.take()?;
        if chunk.is_some() {
            // Relaxed: told for itself.
            self.lane.offloaded.fetch_add(1, Ordering::Relaxed);
        }
        Ok(chunk)
    }
}
