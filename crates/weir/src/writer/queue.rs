//! The io_uring that writes files.

use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use weir_sys::uring::DiskRing;

use super::write_request::WriteRequest;

/// Maximum number of requests in flight. Linux executes buffered writes to one file one by one, so a few keep it busy;
/// more would only withhold chunks from the pool.
pub(super) const DEPTH: u16 = 4;

/// An io_uring that is used for one file after another.
///
/// It is meant for a process that may no longer create one, since a new one would allow more than writing to open
/// files. While one file uses it, others are written without io_uring.
#[derive(Clone)]
pub struct DiskQueue(Arc<Mutex<Option<DiskRing<Unwritten>>>>);

impl DiskQueue {
    /// Creates the io_uring, if the kernel allows it; otherwise files are written with plain system calls.
    pub fn new() -> Self {
        Self(Arc::new(Mutex::new(DiskRing::new(DEPTH).ok())))
    }

    /// Creates one without an io_uring.
    pub(super) fn none() -> Self {
        Self(Arc::default())
    }

    pub(super) fn lock(&self) -> MutexGuard<'_, Option<DiskRing<Unwritten>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Default for DiskQueue {
    fn default() -> Self {
        Self::new()
    }
}

impl fmt::Debug for DiskQueue {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("DiskQueue").finish_non_exhaustive()
    }
}

/// The part of a request that is not written yet.
pub(super) struct Unwritten {
    pub(super) request: WriteRequest,
    pub(super) from: usize,
    /// How many files had been deleted for room when the write was submitted.
    pub(super) gone: u64,
}

impl AsRef<[u8]> for Unwritten {
    fn as_ref(&self) -> &[u8] {
        &self.request.data.as_ref()[self.from..]
    }
}
