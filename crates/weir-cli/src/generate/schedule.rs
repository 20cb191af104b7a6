//! When each frame is due, and which one is the last.

use std::time::Duration;

use weir::send::{Due, Pace, Sent};

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
pub(super) struct Schedule {
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
pub(super) struct DueFrame {
    pub(super) sequence: u64,
    /// How long after the start it is due; `None`: at once.
    pub(super) due: Option<Duration>,
}

impl Schedule {
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
    ) -> Option<DueFrame> {
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
        Some(DueFrame { sequence, due })
    }

    /// Whether frames come as fast as possible.
    pub(super) fn is_top(&self) -> bool {
        self.speed == Speed::Top
    }

    /// Returns how many more frames are due, for a sender that makes many at once. `made` frames are made, of
    /// `mean_bits` each on average, `elapsed` after the start.
    pub(super) fn batch(&self, made: u64, elapsed: Duration, mean_bits: f64) -> Due {
        let per_second = match self.speed {
            Speed::Top => None,
            Speed::PacketsPerSecond(rate) => Some(rate),
            Speed::BitsPerSecond(rate) => Some(rate / mean_bits),
            Speed::Bursts(Burst { frames, every }) => Some(float(frames) / every.as_secs_f64()),
        };
        // Frames that are due together.
        let step = match self.speed {
            Speed::Bursts(burst) => burst.frames,
            _ => 1,
        };
        let due_by = |time: Duration| match per_second {
            None => u64::MAX,
            Some(rate) => {
                whole(time.as_secs_f64() * rate / float(step)).saturating_add(1).saturating_mul(step)
            }
        };
        let is_late = self.duration.is_some_and(|duration| elapsed >= duration);
        // What is due in the duration, though nobody looked then, is still to be made.
        let last = match self.duration {
            Some(duration) if per_second.is_some() => {
                due_by(duration.saturating_sub(Duration::from_nanos(1)))
            }
            Some(_) if is_late => made,
            _ => u64::MAX,
        };
        let last = last.min(self.count);
        if made >= last {
            return Due::Over;
        }
        let due = due_by(elapsed).min(last);
        if due > made {
            return Due::Now(due - made);
        }
        let rate = per_second.expect("everything is due at once without a rate");
        let next = Duration::try_from_secs_f64(float(made) / rate).unwrap_or(Duration::MAX);
        Due::In(next.saturating_sub(elapsed).max(Duration::from_nanos(1)))
    }

