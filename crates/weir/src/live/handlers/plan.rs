//! The configuration of handlers.

use std::collections::BTreeSet;

use crate::{Error, Setting};

/// How full a queue may be before others help, in percent.
///
/// The authors of WireCAP recommend 50 if loss is critical, and 80 if the caches of one processor matter more. Here
/// nothing should be lost. Besides, the writer of a chunk copies it once, so its first reader does not find it in a
/// private cache anyway, unless it reads the chunk at once; and then no queue fills up.
pub const DEFAULT_THRESHOLD: u8 = 50;

/// The order in which packets of one queue are handled when others help.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum Order {
    /// No guarantee: packets of a flow may be handled in parallel and out of order. This costs nothing.
    #[default]
    None,
    /// Packets of a flow that arrive on one queue are handled in order, by one handler at a time. While a queue is too
    /// full, each packet is parsed to find its flow; a single flow is never divided.
    Flow,
}

/// How many handlers to run, on which processors, and which of them help each other.
#[derive(Clone, Debug)]
#[must_use]
pub struct Plan {
    handlers: usize,
    processors: Vec<u32>,
    /// In percent; `None`: basic mode.
    threshold: Option<u8>,
    groups: Vec<Vec<usize>>,
    order: Order,
}

/// A plan fitted to the existing queues: who gets what.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Assignment {
    /// The processor of each handler.
    pub(super) processors: Vec<Option<u32>>,
    /// The queues of each group. Empty in basic mode.
    pub(super) groups: Vec<Vec<usize>>,
    /// In percent.
    pub(super) threshold: u8,
    pub(super) order: Order,
}

impl Plan {
    /// Creates a plan for this many handlers in basic mode: queue q belongs to handler q modulo the number of handlers.
    ///
    /// Queues are counted across all interfaces, in order. If packets are steered ([`crate::Builder::steer`]), target t
    /// belongs to handler t modulo the number of handlers, and the number of targets has to be a multiple of the number
    /// of handlers.
    pub fn new(handlers: usize) -> Self {
        Self { handlers, processors: Vec::new(), threshold: None, groups: Vec::new(), order: Order::None }
    }

    /// Pins handler n to the nth of these processors.
    pub fn pin(mut self, processors: impl IntoIterator<Item = u32>) -> Self {
        self.processors = processors.into_iter().collect();
        self
    }

    /// Switches to advanced mode: if the closed chunks of a queue exceed `percent` of those that can wait, other
    /// handlers of its group help. All queues form one group unless [`group`](Self::group) is called;
    /// [`order`](Self::order) sets the order in which packets are then handled.
    pub fn advanced(mut self, percent: u8) -> Self {
        self.threshold = Some(percent);
        self
    }

    /// Makes these queues a group. A queue without a group gets no help.
    pub fn group(mut self, queues: impl IntoIterator<Item = usize>) -> Self {
        self.groups.push(queues.into_iter().collect());
        self
    }

    /// Sets the order of packets in advanced mode. In basic mode the packets of each queue are handled in order.
    pub fn order(mut self, order: Order) -> Self {
        self.order = order;
        self
    }

    /// Returns the number of handlers.
    pub fn handlers(&self) -> usize {
        self.handlers
    }

