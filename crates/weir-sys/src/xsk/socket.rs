//! The socket: creating its rings, binding it to a queue, and calling the kernel when it asks for it.

use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use std::sync::{Arc, PoisonError};
use std::thread::sleep;
use std::time::{Duration, Instant};

use rustix::io::Errno;
use rustix::net::xdp::{
    SocketAddrXdp, SocketAddrXdpFlags, SocketAddrXdpWithSharedUmem, XDP_PGOFF_RX_RING, XDP_PGOFF_TX_RING,
    XDP_UMEM_PGOFF_COMPLETION_RING, XDP_UMEM_PGOFF_FILL_RING, XdpOptionsFlags, XdpUmemReg, XdpUmemRegFlags,
};
use rustix::net::{
    AddressFamily, RecvFlags, SendFlags, SocketFlags, SocketType, bind, recv, send, socket_with, sockopt,
};

use crate::CallError;

use super::ends::Ends;
use super::ends::XskCounts;
use super::memory::RingMemory;
use super::ring::{Consumer, Descriptor, Entry, Producer};
use super::{Frame, Umem};

/// How long a new socket waits for the queue of a socket that was just closed.
const QUEUE_WAIT: Duration = Duration::from_secs(1);

/// Numbers of entries in a socket's rings, rounded up to a power of two. 0: there is no such ring.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct XskOptions {
    /// Entries of the fill ring and the receive ring.
    pub receive: u32,
    /// Entries of the transmit ring and the completion ring.
    pub send: u32,
}

/// A socket bound to one queue of an interface. Frames that the kernel holds when this is dropped are not reused.
#[derive(Debug)]
pub struct XskSocket {
    fd: Arc<OwnedFd>,
    ends: Ends,
    zero_copy: bool,
    /// The caller polls for packets instead of interrupts; each poll is a system call.
    busy_polling: bool,
}

/// The kernel's counts of packets that were redirected to a socket but did not arrive, or were not sent, by reason.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct XskLoss {
    /// There was no empty frame, or the packet was too long for the frames.
    pub dropped: u64,
    /// The receive ring was full.
    pub ring_full: u64,
    /// Invalid descriptors in the transmit ring.
    pub invalid: u64,
}

