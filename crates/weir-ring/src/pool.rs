//! The state that a pool's consumers, producers and holders share.

use std::io;

use crate::consumer::Consumer;
use crate::layout::{Commit, Shape};
use crate::producer::Producer;
use crate::shared::{self, Order, Progress};
use crate::sync::{Arc, AtomicU32, AtomicU64, Ordering, fence};
use crate::words::{Data, Table};

/// The shared memory of chunks, and the rings through which chunks return to the producers.
#[derive(Debug)]
pub struct Pool {
    shape: Shape,
    pub(crate) data: Data,
    /// Written by the producer.
    progress: Table<Progress>,
    /// Written by the producer.
    queues: Table<shared::Queue>,
    /// Written by us; a kernel program exchanges `wake_at`.
    orders: Table<Order>,
    /// Private: the number of holders of each chunk. The last holder gives it back (R2).
    holders: Box<[AtomicU32]>,
    given: Box<[Queue]>,
}

/// Approximate limit of chunks in the warm ring: a few, so that the next one to be written is still in the caches. With
/// all chunks in one ring, frames of 1514 bytes took 50% longer. Loom's models have two chunks, one per ring.
const WARM: u64 = if cfg!(loom) { 1 } else { 4 };

/// One of a queue's two rings.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Ring {
    /// The chunks returned last; the producer takes these first.
    Warm = 0,
    /// All others, for when the consumer falls behind.
    Cold = 1,
}

/// Our private record of one queue's empty chunks.
#[derive(Debug)]
struct Queue {
    rings: [Given; 2],
    /// Chunks that the consumer has finished. Written by the consumer.
    read: AtomicU64,
    /// Finished chunks that are still held.
    held: AtomicU32,
}

/// The private half of a ring.
#[derive(Debug)]
struct Given {
    /// Chunks given since the start: the next free position.
    count: AtomicU64,
    /// The contents of each slot, so that shared memory need not be trusted (R5).
    slots: Box<[AtomicU64]>,
}

/// Where a queue's chunks are. While no chunk moves, the sum is the number of chunks.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Fill {
    /// In a ring, empty.
    pub free: u32,
    /// Being written to.
    pub open: u32,
    /// Closed and not completely read.
    pub ready: u32,
    /// Completely read, and held by handlers.
    pub held: u32,
}

/// The descriptors of the four maps shared with a kernel program (`crates/weir-bpf/bpf/pool/writer.h`).
#[cfg(not(loom))]
#[derive(Debug)]
pub struct SharedMaps<'a> {
    /// Chunk data.
    pub pool: std::os::fd::BorrowedFd<'a>,
    /// One `struct progress` per chunk.
    pub chunks: std::os::fd::BorrowedFd<'a>,
    /// One `struct queue` per queue.
    pub queues: std::os::fd::BorrowedFd<'a>,
    /// One `struct order` per queue.
    pub orders: std::os::fd::BorrowedFd<'a>,
}

impl Pool {
    /// Creates a pool whose producers are in this process.
    ///
    /// # Errors
    ///
    /// If there is no address space for it.
    pub fn private(shape: Shape) -> io::Result<(Vec<Producer>, Vec<Consumer>)> {
        let pool = Arc::new(Self {
            data: Data::new(usize::try_from(shape.data_bytes()).map_err(io::Error::other)?)?,
            progress: Table::new(shape.chunks_total() as usize, 0)?,
            queues: Table::new(shape.queues() as usize, 0)?,
            orders: Table::new(shape.queues() as usize, slots(shape))?,
            holders: holders(shape),
            given: given(shape),
            shape,
        });
        let producers = (0..shape.queues()).map(|queue| Producer::new(Arc::clone(&pool), queue)).collect();
        Ok((producers, Self::consumers(&pool)))
    }

