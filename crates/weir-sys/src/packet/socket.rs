//! Packet sockets and their options.

use std::io;
use std::mem::size_of;
use std::os::fd::{AsFd, AsRawFd, OwnedFd};

use rustix::net::{AddressFamily, SocketFlags, SocketType, socket_with};

use crate::CallError;

/// Opens a packet socket. It receives nothing until it has a protocol, and then packets with their link-layer header.
pub(super) fn packet_socket() -> Result<OwnedFd, CallError> {
    socket_with(AddressFamily::PACKET, SocketType::RAW, SocketFlags::CLOEXEC, None)
        .map_err(|error| CallError::new("open a packet socket", error))
}

/// Binds a socket to all protocols, on one interface or on all.
pub(super) fn bind(socket: &OwnedFd, interface: Option<u32>) -> Result<(), CallError> {
    bind_as(socket, interface, u16::try_from(libc::ETH_P_ALL).expect("a small number"))
}

/// Binds a socket to `protocol`, on one interface or on all.
pub(super) fn bind_as(socket: &OwnedFd, interface: Option<u32>, protocol: u16) -> Result<(), CallError> {
    const ALL: libc::c_int = 0;
    let mut address = link_layer_address();
    address.sll_protocol = protocol.to_be();
    address.sll_ifindex = interface.map_or(Ok(ALL), index)?;
    // SAFETY: the kernel reads the bytes of `address`.
    let result = unsafe {
        libc::bind(socket.as_raw_fd(), (&raw const address).cast(), option_length::<libc::sockaddr_ll>())
    };
    match result {
        0 => Ok(()),
        _ => Err(CallError::last(match interface {
            Some(interface) => format!("bind a packet socket to interface {interface}"),
            None => "bind a packet socket to all interfaces".to_owned(),
        })),
    }
}

pub(super) fn link_layer_address() -> libc::sockaddr_ll {
    libc::sockaddr_ll {
        sll_family: u16::try_from(libc::AF_PACKET).expect("a small number"),
        sll_protocol: 0,
        sll_ifindex: 0,
        sll_hatype: 0,
        sll_pkttype: 0,
        sll_halen: 0,
        sll_addr: [0; 8],
    }
}

pub(super) fn index(interface: u32) -> Result<libc::c_int, CallError> {
    libc::c_int::try_from(interface).map_err(|_| {
        CallError::new(format!("find interface {interface}"), io::Error::from_raw_os_error(libc::ENODEV))
    })
}

pub(super) fn set<T>(socket: &impl AsFd, level: libc::c_int, name: libc::c_int, value: &T) -> io::Result<()> {
    // SAFETY: the kernel reads the bytes of `value`. A pointer in it refers to memory that the caller borrows.
    let result = unsafe {
        libc::setsockopt(
            socket.as_fd().as_raw_fd(),
            level,
            name,
            std::ptr::from_ref(value).cast(),
            option_length::<T>(),
        )
    };
    if result < 0 { Err(io::Error::last_os_error()) } else { Ok(()) }
}

pub(super) fn option_length<T>() -> libc::socklen_t {
    libc::socklen_t::try_from(size_of::<T>()).expect("options are small")
}