    /// Notes frames that were made in batches.
    pub(super) fn made(&mut self, made: Sent) {
        (self.frames, self.bits) = (made.packets, made.bytes * 8);
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

#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "it saturates")]
fn whole(number: f64) -> u64 {
    number as u64
}

#[cfg(test)]
mod tests {
    use super::*;

    const BEGIN: fn() -> Duration = || Duration::ZERO;

    /// When frames of 125 bytes are due, in microseconds.
    fn dues(schedule: &mut Schedule) -> Vec<Option<u128>> {
        let mut dues = Vec::new();
        while let Some(frame) = schedule.next(|_| 125, BEGIN) {
            assert_eq!(frame.sequence, dues.len() as u64);
            dues.push(frame.due.map(|due| due.as_micros()));
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
            assert_eq!(dues(&mut Schedule::new(speed, Some(4), None)), expected);
        }
    }

    #[test]
    fn a_duration_ends_what_is_due_later() {
        let schedule = |speed, count| Schedule::new(speed, count, Some(Duration::from_millis(20)));
        assert_eq!(dues(&mut schedule(Speed::PacketsPerSecond(1e3), None)).len(), 20);
        assert_eq!(dues(&mut schedule(Speed::PacketsPerSecond(1e3), Some(7))).len(), 7);
        assert_eq!(dues(&mut schedule(BURST, None)).len(), 6);
        // And what would be sent later.
        for speed in [Speed::Top, BURST] {
            let mut schedule = schedule(speed, None);
            assert!(schedule.next(|_| 60, || Duration::from_millis(19)).is_some());
            assert!(schedule.next(|_| 60, || Duration::from_millis(20)).is_none());
        }
    }

    #[test]
    fn it_is_known_whether_the_speed_was_reached() {
        let after = |speed, frames, millis| {
            let mut schedule = Schedule::new(speed, Some(frames), None);
            dues(&mut schedule);
            schedule.is_reached(Duration::from_millis(millis))
        };
        let rate = Speed::PacketsPerSecond(1e3);
        assert_eq!(
            [999, 1000, 1009, 1011].map(|millis| after(rate, 1000, millis)),
            [true, true, true, false].map(Some)
        );
        assert_eq!([20, 21].map(|millis| after(BURST, 6, millis)), [Some(true), Some(false)]);
        assert_eq!([20, 21].map(|millis| after(BURST, 5, millis)), [Some(true), Some(false)]);
        assert_eq!(after(Speed::Top, 5, 1), None);
        assert_eq!(Schedule::new(rate, None, None).is_reached(Duration::ZERO), None);
    }

    /// How many frames of 125 bytes are made by these microseconds, and whether that is all.
    fn batches(schedule: &Schedule, times: &[u64]) -> (Vec<u64>, bool) {
        let (mut made, mut over) = (0, false);
        let counts = times.iter().map(|&time| {
            match schedule.batch(made, Duration::from_micros(time), 1000.0) {
                Due::Now(frames) => made += frames,
                Due::In(wait) => assert!(wait > Duration::ZERO),
                Due::Over => over = true,
            }
            made
        });
        (counts.collect(), over)
    }

    #[test]
    fn what_is_due_meanwhile_is_made_at_once() {
        for speed in [Speed::PacketsPerSecond(1e3), Speed::BitsPerSecond(1e6)] {
            let schedule = Schedule::new(speed, Some(9), None);
            assert_eq!(
                batches(&schedule, &[0, 500, 1100, 4100, 50_000, 50_000]),
                (vec![1, 1, 2, 5, 9, 9], true)
            );
            let schedule = Schedule::new(speed, None, Some(Duration::from_millis(20)));
            assert_eq!(batches(&schedule, &[0, 19_100, 25_000, 26_000]), (vec![1, 20, 20, 20], true));
            assert_eq!(batches(&schedule, &[25_000, 26_000]), (vec![20, 20], true));
        }
        let schedule = Schedule::new(BURST, Some(8), None);
        assert_eq!(batches(&schedule, &[0, 9_000, 10_001, 20_001, 20_002]), (vec![3, 3, 6, 8, 8], true));
        let schedule = Schedule::new(Speed::Top, Some(8), None);
        assert_eq!(batches(&schedule, &[0, 1]), (vec![8, 8], true));
        let schedule = Schedule::new(Speed::Top, None, Some(Duration::from_millis(1)));
        assert_eq!(schedule.batch(5, Duration::ZERO, 1.0), Due::Now(u64::MAX - 5));
        assert_eq!(schedule.batch(5, Duration::from_millis(1), 1.0), Due::Over);
    }

    #[test]
    fn a_wait_ends_when_the_next_frame_is_due() {
        let wait = |speed, made, micros| {
            Schedule::new(speed, None, None).batch(made, Duration::from_micros(micros), 1000.0)
        };
        assert_eq!(wait(Speed::PacketsPerSecond(1e3), 1, 400), Due::In(Duration::from_micros(600)));
        assert_eq!(wait(BURST, 3, 400), Due::In(Duration::from_micros(9_600)));
    }

    #[test]
    fn what_was_asked_for() {
        let asked = |speed| Schedule::new(speed, None, None).asked();
        assert_eq!(asked(BURST), (Some(300.0), None));
        assert_eq!(asked(Speed::BitsPerSecond(5.0)), (None, Some(5.0)));
        assert_eq!(asked(Speed::Top), (None, None));
    }
}
