//! Packet sockets, and the ring of blocks that the kernel fills for them: `TPACKET_V3` (packet(7); the kernel's
//! `Documentation/networking/packet_mmap.rst` and `net/packet/af_packet.c`).
//!
//! The ring is kernel memory, mapped here. A block goes back and forth by its status word:
//!
//! ```text
//!            fills          closes: full, or old enough           walks            gives back
//!   kernel ---------> open ----------------------------> ready ---------> begun ----------------> kernel
//!                                 status = USER                               status = KERNEL
//! ```
//!
//! Each `SAFETY` comment names the rules that it relies on:
//!
//! - **P1** A block whose status has `TP_STATUS_USER` is ours: the kernel writes to none of its bytes until we store
//!   `TP_STATUS_KERNEL`. Only `Ring` stores it, and only through `&mut`, when no slice of the block is left.
//! - **P2** The mapping has `blocks * block_bytes` bytes, is page-aligned and lives as long as its `Ring`.

mod block;
mod filter;
mod ring;
mod socket;

use std::mem::size_of;
use std::ops::ControlFlow;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};

use rustix::net::sockopt::socket_error;

pub use self::block::{Origin, Packet};
pub use self::filter::{
    ENOUGH_ROOM, FilterPlace, Instruction, Program, attach_filter, filter_room, has_room_for_two, try_filter,
};
use self::filter::{attach, put, verdict};
use self::ring::Ring;
pub use self::ring::{Ready, Walk};
use self::socket::{bind, bind_as, index, link_layer_address, option_length, packet_socket, set};
use crate::CallError;

/// Keeps an interface in promiscuous mode: it receives every frame, whoever it is for. The kernel counts those who ask,
/// and takes this one off when the value is dropped or the process dies.
#[derive(Debug)]
pub struct Promiscuous {
    socket: OwnedFd,
}

impl Promiscuous {
    /// Asks for promiscuous mode on the interface with index `interface`.
    ///
    /// # Errors
    ///
    /// `EPERM`: without `CAP_NET_RAW`. `ENODEV`: no such interface.
    pub fn new(interface: u32) -> Result<Self, CallError> {
        let held = Self { socket: packet_socket()? };
        held.and(interface)?;
        Ok(held)
    }

    /// Sets another interface promiscuous, too.
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

/// What of an interface's traffic is wanted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Traffic {
    /// What it receives.
    Received,
    /// What this host sends through it.
    Sent,
    /// Both; of the loopback, where what is sent is received at once, only what is received.
    Both,
}

/// The measures of a [`PacketRing`].
#[derive(Clone, Copy, Debug)]
pub struct RingOptions {
    /// Index of the interface in this thread's network namespace. `None`: all that are there or will be, each packet with
    /// the link-layer header of its own.
    pub interface: Option<u32>,
    /// What of its traffic is wanted.
    pub traffic: Traffic,
    /// Bytes kept of a packet. A packet that is not wholly in a block is cut by the kernel, and tells so.
    pub snap_len: u32,
    /// Bytes of a block: a multiple of the page size.
    pub block_bytes: u32,
    /// Number of blocks.
    pub blocks: u32,
    /// Milliseconds after which the kernel closes a block that is not full, and not empty. Before Linux 6.18 this rounds
    /// up to ticks of the kernel's clock, and then the block may wait one tick more.
    pub retire_ms: u32,
}

impl RingOptions {
    fn is_loopback(&self) -> bool {
        self.interface == Some(LOOPBACK)
    }
}

/// What the kernel has counted since the ring was opened.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Statistics {
    /// Packets that were wanted: put into the ring, or lost.
    pub packets: u64,
    /// Of these, packets that found no room.
    pub drops: u64,
}

/// A packet socket, bound to one interface or to all, with its ring.
#[derive(Debug)]
pub struct PacketRing {
    socket: OwnedFd,
    options: RingOptions,
    ring: Ring,
    statistics: Statistics,
}

impl PacketRing {
    /// Opens a socket with a ring. Packets come in from the moment of the return, and none that is not wanted.
    ///
    /// # Errors
    ///
    /// `EPERM`: without `CAP_NET_RAW`. `ENOMEM`: no memory for the ring. `ENODEV`: no such interface.
    pub fn open(options: &RingOptions) -> Result<Self, CallError> {
        Self::open_behind(options, Program::All)
    }

