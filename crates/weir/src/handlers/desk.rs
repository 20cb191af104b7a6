//! A queue, laid out for whoever claims it.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use weir_ring::{Claim, Claimed, Gauge};

use super::plan::Order;
use super::share::Share;
use super::split::Flows;
use crate::Error;
use crate::chunk::{Chunk, Lane};
use crate::outlet::Outlet;
use crate::source::Ready;

/// A queue, and who takes from it.
#[derive(Debug)]
pub(super) struct Desk {
    number: usize,
    stock: Claim<Stock>,
    /// Whether its flows are divided among handlers, or were a moment ago; written under the claim.
    divided: AtomicBool,
    gauge: Gauge,
    lane: Arc<Lane>,
    /// The handler that takes from it as long as it can.
    home: AtomicUsize,
    group: Option<usize>,
    /// More closed chunks than this, and others help.
    limit: u32,
}

/// What is claimed.
#[derive(Debug)]
pub(super) struct Stock {
    outlet: Outlet,
    /// Where the order of flows is kept.
    flows: Option<Flows>,
}

impl Stock {
    /// The queue, and what is known of its flows.
    pub(super) fn both(&mut self) -> (&mut Outlet, Option<&mut Flows>) {
        (&mut self.outlet, self.flows.as_mut())
    }

    /// What the home handler can take.
    pub(super) fn ready(&mut self) -> Result<Ready, Error> {
        if self.flows.as_ref().is_none_or(Flows::is_whole) {
            self.outlet.ready()
        } else {
            Ok(Ready::default())
        }
    }

    /// Takes it; and how many closed chunks waited.
    pub(super) fn take(&mut self) -> Result<(Option<Share>, u32), Error> {
        let chunk = self.outlet.take()?;
        let share = chunk.map(|chunk| match &mut self.flows {
            Some(flows) => Share::of_chunk(chunk, flows.turn()),
            None => chunk.into(),
        });
        Ok((share, self.outlet.waiting()))
    }

    /// Whether nobody has to come back for anything.
    pub(super) fn is_empty(&mut self) -> Result<bool, Error> {
        Ok(!self.flows.as_ref().is_some_and(Flows::is_divided) && self.outlet.ready()?.bytes == 0)
    }
}

/// The fullness of a queue that is just not too full.
pub(super) const FULL: u64 = 1000;

impl Desk {
    /// Queue `number`, at home with handler `home`, and helped by those of `group` once more than `threshold` percent of the
    /// chunks that can wait are waiting.
    pub(super) fn new(
        number: usize,
        outlet: Outlet,
        home: usize,
        group: Option<usize>,
        threshold: u8,
        order: Order,
    ) -> Self {
        let gauge = outlet.gauge().clone();
        let fill = gauge.fill();
        // One is being written to, one is in its handler's hands.
        let can_wait = (fill.free + fill.open + fill.ready + fill.held).saturating_sub(2).max(1);
        let lane = Arc::clone(&outlet.lane);
        let flows = (order == Order::Flow).then(|| Flows::new(lane.link_type));
        Self {
            number,
            stock: Claim::new(Stock { outlet, flows }),
            divided: AtomicBool::new(false),
            gauge,
            lane,
            home: AtomicUsize::new(home),
            group,
            limit: can_wait * u32::from(threshold) / 100,
        }
    }

    /// How full it is, in thousandths of what is not yet too full.
    pub(super) fn fullness(&self) -> u64 {
        let (ready, limit) = (u64::from(self.gauge.fill().ready), u64::from(self.limit));
        match ready.checked_sub(limit + 1) {
            Some(more) => FULL + 1 + more * FULL / limit.max(1),
            None => ready * FULL / limit.max(1),
        }
    }

    pub(super) fn number(&self) -> usize {
        self.number
    }

    pub(super) fn home(&self) -> usize {
        self.home.load(Ordering::Relaxed)
    }

    pub(super) fn set_home(&self, handler: usize) {
        self.home.store(handler, Ordering::Relaxed);
    }

    pub(super) fn group(&self) -> Option<usize> {
        self.group
    }

    pub(super) fn lane(&self) -> &Lane {
        &self.lane
    }

    /// More closed chunks than this, and others help.
    pub(super) fn limit(&self) -> u32 {
        self.limit
    }

    /// Closed chunks that wait.
    pub(super) fn ready_chunks(&self) -> u32 {
        self.gauge.fill().ready
    }

    pub(super) fn is_divided(&self) -> bool {
        self.divided.load(Ordering::Relaxed)
    }

    /// Whether others have to finish something before its home handler may go on, or somebody has it.
    pub(super) fn is_unsettled(&self) -> bool {
        self.try_claim().is_none_or(|stock| !stock.flows.as_ref().is_none_or(Flows::is_whole))
    }

    pub(super) fn set_divided(&self, divided: bool) {
        self.divided.store(divided, Ordering::Relaxed);
    }

    pub(super) fn try_claim(&self) -> Option<Claimed<'_, Stock>> {
        self.stock.try_claim()
    }

    /// For a handler that goes, and has time.
    pub(super) fn claim(&self) -> Claimed<'_, Stock> {
        loop {
            if let Some(stock) = self.stock.try_claim() {
                return stock;
            }
            std::thread::yield_now();
        }
    }

    /// Takes a whole chunk, or what is left of one, for a handler that helps.
    pub(super) fn help(&self) -> Result<Option<Chunk>, Error> {
        let Some(mut stock) = self.try_claim() else { return Ok(None) };
        if self.ready_chunks() <= self.limit || !stock.outlet.ready()?.closed {
            return Ok(None);
        }
        let chunk = stock.outlet.take()?;
        if chunk.is_some() {
            // Relaxed: told for itself.
            self.lane.offloaded.fetch_add(1, Ordering::Relaxed);
        }
        Ok(chunk)
    }
}
