//! Selects the part of a large data set that a test run uses.

use std::env;
use std::io::{self, Write};
use std::time::{SystemTime, UNIX_EPOCH};

/// The share selected by the environment or by the date.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Selection {
    All,
    Of(u64),
}

fn selection() -> Selection {
    const DAY: u64 = 24 * 60 * 60;
    let selection = match env::var("WEIR_SHARE") {
        Ok(all) if all == "all" => Selection::All,
        Ok(number) => Selection::Of(number.parse().expect("WEIR_SHARE is `all` or the number of a day")),
        Err(_) => {
            let now = SystemTime::now().duration_since(UNIX_EPOCH).expect("a clock past 1970");
            Selection::Of(now.as_secs() / DAY)
        }
    };
    if let Selection::Of(day) = selection {
        // Failing tests print it. A closed standard error is not a failure.
        let _ = writeln!(io::stderr(), "a share of the material; to have the same again: WEIR_SHARE={day}");
    }
    selection
}

/// Returns one of `parts` shares of `material`, a different one each day, so that all of it is used within `parts`
/// days.
///
/// `WEIR_SHARE=all` (`make test-all`) selects everything, `WEIR_SHARE=N` the share of day N since 1970.
///
/// # Panics
///
/// Panics if `WEIR_SHARE` has any other value.
pub fn share<T>(parts: u16, material: impl IntoIterator<Item = T>) -> Vec<T> {
    part(selection(), parts, material)
}

fn part<T>(selection: Selection, parts: u16, material: impl IntoIterator<Item = T>) -> Vec<T> {
    let material = material.into_iter();
    match selection {
        Selection::All => material.collect(),
        Selection::Of(day) => {
            let begin = usize::from(u16::try_from(day % u64::from(parts)).expect("less than parts"));
            material.skip(begin).step_by(parts.into()).collect()
        }
    }
}

/// Returns the number of random cases for a property test: `usual`, or twenty times as many with `WEIR_SHARE=all`.
///
/// # Panics
///
/// As [`share`].
pub fn cases(usual: u32) -> u32 {
    match env::var_os("WEIR_SHARE") {
        Some(all) if all == "all" => 20 * usual,
        _ => usual,
    }
}

#[cfg(test)]
mod tests {
    use super::{Selection, part};

    #[test]
    fn as_many_days_as_there_are_shares_have_everything_once() {
        let mut all: Vec<u32> =
            (20_000..20_007).flat_map(|day| part(Selection::Of(day), 7, 0..100)).collect();
        all.sort_unstable();
        assert_eq!(all, Vec::from_iter(0..100));
        assert_eq!(part(Selection::All, 7, 0..100), all);
    }
}
