//! Packet sockets, and the ring of blocks that the kernel fills for them: `TPACKET_V3` (packet(7); the kernel's
//! `Documentation/networking/packet_mmap.rst` and `net/packet/af_packet.c`).
//!
//! The ring is kernel memory, mapped into the process. The status word of each block tells whose it is:
//!
//! ```text
//!            fills          closes: full, or old enough           walks            gives back
//!   kernel ---------> open ----------------------------> ready ---------> begun ----------------> kernel
//!                                 status = USER                               status = KERNEL
//! ```
//!
//! Each `SAFETY` comment names the rules that it relies on:
//!
//! - **P1** A block whose status has `TP_STATUS_USER` is ours: the kernel writes none of its bytes until we store
//!   `TP_STATUS_KERNEL`. Only `Ring` stores that, and only through `&mut`, when no slice of the block is left.
//! - **P2** The mapping has `blocks * block_bytes` bytes, is page-aligned and lives as long as its `Ring`.

mod block;
pub mod cooked;
mod filter;
mod ring;
mod sender;
mod socket;
mod tx_ring;

use std::mem::size_of;
use std::ops::ControlFlow;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};

use rustix::net::sockopt::socket_error;

pub use self::block::{Origin, Packet};
pub use self::filter::{
    ENOUGH_ROOM, FilterPlace, Instruction, SocketFilter, attach_filter, filter_room, has_room_for_two,
    try_filter,
};
use self::filter::{attach, put, verdict};
use self::ring::Ring;
pub use self::ring::{Ready, Walk};
pub use self::sender::Sender;
use self::socket::{bind, bind_as, index, link_layer_address, option_length, packet_socket, set};
pub use self::tx_ring::TxRing;
use crate::CallError;

/// A request for promiscuous mode, in which an interface receives every frame, whatever its destination. The kernel
/// counts requests, and removes this one when it is dropped or the process dies.
#[derive(Debug)]
pub struct Promiscuous {
    socket: OwnedFd,
}

impl Promiscuous {
    /// Requests promiscuous mode on the interface with index `interface`.
    ///
    /// # Errors
    ///
    /// `EPERM`: without `CAP_NET_RAW`. `ENODEV`: no such interface.
    pub fn new(interface: u32) -> Result<Self, CallError> {
        let held = Self { socket: packet_socket()? };
        held.and(interface)?;
        Ok(held)
    }

    /// Requests promiscuous mode on another interface as well.
    ///
    /// # Errors
    ///
    /// `ENODEV`: no such interface.
    pub fn and(&self, interface: u32) -> Result<(), CallError> {
        let request = libc::packet_mreq {
            mr_ifindex: index(interface)?,
            mr_type: u16::try_from(libc::PACKET_MR_PROMISC).expect("a small number"),
            mr_alen: 0,
            mr_address: [0; 8],
        };
        set(&self.socket, libc::SOL_PACKET, libc::PACKET_ADD_MEMBERSHIP, &request).map_err(|error| {
            CallError::new(format!("enable promiscuous mode on interface {interface}"), error)
        })
    }
}

/// The direction of the traffic to capture.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Traffic {
    /// Packets that the interface receives.
    Received,
    /// Packets that this host sends through it.
    Sent,
    /// Both. On the loopback, where sent packets are received at once, only received ones.
    Both,
}

/// The settings of a [`PacketRing`].
#[derive(Clone, Copy, Debug)]
pub struct RingOptions {
    /// Index of the interface in this thread's network namespace. `None`: all current and future interfaces; each
    /// packet has the link-layer header of its interface.
    pub interface: Option<u32>,
    /// The direction of the traffic to capture.
    pub traffic: Traffic,
    /// Bytes kept of a packet. The kernel cuts packets that do not fit into a block, and marks them.
    pub snap_len: u32,
    /// Bytes of a block: a multiple of the page size.
    pub block_bytes: u32,
    /// Number of blocks.
    pub blocks: u32,
    /// Milliseconds after which the kernel closes a block that is neither full nor empty. Before Linux 6.18, this is
    /// rounded up to ticks of the kernel's clock, and the block may wait one more tick.
    pub retire_ms: u32,
}

