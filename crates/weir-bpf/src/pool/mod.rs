//! The constants and maps of `writer.h`, shared by all programs that fill a pool.

mod strays;
pub mod writers;

use std::num::NonZeroU32;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::Arc;

use libbpf_rs::{MapCore, MapFlags, MapHandle};
use weir_ring::Shape;

pub use self::strays::Strays;
use crate::filter::Gate;
use crate::layout::{queue, set, steering, timestamps};

/// When a program reads the clock.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u32)]
pub enum Stamp {
    /// Never.
    None = timestamps::TIMESTAMP_NONE.0,
    /// For each packet.
    Packet = timestamps::TIMESTAMP_KERNEL.0,
    /// For each packet while there are few, otherwise once per group.
    Batch = timestamps::TIMESTAMP_BATCH.0,
}

/// What decides a packet's target.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u32)]
pub enum SteerBy {
    /// The outermost flow.
    Flow = steering::STEER_FLOW.0,
    /// The innermost flow.
    Inner = steering::STEER_INNER.0,
    /// The previous packet's target: targets take turns.
    RoundRobin = steering::STEER_ROUND_ROBIN.0,
    /// The outermost VLAN.
    Vlan = steering::STEER_VLAN.0,
}

/// How each writer spreads its packets over queues.
#[derive(Clone, Copy, Debug)]
pub struct Steering {
    /// What decides the target.
    pub by: SteerBy,
    /// Number of targets, at least 1. The queue for target t of writer w is w * targets + t.
    pub targets: u32,
    /// A secret seed for the hashes: without it, nobody can craft flows that share a target.
    pub seed: u64,
}

/// Which of the packets that match the filter are written.
#[derive(Clone, Copy, Debug)]
pub struct Sampling {
    /// The rule.
    pub by: SampleBy,
    /// A secret seed for the hashes of flows. If packets are steered, steering's counts instead.
    pub seed: u64,
}

/// How packets are selected.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SampleBy {
    /// Of each queue, the first packet and every so many-th after it.
    Turns(NonZeroU32),
    /// Each packet with this probability, in units of 2^-32.
    Chance(u64),
    /// All packets of a flow or none; each flow with this probability, in units of 2^-32.
    Flows(u64),
}

/// The parameters of one interface's pool.
#[derive(Clone, Copy, Debug)]
pub struct PoolOptions {
    /// Number of queues, each with a `struct queue` and a `struct order`: one per writer, or with steering one per
    /// writer and target.
    pub queues: u32,
    /// Number of chunks in all queues.
    pub chunks: u32,
    /// Bytes from one chunk to the next.
    pub stride: u32,
    /// Offset in a chunk below which a record may begin.
    pub limit: u32,
    /// Slots of a queue's ring, a power of two.
    pub slots: u32,
    /// Bytes of one queue's orders.
    pub order_bytes: u32,
    /// Bytes kept of a packet, at least 1. A record with this much data fits into `stride - limit`.
    pub snap_len: u32,
    /// The interface's number in the capture.
    pub interface_id: u32,
    /// Timestamps.
    pub stamp: Stamp,
    /// Each record states its packet's direction.
    pub directions: bool,
    /// Frames begin with an Ethernet header; otherwise with an IP header.
    pub ethernet: bool,
}

impl PoolOptions {
    /// Returns those of a pool of this shape, for Ethernet frames of the interface with number 0, without times and directions.
    pub fn of(shape: &Shape, snap_len: u32) -> Self {
        Self {
            queues: shape.queues(),
            chunks: shape.chunks_total(),
            stride: shape.stride(),
            limit: shape.limit(),
            slots: shape.slots(),
            order_bytes: shape.order_bytes(),
            snap_len,
            interface_id: 0,
            stamp: Stamp::None,
            directions: false,
            ethernet: true,
        }
    }
}

/// Fragmented datagrams to remember when steering or sampling by flow. Linux itself reassembles no more at a time, because of its
/// 4 MiB limit (`ipfrag_high_thresh`).
pub(crate) const DATAGRAMS: u32 = 16_384;

/// The maps of a loaded program.
#[derive(Debug)]
pub struct PoolMaps {
    pub(crate) pool: OwnedFd,
    pub(crate) chunks: OwnedFd,
    pub(crate) queues: OwnedFd,
    pub(crate) orders: OwnedFd,
    pub(crate) doorbell: OwnedFd,
    pub(crate) strays: MapHandle,
    pub(crate) gate: Arc<Gate>,
}

impl PoolMaps {
    /// Returns the map of chunk data, to be mapped.
    pub fn pool(&self) -> BorrowedFd<'_> {
        self.pool.as_fd()
    }

    /// Returns the map of the chunks' progress, to be mapped.
    pub fn chunks(&self) -> BorrowedFd<'_> {
        self.chunks.as_fd()
    }

    /// Returns the map of the queues' state, to be mapped.
    pub fn queues(&self) -> BorrowedFd<'_> {
        self.queues.as_fd()
    }

    /// Returns the map of the orders, to be mapped.
    pub fn orders(&self) -> BorrowedFd<'_> {
        self.orders.as_fd()
    }

    /// Returns the ring buffer that serves as a doorbell.
    pub fn doorbell(&self) -> BorrowedFd<'_> {
        self.doorbell.as_fd()
    }

    /// Returns the gate that installs the source's filter.
    pub fn gate(&self) -> &Arc<Gate> {
        &self.gate
    }

    /// Returns the packets that are counted outside the queues.
    pub fn strays(&self) -> Strays {
        Strays::read(&self.strays)
    }
}

