//! Sending single frames through a packet socket.

use std::io;
use std::os::fd::{AsRawFd, OwnedFd};

use rustix::net::{AddressFamily, SendFlags, SocketFlags, SocketType, send, socket_with};

use crate::CallError;

const PACKET: libc::sa_family_t = 17;
const LENGTH: libc::socklen_t = 20;
const _: () = assert!(libc::AF_PACKET == 17 && size_of::<libc::sockaddr_ll>() == 20);

/// A packet socket that sends on one interface and receives nothing.
#[derive(Debug)]
pub struct RawSender {
    socket: OwnedFd,
    ifindex: i32,
}

impl RawSender {
    /// Opens a socket on interface `ifindex` in the calling thread's namespace. Needs `CAP_NET_RAW`.
    ///
    /// # Errors
    ///
    /// `EPERM` without that capability, `ENODEV` without that interface.
    pub fn open(ifindex: u32) -> Result<Self, CallError> {
        let ifindex = i32::try_from(ifindex).expect("the kernel numbers interfaces with positive ints");
        // Protocol 0: no packet is received.
        let socket = socket_with(AddressFamily::PACKET, SocketType::RAW, SocketFlags::CLOEXEC, None)
            .map_err(|error| CallError::new("open a packet socket (requires CAP_NET_RAW)", error))?;
        let address = libc::sockaddr_ll {
            sll_family: PACKET,
            sll_protocol: 0,
            sll_ifindex: ifindex,
            sll_hatype: 0,
            sll_pkttype: 0,
            sll_halen: 0,
            sll_addr: [0; 8],
        };
        // SAFETY: `address` is a sockaddr_ll of LENGTH bytes, which the kernel only reads.
        let result = unsafe { libc::bind(socket.as_raw_fd(), (&raw const address).cast(), LENGTH) };
        if result < 0 {
            return Err(CallError::last(format!("bind a packet socket to interface {ifindex}")));
        }
        Ok(Self { socket, ifindex })
    }

    /// Sends one frame, from its destination address to the end of its payload. Waits for room in the socket's buffer.
    ///
    /// # Errors
    ///
    /// `EMSGSIZE`: too long for the interface's MTU. `ENETDOWN`: the interface is down. `ENOBUFS`: the interface has no
    /// room.
    pub fn send(&self, frame: &[u8]) -> Result<(), CallError> {
        loop {
            match send(&self.socket, frame, SendFlags::empty()) {
                Err(error) if io::Error::from(error).kind() == io::ErrorKind::Interrupted => {}
                Err(error) => {
                    let what = format!("send a frame of {} bytes on interface {}", frame.len(), self.ifindex);
                    return Err(CallError::new(what, error));
                }
                Ok(_) => return Ok(()),
            }
        }
    }
}
