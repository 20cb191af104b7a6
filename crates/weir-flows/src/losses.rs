//! What was lost when, so that a flow can say how many packets may be missing in it.

use std::collections::VecDeque;

/// The most losses of an interface that are kept apart; then each becomes one with its neighbour.
const MOST: usize = 512;

/// Packets that were lost within some time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Loss {
    /// Not before this time, nor at it.
    after: u64,
    until: u64,
    packets: u64,
}

/// Losses by the number of the interface, each in the order of [`Loss::until`].
#[derive(Debug, Default)]
pub(crate) struct Losses {
    interfaces: Vec<VecDeque<Loss>>,
}

impl Losses {
    /// Adds a loss.
    pub(crate) fn add(&mut self, interface: u16, after: u64, until: u64, packets: u64) {
        let index = usize::from(interface);
        if self.interfaces.len() <= index {
            self.interfaces.resize_with(index + 1, VecDeque::new);
        }
        let losses = &mut self.interfaces[index];
        let place = losses.partition_point(|loss| loss.until <= until);
        losses.insert(place, Loss { after, until, packets });
        if losses.len() > MOST {
            let all: Vec<_> = losses.drain(..).collect();
            losses.extend(all.chunks(2).map(|pair| Loss {
                after: pair.iter().map(|loss| loss.after).min().unwrap_or_default(),
                until: pair.iter().map(|loss| loss.until).max().unwrap_or_default(),
                packets: pair.iter().map(|loss| loss.packets).sum(),
            }));
        }
    }

    /// Returns how many packets at most were lost after the first and before the last of two packets. `interface`: that of their flow;
    /// `None`: any.
    pub(crate) fn between(&self, interface: Option<u16>, first: u64, last: u64) -> u64 {
        if first >= last || self.interfaces.is_empty() {
            return 0;
        }
        let (from, to) = match interface.map(usize::from) {
            Some(index) => (index.min(self.interfaces.len()), (index + 1).min(self.interfaces.len())),
            None => (0, self.interfaces.len()),
        };
        // Most flows have ended lately.
        let some = |losses: &VecDeque<Loss>| -> u64 {
            let later = losses.iter().rev().take_while(|loss| loss.until > first);
            later.filter(|loss| loss.after < last).map(|loss| loss.packets).sum()
        };
        self.interfaces[from..to].iter().map(some).sum()
    }

    /// The clock of the packets begins anew.
    pub(crate) fn clear(&mut self) {
        self.interfaces.clear();
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn what_was_lost_before_the_first_or_after_the_last_packet_does_not_count() {
        let mut losses = Losses::default();
        losses.add(0, 10, 20, 5);
        losses.add(2, 10, 20, 7);
        for (first, last, expected) in
            [(0, 10, 0), (0, 11, 5), (10, 20, 5), (19, 30, 5), (20, 30, 0), (15, 15, 0), (12, 13, 5)]
        {
            assert_eq!(losses.between(Some(0), first, last), expected, "{first} {last}");
        }
        assert_eq!([Some(1), Some(2), Some(3), None].map(|one| losses.between(one, 0, 99)), [0, 7, 0, 12]);
        losses.clear();
        assert_eq!(losses.between(None, 0, 99), 0);
    }

    proptest! {
        /// However much is forgotten of when something was lost, a flow is never told too little.
        #[test]
        fn a_flow_is_never_told_too_little(
            all in prop::collection::vec((0_u64..5000, 1_u64..50, 1_u64..9), 0..1500),
            flows in prop::collection::vec((0_u64..5000, 1_u64..3000), 1..20),
        ) {
            let mut losses = Losses::default();
            all.iter().for_each(|(after, time, packets)| losses.add(0, *after, after + time, *packets));
            prop_assert!(losses.interfaces.iter().all(|one| one.len() <= MOST));
            for (first, time) in flows {
                let last = first + time;
                let overlaps = |(after, time, _): &&(u64, u64, u64)| *after < last && after + time > first;
                let exact: u64 = all.iter().filter(overlaps).map(|(.., packets)| packets).sum();
                let told = losses.between(Some(0), first, last);
                prop_assert!(told >= exact);
                prop_assert!(all.len() > MOST || told == exact);
                prop_assert_eq!(losses.between(None, 0, 9999), all.iter().map(|(.., packets)| packets).sum::<u64>());
            }
        }
    }
}
