//! Verifies numbered frames on arrival.

use std::ops::Range;

use crate::{Checker, Corrupt, Traffic};

/// A check of received frames, which reports missing, duplicate, reordered and changed ones.
///
/// Every number is remembered (one bit each), so the report is exact in any order of arrival.
#[derive(Debug)]
pub struct SequenceCheck {
    traffic: Traffic,
    checker: Checker,
    sent: Range<u64>,
    /// One bit for each number in `sent`.
    arrived: Vec<u64>,
    flows: Vec<Flow>,
    corrupt: u64,
    first_corrupt: Option<Corrupt>,
}

#[derive(Clone, Debug, Default)]
struct Flow {
    counters: FlowCounters,
    /// Highest number that has arrived.
    last: Option<u64>,
}

/// Counters for one flow or all flows. `sent = received - duplicated + lost`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct FlowCounters {
    /// Intact frames received.
    pub received: u64,
    /// Numbers for which no intact frame arrived.
    pub lost: u64,
    /// Duplicates.
    pub duplicated: u64,
    /// Frames whose first arrival was after a later frame of the same flow.
    pub reordered: u64,
}

/// The result of a [`SequenceCheck`].
#[derive(Clone, Debug)]
pub struct SequenceReport {
    /// Sums over all flows.
    pub total: FlowCounters,
    /// Counters by flow number.
    pub flows: Vec<FlowCounters>,
    /// Frames that match none of those sent: changed, of another length, or foreign.
    pub corrupt: u64,
    /// The error in the first of them.
    pub first_corrupt: Option<Corrupt>,
}

impl SequenceReport {
    /// Returns whether every frame arrived once, intact and in order within its flow, and nothing else did.
    pub fn is_perfect(&self) -> bool {
        let FlowCounters { lost, duplicated, reordered, .. } = self.total;
        lost == 0 && duplicated == 0 && reordered == 0 && self.corrupt == 0
    }
}

impl SequenceCheck {
    /// Expects the frames with the numbers in `sent`.
    pub fn new(traffic: &Traffic, sent: Range<u64>) -> Self {
        let numbers = usize::try_from(sent.end - sent.start).expect("numbers fit into memory");
        let flows = usize::try_from(traffic.flow_count()).expect("flows fit into memory");
        Self {
            traffic: traffic.clone(),
            checker: Checker::new(traffic),
            sent,
            arrived: vec![0; numbers.div_ceil(64)],
            flows: vec![Flow::default(); flows],
            corrupt: 0,
            first_corrupt: None,
        }
    }

    /// Checks a received frame.
    pub fn frame(&mut self, frame: &[u8]) {
        let checked = self.checker.check(frame);
        self.take(checked);
    }

    /// Checks a received frame that was truncated.
    pub fn cut_frame(&mut self, start: &[u8]) {
        let checked = self.checker.check_cut(start);
        self.take(checked);
    }

    fn take(&mut self, checked: Result<u64, Corrupt>) {
        let sent = checked.and_then(|sequence| {
            if self.sent.contains(&sequence) { Ok(sequence) } else { Err(Corrupt::Unsent { sequence }) }
        });
        match sent {
            Ok(sequence) => self.arrive(sequence),
            Err(corrupt) => {
                self.corrupt += 1;
                self.first_corrupt.get_or_insert(corrupt);
            }
        }
    }

    fn arrive(&mut self, sequence: u64) {
        let (word, bit) = place(sequence - self.sent.start);
        let flow = &mut self.flows[index(self.traffic.flow(sequence))];
        flow.counters.received += 1;
        if self.arrived[word] & bit != 0 {
            flow.counters.duplicated += 1;
            return;
        }
        self.arrived[word] |= bit;
        if flow.last > Some(sequence) {
            flow.counters.reordered += 1;
        } else {
            flow.last = Some(sequence);
        }
    }

    /// Returns the report, after the last frame.
    pub fn finish(mut self) -> SequenceReport {
        for sequence in self.sent.clone() {
            let (word, bit) = place(sequence - self.sent.start);
            if self.arrived[word] & bit == 0 {
                self.flows[index(self.traffic.flow(sequence))].counters.lost += 1;
            }
        }
        let flows: Vec<_> = self.flows.iter().map(|flow| flow.counters).collect();
        let total = flows.iter().fold(FlowCounters::default(), |a, b| FlowCounters {
            received: a.received + b.received,
            lost: a.lost + b.lost,
            duplicated: a.duplicated + b.duplicated,
            reordered: a.reordered + b.reordered,
        });
        SequenceReport { total, flows, corrupt: self.corrupt, first_corrupt: self.first_corrupt }
    }
}

/// Returns the word and bit of the `n`th number.
fn place(n: u64) -> (usize, u64) {
    (usize::try_from(n / 64).expect("numbers fit into memory"), 1 << (n % 64))
}

fn index(flow: u32) -> usize {
    usize::try_from(flow).expect("flows fit into memory")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn traffic() -> Traffic {
        Traffic::new(60).expect("size").flows(3).expect("flows")
    }

    fn report(order: &[u64]) -> SequenceReport {
        let mut check = SequenceCheck::new(&traffic(), 100..110);
        order.iter().for_each(|&sequence| check.frame(&traffic().frame(sequence)));
        check.finish()
    }

    #[test]
    fn all_in_order_is_perfect() {
        let report = report(&[100, 101, 102, 103, 104, 105, 106, 107, 108, 109]);
        assert!(report.is_perfect(), "{report:?}");
        assert_eq!(report.flows.iter().map(|flow| flow.received).collect::<Vec<_>>(), [3, 4, 3]);
    }

    #[test]
    fn order_matters_only_inside_a_flow() {
        assert!(report(&[101, 102, 100, 103, 105, 104, 106, 109, 107, 108]).is_perfect());
        // 100 and 103 belong to the same flow.
        let report = report(&[103, 101, 102, 100, 104, 105, 106, 107, 108, 109]);
        assert_eq!(report.total, FlowCounters { received: 10, reordered: 1, ..FlowCounters::default() });
    }

    #[test]
    fn gaps_and_doubles_are_counted_in_their_flows() {
        let report = report(&[100, 100, 101, 103, 104, 106, 107, 109, 109, 109]);
        assert_eq!(report.total, FlowCounters { received: 10, lost: 3, duplicated: 3, reordered: 0 });
        // 102, 105 and 108 belong to flow 0, 100 and 109 to flow 1.
        assert_eq!(report.flows[0].lost, 3);
        assert_eq!(report.flows[1].duplicated, 3);
        assert_eq!(report.total.received - report.total.duplicated + report.total.lost, 10);
    }

    #[test]
    fn foreign_and_changed_frames_are_corrupt() {
        let mut check = SequenceCheck::new(&traffic(), 100..110);
        check.frame(&traffic().frame(110));
        check.frame(&[0; 42]);
        let report = check.finish();
        assert_eq!((report.corrupt, report.total.lost), (2, 10));
        assert_eq!(report.first_corrupt, Some(Corrupt::Unsent { sequence: 110 }));
    }
}
