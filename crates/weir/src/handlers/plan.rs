//! What is asked of handlers.

use std::collections::BTreeSet;

use crate::Error;

/// Percent of a queue that is full before buddies help.
///
/// WireCAP's authors advise 50 where loss is critical and 80 where the caches of one processor matter more. Nothing lost is
/// what this is for; and a chunk is copied once by whoever writes it, so that its first reader meets it in no private cache
/// anyway, unless it is read at once, and then no queue fills.
pub const DEFAULT_THRESHOLD: u8 = 50;

/// What is promised of packets of one queue, once it is helped.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Order {
    /// Nothing: packets of a flow may be handled side by side, and out of order. Costs nothing.
    #[default]
    None,
    /// Packets of a flow that come on one queue are handled in the order in which they came, by one handler at a time. While
    /// a queue is too full each of its packets is looked at once more, to find its flow; a single flow is never divided.
    Flow,
}

/// How many handlers there are to be, where they run, and who helps whom.
#[derive(Clone, Debug)]
#[must_use]
pub struct Plan {
    handlers: usize,
    processors: Vec<u32>,
    /// Percent; `None`: basic mode.
    threshold: Option<u8>,
    groups: Vec<Vec<usize>>,
    order: Order,
}

/// A plan that fits the queues that there are.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Seating {
    /// By handler: its processor.
    pub(super) processors: Vec<Option<u32>>,
    /// By group: its queues. Empty in basic mode.
    pub(super) groups: Vec<Vec<usize>>,
    /// Percent.
    pub(super) threshold: u8,
    pub(super) order: Order,
}

impl Plan {
    /// This many handlers in basic mode: the chunks of queue q go to handler q modulo their number. Queues are counted
    /// over all interfaces, in their order. Where packets are steered ([`crate::Builder::steer`]) those of target t go to
    /// handler t modulo their number, of which the number of targets has to be a multiple.
    pub fn new(handlers: usize) -> Self {
        Self { handlers, processors: Vec::new(), threshold: None, groups: Vec::new(), order: Order::None }
    }

    /// Handler n is to run on the nth of these processors alone.
    pub fn pin(mut self, processors: impl IntoIterator<Item = u32>) -> Self {
        self.processors = processors.into_iter().collect();
        self
    }

    /// Advanced mode: a queue whose closed chunks are more than `percent` of those that can wait there is helped by the
    /// handlers of its group. All queues are one group unless [`group`](Self::group) says otherwise; in which order
    /// packets are handled then, [`order`](Self::order) says.
    pub fn advanced(mut self, percent: u8) -> Self {
        self.threshold = Some(percent);
        self
    }

    /// These queues are a group; a queue that is in none is not helped.
    pub fn group(mut self, queues: impl IntoIterator<Item = usize>) -> Self {
        self.groups.push(queues.into_iter().collect());
        self
    }

    /// What is promised of the order, in advanced mode. In basic mode each queue's packets are handled in order.
    pub fn order(mut self, order: Order) -> Self {
        self.order = order;
        self
    }

    /// Handlers that there are to be.
    pub fn handlers(&self) -> usize {
        self.handlers
    }

    /// Fits it to `queues` queues, which are for so many `targets`, if packets are steered, on a machine of `processors`
    /// processors.
    pub(crate) fn fit(&self, queues: usize, targets: Option<u32>, processors: u32) -> Result<Seating, Error> {
        let wrong = |what: String| Err(Error::Options(what));
        let handlers = self.handlers;
        if handlers == 0 {
            return wrong("need at least one handler".into());
        }
        if !self.processors.is_empty() && self.processors.len() != handlers {
            let pins = self.processors.len();
            return wrong(format!("{handlers} handlers and {pins} processors: name one processor for each"));
        }
        if let Some(missing) = self.processors.iter().find(|&&one| one >= processors) {
            return wrong(format!(
                "there is no processor {missing}: this machine has {processors}, counted from 0"
            ));
        }
        // Else queues of one target would be at home with several of them.
        if let Some(targets) = targets.filter(|&targets| !(targets as usize).is_multiple_of(handlers)) {
            return wrong(format!(
                "{targets} targets for {handlers} handlers: as many for each are needed, or what is steered to one target is divided"
            ));
        }
        let pins = (0..handlers).map(|handler| self.processors.get(handler).copied()).collect();
        let Some(threshold) = self.threshold else {
            if !self.groups.is_empty() {
                return wrong("a group of queues means something in advanced mode only".into());
            }
            if handlers > queues {
                return wrong(format!(
                    "{handlers} handlers for {queues} queues: some would have nothing to do, unless in advanced mode"
                ));
            }
            return Ok(Seating { processors: pins, groups: Vec::new(), threshold: 100, order: Order::None });
        };
        if !(1..=99).contains(&threshold) {
            return wrong(format!(
                "a threshold of {threshold} %: 1 to 99 can be exceeded by a queue that still has room"
            ));
        }
        let all = || vec![(0..queues).collect()];
        let groups = if self.groups.is_empty() { all() } else { self.groups.clone() };
        let mut group_of: Vec<Option<usize>> = vec![None; queues];
        for (number, group) in groups.iter().enumerate() {
            for &queue in group {
                match group_of.get_mut(queue) {
                    None => {
                        return wrong(format!(
                            "there is no queue {queue}: there are {queues}, counted from 0"
                        ));
                    }
                    Some(Some(other)) if *other == number => {
                        return wrong(format!("queue {queue} is named twice in one group"));
                    }
                    Some(Some(_)) => {
                        return wrong(format!(
                            "queue {queue} is in two groups: one is all that it can be in"
                        ));
                    }
                    Some(place) => *place = Some(number),
                }
            }
            if members(group, queues, handlers) < 2 {
                return wrong(format!(
                    "group {number} has a single handler, which nothing can help; use more handlers, or share queues"
                ));
            }
        }
        Ok(Seating { processors: pins, groups, threshold, order: self.order })
    }
}

/// How many of `handlers` handlers take from the queues of a group, of `queues` that there are: those at home there, and those
/// who are at home nowhere.
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
            (Plan::new(5), "nothing to do"),
            (Plan::new(2).pin([1]), "one processor for each"),
            (Plan::new(2).pin([1, 8]), "no processor 8"),
            (Plan::new(2).group([0, 1]), "advanced mode only"),
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
