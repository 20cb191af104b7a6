//! Classic BPF in the kernel: a filter on one end of a pair of unix datagram sockets.

use std::io;
use std::os::fd::AsRawFd;
use std::os::unix::net::UnixDatagram;

use crate::{Instruction, raw};

/// A filter that the kernel has taken (`SO_ATTACH_FILTER`, socket(7)).
///
/// A datagram between unix sockets is filtered and queued before `send` returns (`unix_dgram_sendmsg`), so what cannot be
/// read then was refused. Beside the bytes the kernel knows nothing of such a packet: its protocol and type are 0, it has
/// no tag, and to ask for its interface refuses it.
#[derive(Debug)]
pub struct KernelFilter {
    sender: UnixDatagram,
    receiver: UnixDatagram,
}

impl KernelFilter {
    /// Hands `instructions` to the kernel.
    ///
    /// # Errors
    ///
    /// The kernel does not take the program (`EINVAL`), or there are too many descriptors.
    pub fn attach(instructions: &[Instruction]) -> io::Result<Self> {
        let (sender, receiver) = UnixDatagram::pair()?;
        receiver.set_nonblocking(true)?;
        let mut program = raw(instructions);
        let length = u16::try_from(program.len()).map_err(|_| io::Error::from_raw_os_error(libc::EINVAL))?;
        let program = libc::sock_fprog { len: length, filter: program.as_mut_ptr() };
        let size = libc::socklen_t::try_from(size_of::<libc::sock_fprog>()).expect("the structure is small");
        // SAFETY: the kernel reads `program`, of `size` bytes, and the `len` instructions it points at, which live in the
        // vector above until the end of this function; it keeps neither pointer.
        let status = unsafe {
            libc::setsockopt(
                receiver.as_raw_fd(),
                libc::SOL_SOCKET,
                libc::SO_ATTACH_FILTER,
                (&raw const program).cast(),
                size,
            )
        };
        if status != 0 {
            return Err(io::Error::last_os_error());
        }
        Ok(Self { sender, receiver })
    }

    /// How many bytes of `packet` the filter lets through; `None` if it refuses the packet.
    ///
    /// # Errors
    ///
    /// The packet is too long for a datagram.
    pub fn run(&self, packet: &[u8]) -> io::Result<Option<usize>> {
        self.sender.send(packet)?;
        let mut buffer = vec![0; packet.len().max(1)];
        match self.receiver.recv(&mut buffer) {
            Ok(length) => Ok(Some(length)),
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => Ok(None),
            Err(error) => Err(error),
        }
    }
}