    /// Creates a pool whose producer is a kernel program, which must not run yet.
    ///
    /// # Errors
    ///
    /// The error of `mmap` for the map that failed.
    #[cfg(not(loom))]
    pub fn shared(shape: Shape, maps: &SharedMaps<'_>) -> io::Result<Vec<Consumer>> {
        use crate::region::Region;

        let map = |fd, bytes: usize, writable| {
            Region::shared(fd, 0, bytes.next_multiple_of(rustix::param::page_size()), writable)
        };
        let bytes = usize::try_from(shape.data_bytes()).map_err(io::Error::other)?;
        let (chunks, queues) = (shape.chunks_total() as usize, shape.queues() as usize);
        let pool = Arc::new(Self {
            data: Data(map(maps.pool, bytes, false)?),
            progress: Table::of(chunks, 0, |bytes| map(maps.chunks, bytes, false))?,
            queues: Table::of(queues, 0, |bytes| map(maps.queues, bytes, false))?,
            orders: Table::of(queues, slots(shape), |bytes| map(maps.orders, bytes, true))?,
            holders: holders(shape),
            given: given(shape),
            shape,
        });
        Ok(Self::consumers(&pool))
    }

    /// Gives every chunk to its queue's ring, and makes one consumer per queue (R1).
    fn consumers(pool: &Arc<Self>) -> Vec<Consumer> {
        for queue in 0..pool.shape.queues() {
            pool.wake_at(queue).store(u64::MAX, Ordering::Relaxed);
        }
        for chunk in 0..pool.shape.chunks_total() {
            pool.give(chunk);
        }
        (0..pool.shape.queues()).map(|queue| Consumer::new(Arc::clone(pool), queue)).collect()
    }

    /// Returns the pool's dimensions.
    pub fn shape(&self) -> Shape {
        self.shape
    }

    /// Puts an empty chunk into one of its queue's rings. Called once each time its holders drop to zero (R2).
    ///
    /// Any thread may call this. Threads that give at once take different positions. If one is interrupted between
    /// taking its position and filling it, the producer finds that slot empty and waits there, as if the chunk were still
    /// held.
    fn give(&self, chunk: u32) {
        let queue = self.shape.home(chunk);
        let rings = &self.given[queue as usize].rings;
        // Both relaxed, and the second is written by the other side: a wrong choice only costs speed.
        let warm = rings[Ring::Warm as usize].count.load(Ordering::Relaxed);
        let taken = self.queue(queue).warm.load(Ordering::Relaxed);
        let ring = if warm.wrapping_sub(taken) < WARM { Ring::Warm } else { Ring::Cold };
        let given = &rings[ring as usize];
        // AcqRel, paired with itself in other threads: a thread that takes a position sees everything that happened
        // before the earlier ones were taken, so the chunk that was in this slot a lap ago has been opened (R6).
        let position = given.count.fetch_add(1, Ordering::AcqRel);
        let slot = slot_word(position, chunk);
        // Release, paired with the load in `chunk_at`: the producer orders the two as well, but it is not ours to rely on (R5).
        given.slots[self.slot(position)].store(slot, Ordering::Release);
        // Release, paired with the producer's load of the slot: it must not open the chunk before we have finished with
        // it.
        self.shared_slot(queue, ring, position).store(slot, Ordering::Release);
    }

    /// Returns the chunk that was given to `ring` as number `position`, if any.
    pub(crate) fn chunk_at(&self, queue: u32, ring: Ring, position: u64) -> Option<u32> {
        let given = &self.given[queue as usize].rings[ring as usize];
        // Acquire, paired with the store in `give`.
        let (tag, chunk) = split_slot(given.slots[self.slot(position)].load(Ordering::Acquire));
        (tag == tag_of(position)).then_some(chunk)
    }

    /// Like `chunk_at`, but as the producer sees it, in shared memory.
    pub(crate) fn offered(&self, queue: u32, ring: Ring, position: u64) -> Option<u32> {
        // Acquire, paired with the store in `give`.
        let (tag, chunk) = split_slot(self.shared_slot(queue, ring, position).load(Ordering::Acquire));
        (tag == tag_of(position)).then_some(chunk)
    }

