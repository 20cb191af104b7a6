//! Generates frames at full or limited rate.

use std::env;
use std::ops::Range;
use std::sync::Arc;
use std::time::{Duration, Instant};

use rustix::thread::{CpuSet, sched_setaffinity};
use rustix::time::{ClockId, clock_gettime};
use weir::send::{Due, LiveFrames, SendError, SendReason, Sender};
use weir_sys::ethtool::Ethtool;
use weir_sys::link::links;
use weir_sys::netns::NetNs;

use crate::{Error, Pair, Port, Traffic};

/// The rate of a generator.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Rate {
    /// As fast as the machine can.
    Full,
    /// This many frames per second on average, in bursts of 500 microseconds' worth (one frame at a time below 2000 per
    /// second), unless [`Generator::bursts`] sets another number. The generator catches up after a delay.
    PerSecond(u64),
}

/// A generator of numbered frames from the `tx` end of a pair.
///
/// They are [live frames](LiveFrames), 64 at a time: 7 to 15 million per second, depending on the machine, from one
/// otherwise idle CPU. The receiving end's NAPI, and with it any XDP program there, runs on that CPU in between, so 64
/// frames meet an empty ring of 256. Unless something delays NAPI, none is refused; the report has the number of refused
/// frames.
///
/// In a guest that emulates its processors the receiver falls behind. Where `WEIR_LAB_GENTLE` is set, at most 200 frames are
/// on their way, whatever the rate.
///
/// Frames arrive on the receive queue given by the CPU number modulo the number of queues. Reports are based on the
/// driver's per-queue counters, so two generators that send through one pair at the same time must use CPUs of
/// different queues.
#[derive(Debug)]
pub struct Generator {
    netns: Arc<NetNs>,
    interface: String,
    queues: u32,
    frames: LiveFrames,
    size: usize,
    /// Number of the next frame.
    next: u64,
    cpu: u32,
    rate: Rate,
    bursts: u64,
    /// What the frames arrive at, if they are waited for.
    awaited: Option<Port>,
}

/// The result of one call.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SendReport {
    /// Numbers of the frames that were generated.
    pub sequences: Range<u64>,
    /// Frames that the receiving end accepted, which a receiver has to account for.
    pub accepted: u64,
    /// Frames that the receiving end had no space for.
    pub refused: u64,
    /// Time from the first frame to the return of the last call.
    pub elapsed: Duration,
    /// CPU time of the sending thread. It includes the receiving end's NAPI and XDP program, unless the kernel accounts
    /// interrupts separately (CONFIG_IRQ_TIME_ACCOUNTING).
    pub cpu_time: Duration,
}

impl SendReport {
    /// Returns the number of frames generated.
    pub fn sent(&self) -> u64 {
        self.sequences.end - self.sequences.start
    }

    /// Returns the number of frames generated per second.
    pub fn rate(&self) -> f64 {
        self.sent() as f64 / self.elapsed.as_secs_f64()
    }
}

/// Default number of bursts per second at a limited rate. A call costs about 60 microseconds in addition to its frames.
const BURSTS: u64 = 2000;
/// Longest frame that every kernel accepts.
const SURELY_FITS: usize = 3000;

impl Generator {
    /// Prepares to send frames from the pair's `tx`, numbered from 0, on CPU 0 at full rate.
    ///
    /// # Errors
    ///
    /// Missing privileges (`CAP_BPF`, `CAP_NET_ADMIN`), or the pair takes no live frames, as without GRO.
    pub fn new(pair: &Pair, traffic: &Traffic) -> Result<Self, Error> {
        Self::numbered_from(0, pair, traffic)
    }

    /// Does what [`new`](Self::new) does, with another first number, for several generators of the same traffic.
    ///
    /// # Errors
    ///
    /// As [`new`](Self::new).
    pub fn numbered_from(first: u64, pair: &Pair, traffic: &Traffic) -> Result<Self, Error> {
        let port = &pair.tx;
        let frames = port.netns.run(|| Sender::to(&port.name).live(traffic.tables(), 0))?.timeless();
        Ok(Self {
            netns: Arc::clone(&port.netns),
            interface: port.name.clone(),
            queues: port.queues,
            frames,
            size: traffic.size(),
            next: first,
            cpu: 0,
            rate: Rate::Full,
            bursts: BURSTS,
            awaited: env::var_os("WEIR_LAB_GENTLE").map(|_| pair.rx.clone()),
        })
    }

    /// Sets the CPU to send on, which also determines the receive queue.
    #[must_use]
    pub fn cpu(self, cpu: u32) -> Self {
        Self { cpu, ..self }
    }

