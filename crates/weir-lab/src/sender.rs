//! Any frame, one by one.

use weir_sys::rawsend::RawSender;

use crate::{Error, LinkCounters, Port};

/// Sends whole frames through a packet socket: slow, but of any content and any length that the MTU allows.
///
/// They pass the network stack's way out, so the receiver's stack takes VLAN tags out of them as from any device.
#[derive(Debug)]
pub struct FrameSender {
    port: Port,
    socket: RawSender,
}

impl FrameSender {
    /// Opens the socket.
    ///
    /// # Errors
    ///
    /// No privilege (`CAP_NET_RAW`).
    pub fn new(port: &Port) -> Result<Self, Error> {
        Ok(Self { port: port.clone(), socket: port.netns.run(|| RawSender::open(port.index))? })
    }

    /// Sends one frame, from its destination address to the end of its payload.
    ///
    /// # Errors
    ///
    /// It is longer than the MTU allows, or the interface is down.
    pub fn send(&self, frame: &[u8]) -> Result<(), Error> {
        Ok(self.socket.send(frame)?)
    }

    /// Sends frames and gives how many of them the peer took. While this lasts, nobody else may send there.
    ///
    /// # Errors
    ///
    /// As [`send`](Self::send); the frames before the bad one are sent.
    pub fn send_frames(&self, frames: &[Vec<u8>]) -> Result<u64, Error> {
        let before = LinkCounters::read(&self.port)?;
        frames.iter().try_for_each(|frame| self.send(frame))?;
        Ok(LinkCounters::read(&self.port)?.tx_packets - before.tx_packets)
    }
}
