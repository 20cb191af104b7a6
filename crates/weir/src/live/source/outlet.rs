//! A queue of a capture, from which chunks are taken.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Instant;

use weir_ring::Gauge;

use super::Queue;
use crate::Error;
use crate::chunk::{Chunk, Lane};
use crate::live::wait::Ready;

/// A queue, with the state that its chunks share.
#[derive(Debug)]
pub(crate) struct Outlet {
    pub(crate) queue: Box<dyn Queue>,
    pub(crate) lane: Arc<Lane>,
    gauge: Gauge,
    /// Records taken so far.
    taken: u64,
    waiting: u32,
    /// When `waiting` was updated.
    looked: Instant,
}

impl Outlet {
    pub(crate) fn new(queue: Box<dyn Queue>, lane: Arc<Lane>) -> Self {
        Self { gauge: queue.gauge(), queue, lane, taken: 0, waiting: 0, looked: Instant::now() }
    }

    pub(crate) fn gauge(&self) -> &Gauge {
        &self.gauge
    }

    /// Returns the number of closed chunks that waited when one was last taken.
    pub(crate) fn waiting(&self) -> u32 {
        self.waiting
    }

    /// Returns the number of records taken so far.
    pub(crate) fn taken(&self) -> u64 {
        self.taken
    }

    /// Returns what can be taken.
    pub(crate) fn ready(&mut self) -> Result<Ready, Error> {
        self.queue.ready()
    }

    /// Takes it, and counts it as delivered.
    pub(crate) fn take(&mut self) -> Result<Option<Chunk>, Error> {
        let (waiting, now) = (self.gauge.fill().ready, Instant::now());
        // Assume that they arrived evenly since the previous one was taken.
        let twice_the_mean = u64::from(self.waiting.saturating_sub(1)) + u64::from(waiting);
        let nanoseconds = u64::try_from((now - self.looked).as_nanos()).unwrap_or(u64::MAX);
        // Relaxed: each counter stands for itself.
        self.lane.watched.fetch_add(nanoseconds, Ordering::Relaxed);
        self.lane.waited.fetch_add(twice_the_mean.saturating_mul(nanoseconds) / 2, Ordering::Relaxed);
        self.lane.most_ready.fetch_max(waiting, Ordering::Relaxed);
        (self.waiting, self.looked) = (waiting, now);
        let part = self.queue.take()?;
        self.taken += part.as_ref().map_or(0, |part| part.records().into());
        Ok(part.map(|part| Chunk::new(part, Arc::clone(&self.lane))))
    }
}
