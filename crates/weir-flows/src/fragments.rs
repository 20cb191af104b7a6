//! Ports of later fragments, which only the first of a datagram has.

use std::collections::HashMap;
use std::mem;

use foldhash::fast::RandomState;

/// The most datagrams that are kept in each of two generations; the older one makes room.
const MOST: usize = 4096;

/// What all fragments of a datagram have in common, between these ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Datagram {
    pub(crate) from: [u8; 16],
    pub(crate) to: [u8; 16],
    pub(crate) identification: u32,
    pub(crate) protocol: u8,
}

/// Ports of datagrams whose first fragment was seen lately.
#[derive(Debug, Default)]
pub(crate) struct Fragments {
    young: HashMap<Datagram, [u16; 2], RandomState>,
    old: HashMap<Datagram, [u16; 2], RandomState>,
}

impl Fragments {
    /// Keeps the ports of a datagram.
    pub(crate) fn keep(&mut self, datagram: Datagram, ports: [u16; 2]) {
        if self.young.len() >= MOST {
            self.old = mem::take(&mut self.young);
        }
        self.young.insert(datagram, ports);
    }

    /// Returns the ports of a datagram.
    pub(crate) fn ports(&self, datagram: &Datagram) -> Option<[u16; 2]> {
        self.young.get(datagram).or_else(|| self.old.get(datagram)).copied()
    }
}
