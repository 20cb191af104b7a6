//! The dimensions of a pool, and what its words mean.

use crate::shared::CLOSED;
#[cfg(not(loom))]
use crate::shared::Order;

/// The smallest record: a pcapng Enhanced Packet Block without data.
pub(crate) const RECORD_MIN: u32 = 32;
/// Most bytes that a record takes in addition to the packet's data: 28 before the data, 3 of padding, a drop count
/// option with the end of options, and the closing length.
const RECORD_OVERHEAD: u32 = 28 + 3 + 16 + 4;
/// Page size. Chunks begin on a page boundary, so that they can be written to a file directly.
const PAGE: u32 = 4096;

/// A commit word: bytes, records, and whether the chunk is closed, in one 64-bit store.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Commit {
    pub(crate) bytes: u32,
    pub(crate) records: u32,
    pub(crate) closed: bool,
}

impl Commit {
    pub(crate) fn to_word(self) -> u64 {
        u64::from(self.records) << 32 | u64::from(self.bytes) | if self.closed { CLOSED } else { 0 }
    }

    pub(crate) fn from_word(word: u64) -> Self {
        Self { bytes: (word & (CLOSED - 1)) as u32, records: (word >> 32) as u32, closed: word & CLOSED != 0 }
    }
}

/// A queue's counters, as kept by the kernel program. All except `bytes` count packets.
#[cfg(not(loom))]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counters {
    /// Packets that reached the program.
    pub seen: u64,
    /// Packets written as records.
    pub captured: u64,
    /// Original bytes of the captured packets.
    pub bytes: u64,
    /// Packets that found no empty chunk.
    pub lost: u64,
    /// Packets that could not be read.
    pub errors: u64,
    /// Packets that did not match the filter.
    pub filtered: u64,
    /// Packets that sampling did not select.
    pub sampled_out: u64,
    /// Packets of flows that were counted and not copied.
    pub counted: u64,
    /// With steering or sampling by flow, later fragments of datagrams whose first fragment was not seen.
    pub orphans: u64,
}

/// The dimensions of a pool.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Shape {
    queues: u32,
    chunks: u32,
    limit: u32,
    stride: u32,
}

/// Dimensions that no pool can have.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ShapeError {
    /// There is no queue to write to.
    #[error("a pool needs at least one queue")]
    NoQueues,
    /// With a single chunk nothing can be captured while it is being read.
    #[error("{0} chunks a queue are too few: one is read while another is filled, so 2 is the least")]
    TooFewChunks(u32),
    /// Chunk size outside of what an offset can hold.
    #[error("a chunk of {0} bytes is out of range: 4 KiB to 1 GiB")]
    ChunkSize(u32),
    /// There are more chunks than the kernel's 32-bit indices reach.
    #[error("{queues} queues of {chunks} chunks are too many")]
    TooMany {
        /// Queues requested.
        queues: u32,
        /// Chunks requested per queue.
        chunks: u32,
    },
}

impl Shape {
    /// Returns the dimensions for `queues` queues with `chunks` chunks each. Records begin in the first `chunk_size`
    /// bytes of a chunk; after these is room for the rest of the largest record, which holds `largest` bytes of data.
    ///
    /// # Errors
    ///
    /// Tells which dimension no pool can have.
    pub fn new(queues: u32, chunks: u32, chunk_size: u32, largest: u32) -> Result<Self, ShapeError> {
        const GIB: u32 = 1 << 30;
        if queues == 0 {
            return Err(ShapeError::NoQueues);
        }
        if chunks < 2 {
            return Err(ShapeError::TooFewChunks(chunks));
        }
        if !(PAGE..=GIB).contains(&chunk_size) || largest >= GIB / 2 {
            return Err(ShapeError::ChunkSize(chunk_size));
        }
        // Kernel array maps have 32-bit indices, and a ring has a power of two of at most 2^20 slots.
        if chunks > 1 << 20 || queues.checked_mul(chunks).is_none_or(|all| all > 1 << 24) {
            return Err(ShapeError::TooMany { queues, chunks });
        }
        let stride = (chunk_size + largest + RECORD_OVERHEAD).next_multiple_of(PAGE);
        Ok(Self { queues, chunks, limit: chunk_size, stride })
    }

    /// Returns dimensions smaller than [`Shape::new`] allows, for models that must stay small.
    #[cfg(all(test, loom))]
    pub(crate) fn with_measures(queues: u32, chunks: u32, limit: u32) -> Self {
        Self { queues, chunks, limit, stride: limit + RECORD_MIN }
    }

    /// Returns the number of queues, each with its own rings and chunks.
    pub fn queues(&self) -> u32 {
        self.queues
    }

