//! The program for a device that strips VLAN tags: bound to that device, with its filter inside.
//!
//! Such a program may ask its driver for the tag, but may not use tail calls. So with each filter it is another program: the writer
//! with the filter's instructions in it ([`crate::filter`]), made from the same C and the capture's maps by whoever
//! asks for the filter. An exchange is one update of the link, and each packet meets the old program or the new one.

use std::io;
use std::mem::MaybeUninit;
use std::os::fd::{AsFd as _, BorrowedFd, OwnedFd};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

use libbpf_rs::skel::{OpenSkel as _, SkelBuilder as _};
use weir_filter::emit::ebpf::{self, Context, Ending};
use weir_filter::graph::Graph;
use weir_sys::CallError;
use weir_sys::bpf::program::{self, ProgramKind};
use weir_sys::bpf::{XdpHook, XdpLink};
use weir_sys::netns::NetNs;

use super::{Attached, bind, skeleton};
use crate::LoadError;
use crate::filter::link::Code;
use crate::filter::{FilterError, NAME, Sets};
use crate::log::logged;

/// The place of a filter inside of a bound program; clones share it.
#[derive(Clone, Debug)]
pub struct Bound(Arc<Place>);

#[derive(Debug)]
struct Place {
    device: Device,
    maps: [OwnedFd; MAPS],
    /// The program without a filter.
    plain: OwnedFd,
    state: Mutex<State>,
}

#[derive(Debug)]
enum State {
    /// It is not attached yet; with this filter it will be.
    Awaited(Option<OwnedFd>),
    /// It is, or was.
    Attached(Weak<Attached>),
}

/// What such a program is bound to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Device {
    /// The interface's index.
    pub index: u32,
    /// Its packets may come in several buffers.
    pub fragments: bool,
}

/// Maps of the program.
pub const MAPS: usize = 7;

/// Stands for the C that the program is made of, compiled: who makes a program for another process's maps must have the same.
pub const BUILD: u64 = fnv1a(include_bytes!(concat!(env!("OUT_DIR"), "/xdp.bpf.o")));

const fn fnv1a(bytes: &[u8]) -> u64 {
    let (mut hash, mut at) = (0xcbf2_9ce4_8422_2325, 0);
    while at < bytes.len() {
        hash = (hash ^ bytes[at] as u64).wrapping_mul(0x0100_0000_01b3);
        at += 1;
    }
    hash
}

/// What is needed to make such a program.
#[derive(Debug)]
pub struct BoundParts {
    /// What it is bound to.
    pub device: Device,
    /// Where that is; `None`: where the calling thread is.
    pub namespace: Option<NetNs>,
    /// The maps of the capture, in the order that is this program's own: [`BUILD`].
    pub maps: [OwnedFd; MAPS],
}

