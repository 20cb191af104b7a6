//! What happens to interfaces, as the kernel tells it while it happens.

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

/// Hears of the interfaces of the namespace in which it was opened.
#[derive(Debug)]
pub struct LinkMonitor {
    socket: OwnedFd,
    buffer: Vec<u8>,
}

/// What was heard.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum LinkChange {
    /// There is this interface, and it is like this now.
    Is(Link),
    /// It is gone, or has gone to another namespace; its counters are the last.
    Gone(Link),
    /// More has happened than the kernel has kept for us: look at everything anew.
    Missed,
}

impl LinkMonitor {
    /// Listens, in this thread's network namespace, from now on.
    ///
    /// # Errors
    ///
    /// What the netlink socket says.
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

    /// Gives what has been heard since the last time to `each`, in its order; does not wait.
    ///
    /// # Errors
    ///
    /// What the netlink socket says.
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
    /// Readable when something has happened.
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }
}