    /// Returns the number of chunks per queue.
    pub fn chunks(&self) -> u32 {
        self.chunks
    }

    /// Returns the number of chunks in all queues.
    pub fn chunks_total(&self) -> u32 {
        self.queues * self.chunks
    }

    /// Returns the offset in a chunk, in bytes, below which a record may begin.
    pub fn limit(&self) -> u32 {
        self.limit
    }

    /// Returns the bytes from one chunk to the next, a multiple of the page size.
    pub fn stride(&self) -> u32 {
        self.stride
    }

    /// Returns the slots in each of a queue's rings: a power of two, at least as many as chunks (R6).
    pub fn slots(&self) -> u32 {
        self.chunks.next_power_of_two()
    }

    /// Returns the bytes of one queue's orders, including the slots.
    #[cfg(not(loom))]
    pub fn order_bytes(&self) -> u32 {
        u32::try_from(size_of::<Order>()).expect("64 bytes") + 2 * 8 * self.slots()
    }

    /// Returns the bytes of chunk memory in all queues.
    pub fn data_bytes(&self) -> u64 {
        u64::from(self.chunks_total()) * u64::from(self.stride)
    }

    /// Returns the queue that owns a chunk.
    pub(crate) fn home(&self, chunk: u32) -> u32 {
        chunk / self.chunks
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn a_commit_word_carries_its_three_parts(bytes in 0u32..1 << 31, records: u32, closed: bool) {
            let commit = Commit { bytes, records, closed };
            prop_assert_eq!(Commit::from_word(commit.to_word()), commit);
        }
    }

    #[test]
    fn all_parts_of_shared_memory_have_their_size() {
        let shape = Shape::new(3, 5, 4096, 60).unwrap();
        assert_eq!((shape.slots(), shape.order_bytes()), (8, 192));
        assert_eq!((shape.queues(), shape.chunks(), shape.chunks_total()), (3, 5, 15));
        assert_eq!(shape.data_bytes(), 15 * 8192);
        assert_eq!([0, 4, 5, 14].map(|chunk| shape.home(chunk)), [0, 0, 1, 2]);
    }

    #[test]
    fn the_last_record_always_fits() {
        for largest in (3980..4080).chain([1, 60, 1514, 65549, 262_144]) {
            for limit in 4096..4104 {
                let shape = Shape::new(1, 2, limit, largest).unwrap();
                // Records begin at multiples of 4.
                let end = (limit.next_multiple_of(4) - 4) + largest.next_multiple_of(4) + 32 + 16;
                assert!(shape.stride() >= end, "{limit} {largest}");
                assert!(shape.stride() <= (end + 8).next_multiple_of(PAGE), "{limit} {largest}");
                assert_eq!(shape.stride() % PAGE, 0);
            }
        }
    }

    #[test]
    fn absurd_measures_are_refused() {
        assert_eq!(Shape::new(0, 2, 4096, 60), Err(ShapeError::NoQueues));
        assert_eq!(Shape::new(1, 1, 4096, 60), Err(ShapeError::TooFewChunks(1)));
        assert_eq!(Shape::new(1, 2, 0, 60), Err(ShapeError::ChunkSize(0)));
        assert_eq!(Shape::new(1, 2, u32::MAX, 60), Err(ShapeError::ChunkSize(u32::MAX)));
        assert_eq!(
            Shape::new(1 << 20, 1 << 20, 4096, 60),
            Err(ShapeError::TooMany { queues: 1 << 20, chunks: 1 << 20 })
        );
    }

    #[test]
    fn measures_are_refused_beyond_their_limits() {
        const GIB: u32 = 1 << 30;
        let size = |chunk_size, largest| Shape::new(1, 2, chunk_size, largest);
        assert_eq!(size(4096, GIB / 2 - 1).map(|shape| shape.limit()), Ok(4096));
        assert_eq!(size(4096, GIB / 2), Err(ShapeError::ChunkSize(4096)));
        assert_eq!(size(GIB, 60).map(|shape| shape.limit()), Ok(GIB));
        assert_eq!(size(GIB + 1, 60), Err(ShapeError::ChunkSize(GIB + 1)));
        assert_eq!(size(4095, 60), Err(ShapeError::ChunkSize(4095)));
        let many = |queues, chunks| Shape::new(queues, chunks, 4096, 60).map(|shape| shape.chunks_total());
        assert_eq!(many(16, 1 << 20), Ok(1 << 24));
        let (queues, chunks) = (17, 1 << 20);
        assert_eq!(many(queues, chunks), Err(ShapeError::TooMany { queues, chunks }));
        let (queues, chunks) = (1, (1 << 20) + 1);
        assert_eq!(many(queues, chunks), Err(ShapeError::TooMany { queues, chunks }));
    }
}