/// Sets the constants and map sizes of an open skeleton.
macro_rules! prepare {
    ($open:expr, $options:expr) => {{
        let options: &PoolOptions = $options;
        let constants = $open.maps.rodata_data.as_deref_mut().expect("the program has constants");
        constants.chunk_limit = options.limit;
        constants.snap_len = options.snap_len;
        constants.slot_mask = options.slots - 1;
        constants.interface_id = options.interface_id;
        constants.timestamps = options.stamp as u32;
        constants.directions = options.directions;
        constants.ethernet = options.ethernet;
        $open.maps.pool.set_value_size(options.stride)?;
        $open.maps.pool.set_max_entries(options.chunks)?;
        $open.maps.chunks.set_max_entries(options.chunks)?;
        $open.maps.queues.set_max_entries(options.queues)?;
        $open.maps.orders.set_value_size(options.order_bytes)?;
        $open.maps.orders.set_max_entries(options.queues)?;
        constants
    }};
}
pub(crate) use prepare;

/// Sets the constants and map sizes for steering, if any.
macro_rules! prepare_steering {
    ($open:expr, $constants:expr, $steering:expr) => {
        if let Some(steering) = $steering {
            let steering: $crate::pool::Steering = steering;
            $constants.steering = steering.by as u32;
            $constants.targets = steering.targets;
            $constants.inner_flows = steering.by == $crate::pool::SteerBy::Inner;
            $constants.flow_seed = steering.seed;
            $open.maps.datagrams.set_max_entries($crate::pool::DATAGRAMS)?;
        }
    };
}
pub(crate) use prepare_steering;

/// Sets the constants and map sizes for sampling, if any. To be called before `prepare_steering`.
macro_rules! prepare_sampling {
    ($open:expr, $constants:expr, $sampling:expr) => {
        if let Some(sampling) = $sampling {
            let sampling: $crate::pool::Sampling = sampling;
            $constants.flow_seed = sampling.seed;
            match sampling.by {
                $crate::pool::SampleBy::Turns(every) => {
                    $constants.sampling = $crate::layout::sampling::SAMPLE_TURNS.0;
                    $constants.sample_every = every.get().into();
                }
                $crate::pool::SampleBy::Chance(below) => {
                    $constants.sampling = $crate::layout::sampling::SAMPLE_CHANCE.0;
                    $constants.sample_below = below;
                }
                $crate::pool::SampleBy::Flows(below) => {
                    $constants.sampling = $crate::layout::sampling::SAMPLE_FLOWS.0;
                    $constants.sample_below = below;
                    $open.maps.datagrams.set_max_entries($crate::pool::DATAGRAMS)?;
                }
            }
        }
    };
}
pub(crate) use prepare_sampling;

/// Makes room for rules in front of these programs, or leaves out what only those need. To be called before anything else chooses
/// programs.
macro_rules! prepare_rules {
    ($open:expr, $rules:expr, $($ruled:ident),+) => {
        let rules: bool = $rules;
        $open.maps.rulings.set_autocreate(rules)?;
        $($open.progs.$ruled.set_autoload(rules);)+
        if rules {
            $open.maps.outcomes.set_max_entries($crate::filter::RULED_VERDICTS * $crate::filter::HOOKS)?;
        }
    };
}
pub(crate) use prepare_rules;

/// Keeps the maps of a loaded skeleton, and initializes its queues.
macro_rules! keep_maps {
    ($loaded:expr, $options:expr, $gate:expr) => {{
        $crate::pool::close_chunks(&$loaded.maps.queues, $options)?;
        $crate::pool::PoolMaps {
            pool: $loaded.maps.pool.as_fd().try_clone_to_owned()?,
            chunks: $loaded.maps.chunks.as_fd().try_clone_to_owned()?,
            queues: $loaded.maps.queues.as_fd().try_clone_to_owned()?,
            orders: $loaded.maps.orders.as_fd().try_clone_to_owned()?,
            doorbell: $loaded.maps.doorbell.as_fd().try_clone_to_owned()?,
            strays: libbpf_rs::MapHandle::try_from(&$loaded.maps.strays)?,
            gate: $gate,
        }
    }};
}
pub(crate) use keep_maps;

/// Sets each queue's offset to the limit, so that no chunk is open and the first packet opens one.
pub(crate) fn close_chunks(queues: &impl MapCore, options: &PoolOptions) -> Result<(), libbpf_rs::Error> {
    let mut closed = [0; size_of::<queue>()];
    set!(&mut closed, queue.offset = options.limit);
    for index in 0..options.queues {
        queues.update(&index.to_ne_bytes(), &closed, MapFlags::ANY)?;
    }
    Ok(())
}
