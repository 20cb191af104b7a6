//! A queue of a capture, where its chunks come out.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use weir_ring::Gauge;

use crate::Error;
use crate::chunk::{Chunk, Lane};
use crate::source::{Queue, Ready};

/// A queue, and what its chunks have in common.
#[derive(Debug)]
pub(crate) struct Outlet {
    pub(crate) queue: Box<dyn Queue>,
    pub(crate) lane: Arc<Lane>,
    gauge: Gauge,
    waiting: u32,
}

impl Outlet {
    pub(crate) fn new(queue: Box<dyn Queue>, lane: Arc<Lane>) -> Self {
        Self { gauge: queue.gauge(), queue, lane, waiting: 0 }
    }

    pub(crate) fn gauge(&self) -> &Gauge {
        &self.gauge
    }

    /// Closed chunks that waited when one was taken last.
    pub(crate) fn waiting(&self) -> u32 {
        self.waiting
    }

    /// What can be taken.
    pub(crate) fn ready(&mut self) -> Result<Ready, Error> {
        self.queue.ready()
    }

    /// Takes it: delivered.
    pub(crate) fn take(&mut self) -> Result<Option<Chunk>, Error> {
        self.waiting = self.gauge.fill().ready;
        // Relaxed: told for itself.
        self.lane.most_ready.fetch_max(self.waiting, Ordering::Relaxed);
        Ok(self.queue.take()?.map(|part| Chunk::new(part, Arc::clone(&self.lane))))
    }
}
