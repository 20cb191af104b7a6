//! Times of NetFlow: 32 bits of milliseconds since the exporter was started, which last for 49.7 days.
//!
//! A header says when it was sent, and how long ago the exporter was started; records count from there. So the start is ours to
//! choose, as long as header and records agree on it, and it can be another one in each message. It stays the same while all
//! times fit, and is then moved to the middle of what can be told. An exporter that runs for long does so every 24 days or so.
//!
//! - The header's time is a whole second: v9 has no fractions, and collectors subtract milliseconds from it. It is rounded up,
//!   because some take a flow that ends after the header's time for one from 49.7 days ago.
//! - If a flow began more than 49.7 days ago, because a file was read, the header has the time of the latest flow in its
//!   message.
//! - A flow that is longer than 49.7 days begins later than it did.

/// How many milliseconds can be told.
const RANGE: u64 = 1 << 32;

#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Uptime {
    /// When the exporter was started, in milliseconds since the Unix epoch.
    boot: Option<u64>,
    /// The latest time in the message, if it has a record of a flow.
    latest: Option<u64>,
}

/// What a header says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Stamp {
    pub(super) uptime: u32,
    /// Since the Unix epoch.
    pub(super) seconds: u32,
}

/// Milliseconds, rounded up to a whole second.
fn second(time: u64) -> u64 {
    time.div_ceil(1000) * 1000
}

impl Uptime {
    /// Returns whether the message can have a record with these times (nanoseconds since the Unix epoch).
    pub(super) fn fits(&self, first: u64, last: u64) -> bool {
        let (first, last) = times(first, last);
        let fits = |boot: u64| boot <= first && second(last) - boot < RANGE;
        self.latest.is_none() || self.boot.is_some_and(fits)
    }

    /// Adds a record with times that fit. Returns the start.
    pub(super) fn add(&mut self, first: u64, last: u64, now: u64) -> u64 {
        let (first, last) = times(first, last);
        match (self.boot, self.latest) {
            (Some(boot), Some(latest)) => {
                self.latest = Some(latest.max(last));
                boot
            }
            _ => self.begin(first, last, now),
        }
    }

    /// Begins a message whose first record has these times, in milliseconds.
    fn begin(&mut self, first: u64, last: u64, now: u64) -> u64 {
        let now = second((now / 1_000_000).max(last));
        let fits = |boot: u64, end: u64| boot <= first && end - boot < RANGE;
        let end = if fits(first, now) { now } else { second(last) };
        self.latest = Some(last);
        let boot = self.boot.filter(|boot| fits(*boot, end)).unwrap_or_else(|| {
            let least = (end + 1).saturating_sub(RANGE);
            first.saturating_sub(RANGE / 2).max(least)
        });
        self.boot = Some(boot);
        boot
    }

    /// Ends the message. Returns its header's times.
    pub(super) fn end(&mut self, now: u64) -> Stamp {
        let now = now / 1_000_000;
        let latest = second(self.latest.take().unwrap_or(now));
        let now = second(now).max(latest);
        let boot = self.boot.filter(|boot| *boot <= latest && latest - boot < RANGE);
        let boot = boot.unwrap_or_else(|| self.begin(latest, latest, latest * 1_000_000));
        self.latest = None;
        let time = if now - boot < RANGE { now } else { latest };
        Stamp {
            uptime: u32::try_from(time - boot).unwrap_or(u32::MAX),
            seconds: u32::try_from(time / 1000).unwrap_or(u32::MAX),
        }
    }
}

/// In milliseconds, and no further apart than can be told.
fn times(first: u64, last: u64) -> (u64, u64) {
    let [first, last] = [first, last.max(first)].map(|time| time / 1_000_000);
    (first.max((second(last) + 1).saturating_sub(RANGE)), last)
}

#[cfg(test)]
mod tests {
    use super::*;

    const DAY: u64 = 86_400_000_000_000;
    const NOW: u64 = 20_000 * DAY + 1_234_567;

    /// What a collector makes of it: the time of a record, in milliseconds.
    fn read(stamp: Stamp, boot: u64, time: u64) -> u64 {
        let relative = (time / 1_000_000).saturating_sub(boot);
        u64::from(stamp.seconds) * 1000 - u64::from(stamp.uptime) + relative
    }

    #[test]
    fn times_are_right_for_years() {
        let mut uptime = Uptime::default();
        let mut boots = Vec::new();
        for day in 0..1000 {
            let (first, last) = (NOW + day * DAY, NOW + day * DAY + 77_000_000);
            let boot = uptime.add(first, last, last + 3);
            let stamp = uptime.end(last + 3);
            assert_eq!(
                [first, last].map(|time| read(stamp, boot, time)),
                [first, last].map(|time| time / 1_000_000)
            );
            assert!(boot + u64::from(stamp.uptime) >= last / 1_000_000, "nothing ends after the header");
            assert_eq!(u64::from(stamp.seconds), last.div_ceil(1_000_000_000));
            boots.push(boot);
        }
        boots.dedup();
        assert!((20..50).contains(&boots.len()), "{boots:?}");
    }

    #[test]
    fn what_is_too_far_apart_needs_another_message_and_old_flows_have_their_own_time() {
        let mut uptime = Uptime::default();
        uptime.add(NOW, NOW, NOW);
        assert!(uptime.fits(NOW - 20 * DAY, NOW + 20 * DAY));
        assert!(!uptime.fits(NOW - 30 * DAY, NOW) && !uptime.fits(NOW, NOW + 30 * DAY));
        uptime.end(NOW);
        assert!(uptime.fits(NOW - 30 * DAY, NOW));
        // A file of long ago.
        let old = NOW - 5000 * DAY;
        let boot = uptime.add(old, old + 1_000_000, NOW);
        assert_eq!(uptime.add(old, old + DAY, NOW), boot);
        assert_eq!(uptime.add(old, old, NOW), boot);
        let stamp = uptime.end(NOW);
        assert_eq!(read(stamp, boot, old + DAY), (old + DAY) / 1_000_000);
        assert_eq!(u64::from(stamp.seconds), (old + DAY).div_ceil(1_000_000_000));
        // A message that waited for long.
        uptime.add(NOW, NOW, NOW);
        assert_eq!(u64::from(uptime.end(NOW + 60 * DAY).seconds), NOW.div_ceil(1_000_000_000));
        // One without flows.
        assert_eq!(u64::from(uptime.end(NOW + 90 * DAY).seconds), (NOW + 90 * DAY).div_ceil(1_000_000_000));
    }

    #[test]
    fn a_flow_of_months_begins_later_than_it_did() {
        let mut uptime = Uptime::default();
        let last = NOW + 100 * DAY;
        let boot = uptime.add(NOW, last, last);
        let stamp = uptime.end(last);
        assert_eq!(read(stamp, boot, last), last / 1_000_000);
        assert!(last / 1_000_000 - read(stamp, boot, NOW) > RANGE - 1001);
        for (first, last, now) in
            [(0, 0, 0), (0, u64::MAX, 0), (u64::MAX, 0, 5), (u64::MAX, u64::MAX, u64::MAX)]
        {
            for other in [0, u64::MAX / 2, u64::MAX] {
                uptime.add(first, last, now);
                if uptime.fits(other, other) {
                    uptime.add(other, other, now);
                }
                uptime.end(other);
                uptime.end(now);
            }
        }
    }
}
