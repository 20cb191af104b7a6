//! The pool itself: what its readers, writers and holders share.

use std::io;

use crate::layout::{
    Commit, ORDER_HEAD_WORDS, ORDER_WAKE_AT, PROGRESS_COMMIT, PROGRESS_POSITION, PROGRESS_WORDS, QUEUE_CHUNK,
    QUEUE_OPENED, QUEUE_WARM, QUEUE_WORDS, Shape,
};
use crate::reader::Reader;
use crate::sync::{Arc, AtomicU32, AtomicU64, Ordering, fence};
use crate::words::{Data, Words};
use crate::writer::Writer;

/// Shared memory of chunks, and the rings through which they come and go.
#[derive(Debug)]
pub struct Pool {
    shape: Shape,
    pub(crate) data: Data,
    /// The writer writes.
    progress: Words,
    /// The writer writes.
    queues: Words,
    /// We write; a kernel program takes `wake_at` by exchange.
    orders: Words,
    /// Ours alone: how many hold each chunk. The last one gives it back (R2).
    holders: Box<[AtomicU32]>,
    given: Box<[Queue]>,
}

/// Chunks that the warm ring holds at most, about: a few, so that what is written next is still in the caches. With all
/// chunks in one ring, frames of 1514 bytes took half as long again. Loom's models have two chunks, one for each ring.
const WARM: u64 = if cfg!(loom) { 1 } else { 4 };

/// Which of a queue's two rings.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Ring {
    /// What came back last; the writer takes from it first.
    Warm = 0,
    /// The others, for when more comes than is read.
    Cold = 1,
}

/// What we know of one queue's empty chunks.
#[derive(Debug)]
struct Queue {
    rings: [Given; 2],
    /// Chunks that the reader is through with. The reader writes.
    read: AtomicU64,
    /// Those of them that somebody still holds.
    held: AtomicU32,
}

/// The private half of a ring.
#[derive(Debug)]
struct Given {
    /// Chunks given since the beginning: the next free position.
    count: AtomicU64,
    /// What each slot was filled with, so that nothing has to be believed of shared memory (R5).
    slots: Box<[AtomicU64]>,
}

/// Where a queue's chunks are. The sum of all is the number of chunks, whenever nothing moves.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Fill {
    /// In a ring, empty.
    pub free: u32,
    /// Being written to.
    pub open: u32,
    /// Closed and not wholly read.
    pub ready: u32,
    /// Wholly read and held by handlers.
    pub held: u32,
}

/// The descriptors of the four maps that a kernel program shares (`crates/weir-bpf/src/writer.h`).
#[cfg(not(loom))]
#[derive(Debug)]
pub struct SharedMaps<'a> {
    /// Chunk data.
    pub pool: std::os::fd::BorrowedFd<'a>,
    /// One `struct progress` a chunk.
    pub chunks: std::os::fd::BorrowedFd<'a>,
    /// One `struct queue` a queue.
    pub queues: std::os::fd::BorrowedFd<'a>,
    /// One `struct order` a queue.
    pub orders: std::os::fd::BorrowedFd<'a>,
}

impl Pool {
    /// A pool whose writers are in this process.
    ///
    /// # Errors
    ///
    /// If there is no address space for it.
    pub fn private(shape: Shape) -> io::Result<(Vec<Writer>, Vec<Reader>)> {
        let pool = Arc::new(Self {
            data: Data::new(usize::try_from(shape.data_bytes()).map_err(io::Error::other)?)?,
            progress: Words::new(shape.chunks_total() as usize * PROGRESS_WORDS)?,
            queues: Words::new(shape.queues() as usize * QUEUE_WORDS)?,
            orders: Words::new(shape.queues() as usize * shape.order_words())?,
            holders: holders(shape),
            given: given(shape),
            shape,
        });
        let writers = (0..shape.queues()).map(|queue| Writer::new(Arc::clone(&pool), queue)).collect();
        Ok((writers, Self::readers(&pool)))
    }

