//! First sequence numbers of TCP connections, so that lines can tell relative ones.

use std::collections::HashMap;
use std::net::IpAddr;

/// Connections remembered in one generation: about 12 MiB of memory for both.
const GENERATION: usize = 1 << 16;

/// Connections, by both ends in a fixed order. When a generation is full the one before is forgotten, so that a file
/// with any number of connections needs no more memory; a connection in use moves on to the new one.
#[derive(Debug, Default)]
pub(crate) struct Streams {
    young: Generation,
    old: Generation,
}

type Generation = HashMap<Key, Start>;

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
struct Key {
    addresses: [u128; 2],
    ports: u32,
}

/// What relative numbers count from: of the end with the smaller port, and of the other.
#[derive(Clone, Copy, Debug)]
struct Start {
    low: u32,
    high: u32,
}

/// What to subtract from absolute numbers in a packet.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Relative {
    /// From sequence numbers.
    pub(crate) sequence: u32,
    /// From acknowledgement numbers.
    pub(crate) acknowledgement: u32,
}

/// One end of a connection.
pub(crate) type End = (IpAddr, u16);

impl Streams {
    /// The numbers that those of a segment with ACK are relative to; zeroes, and what is given is remembered, if the
    /// connection is new (`syn`, or never seen): the first segment is shown as it is. The second value is what numbers
    /// in selective acknowledgements are relative to, known from the first segment on.
    pub(crate) fn relative(
        &mut self,
        from: End,
        to: End,
        syn: bool,
        sequence: u32,
        acknowledgement: u32,
    ) -> (Relative, u32) {
        let reverse = (from.1, from.0) > (to.1, to.0);
        let (low, high) = if reverse { (to, from) } else { (from, to) };
        let key = Key {
            addresses: [low.0, high.0].map(|address| match address {
                IpAddr::V4(address) => u128::from(u32::from(address)),
                IpAddr::V6(address) => u128::from(address),
            }),
            ports: u32::from(low.1) << 16 | u32::from(high.1),
        };
        let known = self.find(&key).filter(|_| !syn);
        let start = known.unwrap_or_else(|| {
            let peer = acknowledgement.wrapping_sub(1);
            let start = if reverse {
                Start { low: peer, high: sequence }
            } else {
                Start { low: sequence, high: peer }
            };
            self.insert(key, start);
            start
        });
        let (own, peer) = if reverse { (start.high, start.low) } else { (start.low, start.high) };
        let relative = match known {
            Some(_) => Relative { sequence: own, acknowledgement: peer },
            None => Relative::default(),
        };
        (relative, peer)
    }

    fn find(&mut self, key: &Key) -> Option<Start> {
        if let Some(start) = self.young.get(key) {
            return Some(*start);
        }
        let start = *self.old.get(key)?;
        self.insert(*key, start);
        Some(start)
    }

    fn insert(&mut self, key: Key, start: Start) {
        if self.young.len() == GENERATION {
            self.old = std::mem::take(&mut self.young);
        }
        self.young.insert(key, start);
    }
}
