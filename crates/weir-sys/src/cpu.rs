//! Processors.

use crate::CallError;

/// Processors that may ever be there, which is what per-CPU state must be made for.
///
/// # Errors
///
/// If `/sys/devices/system/cpu/possible` cannot be read.
pub fn possible() -> Result<u32, CallError> {
    const PATH: &str = "/sys/devices/system/cpu/possible";
    let list =
        std::fs::read_to_string(PATH).map_err(|error| CallError::new(format!("read {PATH}"), error))?;
    Ok(highest(&list).map_or(1, |last| last + 1))
}

/// The last number of a list such as `0-3,8-11`.
fn highest(list: &str) -> Option<u32> {
    list.trim().rsplit([',', '-']).next()?.parse().ok()
}

#[cfg(test)]
mod tests {
    #[test]
    fn a_list_ends_with_its_highest() {
        for (list, last) in [("0\n", Some(0)), ("0-1\n", Some(1)), ("0-3,8-11", Some(11)), ("", None)] {
            assert_eq!(super::highest(list), last, "{list}");
        }
    }
}