    /// The same with `program` in front: no packet that it refuses ever comes in.
    ///
    /// # Errors
    ///
    /// The same, and those of [`FilterPlace::put`].
    pub fn open_behind(options: &RingOptions, program: Program<'_>) -> Result<Self, CallError> {
        // Without a protocol no packet of any interface gets in before the socket is bound.
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
            // This version packs packets by their length; the kernel only checks that the product is right.
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

    /// The place of its filter.
    ///
    /// # Errors
    ///
    /// No free descriptor.
    pub fn filter_place(&self) -> Result<FilterPlace, CallError> {
        let socket = self.socket.try_clone();
        let socket = socket.map_err(|error| CallError::new("duplicate a packet socket", error))?;
        Ok(FilterPlace { socket, options: self.options })
    }

    /// The oldest block that is ours, if any. Costs one load.
    #[inline]
    pub fn ready(&self) -> Option<Ready> {
        let status = self.ring.status();
        (status & libc::TP_STATUS_USER != 0).then_some(Ready {
            number: self.ring.returned,
            aged: status & libc::TP_STATUS_BLK_TMO != 0,
            losing: status & libc::TP_STATUS_LOSING != 0,
        })
    }

    /// Looks at all blocks that are ready: gives the number of the first one, not before `from`, that is
    /// [losing](Ready::losing), and the number of the block that the kernel is filling or, if all are ready, fills next.
    pub fn look_ahead(&self, from: u64) -> (Option<u64>, u64) {
        self.ring.look_ahead(from)
    }

    /// Gives the packets of the block that is [`ready`](Self::ready) to `each`, until there are no more, or until it
    /// breaks. The packet that it breaks at counts as not given.
    pub fn walk(&mut self, each: impl FnMut(&Packet<'_>) -> ControlFlow<()>) -> Walk {
        self.ring.walk(each)
    }

    /// Asks the kernel for its counters. They are of 32 bits there: between two calls not more than 2^32 packets may pass.
    ///
    /// # Errors
    ///
    /// What `getsockopt(2)` says.
    pub fn statistics(&mut self) -> Result<Statistics, CallError> {
        let mut fresh = libc::tpacket_stats_v3 { tp_packets: 0, tp_drops: 0, tp_freeze_q_cnt: 0 };
        let mut length = option_length::<libc::tpacket_stats_v3>();
        // SAFETY: the kernel writes at most `length` bytes to `fresh`, which are its size; any bits are valid in it.
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
        // The kernel starts again from zero with each call (packet_getsockopt), and has added the drops to the packets.
        self.statistics.packets += u64::from(fresh.tp_packets);
        self.statistics.drops += u64::from(fresh.tp_drops);
        Ok(self.statistics)
    }

    /// Lets nothing more in. When it returns, the kernel is through with the packets that it had begun with; the block
    /// that they are in is closed in its time.
    ///
    /// # Errors
    ///
    /// What `setsockopt(2)` and `bind(2)` say.
    pub fn shut(&self) -> Result<(), CallError> {
        attach(&self.socket, &mut [verdict(0)])?;
        // tpacket_rcv runs in an RCU read-side section. Who binds a socket to another protocol waits until nobody is in it with
        // the one before (packet_do_bind, by synchronize_net), and takes no privilege for that.
        match bind_as(&self.socket, self.options.interface, UNUSED_PROTOCOL) {
            // The interface is gone: the kernel has taken the socket off it.
            Err(error) if error.errno() == libc::ENODEV => Ok(()),
            other => other,
        }
    }

    /// Whether packets still come. Tells each trouble once.
    ///
    /// # Errors
    ///
    /// `ENETDOWN`: the interface was set down; packets come again when it is set up. `ENODEV`: it is gone for good.
    pub fn health(&self) -> Result<(), CallError> {
        let trouble = match socket_error(&self.socket) {
            Ok(Ok(())) => return Ok(()),
            Ok(Err(rustix::io::Errno::NETDOWN)) if self.unbound() => rustix::io::Errno::NODEV,
            Ok(Err(errno)) | Err(errno) => errno,
        };
        Err(CallError::new("receive from a packet socket", trouble))
    }

    /// Whether the kernel has taken the interface from the socket (`packet_notifier`, NETDEV_UNREGISTER).
    fn unbound(&self) -> bool {
        let mut address = link_layer_address();
        let mut length = option_length::<libc::sockaddr_ll>();
        // SAFETY: the kernel writes at most `length` bytes to `address`, which are its size; any bits are valid in it.
        let result =
            unsafe { libc::getsockname(self.socket.as_raw_fd(), (&raw mut address).cast(), &raw mut length) };
        result == 0 && address.sll_ifindex < 0
    }
}

impl AsFd for PacketRing {
    /// Readable when the kernel has closed a block and it has not been given back, or when there is trouble.
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }
}

/// An Ethertype that no frame should have (reserved, RFC 1701): what a socket is bound to that wants nothing any more.
const UNUSED_PROTOCOL: u16 = 0xffff;

/// Index of the loopback, in each namespace (`LOOPBACK_IFINDEX` in the kernel's include/net/flow.h).
const LOOPBACK: u32 = 1;

// As in linux/if_packet.h.
const _: () = assert!(size_of::<libc::tpacket_req3>() == 28 && size_of::<libc::tpacket_stats_v3>() == 12);
const _: () = assert!(size_of::<libc::packet_mreq>() == 16);
