//! Processors.

use crate::CallError;

/// The present processors, out of all possible ones.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Processors {
    /// Numbers of the present processors, ascending.
    present: Vec<u32>,
    possible: u32,
}

impl Processors {
    /// Returns the processors that are online now. A hypervisor may announce many more that never come up.
    ///
    /// # Errors
    ///
    /// If `/sys/devices/system/cpu/online` cannot be read.
    pub fn online() -> Result<Self, CallError> {
        Ok(Self { present: numbers(&read("online")?), possible: possible()? })
    }

    /// Creates a set of `present` processors out of `possible` ones.
    ///
    /// # Panics
    ///
    /// If the numbers are not ascending, or not below `possible`.
    pub fn of(present: &[u32], possible: u32) -> Self {
        assert!(
            present.is_sorted_by(|one, next| one < next)
                && present.last().is_none_or(|&last| last < possible)
        );
        Self { present: present.to_vec(), possible }
    }

    /// Returns the number of present processors.
    pub fn count(&self) -> u32 {
        u32::try_from(self.present.len()).expect("their numbers have 32 bits")
    }

    /// Returns the number of possible processors; all processor numbers are below it.
    pub fn possible(&self) -> u32 {
        self.possible
    }

    /// Returns the position of `processor` among the present ones, if it is one of them.
    pub fn place(&self, processor: u32) -> Option<u32> {
        self.present.binary_search(&processor).ok().and_then(|place| u32::try_from(place).ok())
    }
}

/// Returns the number of possible processors, for which per-CPU state must be allocated.
///
/// # Errors
///
/// If `/sys/devices/system/cpu/possible` cannot be read.
pub fn possible() -> Result<u32, CallError> {
    Ok(numbers(&read("possible")?).last().map_or(1, |last| last + 1))
}

fn read(which: &str) -> Result<String, CallError> {
    let path = format!("/sys/devices/system/cpu/{which}");
    std::fs::read_to_string(&path).map_err(|error| CallError::new(format!("read {path}"), error))
}

/// Parses a list of numbers such as `0-3,8-11`.
fn numbers(list: &str) -> Vec<u32> {
    let range = |range: &str| {
        let (first, last) = range.split_once('-').unwrap_or((range, range));
        Some(first.parse().ok()?..=last.parse().ok()?)
    };
    list.trim().split(',').filter_map(range).flatten().collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_list_is_the_numbers_of_its_ranges() {
        for (list, all) in
            [("0\n", &[0][..]), ("0-1\n", &[0, 1]), ("0-2,8-9,11", &[0, 1, 2, 8, 9, 11]), ("", &[])]
        {
            assert_eq!(numbers(list), all, "{list}");
        }
    }

    #[test]
    fn processors_have_their_places_without_gaps() {
        let some = Processors::of(&[0, 2, 3], 240);
        assert_eq!([0, 1, 2, 3, 4].map(|number| some.place(number)), [Some(0), None, Some(1), Some(2), None]);
        assert_eq!((some.count(), some.possible()), (3, 240));
        let online = Processors::online().unwrap();
        assert!((1..=online.possible()).contains(&online.count()));
    }
}
