//! Captures on devices.
//!
//! Packets come from a packet socket with a ring of the kernel's (`TPACKET_V3`), or from the pool of [`weir::Capture`],
//! if the user asks for it. Both are read in place, without a thread of ours: a program may fork and go on in the child,
//! and no handler of its signals runs in a thread that it does not know. Only `pcap_live_dump` has a thread.

mod device;
mod engine;
mod link_header;
mod maker;
mod notifier;
mod open;
mod pool;
mod renew;
mod report;
mod socket;

use std::ffi::{CStr, c_int};
use std::io;
use std::os::fd::{AsFd as _, AsRawFd as _, BorrowedFd};
use std::time::{Duration, Instant};

use libc::timeval;
use rustix::net::{SendFlags, send};

use self::device::{Device, Presence};
use self::engine::Wish;
pub(crate) use self::notifier::{Notifier, ring};
use self::pool::Pool;
use self::report::Report;
use self::socket::Socket;
use crate::abi::*;
use crate::cancel::{Wait, Woken};
use crate::filter::Filter;
use crate::savefile::Packet;
use crate::settings::Settings;
use crate::stdio::text_of;

/// The text for an interface that is gone.
const GONE: &str = "The interface disappeared";
/// How often a reader that waits looks for an interface that is down.
const WHILE_DOWN: Duration = Duration::from_millis(50);

/// A capture on a device.
pub(crate) struct Live {
    device: Device,
    engine: Engine,
    settings: Settings,
    snap_len: u32,
    /// Where to print a line at the end, if anywhere.
    report: Option<Report>,
    /// How long a read waits then.
    timeout: Duration,
    notifier: Notifier,
    /// Whether reading never waits.
    pub(crate) nonblocking: bool,
    /// Whether the interface went down; nothing tells when it is up again or gone.
    down: bool,
    /// Losses before the socket, counted by the device, when the capture began.
    lost_before: u64,
}

/// What captures.
enum Engine {
    Socket(Box<Socket>),
    Pool(Box<Pool>),
}

/// `PCAP_D_` numbers.
const IN: c_int = 1;
const OUT: c_int = 2;

/// An error for C: a code, and its text.
#[derive(Debug)]
pub(crate) struct Refusal {
    pub(crate) code: c_int,
    pub(crate) text: String,
}

impl Refusal {
    fn new(code: c_int, text: impl Into<String>) -> Self {
        Self { code, text: text.into() }
    }
}

impl From<String> for Refusal {
    fn from(text: String) -> Self {
        Self { code: PCAP_ERROR, text }
    }
}

/// Returns whether the name is that of a device whose packets we capture, or names one of our sources.
pub(crate) fn serves(name: &CStr) -> bool {
    Wish::of(name).map_or(true, |wish| *wish.device != *name || Device::exists(name))
}

impl Live {
    /// Takes the next packet that `filter` accepts into `to`; returns whether there is one yet.
    #[inline]
    pub(crate) fn next(&mut self, filter: Option<&Filter>, to: &mut Packet) -> Result<bool, String> {
        match &mut self.engine {
            Engine::Socket(socket) => Ok(socket.next(filter, to)),
            Engine::Pool(pool) => pool.next(filter, to),
        }
    }

    /// Like [`Self::next`], but the packets taken before stay.
    pub(crate) fn beside(&mut self, filter: Option<&Filter>, to: &mut Packet) -> bool {
        match &mut self.engine {
            // It lays out one packet at a time.
            Engine::Socket(_) => false,
            Engine::Pool(pool) => pool.beside(filter, to),
        }
    }

    /// Returns when a read that finds nothing ends: never, unless the program waits for the descriptor, and that is a
    /// pool's, which can be readable without a packet.
    pub(crate) fn deadline(&self) -> Option<Instant> {
        let polled = matches!(&self.engine, Engine::Pool(pool) if pool.polled);
        polled.then(|| Instant::now() + self.timeout)
    }

    /// Waits until there may be packets, or somebody notifies, at most until `deadline`. A signal may end it early.
    /// Only for a thread of ours: [`Self::sleep`] and [`Self::woken`] are the halves of it between which a thread of the
    /// program's waits.
    pub(crate) fn wait(&mut self, deadline: Option<Instant>) -> Result<(), String> {
        let woken = self.sleep(deadline).now();
        self.woken(woken)
    }

    /// Returns what to wait for.
    pub(crate) fn sleep(&self, deadline: Option<Instant>) -> Wait {
        let look = self.down.then(|| Instant::now() + WHILE_DOWN);
        let until = deadline.into_iter().chain(look).min();
        Wait::Ready { fds: [self.packets().as_raw_fd(), self.notifier.as_fd().as_raw_fd()], until }
    }

    /// Returns an error if no packet will arrive any more, after a wait.
    pub(crate) fn woken(&mut self, woken: Woken) -> Result<(), String> {
        self.notifier.silence();
        match woken {
            Woken::Events(events) if events & !libc::POLLIN == 0 && !self.down => Ok(()),
            Woken::Events(_) => self.health(),
            Woken::Failed(errno) => {
                let error = io::Error::from_raw_os_error(errno);
                Err(format!("cannot wait for packets: {}", text_of(&error)))
            }
        }
    }

    /// Returns an error if no packet will arrive any more.
    pub(crate) fn health(&mut self) -> Result<(), String> {
        // The pool tells when it is asked for packets.
        let Engine::Socket(socket) = &self.engine else { return Ok(()) };
        match socket.health() {
            Ok(()) => {}
            // The kernel says so once, also if the interface is about to disappear.
            Err(error) if error.errno() == libc::ENETDOWN => self.down = true,
            Err(error) if matches!(error.errno(), libc::ENODEV | libc::ENXIO) => return Err(GONE.to_owned()),
            Err(error) => return Err(error.to_string()),
        }
        if self.down {
            match self.device.presence(socket) {
                Presence::Up => self.down = false,
                Presence::Down => {}
                Presence::Gone => return Err(GONE.to_owned()),
            }
        }
        Ok(())
    }

