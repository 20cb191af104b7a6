//! The thread that copies the kernel's ring into the pool.

use std::io;
use std::ops::ControlFlow;
use std::os::fd::{AsFd, BorrowedFd};
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags};
use weir_ring::{Consumer, Producer, Shape};
use weir_sys::CallError;
use weir_sys::packet::{PacketRing, Walk};
use weir_sys::thread::spawn_bare;

use super::pump_filter::{self, PumpFilter};
use super::record_encoder::RecordEncoder;
use super::sampler::Sampler;
use super::shared::Shared;
use super::stack::Stack;
use crate::live::ruled::InProcess;
use crate::live::source::losses::Losses;
use crate::live::source::pumped::{self, Finished, Pump, STALL};
use crate::live::source::signals::{Signals, wait};

/// How long to wait for more blocks if blocks fill up before they expire. A wake-up per block would cost both sides
/// more, and a block arrives in the meantime anyway.
const PAUSE: Duration = Duration::from_micros(250);
/// How much later than promised the kernel may close its last block.
const GRACE: Duration = Duration::from_millis(100);
/// Fewest blocks between two readings of the kernel's counters, which have 32 bits. A block holds a few thousand
/// packets.
const READ_EVERY: u64 = 4096;

/// The pump: nothing else touches the kernel's ring or the pool's producer.
pub(super) struct RingPump {
    pub(super) ring: PacketRing,
    pub(super) producer: Producer,
    pub(super) encoder: RecordEncoder,
    pub(super) losses: Losses,
    /// The interfaces whose frames are skipped, because they are captured below too.
    pub(super) stack: Option<Stack>,
    /// The filter that runs here.
    pub(super) filter: Option<PumpFilter>,
    /// What selects the packets to copy.
    pub(super) sampler: Option<Sampler>,
    /// The rules that have the filter's place.
    pub(super) rules: Option<InProcess>,
    /// Buffer for a packet as it will be saved, of which rules are asked.
    pub(super) saved: Vec<u8>,
    pub(super) shared: Arc<Shared>,
    /// Dimensions of the pool.
    pub(super) shape: Shape,
    /// Bytes and blocks of the ring.
    pub(super) ring_bytes: u32,
    pub(super) blocks: u32,
    /// Time after which the kernel closes a block.
    pub(super) retire: Duration,
    pub(super) counters: PumpCounters,
}

/// Counters of the pump.
#[derive(Default)]
pub(super) struct PumpCounters {
    /// Packets written to the pool, and their original bytes.
    captured: u64,
    bytes: u64,
    /// Unreadable packets.
    errors: u64,
    /// Packets that are captured elsewhere too, or rejected by the filter.
    filtered: u64,
    /// Packets that were not selected.
    sampled_out: u64,
    /// Bytes of records.
    written: u64,
    /// Blocks copied since the ring was last empty, and whether any was full.
    streak: u32,
    full: bool,
}

impl PumpCounters {
    /// Returns the number of packets of the kernel's ring that were processed.
    fn met(&self) -> u64 {
        self.captured + self.errors + self.filtered + self.sampled_out
    }
}

/// What happened to a block.
enum Step {
    /// It was copied completely.
    Copied,
    /// There was none.
    Empty,
    /// The pool has no empty chunk.
    Stalled,
}

impl RingPump {
    /// Starts the thread.
    pub(super) fn start(self) -> io::Result<JoinHandle<Finished>> {
        spawn_bare("weir-af_packet", move || pumped::run(self))
    }

    /// Reads what is needed before the next block is copied: the kernel's drop count, and changes of stacked
    /// interfaces.
    fn ask_ahead(&mut self) -> Result<(), CallError> {
        let Some(block) = self.ring.ready() else { return Ok(()) };
        if block.losing && block.number >= self.losses.open() || block.number.is_multiple_of(READ_EVERY) {
            self.read_losses()?;
        }
        self.stack.as_mut().map_or(Ok(()), Stack::refresh)
    }

