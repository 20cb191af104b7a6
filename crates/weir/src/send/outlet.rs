//! The way of packets into the kernel, and those that are on it.

use std::collections::VecDeque;
use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use rustix::io::Errno;
use weir_sys::link::Links;
use weir_sys::packet::TxRing;

use super::batch::Batch;
use super::destination::Destination;
use super::error::{PATIENCE, SendError, SendReason, Sent};
use super::spread::{Gaps, Spread};

/// How packets reach the kernel.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Backend {
    /// A ring that is shared with the kernel (`PACKET_TX_RING`): one copy by this thread, and a system call for many
    /// packets. The kernel makes a packet of pages of the ring, which took more time than its own copy in all measurements of
    /// docs/performance.md.
    Ring,
    /// Calls with one or many packets each (send(2), sendmmsg(2)), which the kernel copies. Needs the least memory, and
    /// takes the least time.
    Plain,
}

impl fmt::Display for Backend {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Ring => "ring",
            Self::Plain => "plain",
        })
    }
}

#[derive(Debug)]
pub(super) enum TxPath {
    Ring(TxRing),
    Plain(Batch),
}

impl TxPath {
    fn put(&mut self, packet: &[u8]) -> bool {
        match self {
            Self::Ring(ring) => ring.put(packet),
            Self::Plain(batch) => batch.put(packet),
        }
    }

    /// Sends a packet without putting it on the way; returns whether it did. If not, [`send`](Self::send) says why.
    fn send_alone(&self, packet: &[u8]) -> bool {
        match self {
            Self::Ring(_) => false,
            Self::Plain(batch) => batch.send_alone(packet),
        }
    }

    fn send(&mut self, wait: bool) -> (u32, Result<(), Errno>) {
        match self {
            Self::Ring(ring) => ring.send(wait),
            Self::Plain(batch) => batch.send(),
        }
    }

    fn forget(&mut self) {
        match self {
            Self::Ring(ring) => ring.forget(),
            Self::Plain(batch) => batch.forget(),
        }
    }
}

/// Most packets that are on the way before the kernel is called.
const MOST: usize = 64;
/// Pause before another try.
const NAP: Duration = Duration::from_micros(50);

/// The way, and the packets that are on it.
#[derive(Debug)]
pub(super) struct Outlet {
    pub(super) destination: Destination,
    path: TxPath,
    /// The interfaces of the destination's namespace.
    links: Links,
    pub(super) stop: Arc<AtomicBool>,
    /// The length of each packet on the way, and when it is due.
    pending: VecDeque<(usize, Option<Duration>)>,
    began: Instant,
    sent: Sent,
    spread: Spread,
}

impl Outlet {
    pub(super) fn new(destination: Destination, path: TxPath, links: Links) -> Self {
        Self {
            destination,
            path,
            links,
            stop: Arc::default(),
            pending: VecDeque::new(),
            began: Instant::now(),
            sent: Sent::default(),
            spread: Spread::new(),
        }
    }

    pub(super) fn backend(&self) -> Backend {
        match self.path {
            TxPath::Ring(_) => Backend::Ring,
            TxPath::Plain(_) => Backend::Plain,
        }
    }

    /// Starts to count anew.
    pub(super) fn begin(&mut self) {
        self.forget();
        self.sent = Sent::default();
        self.spread = Spread::new();
        self.began = Instant::now();
    }

    /// Returns the time since [`begin`](Self::begin).
    pub(super) fn elapsed(&self) -> Duration {
        self.began.elapsed()
    }

    pub(super) fn sent(&self) -> Sent {
        self.sent
    }

    pub(super) fn gaps(&self) -> Gaps {
        self.spread.gaps()
    }

    /// Whether somebody wants this to end. Relaxed: the flag carries no data.
    pub(super) fn is_stopped(&self) -> bool {
        self.stop.load(Ordering::Relaxed)
    }

