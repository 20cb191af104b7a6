//! When each packet is due.

use std::time::Duration;

/// How fast packets are sent. No packet is sent before it is due. A sender that is late keeps the gaps, and makes up for the
/// delay in small steps: with each packet a 32nd of it, or 1 % of the gap if that is more. Only what is beyond 1 ms it makes up
/// for at once.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Pace {
    /// As fast as possible.
    Top,
    /// As far apart as their times are, divided by `speed` (above 0). A packet without a time, or with a time before
    /// that of an earlier packet, is sent at once and counted.
    Recorded {
        /// 1.0: as recorded; 2.0: twice as fast.
        speed: f64,
    },
    /// At this rate (above 0), evenly.
    PacketsPerSecond(f64),
    /// At this rate (above 0), counting the bytes of packets with their link-layer headers.
    BitsPerSecond(f64),
}

/// The packets of a transmission so far.
#[derive(Debug)]
pub(super) struct Schedule {
    pace: Pace,
    packets: u64,
    bits: u64,
    /// Time of the first packet, from which others count.
    first: Option<u64>,
    /// The latest time of a packet.
    latest: u64,
    /// When the first packet was due.
    base: Duration,
    /// When the latest packet was due.
    due: Duration,
    /// Packets without a time.
    pub(super) timeless: u64,
    /// Packets with a time before that of an earlier packet.
    pub(super) backward: u64,
}

impl Schedule {
    pub(super) fn new(pace: Pace) -> Self {
        Self {
            pace,
            packets: 0,
            bits: 0,
            first: None,
            latest: 0,
            base: Duration::ZERO,
            due: Duration::ZERO,
            timeless: 0,
            backward: 0,
        }
    }

    /// Returns how long after the start the next packet is due; `None`: at once.
    pub(super) fn due(&mut self, time: Option<u64>, bytes: usize) -> Option<Duration> {
        let (packets, bits) = (self.packets, self.bits);
        self.packets += 1;
        self.bits += bytes as u64 * 8;
        match self.pace {
            Pace::Top => None,
            Pace::Recorded { speed } => self.recorded(time, speed),
            Pace::PacketsPerSecond(rate) => Some(seconds(as_float(packets) / rate)),
            Pace::BitsPerSecond(rate) => Some(seconds(as_float(bits) / rate)),
        }
    }

    fn recorded(&mut self, time: Option<u64>, speed: f64) -> Option<Duration> {
        let Some(time) = time else {
            self.timeless += 1;
            return None;
        };
        if time < self.latest {
            self.backward += 1;
            return None;
        }
        self.latest = time;
        let since = time - *self.first.get_or_insert(time);
        self.due = self.base + seconds(as_float(since) / 1e9 / speed);
        Some(self.due)
    }

    /// Lets times begin anew with the next packet, which is due with the last one.
    pub(super) fn again(&mut self) {
        (self.first, self.latest, self.base) = (None, 0, self.due);
    }
}

#[expect(clippy::cast_precision_loss, reason = "exact up to 104 days of nanoseconds")]
fn as_float(number: u64) -> f64 {
    number as f64
}

/// As good as never.
const CENTURIES: Duration = Duration::from_secs(1 << 36);

/// Returns a time; [`CENTURIES`] for what is no time.
fn seconds(seconds: f64) -> Duration {
    Duration::try_from_secs_f64(seconds).unwrap_or(CENTURIES)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn dues(pace: Pace, times: &[Option<u64>]) -> (Vec<Option<u64>>, Schedule) {
        let mut schedule = Schedule::new(pace);
        let nanoseconds = |due: Duration| u64::try_from(due.as_nanos()).unwrap();
        let dues = times.iter().map(|&time| schedule.due(time, 125).map(nanoseconds)).collect();
        (dues, schedule)
    }

    #[test]
    fn recorded_gaps_are_kept_and_scaled() {
        let times = [100, 300, 300, 1100].map(Some);
        let dues_at = |speed| dues(Pace::Recorded { speed }, &times).0;
        assert_eq!(dues_at(1.0), [0, 200, 200, 1000].map(Some));
        assert_eq!(dues_at(2.0), [0, 100, 100, 500].map(Some));
        assert_eq!(dues_at(0.5), [0, 400, 400, 2000].map(Some));
    }

    #[test]
    fn packets_without_usable_times_go_at_once() {
        let times = [Some(100), None, Some(50), Some(300), Some(299)];
        let (dues, schedule) = dues(Pace::Recorded { speed: 1.0 }, &times);
        assert_eq!(dues, [Some(0), None, None, Some(200), None]);
        assert_eq!((schedule.timeless, schedule.backward), (1, 2));
    }

    #[test]
    fn no_time_is_too_late_to_be_waited_for() {
        let mut schedule = Schedule::new(Pace::Recorded { speed: 1.0 });
        let dues = [0, u64::MAX, u64::MAX, u64::MAX - 1].map(|time| schedule.due(Some(time), 1));
        // A float has no more digits.
        let (last, end) = (dues[1].unwrap(), Duration::from_nanos(u64::MAX));
        assert!(last.abs_diff(end) < Duration::from_micros(10), "{last:?}");
        assert_eq!(dues, [Some(Duration::ZERO), Some(last), Some(last), None]);
        assert_eq!((schedule.timeless, schedule.backward), (0, 1));
        // More than a Duration holds is as good as never.
        let mut schedule = Schedule::new(Pace::Recorded { speed: f64::MIN_POSITIVE });
        let dues = [0, 1].map(|time| schedule.due(Some(time), 1));
        assert_eq!(dues, [Some(Duration::ZERO), Some(CENTURIES)]);
    }

    #[test]
    fn times_may_begin_anew() {
        let (_, mut schedule) = dues(Pace::Recorded { speed: 1.0 }, &[Some(100), Some(400)]);
        schedule.again();
        assert_eq!(schedule.due(Some(100), 1), Some(Duration::from_nanos(300)));
        assert_eq!(schedule.due(Some(400), 1), Some(Duration::from_nanos(600)));
        assert_eq!(schedule.backward, 0);
    }

    #[test]
    fn rates_need_no_times() {
        let none = [None; 3];
        assert_eq!(dues(Pace::PacketsPerSecond(1000.0), &none).0, [0, 1_000_000, 2_000_000].map(Some));
        assert_eq!(dues(Pace::BitsPerSecond(1e6), &none).0, [0, 1_000_000, 2_000_000].map(Some));
        assert_eq!(dues(Pace::Top, &none).0, [None; 3]);
    }
}