impl RingOptions {
    fn is_loopback(&self) -> bool {
        self.interface == Some(LOOPBACK)
    }
}

/// The kernel's counts since the ring was opened.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Statistics {
    /// Packets that matched: put into the ring, or lost.
    pub packets: u64,
    /// Matching packets that found no room.
    pub drops: u64,
}

/// A packet socket with its ring, bound to one interface or to all.
#[derive(Debug)]
pub struct PacketRing {
    socket: OwnedFd,
    options: RingOptions,
    ring: Ring,
    statistics: Statistics,
}

impl PacketRing {
    /// Opens a socket with a ring. Packets arrive as soon as this returns, and only matching ones.
    ///
    /// # Errors
    ///
    /// `EPERM`: without `CAP_NET_RAW`. `ENOMEM`: no memory for the ring. `ENODEV`: no such interface.
    pub fn open(options: &RingOptions) -> Result<Self, CallError> {
        Self::open_behind(options, SocketFilter::All)
    }

    /// Like [`open`](Self::open), with `program` in front: packets that it rejects never arrive.
    ///
    /// # Errors
    ///
    /// The errors of [`open`](Self::open) and [`FilterPlace::put`].
    pub fn open_behind(options: &RingOptions, program: SocketFilter<'_>) -> Result<Self, CallError> {
        // Without a protocol, no packets arrive before the socket is bound.
        let socket = packet_socket()?;
        let option = |name, value: i32, what: &str| {
            set(&socket, libc::SOL_PACKET, name, &value).map_err(|error| CallError::new(what, error))
        };
        let version = i32::try_from(libc::tpacket_versions::TPACKET_V3 as u32).expect("a small number");
        option(libc::PACKET_VERSION, version, "choose TPACKET_V3 for a packet socket")?;
        if options.traffic == Traffic::Received || options.is_loopback() && options.traffic == Traffic::Both {
            option(libc::PACKET_IGNORE_OUTGOING, 1, "exclude outgoing packets (PACKET_IGNORE_OUTGOING)")?;
        }
        put(&socket, options, program)?;
        let request = libc::tpacket_req3 {
            tp_block_size: options.block_bytes,
            tp_block_nr: options.blocks,
            // TPACKET_V3 packs packets by length; the kernel only checks that the product is correct.
            tp_frame_size: options.block_bytes,
            tp_frame_nr: options.blocks,
            tp_retire_blk_tov: options.retire_ms,
            tp_sizeof_priv: 0,
            tp_feature_req_word: 0,
        };
        set(&socket, libc::SOL_PACKET, libc::PACKET_RX_RING, &request).map_err(|error| {
            let (blocks, bytes) = (options.blocks, options.block_bytes);
            CallError::new(format!("create a packet ring of {blocks} blocks of {bytes} bytes"), error)
        })?;
        let ring = Ring::map(&socket, options.blocks, options.block_bytes)
            .map_err(|error| CallError::new("map the packet ring", error))?;
        bind(&socket, options.interface)?;
        Ok(Self { socket, options: *options, ring, statistics: Statistics::default() })
    }

    /// Returns the place of the socket's filter.
    ///
    /// # Errors
    ///
    /// No free descriptor.
    pub fn filter_place(&self) -> Result<FilterPlace, CallError> {
        let socket = self.socket.try_clone();
        let socket = socket.map_err(|error| CallError::new("duplicate a packet socket", error))?;
        Ok(FilterPlace { socket, options: self.options })
    }

    /// Returns the oldest block that is ours, if any. Costs one load.
    #[inline]
    pub fn ready(&self) -> Option<Ready> {
        let status = self.ring.status();
        (status & libc::TP_STATUS_USER != 0).then_some(Ready {
            number: self.ring.returned,
            aged: status & libc::TP_STATUS_BLK_TMO != 0,
            losing: status & libc::TP_STATUS_LOSING != 0,
        })
    }

    /// Checks all blocks that are ready. Returns the number of the first one, from number `from`, that is
    /// [losing](Ready::losing), and the number of the block that the kernel is filling or, if all are ready, fills
    /// next.
    pub fn look_ahead(&self, from: u64) -> (Option<u64>, u64) {
        self.ring.look_ahead(from)
    }

