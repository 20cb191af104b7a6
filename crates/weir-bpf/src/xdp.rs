//! The `xdp` source's program (`xdp.bpf.c`).

mod bound;

use std::io;
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, OwnedFd};
use std::path::Path;
use std::sync::Arc;

use libbpf_rs::libbpf_sys::bpf_insn;
use libbpf_rs::skel::{OpenSkel, SkelBuilder};
use libbpf_rs::{OpenMapMut, OpenProgramMut};
use weir_sys::bpf::{XdpHook, XdpLink, probe};
use weir_sys::netns::NetNs;
use weir_sys::{CallError, testrun};

pub use self::bound::{Body, Bound, BoundParts, Device};
use crate::filter::{Gate, Hook, gate};
use crate::leave_out_all;
use crate::log::{LoadError, logged};
use crate::pool::{PoolMaps, PoolOptions, Steering, keep_maps, prepare, prepare_steering};
use crate::writers::{self, Writers};

skeleton!("xdp");

/// The constants of one capture on one interface.
#[derive(Clone, Debug)]
pub struct Options {
    /// The pool.
    pub pool: PoolOptions,
    /// How packets are steered, if they are.
    pub steering: Option<Steering>,
    /// Drop packets after they were copied.
    pub exclusive: bool,
    /// Packets may come in several buffers, which costs a call for each to learn its length. Without, the kernel keeps
    /// such packets, and an MTU that brings them, away.
    pub fragments: bool,
    /// The pool's writers; for generic XDP processors.
    pub writers: Writers,
    /// Index of the interface whose driver is asked for stripped VLAN tags; the program is then bound to it.
    pub tags_of: Option<u32>,
}

/// A loaded program.
#[derive(Debug)]
pub struct Program(Kind);

/// A program that can be attached: the capture's, or another one for XDP.
#[derive(Debug)]
pub(crate) enum Kind {
    /// To any device, with its filter in front.
    Free(OwnedFd),
    /// To one, with its filter inside.
    Bound(Bound),
}

/// A program on its interface, until this is dropped.
#[derive(Debug)]
pub struct Attached {
    link: XdpLink,
    /// Where the interface is, for programs that are to be bound to it.
    namespace: Option<NetNs>,
}

/// `BPF_F_XDP_HAS_FRAGS` (linux/bpf.h, Linux 5.18).
pub(crate) const HAS_FRAGMENTS: u32 = 1 << 5;
/// `BPF_F_XDP_DEV_BOUND_ONLY` (linux/bpf.h, Linux 6.3).
const DEVICE_BOUND: u32 = 1 << 6;

impl Program {
    /// Loads the program with these constants, and gives its maps, too. It runs once it is attached.
    ///
    /// # Errors
    ///
    /// No privilege, no memory for the maps, or a kernel (or with `tags_of` a driver) without what the program calls.
    pub fn load(options: &Options) -> Result<(Self, PoolMaps), LoadError> {
        logged("capture", || Self::try_load(options))
    }