    /// Fits the plan to `queues` queues, for `targets` targets if packets are steered, on a machine with `processors`
    /// processors.
    pub(crate) fn fit(
        &self,
        queues: usize,
        targets: Option<u32>,
        processors: u32,
    ) -> Result<Assignment, Error> {
        let wrong = |setting, why: String| Err(Error::setting(setting, why));
        let conflict = |one, other, why: String| Err(Error::conflict(one, other, why));
        let handlers = self.handlers;
        if handlers == 0 {
            return wrong(Setting::Handlers, "at least one handler is required".into());
        }
        if !self.processors.is_empty() && self.processors.len() != handlers {
            let pins = self.processors.len();
            return conflict(
                Setting::Pin,
                Setting::Handlers,
                format!("name as many CPUs as handlers: {handlers}, not {pins}"),
            );
        }
        if let Some(missing) = self.processors.iter().find(|&&one| one >= processors) {
            return wrong(
                Setting::Pin,
                format!("no CPU {missing}: this machine has {processors}, numbered from 0"),
            );
        }
        // Otherwise the queues of one target would belong to several handlers.
        if let Some(targets) = targets.filter(|&targets| !(targets as usize).is_multiple_of(handlers)) {
            return conflict(
                Setting::Targets,
                Setting::Handlers,
                format!(
                    "{targets} targets for {handlers} handlers: the number of targets must be a multiple of the number of handlers"
                ),
            );
        }
        let pins = (0..handlers).map(|handler| self.processors.get(handler).copied()).collect();
        let Some(threshold) = self.threshold else {
            if !self.groups.is_empty() {
                return conflict(
                    Setting::Group,
                    Setting::Advanced,
                    "groups of queues require advanced mode".into(),
                );
            }
            if handlers > queues {
                return wrong(
                    Setting::Handlers,
                    format!(
                        "more handlers ({handlers}) than queues ({queues}): some would be idle unless in advanced mode"
                    ),
                );
            }
            return Ok(Assignment {
                processors: pins,
                groups: Vec::new(),
                threshold: 100,
                order: Order::None,
            });
        };
        if !(1..=99).contains(&threshold) {
            return wrong(
                Setting::Threshold,
                format!("a threshold of {threshold} % is out of range: 1 to 99"),
            );
        }
        let all = || vec![(0..queues).collect()];
        let groups = if self.groups.is_empty() { all() } else { self.groups.clone() };
        let mut group_of: Vec<Option<usize>> = vec![None; queues];
        for (number, group) in groups.iter().enumerate() {
            for &queue in group {
                match group_of.get_mut(queue) {
                    None => {
                        return wrong(
                            Setting::Group,
                            format!("no queue {queue}: there are {queues}, numbered from 0"),
                        );
                    }
                    Some(Some(other)) if *other == number => {
                        return wrong(Setting::Group, format!("queue {queue} is named twice in one group"));
                    }
                    Some(Some(_)) => {
                        return wrong(
                            Setting::Group,
                            format!("queue {queue} is in two groups: it can be in only one"),
                        );
                    }
                    Some(place) => *place = Some(number),
                }
            }
            if members(group, queues, handlers) < 2 {
                return conflict(
                    Setting::Handlers,
                    Setting::Group,
                    format!(
                        "group {number} has a single handler, which no other can help; use more handlers or larger groups"
                    ),
                );
            }
        }
        Ok(Assignment { processors: pins, groups, threshold, order: self.order })
    }
}

/// Returns how many of `handlers` handlers take from the queues of a group: those whose own queues are in it, and those
/// without any queue. `queues` is the total number of queues.
pub(super) fn members(group: &[usize], queues: usize, handlers: usize) -> usize {
    let at_home = group.iter().map(|queue| queue % handlers);
    at_home.chain(queues..handlers).collect::<BTreeSet<_>>().len()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refusal(plan: &Plan) -> String {
        plan.fit(4, None, 8).expect_err("must be refused").to_string()
    }

    #[test]
    fn plans_that_cannot_be_say_why() {
        let table = [
            (Plan::new(0), "at least one"),
            (Plan::new(5), "some would be idle"),
            (Plan::new(2).pin([1]), "as many CPUs as handlers"),
            (Plan::new(2).pin([1, 8]), "no CPU 8"),
            (Plan::new(2).group([0, 1]), "require advanced mode"),
            (Plan::new(2).advanced(0), "1 to 99"),
            (Plan::new(2).advanced(101), "1 to 99"),
            (Plan::new(2).advanced(60).group([0, 4]), "no queue 4"),
            (Plan::new(2).advanced(60).group([0, 1]).group([1, 2]), "two groups"),
            (Plan::new(2).advanced(60).group([0, 0]), "named twice"),
            (Plan::new(2).advanced(60).group([0, 2]), "a single handler"),
            (Plan::new(1).advanced(60), "handler"),
        ];
        for (plan, part) in table {
            let told = refusal(&plan);
            assert!(told.contains(part), "{plan:?}: {told}");
        }
    }

    #[test]
    fn what_is_steered_to_one_target_is_not_divided() {
        for (handlers, is_refused) in [(1, false), (2, false), (3, true), (4, false), (8, true)] {
            let fitted = Plan::new(handlers).fit(8, Some(4), 8);
            assert_eq!(fitted.is_err(), is_refused, "{fitted:?}");
        }
    }

    #[test]
    fn all_queues_are_one_group_unless_groups_are_named() {
        let fit = |plan: Plan| plan.fit(4, None, 8).expect("can be").groups;
        assert_eq!(fit(Plan::new(4)), Vec::<Vec<usize>>::new());
        assert_eq!(fit(Plan::new(4).advanced(50)), [[0, 1, 2, 3]]);
        assert_eq!(fit(Plan::new(4).advanced(50).group([2, 3])), [[2, 3]]);
        assert_eq!(
            fit(Plan::new(6).advanced(50).group([0])),
            [[0]],
            "two handlers have no queue, and help all"
        );
    }
}
