//! What a handler receives at once.

use std::sync::Arc;

use weir_ring::{Lease, Taken};

use crate::chunk::{Chunk, Packet, Packets};

/// The packets of a chunk that one handler receives: all of them, or, if the order of flows is kept
/// ([`crate::Order::Flow`]), those of its flows.
///
/// They are in order of arrival. Dropping the share means that it is done: then packets of the same flows may go to
/// another handler.
#[derive(Debug)]
pub struct Share {
    what: What,
    /// Ends when dropped. Declared after the chunk, so that the chunk goes back first.
    _lease: Option<Lease<Arc<Chunk>>>,
}

#[derive(Debug)]
enum What {
    Chunk(Chunk),
    /// The offsets of records in a chunk that others have shares of.
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

    /// Returns the number of packets.
    pub fn len(&self) -> usize {
        match &self.what {
            What::Chunk(chunk) => chunk.len(),
            What::Records(_, records) => records.len(),
        }
    }

    /// Returns whether there are no packets, which only happens after [`Share::keep_first`] with 0.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Returns the number of the interface in the capture.
    pub fn interface(&self) -> u32 {
        self.chunk().interface()
    }

    /// Returns the queue that received the packets.
    pub fn queue(&self) -> u32 {
        self.chunk().queue()
    }

    /// Returns the chunk if the share is all of it.
    pub fn whole(&self) -> Option<&Chunk> {
        match &self.what {
            What::Chunk(chunk) => Some(chunk),
            What::Records(..) => None,
        }
    }

    /// Returns the packets in order of arrival.
    pub fn packets(&self) -> SharePackets<'_> {
        SharePackets(match &self.what {
            What::Chunk(chunk) => Walk::All(chunk.packets()),
            What::Records(chunk, records) => Walk::Some(chunk, records.iter()),
        })
    }

    /// Keeps the first `packets` packets; the others are counted as discarded instead of delivered.
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

/// An iterator over the packets of a share.
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
