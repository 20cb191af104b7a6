//! Conversations: what two ends send each other, both ways in one row.
//!
//! The kernel counts by source and destination. Here the two directions of a conversation become one: a [`Key`] whose
//! source is the end called *a*, and [`Counts`] whose packets are those from *a* to *b* (`received`), and back (`sent`).

use std::collections::HashMap;

use serde::Serialize;
use serde_json::{Value, json};
use weir::statistics::{Count, Counts, Key, KeyCounts, KeyField, Reading};

use super::rows::View;
use super::top::{self, Grown};
use crate::live::rate;
use crate::{protocol, units};

/// Returns the fields by which conversations are counted.
pub(super) fn fields(ports: bool) -> Vec<KeyField> {
    let ends = [KeyField::Source, KeyField::Destination];
    let ports =
        ports.then_some([KeyField::SourcePort, KeyField::DestinationPort, KeyField::Protocol]).into_iter();
    ends.into_iter().chain(ports.flatten()).collect()
}

/// What the conversations were in an interval, or in a whole run.
#[derive(Debug, Serialize)]
pub(super) struct Conversations {
    /// Always `conversations`.
    r#type: &'static str,
    /// Time since the start.
    pub(super) elapsed_seconds: f64,
    /// Length of the interval.
    seconds: f64,
    /// The busiest first.
    conversations: Vec<Conversation>,
    /// All other conversations.
    rest: Sum,
    /// Packets whose conversation found no room for counters.
    others: Sum,
    /// All packets.
    total: Sum,
    /// The filter; null if there is none.
    filter: Option<Sum>,
}

/// What two ends have sent each other.
#[derive(Debug, Serialize)]
struct Conversation {
    /// One end, with its port if conversations are told apart by it; null for packets other than IP.
    a: Value,
    b: Value,
    #[serde(skip)]
    label: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    proto: Option<u8>,
    a_to_b: Count,
    b_to_a: Count,
    #[serde(flatten)]
    sum: Sum,
    #[serde(skip)]
    to: Counts,
}

/// Packets of both ways, and their rates.
#[derive(Clone, Copy, Debug, Serialize)]
struct Sum {
    packets: u64,
    bytes: u64,
    packets_per_second: f64,
    bits_per_second: f64,
    /// Since the start.
    #[serde(skip)]
    to: Count,
}

impl Sum {
    fn new(grown: Grown, seconds: f64) -> Self {
        let Count { packets, bytes } = grown.by.total();
        Self {
            packets,
            bytes,
            packets_per_second: rate(0, packets, seconds),
            bits_per_second: rate(0, bytes, seconds) * 8.0,
            to: grown.to.total(),
        }
    }
}

/// Turns the keys of one direction into those of both.
fn both_ways(reading: &Reading) -> Reading {
    let mut joined = reading.clone();
    joined.keys.clear();
    let mut places: HashMap<Key, usize> = HashMap::new();
    for one in &reading.keys {
        let (key, back) = conversation(&one.key);
        let place = *places.entry(key).or_insert_with(|| {
            let mut new = KeyCounts::default();
            new.key = key;
            joined.keys.push(new);
            joined.keys.len() - 1
        });
        let (sum, packets) = (&mut joined.keys[place].counts, one.counts.total());
        let way = if back { &mut sum.sent } else { &mut sum.received };
        *way = *way + packets;
    }
    joined
}

/// Returns the key of a conversation, and whether packets with this key go from *b* to *a*. The service, which usually has
/// the lower port, is *b*.
fn conversation(key: &Key) -> (Key, bool) {
    let (source, destination) = ((key.source_port, key.source), (key.destination_port, key.destination));
    let back = match (key.source_port, key.destination_port) {
        (Some(from), Some(to)) if from != to => from < to,
        _ => source.1 > destination.1,
    };
    if !back {
        return (*key, false);
    }
    let turned = Key {
        source: key.destination,
        source_port: key.destination_port,
        destination: key.source,
        destination_port: key.source_port,
        ..*key
    };
    (turned, true)
}

impl Conversations {
    /// Computes what grew from one reading to the next.
    pub(super) fn between(before: &Reading, now: &Reading, view: &View) -> Self {
        let seconds = now.elapsed.saturating_sub(before.elapsed).as_secs_f64();
        let sum = |before: Counts, now: Counts| Sum::new(Grown::between(before, now), seconds);
        let top = view.choice.top(&both_ways(before), &both_ways(now));
        let filter = now.filters.first().map(|now| {
            let before = before.filters.first().map(|one| one.counts).unwrap_or_default();
            sum(before, now.counts)
        });
        Self {
            r#type: "conversations",
            elapsed_seconds: now.elapsed.as_secs_f64(),
            seconds,
            conversations: top
                .keys
                .iter()
                .map(|(key, grown)| Conversation::new(key, *grown, seconds))
                .collect(),
            rest: Sum::new(top.rest, seconds),
            others: Sum::new(top.others, seconds),
            total: sum(before.total, now.total),
            filter,
        }
    }

