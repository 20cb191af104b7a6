//! The `xdp` source's program (`xdp.bpf.c`).

use std::mem::MaybeUninit;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use libbpf_rs::skel::{OpenSkel, SkelBuilder};
use libbpf_rs::{MapCore, MapFlags, MapHandle};

use crate::log::{LoadError, logged};

skeleton!("xdp");

/// When the program reads the clock; the numbers are those of `pool.h`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stamp {
    /// Never.
    None = 0,
    /// For each packet.
    Packet = 1,
    /// For each packet while there are few, else once for a group.
    Batch = 2,
}

/// The constants of one capture on one interface.
#[derive(Clone, Copy, Debug)]
pub struct Options {
    /// Queues, each with its own `struct queue` and `struct order`.
    pub queues: u32,
    /// Chunks of all queues.
    pub chunks: u32,
    /// Bytes from one chunk to the next.
    pub stride: u32,
    /// Offset in a chunk below which a record may begin.
    pub limit: u32,
    /// Slots of a queue's ring, a power of two.
    pub slots: u32,
    /// Bytes of one queue's orders.
    pub order_bytes: u32,
    /// Bytes kept of a packet, at least 1; with what a record adds, it fits into `stride - limit`.
    pub snap_len: u32,
    /// The interface's number in the capture.
    pub interface_id: u32,
    /// Time stamps.
    pub stamp: Stamp,
    /// Drop packets after they were copied.
    pub exclusive: bool,
    /// Packets may come in several buffers, which costs a call for each to learn its length. Without, the kernel keeps
    /// such packets, and an MTU that brings them, away.
    pub fragments: bool,
    /// One writer per CPU, as generic XDP needs; else one per receive queue.
    pub queue_is_cpu: bool,
    /// Index of the interface whose driver is asked for stripped VLAN tags; the program is then bound to it.
    pub tags_of: Option<u32>,
}

/// A loaded program and its maps.
#[derive(Debug)]
pub struct Program {
    program: OwnedFd,
    pool: OwnedFd,
    chunks: OwnedFd,
    queues: OwnedFd,
    orders: OwnedFd,
    doorbell: OwnedFd,
    strays: MapHandle,
}

/// `BPF_F_XDP_HAS_FRAGS` (linux/bpf.h, Linux 5.18).
const HAS_FRAGMENTS: u32 = 1 << 5;
/// `BPF_F_XDP_DEV_BOUND_ONLY` (linux/bpf.h, Linux 6.3).
const DEVICE_BOUND: u32 = 1 << 6;
/// Bytes of `struct queue`, and the place of `offset` in it (`pool.h`).
const QUEUE_BYTES: usize = 128;
const QUEUE_OFFSET: usize = 12;

impl Program {
    /// Loads the program with these constants. It runs once it is attached.
    ///
    /// # Errors
    ///
    /// No privilege, no memory for the maps, or a kernel (or with `tags_of` a driver) without what the program calls.
    pub fn load(options: &Options) -> Result<Self, LoadError> {
        logged("capture", || Self::try_load(options))
    }

    fn try_load(options: &Options) -> Result<Self, libbpf_rs::Error> {
        let mut storage = MaybeUninit::uninit();
        let mut open = skeleton::XdpSkelBuilder::default().open(&mut storage)?;

        let constants = open.maps.rodata_data.as_deref_mut().expect("the program has constants");
        constants.chunk_limit = options.limit;
        constants.snap_len = options.snap_len;
        constants.slot_mask = options.slots - 1;
        constants.interface_id = options.interface_id;
        constants.timestamps = options.stamp as u32;
        constants.verdict = if options.exclusive { XDP_DROP } else { XDP_PASS };
        constants.fragments = options.fragments;
        constants.queue_is_cpu = options.queue_is_cpu;

        open.maps.pool.set_value_size(options.stride)?;
        open.maps.pool.set_max_entries(options.chunks)?;
        open.maps.chunks.set_max_entries(options.chunks)?;
        open.maps.queues.set_max_entries(options.queues)?;
        open.maps.orders.set_value_size(options.order_bytes)?;
        open.maps.orders.set_max_entries(options.queues)?;

        open.progs.capture.set_autoload(options.tags_of.is_none());
        open.progs.capture_tagged.set_autoload(options.tags_of.is_some());
        let fragments = if options.fragments { HAS_FRAGMENTS } else { 0 };
        open.progs.capture.set_flags(fragments);
        if let Some(ifindex) = options.tags_of {
            open.progs.capture_tagged.set_flags(fragments | DEVICE_BOUND);
            open.progs.capture_tagged.set_ifindex(ifindex);
        }

        let loaded = open.load()?;
        // At its limit no chunk is open: the first packet opens one.
        let mut queue = [0; QUEUE_BYTES];
        queue[QUEUE_OFFSET..QUEUE_OFFSET + 4].copy_from_slice(&options.limit.to_ne_bytes());
        for index in 0..options.queues {
            loaded.maps.queues.update(&index.to_ne_bytes(), &queue, MapFlags::ANY)?;
        }
        let program =
            if options.tags_of.is_some() { &loaded.progs.capture_tagged } else { &loaded.progs.capture };
        Ok(Self {
            program: own(program.as_fd())?,
            pool: own(loaded.maps.pool.as_fd())?,
            chunks: own(loaded.maps.chunks.as_fd())?,
            queues: own(loaded.maps.queues.as_fd())?,
            orders: own(loaded.maps.orders.as_fd())?,
            doorbell: own(loaded.maps.doorbell.as_fd())?,
            strays: MapHandle::try_from(&loaded.maps.strays)?,
        })
    }

    /// The program, to attach it.
    pub fn program(&self) -> BorrowedFd<'_> {
        self.program.as_fd()
    }

    /// Map of chunk data, to be mapped.
    pub fn pool(&self) -> BorrowedFd<'_> {
        self.pool.as_fd()
    }

    /// Map of the chunks' progress, to be mapped.
    pub fn chunks(&self) -> BorrowedFd<'_> {
        self.chunks.as_fd()
    }

    /// Map of the queues' state, to be mapped.
    pub fn queues(&self) -> BorrowedFd<'_> {
        self.queues.as_fd()
    }

    /// Map of the orders, to be mapped.
    pub fn orders(&self) -> BorrowedFd<'_> {
        self.orders.as_fd()
    }

    /// The ring buffer that serves as a bell.
    pub fn doorbell(&self) -> BorrowedFd<'_> {
        self.doorbell.as_fd()
    }

    /// Packets that came on a queue for which there is no pool: neither captured nor counted as seen anywhere else.
    pub fn strays(&self) -> u64 {
        let per_cpu = self.strays.lookup_percpu(&0u32.to_ne_bytes(), MapFlags::ANY).ok().flatten();
        let count = |value: Vec<u8>| value.try_into().map_or(0, u64::from_ne_bytes);
        per_cpu.into_iter().flatten().map(count).sum()
    }
}

/// Verdicts, as in `enum xdp_action`.
const XDP_DROP: u32 = 1;
const XDP_PASS: u32 = 2;

fn own(fd: BorrowedFd<'_>) -> Result<OwnedFd, libbpf_rs::Error> {
    Ok(fd.try_clone_to_owned()?)
}
