//! What became of every packet, and of every flow.

use std::ops::AddAssign;

use crate::flow::EndReason;

/// What a table has counted: `packets = exported + in_table + not_ip + cut`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
pub struct Counts {
    /// Packets that were given to the table.
    pub packets: u64,
    /// Packets in flows that have ended.
    pub exported: u64,
    /// Packets in flows that have not.
    pub in_table: u64,
    /// Packets that are not IP.
    pub not_ip: u64,
    /// Packets refused because their headers are cut, or have lengths that cannot be.
    pub cut: u64,
    /// Bytes of IP packets, in flows that have ended and in others.
    pub bytes: u64,
    /// Flows that have ended, by [`EndReason`] in its order.
    pub ended: [u64; EndReason::ALL.len()],
    /// Flows that have not ended.
    pub flows: u64,
    /// Later fragments whose first one was not seen: their flow has the ports 0.
    pub orphans: u64,
    /// Times that the packets' clock went back so far that all flows were ended.
    pub restarts: u64,
}

impl Counts {
    /// Returns whether every packet is in one place.
    pub fn adds_up(&self) -> bool {
        self.packets == self.exported + self.in_table + self.not_ip + self.cut
    }

    /// Returns how many flows have ended.
    pub fn all_ended(&self) -> u64 {
        self.ended.iter().sum()
    }
}

impl AddAssign for Counts {
    fn add_assign(&mut self, other: Self) {
        self.packets += other.packets;
        self.exported += other.exported;
        self.in_table += other.in_table;
        self.not_ip += other.not_ip;
        self.cut += other.cut;
        self.bytes += other.bytes;
        for (sum, ended) in self.ended.iter_mut().zip(other.ended) {
            *sum += ended;
        }
        self.flows += other.flows;
        self.orphans += other.orphans;
        self.restarts += other.restarts;
    }
}
