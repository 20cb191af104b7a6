//! What was counted.

use std::collections::HashMap;
use std::time::Duration;

#[cfg(doc)]
use super::StatisticsBuilder;
use crate::NicCounters;
use weir_bpf::stat;
use weir_bpf::stat::Key;

/// What was counted since the start.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Reading {
    /// Time since the start, until the end.
    pub elapsed: Duration,
    /// All packets that the interface has received and sent.
    pub total: Counts,
    /// The packets that match each filter, in the order in which the filters were added. A packet may match several.
    pub filters: Vec<FilterCounts>,
    /// With [`StatisticsBuilder::by`], the packets of each key, in no order. A key that was counted once stays.
    pub keys: Vec<KeyCounts>,
    /// With [`StatisticsBuilder::by`], packets whose key is not among [the most keys](StatisticsBuilder::most_keys). They
    /// and those of `keys` are all packets that are counted by key.
    pub others: Counts,
    /// With [`StatisticsBuilder::sizes`], packets by bytes on the wire, with the 4 bytes of the checksum: below 64, 64,
    /// 65 to 127, 128 to 255, 256 to 511, 512 to 1023, 1024 to 1518 (RMON's, RFC 2819), to 2047, 4095, 9216, and above.
    pub sizes: Vec<Bucket>,
    /// With [`StatisticsBuilder::gaps`], packets by nanoseconds since the packet before, of the same direction on the same
    /// CPU: 0, 1, 2 to 3, 4 to 7, ...
    pub gaps: Vec<Bucket>,
    /// With [`StatisticsBuilder::gaps`], packets that had none before on their CPU. They and those of `gaps` are all.
    pub first: Counts,
    /// Packets whose driver could not tell whether it stripped a VLAN tag.
    pub tag_unknown: u64,
    /// Received packets that the device or its driver has dropped, which nothing could count.
    pub nic: NicCounters,
}

impl Reading {
    /// Adds what another interface has counted by the same filters and fields: by filter, key, size and gap. The time is
    /// the longer one.
    fn add(&mut self, other: &Self) {
        self.elapsed = self.elapsed.max(other.elapsed);
        self.total = self.total + other.total;
        for filter in &other.filters {
            match self.filters.iter_mut().find(|one| one.name == filter.name) {
                Some(one) => one.counts = one.counts + filter.counts,
                None => self.filters.push(filter.clone()),
            }
        }
        let mut places: HashMap<Key, usize> = (0..).zip(&self.keys).map(|(at, one)| (one.key, at)).collect();
        for one in &other.keys {
            let at = *places.entry(one.key).or_insert(self.keys.len());
            match self.keys.get_mut(at) {
                Some(sum) => sum.counts = sum.counts + one.counts,
                None => self.keys.push(*one),
            }
        }
        self.others = self.others + other.others;
        add_buckets(&mut self.sizes, &other.sizes);
        add_buckets(&mut self.gaps, &other.gaps);
        self.first = self.first + other.first;
        self.tag_unknown += other.tag_unknown;
        self.nic.missed += other.nic.missed;
        self.nic.fifo_errors += other.nic.fifo_errors;
        self.nic.dropped += other.nic.dropped;
    }
}

/// Adds buckets; all readings with buckets have the same.
fn add_buckets(sums: &mut Vec<Bucket>, buckets: &[Bucket]) {
    if sums.is_empty() {
        return sums.extend(buckets);
    }
    sums.iter_mut().zip(buckets).for_each(|(sum, bucket)| sum.counts = sum.counts + bucket.counts);
}

/// The sum of what several interfaces have counted by the same filters and fields, with the longest time.
impl<'a> std::iter::Sum<&'a Self> for Reading {
    fn sum<I: Iterator<Item = &'a Self>>(mut all: I) -> Self {
        let mut sum = all.next().cloned().unwrap_or_default();
        all.for_each(|reading| sum.add(reading));
        sum
    }
}

/// The packets that match a filter.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct FilterCounts {
    /// The name of the filter.
    pub name: String,
    /// The packets.
    pub counts: Counts,
}

/// The packets of a key.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct KeyCounts {
    /// The key.
    pub key: Key,
    /// The packets.
    pub counts: Counts,
}

