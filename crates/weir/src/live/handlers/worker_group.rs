//! The state shared by all handlers of a capture, each in a worker thread.

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use weir_ring::{FULL, Neediest};

use super::plan::{Assignment, Order, members};
use super::work_queue::WorkQueue;
use super::worker::Worker;
use crate::Error;
use crate::chunk::Chunk;
use crate::live::source::outlet::Outlet;
use crate::live::wait::strategy::Woken;
use crate::stats::{HandlerState, HandlerStats};

/// The queues and handlers of a capture, and which handlers help each other.
#[derive(Debug)]
pub(crate) struct WorkerGroup {
    pub(super) queues: Box<[WorkQueue]>,
    pub(super) workers: Box<[Worker]>,
    buddy_groups: Box<[BuddyGroup]>,
    keeps_flows: bool,
    /// Nothing more arrives; the rest is being taken.
    stopped: AtomicBool,
    /// Incremented when a queue gets another handler.
    moves: AtomicUsize,
}

/// Queues whose handlers help each other.
#[derive(Debug)]
struct BuddyGroup {
    queues: Vec<usize>,
    /// A hint that one of them is, or was just now, too full. Cleared by a handler that finds none.
    alarm: AtomicBool,
}

impl WorkerGroup {
    /// Assigns the queues of `outlets` to handlers.
    pub(crate) fn new(outlets: Vec<Outlet>, assignment: Assignment) -> Self {
        let Assignment { processors, groups, threshold, order } = assignment;
        let (handlers, queues) = (processors.len(), outlets.len());
        let queue = |(number, outlet): (usize, Outlet)| {
            let group = groups.iter().position(|group| group.contains(&number));
            let members = || group.map_or(1, |group| members(&groups[group], queues, handlers));
            let keeps_flows = (order == Order::Flow).then(members);
            WorkQueue::new(outlet, number % handlers, group, threshold, keeps_flows)
        };
        Self {
            queues: outlets.into_iter().enumerate().map(queue).collect(),
            workers: processors.into_iter().map(Worker::new).collect(),
            buddy_groups: groups
                .into_iter()
                .map(|queues| BuddyGroup { queues, alarm: AtomicBool::new(false) })
                .collect(),
            keeps_flows: order == Order::Flow,
            stopped: AtomicBool::new(false),
            moves: AtomicUsize::new(1),
        }
    }

    /// Returns the stats of each handler so far.
    pub(crate) fn stats(&self) -> Vec<HandlerStats> {
        self.workers.iter().enumerate().map(|(number, worker)| worker.stats(number)).collect()
    }

    /// Returns whether any handler is still running.
    pub(crate) fn is_running(&self) -> bool {
        self.workers.iter().any(|worker| worker.is_running())
    }

    /// Signals that nothing more arrives: handlers take the rest, and end.
    pub(crate) fn stop(&self) {
        // Release, paired with the load in `is_stopped`: a thread that sees this sees everything that has arrived.
        self.stopped.store(true, Ordering::Release);
        self.workers.iter().for_each(|worker| worker.ring(Woken::News));
    }

    pub(super) fn is_stopped(&self) -> bool {
        self.stopped.load(Ordering::Acquire)
    }

    /// Returns chunks that no handler has taken, once none is left to do so.
    pub(crate) fn rest(&self) -> Result<Option<Chunk>, Error> {
        if self.is_running() {
            return Ok(None);
        }
        for mut contents in self.queues.iter().filter_map(WorkQueue::try_claim) {
            if let Some(chunk) = contents.both().0.take()? {
                return Ok(Some(chunk));
            }
        }
        Ok(None)
    }

    /// Returns the queues of handler `number`, and the groups in which it helps.
    pub(super) fn duties(&self, number: usize) -> Duties {
        // Acquire, paired with the addition in `leave`.
        let moves = self.moves.load(Ordering::Acquire);
        let at_home = |queue: &usize| self.queues[*queue].home() == number;
        let homes: Vec<usize> = (0..self.queues.len()).filter(at_home).collect();
        let helps = |group: &usize| {
            number >= self.queues.len()
                || homes.iter().any(|&queue| self.queues[queue].buddy_group() == Some(*group))
        };
        let groups = (0..self.buddy_groups.len()).filter(helps).collect();
        Duties { moves, homes, groups }
    }

    /// Returns whether [`WorkerGroup::duties`] would return something else now.
    pub(super) fn has_moved(&self, duties: &Duties) -> bool {
        self.moves.load(Ordering::Acquire) != duties.moves
    }

