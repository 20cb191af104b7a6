//! The consumer of a queue, and the parts of chunks that it returns.

use crate::layout::{Commit, RECORD_MIN};
use crate::pool::{Fill, Pool, Ring};
use crate::sync::{Arc, Ordering, fence};

/// The only consumer of a queue. It takes what the producer has committed, in order.
#[derive(Debug)]
pub struct Consumer {
    pool: Arc<Pool>,
    queue: u32,
    /// Chunks read to the end; also the position of the current chunk among all opened chunks.
    position: u64,
    /// Chunks read to the end that came from the warm ring.
    warm: u64,
    /// What has been taken of the current chunk.
    taken: Commit,
    /// Bytes of records taken since the start: the consumer's counterpart of the producer's `written`.
    taken_bytes: u64,
}

/// Inconsistent values from the other side. Nothing was taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "queue {queue}, chunk {chunk}: {bytes} bytes in {records} records after {taken_bytes} bytes in {taken_records}: \
     the pool's memory was overwritten"
)]
pub struct Corrupt {
    /// The queue.
    pub queue: u32,
    /// The chunk's index in the pool.
    pub chunk: u32,
    /// Bytes according to the commit word.
    pub bytes: u32,
    /// Records according to the commit word.
    pub records: u32,
    /// Bytes of the chunk already taken.
    pub taken_bytes: u32,
    /// Records of the chunk already taken.
    pub taken_records: u32,
}

const NOTHING: Commit = Commit { bytes: 0, records: 0, closed: false };

impl Consumer {
    pub(crate) fn new(pool: Arc<Pool>, queue: u32) -> Self {
        Self { pool, queue, position: 0, warm: 0, taken: NOTHING, taken_bytes: 0 }
    }

    /// Returns how many bytes of records could be taken now, and whether the chunk is closed, so that waiting adds
    /// nothing.
    pub fn ready(&self) -> (u32, bool) {
        match self.current() {
            Some((_, _, commit)) => (commit.bytes.saturating_sub(self.taken.bytes), commit.closed),
            None => (0, false),
        }
    }

    /// Takes everything committed but not yet taken from the current chunk.
    ///
    /// # Errors
    ///
    /// [`Corrupt`] if the producer's words contradict themselves or earlier words.
    pub fn take(&mut self) -> Result<Option<Part>, Corrupt> {
        // At most two iterations: a chunk that was closed after its last taken record has nothing left.
        while let Some((ring, chunk, commit)) = self.current() {
            self.check(chunk, commit)?;
            let (from, records) = (self.taken.bytes, commit.records - self.taken.records);
            if from == 0 && commit.bytes > 0 {
                self.pool.hold(chunk); // the consumer's own hold, until the chunk is closed
            }
            self.taken_bytes += u64::from(commit.bytes - from);
            if commit.closed {
                self.taken = NOTHING;
                self.position += 1;
                self.warm += u64::from(ring == Ring::Warm);
                self.pool.retire(self.queue, self.position);
            } else {
                self.taken = commit;
            }
            match (commit.bytes > from, commit.closed) {
                // The last part takes over the consumer's hold.
                (true, true) => {}
                (true, false) => self.pool.hold(chunk),
                (false, true) => {
                    self.pool.release(chunk);
                    continue;
                }
                (false, false) => return Ok(None),
            }
            return Ok(Some(Part { pool: Arc::clone(&self.pool), chunk, from, to: commit.bytes, records }));
        }
        Ok(None)
    }

    /// Asks the producer to ring once it has committed `bytes` more than were taken. A fence makes sure that the request
    /// precedes all later loads; the caller then checks [`Consumer::ready`] before it sleeps.
    pub fn wake_after(&self, bytes: u32) {
        self.pool
            .wake_at(self.queue)
            .store(self.taken_bytes.saturating_add(u64::from(bytes)), Ordering::SeqCst);
        // Our half of the handshake that `commit` in writer.h describes.
        fence(Ordering::SeqCst);
    }

    /// Asks the producer not to ring.
    pub fn wake_never(&self) {
        self.pool.wake_at(self.queue).store(u64::MAX, Ordering::Relaxed);
    }

    /// Returns a view of the queue that any thread may use while this reads.
    pub fn gauge(&self) -> Gauge {
        Gauge { pool: Arc::clone(&self.pool), queue: self.queue }
    }