    /// Copies the next block or the rest of it, as long as the pool has room.
    fn copy_block(&mut self) -> Step {
        let Some(block) = self.ring.ready() else { return Step::Empty };
        let Self {
            ring,
            producer,
            encoder,
            losses,
            stack,
            filter,
            rules,
            sampler,
            saved,
            shared,
            counters,
            ..
        } = self;
        // For a whole block: a lock for each packet would cost more.
        let mut rules = rules.as_ref().map(InProcess::lock);
        let walk = ring.walk(|packet| {
            if stack.as_ref().is_some_and(|stack| stack.is_upper(packet.origin.interface()))
                || filter.as_mut().is_some_and(|filter| !filter.wants(packet, encoder))
            {
                counters.filtered += 1;
                return ControlFlow::Continue(());
            }
            let Some(room) = producer.room() else { return ControlFlow::Break(()) };
            // Behind the check for room, too: rules count a packet that has to wait once.
            if rules.as_mut().is_some_and(|rules| !pump_filter::decide(rules, packet, encoder, saved)) {
                counters.filtered += 1;
                return ControlFlow::Continue(());
            }
            // Behind the check for room, so that a packet that has to wait is drawn once.
            if sampler.as_mut().is_some_and(|sampler| !sampler.selects(packet, encoder)) {
                counters.sampled_out += 1;
                return ControlFlow::Continue(());
            }
            let lost = losses.to_tell(block.number);
            let Some((bytes, original_len)) = encoder.encode(room, packet, lost) else {
                counters.errors += 1;
                return ControlFlow::Continue(());
            };
            counters.captured += 1;
            counters.bytes += u64::from(original_len);
            counters.written += bytes as u64;
            shared.counts.count(counters.captured, counters.bytes);
            producer.commit(u32::try_from(bytes).expect("a record is no longer than its chunk"));
            if lost.is_some() {
                losses.told(block.number);
            }
            ControlFlow::Continue(())
        });
        let step = match walk {
            Walk::Done { damaged } => {
                counters.errors += u64::from(damaged);
                counters.streak = counters.streak.saturating_add(1);
                counters.full |= !block.aged;
                if block.aged {
                    shared.signals.set_aged();
                }
                Step::Copied
            }
            Walk::Stopped => Step::Stalled,
        };
        shared.counts.count_missing(losses.total(), counters.errors);
        shared.count_filtered(counters.filtered);
        shared.count_sampled(counters.sampled_out, sampler.as_ref().map_or(0, Sampler::orphans));
        shared.signals.ring_if_due(counters.written);
        step
    }

    /// Reads the kernel's drop count, and returns how many packets the kernel has put into the ring.
    fn read_losses(&mut self) -> Result<u64, CallError> {
        // In this order, drops in between are reported too early rather than too late.
        let (marked, open) = self.ring.look_ahead(self.losses.open());
        let statistics = self.ring.statistics()?;
        self.losses.read(statistics.drops, marked, open);
        self.shared.counts.count_missing(self.losses.total(), self.counters.errors);
        Ok(statistics.packets - statistics.drops)
    }
}

impl Pump for RingPump {
    fn signals(&self) -> &Signals {
        &self.shared.signals
    }

    fn socket(&self) -> BorrowedFd<'_> {
        self.ring.as_fd()
    }

    fn health(&self) -> Result<(), CallError> {
        self.ring.health()
    }

    fn prepare(&mut self) {
        self.shared.take_filter(&mut self.filter);
    }

    fn step(&mut self) -> Result<(), CallError> {
        self.ask_ahead()?;
        match self.copy_block() {
            Step::Copied => {}
            Step::Empty => {
                // With less than three quarters of its ring in use, the kernel drops nothing.
                if self.counters.streak > self.blocks / 2 {
                    self.read_losses()?;
                }
                self.counters.streak = 0;
                if std::mem::take(&mut self.counters.full) { self.nap(PAUSE) } else { self.sleep()? }
            }
            Step::Stalled => {
                self.read_losses()?;
                self.nap(STALL);
            }
        }
        Ok(())
    }

    /// Lets nothing more in, and copies what is in the ring, even if the first step fails or the kernel does not report
    /// how much there is. Each packet that cannot be copied is an error.
    fn finish(&mut self, rest: &mut Option<Consumer>) -> Result<(), CallError> {
        let mut trouble = self.ring.shut();
        let expected = self.read_losses();
        // The kernel closes its last block when it expires.
        let deadline = Instant::now() + 2 * self.retire + GRACE;
        while expected.as_ref().map_or(true, |expected| self.counters.met() < *expected) {
            let asked = self.ask_ahead();
            trouble = trouble.and(asked);
            match self.copy_block() {
                Step::Copied => {}
                // A record takes less space than its packet in the ring.
                Step::Stalled => match pumped::last_pool(self.shape, self.ring_bytes.into()) {
                    Ok((producer, consumer)) => {
                        self.producer = producer;
                        *rest = Some(consumer);
                    }
                    Err(error) => {
                        trouble = trouble.and(Err(error));
                        break;
                    }
                },
                Step::Empty => {
                    let left = deadline.saturating_duration_since(Instant::now());
                    if left.is_zero() {
                        break;
                    }
                    // An error would keep the socket readable, and no longer matters.
                    let _ = self.ring.health();
                    wait(&mut [PollFd::new(&self.ring, PollFlags::IN)], Some(left));
                }
            }
        }
        // Packets that the kernel announced and that are not there must be counted.
        self.counters.errors +=
            expected.as_ref().map_or(0, |expected| expected.saturating_sub(self.counters.met()));
        self.shared.counts.count_missing(self.losses.total(), self.counters.errors);
        let told = expected.map(drop);
        trouble.and(told)
    }
}

impl Drop for RingPump {
    fn drop(&mut self) {
        self.shared.end();
    }
}