    /// Removes handler `number`; others take over its queues. If none is left, what was laid out is discarded.
    pub(super) fn leave(&self, number: usize, state: HandlerState) {
        self.workers[number].end();
        // Set before claiming any queue: a leaving handler that passes its queue to this one, thinking it is running,
        // has done so by the time this one claims that queue.
        self.workers[number].set_state(state);
        let mut heir = number;
        for queue in &self.queues {
            let _claimed = queue.claim();
            let mut others = (1..=self.workers.len()).map(|step| (heir + step) % self.workers.len());
            let Some(other) = others.find(|&other| self.workers[other].is_running()) else {
                queue.abandon();
                continue;
            };
            heir = other;
            if queue.home() == number {
                queue.set_home(heir);
            }
        }
        // Release, paired with the load in `duties`.
        self.moves.fetch_add(1, Ordering::Release);
        self.workers.iter().filter(|worker| worker.is_running()).for_each(|worker| worker.ring(Woken::News));
    }

    /// Calls others if `waiting` closed chunks at `queue` are too many.
    pub(super) fn note(&self, queue: &WorkQueue, waiting: u32) {
        if let Some(group) = queue.buddy_group()
            && queue.is_too_full_with(waiting)
        {
            self.alarm(group);
        }
    }

    /// Calls everyone who helps at `queue`, because there is work.
    pub(super) fn call(&self, queue: &WorkQueue) {
        if let Some(group) = queue.buddy_group() {
            self.alarm(group);
        }
    }

    fn alarm(&self, group: usize) {
        self.buddy_groups[group].alarm.store(true, Ordering::Relaxed);
        let helps = |number: usize| self.duties_in(number, group);
        for (number, worker) in self.workers.iter().enumerate() {
            if worker.is_asleep() && helps(number) {
                worker.ring(Woken::News);
            }
        }
    }

    fn duties_in(&self, number: usize, group: usize) -> bool {
        let home = |&queue: &usize| self.queues[queue].home() == number;
        number >= self.queues.len() || self.buddy_groups[group].queues.iter().any(home)
    }

    /// Returns the queue that needs help most: the fullest one, among the queues of other handlers in `duties`' groups,
    /// that is too full and fuller than all queues of this handler.
    pub(super) fn needy(&self, duties: &Duties) -> Option<&WorkQueue> {
        let mut neediest = Neediest::default();
        for group in duties.groups.iter().map(|&group| &self.buddy_groups[group]) {
            if !group.alarm.load(Ordering::Relaxed) {
                continue;
            }
            let mut calm = true;
            for &number in &group.queues {
                let queue = &self.queues[number];
                let fullness = queue.fullness();
                calm &= fullness <= FULL;
                if !duties.homes.contains(&number) {
                    neediest.look(queue, fullness);
                }
            }
            if calm {
                group.alarm.store(false, Ordering::Relaxed);
            }
        }
        neediest.beyond(duties.homes.iter().map(|&home| self.queues[home].fullness()))
    }

    /// Checks all queues for the watcher. Wakes handlers that sleep although there is work, and calls others if a
    /// handler is held up and cannot do so itself.
    pub(super) fn look(&self) {
        for queue in &self.queues {
            let worker = &self.workers[queue.home()];
            if worker.is_asleep()
                && let Some(mut contents) = queue.try_claim()
            {
                // The handler will see the error.
                if contents.both().0.ready().map_or(true, |ready| ready.bytes > 0) {
                    worker.ring(Woken::Notified);
                }
            }
            if queue.buddy_group().is_some() {
                let ready = queue.ready_chunks();
                queue.lane().most_ready.fetch_max(ready, Ordering::Relaxed);
                self.note(queue, ready);
            }
        }
    }

    /// Returns whether the order of flows is kept.
    pub(super) fn keeps_flows(&self) -> bool {
        self.keeps_flows
    }

    /// Returns the divided queues in `duties`' groups.
    pub(super) fn divided<'a>(&'a self, duties: &'a Duties) -> impl Iterator<Item = &'a WorkQueue> {
        self.reachable(duties).filter(|queue| queue.is_divided())
    }

    /// Returns all queues in `duties`' groups, and the handler's own.
    pub(super) fn reachable<'a>(&'a self, duties: &'a Duties) -> impl Iterator<Item = &'a WorkQueue> {
        let queues = duties.groups.iter().flat_map(|&group| &self.buddy_groups[group].queues);
        let alone = duties.homes.iter().filter(|&&home| self.queues[home].buddy_group().is_none());
        queues.chain(alone).map(|&queue| &self.queues[queue])
    }

    /// Returns whether a closed chunk is waiting in one of the handler's own queues that is not divided.
    pub(super) fn has_whole(&self, duties: &Duties) -> bool {
        let mut homes = duties.homes.iter().map(|&home| &self.queues[home]);
        homes.any(|queue| !queue.is_divided() && queue.ready_chunks() > 0)
    }

    /// Returns whether a queue may fill up without notifying.
    pub(super) fn must_be_watched(&self) -> bool {
        !self.buddy_groups.is_empty()
            && self.workers.iter().any(|worker| worker.is_running() && !worker.is_asleep())
    }
}

/// The duties of a handler at the time `moves` was read.
#[derive(Debug, Default)]
pub(super) struct Duties {
    moves: usize,
    pub(super) homes: Vec<usize>,
    groups: Vec<usize>,
}
