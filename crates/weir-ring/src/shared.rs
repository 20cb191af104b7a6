//! What a pool's two sides share besides the chunks' bytes. This is also in `crates/weir-bpf/bpf` (`pool/pool.h`, `shared.h`), and
//! weir-bpf does not compile if they differ there.

use crate::sync::{AtomicI64, AtomicU32, AtomicU64};

/// A type that memory shared with another process or the kernel can hold.
///
/// # Safety
///
/// Any bytes are a value of it, and all of it can be accessed through a shared reference while the other side stores to
/// it: it is made of atomics.
#[cfg(not(loom))]
pub(crate) unsafe trait Shared {}

#[cfg(not(loom))]
macro_rules! shared {
    ($($name:ty),*) => {
        // SAFETY: all its fields are integer atomics, or arrays of them.
        $(unsafe impl Shared for $name {})*
    };
}

#[cfg(not(loom))]
shared!(AtomicU64, Progress, Queue, Order, WayKey, Way);

/// The bit of [`Progress::commit`] that says that the chunk is closed.
pub const CLOSED: u64 = 1 << 31;

/// Progress of one chunk. The producer writes it, the consumer reads it. 64 bytes, so that a consumer polling the open chunk
/// shares no cache line with anything else that is written per packet.
#[derive(Debug, Default)]
#[repr(C)]
pub struct Progress {
    /// 1 + how many chunks the queue opened before this one. Stored before `commit` is.
    pub position: AtomicU64,
    /// Bytes of whole records, whether the chunk is closed, and records: one store a packet.
    pub commit: AtomicU64,
    /// Fills the cache lines.
    pub unused: [AtomicU64; 6],
}

/// One producer's state: its open chunk and its counters. The kernel program writes it; the process only reads.
///
/// A [`Producer`](crate::Producer) keeps its state to itself, and publishes `opened`, `chunk` and `warm` here.
#[derive(Debug, Default)]
#[repr(C)]
pub struct Queue {
    /// Chunks taken from the rings since the capture began.
    pub opened: AtomicU64,
    /// The open chunk's index in the pool.
    pub chunk: AtomicU32,
    /// Bytes of records in it; if it is the limit or more, no chunk is open.
    pub offset: AtomicU32,
    /// Records in it.
    pub records: AtomicU32,
    /// The next packet's target with round-robin steering.
    pub turn: AtomicU32,
    /// Bytes of records since the capture began; compared with [`Order::wake_at`].
    pub written: AtomicU64,
    /// Packets that reached the program.
    pub seen: AtomicU64,
    /// Packets written as records.
    pub captured: AtomicU64,
    /// Their original lengths.
    pub bytes: AtomicU64,
    /// Packets lost since the last record.
    pub lost_before: AtomicU64,
    /// Packets that found no empty chunk.
    pub lost: AtomicU64,
    /// Packets that could not be read.
    pub errors: AtomicU64,
    /// The last reading of the clock.
    pub stamp: AtomicU64,
    /// The tick of that reading.
    pub jiffy: AtomicU64,
    /// Packets stamped in that tick.
    pub stamped: AtomicU64,
    /// Chunks opened from the warm ring.
    pub warm: AtomicU64,
    /// Packets that did not match the filter.
    pub filtered: AtomicU64,
    /// Where flows matter: later fragments whose first fragment was not seen.
    pub orphans: AtomicU64,
    /// With sampling: packets that could have been selected.
    pub turns: AtomicU64,
    /// With sampling: packets that were not selected.
    pub sampled_out: AtomicU64,
    /// Packets of flows that were counted and not copied.
    pub counted: AtomicU64,
    /// Fills the cache lines.
    pub unused: [AtomicU64; 5],
}

/// The process's instructions to one producer, followed by its rings. The process writes, the kernel program only reads,
/// except for `wake_at`, which it exchanges when it rings.
#[derive(Debug, Default)]
#[repr(C)]
pub struct Order {
    /// Ring the doorbell once [`Queue::written`] reaches this; `u64::MAX`: do not ring.
    pub wake_at: AtomicU64,
    /// Nanoseconds from the program's clock to the Unix epoch.
    pub clock_offset: AtomicI64,
    /// Fills the cache lines.
    pub unused: [AtomicU64; 6],
    /// The slots of the warm ring, and then of the cold: high half 1 + position, low half the chunk's index.
    pub slots: [AtomicU64; 0],
}

/// Which flow a [`Way`] is of, and in which direction.
#[derive(Debug, Default)]
#[repr(C)]
pub struct WayKey {
    /// Address of the source as on the wire; one of IPv4 is in the low half of the first word.
    pub source: [AtomicU64; 2],
    /// Address of the destination.
    pub destination: [AtomicU64; 2],
    /// From the lowest bit: ports of source and destination as on the wire, 16 bits each; 1 + the VLAN ID or 0, 16 bits; protocol
    /// and version of IP, 8 bits each. 0: nothing is here.
    pub rest: AtomicU64,
}

/// One direction of a flow, as a kernel program counts it. It writes all but what is taken, which the process writes.
#[derive(Debug, Default)]
#[repr(C)]
pub struct Way {
    /// Which flow.
    pub key: WayKey,
    /// Time of the first packet that was counted and not taken yet.
    pub first: AtomicU64,
    /// Behind the last byte that was sent (TCP).
    pub next: AtomicU32,
    /// Segments sent again, since the capture began, whatever flow was here.
    pub retransmissions: AtomicU32,
    /// Segments that announce no room, likewise.
    pub zero_windows: AtomicU32,
    /// The program's own; bit 8: `next` is known.
    pub state: AtomicU32,
    /// Packets counted, likewise.
    pub packets: AtomicU64,
    /// Bytes of their IP packets, likewise.
    pub bytes: AtomicU64,
    /// Odd while the program changes anything that is read here.
    pub version: AtomicU64,
    /// Time of the last packet.
    pub last: AtomicU64,
    /// Of those not taken yet: the shortest, and in the high half the longest.
    pub lengths: AtomicU32,
    /// Of those not taken yet: TCP flags, least TTL, greatest TTL, TOS, a byte each from the lowest.
    pub marks: AtomicU32,
    /// So many of `packets` were taken.
    pub taken: AtomicU64,
    /// Of `bytes`.
    pub taken_bytes: AtomicU64,
    /// Of `retransmissions`.
    pub taken_retransmissions: AtomicU32,
    /// Of `zero_windows`.
    pub taken_zero_windows: AtomicU32,
}
