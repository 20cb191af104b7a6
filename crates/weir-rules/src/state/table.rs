//! A table with a size, whose entries are over at some time.

use std::hash::Hash;

use foldhash::{HashMap, HashMapExt as _};

/// Entries that are over are looked for this often at most, in nanoseconds: a full table is read as a whole then.
const BETWEEN: u64 = 1_000_000_000;

/// A table.
#[derive(Debug)]
pub(crate) struct Table<K, V> {
    entries: HashMap<K, V>,
    most: usize,
    /// When entries that are over were removed.
    cleared: Option<u64>,
}

impl<K: Eq + Hash, V> Table<K, V> {
    /// Creates a table for `most` entries.
    pub(crate) fn new(most: usize) -> Self {
        Self { entries: HashMap::new(), most, cleared: None }
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    pub(crate) fn get(&mut self, key: &K) -> Option<&mut V> {
        self.entries.get_mut(key)
    }

    /// Returns the entry of a key, which `new` creates; `None` if there is no room. `is_over`: which entries make room.
    pub(crate) fn entry(
        &mut self,
        key: K,
        now: u64,
        is_over: impl Fn(&V) -> bool,
        new: impl FnOnce() -> V,
    ) -> Option<&mut V> {
        if self.entries.len() >= self.most && !self.entries.contains_key(&key) {
            self.clear(now, is_over);
            if self.entries.len() >= self.most {
                return None;
            }
        }
        Some(self.entries.entry(key).or_insert_with(new))
    }

    fn clear(&mut self, now: u64, is_over: impl Fn(&V) -> bool) {
        if self.cleared.is_none_or(|cleared| now.abs_diff(cleared) >= BETWEEN) {
            self.cleared = Some(now);
            self.entries.retain(|_, entry| !is_over(entry));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_full_table_takes_no_more_until_entries_are_over() {
        let mut table = Table::new(2);
        let mut add =
            |key: u32, now: u64, until: u64| table.entry(key, now, |&until| until <= now, || until).copied();
        assert_eq!(add(1, 0, BETWEEN / 2), Some(BETWEEN / 2));
        assert_eq!(add(2, 0, BETWEEN * 9), Some(BETWEEN * 9));
        assert_eq!(add(3, 1, 7), None);
        assert_eq!(add(1, 1, 0), Some(BETWEEN / 2), "it is there already");
        assert_eq!(add(3, BETWEEN * 3 / 4, 7), None, "it was read a moment ago");
        assert_eq!(add(3, BETWEEN * 2, BETWEEN * 9), Some(BETWEEN * 9), "the first is over");
        assert_eq!(add(4, BETWEEN * 4, 7), None);
    }
}
