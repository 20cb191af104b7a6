//! What a handler is given at once.

use std::sync::Arc;

use weir_ring::{Lease, Taken};

use crate::chunk::{Chunk, Packet, Packets};

/// The packets of one chunk that one handler is given: all of them, or where the order of flows is kept
/// ([`crate::Order::Flow`]), those of its flows. They are in the order in which they came. Dropped, it is done: packets
/// of the same flows may then be given to another handler.
#[derive(Debug)]
pub struct Share {
    what: What,
    /// Done when dropped; behind the chunk, so that this is back by then.
    _lease: Option<Lease<Arc<Chunk>>>,
}

#[derive(Debug)]
enum What {
    Chunk(Chunk),
    /// Where the records begin in a chunk that others have shares in.
    Records(Arc<Chunk>, Box<[u32]>),
}

impl Share {
    pub(super) fn of_chunk(chunk: Chunk, lease: Option<Lease<Arc<Chunk>>>) -> Self {
        Self { what: What::Chunk(chunk), _lease: lease }
    }

    pub(super) fn of_strands(taken: Taken<Arc<Chunk>>) -> Self {
        let Taken { what, places, lease } = taken;
        let what = match places {
            Some(places) => What::Records(what, places.into()),
            None => What::Chunk(Arc::into_inner(what).expect("what is not divided has one holder")),
        };
        Self { what, _lease: Some(lease) }
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
        Self::of_chunk(chunk, None)
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
