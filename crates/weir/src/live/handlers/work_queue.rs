//! A queue, from which handlers take packets.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use weir_ring::{Claim, Claimed, Gauge, Limit, Strands};

use super::layout::{Flows, PARTS};
use super::share::Share;
use crate::Error;
use crate::chunk::{Chunk, Lane};
use crate::live::source::outlet::Outlet;
use crate::live::wait::Ready;

/// A queue, its home handler, and what helpers need.
#[derive(Debug)]
pub(super) struct WorkQueue {
    contents: Claim<Contents>,
    /// The chunks laid out by flow, if the order of flows is kept.
    strands: Option<Strands<Arc<Chunk>>>,
    /// Number of parts that a chunk is handed out in, and roughly how many chunks may be laid out.
    parts: usize,
    /// Whether its flows are divided among handlers; only written under the claim.
    divided: AtomicBool,
    gauge: Gauge,
    lane: Arc<Lane>,
    /// The handler that takes from it as long as that handler runs.
    home: AtomicUsize,
    buddy_group: Option<usize>,
    /// Others help beyond it.
    limit: Limit,
}

/// The part of a queue that has to be claimed.
#[derive(Debug)]
pub(super) struct Contents {
    outlet: Outlet,
    /// Present if the order of flows is kept.
    flows: Option<Flows>,
}

impl Contents {
    /// Returns the queue and its flows.
    pub(super) fn both(&mut self) -> (&mut Outlet, Option<&mut Flows>) {
        (&mut self.outlet, self.flows.as_mut())
    }
}

impl WorkQueue {
    /// Creates a queue whose home is handler `home`. Handlers of `buddy_group` help once more than `threshold` percent of the
    /// chunks that can wait are waiting. `keeps_flows`: how many handlers take from it, if the order of flows is kept.
    pub(super) fn new(
        outlet: Outlet,
        home: usize,
        buddy_group: Option<usize>,
        threshold: u8,
        keeps_flows: Option<usize>,
    ) -> Self {
        let gauge = outlet.gauge().clone();
        let fill = gauge.fill();
        let chunks = fill.free + fill.open + fill.ready + fill.held;
        let lane = Arc::clone(&outlet.lane);
        let flows = keeps_flows.map(|_| Flows::new(lane.link_type));
        Self {
            contents: Claim::new(Contents { outlet, flows }),
            strands: keeps_flows.map(|_| Strands::new()),
            parts: keeps_flows.unwrap_or_default() * PARTS,
            divided: AtomicBool::new(false),
            gauge,
            lane,
            home: AtomicUsize::new(home),
            buddy_group,
            limit: Limit::new(chunks, threshold),
        }
    }

    /// Returns how full the queue is, in thousandths of its limit.
    pub(super) fn fullness(&self) -> u64 {
        self.limit.fullness(self.ready_chunks())
    }

    pub(super) fn home(&self) -> usize {
        self.home.load(Ordering::Relaxed)
    }

    pub(super) fn set_home(&self, handler: usize) {
        self.home.store(handler, Ordering::Relaxed);
    }

    pub(super) fn buddy_group(&self) -> Option<usize> {
        self.buddy_group
    }

    pub(super) fn lane(&self) -> &Lane {
        &self.lane
    }

    /// Returns whether so many waiting chunks are too many, so that others help.
    pub(super) fn is_too_full_with(&self, waiting: u32) -> bool {
        self.limit.is_exceeded_by(waiting)
    }

    /// Returns the number of closed chunks that are waiting.
    pub(super) fn ready_chunks(&self) -> u32 {
        self.gauge.fill().ready
    }

    pub(super) fn is_divided(&self) -> bool {
        self.divided.load(Ordering::Relaxed)
    }

    /// Returns whether the home handler has to wait: for others to finish something, or for a claim to end.
    pub(super) fn is_unsettled(&self) -> bool {
        self.is_divided() || self.try_claim().is_none()
    }

    pub(super) fn strands(&self) -> Option<&Strands<Arc<Chunk>>> {
        self.strands.as_ref()
    }

    /// Number of parts that a chunk is handed out in, and roughly how many chunks may be laid out.
    pub(super) fn parts(&self) -> usize {
        self.parts
    }

    pub(super) fn set_divided(&self, divided: bool) {
        self.divided.store(divided, Ordering::Relaxed);
    }

    pub(super) fn try_claim(&self) -> Option<Claimed<'_, Contents>> {
        self.contents.try_claim()
    }

    /// Waits for the claim: for a handler that leaves and is not in a hurry.
    pub(super) fn claim(&self) -> Claimed<'_, Contents> {
        loop {
            if let Some(contents) = self.contents.try_claim() {
                return contents;
            }
            std::thread::yield_now();
        }
    }

    /// Returns what the home handler can take; nothing if the queue is divided or claimed.
    pub(super) fn ready(&self) -> Result<Ready, Error> {
        match self.try_claim() {
            Some(mut contents) if !self.is_divided() => contents.outlet.ready(),
            _ => Ok(Ready::default()),
        }
    }

    /// Takes a share for the home handler; also returns how many closed chunks were waiting.
    pub(super) fn take(&self) -> Result<(Option<Share>, u32), Error> {
        let Some(mut contents) = self.try_claim() else { return Ok((None, 0)) };
        let (outlet, flows) = contents.both();
        // The queue may have been divided, or emptied, since it was checked.
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

    /// Returns whether nothing is left to do here; `None`: someone has claimed it.
    pub(super) fn is_empty(&self) -> Result<Option<bool>, Error> {
        let Some(mut contents) = self.try_claim() else { return Ok(None) };
        Ok(Some(!self.is_divided() && contents.outlet.ready()?.bytes == 0))
    }

    /// Discards what was laid out, because no handler is left.
    pub(super) fn abandon(&self) {
        for (chunk, left) in self.strands().map(Strands::clear).unwrap_or_default() {
            chunk.discard(left.unwrap_or(chunk.len()) as u64);
        }
    }
}
