//! Messages between a program and the process that finds names: addresses there, names back.

use std::io::{self, IoSlice};
use std::net::{IpAddr, Ipv6Addr, SocketAddr};
use std::os::fd::AsFd;

use rustix::io::{read, retry_on_intr};
use rustix::net::{SendAncillaryBuffer, SendFlags, sendmsg};
use serde::{Deserialize, Serialize};

/// Longest message.
pub(super) const LONGEST: usize = 4096;

const ADDRESS: usize = 16;

/// The first message, before any address.
#[derive(Debug, Default, Serialize, Deserialize)]
pub(super) struct Began {
    /// Why the process is not confined, and ends.
    pub(super) refused: Option<String>,
    /// Both ends of each of its sockets: itself, and a server.
    pub(super) sockets: Vec<(SocketAddr, SocketAddr)>,
    /// Why there are no sockets.
    pub(super) unreachable: Option<String>,
}

/// Returns the message that asks for the name of an address.
pub(super) fn ask(address: IpAddr) -> [u8; ADDRESS] {
    match address {
        IpAddr::V4(address) => address.to_ipv6_mapped().octets(),
        IpAddr::V6(address) => address.octets(),
    }
}

/// Returns the message that answers [`ask`]. `None`: the address has no name.
pub(super) fn answer(address: IpAddr, name: Option<&str>) -> Vec<u8> {
    [&ask(address)[..], name.unwrap_or_default().as_bytes()].concat()
}

/// Returns the address in a message, and what follows it.
pub(super) fn address(message: &[u8]) -> Option<(IpAddr, &[u8])> {
    let (address, rest) = message.split_first_chunk::<ADDRESS>()?;
    Some((IpAddr::V6(Ipv6Addr::from(*address)).to_canonical(), rest))
}

/// Sends a message, unless there is no room for it.
pub(super) fn send(socket: impl AsFd, message: &[u8]) -> io::Result<()> {
    let flags = SendFlags::NOSIGNAL | SendFlags::DONTWAIT;
    let mut nothing = SendAncillaryBuffer::default();
    retry_on_intr(|| sendmsg(&socket, &[IoSlice::new(message)], &mut nothing, flags))?;
    Ok(())
}

/// Receives a message; an empty one: the other side has ended.
pub(super) fn receive(socket: impl AsFd, buffer: &mut [u8; LONGEST]) -> io::Result<&[u8]> {
    let len = retry_on_intr(|| read(&socket, &mut buffer[..]))?;
    Ok(&buffer[..len])
}
