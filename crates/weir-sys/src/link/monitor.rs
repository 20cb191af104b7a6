//! Notifications from the kernel about changes of interfaces.

use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use rustix::io::Errno;
use rustix::net::netlink::SocketAddrNetlink;
use rustix::net::{AddressFamily, RecvFlags, SocketFlags, SocketType, bind, recv, socket_with};

use super::{Link, RTM_DELLINK, RTM_NEWLINK, parse_link};
use crate::CallError;
use crate::netlink::split;

/// Room for one datagram: a notification is a few kilobytes.
const DATAGRAM: usize = 32 << 10;

/// A listener for changes of interfaces in the namespace in which it was opened.
#[derive(Debug)]
pub struct LinkMonitor {
    socket: OwnedFd,
    buffer: Vec<u8>,
}

/// A change of an interface.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum LinkChange {
    /// The interface is new or changed; this is its current state.
    Is(Link),
    /// The interface is gone or was moved to another namespace; its counters are the last ones.
    Gone(Link),
    /// The kernel has discarded notifications: query all interfaces again.
    Missed,
}

impl LinkMonitor {
    /// Starts to listen in this thread's network namespace.
    ///
    /// # Errors
    ///
    /// The error of the netlink socket.
    pub fn open() -> Result<Self, CallError> {
        const RTMGRP_LINK: u32 = 1;
        let open = || -> io::Result<OwnedFd> {
            let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
            let socket = socket_with(AddressFamily::NETLINK, SocketType::RAW, flags, None)?;
            bind(&socket, &SocketAddrNetlink::new(0, RTMGRP_LINK))?;
            Ok(socket)
        };
        let socket =
            open().map_err(|error| CallError::new("listen for interface events (rtnetlink)", error))?;
        Ok(Self { socket, buffer: vec![0; DATAGRAM] })
    }

    /// Passes the changes since the last call to `each`, in order. Does not wait.
    ///
    /// # Errors
    ///
    /// The error of the netlink socket.
    pub fn changes(&mut self, mut each: impl FnMut(LinkChange)) -> Result<(), CallError> {
        loop {
            let received = match recv(&self.socket, self.buffer.as_mut_slice(), RecvFlags::empty()) {
                Ok((_, received)) => received,
                Err(Errno::AGAIN) => return Ok(()),
                Err(Errno::INTR) => continue,
                Err(Errno::NOBUFS) => {
                    each(LinkChange::Missed);
                    continue;
                }
                Err(error) => return Err(CallError::new("receive interface events (rtnetlink)", error)),
            };
            let mut rest = self.buffer.get(..received).unwrap_or_default();
            while let Some((message, next)) = split(rest) {
                rest = next;
                match (message.kind, parse_link(message.payload)) {
                    (RTM_NEWLINK, Some(link)) => each(LinkChange::Is(link)),
                    (RTM_DELLINK, Some(link)) => each(LinkChange::Gone(link)),
                    _ => {}
                }
            }
        }
    }
}

impl AsFd for LinkMonitor {
    /// Returns the descriptor, which is readable after a change.
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }
}
