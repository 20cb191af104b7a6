//! Sending frames.

use std::io::IoSlice;
use std::os::fd::OwnedFd;

use rustix::net::{MMsgHdr, SendAncillaryBuffer, SendFlags, send, sendmmsg, sockopt};

use super::socket::{bind_as, packet_socket, set};
use crate::CallError;

/// `linux/if_packet.h`.
const PACKET_VNET_HDR: libc::c_int = 15;

/// A packet socket that sends frames through an interface, and receives none.
#[derive(Debug)]
pub struct Sender(pub(super) OwnedFd);

impl Sender {
    /// Opens a socket for the interface with this index.
    ///
    /// # Errors
    ///
    /// `EPERM`: without `CAP_NET_RAW`. `ENODEV`: no such interface.
    pub fn new(interface: u32) -> Result<Self, CallError> {
        let socket = packet_socket()?;
        bind_as(&socket, Some(interface), 0)?;
        Ok(Self(socket))
    }

    /// Marks everything that is sent from now on (`SO_MARK`): programs and filters see the number with the packet until
    /// it leaves this network namespace.
    ///
    /// # Errors
    ///
    /// `EPERM`: without `CAP_NET_RAW` or `CAP_NET_ADMIN` in the user namespace of the network namespace.
    pub fn mark(&self, mark: u32) -> Result<(), CallError> {
        set(&self.0, libc::SOL_SOCKET, libc::SO_MARK, &mark)
            .map_err(|error| CallError::new("mark the packets of a socket", error))
    }

    /// Lets frames begin with a `struct virtio_net_hdr` (`PACKET_VNET_HDR`), which says how the kernel or the device is to cut
    /// them into segments.
    ///
    /// # Errors
    ///
    /// The error of `setsockopt(2)`.
    pub fn expect_offloads(&self) -> Result<(), CallError> {
        set(&self.0, libc::SOL_PACKET, PACKET_VNET_HDR, &1)
            .map_err(|error| CallError::new("let a packet socket send super-frames", error))
    }

    /// Returns the socket's cookie (`SO_COOKIE`, Linux 4.12), which no other socket of this host has.
    ///
    /// # Errors
    ///
    /// The error of `getsockopt(2)`.
    pub fn cookie(&self) -> Result<u64, CallError> {
        sockopt::socket_cookie(&self.0).map_err(|error| CallError::new("get a socket's cookie", error))
    }

    /// Sends a frame with its link-layer header; returns the bytes sent.
    ///
    /// # Errors
    ///
    /// The error of `send(2)`: `EMSGSIZE` beyond the MTU, `EINVAL` without a whole header, `ENETDOWN`, `ENOBUFS`.
    pub fn send(&self, frame: &[u8]) -> rustix::io::Result<usize> {
        send(&self.0, frame, SendFlags::empty())
    }

    /// Sends frames with one call, in this order; returns how many were sent, at least one. Waits for room in the
    /// socket's buffer.
    ///
    /// # Errors
    ///
    /// As [`send`](Self::send), of the first frame. An error of a later one is returned by the next call that begins
    /// with it.
    pub fn send_many<'a>(&self, frames: impl Iterator<Item = &'a [u8]>) -> rustix::io::Result<usize> {
        let slices: Vec<IoSlice<'a>> = frames.map(IoSlice::new).collect();
        let mut none: Vec<_> = slices.iter().map(|_| SendAncillaryBuffer::default()).collect();
        let mut messages: Vec<_> =
            slices.chunks(1).zip(&mut none).map(|(slice, none)| MMsgHdr::new(slice, none)).collect();
        sendmmsg(&self.0, &mut messages, SendFlags::empty())
    }
}
