//! Chunks and the packets in them.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};

use weir_ring::Part;
use weir_savefile::Notes;
use weir_savefile::record::{self, Malformed, Records};

use crate::Direction;

/// A run of captured packets, in the memory to which the kernel wrote them. Dropping it gives that memory back to the
/// pool; any thread may.
#[derive(Debug)]
pub struct Chunk {
    part: Part,
    lane: Arc<Lane>,
}

/// What the chunks of one queue have in common. Counters: packets; written by whoever takes and cuts chunks.
#[derive(Debug)]
pub(crate) struct Lane {
    pub(crate) interface: u32,
    pub(crate) queue: u32,
    /// `LINKTYPE_*`.
    pub(crate) link_type: u16,
    /// The direction of all packets, where the source sees only one.
    pub(crate) direction: Option<Direction>,
    /// Handed to the handler, at [`Chunk::new`].
    pub(crate) delivered: AtomicU64,
    /// Taken back out of `delivered`, at [`Chunk::keep_first`].
    pub(crate) discarded: AtomicU64,
    /// Closed chunks that waited at once, at most.
    pub(crate) most_ready: AtomicU32,
    /// Nanoseconds up to when a chunk was taken last.
    pub(crate) watched: AtomicU64,
    /// And for which closed chunks have waited in these, the sum of all.
    pub(crate) waited: AtomicU64,
    /// Chunks that were taken by handlers of other queues.
    pub(crate) offloaded: AtomicU64,
}

impl Lane {
    pub(crate) fn new(interface: u32, queue: u32, link_type: u16, direction: Option<Direction>) -> Self {
        Self {
            interface,
            queue,
            link_type,
            direction,
            delivered: AtomicU64::new(0),
            discarded: AtomicU64::new(0),
            most_ready: AtomicU32::new(0),
            watched: AtomicU64::new(0),
            waited: AtomicU64::new(0),
            offloaded: AtomicU64::new(0),
        }
    }

    #[inline]
    fn packet<'a>(&self, record: &record::Record<'a>) -> Packet<'a> {
        Packet {
            data: record.data,
            timestamp: record.timestamp,
            original_len: record.original_len,
            interface: record.interface,
            queue: self.queue,
            direction: record.flags.and_then(Direction::of_flags).or(self.direction),
            lost_before: record.dropcount,
            comment: None,
            notes: Notes::default(),
        }
    }
}

impl Chunk {
    pub(crate) fn new(part: Part, lane: Arc<Lane>) -> Self {
        lane.delivered.fetch_add(u64::from(part.records()), Ordering::Relaxed);
        Self { part, lane }
    }

    /// Takes it apart. Its packets do not count as delivered, until a chunk is made of them again.
    pub(crate) fn hold_back(self) -> (Part, Arc<Lane>) {
        self.lane.delivered.fetch_sub(u64::from(self.part.records()), Ordering::Relaxed);
        (self.part, self.lane)
    }

    /// The records: a run of pcapng Enhanced Packet Blocks in native byte order, whose interface ids are those of
    /// [`crate::Capture::interfaces`].
    pub fn bytes(&self) -> &[u8] {
        self.part.as_ref()
    }

    /// Packets.
    pub fn len(&self) -> usize {
        self.part.records() as usize
    }

    /// Whether there are none: only after [`Chunk::keep_first`] of none.
    pub fn is_empty(&self) -> bool {
        self.part.records() == 0
    }

    /// Number of the interface in the capture.
    pub fn interface(&self) -> u32 {
        self.lane.interface
    }

    /// The queue that they came on.
    pub fn queue(&self) -> u32 {
        self.lane.queue
    }

    /// The packets, in the order in which they came.
    pub fn packets(&self) -> Packets<'_> {
        Packets { records: Records::new(self.bytes()), lane: &self.lane, error: None }
    }

    /// Keeps the first `packets` packets; the rest count as discarded, no longer as delivered.
    pub fn keep_first(&mut self, packets: usize) {
        if packets >= self.len() {
            return;
        }
        let all = self.part.records();
        let keep = u32::try_from(packets).unwrap_or(u32::MAX).min(all);
        let bytes = record::first_records(self.bytes(), keep as usize);
        self.part.truncate(bytes, keep);
        self.discard(u64::from(all - keep));
    }

    /// So many of its packets count as discarded, no longer as delivered.
    pub(crate) fn discard(&self, packets: u64) {
        self.lane.delivered.fetch_sub(packets, Ordering::Relaxed);
        self.lane.discarded.fetch_add(packets, Ordering::Relaxed);
    }

    /// The packets, and where their records begin.
    pub(crate) fn places(&self) -> impl Iterator<Item = (u32, Packet<'_>)> {
        let mut packets = self.packets();
        std::iter::from_fn(move || {
            let place = u32::try_from(packets.records.offset()).ok()?;
            Some((place, packets.next()?))
        })
    }

    /// The packet whose record begins at `place`.
    pub(crate) fn packet_at(&self, place: usize) -> Option<Packet<'_>> {
        let record = Records::new(self.bytes().get(place..)?).next()?.ok()?;
        Some(self.lane.packet(&record))
    }
}

impl AsRef<[u8]> for Chunk {
    fn as_ref(&self) -> &[u8] {
        self.bytes()
    }
}

impl<'a> IntoIterator for &'a Chunk {
    type Item = Packet<'a>;
    type IntoIter = Packets<'a>;

    fn into_iter(self) -> Packets<'a> {
        self.packets()
    }
}

impl Direction {
    /// From `epb_flags`.
    #[inline]
    pub(crate) fn of_flags(flags: u32) -> Option<Self> {
        match flags & record::DIRECTION {
            record::INBOUND => Some(Self::In),
            record::OUTBOUND => Some(Self::Out),
            _ => None,
        }
    }
}

/// One packet: a view of a record.
#[derive(Clone, Copy, Debug)]
pub struct Packet<'a> {
    /// What was kept of the packet, from its link-layer header on.
    pub data: &'a [u8],
    /// Nanoseconds since the Unix epoch; 0: none.
    pub timestamp: u64,
    /// Bytes that it had on the wire; more than `data` has if the snap length cut it.
    pub original_len: u32,
    /// Number of the interface in the capture.
    pub interface: u32,
    /// The queue that it came on, as [`crate::QueueAccount::queue`] counts them.
    pub queue: u32,
    /// [`Direction::In`] or [`Direction::Out`], where the source knows.
    pub direction: Option<Direction>,
    /// Packets lost on this queue between the packet before and this one.
    pub lost_before: u64,
    /// What somebody has written to it in a file; of several texts the last.
    pub comment: Option<&'a str>,
    /// What else a file says of it, as it stands there: all comments, hashes, how it was received. A packet that is written to
    /// pcapng takes it along.
    pub notes: Notes<'a>,
}

/// The packets of a chunk. Ends early if the pool's memory was overwritten: see [`Packets::error`].
#[derive(Clone, Debug)]
pub struct Packets<'a> {
    records: Records<'a>,
    lane: &'a Lane,
    error: Option<Malformed>,
}

impl Packets<'_> {
    /// Why the iteration ended before the chunk did.
    pub fn error(&self) -> Option<&Malformed> {
        self.error.as_ref()
    }
}

impl<'a> Iterator for Packets<'a> {
    type Item = Packet<'a>;

    #[inline]
    fn next(&mut self) -> Option<Packet<'a>> {
        let record = match self.records.next()? {
            Ok(record) => record,
            Err(error) => {
                self.error = Some(error);
                return None;
            }
        };
        Some(self.lane.packet(&record))
    }
}
