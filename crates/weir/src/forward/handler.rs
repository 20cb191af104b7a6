//! The interface of handlers of forwarded packets.

use weir_sys::xsk::Frame;

/// What to do with a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Verdict {
    /// Forward it as it is now.
    Forward,
    /// Drop it.
    Drop,
    /// Pass it to this host's stack as it is now, as if it had not been taken. The packet is copied, and another thread
    /// makes a system call. This is meant for the few packets addressed to the host itself, including ARP; a filter
    /// keeps most others away from the handler.
    ///
    /// Requires Linux 5.18, and `CAP_SYS_ADMIN`, without which each packet takes tens of milliseconds. Packets are lost
    /// if there is [no room](super::ForwardCounters::no_room), or if they exceed about 3500 bytes
    /// ([errors](super::ForwardCounters::errors)).
    Stack,
}

/// A function that inspects, and may change, each packet of one receive queue, in a thread without privileges.
pub trait ForwardHandler: Send + 'static {
    /// Decides what to do with `packet`.
    fn packet(&mut self, packet: &mut ForwardPacket<'_, '_>) -> Verdict;
}

impl<F: FnMut(&mut ForwardPacket<'_, '_>) -> Verdict + Send + 'static> ForwardHandler for F {
    fn packet(&mut self, packet: &mut ForwardPacket<'_, '_>) -> Verdict {
        self(packet)
    }
}

/// A receive queue with its own handler.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub struct ForwardLane {
    /// The direction: 0 from the first interface to the second, 1 back.
    pub direction: usize,
    /// The number of the queue on the receiving interface.
    pub queue: u32,
}

/// A packet being forwarded, from its Ethernet header, including VLAN tags.
#[derive(Debug)]
pub struct ForwardPacket<'a, 'memory> {
    frame: &'a mut Frame<'memory>,
    changed: bool,
}

impl<'a, 'memory> ForwardPacket<'a, 'memory> {
    pub(super) fn new(frame: &'a mut Frame<'memory>) -> Self {
        Self { frame, changed: false }
    }

    pub(super) fn is_changed(&self) -> bool {
        self.changed
    }

    /// Returns the bytes of the packet.
    pub fn data(&self) -> &[u8] {
        self.frame.bytes()
    }

    /// Returns the bytes of the packet for writing, and counts it as changed.
    pub fn data_mut(&mut self) -> &mut [u8] {
        self.changed = true;
        self.frame.bytes_mut()
    }

    /// Adds `count` bytes with arbitrary contents at the front, and returns them; `None`: no room (256 bytes at most).
    pub fn grow_head(&mut self, count: usize) -> Option<&mut [u8]> {
        self.changed = true;
        self.frame.grow_head(count)
    }

    /// Removes the first `count` bytes, or all if there are fewer.
    pub fn shrink_head(&mut self, count: usize) {
        self.changed = true;
        self.frame.shrink_head(count);
    }

    /// Adds `count` bytes with arbitrary contents at the end, and returns them; `None`: no room.
    pub fn grow_tail(&mut self, count: usize) -> Option<&mut [u8]> {
        self.changed = true;
        self.frame.grow_tail(count)
    }

    /// Keeps the first `length` bytes, or all if there are fewer.
    pub fn truncate(&mut self, length: usize) {
        self.changed = true;
        self.frame.truncate(length);
    }
}
