//! When each frame is due, and which one is the last.

use std::time::Duration;

use weir::send::Pace;

/// A burst: so many frames at once, each time.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Burst {
    pub(super) frames: u64,
    pub(super) every: Duration,
}

/// How fast frames are to be sent.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Speed {
    Top,
    PacketsPerSecond(f64),
    BitsPerSecond(f64),
    Bursts(Burst),
}

/// The frames so far, and those that may come.
#[derive(Debug)]
pub(super) struct Plan {
    speed: Speed,
    /// The most frames.
    count: u64,
    /// Frames that are due later are not sent.
    duration: Option<Duration>,
    frames: u64,
    bits: u64,
}

/// A frame that is to be sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Turn {
    pub(super) sequence: u64,
    /// How long after the start it is due; `None`: at once.
    pub(super) due: Option<Duration>,
}

impl Plan {
    pub(super) fn new(speed: Speed, count: Option<u64>, duration: Option<Duration>) -> Self {
        Self { speed, count: count.unwrap_or(u64::MAX), duration, frames: 0, bits: 0 }
    }

    /// Returns the pace of a transmission that is told when frames are due.
    pub(super) fn pace(&self) -> Pace {
        if self.speed == Speed::Top { Pace::Top } else { Pace::Recorded { speed: 1.0 } }
    }

    /// Returns the next frame, whose size is `size` of its number; `None`: there are no more. `elapsed`: time from the
    /// start until now.
    pub(super) fn next(
        &mut self,
        size: impl Fn(u64) -> u32,
        elapsed: impl FnOnce() -> Duration,
    ) -> Option<Turn> {
        if self.frames == self.count {
            return None;
        }
        let due = self.due();
        if self
            .duration
            .is_some_and(|duration| due.is_some_and(|due| due >= duration) || elapsed() >= duration)
        {
            return None;
        }
        let sequence = self.frames;
        self.frames += 1;
        self.bits += u64::from(size(sequence)) * 8;
        Some(Turn { sequence, due })
    }

    /// Returns when the frame after those so far is due.
    fn due(&self) -> Option<Duration> {
        let seconds = match self.speed {
            Speed::Top => return None,
            Speed::PacketsPerSecond(rate) => float(self.frames) / rate,
            Speed::BitsPerSecond(rate) => float(self.bits) / rate,
            Speed::Bursts(Burst { frames, every }) => float(self.frames / frames) * every.as_secs_f64(),
        };
        // What takes centuries is as good as never.
        Some(Duration::try_from_secs_f64(seconds).unwrap_or(Duration::MAX))
    }

    /// Returns whether the speed was reached by frames that took so long: with less than 1 % more time than planned.
    /// `None`: there was no plan, or no frame.
    pub(super) fn is_reached(&self, elapsed: Duration) -> Option<bool> {
        let due = self.due().filter(|_| self.frames > 0)?;
        let due = match self.speed {
            // The next burst may not be due yet.
            Speed::Bursts(Burst { frames, every }) if !self.frames.is_multiple_of(frames) => {
                due.saturating_add(every)
            }
            _ => due,
        };
        Some(elapsed.as_secs_f64() <= due.as_secs_f64() * 1.01)
    }

    /// Returns the speed that is wanted in packets and in bits per second, as far as it is given so.
    pub(super) fn asked(&self) -> (Option<f64>, Option<f64>) {
        match self.speed {
            Speed::Top => (None, None),
            Speed::PacketsPerSecond(rate) => (Some(rate), None),
            Speed::BitsPerSecond(rate) => (None, Some(rate)),
            Speed::Bursts(Burst { frames, every }) => (Some(float(frames) / every.as_secs_f64()), None),
        }
    }
}

#[expect(clippy::cast_precision_loss, reason = "exact up to 2^53 frames or bits")]
fn float(number: u64) -> f64 {
    number as f64
}

#[cfg(test)]
mod tests {
    use super::*;

    const BEGIN: fn() -> Duration = || Duration::ZERO;

    /// When frames of 125 bytes are due, in microseconds.
    fn dues(plan: &mut Plan) -> Vec<Option<u128>> {
        let mut dues = Vec::new();
        while let Some(turn) = plan.next(|_| 125, BEGIN) {
            assert_eq!(turn.sequence, dues.len() as u64);
            dues.push(turn.due.map(|due| due.as_micros()));
        }
        dues
    }

    fn micros(dues: &[u128]) -> Vec<Option<u128>> {
        dues.iter().copied().map(Some).collect()
    }

    const BURST: Speed = Speed::Bursts(Burst { frames: 3, every: Duration::from_millis(10) });

    #[test]
    fn frames_are_due_as_the_speed_says() {
        for (speed, expected) in [
            (Speed::PacketsPerSecond(1e3), micros(&[0, 1000, 2000, 3000])),
            (Speed::BitsPerSecond(1e6), micros(&[0, 1000, 2000, 3000])),
            (BURST, micros(&[0, 0, 0, 10_000])),
            (Speed::Top, vec![None; 4]),
        ] {
            assert_eq!(dues(&mut Plan::new(speed, Some(4), None)), expected);
        }
    }

    #[test]
    fn a_duration_ends_what_is_due_later() {
        let plan = |speed, count| Plan::new(speed, count, Some(Duration::from_millis(20)));
        assert_eq!(dues(&mut plan(Speed::PacketsPerSecond(1e3), None)).len(), 20);
        assert_eq!(dues(&mut plan(Speed::PacketsPerSecond(1e3), Some(7))).len(), 7);
        assert_eq!(dues(&mut plan(BURST, None)).len(), 6);
        // And what would be sent later.
        for speed in [Speed::Top, BURST] {
            let mut plan = plan(speed, None);
            assert!(plan.next(|_| 60, || Duration::from_millis(19)).is_some());
            assert!(plan.next(|_| 60, || Duration::from_millis(20)).is_none());
        }
    }

    #[test]
    fn it_is_known_whether_the_speed_was_reached() {
        let after = |speed, frames, millis| {
            let mut plan = Plan::new(speed, Some(frames), None);
            dues(&mut plan);
            plan.is_reached(Duration::from_millis(millis))
        };
        let rate = Speed::PacketsPerSecond(1e3);
        assert_eq!(
            [999, 1000, 1009, 1011].map(|millis| after(rate, 1000, millis)),
            [true, true, true, false].map(Some)
        );
        assert_eq!([20, 21].map(|millis| after(BURST, 6, millis)), [Some(true), Some(false)]);
        assert_eq!([20, 21].map(|millis| after(BURST, 5, millis)), [Some(true), Some(false)]);
        assert_eq!(after(Speed::Top, 5, 1), None);
        assert_eq!(Plan::new(rate, None, None).is_reached(Duration::ZERO), None);
    }

    #[test]
    fn what_was_asked_for() {
        let asked = |speed| Plan::new(speed, None, None).asked();
        assert_eq!(asked(BURST), (Some(300.0), None));
        assert_eq!(asked(Speed::BitsPerSecond(5.0)), (None, Some(5.0)));
        assert_eq!(asked(Speed::Top), (None, None));
    }
}
