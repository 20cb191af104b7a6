//! What a handler is given at once.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use weir_ring::Turn;

use super::seat::Seat;
use crate::chunk::{Chunk, Packet, Packets};

/// The packets of one chunk that one handler is given: all of them, or where the order of flows is kept
/// ([`crate::Order::Flow`]), those of its flows. They are in the order in which they came. Dropped, it is done: packets
/// of the same flows may then be given to another handler.
#[derive(Debug)]
pub struct Share {
    what: What,
    /// Done when dropped; behind the chunk, so that this is back by then.
    turn: Option<Turn>,
    owed: Option<Owed>,
}

#[derive(Debug)]
enum What {
    Chunk(Chunk),
    /// Where the records begin in a chunk that others have shares in.
    Records(Arc<Chunk>, Box<[u32]>),
}

/// Packets that a handler still has to do. It owes them until this is dropped.
#[derive(Debug)]
pub(super) struct Owed {
    seat: Arc<Seat>,
    packets: u64,
}

impl Owed {
    pub(super) fn new(seat: &Arc<Seat>, packets: u64) -> Self {
        // Relaxed: a measure, by which work is divided.
        seat.owed.fetch_add(packets, Ordering::Relaxed);
        Self { seat: Arc::clone(seat), packets }
    }
}

impl Drop for Owed {
    fn drop(&mut self) {
        self.seat.owed.fetch_sub(self.packets, Ordering::Relaxed);
    }
}

impl Share {
    pub(super) fn of_chunk(chunk: Chunk, turn: Turn) -> Self {
        Self { what: What::Chunk(chunk), turn: Some(turn), owed: None }
    }

    pub(super) fn of_records(chunk: &Arc<Chunk>, records: Vec<u32>, turn: Turn, owed: Owed) -> Self {
        let what = What::Records(Arc::clone(chunk), records.into());
        Self { what, turn: Some(turn), owed: Some(owed) }
    }

    /// Gives it to another handler.
    pub(super) fn pass_on(&mut self, seat: &Arc<Seat>) {
        self.owed = Some(Owed::new(seat, self.len() as u64));
    }

    /// Whether all that it has to come after is done.
    pub(super) fn has_come(&self) -> bool {
        self.turn.as_ref().is_none_or(Turn::has_come)
    }

    fn chunk(&self) -> &Chunk {
        match &self.what {
            What::Chunk(chunk) => chunk,
            What::Records(chunk, _) => chunk,
        }
    }

    /// Packets.
    pub fn len(&self) -> usize {
        match &self.what {
            What::Chunk(chunk) => chunk.len(),
            What::Records(_, records) => records.len(),
        }
    }

    /// Whether there are none: only after [`Share::keep_first`] of none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Number of the interface in the capture.
    pub fn interface(&self) -> u32 {
        self.chunk().interface()
    }

    /// The queue that they came on.
    pub fn queue(&self) -> u32 {
        self.chunk().queue()
    }

    /// The chunk, where all of it is given.
    pub fn whole(&self) -> Option<&Chunk> {
        match &self.what {
            What::Chunk(chunk) => Some(chunk),
            What::Records(..) => None,
        }
    }

    /// The packets, in the order in which they came.
    pub fn packets(&self) -> SharePackets<'_> {
        SharePackets(match &self.what {
            What::Chunk(chunk) => Walk::All(chunk.packets()),
            What::Records(chunk, records) => Walk::Some(chunk, records.iter()),
        })
    }

    /// Keeps the first `packets` packets; the rest count as discarded, no longer as delivered.
    pub fn keep_first(&mut self, packets: usize) {
        match &mut self.what {
            What::Chunk(chunk) => chunk.keep_first(packets),
            What::Records(chunk, records) if packets < records.len() => {
                chunk.discard((records.len() - packets) as u64);
                *records = records[..packets].into();
            }
            What::Records(..) => {}
        }
    }
}

impl From<Chunk> for Share {
    fn from(chunk: Chunk) -> Self {
        Self { what: What::Chunk(chunk), turn: None, owed: None }
    }
}

/// The packets of a share.
#[derive(Clone, Debug)]
pub struct SharePackets<'a>(Walk<'a>);

#[derive(Clone, Debug)]
enum Walk<'a> {
    All(Packets<'a>),
    Some(&'a Chunk, std::slice::Iter<'a, u32>),
}

impl<'a> Iterator for SharePackets<'a> {
    type Item = Packet<'a>;

    #[inline]
    fn next(&mut self) -> Option<Packet<'a>> {
        match &mut self.0 {
            Walk::All(packets) => packets.next(),
            Walk::Some(chunk, records) => chunk.packet_at(*records.next()? as usize),
        }
    }
}
