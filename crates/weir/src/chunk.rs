//! Chunks and the packets in them.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};

use weir_ring::Part;
use weir_savefile::Notes;
use weir_savefile::record::{self, Malformed, Records};

/// Bytes kept of each packet, as in tcpdump.
pub const DEFAULT_SNAP_LEN: u32 = 262_144;

/// A run of captured packets, in the memory to which the kernel wrote them. Dropping it, on any thread, returns that
/// memory to the pool. Only a capture (feature `live`) makes any.
#[derive(Debug)]
pub struct Chunk {
    part: Part,
    lane: Arc<Lane>,
}

/// State shared by all chunks of a queue. The counters are updated by whoever takes and cuts chunks, and count packets
/// unless noted.
#[derive(Debug)]
pub(crate) struct Lane {
    pub(crate) interface: u32,
    pub(crate) queue: u32,
    /// `LINKTYPE_*`.
    pub(crate) link_type: u16,
    /// The direction of all packets, if the source sees only one.
    pub(crate) direction: Option<Direction>,
    /// Packets are lost only while no chunk is open, so that only the first record of a chunk can tell of any.
    pub(crate) begins_with_losses: bool,
    /// Delivered to the handler: added by [`Chunk::new`].
    pub(crate) delivered: AtomicU64,
    /// Moved here from `delivered` by [`Chunk::keep_first`].
    pub(crate) discarded: AtomicU64,
    /// Highest number of closed chunks that waited at once.
    pub(crate) most_ready: AtomicU32,
    /// Nanoseconds from the start until a chunk was last taken.
    pub(crate) watched: AtomicU64,
    /// Nanoseconds that closed chunks waited during that time, summed over all chunks.
    pub(crate) waited: AtomicU64,
    /// Chunks taken by handlers of other queues.
    pub(crate) offloaded: AtomicU64,
}