    /// Returns how far `chunk` is filled, if it was opened as number `position`.
    pub(crate) fn progress(&self, chunk: u32, position: u64) -> Option<Commit> {
        let progress = self.progress.get(chunk as usize);
        // Acquire, paired with `publish(&progress->position)` in writer.h and the store in `Producer::open`. The commit
        // word was reset before that, so the next load gets its value for this turn, not the chunk's previous turn.
        if progress.position.load(Ordering::Acquire) != position + 1 {
            return None;
        }
        // Acquire, paired with `publish(&progress->commit)` in writer.h and the store in `Producer::commit`: the records
        // are complete.
        Some(Commit::from_word(progress.commit.load(Ordering::Acquire)))
    }

    pub(crate) fn set_progress_position(&self, chunk: u32, position: u64, ordering: Ordering) {
        self.progress.get(chunk as usize).position.store(position + 1, ordering);
    }

    pub(crate) fn set_progress_commit(&self, chunk: u32, commit: Commit, ordering: Ordering) {
        self.progress.get(chunk as usize).commit.store(commit.to_word(), ordering);
    }

    /// Records what the producer has opened: the number of chunks, how many came from the warm ring, and the last chunk.
    pub(crate) fn set_opened(&self, queue: u32, opened: u64, warm: u64, chunk: u32) {
        // Relaxed, as in writer.h: see `fill`.
        let queue = self.queue(queue);
        queue.chunk.store(chunk, Ordering::Relaxed);
        queue.warm.store(warm, Ordering::Relaxed);
        queue.opened.store(opened, Ordering::Relaxed);
    }

    pub(crate) fn wake_at(&self, queue: u32) -> &AtomicU64 {
        &self.orders.get(queue as usize).wake_at
    }

    /// Adds a holder to a chunk that the caller already holds, or that its consumer has just reached.
    pub(crate) fn hold(&self, chunk: u32) {
        // Relaxed: only a holder adds a holder, so the count cannot drop to zero meanwhile.
        self.holders[chunk as usize].fetch_add(1, Ordering::Relaxed);
    }

    /// Ends one hold; the last one gives the chunk back.
    pub(crate) fn release(&self, chunk: u32) {
        // Release, paired with the fence below in the thread that ends the last hold: its `give` follows all reads.
        if self.holders[chunk as usize].fetch_sub(1, Ordering::Release) == 1 {
            fence(Ordering::Acquire);
            self.given[self.shape.home(chunk) as usize].held.fetch_sub(1, Ordering::Relaxed);
            self.give(chunk);
        }
    }

    /// Notes that the consumer has finished a chunk of `queue`, `read` chunks in total.
    pub(crate) fn retire(&self, queue: u32, read: u64) {
        let queue = &self.given[queue as usize];
        queue.held.fetch_add(1, Ordering::Relaxed);
        // Release, paired with the load in `fill`.
        queue.read.store(read, Ordering::Release);
    }

    /// Returns where the chunks of `queue` are.
    pub(crate) fn fill(&self, queue: u32) -> Fill {
        let held = self.given[queue as usize].held.load(Ordering::Relaxed);
        // Acquire, paired with the store in `retire`: if we see a chunk as read, we also see it as given, below.
        let read = self.given[queue as usize].read.load(Ordering::Acquire);
        let given =
            self.given[queue as usize].rings.iter().map(|ring| ring.count.load(Ordering::Relaxed)).sum();
        // The other side's words: clamped to our own before use (R5). Relaxed: with a chunk that is older or newer than
        // the number, the last one counts as open.
        let queue = self.queue(queue);
        let opened = queue.opened.load(Ordering::Relaxed).clamp(read, given);
        let last = Some(queue.chunk.load(Ordering::Relaxed)).filter(|&last| last < self.shape.chunks_total());
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
        // Relaxed: each counter is read on its own. They are consistent once the producer has stopped.
        let now = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        let queue = self.queue(queue);
        crate::layout::Counters {
            seen: now(&queue.seen),
            captured: now(&queue.captured),
            bytes: now(&queue.bytes),
            lost: now(&queue.lost),
            errors: now(&queue.errors),
            filtered: now(&queue.filtered),
            sampled_out: now(&queue.sampled_out),
            counted: now(&queue.counted),
            orphans: now(&queue.orphans),
        }
    }

