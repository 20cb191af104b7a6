//! The `xdp` source's program (`xdp.bpf.c`).

use std::io;
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::Arc;

use libbpf_rs::libbpf_sys::bpf_insn;
use libbpf_rs::skel::{OpenSkel, SkelBuilder};
use libbpf_rs::{OpenMapMut, OpenProgramMut};
use weir_sys::bpf::{XdpHook, XdpLink, probe};
use weir_sys::{CallError, testrun};

pub use crate::attached::Attached;
use crate::filter::{Body, Bound, Calls, Device, Gate, Hook, held};
use crate::layout::way_bucket;
use crate::leave_out_all;
use crate::log::{LoadError, logged};
use crate::pool::{
    PoolMaps, PoolOptions, Sampling, Steering, keep_maps, prepare, prepare_rules, prepare_sampling,
    prepare_steering,
};
use crate::writers::{self, Chosen, Writers, prepare_chosen};

skeleton!("xdp");

held!(maps of XdpMaps, OpenXdpMaps: pool, chunks, queues, orders, doorbell, strays, datagrams, processors, ways, rodata);

/// The constants of one capture on one interface.
#[derive(Clone, Debug)]
pub struct Options {
    /// The pool.
    pub pool: PoolOptions,
    /// How packets are steered, if at all.
    pub steering: Option<Steering>,
    /// Which packets are selected, if not all.
    pub sampling: Option<Sampling>,
    /// Drop packets once they are copied.
    pub exclusive: bool,
    /// Packets may span several buffers; getting the length then costs a call per packet. If false, the kernel refuses
    /// such packets, and MTUs that require them.
    pub fragments: bool,
    /// The pool's writers: processors for generic XDP.
    pub writers: Writers,
    /// The receive queues to capture; `None`: all.
    pub chosen: Option<Chosen>,
    /// Index of the interface whose driver is asked for stripped VLAN tags; the program is then bound to it.
    pub tags_of: Option<u32>,
    /// Whether rules can be in front, of a program that is not bound.
    pub rules: bool,
    /// How packets of flows are counted in place of being copied, if they are.
    pub counting: Option<Counting>,
}

/// Counts packets of flows (`ways.h`): those of each direction that come after the first ones.
#[derive(Clone, Copy, Debug)]
pub struct Counting {
    /// Buckets of each writer, a power of two, each with [`WAYS`] directions of flows.
    pub buckets: u32,
    /// Number of writers.
    pub writers: u32,
    /// After such a silence, in nanoseconds, a flow begins anew.
    pub idle: u64,
    /// The silence, in nanoseconds, after which another flow may get the place of one.
    pub rest: u64,
    /// Packets of each direction that are copied, below 256.
    pub copies: u32,
    /// A secret seed for the hashes: without it, anybody could craft flows that share a bucket.
    pub seed: u64,
}

/// Directions of flows in a bucket.
pub const WAYS: u32 = way_bucket::WAYS.0;

/// A loaded program.
#[derive(Debug)]
pub struct Program {
    kind: Kind,
    ways: Option<OwnedFd>,
}

/// An XDP program that can be attached: the capture's or another.
#[derive(Debug)]
pub(crate) enum Kind {
    /// Can be attached to any device; has its filter in front.
    Free(OwnedFd),
    /// Bound to one device; has its filter inside.
    Bound(Bound),
}

/// `BPF_F_XDP_HAS_FRAGS` (linux/bpf.h, Linux 5.18).
pub const HAS_FRAGMENTS: u32 = 1 << 5;
/// `BPF_F_XDP_DEV_BOUND_ONLY` (linux/bpf.h, Linux 6.3).
const DEVICE_BOUND: u32 = 1 << 6;

impl Program {
    /// Loads the program with these constants, and returns its maps as well. It runs once attached.
    ///
    /// # Errors
    ///
    /// Missing privileges, no memory for the maps, or a kernel (with `tags_of`, a driver) without a function that the
    /// program calls.
    pub fn load(options: &Options) -> Result<(Self, PoolMaps), LoadError> {
        logged("capture", || Self::try_load(options))
    }

    fn try_load(options: &Options) -> Result<(Self, PoolMaps), libbpf_rs::Error> {
        let mut storage = MaybeUninit::uninit();
        let mut open = skeleton::XdpSkelBuilder::default().open(&mut storage)?;
        let constants = prepare!(open, &options.pool);
        prepare_sampling!(open, constants, options.sampling);
        prepare_steering!(open, constants, options.steering);
        constants.action = if options.exclusive { XDP_DROP } else { XDP_PASS };
        constants.fragments = options.fragments;
        constants.queues_of = match options.writers {
            Writers::Queues(driven) => driven.constant(),
            Writers::Processors(_) => 0,
        };
        prepare_chosen!(constants, options.chosen);
        if let Some(Counting { buckets, writers, idle, rest, copies, seed }) = options.counting {
            constants.counts_ways = true;
            constants.way_buckets = buckets;
            constants.way_idle = idle;
            constants.way_rest = rest;
            constants.way_copies = copies;
            constants.flow_seed = seed;
            open.maps.ways.set_max_entries(buckets * writers)?;
        }
        writers::measure(&mut open.maps.processors, options.writers.processors())?;

        prepare_rules!(open, options.rules, ruled);
        open.progs.ruled.set_flags(if options.fragments { HAS_FRAGMENTS } else { 0 });
        for program in [&mut open.progs.capture, &mut open.progs.wanted, &mut open.progs.unwanted] {
            program.set_autoload(options.tags_of.is_none());
            program.set_flags(if options.fragments { HAS_FRAGMENTS } else { 0 });
        }
        open.progs.filter_tagged.set_autoload(false);
        match options.tags_of {
            None => open.progs.capture_tagged.set_autoload(false),
            Some(index) => {
                let device = Device { index, fragments: options.fragments };
                bind(&mut open.progs.capture_tagged, device)?;
            }
        }

        let loaded = open.load()?;
        writers::enter(&loaded.maps.processors, options.writers.processors())?;
        let (kind, gate) = match options.tags_of {
            Some(index) => {
                let maps = &maps::loaded(&loaded.maps);
                let device = Device { index, fragments: options.fragments };
                let plain = loaded.progs.capture_tagged.as_fd();
                let bound = Bound::new(Body::Capture, device, plain, maps)?;
                (Kind::Bound(bound.clone()), Gate::Bound(bound))
            }
            None => {
                let interface = match &options.writers {
                    Writers::Queues(driven) => driven.only(),
                    Writers::Processors(_) => None,
                };
                let hook = Hook::Xdp { fragments: options.fragments, interface };
                let (maps, progs) = (&loaded.maps, &loaded.progs);
                let ruled = options.rules.then(|| (progs.ruled.as_fd(), maps.rulings.as_fd()));
                let (wanted, unwanted) = (&progs.wanted, &progs.unwanted);
                let calls = Calls::one(hook, &maps.filters, &maps.outcomes, wanted, unwanted, ruled)?;
                let program = loaded.progs.capture.as_fd().try_clone_to_owned()?;
                (Kind::Free(program), Gate::Calls(calls))
            }
        };
        let ways = options.counting.map(|_| loaded.maps.ways.as_fd().try_clone_to_owned()).transpose()?;
        Ok((Self { kind, ways }, keep_maps!(loaded, &options.pool, Arc::new(gate))))
    }