impl Lane {
    pub(crate) fn new(interface: u32, queue: u32, link_type: u16, direction: Option<Direction>) -> Self {
        Self {
            interface,
            queue,
            link_type,
            direction,
            begins_with_losses: false,
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

    /// Takes the chunk apart. Its packets do not count as delivered until a chunk is made of them again.
    pub(crate) fn hold_back(self) -> (Part, Arc<Lane>) {
        self.lane.delivered.fetch_sub(u64::from(self.part.records()), Ordering::Relaxed);
        (self.part, self.lane)
    }

    /// Returns the records: a run of pcapng Enhanced Packet Blocks in native byte order. Their interface IDs are those
    /// of [`crate::Capture::interfaces`].
    pub fn bytes(&self) -> &[u8] {
        self.part.as_ref()
    }

    /// Returns the number of packets.
    pub fn len(&self) -> usize {
        self.part.records() as usize
    }

    /// Whether the chunk has no packets, which happens only after [`Chunk::keep_first`] with 0.
    pub fn is_empty(&self) -> bool {
        self.part.records() == 0
    }

    /// Returns the number of the interface in the capture.
    pub fn interface(&self) -> u32 {
        self.lane.interface
    }

    /// Returns the queue of the packets.
    pub fn queue(&self) -> u32 {
        self.lane.queue
    }

    /// Iterates over the packets, in the order in which they arrived.
    pub fn packets(&self) -> Packets<'_> {
        Packets::of(self.bytes(), &self.lane)
    }

    /// Returns the number of lost packets that its records tell of.
    pub(crate) fn lost(&self) -> u64 {
        let most = if self.begins_with_losses() { 1 } else { usize::MAX };
        Records::new(self.bytes()).take(most).flatten().map(|record| record.dropcount).sum()
    }

    /// Returns whether only its first record can tell of losses.
    pub(crate) fn begins_with_losses(&self) -> bool {
        self.lane.begins_with_losses
    }

    /// Returns the state of its queue.
    pub(crate) fn lane(&self) -> &Arc<Lane> {
        &self.lane
    }

    /// Returns the packet whose record begins at byte `place`, and where the next record begins; `None` at the end, or
    /// if the pool's memory was overwritten. With this, an owner of the chunk can stop after any packet and go on later.
    #[inline]
    pub fn packet_from(&self, place: usize) -> Option<(Packet<'_>, usize)> {
        let mut records = Records::new(self.bytes().get(place..)?);
        let record = records.next()?.ok()?;
        Some((self.lane.packet(&record), place + records.offset()))
    }

    /// Keeps the first `packets` packets. The rest count as discarded, no longer as delivered.
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

    /// Counts this many of its packets as discarded, no longer as delivered.
    pub(crate) fn discard(&self, packets: u64) {
        self.lane.delivered.fetch_sub(packets, Ordering::Relaxed);
        self.lane.discarded.fetch_add(packets, Ordering::Relaxed);
    }

    /// Iterates over the packets, with the offset of each record.
    pub(crate) fn places(&self) -> impl Iterator<Item = (u32, Packet<'_>)> {
        let mut packets = self.packets();
        std::iter::from_fn(move || {
            let place = u32::try_from(packets.records.offset()).ok()?;
            Some((place, packets.next()?))
        })
    }

    /// Returns the packet whose record begins at offset `place`.
    pub(crate) fn packet_at(&self, place: usize) -> Option<Packet<'_>> {
        self.packet_from(place).map(|(packet, _)| packet)
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

/// The direction of the packets to capture, as seen from the host.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Direction {
    /// Received packets.
    In,
    /// Sent packets.
    Out,
    /// Both, if the source sees both.
    #[default]
    Both,
}

impl Direction {
    /// Returns the direction in `epb_flags`.
    #[inline]
    pub(crate) fn of_flags(flags: u32) -> Option<Self> {
        match flags & record::DIRECTION {
            record::INBOUND => Some(Self::In),
            record::OUTBOUND => Some(Self::Out),
            _ => None,
        }
    }
}

/// A packet: a view of its record. For writing, [`Packet::new`] makes one whose fields can then be set.
#[derive(Clone, Copy, Debug, Default)]
#[non_exhaustive]
pub struct Packet<'a> {
    /// The captured bytes, from the link-layer header on.
    pub data: &'a [u8],
    /// Nanoseconds since the Unix epoch; 0 if there is no timestamp.
    pub timestamp: u64,
    /// Length on the wire in bytes: more than `data` has if the snap length cut the packet.
    pub original_len: u32,
    /// Number of the interface in the capture.
    pub interface: u32,
    /// The packet's queue, numbered as in [`crate::QueueStats::queue`].
    pub queue: u32,
    /// [`Direction::In`] or [`Direction::Out`], if the source knows.
    pub direction: Option<Direction>,
    /// Packets lost on this queue between the previous packet and this one.
    pub lost_before: u64,
    /// The packet's comment in a file; the last one if there are several.
    pub comment: Option<&'a str>,
    /// Other information about the packet in a file, in its original form: all comments, hashes, how it was received.
    /// It is kept when the packet is written to pcapng.
    pub notes: Notes<'a>,
}

impl<'a> Packet<'a> {
    /// Makes a packet of the first interface, of which nothing was cut off: its time in nanoseconds since the Unix epoch, and its
    /// bytes from the link-layer header on.
    pub fn new(timestamp: u64, data: &'a [u8]) -> Self {
        let original_len = u32::try_from(data.len()).unwrap_or(u32::MAX);
        Self { data, timestamp, original_len, ..Self::default() }
    }
}

/// An iterator over the packets of a chunk. It ends early if the pool's memory was overwritten; see [`Packets::error`].
#[derive(Clone, Debug)]
pub struct Packets<'a> {
    records: Records<'a>,
    lane: &'a Lane,
    error: Option<Malformed>,
}

impl<'a> Packets<'a> {
    /// Iterates over `records` of the queue `lane`.
    pub(crate) fn of(records: &'a [u8], lane: &'a Lane) -> Self {
        Self { records: Records::new(records), lane, error: None }
    }

    /// Returns why the iteration ended before the end of the chunk.
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
