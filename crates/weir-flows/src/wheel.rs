//! When to look at a flow again: flows by the time of their deadline, in slots.
//!
//! A deadline that moves away leaves its flow where it is; whoever takes the flow from its slot asks for the deadline anew. So a
//! packet that keeps its flow alive costs nothing here.

use std::collections::TryReserveError;

const SLOTS: u32 = 1024;
/// Slots of the longest time that a deadline can be away; the others are for what is rounded.
const SPAN: u64 = 1000;

/// Flows, by numbers below a limit, each at most once.
#[derive(Debug)]
pub(crate) struct Wheel {
    /// The neighbours of each flow in its slot, then those of the slots themselves: each is a ring that begins at its slot.
    links: Vec<Links>,
    /// Number of the first slot.
    slots: u32,
    /// Nanoseconds of a slot.
    step: u64,
    /// No flow is in an earlier tick; a tick is a slot, again and again.
    now: u64,
    /// No flow is between `now` and this.
    earliest: u64,
    len: u32,
}

#[derive(Clone, Copy, Debug)]
struct Links {
    previous: u32,
    next: u32,
}

impl Wheel {
    /// For numbers below `flows`, and deadlines at most `span` nanoseconds away.
    pub(crate) fn new(flows: u32, span: u64) -> Result<Self, TryReserveError> {
        let mut links = Vec::new();
        links.try_reserve_exact((flows + SLOTS) as usize)?;
        links.extend((0..flows + SLOTS).map(|own| Links { previous: own, next: own }));
        Ok(Self { links, slots: flows, step: (span / SPAN).max(1), now: 0, earliest: 0, len: 0 })
    }

    fn slot(&self, tick: u64) -> u32 {
        self.slots + u32::try_from(tick % u64::from(SLOTS)).expect("below the number of slots")
    }

    /// Returns the tick of a time.
    pub(crate) fn tick(&self, time: u64) -> u64 {
        time / self.step
    }

    /// Moves on to this tick, once all earlier flows have been taken.
    pub(crate) fn is_due(&self, tick: u64) -> bool {
        tick > self.now
    }

    /// Forgets the time. Nothing may be in it.
    pub(crate) fn restart(&mut self, tick: u64) {
        debug_assert_eq!(self.len, 0);
        (self.now, self.earliest) = (tick, tick);
    }

    /// Puts a flow behind the others of its slot, to be taken once the deadline is over.
    pub(crate) fn insert(&mut self, flow: u32, deadline: u64) {
        let tick = self.tick(deadline).clamp(self.now, self.now + u64::from(SLOTS) - 1);
        self.earliest = self.earliest.min(tick);
        let slot = self.slot(tick);
        let last = self.links[slot as usize].previous;
        self.links[flow as usize] = Links { previous: last, next: slot };
        self.links[last as usize].next = flow;
        self.links[slot as usize].previous = flow;
        self.len += 1;
    }

    /// Takes a flow out.
    pub(crate) fn remove(&mut self, flow: u32) {
        let Links { previous, next } = self.links[flow as usize];
        self.links[previous as usize].next = next;
        self.links[next as usize].previous = previous;
        self.links[flow as usize] = Links { previous: flow, next: flow };
        self.len -= 1;
    }

    /// Takes a flow out whose slot is before this tick.
    pub(crate) fn pop_before(&mut self, tick: u64) -> Option<u32> {
        if self.len == 0 {
            self.now = self.now.max(tick);
            self.earliest = self.now;
            return None;
        }
        while self.now < tick {
            // Where nothing is, nothing is looked for.
            self.now = self.now.max(self.earliest.min(tick));
            if self.now == tick {
                break;
            }
            if let Some(flow) = self.pop(self.now) {
                return Some(flow);
            }
            self.now += 1;
            self.earliest = self.earliest.max(self.now);
        }
        None
    }

    /// Takes a flow out of the first slot with one, and returns the tick of that slot.
    pub(crate) fn pop_first(&mut self) -> Option<(u32, u64)> {
        if self.len == 0 {
            return None;
        }
        loop {
            if let Some(flow) = self.pop(self.earliest) {
                return Some((flow, self.earliest));
            }
            self.earliest += 1;
        }
    }

    fn pop(&mut self, tick: u64) -> Option<u32> {
        let flow = self.links[self.slot(tick) as usize].next;
        (flow < self.slots).then(|| {
            self.remove(flow);
            flow
        })
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use proptest::prelude::*;

    use super::*;

    proptest! {
        /// What an ordered map would do, to a slot.
        #[test]
        fn flows_come_in_the_order_of_their_slots(
            steps in prop::collection::vec((0_u8..4, 0_u32..20, 0_u64..100_000), 1..200)
        ) {
            let mut wheel = Wheel::new(20, 100_000).expect("little memory");
            let mut expected: BTreeMap<u32, u64> = BTreeMap::new();
            let mut now = 0;
            for (what, flow, time) in steps {
                match what {
                    0 | 1 if !expected.contains_key(&flow) => {
                        wheel.insert(flow, now + time);
                        expected.insert(flow, wheel.tick(now + time).max(wheel.now));
                    }
                    2 if expected.remove(&flow).is_some() => wheel.remove(flow),
                    2 => if let Some((flow, tick)) = wheel.pop_first() {
                        prop_assert_eq!(expected.remove(&flow), Some(tick));
                        prop_assert!(expected.values().all(|other| *other >= tick));
                    } else {
                        prop_assert!(expected.is_empty());
                    },
                    _ => {
                        now += time;
                        let tick = wheel.tick(now);
                        while let Some(flow) = wheel.pop_before(tick) {
                            let found = expected.remove(&flow);
                            prop_assert!(found.is_some_and(|found| found < tick));
                        }
                        prop_assert!(expected.values().all(|other| *other >= tick));
                    }
                }
                prop_assert_eq!(wheel.len as usize, expected.len());
            }
        }
    }
}
