//! Tables, and what the threads do that fill them: each has one.

use std::cmp::Reverse;
use std::mem;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use weir::Share;
use weir::flows::{Counted, Counts, Flow, Rank, Settings, Table, observation};
use weir_service::Budget;

use super::outlet::{self, Outlet};
use crate::failure::Failure;

/// A table that one thread fills and another looks at, now and then.
#[derive(Clone, Debug)]
pub(super) struct Shared(Arc<Mutex<Table>>);

impl Shared {
    pub(super) fn new(settings: &Settings) -> Result<Self, Failure> {
        Ok(Self(Arc::new(Mutex::new(table(settings)?))))
    }

    pub(super) fn lock(&self) -> MutexGuard<'_, Table> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Makes a table.
pub(super) fn table(settings: &Settings) -> Result<Table, Failure> {
    let failed = |_| {
        let failure = format!("cannot make a table of {} flows: not enough memory", settings.flows);
        Failure::new(failure).hint("keep fewer flows: --flows")
    };
    Table::new(settings).map_err(failed)
}

/// Returns what became of the packets in all tables.
pub(super) fn counts(tables: &[Shared]) -> Counts {
    tables.iter().fold(Counts::default(), |mut sum, table| {
        sum += table.lock().counts();
        sum
    })
}

/// The busiest flows that have ended since the last table, which shows them once more.
#[derive(Clone, Debug)]
pub(super) struct Ended(Arc<Mutex<Vec<Flow>>>, usize, Rank);

impl Ended {
    pub(super) fn new(most: usize, rank: Rank) -> Self {
        Self(Arc::default(), most, rank)
    }

    fn lock(&self) -> MutexGuard<'_, Vec<Flow>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Adds flows.
    pub(super) fn add(&self, flows: &[Flow]) {
        /// Flows that are sorted at a time, besides those that are kept.
        const MANY: usize = 10_000;
        let Self(_, most, rank) = *self;
        let mut all = self.lock();
        for flows in flows.chunks(MANY) {
            all.extend_from_slice(flows);
            if all.len() > most.saturating_add(MANY) {
                sort(&mut all, most, rank);
            }
        }
    }

    /// Forgets them.
    pub(super) fn clear(&self) {
        self.lock().clear();
    }
}

fn sort(flows: &mut Vec<Flow>, most: usize, rank: Rank) {
    flows.sort_by_key(|flow| Reverse(flow.rank(rank)));
    flows.truncate(most);
}

/// Returns the busiest flows of all tables, and of those that have ended.
pub(super) fn busiest(tables: &[Shared], ended: &Ended) -> Vec<Flow> {
    let Ended(_, most, rank) = *ended;
    let mut all: Vec<Flow> = tables.iter().flat_map(|table| table.lock().busiest(most, rank)).collect();
    all.extend_from_slice(&ended.lock());
    sort(&mut all, most, rank);
    all
}

/// What a thread does with packets.
#[derive(Debug)]
pub(super) struct Work {
    table: Shared,
    budget: Budget,
    link_types: Arc<[u16]>,
    /// What flows are handed to when they end.
    goals: Goals,
    ended: Vec<Flow>,
    /// Packets taken.
    pub(super) handled: u64,
}

impl Work {
    pub(super) fn new(table: Shared, budget: Budget, link_types: Arc<[u16]>, goals: Goals) -> Self {
        Self { table, budget, link_types, goals, ended: Vec::new(), handled: 0 }
    }

    /// Ends all flows. Nothing waits for this thread any more, so it can wait.
    pub(super) fn end_all(&mut self) {
        self.table.lock().end_all(&mut |flow| self.ended.push(flow));
        self.goals.give(mem::take(&mut self.ended), Outlet::give_patiently);
    }

    /// Adds packets that the kernel has counted.
    pub(super) fn add_counted(&mut self, counted: &[Counted]) {
        let mut table = self.table.lock();
        for counted in counted {
            table.add_counted(counted, &mut |flow| self.ended.push(flow));
        }
        drop(table);
        self.hand_over();
    }

    fn hand_over(&mut self) {
        if !self.ended.is_empty() {
            self.goals.give(mem::take(&mut self.ended), Outlet::give);
        }
    }
}

impl crate::workers::Work for Work {
    fn take(&mut self, mut share: Share) {
        share.keep_first(self.budget.take(share.len()));
        self.handled += share.len() as u64;
        let mut table = self.table.lock();
        let link_types = &self.link_types;
        let seen = share.packets().map(|packet| observation(&packet, link_types[packet.interface as usize]));
        table.add_all(seen, &mut |flow| self.ended.push(flow));
        drop(table);
        self.hand_over();
    }
}

/// What flows are handed to when they end.
#[derive(Clone, Debug)]
pub(super) struct Goals {
    pub(super) outlets: Arc<[Outlet]>,
    /// `None`: no table is shown.
    pub(super) ended: Option<Ended>,
}

impl Goals {
    pub(super) fn give(&self, flows: Vec<Flow>, give: fn(&Outlet, Vec<Flow>)) {
        if let Some(ended) = &self.ended {
            ended.add(&flows);
        }
        outlet::give_all(&self.outlets, flows, give);
    }
}
