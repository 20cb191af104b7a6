//! Watching a capture from other threads.

use std::sync::Arc;

use super::interfaces::Shared;
use crate::Error;
use crate::live::interface::event::{Event, Heard};
use crate::stats::CaptureStats;

/// Reads a capture's counters and events from any thread; from [`crate::Capture::observer`].
///
/// It shares a lock with the capturing thread, which takes it once a second and for events, but never for a packet. It keeps
/// nothing open: once the capture is dropped, it returns the last account.
#[derive(Clone, Debug)]
pub struct Observer {
    shared: Arc<Shared>,
    heard: Heard,
}

impl Observer {
    pub(crate) fn new(shared: &Arc<Shared>) -> Self {
        Self { shared: Arc::clone(shared), heard: Heard::default() }
    }

    /// Returns the counters, like [`crate::Capture::stats`].
    ///
    /// # Errors
    ///
    /// The kernel does not report the devices' counters.
    pub fn stats(&self) -> Result<CaptureStats, Error> {
        self.shared.stats()
    }

    /// Returns the events since this observer's last call, at most the latest thousand. The capturing thread detects them.
    /// A clone continues where its original was.
    pub fn events(&mut self) -> Vec<Event> {
        self.shared.events(&mut self.heard)
    }
}
