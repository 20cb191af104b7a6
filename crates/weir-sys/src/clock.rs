//! Clocks that records are stamped with.

use crate::CallError;

/// Seconds by which `CLOCK_TAI` is ahead of `CLOCK_REALTIME`: 37 where a time daemon has told the kernel, else 0.
///
/// # Errors
///
/// What `adjtimex(2)` says.
pub fn tai_offset() -> Result<i64, CallError> {
    // SAFETY: all zeros are a valid `timex`, and mean: read only.
    let mut timex: libc::timex = unsafe { std::mem::zeroed() };
    // SAFETY: `timex` is valid for the call to write to.
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
