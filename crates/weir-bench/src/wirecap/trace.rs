//! Traffic as it comes to a border router: a few flows carry most of the packets, and flows send in bursts.

use std::time::Duration;

/// All packets of a step come at its beginning.
pub(super) const STEP: Duration = Duration::from_millis(50);

const FLOWS: u64 = 1000;
/// The packets of flow f are in proportion to f to the power of this (Zipf).
const EXPONENT: f64 = -1.5;
/// One step in so many is a burst of a flow, in which it sends so many times as much.
const RARELY: u64 = 10;
const BURST: f64 = 4.0;
/// With this one, one queue gets much more than the others, whether they are 4, 5 or 6.
const SEED: u64 = 2014;

/// Packets by step and queue.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Trace(Vec<Vec<u64>>);

impl Trace {
    /// `per_step`: packets of all queues together.
    pub(super) fn new(queues: u64, steps: u64, per_step: f64) -> Self {
        let step = |step: u64| {
            let mut weights = vec![0.0; usize::try_from(queues).unwrap_or(1)];
            for flow in 1..=FLOWS {
                let bursts = mixed(SEED ^ (step * FLOWS + flow) << 16).is_multiple_of(RARELY);
                let queue = mixed(SEED + flow) % queues;
                weights[usize::try_from(queue).unwrap_or(0)] +=
                    (flow as f64).powf(EXPONENT) * if bursts { BURST } else { 1.0 };
            }
            let all: f64 = weights.iter().sum();
            weights.iter().map(|weight| crate::units::whole(per_step * weight / all)).collect()
        };
        Self((0..steps).map(step).collect())
    }

    pub(super) fn steps(&self) -> &[Vec<u64>] {
        &self.0
    }

    /// Packets of each queue.
    pub(super) fn queues(&self) -> Vec<u64> {
        let queues = self.0.first().map_or(0, Vec::len);
        (0..queues).map(|queue| self.0.iter().map(|step| step[queue]).sum()).collect()
    }

    /// Packets that find no room by arithmetic, where each queue has so much room, and a handler that does so many packets in
    /// each step: what comes, less what is handled, less what the pool holds, step by step.
    pub(super) fn lost(&self, room: f64, handled: &[f64]) -> f64 {
        let queue = |queue: usize| {
            let (mut waiting, mut lost) = (0.0, 0.0);
            for (step, handled) in self.0.iter().zip(handled) {
                waiting += step[queue] as f64;
                lost += (waiting - room).max(0.0);
                waiting = (waiting.min(room) - handled).max(0.0);
            }
            lost
        };
        (0..self.queues().len()).map(queue).sum()
    }
}

fn mixed(number: u64) -> u64 {
    crate::units::mixed(number.wrapping_add(crate::units::GAMMA))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// In units of what one handler does in a step: together they can do all, and one of them cannot do its part.
    #[test]
    fn one_queue_gets_too_much_and_all_others_what_they_can_do() {
        for queues in [4, 5, 6] {
            let (steps, handled) = (100, 2000.0);
            let trace = Trace::new(queues, steps, 0.8 * handled * queues as f64);
            let mut shares: Vec<f64> =
                trace.queues().iter().map(|&packets| packets as f64 / steps as f64 / handled).collect();
            shares.sort_by(|a, b| b.total_cmp(a));
            assert!(shares[0] > 1.5 && shares[1] < 1.0, "{queues}: {shares:?}");
            let hottest = |step: &Vec<u64>| step.iter().copied().max();
            let hottest: Vec<_> = trace.steps().iter().filter_map(hottest).collect();
            assert!(hottest.iter().max() > hottest.iter().min(), "bursts");
            assert_eq!(trace, Trace::new(queues, steps, 0.8 * handled * queues as f64));
        }
    }

    #[test]
    fn what_is_lost_follows_from_what_comes() {
        let trace = Trace(vec![vec![100, 10], vec![100, 10], vec![0, 0], vec![100, 0]]);
        // 100, 100 + 60, 60 + 0 and 20 + 100 meet room for 120; each time 40 are handled.
        assert_eq!(trace.lost(120.0, &[40.0; 4]), 40.0 + 20.0);
        assert_eq!(trace.lost(1000.0, &[40.0; 4]), 0.0);
        assert_eq!(trace.lost(0.0, &[40.0; 4]), 320.0);
        assert_eq!(trace.queues(), [300, 20]);
    }
}
