//! Tables, and the threads that fill them: one table for each.

use std::mem;
use std::ops::ControlFlow;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;

use weir::flows::{Counts, Flow, Rank, Settings, Table, observation};
use weir::{Capture, Plan, Share};
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
        let failure = format!("cannot make a table of {} flows: there is not so much memory", settings.flows);
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

/// Returns the busiest flows of all tables.
pub(super) fn busiest(tables: &[Shared], most: usize, rank: Rank) -> Vec<Flow> {
    let mut all: Vec<Flow> = tables.iter().flat_map(|table| table.lock().busiest(most, rank)).collect();
    all.sort_by_key(|flow| std::cmp::Reverse(flow.rank(rank)));
    all.truncate(most);
    all
}

/// What a thread does with packets.
#[derive(Debug)]
pub(super) struct Work {
    pub(super) table: Shared,
    budget: Budget,
    link_types: Arc<[u16]>,
    /// None: flows are only looked at.
    outlets: Arc<[Outlet]>,
    ended: Vec<Flow>,
    /// Packets taken.
    pub(super) handled: u64,
}

impl Work {
    pub(super) fn new(table: Shared, budget: Budget, link_types: Arc<[u16]>, outlets: Arc<[Outlet]>) -> Self {
        Self { table, budget, link_types, outlets, ended: Vec::new(), handled: 0 }
    }

    pub(super) fn take(&mut self, mut share: Share) {
        share.keep_first(self.budget.take(share.len()));
        self.handled += share.len() as u64;
        let mut table = self.table.lock();
        for packet in share.packets() {
            let link_type = self.link_types[packet.interface as usize];
            table.add(&observation(&packet, link_type), &mut |flow| self.ended.push(flow));
        }
        drop(table);
        self.hand_over();
    }

    /// Ends all flows.
    pub(super) fn end_all(&mut self) {
        self.table.lock().end_all(&mut |flow| self.ended.push(flow));
        self.hand_over();
    }

    fn hand_over(&mut self) {
        if !self.ended.is_empty() {
            outlet::give_all(&self.outlets, mem::take(&mut self.ended), Outlet::give);
        }
    }
}

/// The threads of `--handlers`.
#[derive(Debug)]
pub(super) struct Workers(Vec<JoinHandle<Result<Work, weir::Error>>>);

impl Workers {
    /// Starts a thread for each handler of `plan`.
    pub(super) fn start(
        capture: &mut Capture,
        plan: &Plan,
        mut work: impl FnMut() -> Result<Work, Failure>,
    ) -> Result<Self, Failure> {
        let mut threads = Vec::new();
        for handler in capture.handlers(plan)? {
            let mut work = work()?;
            let name = format!("weir-handler-{}", handler.number());
            let thread = weir_sys::thread::spawn_deaf(&name, move || {
                handler.run(|share| {
                    work.take(share);
                    ControlFlow::Continue(())
                })?;
                Ok(work)
            });
            let failed = |error| Failure::new(format_args!("cannot start a thread for --handlers: {error}"));
            threads.push(thread.map_err(failed)?);
        }
        Ok(Self(threads))
    }

    /// Waits until all remaining packets are taken. Returns what the threads had, and the first error.
    pub(super) fn join(self) -> (Vec<Work>, Result<(), Failure>) {
        let (mut done, mut result) = (Vec::new(), Ok(()));
        for (number, thread) in self.0.into_iter().enumerate() {
            match thread.join() {
                Ok(Ok(work)) => done.push(work),
                Ok(Err(error)) => result = result.and_then(|()| Err(error.into())),
                Err(_) => {
                    let what = Failure::new(format_args!("handler {number} panicked: its flows are missing"));
                    result = result.and(Err(what));
                }
            }
        }
        (done, result)
    }
}
