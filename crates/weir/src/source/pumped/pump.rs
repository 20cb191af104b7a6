//! The thread that fills a queue's pool from a socket: what every one of them does in between its steps.

use std::io;
use std::os::fd::BorrowedFd;
use std::time::Duration;

use rustix::event::{PollFd, PollFlags};
use rustix::io::Errno;
use weir_ring::{Pool, Reader, Shape, Writer};
use weir_sys::CallError;

use crate::source::signals::{Order, Signals, wait};

/// How long to wait for an empty chunk before looking again: nobody rings when one comes back.
pub(in crate::source) const STALL: Duration = Duration::from_millis(1);

/// The only one that touches a socket's rings, and the writer of its queue.
pub(in crate::source) trait Pump {
    fn signals(&self) -> &Signals;

    /// Readable when there is something to copy.
    fn socket(&self) -> BorrowedFd<'_>;

    /// What is wrong with the socket.
    fn health(&self) -> Result<(), CallError>;

    /// Does what is to be done before an order is looked for.
    fn prepare(&mut self) {}

    /// Copies a little, or waits until there is something to do.
    fn step(&mut self) -> Result<(), CallError>;

    /// Copies all that is in: what the pool has no room for goes into `rest`.
    fn finish(&mut self, rest: &mut Option<Reader>) -> Result<(), CallError>;

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

/// That the interface is down or gone is no trouble: the capture hears of that itself.
pub(in crate::source) fn unless_gone(result: Result<(), CallError>) -> Result<(), CallError> {
    let gone = [Errno::NETDOWN, Errno::NODEV].map(Errno::raw_os_error);
    result.or_else(|error| if gone.contains(&error.errno()) { Ok(()) } else { Err(error) })
}

/// What is left of a pump that has finished.
pub(in crate::source) struct Finished {
    /// Records for which the pool had no room.
    pub(in crate::source) rest: Option<Reader>,
    pub(in crate::source) result: Result<(), CallError>,
}

/// Copies until it is told to end.
pub(in crate::source) fn run(mut pump: impl Pump) -> Finished {
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
            // It may last; the source decides whether to go on.
            pump.nap(STALL);
        }
    }
}

/// A pool of one queue.
pub(in crate::source) fn private_pool(shape: Shape) -> io::Result<(Writer, Reader)> {
    let (writers, readers) = Pool::private(shape)?;
    let one = writers.into_iter().zip(readers).next();
    Ok(one.expect("a shape has at least one queue"))
}

/// A pool of one queue with chunks as in `shape`, for the last records, of `bytes` at most.
pub(in crate::source) fn last_pool(shape: Shape, bytes: u64) -> Result<(Writer, Reader), CallError> {
    let (limit, largest) = (shape.limit(), shape.stride() - shape.limit());
    let failed = |error| CallError::new("make room for the last packets", error);
    let chunks = u32::try_from(bytes / u64::from(limit) + 2).unwrap_or(u32::MAX);
    let shape = Shape::new(1, chunks, limit, largest).map_err(|error| failed(io::Error::other(error)))?;
    private_pool(shape).map_err(failed)
}
