//! Classic BPF in the kernel: a filter on one end of a pair of unix datagram sockets.

use std::io;
use std::os::unix::net::UnixDatagram;

use weir_sys::packet;

use crate::Instruction;

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
        let program: Vec<_> =
            instructions.iter().map(|&(code, jt, jf, k)| packet::Instruction { code, jt, jf, k }).collect();
        packet::attach_filter(&receiver, &program)
            .map_err(|error| io::Error::from_raw_os_error(error.errno()))?;
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
