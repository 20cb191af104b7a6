//! Frames that the kernel makes itself, by an eBPF program: from tables, or copies of packets that it was given before.

use std::hint::spin_loop;
use std::os::fd::BorrowedFd;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use rustix::io::Errno;
use rustix::time::{ClockId, Timespec, clock_gettime};
use weir_bpf::frames::Frames;
use weir_bpf::trace::{self, Trace};
use weir_bpf::{LoadError, Parked};
use weir_sys::link::Links;
use weir_sys::testrun;
use weir_traffic::Tables;

use super::builder::SenderBuilder;
use super::destination::Destination;
use super::error::{SendError, SendReason, Sent};
use super::queue::SendQueue;
use crate::live::error::not_loaded;
use crate::live::interface::Device;
use crate::live::namespace::context::inside;
use crate::{Error, LiveRefusal, Namespace, Unsupported};

/// Frames that the kernel hands to the driver at once.
const BATCH: u32 = 64;
/// Most frames of one call: some milliseconds of work, so that its setup is negligible.
const CALL: u64 = 1 << 16;
/// The end of a wait, for which a thread stays awake.
const AWAKE: Duration = Duration::from_micros(120);
/// Longest sleep before a look at the flag that ends it.
const NAP: Duration = Duration::from_millis(20);
/// How often the interface is looked at.
const LOOK: Duration = Duration::from_millis(250);
/// How long a driver may take to count what it has sent.
const COUNTED: Duration = Duration::from_secs(2);

/// Sends frames that an eBPF program makes in the kernel (live frames of `BPF_PROG_TEST_RUN`, Linux 5.18): test traffic,
/// from [`SenderBuilder::live`], or the packets of a queue again and again, from [`SenderBuilder::live_queue`].
///
/// They go to the driver directly, as redirected packets do: neither the queue before the device nor captures on this
/// end see them, and they have no mark.
#[derive(Debug)]
pub struct LiveFrames {
    destination: Destination,
    namespace: Option<Namespace>,
    links: Links,
    maker: Maker,
    _parked: Parked,
    template: Vec<u8>,
    /// The driver is known to take such frames.
    known: bool,
    /// Signatures have a time.
    stamped: bool,
    /// The bytes of the first 0, 1, ... frames, until sizes repeat.
    bytes: Vec<u64>,
    stop: Arc<AtomicBool>,
}

/// The program that makes the frames.
#[derive(Debug)]
enum Maker {
    Tables(Frames),
    Queue(Trace),
}

impl Maker {
    fn program(&self) -> BorrowedFd<'_> {
        match self {
            Self::Tables(frames) => frames.program(),
            Self::Queue(trace) => trace.program(),
        }
    }

    /// Says which frame is next. `epoch`: as [`Frames::begin`] has it.
    fn begin(&self, sequence: u64, epoch: Option<u64>) {
        match self {
            Self::Tables(frames) => frames.begin(sequence, epoch),
            Self::Queue(trace) => trace.begin(sequence),
        }
    }

    fn next_sequence(&self) -> u64 {
        match self {
            Self::Tables(frames) => frames.next_sequence(),
            Self::Queue(trace) => trace.next_sequence(),
        }
    }
}

/// What a generator does next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Due {
    /// Makes so many frames, or as many of them as one call makes.
    Now(u64),
    /// Waits.
    In(Duration),
    /// Ends.
    Over,
}

/// What a generator has made and sent.
#[derive(Clone, Copy, Debug, Default)]
#[non_exhaustive]
pub struct LiveReport {
    /// Frames made, and their bytes.
    pub made: Sent,
    /// How many of them the driver sent, by its counter: what other programs send meanwhile makes up for frames that it
    /// had no room for.
    pub sent: u64,
    /// Time from the first frame to the return of the last call.
    pub elapsed: Duration,
    /// Whether the [flag](LiveFrames::stop_flag) ended it.
    pub stopped: bool,
}

impl LiveReport {
    /// Returns the report of a run that an error has ended after so many frames.
    pub fn of(made: Sent) -> Self {
        Self { made, sent: made.packets, ..Self::default() }
    }
}

impl SenderBuilder {
    /// Opens a generator of live frames, whose signatures tell this stream. Takes `CAP_BPF`, `CAP_NET_ADMIN` and
    /// `CAP_SYS_ADMIN`.
    ///
    /// # Errors
    ///
    /// As [`find`](Self::find); without the privileges; the frames are longer than the interface takes, or than a page
    /// holds; or the driver takes no redirected packets.
    #[doc(hidden)]
    pub fn live(&self, tables: &Tables, stream: u16) -> Result<LiveFrames, Error> {
        let destination = self.find()?;
        let template = tables.template();
        destination
            .check(&template)
            .map_err(|reason| unfit(&destination.name, LiveRefusal::Packet(reason.into())))?;
        let sizes = tables.sizes.iter().map(|&size| u64::from(size));
        self.open_live(destination, template, sizes, || Frames::load(tables, stream).map(Maker::Tables))
    }

