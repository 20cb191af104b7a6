//! Clocks for the timestamps of records.

use crate::CallError;

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
