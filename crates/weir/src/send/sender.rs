//! The sender.

use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use super::destination::Destination;
use super::error::{SendError, Sent};
use super::outlet::{Backend, Outlet};
use super::pace::Pace;
use super::queue::SendQueue;
use super::transmission::{Report, Transmission};

/// Sends packets through an interface. See the [module](super).
#[derive(Debug)]
pub struct Sender {
    outlet: Outlet,
}

impl Sender {
    pub(super) fn new(outlet: Outlet) -> Self {
        Self { outlet }
    }

    /// Returns the interface.
    pub fn destination(&self) -> &Destination {
        &self.outlet.destination
    }

    /// Returns how packets reach the kernel.
    pub fn backend(&self) -> Backend {
        self.outlet.backend()
    }

    /// Returns a flag that ends the call that is sending, and all later ones, once another thread or a signal handler
    /// sets it. The call returns what it has sent until then.
    pub fn stop_flag(&self) -> Arc<AtomicBool> {
        Arc::clone(&self.outlet.stop)
    }

    /// Sends a packet.
    ///
    /// # Errors
    ///
    /// See [`SendReason`](super::SendReason).
    pub fn send(&mut self, packet: &[u8]) -> Result<Sent, SendError> {
        self.repeat(packet, 1)
    }

    /// Sends the same packet so many times.
    ///
    /// # Errors
    ///
    /// See [`SendReason`](super::SendReason).
    pub fn repeat(&mut self, packet: &[u8], times: u64) -> Result<Sent, SendError> {
        let mut transmission = self.begin(Pace::Top);
        for _ in 0..times {
            if !transmission.packet(None, packet)? {
                break;
            }
        }
        Ok(transmission.finish()?.sent)
    }

    /// Sends the packets of a queue.
    ///
    /// # Errors
    ///
    /// See [`SendReason`](super::SendReason).
    pub fn transmit(&mut self, queue: &SendQueue, pace: Pace) -> Result<Report, SendError> {
        let mut transmission = self.begin(pace);
        for (time, packet) in queue.iter() {
            if !transmission.packet(time, packet)? {
                break;
            }
        }
        transmission.finish()
    }

    /// Starts to send packets that come one by one.
    pub fn begin(&mut self, pace: Pace) -> Transmission<'_> {
        Transmission::new(&mut self.outlet, pace)
    }
}
