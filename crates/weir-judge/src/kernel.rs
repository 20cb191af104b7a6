//! Classic BPF in the kernel: a filter on one of a pair of unix datagram sockets.

use std::io;
use std::os::unix::net::UnixDatagram;

use weir_sys::packet;

use crate::Instruction;

/// A filter attached to a socket (`SO_ATTACH_FILTER`, socket(7)).
///
/// A datagram between unix sockets is filtered and queued before `send` returns (`unix_dgram_sendmsg`), so if none can
/// be read afterwards, the filter rejected it. Such a packet has no metadata: its protocol and type are 0, it has no
/// tag, and a program that reads its interface rejects it.
#[derive(Debug)]
pub struct KernelFilter {
    sender: UnixDatagram,
    receiver: UnixDatagram,
}

impl KernelFilter {
    /// Attaches `instructions` to a socket.
    ///
    /// # Errors
    ///
    /// The kernel rejects the program (`EINVAL`), or there are too many open descriptors.
    pub fn attach(instructions: &[Instruction]) -> io::Result<Self> {
        let (sender, receiver) = UnixDatagram::pair()?;
        receiver.set_nonblocking(true)?;
        let program: Vec<_> =
            instructions.iter().map(|&(code, jt, jf, k)| packet::Instruction { code, jt, jf, k }).collect();
        packet::attach_filter(&receiver, &program)
            .map_err(|error| io::Error::from_raw_os_error(error.errno()))?;
        Ok(Self { sender, receiver })
    }

    /// Returns the number of bytes of `packet` that the filter accepts; `None` if it rejects the packet.
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
