//! Counts packets of files, as the programs of statistics count them in the kernel. No I/O.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use weir::filter::Matcher;
use weir::parts::{buckets, key_of};
use weir::statistics::{Bucket, Counts, FilterCounts, Key, KeyCounts, KeyField, Reading};
use weir::{Direction, FileInterface, Packet};
use weir_filter::interpret::{Metadata, Packet as Asked};

/// What is counted.
#[derive(Debug)]
pub(super) struct What {
    /// Names of the filters.
    pub(super) filters: Vec<String>,
    /// Fields of keys.
    pub(super) fields: Vec<KeyField>,
    pub(super) most_keys: usize,
    pub(super) sizes: bool,
    pub(super) gaps: bool,
}

/// Counters, by interface.
#[derive(Debug)]
pub(super) struct FileCounter {
    what: What,
    /// The interfaces of the input, by number.
    interfaces: Vec<Interface>,
    /// Those with different names.
    counters: Vec<Counters>,
    /// The earliest and the latest timestamp.
    times: Option<(u64, u64)>,
}

#[derive(Debug)]
struct Interface {
    link_type: u16,
    /// A program for each filter.
    filters: Vec<Arc<Matcher>>,
    /// Its place in the counters.
    place: usize,
}

/// What an interface has.
#[derive(Debug)]
pub(super) struct Counters {
    pub(super) name: String,
    pub(super) reading: Reading,
    /// Where keys are in the reading.
    places: HashMap<Key, usize>,
    /// Time of the last packet of each interface of the input, queue and direction.
    last: HashMap<(u32, u32, bool), u64>,
}

impl FileCounter {
    pub(super) fn new(what: What) -> Self {
        Self { what, interfaces: Vec::new(), counters: Vec::new(), times: None }
    }

    /// Adds the next interface of the input; those with the same name are counted together.
    pub(super) fn interface(&mut self, interface: &FileInterface, filters: Vec<Arc<Matcher>>) {
        let number = self.interfaces.len();
        let unnamed = |other: &&Interface| self.counters[other.place].name.starts_with('#');
        let named = interface.name.clone().filter(|name| !name.is_empty());
        let name = named.unwrap_or_else(|| match self.interfaces.iter().find(unnamed) {
            Some(other) => self.counters[other.place].name.clone(),
            None => format!("#{number}"),
        });
        let place = self.counters.iter().position(|one| one.name == name).unwrap_or_else(|| {
            self.counters.push(Counters::new(name, &self.what));
            self.counters.len() - 1
        });
        self.interfaces.push(Interface { link_type: interface.link_type, filters, place });
    }

    /// Counts a packet, of an interface that was added.
    pub(super) fn packet(&mut self, packet: &Packet<'_>) {
        let Self { what, interfaces, counters, times } = self;
        let Some(interface) = interfaces.get(packet.interface as usize) else { return };
        let Counters { reading, places, last, .. } = &mut counters[interface.place];
        let sent = packet.direction == Some(Direction::Out);
        let bytes = u64::from(packet.original_len);
        if packet.timestamp > 0 {
            let (first, end) = times.unwrap_or((packet.timestamp, packet.timestamp));
            *times = Some((first.min(packet.timestamp), end.max(packet.timestamp)));
        }
        add(&mut reading.total, sent, bytes);
        let meta = Metadata::of_direction(packet.direction.map(|direction| direction == Direction::Out));
        let asked = Asked { data: packet.data, length: packet.original_len, meta };
        let mut accepted = interface.filters.is_empty();
        for (filter, matcher) in reading.filters.iter_mut().zip(&interface.filters) {
            if matcher.matches(&asked) {
                add(&mut filter.counts, sent, bytes);
                accepted = true;
            }
        }
        if !accepted {
            return;
        }
        if !what.fields.is_empty() {
            let key = key_of(&what.fields, interface.link_type, packet.data);
            let room = reading.keys.len() < what.most_keys;
            let place = places.get(&key).copied().or_else(|| {
                room.then(|| {
                    let mut one = KeyCounts::default();
                    one.key = key;
                    reading.keys.push(one);
                    places.insert(key, reading.keys.len() - 1);
                    reading.keys.len() - 1
                })
            });
            add(place.map_or(&mut reading.others, |place| &mut reading.keys[place].counts), sent, bytes);
        }
        if what.sizes {
            put(&mut reading.sizes, bytes + CHECKSUM, sent, bytes);
        }
        if what.gaps {
            match last.insert((packet.interface, packet.queue, sent), packet.timestamp) {
                Some(before) => put(&mut reading.gaps, packet.timestamp.saturating_sub(before), sent, bytes),
                None => add(&mut reading.first, sent, bytes),
            }
        }
    }

    /// Returns the time from the earliest to the latest packet.
    pub(super) fn span(&self) -> Duration {
        self.times.map_or(Duration::ZERO, |(first, last)| Duration::from_nanos(last - first))
    }

