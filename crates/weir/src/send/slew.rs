//! When a packet leaves that is due after a late one.
//!
//! ```text
//! due      |    |    |    |    |    |
//! at once  |            | ||   |    |     a late packet makes two gaps wrong: one too long, one too short
//! slewed   |            |   |   |   |     here: the gaps that follow are all a little too short
//! ```

use std::time::Duration;

/// Each packet makes up for this part of the delay. With less, packets that come faster than they can be sent add up to a
/// longer delay; with more, the gaps behind them get as wrong as those between them.
const OF_DELAY: u32 = 32;
/// Or for this part of the gap before it, if that is more: else a few packets an hour would be late for an hour.
const OF_GAP: u32 = 100;
/// What is beyond this, a packet makes up for at once. A packet that is later than this is sent at once, too.
pub(super) const MOST: Duration = Duration::from_millis(1);

/// The delay of the last packet, and how it is made up for: as clocks are set right, in small steps.
#[derive(Debug, Default)]
pub(super) struct Slew {
    /// When the last packet was due.
    due: Duration,
    /// How late it was sent.
    delay: Duration,
}

impl Slew {
    /// Returns when to send a packet that is due then: at that time, or a little less late than the packet before.
    pub(super) fn target(&self, due: Duration) -> Duration {
        let gap = due.saturating_sub(self.due);
        let made_up = (self.delay / OF_DELAY).max(gap / OF_GAP);
        due.saturating_add(self.delay.saturating_sub(made_up).min(MOST))
    }

    /// Notes when a packet was sent, and returns how late that was.
    pub(super) fn sent(&mut self, due: Duration, at: Duration) -> Duration {
        (self.due, self.delay) = (due, at.saturating_sub(due));
        self.delay
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const fn us(microseconds: u64) -> Duration {
        Duration::from_micros(microseconds)
    }

    /// Sends packets by a clock of its own; returns when. A packet takes `cost` after which the next one can be sent, and
    /// the one with number `stops.0` is delayed by `stops.1`.
    fn run(
        dues: impl IntoIterator<Item = Duration>,
        cost: Duration,
        stops: (usize, Duration),
    ) -> Vec<Duration> {
        let (mut slew, mut clock) = (Slew::default(), Duration::ZERO);
        let send = |(number, due): (usize, Duration)| {
            clock = clock.max(slew.target(due));
            if number == stops.0 {
                clock += stops.1;
            }
            slew.sent(due, clock);
            let at = clock;
            clock += cost;
            at
        };
        dues.into_iter().enumerate().map(send).collect()
    }

    fn evenly(packets: u32, gap: Duration) -> impl Iterator<Item = Duration> + Clone {
        (0..packets).map(move |number| gap * number)
    }

    #[test]
    fn what_is_on_time_stays_on_time() {
        let dues: Vec<_> = evenly(1000, us(10)).collect();
        assert_eq!(run(dues.clone(), us(2), (0, us(0))), dues);
    }

    #[test]
    fn a_delay_makes_one_gap_wrong_and_is_made_up_for() {
        let (dues, delay) = (evenly(1000, us(10)), us(64));
        let sent = run(dues.clone(), us(1), (100, delay));
        let gaps: Vec<_> = sent.windows(2).map(|pair| pair[1] - pair[0]).collect();
        for (number, &gap) in gaps.iter().enumerate() {
            match number {
                99 => assert_eq!(gap, us(10) + delay),
                _ => assert!((us(10) - delay / OF_DELAY..=us(10)).contains(&gap), "{number}: {gap:?}"),
            }
        }
        assert!(gaps[100] < us(10), "the next packet begins with it");
        assert_eq!(sent.last(), dues.last().as_ref());
    }

    #[test]
    fn packets_that_are_due_at_once_are_not_held_back() {
        const BURST: u32 = 500;
        let dues = (0..100 * BURST).map(|number| us(10_000) * (number / BURST));
        let sent = run(dues, us(2), (0, us(0)));
        for (number, burst) in (0..).zip(sent.chunks(BURST as usize)) {
            assert!(burst.windows(2).all(|pair| pair[1] - pair[0] == us(2)), "{burst:?}");
            // The delay of the burst before, which does not add up.
            assert!(burst[0] - us(10_000) * number <= MOST, "{number}: {burst:?}");
        }
    }

    #[test]
    fn rare_packets_are_not_late_for_long() {
        let sent = run(evenly(200, us(10_000)), us(2), (10, us(500)));
        let late = |packet: u32| sent[packet as usize] - us(10_000) * packet;
        assert_eq!([10, 11, 14, 15].map(late), [us(500), us(400), us(100), us(0)], "a hundredth of each gap");
        let sent = run(evenly(200, us(10_000)), us(2), (10, us(500_000)));
        let late = |packet: u32| sent[packet as usize] - us(10_000) * packet;
        assert_eq!([10, 60, 70].map(late), [us(500_000), MOST, us(0)]);
    }

    #[test]
    fn a_long_stop_is_made_up_for_as_fast_as_packets_can_be_sent() {
        let sent = run(evenly(10_000, us(10)), us(2), (10, us(20_000)));
        let late = |packet: u32| sent[packet as usize] - us(10) * packet;
        assert!(sent[10..2000].windows(2).all(|pair| pair[1] - pair[0] == us(2)));
        assert!(late(2000) > us(1000) && late(3000) < us(10), "{:?}", [2000, 3000].map(late));
        assert_eq!(late(9999), us(0));
    }

    #[test]
    fn times_have_no_end() {
        let mut slew = Slew::default();
        assert_eq!(slew.sent(us(0), Duration::MAX), Duration::MAX);
        assert_eq!(slew.target(Duration::MAX), Duration::MAX);
        assert_eq!(slew.sent(us(5), us(3)), Duration::ZERO);
        assert_eq!(slew.target(us(7)), us(7));
    }
}