impl Bound {
    pub(super) fn new(
        device: Device,
        plain: BorrowedFd<'_>,
        maps: [BorrowedFd<'_>; MAPS],
    ) -> io::Result<Self> {
        let (plain, maps) = (plain.try_clone_to_owned()?, duplicates(maps)?);
        Ok(Self(Arc::new(Place { device, maps, plain, state: Mutex::new(State::Awaited(None)) })))
    }

    /// What other programs for this place are made of; `None`: nothing is attached there any more.
    ///
    /// # Errors
    ///
    /// No descriptor is left.
    pub fn parts(&self) -> io::Result<Option<BoundParts>> {
        let namespace = match &*self.state() {
            State::Awaited(_) => None,
            State::Attached(attached) => match attached.upgrade() {
                None => return Ok(None),
                Some(attached) => attached.namespace.as_ref().map(NetNs::try_clone).transpose()?,
            },
        };
        let maps = duplicates(self.0.maps.each_ref().map(OwnedFd::as_fd))?;
        Ok(Some(BoundParts { device: self.0.device, namespace, maps }))
    }

    /// As [`crate::filter::Gate::set`]; `program`: with the filter inside. Where nothing is attached any more, that is no error.
    pub(crate) fn set(&self, program: Option<&OwnedFd>) -> Result<(), CallError> {
        match &mut *self.state() {
            State::Awaited(awaited) => {
                let program = program.map(OwnedFd::try_clone).transpose();
                *awaited = program.map_err(|error| CallError::new("duplicate a descriptor", error))?;
                Ok(())
            }
            State::Attached(attached) => match attached.upgrade() {
                Some(attached) => attached.link.exchange(program.unwrap_or(&self.0.plain).as_fd()),
                None => Ok(()),
            },
        }
    }

    /// Attaches the program, with the filter that is in place.
    pub(super) fn attach(&self, interface: u32, hook: XdpHook) -> Result<Arc<Attached>, CallError> {
        let mut state = self.state();
        let program = match &*state {
            State::Awaited(Some(program)) => program,
            _ => &self.0.plain,
        };
        let namespace = Some(NetNs::current()?);
        let link = XdpLink::attach(program.as_fd(), interface, hook)?;
        let attached = Arc::new(Attached { link, namespace });
        *state = State::Attached(Arc::downgrade(&attached));
        Ok(attached)
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.0.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn duplicates(maps: [BorrowedFd<'_>; MAPS]) -> io::Result<[OwnedFd; MAPS]> {
    let all = maps.iter().map(|map| map.try_clone_to_owned()).collect::<io::Result<Vec<_>>>()?;
    Ok(all.try_into().expect("as many"))
}

impl BoundParts {
    /// Loads the program with this filter inside.
    pub(crate) fn load(&self, graph: &Graph, sets: &Sets<'_>) -> Result<OwnedFd, FilterError> {
        let here = || NetNs::current().and_then(|netns| netns.identity());
        match &self.namespace {
            Some(namespace) if namespace.identity()? != here()? => {
                namespace.inside(|| self.load_here(graph, sets))?
            }
            _ => self.load_here(graph, sets),
        }
    }

    fn load_here(&self, graph: &Graph, sets: &Sets<'_>) -> Result<OwnedFd, FilterError> {
        let Device { index, fragments } = self.device;
        let ending = Ending::Return { accept: 1, refuse: 0 };
        let filter = ebpf::emit(graph, sets.members, Context::XdpTagged { fragments }, ending)?;
        let filter =
            sets.words(&filter, |symbol| unreachable!("it answers by what it returns, without {symbol}"));
        let mut storage = MaybeUninit::uninit();
        let around = self.around(&mut storage)?;
        let program = Code::new(around.progs.filter_tagged.insns()).with(&filter);
        Ok(program::load(ProgramKind::Xdp { fragments, bound_to: Some(index) }, NAME, &program)?)
    }

    /// The program that the filter is put into, with the maps of the capture.
    fn around<'a>(
        &self,
        storage: &'a mut MaybeUninit<libbpf_rs::OpenObject>,
    ) -> Result<skeleton::XdpSkel<'a>, LoadError> {
        logged("capture with a filter", || {
            let mut open = skeleton::XdpSkelBuilder::default().open(storage)?;
            let [pool, chunks, queues, orders, doorbell, strays, constants] = &self.maps;
            let maps = &mut open.maps;
            maps.pool.reuse_fd(pool.as_fd())?;
            maps.chunks.reuse_fd(chunks.as_fd())?;
            maps.queues.reuse_fd(queues.as_fd())?;
            maps.orders.reuse_fd(orders.as_fd())?;
            maps.doorbell.reuse_fd(doorbell.as_fd())?;
            maps.strays.reuse_fd(strays.as_fd())?;
            maps.rodata.reuse_fd(constants.as_fd())?;
            maps.filters.set_autocreate(false)?;
            maps.outcomes.set_autocreate(false)?;
            let programs = &mut open.progs;
            for program in [
                &mut programs.capture,
                &mut programs.wanted,
                &mut programs.unwanted,
                &mut programs.capture_tagged,
            ] {
                program.set_autoload(false);
            }
            bind(&mut programs.filter_tagged, self.device);
            open.load()
        })
    }
}