    /// Returns where the queue's chunks are.
    pub fn fill(&self) -> Fill {
        self.pool.fill(self.queue)
    }

    #[cfg(all(test, not(loom)))]
    pub(crate) fn pool(&self) -> Arc<Pool> {
        Arc::clone(&self.pool)
    }

    /// Returns the chunk to read next, its ring, and how far it is filled, if the producer has opened it. It is the next
    /// chunk of either ring; the positions in the chunks tell which.
    fn current(&self) -> Option<(Ring, u32, Commit)> {
        [(Ring::Warm, self.warm), (Ring::Cold, self.position - self.warm)].into_iter().find_map(
            |(ring, at)| {
                let chunk = self.pool.chunk_at(self.queue, ring, at)?;
                Some((ring, chunk, self.pool.progress(chunk, self.position)?))
            },
        )
    }

    fn check(&self, chunk: u32, commit: Commit) -> Result<(), Corrupt> {
        let grown = commit.bytes.checked_sub(self.taken.bytes);
        let more = commit.records.checked_sub(self.taken.records);
        let plausible = match (grown, more) {
            (Some(0), Some(0)) => commit.bytes > 0 || !commit.closed,
            (Some(bytes), Some(records)) => {
                records > 0
                    && bytes % 4 == 0
                    && u64::from(records) * u64::from(RECORD_MIN) <= u64::from(bytes)
            }
            _ => false,
        };
        if plausible && commit.bytes <= self.pool.shape().stride() {
            return Ok(());
        }
        Err(Corrupt {
            queue: self.queue,
            chunk,
            bytes: commit.bytes,
            records: commit.records,
            taken_bytes: self.taken.bytes,
            taken_records: self.taken.records,
        })
    }
}

/// A view of a queue for any thread. It disturbs neither the producer nor the consumer.
#[derive(Clone, Debug)]
pub struct Gauge {
    pool: Arc<Pool>,
    queue: u32,
}

impl Gauge {
    /// Returns where the queue's chunks are.
    pub fn fill(&self) -> Fill {
        self.pool.fill(self.queue)
    }

    /// Returns the producer's counters.
    #[cfg(not(loom))]
    pub fn counters(&self) -> crate::Counters {
        self.pool.counters(self.queue)
    }

    /// Returns the number of records written so far, if the producer was not working on a packet just now. One that it begins
    /// from now on gets a later timestamp, unless `seen` was still in a processor's store buffer, where it
    /// stays for a moment.
    #[cfg(not(loom))]
    pub fn at_rest(&self) -> Option<u64> {
        self.pool.at_rest(self.queue)
    }

    /// Sets the offset from the producer's clock to the Unix epoch, in nanoseconds.
    #[cfg(not(loom))]
    pub fn set_clock_offset(&self, nanoseconds: i64) {
        self.pool.set_clock_offset(self.queue, nanoseconds);
    }
}

/// A run of whole records in a chunk. Any thread may hold it; dropping it ends the hold.
#[derive(Debug)]
pub struct Part {
    pool: Arc<Pool>,
    chunk: u32,
    from: u32,
    to: u32,
    records: u32,
}

impl Part {
    /// Returns the number of records, as counted by the producer.
    pub fn records(&self) -> u32 {
        self.records
    }

    /// Returns the number of bytes.
    pub fn len(&self) -> usize {
        (self.to - self.from) as usize
    }

    /// Returns whether there are no records.
    pub fn is_empty(&self) -> bool {
        self.to == self.from
    }

    /// Keeps the first `records` records, which are the first `bytes` bytes, and discards the rest.
    ///
    /// # Panics
    ///
    /// If the part is shorter.
    pub fn truncate(&mut self, bytes: usize, records: u32) {
        assert!(bytes <= self.len() && records <= self.records, "a part can only be made shorter");
        self.to = self.from + u32::try_from(bytes).expect("below the part's own length");
        self.records = records;
    }

    /// Splits off the first `records` records, which are the first `bytes` bytes, as a part of their own. The chunk
    /// goes back when both parts are dropped.
    ///
    /// # Panics
    ///
    /// If the part is shorter.
    #[must_use]
    pub fn take_first(&mut self, bytes: usize, records: u32) -> Self {
        assert!(bytes <= self.len() && records <= self.records, "a part has no more than its own records");
        self.pool.hold(self.chunk);
        let to = self.from + u32::try_from(bytes).expect("below the part's own length");
        let first = Self { pool: Arc::clone(&self.pool), chunk: self.chunk, from: self.from, to, records };
        self.from = to;
        self.records -= records;
        first
    }