impl XskSocket {
    /// Binds a new socket to `queue` of the interface `ifindex` in this thread's network namespace.
    ///
    /// Packets arrive once the kernel has frames ([`refill`](Self::refill)) and an XDP program redirects to the socket.
    /// Needs `CAP_NET_RAW`, and for the first socket on `umem` `CAP_IPC_LOCK` or a `ulimit -l` of its size.
    ///
    /// # Errors
    ///
    /// Names the step and the kernel's answer. `EPERM`: without the capability. `ENOBUFS`: over the limit of locked
    /// memory. `EBUSY`: another socket holds the queue. `EINVAL`: there is no such queue, no ring was requested, or the
    /// kernel does not support packets in several frames. `EOPNOTSUPP`: earlier sockets on `umem` use zero copy, which
    /// this device's driver does not support.
    pub fn bind(umem: &Umem, ifindex: u32, queue: u32, options: XskOptions) -> Result<Self, CallError> {
        let step = |operation: &'static str| move |e: Errno| CallError::new(operation, e);
        let mapped =
            |operation: &'static str| move |e: std::io::Error| CallError::new(format!("map {operation}"), e);
        let too_large = |_| CallError::new("create AF_XDP rings", std::io::ErrorKind::OutOfMemory);
        let entries = |wanted: u32| wanted.max(1).checked_next_power_of_two().ok_or(());
        let (receive, send) =
            (entries(options.receive).map_err(too_large)?, entries(options.send).map_err(too_large)?);

        // Held until the end: a second socket must find the first one bound.
        let mut sockets = umem.0.sockets.lock().unwrap_or_else(PoisonError::into_inner);
        sockets.open.retain(|socket| socket.strong_count() > 0);
        let beside = sockets.open.iter().find_map(std::sync::Weak::upgrade);
        let fd = socket_with(AddressFamily::XDP, SocketType::RAW, SocketFlags::CLOEXEC, None)
            .map_err(step("open an AF_XDP socket"))?;
        if beside.is_none() {
            register(&fd, umem)?;
        }
        // The kernel wants a fill and a completion ring even where they are of no use.
        sockopt::set_xdp_umem_fill_ring_size(&fd, receive).map_err(step("make an AF_XDP fill ring"))?;
        sockopt::set_xdp_umem_completion_ring_size(&fd, send)
            .map_err(step("create an AF_XDP completion ring"))?;
        if options.receive > 0 {
            sockopt::set_xdp_rx_ring_size(&fd, receive).map_err(step("create an AF_XDP receive ring"))?;
        }
        if options.send > 0 {
            sockopt::set_xdp_tx_ring_size(&fd, send).map_err(step("create an AF_XDP transmit ring"))?;
        }
        let at = sockopt::xdp_mmap_offsets(&fd).map_err(step("query the offsets of AF_XDP rings"))?;
        let fill = RingMemory::map(&fd, XDP_UMEM_PGOFF_FILL_RING, &at.fr, receive, u64::WORDS)
            .map_err(mapped("the AF_XDP fill ring"))?;
        let completed = RingMemory::map(&fd, XDP_UMEM_PGOFF_COMPLETION_RING, &at.cr, send, u64::WORDS)
            .map_err(mapped("the AF_XDP completion ring"))?;
        let received = (options.receive > 0)
            .then(|| RingMemory::map(&fd, XDP_PGOFF_RX_RING, &at.rx, receive, Descriptor::WORDS))
            .transpose()
            .map_err(mapped("the AF_XDP receive ring"))?;
        let sent = (options.send > 0)
            .then(|| RingMemory::map(&fd, XDP_PGOFF_TX_RING, &at.tx, send, Descriptor::WORDS))
            .transpose()
            .map_err(mapped("the AF_XDP transmit ring"))?;
        take_queue(&fd, umem, beside.as_deref(), ifindex, queue).map_err(|e| {
            CallError::new(format!("bind an AF_XDP socket to queue {queue} of interface {ifindex}"), e)
        })?;
        let flags = sockopt::xdp_options(&fd).map_err(step("query whether an AF_XDP socket copies"))?;
        let ends = Ends {
            umem: umem.clone(),
            fill: Producer::new(fill),
            received: received.map(Consumer::new),
            sent: sent.map(Producer::new),
            completed: Consumer::new(completed),
            fill_number: sockets.number(),
            sent_number: sockets.number(),
            begun: Vec::new(),
            spoilt: false,
            counts: XskCounts::default(),
        };
        let fd = Arc::new(fd);
        sockets.open.push(Arc::downgrade(&fd));
        let zero_copy = flags.contains(XdpOptionsFlags::XDP_OPTIONS_ZEROCOPY);
        Ok(Self { fd, ends, zero_copy, busy_polling: false })
    }

    /// Returns whether the card itself reads and writes the frames; otherwise the kernel copies.
    pub fn zero_copy(&self) -> bool {
        self.zero_copy
    }

