//! When a file is full, and where to split a run of records so that the file ends exactly there.

use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use weir_savefile::pcap;
use weir_savefile::record::{OVERHEAD, Records};

use super::write_request::Content;
use super::{Format, Rotation, frame, names};
use crate::deadline::after;

/// The room left in a file.
#[derive(Debug, Clone, Copy)]
pub(super) struct Room {
    /// Remaining bytes; the packet that reaches this is the last.
    pub(super) bytes: u64,
    pub(super) packets: u64,
}

impl Room {
    pub(super) fn new(rotation: &Rotation, bytes: u64, packets: u64) -> Self {
        Self {
            bytes: rotation.size.map_or(u64::MAX, |size| size.saturating_sub(bytes)),
            packets: rotation.packets.map_or(u64::MAX, |most| most.saturating_sub(packets)),
        }
    }

    pub(super) fn is_full(self) -> bool {
        self.bytes == 0 || self.packets == 0
    }

    /// Returns whether `bytes` of `content` fill the file.
    pub(super) fn holds_no_more_than(self, bytes: usize, content: &Content) -> bool {
        self.bytes <= bytes as u64 || (self.packets < u64::MAX && self.packets <= content.count())
    }

    /// Returns how many bytes and packets of `records` fit into this file and, if it is compressed, into one frame.
    /// `packets` is the number of packets in `records`. `None`: everything fits.
    pub(super) fn cut(
        self,
        format: Format,
        compressed: bool,
        records: &[u8],
        packets: u64,
    ) -> Option<(usize, u64)> {
        let frame = if compressed { frame::LARGEST } else { usize::MAX };
        // A pcap record is never longer than the same pcapng record.
        if (records.len() as u64) < self.bytes && packets <= self.packets && records.len() <= frame {
            return None;
        }
        let (mut taken, mut in_file, mut count) = (0, 0, 0);
        let mut run = Records::new(records);
        while let Some(Ok(record)) = run.next() {
            if count > 0 && run.offset() > frame {
                break;
            }
            in_file += match format {
                Format::Pcapng => (run.offset() - taken) as u64,
                Format::Pcap { .. } => (pcap::RECORD_HEADER + record.data.len()) as u64,
            };
            taken = run.offset();
            count += 1;
            if in_file >= self.bytes || count >= self.packets {
                break;
            }
        }
        // If nothing was taken, these are no records; the caller will notice.
        (taken >= OVERHEAD && taken < records.len()).then_some((taken, count))
    }
}

/// The times at which periods end.
#[derive(Debug)]
pub(super) struct Clock {
    period: Duration,
    due: Due,
}

#[derive(Debug, Clone, Copy)]
enum Due {
    /// Counted from the start, and independent of the wall clock.
    Steady(Instant),
    /// According to the wall clock, even if it is set.
    Wall(SystemTime),
}

impl Clock {
    /// Starts now. `None`: no periods.
    pub(super) fn new(rotation: &Rotation) -> Option<Self> {
        let period = rotation.period.filter(|period| !period.is_zero())?;
        let due = if rotation.aligned {
            Due::Wall(boundary(SystemTime::now(), period))
        } else {
            Due::Steady(after(Instant::now(), period))
        };
        Some(Self { period, due })
    }

    /// When the current period ends.
    pub(super) fn due(&self) -> Instant {
        match self.due {
            Due::Steady(due) => due,
            Due::Wall(due) => Instant::now() + due.duration_since(SystemTime::now()).unwrap_or_default(),
        }
    }

    pub(super) fn is_due(&self) -> bool {
        match self.due {
            Due::Steady(due) => Instant::now() >= due,
            Due::Wall(due) => SystemTime::now() >= due,
        }
    }

    /// Skips to the first period that has not ended.
    pub(super) fn advance(&mut self) {
        self.due = match self.due {
            Due::Steady(due) => {
                let over = Instant::now().saturating_duration_since(due).as_nanos() / self.period.as_nanos();
                Due::Steady(due + self.period * u32::try_from(over + 1).unwrap_or(u32::MAX))
            }
            Due::Wall(_) => Due::Wall(boundary(SystemTime::now(), self.period)),
        };
    }
}

/// Returns the next multiple of `period` on the local clock after `now`.
fn boundary(now: SystemTime, period: Duration) -> SystemTime {
    let offset = names::local(now).map_or(0, |zoned| zoned.offset().seconds());
    let nanoseconds = |duration: Duration| i128::try_from(duration.as_nanos()).unwrap_or(i128::MAX);
    let local =
        nanoseconds(now.duration_since(UNIX_EPOCH).unwrap_or_default()) + i128::from(offset) * 1_000_000_000;
    let left = nanoseconds(period) - local.rem_euclid(nanoseconds(period));
    now + Duration::from_nanos(u64::try_from(left).unwrap_or(u64::MAX))
}
