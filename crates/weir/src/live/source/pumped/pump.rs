//! The thread that fills a queue's pool from a socket: the part that all pumps share.

use std::io;
use std::os::fd::BorrowedFd;
use std::time::Duration;

use rustix::event::{PollFd, PollFlags};
use rustix::io::Errno;
use weir_ring::{Consumer, Pool, Producer, Shape};
use weir_sys::CallError;

use crate::live::source::signals::{Order, Signals, wait};

/// How long to wait for an empty chunk before checking again: nobody rings when one returns.
pub(in crate::live::source) const STALL: Duration = Duration::from_millis(1);

/// A pump: nothing else touches its socket's rings or the producer of its queue.
pub(in crate::live::source) trait Pump {
    fn signals(&self) -> &Signals;

    /// Readable when there is something to copy.
    fn socket(&self) -> BorrowedFd<'_>;

    /// Returns the socket's pending error.
    fn health(&self) -> Result<(), CallError>;

    /// Does what is necessary before the pump checks for orders.
    fn prepare(&mut self) {}

    /// Copies a few packets, or waits until there is something to do.
    fn step(&mut self) -> Result<(), CallError>;

    /// Copies everything that is left. What does not fit into the pool goes to `rest`.
    fn finish(&mut self, rest: &mut Option<Consumer>) -> Result<(), CallError>;

    /// Sleeps until there is something to copy or a new order.
    fn sleep(&self) -> Result<(), CallError> {
        let socket = self.socket();
        let mut fds = [PollFd::new(&self.signals().call, PollFlags::IN), PollFd::new(&socket, PollFlags::IN)];
        wait(&mut fds, None);
        if !fds[1].revents().contains(PollFlags::ERR) {
            return Ok(());
        }
        unless_gone(self.health())
    }

    /// Sleeps for a while, or until there is a new order.
    fn nap(&self, length: Duration) {
        wait(&mut [PollFd::new(&self.signals().call, PollFlags::IN)], Some(length));
    }
}

/// Ignores the error that the interface is down or gone: the capture learns of that by itself.
pub(in crate::live::source) fn unless_gone(result: Result<(), CallError>) -> Result<(), CallError> {
    let gone = [Errno::NETDOWN, Errno::NODEV].map(Errno::raw_os_error);
    result.or_else(|error| if gone.contains(&error.errno()) { Ok(()) } else { Err(error) })
}

/// What a finished pump leaves.
pub(in crate::live::source) struct Finished {
    /// Records that did not fit into the pool.
    pub(in crate::live::source) rest: Option<Consumer>,
    pub(in crate::live::source) result: Result<(), CallError>,
}

/// Runs the pump until it is told to end.
pub(in crate::live::source) fn run(mut pump: impl Pump) -> Finished {
    loop {
        pump.prepare();
        let done = match pump.signals().order() {
            Order::Pump => pump.step(),
            Order::Finish => {
                let mut rest = None;
                let result = pump.finish(&mut rest);
                return Finished { rest, result };
            }
            Order::Leave => return Finished { rest: None, result: Ok(()) },
        };
        if let Err(trouble) = done {
            pump.signals().report(trouble);
            // The error may persist; the source decides whether to continue.
            pump.nap(STALL);
        }
    }
}

/// Makes a pool with one queue.
pub(in crate::live::source) fn private_pool(shape: Shape) -> io::Result<(Producer, Consumer)> {
    let (producers, consumers) = Pool::private(shape)?;
    let one = producers.into_iter().zip(consumers).next();
    Ok(one.expect("a shape has at least one queue"))
}

/// Makes a pool with one queue and chunks as in `shape`, for the last records of up to `bytes` in total.
pub(in crate::live::source) fn last_pool(
    shape: Shape,
    bytes: u64,
) -> Result<(Producer, Consumer), CallError> {
    let (limit, largest) = (shape.limit(), shape.stride() - shape.limit());
    let failed = |error| CallError::new("make room for the last packets", error);
    let chunks = u32::try_from(bytes / u64::from(limit) + 2).unwrap_or(u32::MAX);
    let shape = Shape::new(1, chunks, limit, largest).map_err(|error| failed(io::Error::other(error)))?;
    private_pool(shape).map_err(failed)
}
