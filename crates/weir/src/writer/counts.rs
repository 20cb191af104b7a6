//! The counters that statistics in files are made of.
//!
//! An account is ahead of the files: it counts packets that still wait in the pool, and losses that a later record tells of.
//! So what a file says before its end has the packets and losses of the records accepted so far, and only what no record
//! tells of (losses on the card, packets rejected by a filter) as of the latest account. The last statistics have all.

use std::collections::BTreeMap;

use crate::CaptureStats;

/// The counters of an interface since the start.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Count {
    captured: u64,
    /// Lost for lack of room, which records tell of.
    lost: u64,
    /// Unreadable, or without a queue.
    errors: u64,
    /// Lost on the card.
    nic: u64,
    /// Rejected by the filter, or left out by sampling.
    left_out: u64,
}

impl Count {
    pub(super) fn received(self) -> u64 {
        self.accepted() + self.left_out
    }

    /// As in files of dumpcap, this is the sum of all losses, on the card and between card and program; Wireshark
    /// shows it as dropped. `isb_osdrop` would report part of them a second time, so it is omitted. So is `rx_dropped`: Linux also
    /// counts there what no protocol takes (LLDP, spanning tree), which the capture has.
    pub(super) fn dropped(self) -> u64 {
        self.lost + self.errors + self.nic
    }

    /// By the filter and by sampling.
    pub(super) fn accepted(self) -> u64 {
        self.captured + self.lost + self.errors
    }
}

/// The counters of all interfaces.
#[derive(Debug, Clone, Default)]
pub(super) struct Counts(BTreeMap<u32, Count>);

impl Counts {
    pub(super) fn of(account: &CaptureStats) -> Self {
        let each = account.interfaces.iter().map(|interface| {
            let total = interface.total();
            let (captured, lost, errors) = (total.captured, total.lost, total.errors);
            let nic = interface.nic.map_or(0, |nic| nic.missed + nic.fifo_errors);
            let left_out = total.seen.saturating_sub(captured + lost + errors);
            (interface.id, Count { captured, lost, errors, nic, left_out })
        });
        Self(each.collect())
    }

    /// Returns the counters when no more than `accepted` had been captured and lost.
    pub(super) fn as_of(&self, accepted: &Accepted) -> Self {
        let each = self.0.iter().map(|(&interface, &count)| {
            let (captured, lost) = accepted.of(interface);
            (interface, Count { captured, lost, ..count })
        });
        Self(each.collect())
    }

    /// Returns whether there are losses that no record accepted so far tells of, though one may follow.
    pub(super) fn has_more_losses(&self, accepted: &Accepted) -> bool {
        self.0.iter().any(|(&interface, count)| count.lost > accepted.of(interface).1)
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = (u32, Count)> {
        self.0.iter().map(|(&interface, &count)| (interface, count))
    }

    pub(super) fn get(&self, interface: u32) -> Count {
        self.0.get(&interface).copied().unwrap_or_default()
    }
}

/// What was accepted to be written since the start, by interface: packets, and the losses that their records tell of.
#[derive(Debug, Default)]
pub(super) struct Accepted(Vec<(u64, u64)>);

impl Accepted {
    #[inline]
    pub(super) fn add(&mut self, interface: u32, packets: u64, lost: u64) {
        let number = interface as usize;
        if self.0.len() <= number {
            self.0.resize(number + 1, (0, 0));
        }
        let (all, all_lost) = &mut self.0[number];
        (*all, *all_lost) = (*all + packets, *all_lost + lost);
    }

    fn of(&self, interface: u32) -> (u64, u64) {
        self.0.get(interface as usize).copied().unwrap_or_default()
    }
}