    /// Opens a generator of live frames that are the packets of a queue, in turn, as fast as possible: their times do not
    /// matter. The kernel keeps a copy of the packets. Takes `CAP_BPF`, `CAP_NET_ADMIN` and `CAP_SYS_ADMIN`.
    ///
    /// # Errors
    ///
    /// As [`find`](Self::find); without the privileges; the queue is empty; a packet is longer than the interface takes,
    /// or than a page holds; memory is short; or the driver takes no redirected packets.
    pub fn live_queue(&self, queue: &SendQueue) -> Result<LiveFrames, Error> {
        let destination = self.find()?;
        let packets: Vec<&[u8]> = queue.iter().map(|(_, packet)| packet).collect();
        let longest = packets.iter().map(|packet| packet.len()).max().unwrap_or(0);
        if longest == 0 {
            return Err(unfit(&destination.name, LiveRefusal::NoPackets));
        }
        let unfitting = |reason: SendReason| unfit(&destination.name, LiveRefusal::Packet(reason.into()));
        packets.iter().try_for_each(|packet| destination.check(packet)).map_err(unfitting)?;
        if longest > trace::LONGEST {
            let refusal = LiveRefusal::TooLong { bytes: longest, most: trace::LONGEST };
            return Err(unfit(&destination.name, refusal));
        }
        let sizes = packets.iter().map(|packet| packet.len() as u64);
        self.open_live(destination, vec![0; longest], sizes, || Trace::load(&packets).map(Maker::Queue))
    }

    /// `sizes`: those of the frames, until they repeat.
    fn open_live(
        &self,
        destination: Destination,
        template: Vec<u8>,
        sizes: impl Iterator<Item = u64>,
        load: impl FnOnce() -> Result<Maker, LoadError>,
    ) -> Result<LiveFrames, Error> {
        let namespace = self.wanted.namespace.clone();
        let (links, takes) = inside(namespace.as_ref(), || {
            let takes = Device::find(&self.wanted)?.takes_redirected();
            Ok::<_, Error>((Links::open()?, takes))
        })??;
        if takes == Some(false) {
            return Err(unfit(&destination.name, LiveRefusal::Driver));
        }
        let maker = load().map_err(|error| not_loaded(&destination.name, error))?;
        let _parked = Parked::park(maker.program())?;
        let sums = sizes.scan(0, |sum, size| {
            *sum += size;
            Some(*sum)
        });
        let bytes = [0].into_iter().chain(sums).collect();
        let known = takes.is_some();
        let (stamped, stop) = (true, Arc::default());
        Ok(LiveFrames {
            destination,
            namespace,
            links,
            maker,
            _parked,
            template,
            known,
            stamped,
            bytes,
            stop,
        })
    }
}

fn unfit(name: &str, refusal: LiveRefusal) -> Error {
    Error::Unsupported {
        name: name.to_owned(),
        cause: Unsupported::LiveFrames(refusal),
        sources: &[],
        otherwise: "send them with system calls (--backend plain)",
    }
}

impl LiveFrames {
    /// Returns the interface.
    pub fn destination(&self) -> &Destination {
        &self.destination
    }

    /// Returns whether the driver is known to take such frames. It is from Linux 6.3 on, and with veth whose other end is
    /// found; else a driver that does not take them refuses each one, and [`LiveReport::sent`] is 0.
    pub fn is_known_to_work(&self) -> bool {
        self.known
    }

    /// Leaves the time in signatures at 0, so that a frame depends on its number only.
    #[must_use]
    pub fn timeless(self) -> Self {
        Self { stamped: false, ..self }
    }

    /// Returns a flag that ends [`run`](Self::run) once another thread or a signal handler sets it.
    pub fn stop_flag(&self) -> Arc<AtomicBool> {
        Arc::clone(&self.stop)
    }

    /// Makes frames from number `first` on, as `due` says: it gets how many were made, and the time since the first.
    /// One call of the kernel makes at most 65536 of them.
    ///
    /// # Errors
    ///
    /// The interface went down or away, the frames are too long for live frames of this kernel, or the namespace
    /// cannot be entered. [`SendError::sent`] says what was made: the driver may have sent fewer.
    pub fn run(
        &mut self,
        first: u64,
        due: impl FnMut(u64, Duration) -> Due + Send,
    ) -> Result<LiveReport, SendError> {
        let namespace = self.namespace.clone();
        let ran = inside(namespace.as_ref(), || self.run_inside(first, due));
        ran.unwrap_or_else(|error| {
            Err(self.failed(SendReason::Unreachable { why: error.to_string() }, Sent::default()))
        })
    }

