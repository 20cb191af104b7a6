//! Packets that are counted beside the queues (`strays` in `writer.h`).

use libbpf_rs::{MapCore, MapFlags, MapHandle};

/// How many there are of each kind. Those of the first three have reached the program and are in no queue's counters.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Strays {
    /// On a receive queue for which there is no pool.
    pub no_queue: u64,
    /// Of another interface, to which a driver has handed the program on.
    pub foreign: u64,
    /// On a processor that has no queue, because it came up later.
    pub apart: u64,
    /// Whose driver could not say whether it had taken a VLAN tag off. They are in a queue's counters, too.
    pub untold: u64,
}

impl Strays {
    /// As they are now; what cannot be read is 0.
    pub(crate) fn read(map: &MapHandle) -> Self {
        let packets = |why: u32| -> u64 {
            let per_cpu = map.lookup_percpu(&why.to_ne_bytes(), MapFlags::ANY).ok().flatten();
            let count = |value: Vec<u8>| value.try_into().map_or(0, u64::from_ne_bytes);
            per_cpu.into_iter().flatten().map(count).sum()
        };
        Self { no_queue: packets(0), foreign: packets(1), apart: packets(2), untold: packets(3) }
    }

    /// Those that are in no queue's counters.
    pub fn nobodys(&self) -> u64 {
        self.no_queue + self.foreign + self.apart
    }
}

impl std::ops::Add for Strays {
    type Output = Self;

    fn add(self, other: Self) -> Self {
        Self {
            no_queue: self.no_queue + other.no_queue,
            foreign: self.foreign + other.foreign,
            apart: self.apart + other.apart,
            untold: self.untold + other.untold,
        }
    }
}