    #[cfg(not(loom))]
    pub(crate) fn at_rest(&self, queue: u32) -> Option<u64> {
        // Acquire: the ends of packets are read before `seen`. If it equals their sum all the same, no packet was between
        // the two at the moment it was read.
        let now = |counter: &AtomicU64| counter.load(Ordering::Acquire);
        let queue = self.queue(queue);
        let captured = now(&queue.captured);
        let ended = [&queue.lost, &queue.errors, &queue.filtered, &queue.sampled_out, &queue.counted]
            .into_iter()
            .fold(captured, |sum, counter| sum.wrapping_add(now(counter)));
        (now(&queue.seen) == ended).then_some(captured)
    }

    #[cfg(not(loom))]
    pub(crate) fn set_clock_offset(&self, queue: u32, nanoseconds: i64) {
        // Relaxed: a packet may get a timestamp with either the old or the new offset.
        self.orders.get(queue as usize).clock_offset.store(nanoseconds, Ordering::Relaxed);
    }

    /// Overwrites a slot of a ring in shared memory, as a faulty other side would.
    #[cfg(all(test, not(loom)))]
    pub(crate) fn scribble(&self, queue: u32, slot: usize, value: u64) {
        self.orders.word(queue as usize, slot).store(value, Ordering::Release);
    }

    /// Overwrites what the producer records about its chunks.
    #[cfg(all(test, not(loom)))]
    pub(crate) fn scribble_queue(&self, queue: u32, value: u64) {
        let queue = self.queue(queue);
        [&queue.opened, &queue.warm].iter().for_each(|word| word.store(value, Ordering::Release));
        #[expect(clippy::cast_possible_truncation, reason = "any value will do")]
        queue.chunk.store(value as u32, Ordering::Release);
    }

    fn queue(&self, queue: u32) -> &shared::Queue {
        self.queues.get(queue as usize)
    }

    fn shared_slot(&self, queue: u32, ring: Ring, position: u64) -> &AtomicU64 {
        let ring = ring as usize * self.shape.slots() as usize;
        self.orders.word(queue as usize, ring + self.slot(position))
    }

    fn slot(&self, position: u64) -> usize {
        usize::try_from(position & u64::from(self.shape.slots() - 1)).expect("a slot number is below 2^20")
    }
}

fn holders(shape: Shape) -> Box<[AtomicU32]> {
    (0..shape.chunks_total()).map(|_| AtomicU32::new(0)).collect()
}

/// Returns the slots of both rings of a queue, the warm one first.
fn slots(shape: Shape) -> usize {
    2 * shape.slots() as usize
}

fn given(shape: Shape) -> Box<[Queue]> {
    let ring =
        || Given { count: AtomicU64::new(0), slots: (0..shape.slots()).map(|_| AtomicU64::new(0)).collect() };
    (0..shape.queues())
        .map(|_| Queue { rings: [ring(), ring()], read: AtomicU64::new(0), held: AtomicU32::new(0) })
        .collect()
}

/// Returns the tag of a position for a slot's high half. It differs from the slot's tag in the previous lap.
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

#[cfg(all(test, not(loom)))]
mod tests {
    use std::collections::BTreeSet;

    use super::*;
    use crate::layout::Counters;

    fn pool(queues: u32, chunks: u32) -> (Vec<Producer>, Vec<Consumer>) {
        let shape = Shape::new(queues, chunks, 4096, 60).expect("a pool can have these measures");
        Pool::private(shape).expect("there is memory")
    }