    /// Puts a packet on the way. It may wait there for [`flush`](Self::flush).
    pub(super) fn put(&mut self, packet: &[u8], due: Option<Duration>) -> Result<(), SendError> {
        if let Err(reason) = self.destination.check(packet) {
            self.flush()?;
            return Err(self.failed(reason));
        }
        while !self.path.put(packet) {
            // Once nothing is on the way, the driver still has packets in all slots of the ring.
            if self.pending.is_empty() {
                let (_, answer) = self.path.send(true);
                answer.or_else(|error| self.judge(error))?;
            }
            self.flush()?;
            if self.is_stopped() {
                return Ok(());
            }
        }
        self.pending.push_back((packet.len(), due));
        if self.pending.len() >= MOST { self.flush() } else { Ok(()) }
    }

    /// Sends a packet now that is due then, behind what is on the way.
    pub(super) fn send(&mut self, packet: &[u8], due: Duration, now: Duration) -> Result<(), SendError> {
        let alone = self.pending.is_empty() && self.destination.check(packet).is_ok();
        if alone && self.path.send_alone(packet) {
            self.count_one(packet.len(), Some(due), now);
            return Ok(());
        }
        self.put(packet, Some(due))?;
        self.flush()
    }

    /// Sends what is on the way. Drops it if somebody wants to stop and it cannot be sent at once.
    pub(super) fn flush(&mut self) -> Result<(), SendError> {
        // The first look at the clock is for the first error: a call in time needs none.
        let (mut wait, mut progress) = (false, None);
        while !self.pending.is_empty() {
            let at = self.elapsed();
            let (sent, answer) = self.path.send(wait);
            self.count(sent, at);
            let Err(error) = answer else { continue };
            if sent > 0 {
                progress = None;
            } else if self.is_stopped() {
                self.forget();
            } else if progress.get_or_insert_with(Instant::now).elapsed() > PATIENCE {
                return Err(self.failed(SendReason::Stuck));
            } else if !self.pending.is_empty() {
                self.judge(error)?;
            }
            wait = error == Errno::AGAIN;
        }
        Ok(())
    }

    fn count(&mut self, packets: u32, at: Duration) {
        for _ in 0..packets {
            let (bytes, due) = self.pending.pop_front().expect("no more are sent than were on the way");
            self.count_one(bytes, due, at);
        }
    }

    fn count_one(&mut self, bytes: usize, due: Option<Duration>, at: Duration) {
        self.sent += Sent { packets: 1, bytes: bytes as u64 };
        if let Some(due) = due {
            self.spread.sent(due, at);
        }
    }

    fn forget(&mut self) {
        self.pending.clear();
        self.path.forget();
    }

    /// Decides whether to try again after this error, and when.
    fn judge(&mut self, error: Errno) -> Result<(), SendError> {
        match error {
            Errno::AGAIN | Errno::INTR => return Ok(()),
            Errno::NOBUFS => {}
            // The kernel also says so of what happened in the meantime, and if a device without a queue is busy.
            Errno::NETDOWN | Errno::NXIO | Errno::NODEV => self.look(None)?,
            Errno::MSGSIZE => self.look(self.pending.front().map(|&(bytes, _)| bytes))?,
            other => return Err(self.failed(SendReason::Refused { errno: other.raw_os_error() })),
        }
        thread::sleep(NAP);
        Ok(())
    }

    /// Looks at the interface: it must be there, be up and have room for a packet of this length.
    fn look(&mut self, bytes: Option<usize>) -> Result<(), SendError> {
        let links = match self.links.all() {
            Ok(links) => links,
            Err(error) => return Err(self.failed(SendReason::Refused { errno: error.errno() })),
        };
        let reason = match links.iter().find(|link| link.index == self.destination.index) {
            None => SendReason::Gone,
            Some(link) if !link.is_up() => SendReason::Down,
            Some(link) => {
                self.destination.mtu = link.mtu;
                let most = self.destination.longest() as usize;
                match bytes {
                    Some(bytes) if bytes > most => {
                        SendReason::TooLong { bytes, most, mtu: link.mtu as usize + (bytes - most) }
                    }
                    _ => return Ok(()),
                }
            }
        };
        Err(self.failed(reason))
    }

    /// Drops what is on the way, and returns the error.
    pub(super) fn failed(&mut self, reason: SendReason) -> SendError {
        self.forget();
        SendError { name: self.destination.name.clone(), sent: self.sent, reason }
    }
}
