//! The `af_xdp` source's program (`af_xdp.bpf.c`).

mod arrival;

use std::mem::MaybeUninit;
use std::os::fd::{AsFd, AsRawFd, OwnedFd};
use std::sync::Arc;

use libbpf_rs::libbpf_sys::bpf_insn;
use libbpf_rs::skel::{OpenSkel, SkelBuilder};
use libbpf_rs::{MapCore, MapFlags, MapHandle};
use weir_sys::CallError;
use weir_sys::bpf::XdpHook;

pub use self::arrival::Arrival;
use crate::attached::Attached;
use crate::filter::{Body, Bound, Calls, Device, Gate, Hook, held};
use crate::layout::{get, order, queue, set};
use crate::log::{LoadError, logged};
use crate::pool::{Sampling, Stamp, prepare_rules, prepare_sampling};
use crate::writers::{Chosen, Driven, prepare_chosen};
use crate::xdp::{HAS_FRAGMENTS, Kind, bind, reuse};
use crate::{Strays, leave_out_all};

skeleton!("af_xdp");

held!(maps of AfXdpMaps, OpenAfXdpMaps: sockets, queues, orders, strays, datagrams, rodata);

/// The constants of one capture on one interface.
#[derive(Clone, Copy, Debug)]
pub struct Options {
    /// Number of receive queues to capture.
    pub queues: u32,
    /// Which they are; `None`: all.
    pub chosen: Option<Chosen>,
    /// When the clock is read.
    pub stamp: Stamp,
    /// Which packets are selected, if not all.
    pub sampling: Option<Sampling>,
    /// Frames begin with an Ethernet header; otherwise with an IP header.
    pub ethernet: bool,
    /// Packets may span several buffers, which the sockets must support.
    pub fragments: bool,
    /// With native XDP, the captured interface; packets of others are counted as foreign. `None`: generic XDP, where
    /// several CPUs may process packets of one queue at a time.
    pub native_on: Option<Driven>,
    /// Index of the interface whose driver is asked for stripped VLAN tags; the program is then bound to it.
    pub tags_of: Option<u32>,
    /// Whether rules can be in front, of a program that is not bound.
    pub rules: bool,
}

/// A loaded program.
#[derive(Debug)]
pub struct Program(Kind);

/// The maps of a loaded program.
#[derive(Debug)]
pub struct Maps {
    sockets: MapHandle,
    queues: MapHandle,
    orders: MapHandle,
    strays: MapHandle,
    gate: Arc<Gate>,
}

/// The program's counters of one queue, in packets.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Met {
    /// Packets that reached the program.
    pub seen: u64,
    /// Packets that did not match the filter.
    pub filtered: u64,
    /// Packets that were not selected.
    pub sampled_out: u64,
    /// Packets that had no socket to go to.
    pub errors: u64,
    /// With sampling by flow, later fragments of datagrams whose first fragment was not seen.
    pub orphans: u64,
}

impl Program {
    /// Loads the program with these constants, and returns its maps as well. It runs once attached.
    ///
    /// # Errors
    ///
    /// Missing privileges, or a kernel (with `tags_of`, a driver) without a function that the program calls.
    pub fn load(options: &Options) -> Result<(Self, Maps), LoadError> {
        logged("redirect", || Self::try_load(options))
    }

