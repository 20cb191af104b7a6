//! Initial sequence numbers of TCP connections, for relative numbers.

use std::collections::HashMap;
use std::net::IpAddr;

/// Connections in one generation; two of them take about 12 MiB of memory.
const GENERATION: usize = 1 << 16;

/// Connections by their two ends in a fixed order. When a generation is full, the previous one is forgotten, which
/// limits the memory for a file with any number of connections. A connection in use moves to the new generation.
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

/// The initial sequence numbers: of the end with the smaller port, and of the other.
#[derive(Clone, Copy, Debug)]
struct Start {
    low: u32,
    high: u32,
}

/// The values to subtract from the absolute numbers in a packet.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Relative {
    /// Subtracted from sequence numbers.
    pub(crate) sequence: u32,
    /// Subtracted from acknowledgement numbers.
    pub(crate) acknowledgement: u32,
}

/// One end of a connection.
pub(crate) type End = (IpAddr, u16);

impl Streams {
    /// Returns the offsets for a segment with ACK. For a new connection (`syn`, or seen for the first time) they are
    /// zero, so that the first segment has absolute numbers, and the given numbers are stored. The second value is the
    /// offset for selective acknowledgements, which applies from the first segment on.
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
