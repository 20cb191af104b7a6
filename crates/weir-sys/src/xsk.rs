//! An AF_XDP socket that receives in copy mode: the kernel copies each packet that an XDP program redirects to the
//! socket into a frame of memory that the process gave it.
//!
//! ```text
//!            fill ring: addresses of empty frames                 one writer: this process
//! process ------------------------------------------> kernel
//!         <------------------------------------------
//!            receive ring: addresses, lengths of full ones        one writer: the kernel
//! ```
//!
//! What the unsafe code below relies on:
//!
//! - **X1** A ring's words and entries lie inside of its mapping, aligned; checked when it is mapped.
//! - **X2** Rings are only touched by atomic loads and stores, each entry is loaded once, and the copy is checked.
//! - **X3** A frame is the kernel's from the publishing of its address in the fill ring until its descriptor is seen in
//!   the receive ring. Between that and the next publishing nobody writes to it.
//!
//! Linux 6.1; the interface is documented in the kernel's Documentation/networking/af_xdp.rst.

mod mapping;
mod ring;
mod umem;

use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::thread::sleep;
use std::time::{Duration, Instant};

use rustix::io::Errno;
use rustix::net::xdp::{
    SocketAddrXdp, SocketAddrXdpFlags, XDP_PGOFF_RX_RING, XDP_UMEM_PGOFF_FILL_RING, XdpUmemReg,
    XdpUmemRegFlags,
};
use rustix::net::{AddressFamily, RecvFlags, SocketFlags, SocketType, bind, recv, socket_with, sockopt};

use crate::CallError;
use ring::{FillRing, ReceiveRing, Ring};
pub use umem::{FrameSize, Umem};

/// The most packets that one call of [`XskSocket::receive`] takes before it gives their frames back.
const BATCH: u32 = 256;

/// How long a new socket waits for the queue of one that was just closed.
const QUEUE_WAIT: Duration = Duration::from_millis(200);

/// A socket bound to one receive queue, with the memory that it receives into.
#[derive(Debug)]
pub struct XskSocket {
    // In this order: the socket closes, and the kernel lets go of the frames, before their memory is unmapped.
    socket: OwnedFd,
    fill: FillRing,
    received: ReceiveRing,
    umem: Umem,
    invalid: u64,
}

/// Packets that were redirected to a socket and did not arrive, by reason.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct XskLoss {
    /// No empty frame, or longer than a frame: counted by the kernel.
    pub dropped: u64,
    /// The receive ring was full: counted by the kernel. It has an entry for each frame, so this should stay 0.
    pub ring_full: u64,
    /// The kernel's descriptor pointed outside of a frame: counted here.
    pub invalid: u64,
}

impl XskSocket {
    /// Binds a new socket to `queue` of the interface `ifindex` and gives the kernel every frame of `umem`.
    ///
    /// Nothing arrives before an XDP program redirects to the socket. Needs `CAP_NET_RAW`, and `CAP_IPC_LOCK` or a
    /// `ulimit -l` of the size of `umem`.
    ///
    /// # Errors
    ///
    /// Names the step and the kernel's answer: `EPERM` without the capability, `ENOBUFS` above the limit of locked
    /// memory, `EBUSY` if another socket holds the queue, `EINVAL` if there is no such queue.
    pub fn bind(ifindex: u32, queue: u32, umem: Umem) -> Result<Self, CallError> {
        let socket = socket_with(AddressFamily::XDP, SocketType::RAW, SocketFlags::CLOEXEC, None)
            .map_err(|e| CallError::new("open an AF_XDP socket", e))?;
        Self::register(&socket, &umem)?;
        let frames = umem.frames();
        let step = |operation: &'static str| move |e: Errno| CallError::new(operation, e);
        sockopt::set_xdp_umem_fill_ring_size(&socket, frames).map_err(step("make an AF_XDP fill ring"))?;
        // The kernel wants a completion ring although nothing is sent. It is never mapped.
        sockopt::set_xdp_umem_completion_ring_size(&socket, 1)
            .map_err(step("make an AF_XDP completion ring"))?;
        sockopt::set_xdp_rx_ring_size(&socket, frames).map_err(step("make an AF_XDP receive ring"))?;

        let at = sockopt::xdp_mmap_offsets(&socket).map_err(step("ask where AF_XDP rings lie"))?;
        let fill = Ring::map(&socket, XDP_UMEM_PGOFF_FILL_RING, &at.fr, frames, FillRing::ENTRY)
            .map_err(|e| CallError::new("map the AF_XDP fill ring", e))?;
        let received = Ring::map(&socket, XDP_PGOFF_RX_RING, &at.rx, frames, ReceiveRing::ENTRY)
            .map_err(|e| CallError::new("map the AF_XDP receive ring", e))?;
        let mut fill = FillRing::new(fill);
        for frame in 0..frames {
            fill.set(frame, umem.address(frame));
        }
        fill.publish(frames);

        Self::take_queue(&socket, ifindex, queue).map_err(|e| {
            CallError::new(format!("bind an AF_XDP socket to queue {queue} of interface {ifindex}"), e)
        })?;
        Ok(Self { socket, fill, received: ReceiveRing::new(received), umem, invalid: 0 })
    }

