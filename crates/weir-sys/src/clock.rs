//! Clocks: of records, and of programs in the kernel.

use rustix::time::{ClockId, clock_gettime};

use crate::CallError;

/// Returns the time by `CLOCK_MONOTONIC`, in nanoseconds.
pub fn monotonic() -> u64 {
    let now = clock_gettime(ClockId::Monotonic);
    let [seconds, nanoseconds] =
        [now.tv_sec, now.tv_nsec].map(|part| u64::try_from(part).unwrap_or_default());
    seconds * 1_000_000_000 + nanoseconds
}

/// Returns by how many seconds `CLOCK_TAI` is ahead of `CLOCK_REALTIME`: 37 if a time daemon has told the kernel,
/// otherwise 0.
///
/// # Errors
///
/// The error of `adjtimex(2)`.
pub fn tai_offset() -> Result<i64, CallError> {
    // SAFETY: all zeros are a valid `timex`, which requests no change.
    let mut timex: libc::timex = unsafe { std::mem::zeroed() };
    // SAFETY: `timex` is writable.
    if unsafe { libc::adjtimex(&raw mut timex) } < 0 {
        return Err(CallError::last("adjtimex"));
    }
    Ok(i64::from(timex.tai))
}

#[cfg(test)]
mod tests {
    #[test]
    fn the_offset_is_a_known_one() {
        assert!((0..100).contains(&super::tai_offset().unwrap()));
    }
}
