//! The thread that copies the kernel's ring into the pool.

use std::io;
use std::ops::ControlFlow;
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags};
use rustix::io::Errno;
use weir_ring::{Pool, Reader, Shape, Writer};
use weir_sys::CallError;
use weir_sys::packet::{PacketRing, Walk};
use weir_sys::thread::spawn_bare;

use super::form::Form;
use super::shared::Shared;
use super::sieve::Sieve;
use super::stack::Stack;
use crate::source::losses::Losses;
use crate::source::signals::{Order, wait};

/// How long to wait for an empty chunk before looking again: nobody rings when one comes back.
const STALL: Duration = Duration::from_millis(1);
/// How long to wait for blocks where they become full before they become old: being woken for each would cost both sides
/// more, and a block comes in the meantime anyway.
const PAUSE: Duration = Duration::from_micros(250);
/// How much later than promised the kernel may close its last block.
const GRACE: Duration = Duration::from_millis(100);
/// Blocks between two readings of the kernel's counters at least: those are of 32 bits, and a block holds some thousand
/// packets.
const READ_EVERY: u64 = 4096;

/// The only one that touches the kernel's ring, and the pool's writer.
pub(super) struct Pump {
    pub(super) ring: PacketRing,
    pub(super) writer: Writer,
    pub(super) form: Form,
    pub(super) losses: Losses,
    /// Whose frames are left out, since they are met below too.
    pub(super) stack: Option<Stack>,
    /// What is asked of the packets here.
    pub(super) sieve: Option<Sieve>,
    pub(super) shared: Arc<Shared>,
    /// The pool's measures.
    pub(super) shape: Shape,
    /// Bytes and blocks of the ring.
    pub(super) ring_bytes: u32,
    pub(super) blocks: u32,
    /// After which the kernel closes a block.
    pub(super) retire: Duration,
    pub(super) tally: Tally,
}

/// What has been done so far.
#[derive(Default)]
pub(super) struct Tally {
    /// Packets laid down, and their original bytes.
    captured: u64,
    bytes: u64,
    /// Packets that could not be made sense of.
    errors: u64,
    /// Packets that are met elsewhere too, or not wanted.
    filtered: u64,
    /// Bytes of records.
    written: u64,
    /// Blocks copied since the ring was last found empty, and whether any was full.
    streak: u32,
    full: bool,
}

impl Tally {
    /// Packets of the kernel's ring that have been looked at.
    fn met(&self) -> u64 {
        self.captured + self.errors + self.filtered
    }
}

/// What became of a block.
enum Step {
    /// It was copied to its end.
    Copied,
    /// There was none.
    Empty,
    /// The pool has no empty chunk.
    Stalled,
}

/// What is left of a pump that has finished.
pub(super) struct Finished {
    /// Records for which the pool had no room.
    pub(super) rest: Option<Reader>,
    pub(super) result: Result<(), CallError>,
}

impl Pump {
    /// Starts the thread.
    pub(super) fn start(self) -> io::Result<JoinHandle<Finished>> {
        spawn_bare("weir-af_packet", move || self.run())
    }

    fn run(mut self) -> Finished {
        loop {
            self.shared.take_sieve(&mut self.sieve);
            let done = match self.shared.signals.order() {
                Order::Pump => self.step(),
                Order::Finish => {
                    let mut rest = None;
                    let result = self.finish(&mut rest);
                    return Finished { rest, result };
                }
                Order::Leave => return Finished { rest: None, result: Ok(()) },
            };
            if let Err(trouble) = done {
                self.shared.signals.report(trouble);
                // It may last; the source decides whether to go on.
                self.nap(STALL);
            }
        }
    }

    /// Copies a block, or waits until there is something to do.
    fn step(&mut self) -> Result<(), CallError> {
        match self.copy_block()? {
            Step::Copied => {}
            Step::Empty => {
                // With less than three quarters of its ring in use the kernel drops nothing.
                if self.tally.streak > self.blocks / 2 {
                    self.read_losses()?;
                }
                self.tally.streak = 0;
                if std::mem::take(&mut self.tally.full) { self.nap(PAUSE) } else { self.sleep()? }
            }
            Step::Stalled => {
                self.read_losses()?;
                self.nap(STALL);
            }
        }
        Ok(())
    }

