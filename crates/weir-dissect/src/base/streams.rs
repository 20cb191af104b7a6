//! Initial sequence numbers of TCP connections, for relative numbers.

use std::collections::HashMap;

use weir_packet::{Endpoint, Flow, FlowDirection, protocol};

/// Connections in one generation; two of them take about 12 MiB of memory.
const GENERATION: usize = 1 << 16;

/// Connections by their two ends in a fixed order. When a generation is full, the previous one is forgotten, which
/// limits the memory for a file with any number of connections. A connection in use moves to the new generation.
#[derive(Debug, Default)]
pub(crate) struct Streams {
    young: Generation,
    old: Generation,
}

type Generation = HashMap<Flow, Start>;

/// The initial sequence numbers: of the lower end, and of the other.
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

impl Streams {
    /// Returns the offsets for a segment with ACK. For a new connection (`syn`, or seen for the first time) they are
    /// zero, so that the first segment has absolute numbers, and the given numbers are stored. The second value is the
    /// offset for selective acknowledgements, which applies from the first segment on.
    pub(crate) fn relative(
        &mut self,
        from: Endpoint,
        to: Endpoint,
        syn: bool,
        sequence: u32,
        acknowledgement: u32,
    ) -> (Relative, u32) {
        let (flow, direction) = Flow::between(protocol::TCP, from, to);
        let reverse = direction == FlowDirection::Down;
        let known = self.find(&flow).filter(|_| !syn);
        let start = known.unwrap_or_else(|| {
            let peer = acknowledgement.wrapping_sub(1);
            let start = if reverse {
                Start { low: peer, high: sequence }
            } else {
                Start { low: sequence, high: peer }
            };
            self.insert(flow, start);
            start
        });
        let (own, peer) = if reverse { (start.high, start.low) } else { (start.low, start.high) };
        let relative = match known {
            Some(_) => Relative { sequence: own, acknowledgement: peer },
            None => Relative::default(),
        };
        (relative, peer)
    }

    fn find(&mut self, flow: &Flow) -> Option<Start> {
        if let Some(start) = self.young.get(flow) {
            return Some(*start);
        }
        let start = *self.old.get(flow)?;
        self.insert(*flow, start);
        Some(start)
    }

    fn insert(&mut self, flow: Flow, start: Start) {
        if self.young.len() == GENERATION {
            self.old = std::mem::take(&mut self.young);
        }
        self.young.insert(flow, start);
    }
}
