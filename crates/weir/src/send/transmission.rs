//! Packets on time.

use std::hint::spin_loop;
use std::time::Duration;

use rustix::thread::nanosleep;
use rustix::time::Timespec;

use super::error::{SendError, Sent};
use super::outlet::Outlet;
use super::pace::{Pace, Schedule};
use super::slew::{self, Slew};
use super::spread::Gaps;

/// The end of a wait, for which a thread stays awake: the kernel may wake a sleeping one as much too late.
const AWAKE: Duration = Duration::from_micros(150);
/// Longest sleep before a look at the flag that ends a transmission.
const NAP: Duration = Duration::from_millis(20);

/// What a transmission has sent.
#[derive(Clone, Copy, Debug, Default)]
#[non_exhaustive]
pub struct Report {
    /// What was sent.
    pub sent: Sent,
    /// Time from the start to the last packet.
    pub elapsed: Duration,
    /// How far gaps between packets were off.
    pub gaps: Gaps,
    /// Packets sent at once because they had no time.
    pub timeless: u64,
    /// Packets sent at once because their time was before that of an earlier packet.
    pub backward: u64,
    /// Whether the [flag](super::Sender::stop_flag) ended it.
    pub stopped: bool,
}

/// Packets that are sent one after the other, each when it is due; from [`Sender::begin`](super::Sender::begin).
#[derive(Debug)]
#[must_use = "the last packets are sent by `finish`"]
pub struct Transmission<'a> {
    outlet: &'a mut Outlet,
    schedule: Schedule,
    slew: Slew,
}

impl<'a> Transmission<'a> {
    pub(super) fn new(outlet: &'a mut Outlet, pace: Pace) -> Self {
        outlet.begin();
        Self { outlet, schedule: Schedule::new(pace), slew: Slew::default() }
    }

    /// Waits until a packet is due, and sends it. `time`: nanoseconds from any origin; `None`: it has no time. Returns
    /// whether the transmission goes on: false once the [flag](super::Sender::stop_flag) is set.
    ///
    /// A packet that has no time, or is more than a millisecond late, may stay for a moment, to be sent with the next ones by
    /// one call.
    ///
    /// # Errors
    ///
    /// See [`SendReason`](super::SendReason). Packets before this one were sent.
    pub fn packet(&mut self, time: Option<u64>, packet: &[u8]) -> Result<bool, SendError> {
        self.packet_made(time, packet.len(), || packet)
    }

    /// The same with a packet of so many `bytes` that is made once it is due, for one that says when it was sent.
    ///
    /// # Errors
    ///
    /// As [`packet`](Self::packet).
    pub fn packet_made<'p>(
        &mut self,
        time: Option<u64>,
        bytes: usize,
        make: impl FnOnce() -> &'p [u8],
    ) -> Result<bool, SendError> {
        if self.outlet.is_stopped() {
            return Ok(false);
        }
        let Some(due) = self.schedule.due(time, bytes) else {
            self.outlet.put(make(), None)?;
            return Ok(true);
        };
        let (target, mut now) = (self.slew.target(due), self.outlet.elapsed());
        if now < target {
            self.outlet.flush()?;
            now = self.wait_until(target);
            if now < target {
                return Ok(false);
            }
        }
        if self.slew.sent(due, now) <= slew::MOST {
            self.outlet.send(make(), due, now)?;
        } else {
            // Several by one call: more of them in a second, with gaps that are wrong anyway.
            self.outlet.put(make(), Some(due))?;
        }
        Ok(true)
    }

    /// Notes a packet that another transmission sends, so that the packets of both keep their distances. Both must begin at
    /// the same time.
    pub fn pass(&mut self, time: Option<u64>, bytes: usize) {
        self.schedule.due(time, bytes);
    }

    /// Sends the packets that stayed. To be called before a pause in which the next packet is not known.
    ///
    /// # Errors
    ///
    /// As [`packet`](Self::packet).
    pub fn flush(&mut self) -> Result<(), SendError> {
        self.outlet.flush()
    }

    /// Lets recorded times begin anew: the next packet is due with the last one, and its time may be any.
    pub fn again(&mut self) {
        self.schedule.again();
    }

    /// Returns what was sent so far.
    pub fn sent(&self) -> Sent {
        self.outlet.sent()
    }

    /// Sends the packets that stayed, and returns what was sent.
    ///
    /// # Errors
    ///
    /// As [`packet`](Self::packet).
    pub fn finish(mut self) -> Result<Report, SendError> {
        self.flush()?;
        Ok(self.report())
    }

    /// Returns what was sent so far, and how.
    pub fn report(&self) -> Report {
        Report {
            sent: self.outlet.sent(),
            elapsed: self.outlet.elapsed(),
            gaps: self.outlet.gaps(),
            timeless: self.schedule.timeless,
            backward: self.schedule.backward,
            stopped: self.outlet.is_stopped(),
        }
    }

    /// Waits as exactly as a thread can, and returns the time then: earlier if somebody wants to stop.
    fn wait_until(&self, target: Duration) -> Duration {
        loop {
            let now = self.outlet.elapsed();
            let left = target.saturating_sub(now);
            if left.is_zero() || self.outlet.is_stopped() {
                return now;
            }
            match left.checked_sub(AWAKE) {
                // A signal ends it early.
                Some(left) => {
                    let time = Timespec::try_from(left.min(NAP)).expect("a short time");
                    let _woken = nanosleep(&time);
                }
                None => spin_loop(),
            }
        }
    }
}
