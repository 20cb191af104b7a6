//! Progress of reading a file.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// The progress of reading a file, visible to other threads and while items borrow from the reader. The values are
/// independent, so all accesses are relaxed. Only the reader writes them.
#[derive(Debug, Clone)]
pub struct Meter(Arc<Marks>);

#[derive(Debug)]
struct Marks {
    taken: AtomicU64,
    began: AtomicU64,
}

/// No packet yet. As a timestamp this would be in the year 2554.
const NEVER: u64 = u64::MAX;

impl Meter {
    pub(super) fn new() -> Self {
        Self(Arc::new(Marks { taken: AtomicU64::new(0), began: AtomicU64::new(NEVER) }))
    }

    /// Returns the number of bytes read from the file itself, which is slightly ahead of what was returned. For a
    /// compressed file these are compressed bytes.
    pub fn taken(&self) -> u64 {
        self.0.taken.load(Ordering::Relaxed)
    }

    /// Returns the timestamp of the first packet, whether it matched the filter or not, in nanoseconds since the Unix
    /// epoch. `None`: no packet was read yet.
    pub fn began(&self) -> Option<u64> {
        Some(self.0.began.load(Ordering::Relaxed)).filter(|&time| time != NEVER)
    }

    pub(super) fn take(&self, bytes: usize) {
        self.0.taken.fetch_add(bytes as u64, Ordering::Relaxed);
    }

    pub(super) fn begin(&self, time: u64) {
        self.0.began.store(time.min(NEVER - 1), Ordering::Relaxed);
    }
}