    /// A pool whose writer is a kernel program, which must not run yet.
    ///
    /// # Errors
    ///
    /// What `mmap` says of the map that failed.
    #[cfg(not(loom))]
    pub fn shared(shape: Shape, maps: &SharedMaps<'_>) -> io::Result<Vec<Reader>> {
        use crate::layout::{PROGRESS_BYTES, QUEUE_BYTES};
        use crate::region::Region;

        let map = |fd, bytes: usize, writable| {
            Region::shared(fd, 0, bytes.next_multiple_of(rustix::param::page_size()), writable)
        };
        let queues = shape.queues() as usize;
        let pool = Arc::new(Self {
            data: Data(map(
                maps.pool,
                usize::try_from(shape.data_bytes()).map_err(io::Error::other)?,
                false,
            )?),
            progress: Words(map(maps.chunks, shape.chunks_total() as usize * PROGRESS_BYTES, false)?),
            queues: Words(map(maps.queues, queues * QUEUE_BYTES, false)?),
            orders: Words(map(maps.orders, queues * shape.order_bytes() as usize, true)?),
            holders: holders(shape),
            given: given(shape),
            shape,
        });
        Ok(Self::readers(&pool))
    }

    /// Gives every chunk to its queue's ring and makes the readers, one a queue (R1).
    fn readers(pool: &Arc<Self>) -> Vec<Reader> {
        for queue in 0..pool.shape.queues() {
            pool.wake_at(queue).store(u64::MAX, Ordering::Relaxed);
        }
        for chunk in 0..pool.shape.chunks_total() {
            pool.give(chunk);
        }
        (0..pool.shape.queues()).map(|queue| Reader::new(Arc::clone(pool), queue)).collect()
    }

    /// The pool's measures.
    pub fn shape(&self) -> Shape {
        self.shape
    }

    /// Puts an empty chunk into one of its queue's rings; called once for each time its holders fall to zero (R2).
    ///
    /// Any thread may. Two that give at once take different positions; if one is interrupted between taking its position
    /// and filling it, the writer finds that slot empty and waits there: the same as if the chunk were held for that long.
    fn give(&self, chunk: u32) {
        let queue = self.shape.home(chunk);
        let rings = &self.given[queue as usize].rings;
        // Relaxed, both, and the second is another's word: a wrong choice costs speed alone.
        let warm = rings[Ring::Warm as usize].count.load(Ordering::Relaxed);
        let taken = self.queue_word(queue, QUEUE_WARM).load(Ordering::Relaxed);
        let ring = if warm.wrapping_sub(taken) < WARM { Ring::Warm } else { Ring::Cold };
        let given = &rings[ring as usize];
        // AcqRel, with itself in other threads: whoever takes a position has seen everything that happened before the
        // earlier ones were taken, so the chunk that was in this slot a lap ago has been opened (R6).
        let position = given.count.fetch_add(1, Ordering::AcqRel);
        let slot = slot_word(position, chunk);
        // Release, with the load in `chunk_at`.
        given.slots[self.slot(position)].store(slot, Ordering::Release);
        // Release, with the writer's load of the slot: it must not open the chunk before we are through with it.
        self.shared_slot(queue, ring, position).store(slot, Ordering::Release);
    }

    /// The chunk that was given to `ring` as number `position`, if it was.
    pub(crate) fn chunk_at(&self, queue: u32, ring: Ring, position: u64) -> Option<u32> {
        let given = &self.given[queue as usize].rings[ring as usize];
        // Acquire, with the store in `give`.
        let (tag, chunk) = split_slot(given.slots[self.slot(position)].load(Ordering::Acquire));
        (tag == tag_of(position)).then_some(chunk)
    }

    /// The same as the writer sees it, in shared memory.
    pub(crate) fn offered(&self, queue: u32, ring: Ring, position: u64) -> Option<u32> {
        // Acquire, with the store in `give`.
        let (tag, chunk) = split_slot(self.shared_slot(queue, ring, position).load(Ordering::Acquire));
        (tag == tag_of(position)).then_some(chunk)
    }

