//! Generates frames at full or limited rate.

use std::hint;
use std::ops::Range;
use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

use rustix::io::Errno;
use rustix::thread::{CpuSet, sched_setaffinity};
use rustix::time::{ClockId, clock_gettime};
use weir_bpf::Parked;
use weir_bpf::generate::{Generate, Options};
use weir_sys::ethtool::Ethtool;
use weir_sys::netns::NetNs;
use weir_sys::testrun;

use crate::{Error, Pair, Traffic};

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
/// The kernel creates 64 frames at a time, and an XDP program numbers them and sends them through the device: 7 to 15
/// million per second, depending on the machine, from one otherwise idle CPU. The receiving end's NAPI, and with it any
/// XDP program there, runs on that CPU in between, so 64 frames meet an empty ring of 256. Unless something delays
/// NAPI, none is refused; the report has the number of refused frames.
///
/// Frames arrive on the receive queue given by the CPU number modulo the number of queues. Reports are based on the
/// driver's per-queue counters, so two generators that send through one pair at the same time must use CPUs of
/// different queues.
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

/// Frames that the kernel passes to the driver at once.
const BATCH: u32 = 64;
/// Most frames generated in one call: some milliseconds of work, so that the setup is negligible.
const CALL: u64 = 1 << 16;
/// Default number of bursts per second at a limited rate. A call costs about 60 microseconds in addition to its frames.
const BURSTS: u64 = 2000;
/// Longest delay of a wake-up; the rest of a pause is spent spinning.
const OVERSLEEP: Duration = Duration::from_micros(120);
/// Longest frame that every kernel accepts.
const SURELY_FITS: usize = 3000;

impl Generator {
    /// Prepares to send frames from the pair's `tx`, numbered from 0, on CPU 0 at full rate.
    ///
    /// # Errors
    ///
    /// Missing privileges (`CAP_BPF`, `CAP_NET_ADMIN`).
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
        self.send_until(|_, elapsed| if elapsed < time { CALL } else { 0 })
    }

    /// Sends until `left`, which receives the number of frames sent and the elapsed time, returns 0.
    fn send_until(&mut self, left: impl Fn(u64, Duration) -> u64 + Send) -> Result<SendReport, Error> {
        let before = self.accepted()?;
        let mut report = self.netns.run(|| self.run(left))?;
        report.accepted = self.accepted()? - before;
        report.refused = report.sent().saturating_sub(report.accepted);
        Ok(report)
    }

    /// Runs in a thread in the namespace. It counts the frames sent, but not those accepted.
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

    /// Makes the kernel send frames. A signal cuts the call short; the next sequence number shows how far it came.
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

impl Rate {
    /// Returns the number of frames due now, in `bursts` bursts per second, or the time until some are due.
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

/// Waits for at most `time`: sleeps for the most part and spins for the rest.
fn pause(time: Duration) {
    match time.checked_sub(OVERSLEEP) {
        Some(time) => thread::sleep(time),
        None => hint::spin_loop(),
    }
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
