//! Whether the packets of a file are in the order of time, and which of them are among themselves.

use std::collections::BTreeMap;
use std::time::Duration;

use super::Reader;

/// The packets of one interface and queue: a capture writes these in their order.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Lane {
    /// Number of the interface in the file.
    pub interface: u32,
    /// The queue that they came on.
    pub queue: u32,
}

/// In which order the packets of a file stand.
#[derive(Debug, Clone, Default)]
pub struct Order {
    /// Of each lane the latest time.
    lanes: BTreeMap<Lane, u64>,
    latest: u64,
    late: u64,
    /// The farthest that a packet is behind one of its own lane: nanoseconds.
    back: u64,
}

impl Order {
    /// Reads a file to its end, or to where it is damaged.
    pub fn of(mut reader: Reader) -> Self {
        let mut order = Self::default();
        while let Ok(Some(packet)) = reader.next_packet() {
            if packet.notes.is_timeless() {
                continue;
            }
            let (lane, time) = (Lane { interface: packet.interface, queue: packet.queue }, packet.timestamp);
            let latest = order.lanes.entry(lane).or_insert(time);
            order.back = order.back.max(latest.saturating_sub(time));
            *latest = time.max(*latest);
            order.late += u64::from(time < order.latest);
            order.latest = time.max(order.latest);
        }
        order
    }

    /// Whether no packet is earlier than one before.
    pub fn is_strict(&self) -> bool {
        self.late == 0
    }

    /// The lanes that it has.
    pub fn lanes(&self) -> impl ExactSizeIterator<Item = Lane> {
        self.lanes.keys().copied()
    }

    /// How long packets have to be held back for their lanes to be in order: mostly not at all.
    pub fn within_lanes(&self) -> Duration {
        match self.back {
            0 => Duration::ZERO,
            back => Duration::from_nanos(back + 1),
        }
    }
}