    /// Appends the frames of received packets to `into`, each packet whole, and at most `most` frames. Returns the
    /// number of packets. Does not wait. `umem` must be the socket's.
    ///
    /// # Panics
    ///
    /// If `umem` is a different memory.
    pub fn receive<'u>(&mut self, umem: &'u Umem, most: u32, into: &mut Vec<Frame<'u>>) -> usize {
        self.ends.receive(umem, most, into)
    }

    /// Gives the kernel the last of `frames` to receive into, as many as the fill ring has room for. Returns their
    /// number. The contents are lost. The other frames stay in `frames` for a later call, so none of `frames` may
    /// contain packets that are still needed. The ring has room for a frame only some time after its packet was
    /// received (`xsk_flush` publishes the packet first).
    ///
    /// # Panics
    ///
    /// If the frames belong to a different memory.
    pub fn refill(&mut self, frames: &mut Vec<Frame<'_>>) -> usize {
        self.ends.refill(frames)
    }

    /// Returns the number of frames that have arrived but were not received.
    pub fn waiting(&self) -> u32 {
        self.ends.received.as_ref().map_or(0, Consumer::available)
    }

    /// Returns whether the kernel has no empty frames left, so that incoming packets are lost.
    pub fn starved(&self) -> bool {
        self.ends.fill.waiting() == 0
    }

    /// Queues the first packets of `frames` to be sent, as many as the transmit ring has room for, each whole. Returns
    /// their number. They go out with the next [`kick`](Self::kick). An empty frame, which the kernel cannot send, is
    /// dropped and counted.
    ///
    /// # Panics
    ///
    /// If the frames belong to a different memory.
    pub fn send(&mut self, frames: &mut Vec<Frame<'_>>) -> usize {
        self.ends.send(frames)
    }

    /// Appends the frames that were sent to `into`, empty. Returns their number. `umem` must be the socket's.
    ///
    /// # Panics
    ///
    /// If `umem` is a different memory.
    pub fn complete<'u>(&mut self, umem: &'u Umem, into: &mut Vec<Frame<'u>>) -> usize {
        self.ends.complete(umem, into)
    }

    /// Wakes the kernel, if it asks for that, so that it takes frames from the fill ring. Call this if there is nothing
    /// to [`receive`](Self::receive), unless you `poll` the socket, which does the same. In copy mode, the kernel never
    /// asks, and this costs one load.
    ///
    /// # Errors
    ///
    /// The error of the kernel, for instance `ENETDOWN` if the interface is down.
    pub fn wake(&self) -> Result<(), CallError> {
        if !self.busy_polling && !self.ends.fill.needs_wakeup() {
            return Ok(());
        }
        match recv(&self.fd, &mut [0_u8; 0], RecvFlags::DONTWAIT) {
            Ok(_) | Err(Errno::AGAIN | Errno::BUSY | Errno::INTR) => Ok(()),
            Err(e) => Err(CallError::new("wake an AF_XDP socket", e)),
        }
    }

    /// Makes the kernel send the packets in the transmit ring, if it waits for that. In copy mode, it sends them during
    /// this call, while the device and the socket's send buffer have room. Returns whether the ring is now empty.
    ///
    /// # Errors
    ///
    /// The error of the kernel, for instance `ENETDOWN` if the interface is down.
    pub fn kick(&mut self) -> Result<bool, CallError> {
        let Some(sent) = &self.ends.sent else { return Ok(true) };
        let mut waiting = sent.waiting();
        while waiting > 0 && (self.busy_polling || sent.needs_wakeup()) {
            match send(&self.fd, &[], SendFlags::DONTWAIT) {
                Ok(_) | Err(Errno::AGAIN | Errno::INTR) => {}
                // The kernel took a packet out of the ring, but the device did not accept it (`__xsk_generic_xmit`).
                Err(Errno::BUSY) if !self.zero_copy => self.ends.counts.unsent += 1,
                Err(Errno::BUSY | Errno::NOBUFS) => {}
                Err(e) => return Err(CallError::new("send on an AF_XDP socket", e)),
            }
            // One call sends at most 32 packets. If it sends none, neither will the next.
            let left = sent.waiting();
            if left == waiting || self.zero_copy {
                break;
            }
            waiting = left;
        }
        Ok(sent.waiting() == 0)
    }

    /// Makes [`wake`](Self::wake), [`kick`](Self::kick) and `poll` do the driver's work in the calling thread, for up
    /// to `duration` and at most `budget` packets at once, with the card's interrupts off meanwhile
    /// (`SO_PREFER_BUSY_POLL`, Linux 5.11). Only useful together with the device's `napi_defer_hard_irqs` and
    /// `gro_flush_timeout`.
    ///
    /// # Errors
    ///
    /// `EPERM` without `CAP_NET_ADMIN`.
    pub fn poll_busily(&mut self, duration: Duration, budget: u16) -> Result<(), CallError> {
        let microseconds = libc::c_int::try_from(duration.as_micros()).unwrap_or(libc::c_int::MAX);
        for (option, value) in [
            (SO_PREFER_BUSY_POLL, 1),
            (libc::SO_BUSY_POLL, microseconds),
            (SO_BUSY_POLL_BUDGET, budget.into()),
        ] {
            self.set(option, value)
                .map_err(|e| CallError::new("enable busy polling on an AF_XDP socket", e))?;
        }
        self.busy_polling = true;
        Ok(())
    }

    fn set(&self, option: libc::c_int, value: libc::c_int) -> std::io::Result<()> {
        let length = libc::socklen_t::try_from(size_of::<libc::c_int>()).expect("4 bytes");
        // SAFETY: the kernel reads `length` bytes of `value`, which has that length.
        let result = unsafe {
            libc::setsockopt(self.fd.as_raw_fd(), libc::SOL_SOCKET, option, (&raw const value).cast(), length)
        };
        if result == 0 { Ok(()) } else { Err(std::io::Error::last_os_error()) }
    }

    /// Checks for an error of the socket, which is reported once. `poll` indicates that there is one.
    ///
    /// # Errors
    ///
    /// `ENETDOWN`: the interface is gone.
    pub fn health(&self) -> Result<(), CallError> {
        let state = sockopt::socket_error(&self.fd).and_then(|error| error);
        state.map_err(|e| CallError::new("receive on an AF_XDP socket", e))
    }

    /// Returns the socket's own counts.
    pub fn counts(&self) -> XskCounts {
        self.ends.counts
    }

    /// Returns the losses since the socket was bound.
    ///
    /// # Errors
    ///
    /// The kernel does not report them.
    pub fn loss(&self) -> Result<XskLoss, CallError> {
        let kernel = sockopt::xdp_statistics(&self.fd)
            .map_err(|e| CallError::new("read the counters of an AF_XDP socket", e))?;
        Ok(XskLoss {
            dropped: kernel.rx_dropped,
            ring_full: kernel.rx_ring_full.unwrap_or(0),
            invalid: kernel.tx_invalid_descs,
        })
    }
}

