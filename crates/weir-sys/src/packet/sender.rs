//! Sending frames.

use std::os::fd::OwnedFd;

use rustix::net::{SendFlags, send, sockopt};

use super::socket::{bind_as, packet_socket};
use crate::CallError;

/// A packet socket that sends frames through an interface, and receives none.
#[derive(Debug)]
pub struct Sender(OwnedFd);

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
}