    fn try_load(options: &Options) -> Result<(Self, PoolMaps), libbpf_rs::Error> {
        let mut storage = MaybeUninit::uninit();
        let mut open = skeleton::XdpSkelBuilder::default().open(&mut storage)?;
        let constants = prepare!(open, &options.pool);
        prepare_steering!(open, constants, options.steering);
        constants.verdict = if options.exclusive { XDP_DROP } else { XDP_PASS };
        constants.fragments = options.fragments;
        constants.queues_of = match options.writers {
            Writers::Queues(driven) => driven.constant(),
            Writers::Processors(_) => 0,
        };
        writers::measure(&mut open.maps.processors, options.writers.processors())?;

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
                let maps = &loaded.maps;
                let maps = &[
                    maps.pool.as_fd(),
                    maps.chunks.as_fd(),
                    maps.queues.as_fd(),
                    maps.orders.as_fd(),
                    maps.doorbell.as_fd(),
                    maps.strays.as_fd(),
                    maps.datagrams.as_fd(),
                    maps.processors.as_fd(),
                    maps.rodata.as_fd(),
                ];
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
                let outcomes =
                    [(hook.wanted(), &loaded.progs.wanted), (hook.unwanted(), &loaded.progs.unwanted)];
                let program = loaded.progs.capture.as_fd().try_clone_to_owned()?;
                (Kind::Free(program), gate!(loaded, vec![hook], outcomes))
            }
        };
        Ok((Self(kind), keep_maps!(loaded, &options.pool, Arc::new(gate))))
    }

    /// Runs `packet`, an Ethernet frame on receive queue 0 of the namespace's loopback, through it `times` times, with what
    /// comes of it for the pool: nanoseconds a run on average.
    ///
    /// # Errors
    ///
    /// As [`testrun::run`].
    pub fn run(&self, packet: &[u8], times: u32) -> Result<u32, CallError> {
        let program = match &self.0 {
            Kind::Free(program) => program.as_fd(),
            Kind::Bound(bound) => bound.plain(),
        };
        Ok(testrun::run(program, packet, times)?.duration)
    }

    /// Attaches it to the interface with index `interface` of this thread's network namespace, with the filter that its gate
    /// has.
    ///
    /// # Errors
    ///
    /// As [`XdpLink::attach`].
    pub fn attach(&self, interface: u32, hook: XdpHook) -> Result<Arc<Attached>, CallError> {
        self.0.attach(interface, hook)
    }
}

impl Kind {
    /// As [`Program::attach`].
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

impl Attached {
    /// Takes the program off.
    ///
    /// # Errors
    ///
    /// As [`XdpLink::detach`].
    pub fn detach(&self) -> Result<(), CallError> {
        self.link.detach()
    }

    /// Has the program stay there until [`detach`](Self::detach), whatever becomes of this and of the process, under the name
    /// `path` in a bpffs.
    ///
    /// # Errors
    ///
    /// As [`XdpLink::pin`].
    pub fn pin(&self, path: &Path) -> Result<(), CallError> {
        self.link.pin(path)
    }
}

/// What a filter inside of the capture's program is put into, given to `then`, with its `maps`.
fn around<R>(device: Device, maps: &[OwnedFd], then: impl FnOnce(&[bpf_insn]) -> R) -> Result<R, LoadError> {
    logged("capture with a filter", || {
        let mut storage = MaybeUninit::uninit();
        let mut open = skeleton::XdpSkelBuilder::default().open(&mut storage)?;
        leave_out_all(open.open_object_mut())?;
        let ours = &mut open.maps;
        reuse(
            maps,
            [
                &mut ours.pool,
                &mut ours.chunks,
                &mut ours.queues,
                &mut ours.orders,
                &mut ours.doorbell,
                &mut ours.strays,
                &mut ours.datagrams,
                &mut ours.processors,
                &mut ours.rodata,
            ],
        )?;
        bind(&mut open.progs.filter_tagged, device)?;
        Ok(then(open.load()?.progs.filter_tagged.insns()))
    })
}

/// Has a program that is being loaded use these maps.
///
/// # Panics
///
/// If there are not as many.
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

/// Has a program loaded, for `device` alone.
///
/// Not where the kernel blinds constants: that moves each program, and a device that goes before one which was moved takes the
/// kernel's network with it (`leave_room` in stripped.h).
pub(crate) fn bind(program: &mut OpenProgramMut<'_>, device: Device) -> Result<(), libbpf_rs::Error> {
    if probe::blinds_constants().map_err(|error| error.source)? {
        return Err(io::Error::other(BLINDED).into());
    }
    program.set_autoload(true);
    program.set_flags(DEVICE_BOUND | if device.fragments { HAS_FRAGMENTS } else { 0 });
    program.set_ifindex(device.index);
    Ok(())
}

/// Why no program is bound to a device.
const BLINDED: &str =
    "device-bound programs are not used while net.core.bpf_jit_harden makes the kernel blind constants";

/// Verdicts, as in `enum xdp_action`.
const XDP_DROP: u32 = 1;
const XDP_PASS: u32 = 2;
