//! Which queue needs help, decided from nothing but the numbers of closed chunks that wait.

/// The fullness of a queue at its limit.
pub const FULL: u64 = 1000;

/// How many closed chunks of a queue may wait before the handlers of other queues help.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limit(u32);

impl Limit {
    /// Returns the limit of a queue with so many `chunks`, in `percent` of those that can wait: one is being written, and one
    /// is held by its handler.
    pub fn new(chunks: u32, percent: u8) -> Self {
        let can_wait = u64::from(chunks.saturating_sub(2).max(1));
        Self(u32::try_from(can_wait * u64::from(percent) / 100).unwrap_or(u32::MAX))
    }

    /// Returns whether others help when so many chunks wait.
    pub fn is_exceeded_by(self, waiting: u32) -> bool {
        waiting > self.0
    }

    /// Returns how full the queue is when so many chunks wait, in thousandths of its limit: above [`FULL`] if, and only
    /// if, it is exceeded.
    pub fn fullness(self, waiting: u32) -> u64 {
        let (waiting, limit) = (u64::from(waiting), u64::from(self.0));
        match waiting.checked_sub(limit + 1) {
            Some(more) => FULL + 1 + more * FULL / limit.max(1),
            None => waiting * FULL / limit.max(1),
        }
    }
}

/// The queue that needs help most, among those that were looked at.
#[derive(Clone, Copy, Debug)]
pub struct Neediest<Q>(Option<(Q, u64)>);

impl<Q> Default for Neediest<Q> {
    fn default() -> Self {
        Self(None)
    }
}

impl<Q> Neediest<Q> {
    /// Looks at a queue of another handler.
    pub fn look(&mut self, queue: Q, fullness: u64) {
        let more = self.0.as_ref().is_none_or(|(_, most)| fullness > *most);
        if fullness > FULL && more {
            self.0 = Some((queue, fullness));
        }
    }

    /// Returns the fullest queue that is too full, if it is fuller than all queues of the handler that would help.
    pub fn beyond(self, own: impl IntoIterator<Item = u64>) -> Option<Q> {
        let (queue, fullness) = self.0?;
        own.into_iter().all(|own| own < fullness).then_some(queue)
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    #[test]
    fn a_queue_is_full_beyond_its_limit() {
        for (chunks, percent, limit) in
            [(100, 60, 58), (12, 50, 5), (2, 99, 0), (2, 100, 1), (3, 99, 0), (0, 1, 0)]
        {
            let asked = Limit::new(chunks, percent);
            for waiting in 0..200 {
                assert_eq!(asked.is_exceeded_by(waiting), waiting > limit, "{chunks} {percent} {waiting}");
                assert_eq!(asked.fullness(waiting) > FULL, waiting > limit, "{chunks} {percent} {waiting}");
                assert!(asked.fullness(waiting) < asked.fullness(waiting + 1) || limit > 900);
            }
        }
    }

    #[test]
    fn the_fullest_is_helped_by_who_has_less_to_do() {
        let among = |queues: &[(char, u64)]| {
            let mut neediest = Neediest::default();
            queues.iter().for_each(|&(queue, fullness)| neediest.look(queue, fullness));
            neediest
        };
        let some = among(&[('a', 900), ('b', 1200), ('c', 1500), ('d', 1500)]);
        assert_eq!(some.beyond([]), Some('c'));
        assert_eq!(some.beyond([1499, 0]), Some('c'));
        assert_eq!(some.beyond([0, 1500]), None);
        assert_eq!(among(&[('a', 900), ('b', FULL)]).beyond([]), None);
    }
}