    /// Sets the rate.
    ///
    /// # Errors
    ///
    /// The rate is 0.
    pub fn rate(self, rate: Rate) -> Result<Self, Error> {
        if let Rate::PerSecond(rate) = rate {
            Error::check_range("frames per second", rate, 1, u64::MAX)?;
        }
        Ok(Self { rate, ..self })
    }

    /// Sets the number of bursts per second at a limited rate. Fewer bursts leave more of the CPU to others: each costs
    /// up to 200 microseconds in addition to its frames, mostly at the end of the preceding pause.
    ///
    /// # Errors
    ///
    /// The number is 0.
    pub fn bursts(self, per_second: u64) -> Result<Self, Error> {
        Error::check_range("bursts per second", per_second, 1, u64::MAX)?;
        Ok(Self { bursts: per_second, ..self })
    }

    /// Returns the receive queue of the frames.
    pub fn queue(&self) -> u32 {
        self.cpu % self.queues
    }

    /// Sends exactly `count` frames.
    ///
    /// # Errors
    ///
    /// The frames are too long for this way of sending ([`Error::TooLongForLiveFrames`]), the CPU does not exist, or
    /// the kernel has no live frames (5.18).
    pub fn send(&mut self, count: u64) -> Result<SendReport, Error> {
        self.send_until(|sent, _| count - sent)
    }

    /// Sends frames for `time`, to within the duration of 65536 frames.
    ///
    /// # Errors
    ///
    /// As [`send`](Self::send).
    pub fn send_for(&mut self, time: Duration) -> Result<SendReport, Error> {
        self.send_until(|_, elapsed| if elapsed < time { u64::MAX } else { 0 })
    }

    /// Sends until `left`, which receives the number of frames sent and the elapsed time, returns 0.
    fn send_until(&mut self, left: impl Fn(u64, Duration) -> u64 + Send) -> Result<SendReport, Error> {
        let before = self.accepted()?;
        let netns = Arc::clone(&self.netns);
        let mut report = netns.run(|| self.run(left))?;
        report.accepted = self.accepted()? - before;
        report.refused = report.sent().saturating_sub(report.accepted);
        Ok(report)
    }

    /// Runs in a thread in the namespace. It counts the frames sent, but not those accepted.
    fn run(&mut self, left: impl Fn(u64, Duration) -> u64 + Send) -> Result<SendReport, Error> {
        pin(self.cpu)?;
        let (first, rate, bursts) = (self.next, self.rate, self.bursts);
        let cpu_start = cpu_time();
        let mut gentle = self.awaited.clone().map(Gentle::new);
        let ran = self.frames.run(first, move |made, elapsed| {
            let due = match (left(made, elapsed), rate) {
                (0, _) => Due::Over,
                (left, Rate::Full) => Due::Now(left),
                (left, Rate::PerSecond(rate)) => due(rate, made, elapsed, bursts, left),
            };
            gentle.as_mut().map_or(due, |gentle| gentle.slow_down(due, made))
        });
        let cpu_time = cpu_time() - cpu_start;
        let made = ran.as_ref().map_or_else(|error| error.sent, |report| report.made);
        self.next += made.packets;
        let elapsed = ran.map_err(|error| self.refused(error))?.elapsed;
        Ok(SendReport { sequences: first..self.next, accepted: 0, refused: 0, elapsed, cpu_time })
    }

    fn refused(&self, error: SendError) -> Error {
        match error.reason {
            SendReason::Refused { errno: libc::EINVAL } if self.size > SURELY_FITS => {
                Error::TooLongForLiveFrames { size: self.size }
            }
            _ => error.into(),
        }
    }

    /// Returns the total number of frames accepted by the receiving end's ring. The driver counts them per receive
    /// queue.
    fn accepted(&self) -> Result<u64, Error> {
        let counter = format!("tx_queue_{}_xdp_xmit", self.queue());
        let ethtool = self.netns.run(Ethtool::new)?;
        let interface = &self.interface;
        let accepted = ethtool.counter(interface, &counter);
        accepted.ok_or_else(|| Error::NoCounter { interface: interface.clone(), counter })
    }
}

/// Sends few frames at a time, once those before have arrived.
struct Gentle {
    rx: Port,
    before: u64,
    arrivals: Arrivals,
}

impl Gentle {
    fn new(rx: Port) -> Self {
        let mut gentle = Self { rx, before: 0, arrivals: Arrivals::new(Instant::now()) };
        gentle.before = gentle.received();
        gentle
    }

    /// Returns what the receiving end has counted; 0 if it is gone.
    fn received(&self) -> u64 {
        let links = self.rx.netns.run(links).unwrap_or_default();
        links.iter().find(|link| link.index == self.rx.index).map_or(0, |link| link.rx_packets)
    }