    fn run_inside(
        &mut self,
        first: u64,
        mut due: impl FnMut(u64, Duration) -> Due,
    ) -> Result<LiveReport, SendError> {
        let before = self.counter(Sent::default())?;
        let start = Instant::now();
        let (mut made, mut looked) = (0, start);
        loop {
            let elapsed = start.elapsed();
            // Relaxed: the flag carries no data.
            let stopped = self.stop.load(Ordering::Relaxed);
            if looked.elapsed() > LOOK {
                self.counter(self.sum(first, made))?;
                looked = Instant::now();
            }
            match if stopped { Due::Over } else { due(made, elapsed) } {
                Due::Now(frames) => made += self.make(first, made, frames.clamp(1, CALL))?,
                Due::In(time) => wait(time),
                Due::Over => {
                    let sent = self.sent(before, self.sum(first, made))?;
                    return Ok(LiveReport { made: self.sum(first, made), sent, elapsed, stopped });
                }
            }
        }
    }

    /// Makes the kernel send frames, and returns how many: a signal cuts the call short.
    fn make(&self, first: u64, made: u64, frames: u64) -> Result<u64, SendError> {
        let next = first + made;
        let count = u32::try_from(frames).expect("a call makes few frames");
        self.maker.begin(next, self.stamped.then(epoch));
        match testrun::live_frames(self.maker.program(), &self.template, self.destination.index, BATCH, count)
        {
            Ok(()) => {}
            Err(error) if Errno::from_raw_os_error(error.errno()) == Errno::INTR => {}
            Err(error) => {
                let reason = match Errno::from_raw_os_error(error.errno()) {
                    Errno::NODEV => SendReason::Gone,
                    _ => SendReason::Refused { errno: error.errno() },
                };
                return Err(self.failed(reason, self.sum(first, made)));
            }
        }
        Ok(self.maker.next_sequence() - next)
    }

    /// Returns the number of packets that the driver has sent. The interface has to be up.
    fn counter(&self, made: Sent) -> Result<u64, SendError> {
        let links = match self.links.all() {
            Ok(links) => links,
            Err(error) => return Err(self.failed(SendReason::Refused { errno: error.errno() }, made)),
        };
        match links.iter().find(|link| link.index == self.destination.index) {
            None => Err(self.failed(SendReason::Gone, made)),
            Some(link) if !link.is_up() => Err(self.failed(SendReason::Down, made)),
            Some(link) => Ok(link.tx_packets),
        }
    }

    /// Returns how many of the frames the driver has sent: what its counter grew by, once it has counted them all or
    /// does not go on counting.
    fn sent(&self, before: u64, made: Sent) -> Result<u64, SendError> {
        let deadline = Instant::now() + COUNTED;
        loop {
            let sent = self.counter(made)?.wrapping_sub(before);
            if sent >= made.packets || Instant::now() > deadline {
                return Ok(sent.min(made.packets));
            }
            thread::sleep(Duration::from_millis(1));
        }
    }

    /// Returns how many bytes so many frames have, from number `first` on.
    fn sum(&self, first: u64, frames: u64) -> Sent {
        let turn = self.bytes.len() as u64 - 1;
        let until = |frame: u64| {
            let rest = usize::try_from(frame % turn).expect("a place in the table");
            u128::from(frame / turn) * u128::from(self.bytes[self.bytes.len() - 1])
                + u128::from(self.bytes[rest])
        };
        let bytes = u64::try_from(until(first + frames) - until(first)).unwrap_or(u64::MAX);
        Sent { packets: frames, bytes }
    }

    fn failed(&self, reason: SendReason, sent: Sent) -> SendError {
        SendError { name: self.destination.name.clone(), sent, reason }
    }
}

/// Sleeps for the most part of `time` and spins for the rest of it.
fn wait(time: Duration) {
    match time.checked_sub(AWAKE) {
        Some(time) => thread::sleep(time.min(NAP)),
        None => spin_loop(),
    }
}

/// Returns the nanoseconds from `CLOCK_MONOTONIC` to `CLOCK_REALTIME`.
fn epoch() -> u64 {
    let nanoseconds = |time: Timespec| i128::from(time.tv_sec) * 1_000_000_000 + i128::from(time.tv_nsec);
    let [monotonic, real] =
        [ClockId::Monotonic, ClockId::Realtime].map(|clock| nanoseconds(clock_gettime(clock)));
    u64::try_from(real - monotonic).unwrap_or(0)
}