    /// How far `chunk` has come, if it is the one that was opened as number `position`.
    pub(crate) fn progress(&self, chunk: u32, position: u64) -> Option<Commit> {
        let base = chunk as usize * PROGRESS_WORDS;
        // Acquire, with `publish(&progress->position)` in writer.h and the store in `Writer::open`: the commit word was
        // reset before, so what is loaded next is of this turn and not of the chunk's last one.
        if self.progress.get(base + PROGRESS_POSITION).load(Ordering::Acquire) != position + 1 {
            return None;
        }
        // Acquire, with `publish(&progress->commit)` in writer.h and the store in `Writer::commit`: the records are there.
        Some(Commit::from_word(self.progress.get(base + PROGRESS_COMMIT).load(Ordering::Acquire)))
    }

    pub(crate) fn set_progress_position(&self, chunk: u32, position: u64, ordering: Ordering) {
        self.progress.get(chunk as usize * PROGRESS_WORDS + PROGRESS_POSITION).store(position + 1, ordering);
    }

    pub(crate) fn set_progress_commit(&self, chunk: u32, commit: Commit, ordering: Ordering) {
        self.progress
            .get(chunk as usize * PROGRESS_WORDS + PROGRESS_COMMIT)
            .store(commit.to_word(), ordering);
    }

    /// The writer tells what it has opened: so many chunks in all, so many of them from the warm ring, this one last.
    pub(crate) fn set_opened(&self, queue: u32, opened: u64, warm: u64, chunk: u32) {
        let mut word = [0; 8];
        word[..4].copy_from_slice(&chunk.to_ne_bytes());
        self.queue_word(queue, QUEUE_CHUNK).store(u64::from_ne_bytes(word), Ordering::Relaxed);
        self.queue_word(queue, QUEUE_WARM).store(warm, Ordering::Relaxed);
        // Release, with the load in `fill`.
        self.queue_word(queue, QUEUE_OPENED).store(opened, Ordering::Release);
    }

    pub(crate) fn wake_at(&self, queue: u32) -> &AtomicU64 {
        self.order(queue, ORDER_WAKE_AT)
    }

    /// Adds a holder to a chunk that the caller holds already, or that its reader has just met.
    pub(crate) fn hold(&self, chunk: u32) {
        // Relaxed: a holder is added by somebody who holds, so the count cannot fall to zero meanwhile.
        self.holders[chunk as usize].fetch_add(1, Ordering::Relaxed);
    }

    /// Ends one hold; the last one gives the chunk back.
    pub(crate) fn release(&self, chunk: u32) {
        // Release, with the fence below in the thread that ends the last hold: its `give` comes after all reads.
        if self.holders[chunk as usize].fetch_sub(1, Ordering::Release) == 1 {
            fence(Ordering::Acquire);
            self.given[self.shape.home(chunk) as usize].held.fetch_sub(1, Ordering::Relaxed);
            self.give(chunk);
        }
    }

    /// Notes that the reader is through with a chunk of `queue`, which makes `read` in all.
    pub(crate) fn retire(&self, queue: u32, read: u64) {
        let queue = &self.given[queue as usize];
        queue.held.fetch_add(1, Ordering::Relaxed);
        // Release, with the load in `fill`.
        queue.read.store(read, Ordering::Release);
    }

    /// Where the chunks of `queue` are.
    pub(crate) fn fill(&self, queue: u32) -> Fill {
        let held = self.given[queue as usize].held.load(Ordering::Relaxed);
        // Acquire, with the store in `retire`: whoever sees a chunk read sees it given, below.
        let read = self.given[queue as usize].read.load(Ordering::Acquire);
        let given =
            self.given[queue as usize].rings.iter().map(|ring| ring.count.load(Ordering::Acquire)).sum();
        // Another's words: bounded by ours before they are used (R5).
        let opened = self.queue_word(queue, QUEUE_OPENED).load(Ordering::Acquire).clamp(read, given);
        let last = self.queue_word(queue, QUEUE_CHUNK).load(Ordering::Relaxed).to_ne_bytes();
        let last = u32::from_ne_bytes([last[0], last[1], last[2], last[3]]);
        let last = Some(last).filter(|&last| last < self.shape.chunks_total());
        let last_is_open = opened > read
            && last.and_then(|chunk| self.progress(chunk, opened - 1)).is_none_or(|commit| !commit.closed);
        let count = |chunks: u64| u32::try_from(chunks).unwrap_or(u32::MAX);
        Fill {
            free: count(given - opened),
            open: u32::from(last_is_open),
            ready: count(opened - read) - u32::from(last_is_open),
            held,
        }
    }

