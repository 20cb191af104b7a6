//! The program that sends packets to AF_XDP sockets (`xsk.bpf.c`).

use std::mem::MaybeUninit;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};

use libbpf_rs::skel::{OpenSkel, SkelBuilder};
use libbpf_rs::{MapCore, MapFlags, MapHandle};

use weir_bpf::xdp::HAS_FRAGMENTS;
use weir_bpf::{LoadError, logged};

weir_bpf::skeleton!("xsk");

/// A loaded program that redirects each packet to the socket of its receive queue, or passes it to the stack if the
/// queue has none.
#[derive(Debug)]
pub struct Redirect {
    program: OwnedFd,
    sockets: MapHandle,
}

impl Redirect {
    /// Loads the program for an interface with `queues` receive queues. It runs once attached. With `fragments`,
    /// packets may span several buffers, which the sockets must support.
    ///
    /// # Errors
    ///
    /// Missing privileges, or a kernel without AF_XDP.
    pub fn load(queues: u32, fragments: bool) -> Result<Self, LoadError> {
        logged("redirect", || {
            let mut storage = MaybeUninit::uninit();
            let mut open = skeleton::XskSkelBuilder::default().open(&mut storage)?;
            open.maps.sockets.set_max_entries(queues)?;
            open.progs.redirect.set_flags(if fragments { HAS_FRAGMENTS } else { 0 });
            let loaded = open.load()?;
            Ok(Self {
                program: loaded.progs.redirect.as_fd().try_clone_to_owned()?,
                sockets: MapHandle::try_from(&loaded.maps.sockets)?,
            })
        })
    }

    /// Returns the program, to attach it.
    pub fn program(&self) -> BorrowedFd<'_> {
        self.program.as_fd()
    }

    /// Sends the packets of `queue` to `socket`, which must be bound to that queue, until the socket is closed.
    ///
    /// # Errors
    ///
    /// `queue` is not below the number given to [`load`](Self::load), or `socket` is not an AF_XDP socket.
    pub fn insert(&self, queue: u32, socket: impl AsFd) -> Result<(), libbpf_rs::Error> {
        let fd = socket.as_fd().as_raw_fd().to_ne_bytes();
        self.sockets.update(&queue.to_ne_bytes(), &fd, MapFlags::ANY)
    }
}
