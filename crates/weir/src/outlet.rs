//! A queue of a capture, where its chunks come out.

use std::sync::Arc;

use crate::Error;
use crate::chunk::{Chunk, Lane};
use crate::source::{Queue, Ready};

/// A queue, and what its chunks have in common.
#[derive(Debug)]
pub(crate) struct Outlet {
    pub(crate) queue: Box<dyn Queue>,
    pub(crate) lane: Arc<Lane>,
}

impl Outlet {
    /// What can be taken.
    pub(crate) fn ready(&mut self) -> Result<Ready, Error> {
        self.queue.ready()
    }

    /// Takes it: delivered.
    pub(crate) fn take(&mut self) -> Result<Option<Chunk>, Error> {
        Ok(self.queue.take()?.map(|part| Chunk::new(part, Arc::clone(&self.lane))))
    }
}
