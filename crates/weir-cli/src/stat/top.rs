//! The busiest keys.

use std::collections::HashMap;

use clap::ValueEnum;
use serde_json::Value;
use weir::statistics::{Counts, Key, KeyField, Reading};

use crate::protocol;

/// What makes a key busy.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub(super) enum Busiest {
    /// The most packets first.
    #[default]
    Packets,
    /// The most bytes first.
    Bytes,
}

/// The keys that are shown.
#[derive(Clone, Copy, Debug)]
pub(super) struct Choice {
    pub(super) most: usize,
    pub(super) by: Busiest,
}

/// What grew from one reading to the next.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Grown {
    /// The growth.
    pub(super) by: Counts,
    /// Since the start.
    pub(super) to: Counts,
}

/// The busiest keys of an interval, busiest first. With the rest and the others they are all packets counted by key.
#[derive(Debug, Default)]
pub(super) struct Top {
    pub(super) keys: Vec<(Key, Grown)>,
    /// All other keys.
    pub(super) rest: Grown,
    /// Packets whose key had no room.
    pub(super) others: Grown,
}

impl Grown {
    pub(super) fn between(before: Counts, now: Counts) -> Self {
        Self { by: now - before, to: now }
    }
}

impl Choice {
    /// Finds the busiest keys between two readings. Keys that nothing was counted for are not among them.
    pub(super) fn top(self, before: &Reading, now: &Reading) -> Top {
        let known: HashMap<Key, Counts> = before.keys.iter().map(|one| (one.key, one.counts)).collect();
        let grown = |key| known.get(key).copied().unwrap_or_default();
        let all = now.keys.iter().map(|one| (one.key, Grown::between(grown(&one.key), one.counts)));
        let (mut keys, idle): (Vec<_>, Vec<_>) = all.partition(|(_, grown)| grown.by.total().packets > 0);
        let rank = |(key, grown): &(Key, Grown)| {
            let total = grown.by.total();
            let amount = match self.by {
                Busiest::Packets => total.packets,
                Busiest::Bytes => total.bytes,
            };
            // Of equally busy ones, the same come first each time.
            (std::cmp::Reverse(amount), *key)
        };
        keys.sort_unstable_by_key(rank);
        let rest = keys.split_off(self.most.min(keys.len()));
        let sum = |of: fn(&Grown) -> Counts| rest.iter().chain(&idle).map(|(_, grown)| of(grown)).sum();
        Top {
            keys,
            rest: Grown { by: sum(|grown| grown.by), to: sum(|grown| grown.to) },
            others: Grown::between(before.others, now.others),
        }
    }
}

/// Returns a field of a key for people; `-` if the packets lack it.
pub(super) fn shown(key: &Key, field: KeyField) -> String {
    let name = match field {
        KeyField::Protocol => key.protocol.and_then(protocol::name).map(str::to_owned),
        _ => None,
    };
    name.unwrap_or_else(|| plain(key, field))
}

/// Returns a field of a key for programs; `-` if the packets lack it.
pub(super) fn plain(key: &Key, field: KeyField) -> String {
    key.field(field).unwrap_or_else(|| "-".to_owned())
}

/// Returns a field of a key as JSON.
pub(super) fn json(key: &Key, field: KeyField) -> Value {
    match field {
        KeyField::Source | KeyField::Destination => key.field(field).into(),
        KeyField::SourcePort => key.source_port.into(),
        KeyField::DestinationPort => key.destination_port.into(),
        KeyField::Port => key.port.into(),
        KeyField::Protocol => key.protocol.into(),
        KeyField::Vlan => key.vlan.into(),
    }
}

#[cfg(test)]
pub(super) mod tests {
    use weir::statistics::{Count, KeyCounts};

    use super::*;

    /// A reading in which each destination port has these packets, of so many bytes each.
    pub(in super::super) fn reading(ports: &[(u16, u64, u64)], others: u64) -> Reading {
        let counts = |packets, bytes| Counts { received: Count { packets, bytes }, ..Counts::default() };
        let mut reading = Reading::default();
        for &(port, packets, size) in ports {
            let mut one = KeyCounts::default();
            one.key.destination_port = Some(port);
            one.counts = counts(packets, packets * size);
            reading.keys.push(one);
        }
        reading.others = counts(others, others * 60);
        reading.total = reading.keys.iter().map(|one| one.counts).sum::<Counts>() + reading.others;
        reading
    }

    #[test]
    fn the_busiest_of_the_interval_come_first_and_all_add_up() {
        let before = reading(&[(1, 100, 60), (2, 7, 60), (3, 50, 60)], 1);
        let now = reading(&[(9, 6, 60), (1, 104, 60), (2, 7, 60), (3, 56, 60), (4, 2, 1500)], 4);
        let ports =
            |top: &Top| -> Vec<u16> { top.keys.iter().filter_map(|(key, _)| key.destination_port).collect() };
        for (by, most, expected) in [
            (Busiest::Packets, 10, &[3, 9, 1, 4][..]),
            (Busiest::Bytes, 10, &[4, 3, 9, 1]),
            (Busiest::Packets, 2, &[3, 9]),
            (Busiest::Bytes, 1, &[4]),
        ] {
            let top = Choice { most, by }.top(&before, &now);
            assert_eq!(ports(&top), expected);
            let all = || top.keys.iter().map(|(_, grown)| *grown).chain([top.rest, top.others]);
            assert_eq!(all().map(|grown| grown.by).sum::<Counts>(), now.total - before.total);
            assert_eq!(all().map(|grown| grown.to).sum::<Counts>(), now.total);
        }
    }

    #[test]
    fn protocols_have_names_for_people_and_numbers_for_programs() {
        for (protocol, name, number) in [(Some(6), "tcp", "6"), (Some(253), "253", "253"), (None, "-", "-")] {
            let key = Key { protocol, ..Key::default() };
            let texts = (shown(&key, KeyField::Protocol), plain(&key, KeyField::Protocol));
            assert_eq!(texts, (name.to_owned(), number.to_owned()));
        }
    }
}