    fn try_load(options: &Options) -> Result<(Self, Maps), libbpf_rs::Error> {
        let mut storage = MaybeUninit::uninit();
        let mut open = skeleton::AfXdpSkelBuilder::default().open(&mut storage)?;
        let constants = open.maps.rodata_data.as_deref_mut().expect("the program has constants");
        constants.timestamps = options.stamp as u32;
        constants.queues_of = options.native_on.map_or(0, Driven::constant);
        constants.fragments = options.fragments;
        constants.ethernet = options.ethernet;
        prepare_sampling!(open, constants, options.sampling);
        prepare_chosen!(constants, options.chosen);
        // The process owns the pool.
        open.maps.pool.set_autocreate(false)?;
        open.maps.chunks.set_autocreate(false)?;
        open.maps.doorbell.set_autocreate(false)?;
        open.maps.sockets.set_max_entries(options.queues)?;
        open.maps.queues.set_max_entries(options.queues)?;
        open.maps.orders.set_max_entries(options.queues)?;

        let fragments = if options.fragments { HAS_FRAGMENTS } else { 0 };
        prepare_rules!(open, options.rules, ruled);
        open.progs.ruled.set_flags(if options.fragments { HAS_FRAGMENTS } else { 0 });
        for program in [&mut open.progs.redirect, &mut open.progs.wanted, &mut open.progs.unwanted] {
            program.set_autoload(options.tags_of.is_none());
            program.set_flags(fragments);
        }
        open.progs.filter_tagged.set_autoload(false);
        let device = options.tags_of.map(|index| Device { index, fragments: options.fragments });
        match device {
            None => open.progs.redirect_tagged.set_autoload(false),
            Some(device) => bind(&mut open.progs.redirect_tagged, device)?,
        }

        let loaded = open.load()?;
        let (kind, gate) = match device {
            Some(device) => {
                let maps = &maps::loaded(&loaded.maps);
                let bound = Bound::new(Body::AfXdp, device, loaded.progs.redirect_tagged.as_fd(), maps)?;
                (Kind::Bound(bound.clone()), Gate::Bound(bound))
            }
            None => {
                let interface = options.native_on.and_then(Driven::only);
                let hook = Hook::Xdp { fragments: options.fragments, interface };
                let (maps, progs) = (&loaded.maps, &loaded.progs);
                let ruled = options.rules.then(|| (progs.ruled.as_fd(), maps.rulings.as_fd()));
                let (wanted, unwanted) = (&progs.wanted, &progs.unwanted);
                let calls = Calls::one(hook, &maps.filters, &maps.outcomes, wanted, unwanted, ruled)?;
                let program = loaded.progs.redirect.as_fd().try_clone_to_owned()?;
                (Kind::Free(program), Gate::Calls(calls))
            }
        };
        let maps = Maps {
            sockets: MapHandle::try_from(&loaded.maps.sockets)?,
            queues: MapHandle::try_from(&loaded.maps.queues)?,
            orders: MapHandle::try_from(&loaded.maps.orders)?,
            strays: MapHandle::try_from(&loaded.maps.strays)?,
            gate: Arc::new(gate),
        };
        Ok((Self(kind), maps))
    }

    /// Attaches the program, like [`crate::xdp::Program::attach`].
    ///
    /// # Errors
    ///
    /// The errors of that function.
    pub fn attach(&self, interface: u32, hook: XdpHook) -> Result<Arc<Attached>, CallError> {
        self.0.attach(interface, hook)
    }
}

/// Passes the program, with its `maps`, to `then`, which puts a filter inside.
pub(crate) fn around<R>(
    device: Device,
    maps: &[OwnedFd],
    then: impl FnOnce(&[bpf_insn]) -> R,
) -> Result<R, LoadError> {
    logged("redirect with a filter", || {
        let mut storage = MaybeUninit::uninit();
        let mut open = skeleton::AfXdpSkelBuilder::default().open(&mut storage)?;
        leave_out_all(open.open_object_mut())?;
        reuse(maps, maps::open(&mut open.maps))?;
        bind(&mut open.progs.filter_tagged, device)?;
        Ok(then(open.load()?.progs.filter_tagged.insns()))
    })
}

impl Maps {
    /// Sends the packets of the queue at `place` among those captured to `socket`, which must be bound to that queue,
    /// until the socket is closed.
    ///
    /// # Errors
    ///
    /// `socket` is not an AF_XDP socket.
    pub fn insert(&self, place: u32, socket: impl AsFd) -> Result<(), libbpf_rs::Error> {
        let fd = socket.as_fd().as_raw_fd().to_ne_bytes();
        self.sockets.update(&place.to_ne_bytes(), &fd, MapFlags::ANY)
    }

    /// Returns the counters of the queue at `place`; `None` if they cannot be read.
    pub fn met(&self, place: u32) -> Option<Met> {
        let state = self.queues.lookup(&place.to_ne_bytes(), MapFlags::ANY).ok()??;
        Some(Met {
            seen: get!(&state, queue.seen),
            filtered: get!(&state, queue.filtered),
            sampled_out: get!(&state, queue.sampled_out),
            errors: get!(&state, queue.errors),
            orphans: get!(&state, queue.orphans),
        })
    }

    /// Sets the offset from the program's clock to the Unix epoch.
    ///
    /// # Errors
    ///
    /// None in practice: the map is ours.
    pub fn set_clock_offset(&self, nanoseconds: i64) -> Result<(), libbpf_rs::Error> {
        let mut orders = vec![0; self.orders.value_size() as usize];
        set!(&mut orders, order.clock_offset = nanoseconds);
        let queues = 0..self.orders.max_entries();
        queues
            .into_iter()
            .try_for_each(|queue| self.orders.update(&queue.to_ne_bytes(), &orders, MapFlags::ANY))
    }

    /// Returns the packets that are counted outside the queues.
    pub fn strays(&self) -> Strays {
        Strays::read(&self.strays)
    }

    /// Returns the gate that installs the source's filter.
    pub fn gate(&self) -> &Arc<Gate> {
        &self.gate
    }
}
