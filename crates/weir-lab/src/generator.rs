//! Frames at the full rate of the machine, or at a chosen one.

use std::hint;
use std::ops::Range;
use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

use rustix::io::Errno;
use rustix::thread::{CpuSet, sched_setaffinity};
use rustix::time::{ClockId, clock_gettime};
use weir_bpf::Parked;
use weir_bpf::lab::{Generate, Options};
use weir_sys::ethtool::Ethtool;
use weir_sys::netns::NetNs;
use weir_sys::testrun;

use crate::{Error, Pair, Traffic};

/// How fast a generator sends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Rate {
    /// As fast as the machine can.
    Full,
    /// So many frames a second on average, in bursts of 500 microseconds' worth (one frame, below 2000 a second) unless
    /// [`Generator::bursts`] says otherwise. After a delay the generator catches up.
    PerSecond(u64),
}

/// Sends numbered frames from the `tx` end of a pair.
///
/// The kernel makes the frames, 64 at a time, and an XDP program numbers them and sends them on the device: 7 to 15 million
/// a second, by machine, from one CPU that has nothing else to do. On that CPU the receiving end's NAPI runs too, in
/// between, and with it any XDP program there; so 64 frames meet a ring of 256 that is empty, and unless something holds
/// up NAPI none is refused. How many were is in the report.
///
/// Frames arrive on the receive queue that is the CPU's number modulo the queues. Two generators that send through one
/// pair at the same time must use CPUs of different queues, since reports are made from the driver's counters per queue.
#[derive(Debug)]
pub struct Generator {
    netns: Arc<NetNs>,
    interface: String,
    index: u32,
    queues: u32,
    program: Generate,
    template: Vec<u8>,
    cpu: u32,
    rate: Rate,
    bursts: u64,
    _parked: Parked,
}

/// What became of the frames of one call.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SendReport {
    /// The numbers of the frames that were made.
    pub sequences: Range<u64>,
    /// How many the receiving end took: what a receiver has to account for.
    pub accepted: u64,
    /// How many the receiving end had no room for.
    pub refused: u64,
    /// From the first frame to the return of the last call.
    pub elapsed: Duration,
    /// CPU time that the sending thread used meanwhile. The kernel puts down to it (unless built to keep interrupts apart,
    /// CONFIG_IRQ_TIME_ACCOUNTING) the work of the receiving end's NAPI and XDP program too.
    pub cpu_time: Duration,
}

impl SendReport {
    /// Frames made.
    pub fn sent(&self) -> u64 {
        self.sequences.end - self.sequences.start
    }

    /// Frames made per second.
    pub fn rate(&self) -> f64 {
        self.sent() as f64 / self.elapsed.as_secs_f64()
    }
}

/// Frames handed from the kernel's maker of frames to the driver at once.
const BATCH: u32 = 64;
/// Frames made in one call at most: some milliseconds of work, so that setting it up does not count.
const CALL: u64 = 1 << 16;
/// At a chosen rate, how often in a second frames are made where they are many, unless asked. A call costs about 60
/// microseconds besides its frames.
const BURSTS: u64 = 2000;
/// Sleeping is late by up to this much; the rest of a pause is spent spinning.
const OVERSLEEP: Duration = Duration::from_micros(120);
/// Frames that no kernel finds too long.
const SURELY_FITS: usize = 3000;

impl Generator {
    /// Prepares to send from the pair's `tx`, on CPU 0 and at full rate, frames that are numbered from 0.
    ///
    /// # Errors
    ///
    /// No privilege (`CAP_BPF`, `CAP_NET_ADMIN`).
    pub fn new(pair: &Pair, traffic: &Traffic) -> Result<Self, Error> {
        Self::numbered_from(0, pair, traffic)
    }

    /// The same with another first number, for several generators of one traffic.
    ///
    /// # Errors
    ///
    /// As [`new`](Self::new).
    pub fn numbered_from(first: u64, pair: &Pair, traffic: &Traffic) -> Result<Self, Error> {
        let port = &pair.tx;
        let template = traffic.frame(0);
        let program = Generate::load(&Options {
            size: u32::try_from(traffic.size()).expect("the size was checked"),
            tagged: traffic
                .is_tagged()
                .then(|| *template.first_chunk().expect("frames are longer than headers")),
            flows: traffic.flow_count(),
            scattered: traffic.is_scattered(),
            first_sequence: first,
        })?;
        let _parked = Parked::park(program.program())?;
        Ok(Self {
            netns: Arc::clone(&port.netns),
            interface: port.name.clone(),
            index: port.index,
            queues: port.queues,
            program,
            template,
            cpu: 0,
            rate: Rate::Full,
            bursts: BURSTS,
            _parked,
        })
    }

    /// Sends on this CPU, which also decides the receive queue.
    #[must_use]
    pub fn cpu(self, cpu: u32) -> Self {
        Self { cpu, ..self }
    }

    /// Sends at this rate.
    ///
    /// # Errors
    ///
    /// A rate of 0.
    pub fn rate(self, rate: Rate) -> Result<Self, Error> {
        if let Rate::PerSecond(rate) = rate {
            Error::check_range("frames per second", rate, 1, u64::MAX)?;
        }
        Ok(Self { rate, ..self })
    }

    /// At a chosen rate, makes frames so often in a second. Few bursts leave more of the CPU to others: each costs up to 200
    /// microseconds besides its frames, most of them the end of the pause before it.
    ///
    /// # Errors
    ///
    /// 0 of them.
    pub fn bursts(self, per_second: u64) -> Result<Self, Error> {
        Error::check_range("bursts per second", per_second, 1, u64::MAX)?;
        Ok(Self { bursts: per_second, ..self })
    }