    /// Sets the filter in the kernel, if it takes the program; packets that arrived before it are filtered here.
    pub(crate) fn set_filter(&mut self, filter: &Filter) {
        match &mut self.engine {
            Engine::Socket(socket) => socket.set_filter(filter.program()),
            Engine::Pool(pool) => pool.set_filter(filter),
        }
    }

    /// Selects received or sent packets, by a `PCAP_D_` number.
    pub(crate) fn set_direction(&mut self, direction: c_int) {
        match &mut self.engine {
            Engine::Socket(socket) => socket.direction = direction,
            Engine::Pool(pool) => pool.direction = direction,
        }
    }

    /// Sends a packet; returns its length.
    pub(crate) fn send(&self, packet: &[u8]) -> Result<usize, String> {
        if self.device.is_any() {
            return Err("Sending packets isn't supported on the \"any\" device".to_owned());
        }
        let sent = match &self.engine {
            // A packet socket does not receive what it sends.
            Engine::Socket(socket) => send(socket, packet, SendFlags::empty()),
            Engine::Pool(pool) => pool.sender.send(packet),
        };
        sent.map_err(|error| format!("send: {}", text_of(&error.into())))
    }

    /// Counts packets since the capture began.
    pub(crate) fn stats(&mut self) -> Result<PcapStat, String> {
        let counts = match &mut self.engine {
            Engine::Socket(socket) => socket.counts(),
            Engine::Pool(pool) => pool.counts(),
        }?;
        let lost = self.device.losses().saturating_sub(self.lost_before);
        // C has 32 bits; a number that does not fit stays the largest.
        let number = |count: u64| u32::try_from(count).unwrap_or(u32::MAX);
        Ok(PcapStat {
            ps_recv: number(counts.packets),
            ps_drop: number(counts.drops),
            ps_ifdrop: number(lost),
        })
    }

    /// Counts what became of each packet since the capture began.
    pub(crate) fn counts(&mut self) -> Result<Counts, String> {
        let counts = match &mut self.engine {
            Engine::Socket(socket) => socket.all_counts(),
            Engine::Pool(pool) => pool.all_counts(),
        }?;
        Ok(Counts { device_lost: self.device.losses().saturating_sub(self.lost_before), ..counts })
    }

    /// Returns the link types, the usual one first.
    pub(crate) fn link_types(&self) -> &'static [c_int] {
        self.device.link_types()
    }

    /// Returns whether filters know a packet's metadata, such as its VLAN tag.
    pub(crate) fn has_metadata(&self) -> bool {
        match &self.engine {
            Engine::Socket(socket) => socket.has_metadata(),
            Engine::Pool(_) => true,
        }
    }

    /// Returns that VLAN tags may be missing, and what to do, if the device can strip them and those do not reach the source.
    pub(crate) fn without_tags(&self) -> Option<String> {
        let Engine::Pool(pool) = &self.engine else { return None };
        let (keep, device) = (pool.keep_tags()?, self.device.name());
        Some(format!(
            "VLAN tags may be missing: {device} can strip them and does not report them to XDP; use the source tc \
             (WEIR_SOURCE=tc), or keep them: {keep}"
        ))
    }

    /// Chooses one of the link types.
    pub(crate) fn set_link_type(&mut self, link_type: c_int) {
        if let Engine::Socket(socket) = &mut self.engine {
            socket.set_link_type(link_type);
        }
    }

    /// Returns the size of the longest packet with its header.
    pub(crate) fn buffer_size(&self) -> c_int {
        c_int::try_from(self.snap_len).unwrap_or(c_int::MAX)
    }

    /// Returns what is readable once there are packets.
    fn packets(&self) -> BorrowedFd<'_> {
        match &self.engine {
            Engine::Socket(socket) => socket.as_fd(),
            Engine::Pool(pool) => pool.as_fd(),
        }
    }

    /// Returns the descriptor that is readable once there are packets.
    pub(crate) fn descriptor(&mut self) -> c_int {
        if let Engine::Pool(pool) = &mut self.engine {
            pool.polled = true;
        }
        self.packets().as_raw_fd()
    }

    pub(crate) fn notifier(&self) -> BorrowedFd<'_> {
        self.notifier.as_fd()
    }
}

impl Drop for Live {
    /// Prints the line that a user asks for by `WEIR_REPORT`.
    fn drop(&mut self) {
        let Some(report) = self.report else { return };
        let Ok(PcapStat { ps_recv, ps_drop, ps_ifdrop }) = self.stats() else { return };
        let how = match &self.engine {
            Engine::Socket(socket) if socket.filters_here() => {
                "packet socket, filter in the process".to_owned()
            }
            Engine::Socket(_) => "packet socket".to_owned(),
            Engine::Pool(pool) => pool.about(),
        };
        let device = self.device.name();
        let line = format!(
            "weir: {device}: {how}; received {ps_recv}, lost {ps_drop}, lost by the device {ps_ifdrop}\n"
        );
        report.print(&line);
    }
}

/// Returns the time for C; its second field has the precision of the handle.
pub(crate) fn time(nanoseconds: u64, precise: bool) -> timeval {
    const SECOND: u64 = 1_000_000_000;
    let part = nanoseconds % SECOND / if precise { 1 } else { 1000 };
    timeval { tv_sec: (nanoseconds / SECOND).cast_signed(), tv_usec: part.cast_signed() }
}
