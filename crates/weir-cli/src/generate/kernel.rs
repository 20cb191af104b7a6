//! Frames that the kernel makes itself.

use std::sync::atomic::{AtomicU64, Ordering};

use weir::send::{LiveFrames, LiveReport};
use weir_traffic::Tables;

use super::schedule::Schedule;
use crate::failure::Failure;
use crate::sending::failure;

/// Sends the frames of the schedule, and returns what the driver has sent.
pub(super) fn send(
    live: &mut LiveFrames,
    tables: &Tables,
    schedule: &mut Schedule,
    passed: &AtomicU64,
) -> (LiveReport, Result<(), Failure>) {
    let sum: u64 = tables.sizes.iter().map(|&size| u64::from(size)).sum();
    #[expect(clippy::cast_precision_loss, reason = "a mean")]
    let mean_bits = sum as f64 * 8.0 / tables.sizes.len() as f64;
    let ran = live.run(0, |made, elapsed| {
        passed.store(made, Ordering::Relaxed);
        schedule.batch(made, elapsed, mean_bits)
    });
    let (report, result) = match ran {
        Ok(report) => (report, Ok(())),
        Err(error) => (LiveReport::of(error.sent), Err(failure(error))),
    };
    schedule.made(report.made);
    (report, result)
}