/// asm-generic/socket.h, Linux 5.11; libc does not have them.
const SO_PREFER_BUSY_POLL: libc::c_int = 69;
const SO_BUSY_POLL_BUDGET: libc::c_int = 70;

fn register(fd: &OwnedFd, umem: &Umem) -> Result<(), CallError> {
    let memory = XdpUmemReg {
        addr: umem.0.start(),
        len: umem.0.len(),
        chunk_size: umem.0.frame_size(),
        headroom: 0,
        flags: XdpUmemRegFlags::empty(),
        tx_metadata_len: 0,
    };
    sockopt::set_xdp_umem_reg(fd, memory).map_err(|e| {
        let advice = if e == Errno::NOBUFS { " (raise `ulimit -l`, or grant CAP_IPC_LOCK)" } else { "" };
        CallError::new(format!("lock {} bytes for an AF_XDP socket{advice}", umem.0.len()), e)
    })
}

/// Binds the socket, and retries for a while if the queue is taken: the kernel releases a closed socket's queue shortly
/// after `close` returns (`xp_put_pool` leaves that to a work item).
fn take_queue(
    fd: &OwnedFd,
    umem: &Umem,
    beside: Option<&OwnedFd>,
    ifindex: u32,
    queue: u32,
) -> rustix::io::Result<()> {
    let options = umem.0.options;
    let mut flags = SocketAddrXdpFlags::XDP_USE_NEED_WAKEUP;
    flags.set(SocketAddrXdpFlags::XDP_COPY, !options.zero_copy);
    flags.set(SocketAddrXdpFlags::XDP_USE_SG, options.segments);
    let ask = || match beside {
        // The other flags are those of the existing socket.
        Some(beside) => {
            let addr = SocketAddrXdp::new(SocketAddrXdpFlags::XDP_SHARED_UMEM, ifindex, queue);
            bind(fd, &SocketAddrXdpWithSharedUmem { addr, shared_umem_fd: beside.as_fd() })
        }
        None => bind(fd, &SocketAddrXdp::new(flags, ifindex, queue)),
    };
    let start = Instant::now();
    loop {
        match ask() {
            Err(Errno::BUSY) if start.elapsed() < QUEUE_WAIT => sleep(QUEUE_WAIT / 100),
            bound => return bound,
        }
    }
}

/// For `poll`: readable when there are packets. Also for an XSKMAP.
impl AsFd for XskSocket {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.fd.as_fd()
    }
}