    /// Returns what each interface has counted, now that so much time has passed.
    pub(super) fn readings(&self, elapsed: Duration) -> impl Iterator<Item = (&str, Reading)> {
        self.counters.iter().map(move |one| {
            let mut reading = one.reading.clone();
            reading.elapsed = elapsed;
            (one.name.as_str(), reading)
        })
    }
}

/// Bytes of the checksum at the end of a frame, which files rarely have.
const CHECKSUM: u64 = 4;

impl Counters {
    fn new(name: String, what: &What) -> Self {
        let mut reading = Reading::default();
        let (sizes, gaps) = buckets();
        reading.filters.extend(what.filters.iter().map(|name| {
            let mut filter = FilterCounts::default();
            filter.name.clone_from(name);
            filter
        }));
        reading.sizes.extend(what.sizes.then_some(sizes).into_iter().flatten());
        reading.gaps.extend(what.gaps.then_some(gaps).into_iter().flatten());
        Self { name, reading, places: HashMap::new(), last: HashMap::new() }
    }
}

fn add(counts: &mut Counts, sent: bool, bytes: u64) {
    let count = if sent { &mut counts.sent } else { &mut counts.received };
    count.packets += 1;
    count.bytes += bytes;
}

/// Counts a packet in the bucket for `value`.
fn put(buckets: &mut [Bucket], value: u64, sent: bool, bytes: u64) {
    let place = buckets.partition_point(|bucket| bucket.to < value);
    add(&mut buckets[place].counts, sent, bytes);
}

#[cfg(test)]
mod tests {
    use super::*;

    fn what(fields: &[KeyField]) -> What {
        What { filters: Vec::new(), fields: fields.to_vec(), most_keys: 3, sizes: true, gaps: true }
    }

    /// A UDP packet over IPv4, as raw IP.
    fn udp(port: u16, time: u64, direction: Direction, data: &mut Vec<u8>) -> Packet<'_> {
        *data = vec![0; 28];
        (data[0], data[9], data[15], data[19]) = (0x45, 17, 1, 2);
        data[20..22].copy_from_slice(&port.to_be_bytes());
        weir::with!(Packet::new(time, data), original_len = 100, direction = Some(direction))
    }

    #[test]
    fn every_packet_is_in_one_row_of_each_kind() {
        let mut counter = FileCounter::new(what(&[KeyField::SourcePort]));
        let interface = FileInterface::new(101);
        counter.interface(&interface, Vec::new());
        let mut data = Vec::new();
        for (number, port) in [1, 2, 1, 3, 4, 5, 4, 1].into_iter().enumerate() {
            let direction = if port == 3 { Direction::Out } else { Direction::In };
            counter.packet(&udp(port, 1000 + 1000 * number as u64, direction, &mut data));
        }
        assert_eq!(counter.span(), Duration::from_nanos(7000));
        let (name, reading) = counter.readings(counter.span()).next().expect("an interface");
        let keys: Vec<_> = reading
            .keys
            .iter()
            .map(|one| (one.key.source_port.unwrap_or(0), one.counts.total().packets))
            .collect();
        assert_eq!((name, keys), ("#0", vec![(1, 3), (2, 1), (3, 1)]));
        assert_eq!(reading.others.total().packets, 3, "there is room for three keys");
        assert_eq!((reading.total.received.packets, reading.total.sent.packets), (7, 1));
        let sum = |buckets: &[Bucket]| buckets.iter().map(|one| one.counts).sum::<Counts>();
        assert_eq!(sum(&reading.sizes), reading.total);
        assert_eq!(sum(&reading.gaps) + reading.first, reading.total);
        let filled = |buckets: &[Bucket]| -> Vec<(u64, u64, u64)> {
            let all = buckets.iter().map(|one| (one.from, one.to, one.counts.total().packets));
            all.filter(|(.., packets)| *packets > 0).collect()
        };
        assert_eq!(filled(&reading.sizes), [(65, 127, 8)]);
        // The sent one has none before it; those around it are 2000 ns apart.
        assert_eq!(filled(&reading.gaps), [(512, 1023, 5), (1024, 2047, 1)]);
        assert_eq!(reading.first.total().packets, 2);
    }

    #[test]
    fn interfaces_of_one_name_are_one() {
        let mut counter = FileCounter::new(what(&[]));
        let named = |name: &str| {
            let name = Some(name.to_owned()).filter(|name| !name.is_empty());
            weir::with!(FileInterface::new(101), name)
        };
        for name in ["eth0", "", "eth1", "eth0", ""] {
            counter.interface(&named(name), Vec::new());
        }
        let names: Vec<_> = counter.readings(Duration::ZERO).map(|(name, _)| name.to_owned()).collect();
        assert_eq!(names, ["eth0", "#1", "eth1"]);
    }
}