    #[cfg(loom)]
    pub(crate) fn place(&self) -> usize {
        self.chunk as usize * self.pool.shape().stride() as usize + self.from as usize
    }

    #[cfg(loom)]
    pub(crate) fn pool(&self) -> &Pool {
        &self.pool
    }
}

#[cfg(not(loom))]
impl AsRef<[u8]> for Part {
    /// Returns the records: pcapng Enhanced Packet Blocks in native byte order.
    fn as_ref(&self) -> &[u8] {
        let at = self.chunk as usize * self.pool.shape().stride() as usize + self.from as usize;
        // SAFETY: R3 applies while this part holds the chunk; `to` was checked against the stride, and the chunk is in
        // range (R5).
        unsafe { self.pool.data.read(at, self.len()) }
    }
}

impl Drop for Part {
    fn drop(&mut self) {
        self.pool.release(self.chunk);
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use std::panic::{AssertUnwindSafe, catch_unwind};

    use super::*;
    use crate::layout::Shape;
    use crate::producer::Producer;

    fn one_queue() -> (Producer, Consumer) {
        let shape = Shape::new(1, 2, 4096, 60).expect("a pool can have these measures");
        let (mut producers, mut consumers) = Pool::private(shape).expect("there is memory");
        (producers.remove(0), consumers.remove(0))
    }

    /// Writes records of the smallest size, numbered from 0.
    fn write(producer: &mut Producer, records: u8) {
        for number in 0..records {
            let room = producer.room().expect("a chunk is empty");
            room[..RECORD_MIN as usize].fill(number);
            producer.commit(RECORD_MIN);
        }
    }

    fn take(consumer: &mut Consumer) -> Part {
        consumer.take().expect("our own producer").expect("there are records")
    }

    #[test]
    fn what_was_taken_is_no_longer_ready() {
        let (mut producer, mut consumer) = one_queue();
        assert_eq!(consumer.ready(), (0, false));
        write(&mut producer, 3);
        assert_eq!(consumer.ready(), (96, false));
        take(&mut consumer);
        assert_eq!(consumer.ready(), (0, false));
        write(&mut producer, 125);
        assert_eq!(consumer.ready(), (4000, true), "the first chunk is full");
        write(&mut producer, 1);
        assert_eq!(consumer.ready(), (4000, true), "the first comes first");
        take(&mut consumer);
        assert_eq!(consumer.ready(), (32, false));
    }

    #[test]
    fn the_producer_is_to_ring_after_more_than_was_taken() {
        let (mut producer, mut consumer) = one_queue();
        let pool = consumer.pool();
        let wake_at = || pool.wake_at(0).load(Ordering::Relaxed);
        assert_eq!(wake_at(), u64::MAX, "not before it is asked");
        for (records, taken) in [(3, 96), (2, 160), (123, 4096), (1, 4128)] {
            write(&mut producer, records);
            take(&mut consumer);
            consumer.wake_after(1000);
            assert_eq!(wake_at(), taken + 1000);
        }
        consumer.wake_never();
        assert_eq!(wake_at(), u64::MAX);
    }

    #[test]
    fn a_part_gets_shorter_at_either_end() {
        let (mut producer, mut consumer) = one_queue();
        write(&mut producer, 5);
        let mut part = take(&mut consumer);
        let numbers = |part: &Part| part.as_ref().iter().step_by(32).copied().collect::<Vec<_>>();
        let first = part.take_first(32, 1);
        assert_eq!((first.records(), numbers(&first)), (1, vec![0]));
        assert_eq!((part.records(), numbers(&part)), (4, vec![1, 2, 3, 4]));
        for (bytes, records) in [(129, 4), (128, 5)] {
            catch_unwind(AssertUnwindSafe(|| part.truncate(bytes, records))).expect_err("longer than it is");
            catch_unwind(AssertUnwindSafe(|| part.take_first(bytes, records)))
                .expect_err("more than there are");
        }
        part.truncate(64, 2);
        assert_eq!((part.len(), part.records(), numbers(&part)), (64, 2, vec![1, 2]));
        let all = part.take_first(64, 2);
        assert!(part.is_empty() && !all.is_empty());
    }
}
