//! A queue, laid out for whoever claims it.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use weir_ring::{Claim, Claimed, Gauge, Strands};

use super::share::Share;
use super::split::{Flows, PARTS};
use super::team::Team;
use crate::Error;
use crate::chunk::{Chunk, Lane};
use crate::outlet::Outlet;
use crate::source::Ready;

/// A queue, and who takes from it.
#[derive(Debug)]
pub(super) struct Desk {
    stock: Claim<Stock>,
    /// Where the order of flows is kept: what of it is laid out.
    strands: Option<Strands<Arc<Chunk>>>,
    /// How many parts a chunk is given out in; and about how many chunks may be laid out.
    parts: usize,
    /// Whether its flows are divided among handlers; written under the claim.
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
}

/// The fullness of a queue that is just not too full.
pub(super) const FULL: u64 = 1000;

impl Desk {
    /// A queue at home with handler `home`, and helped by those of `group` once more than `threshold` percent of the
    /// chunks that can wait are waiting. `keeps_flows`: how many handlers keep the order of flows while they take from it.
    pub(super) fn new(
        outlet: Outlet,
        home: usize,
        group: Option<usize>,
        threshold: u8,
        keeps_flows: Option<usize>,
    ) -> Self {
        let gauge = outlet.gauge().clone();
        let fill = gauge.fill();
        // One is being written to, one is in its handler's hands.
        let can_wait = (fill.free + fill.open + fill.ready + fill.held).saturating_sub(2).max(1);
        let lane = Arc::clone(&outlet.lane);
        let flows = keeps_flows.map(|_| Flows::new(lane.link_type));
        Self {
            stock: Claim::new(Stock { outlet, flows }),
            strands: keeps_flows.map(|_| Strands::new()),
            parts: keeps_flows.unwrap_or_default() * PARTS,
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
        self.is_divided() || self.try_claim().is_none()
    }

    pub(super) fn strands(&self) -> Option<&Strands<Arc<Chunk>>> {
        self.strands.as_ref()
    }

    /// How many parts a chunk is given out in; and about how many chunks may be laid out.
    pub(super) fn parts(&self) -> usize {
        self.parts
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

    /// What the home handler can take as it is. Nothing of a queue that is divided, or that somebody has claimed.
    pub(super) fn ready(&self) -> Result<Ready, Error> {
        match self.try_claim() {
            Some(mut stock) if !self.is_divided() => stock.outlet.ready(),
            _ => Ok(Ready::default()),
        }
    }

    /// Takes it; and how many closed chunks waited.
    pub(super) fn take(&self) -> Result<(Option<Share>, u32), Error> {
        let Some(mut stock) = self.try_claim() else { return Ok((None, 0)) };
        let (outlet, flows) = stock.both();
        // It may have been divided, or taken, since it was looked at.
        let lease = self.strands.as_ref().map(Strands::lease);
        if matches!(lease, Some(None)) || self.is_divided() || outlet.ready()?.bytes == 0 {
            return Ok((None, 0));
        }
        if let Some(flows) = flows {
            flows.skip();
        }
        let share = outlet.take()?.map(|chunk| Share::of_chunk(chunk, lease.flatten()));
        Ok((share, outlet.waiting()))
    }

    /// For a handler that helps: a part of it where flows keep their order, else a whole chunk, or what is left of one.
    pub(super) fn help(&self, team: &Team, seat: usize) -> Result<Option<Share>, Error> {
        if self.strands.is_some() {
            return self.part(team, seat);
        }
        let Some(mut stock) = self.try_claim() else { return Ok(None) };
        if self.ready_chunks() <= self.limit || !stock.outlet.ready()?.closed {
            return Ok(None);
        }
        let chunk = stock.outlet.take()?;
        if chunk.is_some() {
            // Relaxed: told for itself.
            self.lane.offloaded.fetch_add(1, Ordering::Relaxed);
        }
        Ok(chunk.map(Share::from))
    }

    /// Whether nobody has to come back for anything; `None`: somebody has it.
    pub(super) fn is_empty(&self) -> Result<Option<bool>, Error> {
        let Some(mut stock) = self.try_claim() else { return Ok(None) };
        Ok(Some(!self.is_divided() && stock.outlet.ready()?.bytes == 0))
    }
}
