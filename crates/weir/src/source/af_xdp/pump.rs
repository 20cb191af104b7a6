//! The thread that copies what one socket receives into the pool, and gives the frames back.

use std::io;
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::Duration;

use rustix::event::{PollFd, PollFlags};
use rustix::io::Errno;
use weir_ring::{Pool, Reader, Shape, Writer};
use weir_sys::CallError;
use weir_sys::thread::spawn_bare;
use weir_sys::xsk::{Frame, Umem, XskSocket};

use super::arrival::{Arrival, Form};
use super::shared::Shared;
use crate::source::losses::Losses;
use crate::source::signals::{Order, wait};

/// Frames taken at once: few, so that they go back to the kernel while they are in the caches.
const BATCH: u32 = 64;
/// How long to wait for an empty chunk before looking again: nobody rings when one comes back.
const STALL: Duration = Duration::from_millis(1);
/// How long to wait after a stream of packets before looking again. To be woken for the next one would cost both sides
/// more, and there are frames for longer than that.
const PAUSE: Duration = Duration::from_micros(100);
/// Packets without a pause that are a stream.
const STREAM: u32 = 256;

/// The only one that touches the socket's rings, and the writer of its queue.
pub(super) struct Pump {
    pub(super) socket: XskSocket,
    pub(super) umem: Umem,
    pub(super) writer: Writer,
    pub(super) form: Form,
    /// Each packet gets a time stamp.
    pub(super) stamped: bool,
    pub(super) losses: Losses,
    pub(super) shared: Arc<Shared>,
    /// The pool's measures.
    pub(super) shape: Shape,
    pub(super) tally: Tally,
}

/// What has been done so far.
#[derive(Default)]
pub(super) struct Tally {
    /// Packets laid down, and their original bytes.
    captured: u64,
    bytes: u64,
    /// Packets that did not fit into a record.
    errors: u64,
    /// Bytes of records.
    written: u64,
    /// Frames taken out of the receive ring, and those of them that were laid down.
    taken: u64,
    done: u64,
    /// Packets since the ring was last found empty.
    streak: u32,
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
        spawn_bare("weir-af_xdp", move || self.run())
    }

    fn run(mut self) -> Finished {
        let umem = self.umem.clone();
        let mut frames = Vec::with_capacity(BATCH as usize);
        loop {
            let done = match self.shared.signals.order() {
                Order::Pump => self.step(&umem, &mut frames),
                Order::Finish => {
                    let mut rest = None;
                    let result = self.finish(&umem, &mut frames, &mut rest);
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

    /// Copies some packets, or waits until there is something to do. `frames`: those taken and not copied.
    fn step<'u>(&mut self, umem: &'u Umem, frames: &mut Vec<Frame<'u>>) -> Result<(), CallError> {
        if frames.is_empty() {
            self.receive(umem, frames)?;
        }
        if frames.is_empty() {
            if std::mem::take(&mut self.tally.streak) >= STREAM {
                self.socket.wake()?;
                self.nap(PAUSE);
                return Ok(());
            }
            self.read_losses()?;
            return self.sleep();
        }
        if !self.copy(frames) {
            self.read_losses()?;
            self.nap(STALL);
        }
        Ok(())
    }

    /// Takes a batch out of the receive ring.
    fn receive<'u>(&mut self, umem: &'u Umem, frames: &mut Vec<Frame<'u>>) -> Result<(), CallError> {
        // The kernel has no frame left: it has been losing packets behind all those that are in the ring.
        let starved = self.socket.starved();
        let packets = self.socket.receive(umem, BATCH, frames);
        self.tally.taken += frames.len() as u64;
        self.tally.streak = self.tally.streak.saturating_add(u32::try_from(packets).unwrap_or(u32::MAX));
        if starved { self.read_losses() } else { Ok(()) }
    }

    /// Copies what it can of `frames`, and gives those back to the kernel; whether that is all.
    fn copy(&mut self, frames: &mut Vec<Frame<'_>>) -> bool {
        let mut done = 0;
        while done < frames.len() {
            let length = frames[done..].iter().take_while(|frame| frame.continues()).count() + 1;
            let packet = &mut frames[done..done + length];
            let Some(room) = self.writer.room() else { break };
            let lost = self.losses.to_tell(self.tally.done);
            let arrival = Arrival::take(&mut packet[0], self.stamped);
            match self.form.lay(room, packet, arrival, lost) {
                Some((bytes, original_len)) => {
                    self.tally.captured += 1;
                    self.tally.bytes += u64::from(original_len);
                    self.tally.written += bytes as u64;
                    self.shared.count(self.tally.captured, self.tally.bytes);
                    self.writer.commit(u32::try_from(bytes).expect("a record is no longer than its chunk"));
                    if lost.is_some() {
                        self.losses.told(self.tally.done);
                    }
                }
                None => self.tally.errors += 1,
            }
            self.tally.done += length as u64;
            done += length;
        }
        let all = done == frames.len();
        if all {
            self.socket.refill(frames);
        } else {
            self.socket.refill(&mut frames.drain(..done).collect());
        }
        self.shared.count_missing(self.losses.total(), self.tally.errors + self.socket.counts().refused);
        self.shared.signals.ring_if_due(self.tally.written);
        all
    }

    /// Asks the kernel how many packets it has dropped: behind all that were taken and all that are in the ring.
    fn read_losses(&mut self) -> Result<(), CallError> {
        let behind = self.tally.taken + u64::from(self.socket.waiting());
        let loss = self.socket.loss()?;
        self.losses.read(loss.dropped + loss.ring_full, None, behind);
        self.shared.count_missing(self.losses.total(), self.tally.errors + self.socket.counts().refused);
        Ok(())
    }

    /// Copies every packet that is in the ring: what the pool has no room for goes into `rest`. Nothing more comes.
    fn finish<'u>(
        &mut self,
        umem: &'u Umem,
        frames: &mut Vec<Frame<'u>>,
        rest: &mut Option<Reader>,
    ) -> Result<(), CallError> {
        self.read_losses()?;
        loop {
            if frames.is_empty() {
                self.receive(umem, frames)?;
            }
            if frames.is_empty() {
                return Ok(());
            }
            if !self.copy(frames) {
                *rest = Some(self.enlarge()?);
            }
        }
    }

    /// Goes on in a pool that holds what all frames can hold; a record takes less than its frames do.
    fn enlarge(&mut self) -> Result<Reader, CallError> {
        let (limit, largest) = (self.shape.limit(), self.shape.stride() - self.shape.limit());
        let failed = |error| CallError::new("make room for the last packets", error);
        let bytes = self.umem.bytes();
        let chunks = u32::try_from(bytes / u64::from(limit) + 2).unwrap_or(u32::MAX);
        let shape = Shape::new(1, chunks, limit, largest).map_err(|error| failed(io::Error::other(error)))?;
        let (writers, readers) = Pool::private(shape).map_err(failed)?;
        let (writer, reader) = writers.into_iter().zip(readers).next().expect("a shape has a queue");
        self.writer = writer;
        Ok(reader)
    }

    /// Sleeps until there is a packet or a new order.
    fn sleep(&self) -> Result<(), CallError> {
        let mut fds =
            [PollFd::new(&self.shared.signals.call, PollFlags::IN), PollFd::new(&self.socket, PollFlags::IN)];
        wait(&mut fds, None);
        if fds[1].revents().contains(PollFlags::ERR) { self.health() } else { Ok(()) }
    }

    /// What is wrong with the socket. That the interface is down or gone is not: the capture hears of that itself.
    fn health(&self) -> Result<(), CallError> {
        match self.socket.health() {
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
