//! Whether the packets of a file, and those of each queue, are in order of time.

use std::collections::BTreeMap;
use std::time::Duration;

use super::Reader;

/// The packets of one interface and queue, which a capture writes in order.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct FileLane {
    /// The number of the interface in the file.
    pub interface: u32,
    /// The queue that received the packets.
    pub queue: u32,
}

/// The order of the packets in a file.
#[derive(Debug, Clone, Default)]
pub struct LaneOrder {
    /// The latest time in each lane.
    lanes: BTreeMap<FileLane, u64>,
    latest: u64,
    late: u64,
    /// The longest time by which a packet is older than an earlier one in its lane, in nanoseconds.
    back: u64,
}

impl LaneOrder {
    /// Reads a file to its end, or up to the first damage.
    pub fn of(mut reader: Reader) -> Self {
        let mut order = Self::default();
        while let Ok(Some(packet)) = reader.next_packet() {
            if packet.notes.is_timeless() {
                continue;
            }
            let (lane, time) =
                (FileLane { interface: packet.interface, queue: packet.queue }, packet.timestamp);
            let latest = order.lanes.entry(lane).or_insert(time);
            order.back = order.back.max(latest.saturating_sub(time));
            *latest = time.max(*latest);
            order.late += u64::from(time < order.latest);
            order.latest = time.max(order.latest);
        }
        order
    }

    /// Returns whether all packets are in order.
    pub fn is_strict(&self) -> bool {
        self.late == 0
    }

    /// Returns the lanes of the file.
    pub fn lanes(&self) -> impl ExactSizeIterator<Item = FileLane> {
        self.lanes.keys().copied()
    }

    /// Returns how long packets have to be held back to sort the lanes; usually zero.
    pub fn within_lanes(&self) -> Duration {
        match self.back {
            0 => Duration::ZERO,
            back => Duration::from_nanos(back + 1),
        }
    }
}
