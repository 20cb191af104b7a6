//! Programs for a device that strips VLAN tags: bound to that device, with their filter inside.
//!
//! Such a program may ask its driver for the tag, but may not use tail calls, so every filter needs a program of its
//! own: the body with the filter's instructions inside ([`crate::filter`]). The process that wants the filter makes it
//! from the same C source and the maps of the running program. A replacement is one update of the link: each packet
//! meets either the old program or the new one.

use std::io;
use std::os::fd::{AsFd as _, BorrowedFd, OwnedFd};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

use serde::{Deserialize, Serialize};
use weir_sys::CallError;
use weir_sys::bpf::{XdpHook, XdpLink};
use weir_sys::netns::NetNs;

use crate::attached::Attached;

/// The place of a filter inside a bound program; clones share it.
#[derive(Clone, Debug)]
pub struct Bound(Arc<BoundSlot>);

#[derive(Debug)]
struct BoundSlot {
    body: Body,
    device: Device,
    maps: Vec<OwnedFd>,
    /// The program without a filter.
    plain: OwnedFd,
    state: Mutex<AttachState>,
}

#[derive(Debug)]
enum AttachState {
    /// Not attached yet; this program will be, with its filter inside, or the plain one.
    Awaited(Option<OwnedFd>),
    /// Attached now or in the past.
    Attached(Weak<Attached>),
}

/// The device that a program is bound to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Device {
    /// The interface's index.
    pub index: u32,
    /// Its packets may span several buffers.
    pub fragments: bool,
}

/// A program that contains a filter.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Body {
    /// The program of the source `xdp`.
    Capture,
    /// The program of the source `af_xdp`.
    AfXdp,
    /// The program for forwarding.
    Forward {
        /// Forwarded packets are also copied into a pool.
        copies: bool,
    },
}

impl Body {
    /// Identifies the compiled C source of the program. A process that makes a program for another process's maps must
    /// have the same build.
    pub fn build(self) -> u64 {
        const CAPTURE: u64 = fnv1a(include_bytes!(concat!(env!("OUT_DIR"), "/xdp.bpf.o")));
        const AF_XDP: u64 = fnv1a(include_bytes!(concat!(env!("OUT_DIR"), "/af_xdp.bpf.o")));
        const FORWARD: u64 = fnv1a(include_bytes!(concat!(env!("OUT_DIR"), "/forward.bpf.o")));
        match self {
            Self::Capture => CAPTURE,
            Self::AfXdp => AF_XDP,
            Self::Forward { .. } => FORWARD,
        }
    }
}

const fn fnv1a(bytes: &[u8]) -> u64 {
    let (mut hash, mut at) = (0xcbf2_9ce4_8422_2325, 0);
    while at < bytes.len() {
        hash = (hash ^ bytes[at] as u64).wrapping_mul(0x0100_0000_01b3);
        at += 1;
    }
    hash
}

/// The parts needed to make a bound program.
#[derive(Debug)]
pub struct BoundParts {
    /// The program that contains the filter.
    pub body: Body,
    /// The device to bind it to.
    pub device: Device,
    /// The device's namespace; `None`: the calling thread's.
    pub namespace: Option<NetNs>,
    /// The maps of the running program, [`Body::maps`] of them, in an order that depends on [`Body::build`].
    pub maps: Vec<OwnedFd>,
}

impl Bound {
    pub(crate) fn new(
        body: Body,
        device: Device,
        plain: BorrowedFd<'_>,
        maps: &[BorrowedFd<'_>],
    ) -> io::Result<Self> {
        debug_assert_eq!(maps.len(), body.maps(), "{body:?}");
        let plain = plain.try_clone_to_owned()?;
        let maps = maps.iter().map(|map| map.try_clone_to_owned()).collect::<io::Result<_>>()?;
        Ok(Self(Arc::new(BoundSlot {
            body,
            device,
            maps,
            plain,
            state: Mutex::new(AttachState::Awaited(None)),
        })))
    }

    /// Returns the program without a filter.
    pub(crate) fn plain(&self) -> BorrowedFd<'_> {
        self.0.plain.as_fd()
    }

    /// Returns the parts to make other programs for this place; `None` if nothing is attached there any more.
    ///
    /// # Errors
    ///
    /// No descriptor is left.
    pub fn parts(&self) -> io::Result<Option<BoundParts>> {
        let namespace = match &*self.state() {
            AttachState::Awaited(_) => None,
            AttachState::Attached(attached) => match attached.upgrade() {
                None => return Ok(None),
                Some(attached) => attached.namespace.as_ref().map(NetNs::try_clone).transpose()?,
            },
        };
        let maps = self.0.maps.iter().map(OwnedFd::try_clone).collect::<io::Result<_>>()?;
        Ok(Some(BoundParts { body: self.0.body, device: self.0.device, namespace, maps }))
    }

    /// See [`super::Gate::set`]. `program` has the filter inside. It is no error if nothing is attached any
    /// more.
    pub(crate) fn set(&self, program: Option<&OwnedFd>) -> Result<(), CallError> {
        match &mut *self.state() {
            AttachState::Awaited(awaited) => {
                let program = program.map(OwnedFd::try_clone).transpose();
                *awaited = program.map_err(|error| CallError::new("duplicate a descriptor", error))?;
                Ok(())
            }
            AttachState::Attached(attached) => match attached.upgrade() {
                Some(attached) => attached.link.exchange(program.unwrap_or(&self.0.plain).as_fd()),
                None => Ok(()),
            },
        }
    }

    /// Attaches the program, with the filter that is in place.
    pub(crate) fn attach(&self, interface: u32, hook: XdpHook) -> Result<Arc<Attached>, CallError> {
        let mut state = self.state();
        let program = match &*state {
            AttachState::Awaited(Some(program)) => program,
            _ => &self.0.plain,
        };
        let namespace = Some(NetNs::current()?);
        let link = XdpLink::attach(program.as_fd(), interface, hook)?;
        let attached = Arc::new(Attached { link, namespace });
        *state = AttachState::Attached(Arc::downgrade(&attached));
        Ok(attached)
    }

    fn state(&self) -> MutexGuard<'_, AttachState> {
        self.0.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