    /// The queue on which the frames arrive.
    pub fn queue(&self) -> u32 {
        self.cpu % self.queues
    }

    /// Makes exactly `count` frames.
    ///
    /// # Errors
    ///
    /// The frames are too long for this way of sending ([`Error::TooLongForLiveFrames`]), the CPU does not exist, or the
    /// kernel has no live frames (5.18).
    pub fn send(&mut self, count: u64) -> Result<SendReport, Error> {
        self.send_until(|sent, _| count - sent)
    }

    /// Makes frames for as long as `time`, to within the time of 65536 frames.
    ///
    /// # Errors
    ///
    /// As [`send`](Self::send).
    pub fn send_for(&mut self, time: Duration) -> Result<SendReport, Error> {
        self.send_until(|_, elapsed| if elapsed < time { CALL } else { 0 })
    }

    /// Sends until `left`, given the frames made and the time gone, says that none is left.
    fn send_until(&mut self, left: impl Fn(u64, Duration) -> u64 + Send) -> Result<SendReport, Error> {
        let before = self.accepted()?;
        let mut report = self.netns.run(|| self.run(left))?;
        report.accepted = self.accepted()? - before;
        report.refused = report.sent().saturating_sub(report.accepted);
        Ok(report)
    }

    /// The work of a thread in the namespace. It knows what it sent, but not what became of that.
    fn run(&self, left: impl Fn(u64, Duration) -> u64) -> Result<SendReport, Error> {
        pin(self.cpu)?;
        let first = self.program.next_sequence();
        let (start, cpu_start) = (Instant::now(), cpu_time());
        loop {
            let next = self.program.next_sequence();
            let (sent, elapsed) = (next - first, start.elapsed());
            let left = left(sent, elapsed).min(CALL);
            if left == 0 {
                let cpu_time = cpu_time() - cpu_start;
                return Ok(SendReport { sequences: first..next, accepted: 0, refused: 0, elapsed, cpu_time });
            }
            match self.rate.due(sent, elapsed, self.bursts) {
                Ok(due) => self.make(left.min(due))?,
                Err(early) => pause(early),
            }
        }
    }

    /// Has the kernel make frames. After a signal there are fewer, as the next sequence number tells.
    fn make(&self, frames: u64) -> Result<(), Error> {
        let frames = u32::try_from(frames).expect("a call makes few frames");
        let made = testrun::live_frames(self.program.program(), &self.template, self.index, BATCH, frames);
        match made.map_err(|error| (Errno::from_raw_os_error(error.errno()), error)) {
            Ok(()) | Err((Errno::INTR, _)) => Ok(()),
            Err((Errno::INVAL, _)) if self.template.len() > SURELY_FITS => {
                Err(Error::TooLongForLiveFrames { size: self.template.len() })
            }
            Err((_, error)) => Err(error.into()),
        }
    }

    /// Frames that the receiving end's ring has taken, ever. The driver counts them for the receive queue.
    fn accepted(&self) -> Result<u64, Error> {
        let counter = format!("tx_queue_{}_xdp_xmit", self.queue());
        let ethtool = self.netns.run(Ethtool::new)?;
        let interface = &self.interface;
        let accepted = ethtool.counter(interface, &counter);
        accepted.ok_or_else(|| Error::NoCounter { interface: interface.clone(), counter })
    }
}

impl Rate {
    /// How many frames may be made now, of `bursts` bursts a second, or how long to wait until some may.
    fn due(self, sent: u64, elapsed: Duration, bursts: u64) -> Result<u64, Duration> {
        const SECOND: u128 = 1_000_000_000;
        let Self::PerSecond(rate) = self else { return Ok(CALL) };
        // Frame n is due n/rate seconds after the start.
        let due = u64::try_from(elapsed.as_nanos() * u128::from(rate) / SECOND).unwrap_or(u64::MAX);
        if due < sent {
            let nanoseconds = u128::from(sent) * SECOND / u128::from(rate);
            return Err(Duration::from_nanos(u64::try_from(nanoseconds).unwrap_or(u64::MAX)) - elapsed);
        }
        Ok((due - sent).max(rate / bursts).max(1))
    }
}

/// Waits for `time` at most: the coarse part asleep, the rest by coming back at once.
fn pause(time: Duration) {
    match time.checked_sub(OVERSLEEP) {
        Some(time) => thread::sleep(time),
        None => hint::spin_loop(),
    }
}

/// CPU time that the calling thread has used.
fn cpu_time() -> Duration {
    let time = clock_gettime(ClockId::ThreadCPUTime);
    Duration::try_from(time).expect("it is not negative")
}

/// Keeps the calling thread on one CPU.
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
    fn frames_come_due_at_the_rate() {
        let rate = Rate::PerSecond(4_000_000);
        assert_eq!(rate.due(0, Duration::ZERO, BURSTS), Ok(2000), "a burst at once");
        assert_eq!(rate.due(2000, Duration::from_micros(100), BURSTS), Err(Duration::from_micros(400)));
        assert_eq!(rate.due(2000, Duration::from_micros(500), BURSTS), Ok(2000));
        assert_eq!(rate.due(2000, Duration::from_millis(2), BURSTS), Ok(6000), "what is late comes with it");
    }

    #[test]
    fn slow_rates_send_single_frames() {
        assert_eq!(Rate::PerSecond(10).due(0, Duration::ZERO, BURSTS), Ok(1));
        assert_eq!(Rate::PerSecond(10).due(1, Duration::ZERO, BURSTS), Err(Duration::from_millis(100)));
    }

    #[test]
    fn full_rate_is_always_due() {
        assert_eq!(Rate::Full.due(1 << 40, Duration::ZERO, BURSTS), Ok(CALL));
    }
}
