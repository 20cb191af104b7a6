//! Points in time, however far away.

use std::time::{Duration, Instant};

/// The wait if its end does not fit an [`Instant`].
const AGES: Duration = Duration::from_secs(1 << 32);

/// Returns the end of a `wait` that begins at `start`. [`Duration::MAX`] ends in ages, not in a panic.
pub(crate) fn after(start: Instant, wait: Duration) -> Instant {
    start.checked_add(wait).unwrap_or_else(|| start + AGES)
}