/// Packets in a range of sizes or gaps.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Bucket {
    /// The smallest.
    pub from: u64,
    /// The greatest; [`u64::MAX`]: there is no limit.
    pub to: u64,
    /// The packets.
    pub counts: Counts,
}

impl Bucket {
    pub(super) fn of(stat::Bucket { from, to, counts }: stat::Bucket) -> Self {
        Self { from, to, counts: Counts::of(counts) }
    }
}

/// Packets by direction.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, serde::Serialize)]
pub struct Counts {
    /// Received packets.
    pub received: Count,
    /// Sent packets; none with XDP, which does not see them, and on loopback, which receives what it sends.
    pub sent: Count,
}

/// Packets and their bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, serde::Serialize)]
pub struct Count {
    /// Packets. A super-frame built by offloads counts as one.
    pub packets: u64,
    /// Their bytes: whole frames without checksum, with a VLAN tag that the device has stripped.
    pub bytes: u64,
}

impl std::ops::Add for Count {
    type Output = Self;

    fn add(self, other: Self) -> Self {
        Self { packets: self.packets + other.packets, bytes: self.bytes + other.bytes }
    }
}

impl std::ops::Sub for Count {
    type Output = Self;

    /// Returns the growth since `before`.
    fn sub(self, before: Self) -> Self {
        Self {
            packets: self.packets.saturating_sub(before.packets),
            bytes: self.bytes.saturating_sub(before.bytes),
        }
    }
}

impl Counts {
    /// Returns the packets of both directions.
    pub fn total(&self) -> Count {
        self.received + self.sent
    }
}

impl std::ops::Add for Counts {
    type Output = Self;

    fn add(self, other: Self) -> Self {
        Self { received: self.received + other.received, sent: self.sent + other.sent }
    }
}

impl std::iter::Sum for Counts {
    fn sum<I: Iterator<Item = Self>>(all: I) -> Self {
        all.fold(Self::default(), |sum, counts| sum + counts)
    }
}

impl Counts {
    pub(super) fn of(ways: [stat::Count; 2]) -> Self {
        let [received, sent] = ways.map(|stat::Count { packets, bytes }| Count { packets, bytes });
        Self { received, sent }
    }
}

impl std::ops::Sub for Counts {
    type Output = Self;

    /// Returns the growth since `before`.
    fn sub(self, before: Self) -> Self {
        Self { received: self.received - before.received, sent: self.sent - before.sent }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_sum_has_each_filter_key_and_bucket_once() {
        let counts = |packets| Counts { sent: Count { packets, bytes: 60 * packets }, ..Counts::default() };
        let key = |port| Key { port: Some(port), ..Key::default() };
        let reading = |seconds, keys: &[(u16, u64)]| {
            let total: u64 = keys.iter().map(|(_, packets)| packets).sum();
            Reading {
                elapsed: Duration::from_secs(seconds),
                total: counts(total),
                filters: vec![FilterCounts { name: "udp".into(), counts: counts(total) }],
                keys: keys
                    .iter()
                    .map(|&(port, packets)| KeyCounts { key: key(port), counts: counts(packets) })
                    .collect(),
                others: counts(1),
                sizes: vec![Bucket { from: 0, to: 63, counts: counts(total) }],
                ..Reading::default()
            }
        };
        let (one, other) = (reading(3, &[(53, 5), (80, 2)]), reading(2, &[(443, 1), (53, 10)]));
        let mut sum = reading(3, &[(53, 15), (80, 2), (443, 1)]);
        sum.others = counts(2);
        assert_eq!([&one, &other].into_iter().sum::<Reading>(), sum);
        assert_eq!([&one].into_iter().sum::<Reading>(), one);
        assert_eq!([].into_iter().sum::<Reading>(), Reading::default());
    }

    #[test]
    fn growth_is_by_direction() {
        let counts =
            |packets| Counts { received: Count { packets, bytes: 60 * packets }, ..Counts::default() };
        assert_eq!(counts(5) - counts(2), counts(3));
        assert_eq!(counts(3).total(), Count { packets: 3, bytes: 180 });
    }
}