    /// Returns the map of directions of flows, to be mapped, if the program counts them.
    pub fn ways(&self) -> Option<BorrowedFd<'_>> {
        self.ways.as_ref().map(OwnedFd::as_fd)
    }

    /// Runs the program `times` times on `packet`, an Ethernet frame on receive queue 0 of the namespace's loopback.
    /// The pool fills as usual. Returns the average time per run in nanoseconds.
    ///
    /// # Errors
    ///
    /// The errors of [`testrun::run`].
    pub fn run(&self, packet: &[u8], times: u32) -> Result<u32, CallError> {
        Ok(testrun::run(self.kind.as_fd(), packet, times)?.duration)
    }

    /// Attaches the program, with its gate's filter, to the interface with index `interface` in this thread's network
    /// namespace.
    ///
    /// # Errors
    ///
    /// The errors of [`XdpLink::attach`].
    pub fn attach(&self, interface: u32, hook: XdpHook) -> Result<Arc<Attached>, CallError> {
        self.kind.attach(interface, hook)
    }
}

/// Without a filter inside.
impl AsFd for Program {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.kind.as_fd()
    }
}

impl Kind {
    /// Returns the program without a filter.
    pub(crate) fn as_fd(&self) -> BorrowedFd<'_> {
        match self {
            Self::Free(program) => program.as_fd(),
            Self::Bound(bound) => bound.plain(),
        }
    }

    /// See [`Program::attach`].
    pub(crate) fn attach(&self, interface: u32, hook: XdpHook) -> Result<Arc<Attached>, CallError> {
        match self {
            Self::Free(program) => {
                let link = XdpLink::attach(program.as_fd(), interface, hook)?;
                Ok(Arc::new(Attached { link, namespace: None }))
            }
            Self::Bound(bound) => bound.attach(interface, hook),
        }
    }
}

/// Passes the capture's program, with its `maps`, to `then`, which puts a filter inside.
pub(crate) fn around<R>(
    device: Device,
    maps: &[OwnedFd],
    then: impl FnOnce(&[bpf_insn]) -> R,
) -> Result<R, LoadError> {
    logged("capture with a filter", || {
        let mut storage = MaybeUninit::uninit();
        let mut open = skeleton::XdpSkelBuilder::default().open(&mut storage)?;
        leave_out_all(open.open_object_mut())?;
        reuse(maps, maps::open(&mut open.maps))?;
        bind(&mut open.progs.filter_tagged, device)?;
        Ok(then(open.load()?.progs.filter_tagged.insns()))
    })
}

/// Makes a program that is being loaded use these maps.
///
/// # Panics
///
/// If the number of maps is wrong.
pub(crate) fn reuse<const N: usize>(
    maps: &[OwnedFd],
    ours: [&mut OpenMapMut<'_>; N],
) -> Result<(), libbpf_rs::Error> {
    let maps: &[OwnedFd; N] = maps.try_into().expect("as many as the program has");
    ours.into_iter().zip(maps).try_for_each(|(ours, map)| {
        ours.set_autocreate(true)?;
        ours.reuse_fd(map.as_fd())
    })
}

/// Sets up a program to be bound to `device`.
///
/// Refuses if the kernel blinds constants. Blinding moves every program, and if a device goes away before a moved
/// program, the kernel's networking breaks (`leave_room` in stripped.h).
pub(crate) fn bind(program: &mut OpenProgramMut<'_>, device: Device) -> Result<(), libbpf_rs::Error> {
    if probe::blinds_constants().map_err(|error| error.source)? {
        return Err(io::Error::other(BLINDED).into());
    }
    program.set_autoload(true);
    program.set_flags(DEVICE_BOUND | if device.fragments { HAS_FRAGMENTS } else { 0 });
    program.set_ifindex(device.index);
    Ok(())
}

/// Why a program cannot be bound to a device.
const BLINDED: &str =
    "device-bound programs are not used while net.core.bpf_jit_harden makes the kernel blind constants";

/// Actions, as in `enum xdp_action`.
const XDP_DROP: u32 = 1;
const XDP_PASS: u32 = 2;