    #[test]
    fn each_counter_is_read_from_its_place_and_its_queue() {
        let (_, consumers) = pool(2, 2);
        let pool = consumers[0].pool();
        let queue = pool.queue(1);
        let counters = [
            (&queue.opened, 100),
            (&queue.written, 103),
            (&queue.seen, 104),
            (&queue.captured, 105),
            (&queue.bytes, 106),
            (&queue.lost_before, 107),
            (&queue.lost, 108),
            (&queue.errors, 109),
            (&queue.filtered, 114),
            (&queue.orphans, 115),
            (&queue.turns, 116),
            (&queue.sampled_out, 117),
            (&queue.counted, 118),
        ];
        counters.iter().for_each(|(counter, value)| counter.store(*value, Ordering::Relaxed));
        let expected = Counters {
            seen: 104,
            captured: 105,
            bytes: 106,
            lost: 108,
            errors: 109,
            filtered: 114,
            sampled_out: 117,
            counted: 118,
            orphans: 115,
        };
        assert_eq!(consumers[1].gauge().counters(), expected);
        assert_eq!(consumers[0].gauge().counters(), Counters::default());
    }

    #[test]
    fn a_producer_rests_when_each_packet_that_it_has_seen_has_ended() {
        let (_, consumers) = pool(2, 2);
        let (pool, gauge) = (consumers[0].pool(), consumers[1].gauge());
        let queue = pool.queue(1);
        assert_eq!(gauge.at_rest(), Some(0));
        let ends = [
            &queue.captured,
            &queue.lost,
            &queue.errors,
            &queue.filtered,
            &queue.sampled_out,
            &queue.counted,
        ];
        for (number, end) in ends.into_iter().enumerate() {
            queue.seen.fetch_add(1, Ordering::Relaxed);
            assert_eq!(gauge.at_rest(), None);
            end.fetch_add(1, Ordering::Relaxed);
            assert_eq!(gauge.at_rest(), Some(1), "end {number}");
        }
        for no_end in [&queue.bytes, &queue.orphans] {
            no_end.store(7, Ordering::Relaxed);
        }
        assert_eq!(gauge.at_rest(), Some(1));
    }

    #[test]
    fn the_clock_of_one_queue_is_set_and_nothing_else() {
        let (_, consumers) = pool(2, 2);
        let pool = consumers[0].pool();
        consumers[1].gauge().set_clock_offset(-2);
        let orders = |queue| {
            let order = pool.orders.get(queue);
            (order.wake_at.load(Ordering::Relaxed), order.clock_offset.load(Ordering::Relaxed))
        };
        assert_eq!((orders(0), orders(1)), ((u64::MAX, 0), (u64::MAX, -2)));
    }

    /// Those that were read last are still in the caches.
    #[test]
    fn a_consumer_that_keeps_up_makes_do_with_a_few_chunks() {
        let (mut producers, mut consumers) = pool(1, 16);
        let mut used = BTreeSet::new();
        for _ in 0..64 {
            used.insert(producers[0].open().expect("a chunk is empty"));
            producers[0].commit(4096);
            consumers[0].take().expect("our own producer").expect("there is a record");
        }
        assert_eq!(used, (0..4).collect());
    }

    #[test]
    fn each_chunk_may_be_full_to_its_end() {
        let (mut producers, mut consumers) = pool(1, 2);
        for value in [1, 2] {
            producers[0].room().expect("a chunk is empty").fill(value);
            producers[0].commit(8192);
        }
        for value in [1, 2] {
            let part = consumers[0].take().expect("our own producer").expect("there is a record");
            assert_eq!(part.as_ref(), [value; 8192]);
        }
    }

    #[test]
    #[should_panic(expected = "runs out of its chunk")]
    fn a_record_that_runs_out_of_its_chunk_is_not_published() {
        let (mut producers, _consumers) = pool(1, 2);
        producers[0].open();
        producers[0].commit(8196);
    }
}