    #[cfg(not(loom))]
    pub(crate) fn counters(&self, queue: u32) -> crate::layout::Counters {
        use crate::layout::{
            QUEUE_BYTES_CAPTURED, QUEUE_CAPTURED, QUEUE_ERRORS, QUEUE_FILTERED, QUEUE_LOST, QUEUE_ORPHANS,
            QUEUE_SEEN,
        };
        // Relaxed: each counter is told for itself; they agree with one another once the writer has stopped.
        let word = |index| self.queue_word(queue, index).load(Ordering::Relaxed);
        crate::layout::Counters {
            seen: word(QUEUE_SEEN),
            captured: word(QUEUE_CAPTURED),
            bytes: word(QUEUE_BYTES_CAPTURED),
            lost: word(QUEUE_LOST),
            errors: word(QUEUE_ERRORS),
            filtered: word(QUEUE_FILTERED),
            orphans: word(QUEUE_ORPHANS),
        }
    }

    #[cfg(not(loom))]
    pub(crate) fn set_clock_offset(&self, queue: u32, nanoseconds: i64) {
        // Relaxed: any packet may be stamped with the old offset or the new one.
        self.order(queue, crate::layout::ORDER_CLOCK_OFFSET)
            .store(u64::from_ne_bytes(nanoseconds.to_ne_bytes()), Ordering::Relaxed);
    }

    /// Overwrites a slot of a ring in shared memory, as a broken other side would.
    #[cfg(all(test, not(loom)))]
    pub(crate) fn scribble(&self, queue: u32, slot: usize, value: u64) {
        self.order(queue, ORDER_HEAD_WORDS + slot).store(value, Ordering::Release);
    }

    /// Overwrites what the writer tells of its chunks.
    #[cfg(all(test, not(loom)))]
    pub(crate) fn scribble_queue(&self, queue: u32, value: u64) {
        for index in [QUEUE_OPENED, QUEUE_CHUNK, QUEUE_WARM] {
            self.queue_word(queue, index).store(value, Ordering::Release);
        }
    }

    fn queue_word(&self, queue: u32, index: usize) -> &AtomicU64 {
        self.queues.get(queue as usize * QUEUE_WORDS + index)
    }

    fn shared_slot(&self, queue: u32, ring: Ring, position: u64) -> &AtomicU64 {
        let ring = ring as usize * self.shape.slots() as usize;
        self.order(queue, ORDER_HEAD_WORDS + ring + self.slot(position))
    }

    fn order(&self, queue: u32, word: usize) -> &AtomicU64 {
        self.orders.get(queue as usize * self.shape.order_words() + word)
    }

    fn slot(&self, position: u64) -> usize {
        usize::try_from(position & u64::from(self.shape.slots() - 1)).expect("a slot number is below 2^20")
    }
}

fn holders(shape: Shape) -> Box<[AtomicU32]> {
    (0..shape.chunks_total()).map(|_| AtomicU32::new(0)).collect()
}

fn given(shape: Shape) -> Box<[Queue]> {
    let ring =
        || Given { count: AtomicU64::new(0), slots: (0..shape.slots()).map(|_| AtomicU64::new(0)).collect() };
    (0..shape.queues())
        .map(|_| Queue { rings: [ring(), ring()], read: AtomicU64::new(0), held: AtomicU32::new(0) })
        .collect()
}

/// The mark of a position in a slot's high half; never that of the same slot's last lap.
#[expect(clippy::cast_possible_truncation, reason = "the low half is what is wanted")]
fn tag_of(position: u64) -> u32 {
    (position + 1) as u32
}

fn slot_word(position: u64, chunk: u32) -> u64 {
    u64::from(tag_of(position)) << 32 | u64::from(chunk)
}

#[expect(clippy::cast_possible_truncation, reason = "each half is taken for itself")]
fn split_slot(slot: u64) -> (u32, u32) {
    ((slot >> 32) as u32, slot as u32)
}