    /// Copies the next block, or the rest of it, as far as the pool has room.
    fn copy_block(&mut self) -> Result<Step, CallError> {
        let Some(block) = self.ring.ready() else { return Ok(Step::Empty) };
        if block.losing && block.number >= self.losses.open() || block.number.is_multiple_of(READ_EVERY) {
            self.read_losses()?;
        }
        if let Some(stack) = &mut self.stack {
            stack.refresh()?;
        }
        let Self { ring, writer, form, losses, stack, sieve, shared, tally, .. } = self;
        let walk = ring.walk(|packet| {
            if stack.as_ref().is_some_and(|stack| stack.is_upper(packet.origin.interface()))
                || sieve.as_mut().is_some_and(|sieve| !sieve.wants(packet, form))
            {
                tally.filtered += 1;
                return ControlFlow::Continue(());
            }
            let Some(room) = writer.room() else { return ControlFlow::Break(()) };
            let lost = losses.to_tell(block.number);
            let Some((bytes, original_len)) = form.lay(room, packet, lost) else {
                tally.errors += 1;
                return ControlFlow::Continue(());
            };
            tally.captured += 1;
            tally.bytes += u64::from(original_len);
            tally.written += bytes as u64;
            shared.count(tally.captured, tally.bytes);
            writer.commit(u32::try_from(bytes).expect("a record is no longer than its chunk"));
            if lost.is_some() {
                losses.told(block.number);
            }
            ControlFlow::Continue(())
        });
        let step = match walk {
            Walk::Done { damaged } => {
                tally.errors += u64::from(damaged);
                tally.streak = tally.streak.saturating_add(1);
                tally.full |= !block.aged;
                if block.aged {
                    shared.signals.set_aged();
                }
                Step::Copied
            }
            Walk::Stopped => Step::Stalled,
        };
        shared.count_missing(losses.total(), tally.errors);
        shared.count_filtered(tally.filtered);
        shared.signals.ring_if_due(tally.written);
        Ok(step)
    }

    /// Asks the kernel how many packets it has dropped. Gives how many it has put into the ring.
    fn read_losses(&mut self) -> Result<u64, CallError> {
        // In this order: what is dropped in between is told too early then, and never too late.
        let (marked, open) = self.ring.look_ahead(self.losses.open());
        let statistics = self.ring.statistics()?;
        self.losses.read(statistics.drops, marked, open);
        self.shared.count_missing(self.losses.total(), self.tally.errors);
        Ok(statistics.packets - statistics.drops)
    }

    /// Lets nothing more in, and copies every packet that is in: what the pool has no room for goes into `rest`.
    fn finish(&mut self, rest: &mut Option<Reader>) -> Result<(), CallError> {
        self.ring.shut()?;
        let expected = self.read_losses()?;
        // The block that the kernel was filling last is closed in its time.
        let deadline = Instant::now() + 2 * self.retire + GRACE;
        while self.tally.met() < expected {
            match self.copy_block()? {
                Step::Copied => {}
                Step::Stalled => *rest = Some(self.enlarge()?),
                Step::Empty => {
                    let left = deadline.saturating_duration_since(Instant::now());
                    if left.is_zero() {
                        // Never seen so far; but what was promised and did not come must not go uncounted.
                        self.tally.errors += expected - self.tally.met();
                        break;
                    }
                    // Trouble would keep the socket readable, and is of no interest any more.
                    let _ = self.ring.health();
                    wait(&mut [PollFd::new(&self.ring, PollFlags::IN)], Some(left));
                }
            }
        }
        self.shared.count_missing(self.losses.total(), self.tally.errors);
        Ok(())
    }

    /// Goes on in a pool that holds what is left in the ring; a record takes less than its packet does there.
    fn enlarge(&mut self) -> Result<Reader, CallError> {
        let (limit, largest) = (self.shape.limit(), self.shape.stride() - self.shape.limit());
        let failed = |error| CallError::new("make room for the last packets", error);
        let shape = Shape::new(1, self.ring_bytes / limit + 2, limit, largest)
            .map_err(|error| failed(io::Error::other(error)))?;
        let (writer, reader) = private_pool(shape).map_err(failed)?;
        self.writer = writer;
        Ok(reader)
    }

    /// Sleeps until there is a block or a new order.
    fn sleep(&self) -> Result<(), CallError> {
        let mut fds =
            [PollFd::new(&self.shared.signals.call, PollFlags::IN), PollFd::new(&self.ring, PollFlags::IN)];
        wait(&mut fds, None);
        if fds[1].revents().contains(PollFlags::ERR) { self.health() } else { Ok(()) }
    }

    /// What is wrong with the socket. That the interface is down or gone is not: the capture hears of that itself.
    fn health(&self) -> Result<(), CallError> {
        match self.ring.health() {
            Err(error)
                if [Errno::NETDOWN, Errno::NODEV].map(Errno::raw_os_error).contains(&error.errno()) =>
            {
                Ok(())
            }
            other => other,
        }
    }

    /// Sleeps for a while, or until there is a new order.
    fn nap(&self, length: Duration) {
        wait(&mut [PollFd::new(&self.shared.signals.call, PollFlags::IN)], Some(length));
    }
}

impl Drop for Pump {
    fn drop(&mut self) {
        self.shared.end();
    }
}

/// A pool of one queue.
pub(super) fn private_pool(shape: Shape) -> io::Result<(Writer, Reader)> {
    let (writers, readers) = Pool::private(shape)?;
    let one = writers.into_iter().zip(readers).next();
    Ok(one.expect("a shape has at least one queue"))
}