    /// Passes the packets of the [`ready`](Self::ready) block to `each`, until there are no more or `each` breaks. The
    /// packet at which it breaks comes again in the next walk.
    pub fn walk(&mut self, each: impl FnMut(&Packet<'_>) -> ControlFlow<()>) -> Walk {
        self.ring.walk(each)
    }

    /// Reads the kernel's counters. They have 32 bits: at most 2^32 packets may pass between two calls.
    ///
    /// # Errors
    ///
    /// The error of `getsockopt(2)`.
    pub fn statistics(&mut self) -> Result<Statistics, CallError> {
        let mut fresh = libc::tpacket_stats_v3 { tp_packets: 0, tp_drops: 0, tp_freeze_q_cnt: 0 };
        let mut length = option_length::<libc::tpacket_stats_v3>();
        // SAFETY: the kernel writes at most `length` bytes to `fresh`, which is its size; any bits are valid in it.
        let result = unsafe {
            libc::getsockopt(
                self.socket.as_raw_fd(),
                libc::SOL_PACKET,
                libc::PACKET_STATISTICS,
                (&raw mut fresh).cast(),
                &raw mut length,
            )
        };
        if result < 0 {
            return Err(CallError::last("read statistics of a packet socket"));
        }
        // Each call resets the kernel's counters (packet_getsockopt); the kernel has added the drops to the packets.
        self.statistics.packets += u64::from(fresh.tp_packets);
        self.statistics.drops += u64::from(fresh.tp_drops);
        Ok(self.statistics)
    }

    /// Stops accepting packets. When this returns, the kernel has finished the packets that it had begun; their block
    /// is closed as usual.
    ///
    /// # Errors
    ///
    /// The errors of `setsockopt(2)` and `bind(2)`.
    pub fn shut(&self) -> Result<(), CallError> {
        attach(&self.socket, &mut [verdict(0)])?;
        // tpacket_rcv runs in an RCU read-side section. Binding a socket to another protocol waits until no CPU is in
        // it with the previous protocol (packet_do_bind, synchronize_net), and needs no privileges.
        match bind_as(&self.socket, self.options.interface, UNUSED_PROTOCOL) {
            // The interface is gone: the kernel has unbound the socket.
            Err(error) if error.errno() == libc::ENODEV => Ok(()),
            other => other,
        }
    }

    /// Checks whether packets still arrive. Reports each problem once.
    ///
    /// # Errors
    ///
    /// `ENETDOWN`: the interface was brought down; packets arrive again once it is up. `ENODEV`: it is gone for good.
    pub fn health(&self) -> Result<(), CallError> {
        let trouble = match socket_error(&self.socket) {
            Ok(Ok(())) => return Ok(()),
            Ok(Err(rustix::io::Errno::NETDOWN)) if self.unbound() => rustix::io::Errno::NODEV,
            Ok(Err(errno)) | Err(errno) => errno,
        };
        Err(CallError::new("receive from a packet socket", trouble))
    }

    /// Returns whether the kernel has unbound the socket from its interface (`packet_notifier`, NETDEV_UNREGISTER).
    fn unbound(&self) -> bool {
        let mut address = link_layer_address();
        let mut length = option_length::<libc::sockaddr_ll>();
        // SAFETY: the kernel writes at most `length` bytes to `address`, which is its size; any bits are valid in it.
        let result =
            unsafe { libc::getsockname(self.socket.as_raw_fd(), (&raw mut address).cast(), &raw mut length) };
        result == 0 && address.sll_ifindex < 0
    }
}

impl AsFd for PacketRing {
    /// Returns the descriptor, which is readable if a closed block has not been given back, or if there is a problem.
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }
}

/// An EtherType that no frame should have (reserved, RFC 1701), to bind a socket that wants no more packets.
const UNUSED_PROTOCOL: u16 = 0xffff;

/// Index of the loopback interface in each namespace (`LOOPBACK_IFINDEX` in the kernel's include/net/flow.h).
const LOOPBACK: u32 = 1;

// As in linux/if_packet.h.
const _: () = assert!(size_of::<libc::tpacket_req3>() == 28 && size_of::<libc::tpacket_stats_v3>() == 12);
const _: () = assert!(size_of::<libc::packet_mreq>() == 16);