    /// Returns the label and the cells of each row.
    pub(super) fn rows(&self) -> Vec<(String, Vec<String>)> {
        let count = |sum: &Sum| {
            vec![
                format!("{}bit/s", units::scaled(sum.bits_per_second)),
                units::bytes(sum.to.bytes),
                units::grouped(sum.to.packets),
            ]
        };
        let talk = |one: &Conversation| {
            let ways = [one.to.received, one.to.sent];
            let ways = ways.iter().flat_map(|way| [units::bytes(way.bytes), units::grouped(way.packets)]);
            (one.label.clone(), count(&one.sum).into_iter().chain(ways).collect())
        };
        let others = [("(rest)", &self.rest), ("(others)", &self.others)];
        let others = others.into_iter().filter(|(_, sum)| sum.to.packets > 0);
        let filter = self.filter.iter().map(|sum| ("(filter)", sum));
        let sums = others.chain(filter).chain([("(all)", &self.total)]);
        let sums = sums.map(|(label, sum)| (label.to_owned(), count(sum)));
        self.conversations.iter().map(talk).chain(sums).collect()
    }
}

/// The columns behind the label, with their widths. `>`: from the end on the left to that on the right.
pub(super) const COLUMNS: [(&str, usize); 7] = [
    ("bit/s", 12),
    ("bytes", 9),
    ("packets", 12),
    ("> bytes", 9),
    ("> packets", 12),
    ("< bytes", 9),
    ("< packets", 12),
];

impl Conversation {
    fn new(key: &Key, grown: Grown, seconds: f64) -> Self {
        let end = |address: KeyField, port: KeyField| match top::json(key, address) {
            Value::Null => Value::Null,
            address => match top::json(key, port) {
                Value::Null => json!({ "address": address }),
                port => json!({ "address": address, "port": port }),
            },
        };
        Self {
            a: end(KeyField::Source, KeyField::SourcePort),
            b: end(KeyField::Destination, KeyField::DestinationPort),
            label: label(key),
            proto: key.protocol,
            a_to_b: grown.by.received,
            b_to_a: grown.by.sent,
            sum: Sum::new(grown, seconds),
            to: grown.to,
        }
    }
}

/// Returns a conversation for people: `10.0.0.1:4321 <> 10.0.0.2:80 tcp`.
fn label(key: &Key) -> String {
    let end = |address: Option<std::net::IpAddr>, port: Option<u16>| match (address, port) {
        (Some(address), Some(port)) => Some(std::net::SocketAddr::new(address, port).to_string()),
        (Some(address), None) => Some(address.to_string()),
        (None, _) => None,
    };
    let ends = end(key.source, key.source_port).zip(end(key.destination, key.destination_port));
    let Some((one, other)) = ends else { return "(other than IP)".to_owned() };
    let protocol = key.protocol.map(|number| match protocol::name(number) {
        Some(name) => format!(" {name}"),
        None => format!(" {number}"),
    });
    format!("{one} <> {other}{}", protocol.unwrap_or_default())
}

#[cfg(test)]
mod tests {
    use super::super::top::{Busiest, Choice};
    use super::*;

    fn key(source: u8, source_port: u16, destination: u8, destination_port: u16) -> Key {
        let port = |port| (port > 0).then_some(port);
        Key {
            source: Some([10, 0, 0, source].into()),
            destination: Some([10, 0, 0, destination].into()),
            source_port: port(source_port),
            destination_port: port(destination_port),
            protocol: (source_port > 0).then_some(6),
            ..Key::default()
        }
    }

    fn reading(keys: &[(Key, u64)]) -> Reading {
        let mut reading = Reading::default();
        reading.elapsed = std::time::Duration::from_secs(2);
        for &(key, packets) in keys {
            let mut one = KeyCounts::default();
            (one.key, one.counts.received) = (key, Count { packets, bytes: packets * 100 });
            reading.total = reading.total + one.counts;
            reading.keys.push(one);
        }
        reading
    }

    fn rows(reading: &Reading, most: usize) -> Vec<String> {
        let view = View { fields: fields(true), choice: Choice { most, by: Busiest::Packets }, apart: false };
        let all = Conversations::between(&Reading::default(), reading, &view);
        all.rows().into_iter().map(|(label, cells)| format!("{label}: {}", cells.join(" | "))).collect()
    }

    #[test]
    fn both_ways_are_one_row_with_the_service_on_the_right() {
        let talk =
            [(key(2, 80, 1, 4000), 7), (key(1, 4000, 2, 80), 3), (key(9, 0, 3, 0), 1), (key(3, 0, 9, 0), 1)];
        let rows = rows(&reading(&[&talk[..], &[(Key::default(), 4)]].concat()), 10);
        assert_eq!(
            rows,
            [
                "10.0.0.1:4000 <> 10.0.0.2:80 tcp: 4.00 kbit/s | 0.98 KiB | 10 | 300 B | 3 | 700 B | 7",
                "(other than IP): 1.60 kbit/s | 400 B | 4 | 400 B | 4 | 0 B | 0",
                "10.0.0.3 <> 10.0.0.9: 800 bit/s | 200 B | 2 | 100 B | 1 | 100 B | 1",
                "(all): 6.40 kbit/s | 1.56 KiB | 16",
            ]
        );
    }

    #[test]
    fn what_is_not_shown_is_summed_up() {
        let all = [(key(1, 0, 2, 0), 5), (key(3, 0, 2, 0), 2), (key(2, 0, 3, 0), 2)];
        let rows = rows(&reading(&all), 1);
        let starts: Vec<_> = rows.iter().filter_map(|row| row.split(" | ").nth(2)).collect();
        assert_eq!(starts, ["5", "4", "9"], "{rows:?}");
        assert!(rows[1].starts_with("(rest): "), "{rows:?}");
    }
}
