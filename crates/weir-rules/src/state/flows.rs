//! How many packets of each flow have matched a rule.

use std::time::Duration;

use super::key::FlowKey;
use super::table::Table;

/// The flows of all rules.
#[derive(Debug)]
pub(crate) struct Flows {
    table: Table<(usize, FlowKey), Seen>,
    /// After such a silence, in nanoseconds, a flow begins anew.
    idle: u64,
}

#[derive(Debug)]
struct Seen {
    packets: u64,
    last: u64,
}

impl Flows {
    pub(crate) fn new(most: usize, idle: Duration) -> Self {
        Self { table: Table::new(most), idle: u64::try_from(idle.as_nanos()).unwrap_or(u64::MAX) }
    }

    /// Counts a packet of a rule's flow, and returns how many came before it; `None` if the flow finds no room.
    pub(crate) fn count(&mut self, rule: usize, flow: FlowKey, now: u64) -> Option<u64> {
        let idle = self.idle;
        let is_over = |seen: &Seen| now.saturating_sub(seen.last) > idle;
        let seen = self.table.entry((rule, flow), now, is_over, || Seen { packets: 0, last: now })?;
        if is_over(seen) {
            seen.packets = 0;
        }
        let before = seen.packets;
        *seen = Seen { packets: before + 1, last: seen.last.max(now) };
        Some(before)
    }
}
