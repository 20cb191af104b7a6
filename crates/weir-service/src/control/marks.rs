//! Positions in the packet stream where a filter change is marked.
//!
//! Packets that a queue had captured when the change was noticed may have met the previous filter, so the mark follows
//! all of them. Packets captured in the meantime may precede the mark; it contains the time of the change
//! ([`Change::time`]), which is what counts.

use std::collections::VecDeque;

use weir::CaptureStats;

use super::Change;

/// Changes that are not marked yet, oldest first.
#[derive(Debug, Default)]
pub struct Marks {
    waiting: VecDeque<(Vec<u64>, Change)>,
}

impl Marks {
    /// Adds a change, with the current account.
    pub fn wait(&mut self, account: &CaptureStats, change: Change) {
        let captured = counters(account).map(|counters| counters.captured).collect();
        self.waiting.push_back((captured, change));
    }

    /// Returns whether no changes are waiting.
    pub fn is_empty(&self) -> bool {
        self.waiting.is_empty()
    }

    /// Returns the oldest change, if everything captured before it has been delivered.
    pub fn due(&mut self, account: &CaptureStats) -> Option<Change> {
        let (captured, _) = self.waiting.front()?;
        let handed = counters(account).map(|counters| counters.delivered + counters.discarded);
        let due = captured.iter().zip(handed).all(|(&captured, handed)| captured <= handed);
        if due { self.waiting.pop_front().map(|(_, change)| change) } else { None }
    }

    /// Returns the oldest change, due or not, when nothing more will be delivered.
    pub fn last(&mut self) -> Option<Change> {
        self.waiting.pop_front().map(|(_, change)| change)
    }
}

fn counters(account: &CaptureStats) -> impl Iterator<Item = weir::PacketCounters> {
    account.interfaces.iter().flat_map(|interface| interface.queues.iter().map(|queue| queue.counters))
}

#[cfg(test)]
mod tests {
    use weir::{InterfaceStats, ModeKind, PacketCounters, QueueStats, SourceKind};

    use super::super::What;
    use super::*;

    fn account(queues: [(u64, u64); 2]) -> CaptureStats {
        let queues = queues.map(|(captured, delivered)| {
            weir::with!(
                QueueStats::default(),
                counters = weir::with!(PacketCounters::default(), captured, delivered)
            )
        });
        let mut interface = InterfaceStats::new(0, "eth0", SourceKind::Tc, ModeKind::Pass);
        interface.queues = queues.to_vec();
        weir::with!(CaptureStats::default(), interfaces = vec![interface])
    }

    #[test]
    fn a_mark_comes_behind_what_every_queue_had() {
        let mut marks = Marks::default();
        for time in [1, 2] {
            marks.wait(
                &account([(10 * time, 0), (5, 5)]),
                Change { time, by: None, what: What::Filter(None) },
            );
        }
        assert!(marks.due(&account([(30, 9), (30, 30)])).is_none());
        assert_eq!(marks.due(&account([(30, 10), (30, 5)])).map(|change| change.time), Some(1));
        assert!(marks.due(&account([(30, 19), (30, 30)])).is_none());
        assert_eq!(marks.last().map(|change| change.time), Some(2));
        assert!(marks.is_empty());
    }
}
