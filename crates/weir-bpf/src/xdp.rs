//! The `xdp` source's program (`xdp.bpf.c`).

use std::mem::MaybeUninit;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use libbpf_rs::skel::{OpenSkel, SkelBuilder};

use crate::filter::{Hook, gate};
use crate::log::{LoadError, logged};
use crate::pool::{PoolMaps, PoolOptions, keep_maps, prepare};

skeleton!("xdp");

/// The constants of one capture on one interface.
#[derive(Clone, Copy, Debug)]
pub struct Options {
    /// The pool.
    pub pool: PoolOptions,
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

/// A loaded program.
#[derive(Debug)]
pub struct Program {
    program: OwnedFd,
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
        constants.verdict = if options.exclusive { XDP_DROP } else { XDP_PASS };
        constants.fragments = options.fragments;
        constants.queue_is_cpu = options.queue_is_cpu;

        for program in [&mut open.progs.capture, &mut open.progs.wanted, &mut open.progs.unwanted] {
            program.set_autoload(options.tags_of.is_none());
            program.set_flags(if options.fragments { HAS_FRAGMENTS } else { 0 });
        }
        open.progs.capture_tagged.set_autoload(options.tags_of.is_some());
        let fragments = if options.fragments { HAS_FRAGMENTS } else { 0 };
        if let Some(ifindex) = options.tags_of {
            open.progs.capture_tagged.set_flags(fragments | DEVICE_BOUND);
            open.progs.capture_tagged.set_ifindex(ifindex);
        }

        let loaded = open.load()?;
        let program =
            if options.tags_of.is_some() { &loaded.progs.capture_tagged } else { &loaded.progs.capture };
        let program = program.as_fd().try_clone_to_owned()?;
        let gate = match options.tags_of {
            Some(_) => None,
            None => {
                let hook = Hook::Xdp { fragments: options.fragments };
                let outcomes =
                    [(hook.wanted(), &loaded.progs.wanted), (hook.unwanted(), &loaded.progs.unwanted)];
                Some(gate!(loaded, vec![hook], outcomes))
            }
        };
        Ok((Self { program }, keep_maps!(loaded, &options.pool, gate)))
    }

    /// The program, to attach it.
    pub fn program(&self) -> BorrowedFd<'_> {
        self.program.as_fd()
    }
}

/// Verdicts, as in `enum xdp_action`.
const XDP_DROP: u32 = 1;
const XDP_PASS: u32 = 2;
