//! Sends single frames.

use rustix::io::Errno;
use weir_sys::CallError;
use weir_sys::packet::Sender;

use crate::{Error, LinkCounters, Port};

/// A sender of whole frames through a packet socket: slow, but with any contents and any length that the MTU allows.
///
/// The frames pass the transmit path of the network stack, so the receiver's stack strips their VLAN tags as with any
/// device.
#[derive(Debug)]
pub struct FrameSender {
    port: Port,
    socket: Sender,
}

impl FrameSender {
    /// Opens the socket.
    ///
    /// # Errors
    ///
    /// Missing privileges (`CAP_NET_RAW`).
    pub fn new(port: &Port) -> Result<Self, Error> {
        Ok(Self { port: port.clone(), socket: port.netns.run(|| Sender::new(port.index))? })
    }

    /// Sends a frame, from its destination address to the end of its payload. Waits for room in the socket's buffer.
    ///
    /// # Errors
    ///
    /// The frame is too long for the MTU, or the interface is down.
    pub fn send(&self, frame: &[u8]) -> Result<(), Error> {
        loop {
            match self.socket.send(frame) {
                Err(Errno::INTR) => {}
                Err(error) => {
                    let what = format!("send a frame of {} bytes on `{}`", frame.len(), self.port.name);
                    return Err(CallError::new(what, error).into());
                }
                Ok(_) => return Ok(()),
            }
        }
    }

    /// Sends frames and returns how many of them the peer accepted. Nothing else may send on the port meanwhile.
    ///
    /// # Errors
    ///
    /// As [`send`](Self::send); the frames before the invalid one have been sent.
    pub fn send_frames(&self, frames: &[Vec<u8>]) -> Result<u64, Error> {
        let before = LinkCounters::read(&self.port)?;
        frames.iter().try_for_each(|frame| self.send(frame))?;
        Ok(LinkCounters::read(&self.port)?.tx_packets - before.tx_packets)
    }
}
