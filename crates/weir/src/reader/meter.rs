//! How far the reading of a file is.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// How far the reading of a file is, for others than the thread that reads; also while what it was given borrows from the
/// reader. Each number stands for itself, so all accesses are relaxed. The reader writes, all others read.
#[derive(Debug, Clone)]
pub struct Meter(Arc<Marks>);

#[derive(Debug)]
struct Marks {
    taken: AtomicU64,
    began: AtomicU64,
}

/// No packet was met yet. As a time it would be in the year 2554.
const NEVER: u64 = u64::MAX;

impl Meter {
    pub(super) fn new() -> Self {
        Self(Arc::new(Marks { taken: AtomicU64::new(0), began: AtomicU64::new(NEVER) }))
    }

    /// Bytes of the file itself that were read by now, a little ahead of what was given out; of a compressed file the
    /// compressed ones.
    pub fn taken(&self) -> u64 {
        self.0.taken.load(Ordering::Relaxed)
    }

    /// The time stamp of the first packet, whether it was given out or did not match the filter: nanoseconds since the Unix
    /// epoch. `None`: no packet was met yet.
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
