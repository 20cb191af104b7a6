//! Packets that are counted outside the queues (`strays` in `writer.h`).

use libbpf_rs::{MapCore, MapFlags, MapHandle};

use crate::layout::stray;

/// The number of packets of each kind. Packets of the first three kinds reached the program, but are in no queue's
/// counters.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Strays {
    /// Packets on a receive queue that has no pool.
    pub no_queue: u64,
    /// Packets from another interface, to which the driver has handed the program on.
    pub other_interface: u64,
    /// Packets on a processor that came up later and has no queue.
    pub late_cpu: u64,
    /// Packets whose driver could not tell whether it stripped a VLAN tag. They are also in a queue's counters.
    pub tag_unknown: u64,
}

impl Strays {
    /// Reads the current numbers; unreadable ones are 0.
    pub(crate) fn read(map: &MapHandle) -> Self {
        let packets = |why: stray| -> u64 {
            let per_cpu = map.lookup_percpu(&why.0.to_ne_bytes(), MapFlags::ANY).ok().flatten();
            let count = |value: Vec<u8>| value.try_into().map_or(0, u64::from_ne_bytes);
            per_cpu.into_iter().flatten().map(count).sum()
        };
        Self {
            no_queue: packets(stray::NO_QUEUE),
            other_interface: packets(stray::OTHER_INTERFACE),
            late_cpu: packets(stray::LATE_CPU),
            tag_unknown: packets(stray::TAG_UNKNOWN),
        }
    }

    /// Returns the number of packets that are in no queue's counters.
    pub fn nobodys(&self) -> u64 {
        self.no_queue + self.other_interface + self.late_cpu
    }
}

impl std::ops::Add for Strays {
    type Output = Self;

    fn add(self, other: Self) -> Self {
        Self {
            no_queue: self.no_queue + other.no_queue,
            other_interface: self.other_interface + other.other_interface,
            late_cpu: self.late_cpu + other.late_cpu,
            tag_unknown: self.tag_unknown + other.tag_unknown,
        }
    }
}