    fn slow_down(&mut self, due: Due, made: u64) -> Due {
        let Due::Now(frames) = due else { return due };
        let came = self.received().saturating_sub(self.before);
        if self.arrivals.are_due(came, made, Instant::now()) {
            return Due::In(Duration::from_micros(200));
        }
        Due::Now(frames.min(200))
    }
}

/// Which frames have arrived.
struct Arrivals {
    /// How many came when there was a change, or a burst began, and when that was.
    last: (u64, Instant),
    /// How many will not come.
    refused: u64,
}

impl Arrivals {
    /// What has not come by then was refused.
    const REFUSED: Duration = Duration::from_millis(500);

    fn new(now: Instant) -> Self {
        Self { last: (0, now), refused: 0 }
    }

    /// Returns whether more of the `made` frames are expected when `came` have come. If not, a burst begins.
    fn are_due(&mut self, came: u64, made: u64, now: Instant) -> bool {
        if came != self.last.0 {
            self.last = (came, now);
        }
        let missing = made.saturating_sub(came + self.refused);
        if missing > 0 && now.duration_since(self.last.1) < Self::REFUSED {
            return true;
        }
        self.refused += missing;
        self.last.1 = now;
        false
    }
}

/// Returns what is due at so many frames per second, in `bursts` bursts per second, when `sent` were sent and `left` are
/// left.
fn due(rate: u64, sent: u64, elapsed: Duration, bursts: u64, left: u64) -> Due {
    const SECOND: u128 = 1_000_000_000;
    // Frame n is due n/rate seconds after the start.
    let due = u64::try_from(elapsed.as_nanos() * u128::from(rate) / SECOND).unwrap_or(u64::MAX);
    if due < sent {
        let nanoseconds = u128::from(sent) * SECOND / u128::from(rate);
        return Due::In(Duration::from_nanos(u64::try_from(nanoseconds).unwrap_or(u64::MAX)) - elapsed);
    }
    Due::Now((due - sent).max(rate / bursts).clamp(1, left))
}

/// Returns the CPU time of the calling thread.
fn cpu_time() -> Duration {
    let time = clock_gettime(ClockId::ThreadCPUTime);
    Duration::try_from(time).expect("it is not negative")
}

/// Pins the calling thread to one CPU.
fn pin(cpu: u32) -> Result<(), Error> {
    Error::check_range("CPU number", cpu.into(), 0, CpuSet::MAX_CPU as u64 - 1)?;
    let mut only = CpuSet::new();
    only.set(usize::try_from(cpu).expect("checked"));
    sched_setaffinity(None, &only).map_err(|error| Error::Io {
        operation: format!("run on CPU {cpu} (is there one?)"),
        source: error.into(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_refused_frame_is_waited_for_once() {
        let start = Instant::now();
        let at = |millis| start + Duration::from_millis(millis);
        let mut arrivals = Arrivals::new(start);
        assert!(!arrivals.are_due(0, 0, at(0)), "the first burst");
        assert!(arrivals.are_due(150, 200, at(10)));
        assert!(arrivals.are_due(199, 200, at(400)));
        assert!(arrivals.are_due(199, 200, at(899)));
        assert!(!arrivals.are_due(199, 200, at(900)), "one was refused");
        // The next burst is waited for from its start, and not for the one that was refused.
        assert!(arrivals.are_due(199, 400, at(901)));
        assert!(!arrivals.are_due(399, 400, at(902)));
        // Bursts far apart are waited for, too.
        assert!(arrivals.are_due(399, 600, at(1401)));
        assert!(!arrivals.are_due(599, 600, at(5000)));
    }

    #[test]
    fn frames_come_due_at_the_rate() {
        let at = |sent, micros| due(4_000_000, sent, Duration::from_micros(micros), BURSTS, 100_000);
        assert_eq!(at(0, 0), Due::Now(2000), "a burst at once");
        assert_eq!(at(2000, 100), Due::In(Duration::from_micros(400)));
        assert_eq!(at(2000, 500), Due::Now(2000));
        assert_eq!(at(2000, 2000), Due::Now(6000), "what is late comes with it");
        assert_eq!(due(4_000_000, 0, Duration::ZERO, BURSTS, 7), Due::Now(7), "no more than are left");
    }

    #[test]
    fn slow_rates_send_single_frames() {
        assert_eq!(due(10, 0, Duration::ZERO, BURSTS, 9), Due::Now(1));
        assert_eq!(due(10, 1, Duration::ZERO, BURSTS, 8), Due::In(Duration::from_millis(100)));
    }
}
