//! What a handler of packets on their way gets, and says.

use weir_sys::xsk::Frame;

/// What becomes of a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// It goes on, as it is now.
    Forward,
    /// It ends here.
    Drop,
    /// It goes to this host's stack, as it is now, as if nobody had taken it. That copies it, and takes a system call in another
    /// thread: for the few packets that are for the host itself, ARP among them. A filter spares the many the way here.
    ///
    /// It takes Linux 5.18 and `CAP_SYS_ADMIN`; without the latter each takes tens of milliseconds. Packets that find
    /// [no room](super::ForwardTally::no_room) are lost, and so are those beyond some 3500 bytes ([errors](super::ForwardTally::errors)).
    Stack,
}

/// Looks at each packet of one receive queue, and may change it, in a thread without privileges.
pub trait Handler: Send + 'static {
    /// What becomes of `packet`.
    fn packet(&mut self, packet: &mut Packet<'_, '_>) -> Verdict;
}

impl<F: FnMut(&mut Packet<'_, '_>) -> Verdict + Send + 'static> Handler for F {
    fn packet(&mut self, packet: &mut Packet<'_, '_>) -> Verdict {
        self(packet)
    }
}

/// A receive queue, whose packets have a handler of their own.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Lane {
    /// Its way: 0 from the first interface to the second, 1 back.
    pub way: usize,
    /// Its number on the interface that receives.
    pub queue: u32,
}

/// A packet on its way: from its Ethernet header on, VLAN tags included.
#[derive(Debug)]
pub struct Packet<'a, 'memory> {
    frame: &'a mut Frame<'memory>,
    changed: bool,
}

impl<'a, 'memory> Packet<'a, 'memory> {
    pub(super) fn new(frame: &'a mut Frame<'memory>) -> Self {
        Self { frame, changed: false }
    }

    pub(super) fn is_changed(&self) -> bool {
        self.changed
    }

    /// Its bytes.
    pub fn data(&self) -> &[u8] {
        self.frame.bytes()
    }

    /// Its bytes, to be changed: it counts as changed from here on.
    pub fn data_mut(&mut self) -> &mut [u8] {
        self.changed = true;
        self.frame.bytes_mut()
    }

    /// Begins it `count` bytes earlier, and gives these, which hold anything; `None`: there is no room (256 bytes).
    pub fn grow_head(&mut self, count: usize) -> Option<&mut [u8]> {
        self.changed = true;
        self.frame.grow_head(count)
    }

    /// Takes its first `count` bytes off, or all if it has fewer.
    pub fn shrink_head(&mut self, count: usize) {
        self.changed = true;
        self.frame.shrink_head(count);
    }

    /// Ends it `count` bytes later, and gives these, which hold anything; `None`: there is no room.
    pub fn grow_tail(&mut self, count: usize) -> Option<&mut [u8]> {
        self.changed = true;
        self.frame.grow_tail(count)
    }

    /// Keeps its first `length` bytes, or all if it has fewer.
    pub fn truncate(&mut self, length: usize) {
        self.changed = true;
        self.frame.truncate(length);
    }
}