    /// Binds, and asks again for a while where the queue is taken: the kernel lets go of a closed socket's queue a
    /// little later than `close` returns (`xp_put_pool` leaves it to a work item).
    fn take_queue(socket: &OwnedFd, ifindex: u32, queue: u32) -> rustix::io::Result<()> {
        let flags = SocketAddrXdpFlags::XDP_COPY | SocketAddrXdpFlags::XDP_USE_NEED_WAKEUP;
        let address = SocketAddrXdp::new(flags, ifindex, queue);
        let start = Instant::now();
        loop {
            match bind(socket, &address) {
                Err(Errno::BUSY) if start.elapsed() < QUEUE_WAIT => sleep(QUEUE_WAIT / 20),
                bound => return bound,
            }
        }
    }

    fn register(socket: &OwnedFd, umem: &Umem) -> Result<(), CallError> {
        let memory = XdpUmemReg {
            addr: umem.start(),
            len: umem.len(),
            chunk_size: umem.frame_size(),
            headroom: 0,
            flags: XdpUmemRegFlags::empty(),
            tx_metadata_len: 0,
        };
        sockopt::set_xdp_umem_reg(socket, memory).map_err(|e| {
            let advice = if e == Errno::NOBUFS { " (raise `ulimit -l`, or give CAP_IPC_LOCK)" } else { "" };
            CallError::new(format!("lock {} bytes for an AF_XDP socket{advice}", umem.len()), e)
        })
    }

    /// Hands each packet that is there to `each`, at most a few hundred, and gives their frames back to the kernel.
    /// Returns how many there were; does not wait. If `each` panics, the same packets come again.
    pub fn receive(&mut self, mut each: impl FnMut(&[u8])) -> u32 {
        let batch = self.received.available().min(BATCH);
        let room = self.fill.room();
        let (mut packets, mut emptied) = (0, 0);
        for entry in 0..batch {
            let (address, length) = self.received.get(entry);
            // SAFETY: X3: the descriptor is among those that the kernel has published and that are not released, so its
            // frame is not in the fill ring until `publish` below, after the last use of the slice.
            match unsafe { self.umem.packet(address, length) } {
                Some(packet) => {
                    each(packet);
                    packets += 1;
                }
                None => self.invalid += 1,
            }
            // There is room for each frame, unless the kernel returned one twice.
            if let Some(frame) = self.umem.frame_of(address)
                && emptied < room
            {
                self.fill.set(emptied, frame);
                emptied += 1;
            }
        }
        if batch > 0 {
            self.received.release(batch);
            self.fill.publish(emptied);
        }
        packets
    }

    /// Wakes the kernel if it asks for it before it takes frames from the fill ring. To be called where nothing is
    /// there to [`receive`](Self::receive) and the caller does not `poll` the socket, which does the same. In copy mode
    /// the kernel asks for nothing, and this costs one load.
    ///
    /// No fence stands between publishing frames and this look at the flag. The kernel has none between raising the
    /// flag and looking at the ring either, so one here could not close the gap; a caller that looks again later, as
    /// each loop does, sees the flag then.
    ///
    /// # Errors
    ///
    /// What the kernel says, for instance `ENETDOWN` where the interface is down.
    pub fn wake(&self) -> Result<(), CallError> {
        if !self.fill.needs_wakeup() {
            return Ok(());
        }
        match recv(&self.socket, &mut [0_u8; 0], RecvFlags::DONTWAIT) {
            Ok(_) | Err(Errno::AGAIN | Errno::BUSY | Errno::INTR) => Ok(()),
            Err(e) => Err(CallError::new("wake an AF_XDP socket", e)),
        }
    }

    /// What was lost since the socket was bound.
    ///
    /// # Errors
    ///
    /// The kernel does not tell.
    pub fn loss(&self) -> Result<XskLoss, CallError> {
        let kernel = sockopt::xdp_statistics(&self.socket)
            .map_err(|e| CallError::new("read the counters of an AF_XDP socket", e))?;
        Ok(XskLoss {
            dropped: kernel.rx_dropped,
            ring_full: kernel.rx_ring_full.unwrap_or(0),
            invalid: self.invalid,
        })
    }
}

/// For `poll`: readable when there are packets. Also what an XSKMAP takes.
impl AsFd for XskSocket {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }
}
