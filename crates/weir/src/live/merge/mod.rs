//! Delivery of all queues' packets in timestamp order, to one thread.
//!
//! ```text
//!  queues   a *look* takes what is there       heap of runs, the oldest packet on top
//!  0 ----.                                      .------------------.
//!  1 -----+--> parts, cut where stamps go back -+-> due? -> cut off up to the next run -> Chunk
//!  2 ----'                                      '------------------'
//! ```
//!
//! When is it certain that no older packet can come? A source makes a packet available at most one *window* after its
//! timestamp. So whatever a look did not find has a timestamp later than one window before that look, and everything
//! that an earlier look had found by then is older. The packets of a look are *due* once another look has started at
//! least one window after it ended, even if some queues are idle. As long as any due packet is left, the oldest packet
//! of all is delivered next: whatever precedes a due packet is older still.
//!
//! **A lull** makes waiting unnecessary when little arrives. The kernel's programs count a packet before they read the
//! clock, and again when they are done with it. If no program was between the two at some moment after a look, and the
//! next look has found all that they had done by then, then nothing that is still to come is older than the first look.
//!
//! The clocks of both sides are never compared: setting the wall clock makes packets late, but holds none back.
//!
//! **A rush** brings packets faster than this thread can sort them. A merge that may [give up](Merge::giving_up) then delivers
//! whole chunks as they come, without a look at their packets, until nothing waits any more.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};
use std::hint::spin_loop;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use weir_ring::{Fill, Part};
use weir_savefile::record::Timestamps;

use crate::Error;
use crate::chunk::{Chunk, Lane};
use crate::live::source::outlet::Outlet;
use crate::stats::{TimeOrder, Unsorted};

/// Bytes of records for which a lull is looked for. With more, packets soon arrive all the time.
const FEW: usize = 4096;
/// Time after which every processor is taken to see that another has counted a packet, which waits in a store buffer until then.
/// Where it is too short, packets count as late.
const VISIBLE: Duration = Duration::from_micros(5);
/// Bytes that are sorted between two looks at how full the pools are.
const STRIDE: usize = 64 << 10;
/// The share of a pool that may wait while packets are sorted: one in this many chunks.
const WAITING: u32 = 8;

/// Packets taken from the queues and not delivered yet.
#[derive(Debug)]
pub(crate) struct Merge {
    window: Duration,
    runs: BinaryHeap<Reverse<Run>>,
    /// The looks that have runs left, the number of the first one, and the start of the latest look.
    looks: VecDeque<Look>,
    first_look: u64,
    looked: Option<Instant>,
    /// Whether the writers count packets before they read the clock.
    counted: bool,
    /// Whether nothing older can come than what a look has found.
    in_order: bool,
    /// Whether nothing more arrives.
    settled: bool,
    /// Number of runs so far.
    found: u64,
    /// The latest timestamp delivered.
    newest: u64,
    /// The latest timestamp delivered unsorted.
    rushed: u64,
    /// `None`: everything is sorted, however much waits.
    rush: Option<Rush>,
    counts: Arc<OrderCounts>,
}

/// What is done when packets come faster than they can be sorted.
#[derive(Debug, Default)]
struct Rush {
    /// Whether packets are delivered as they come.
    on: bool,
    /// The queue to take from next.
    turn: usize,
    /// Bytes sorted since the pools were last looked at.
    sorted: usize,
}

/// Counters of the order. The merge writes them, any thread may read them.
#[derive(Debug)]
pub(crate) struct OrderCounts {
    window: Duration,
    late: AtomicU64,
    early: AtomicU64,
    unsorted: Mutex<Disorder>,
}

/// Packets that were delivered out of order.
#[derive(Debug, Default)]
struct Disorder {
    all: Option<Unsorted>,
    /// Those that nobody has heard of.
    news: Option<Unsorted>,
}

impl OrderCounts {
    /// Returns the counters for the account.
    pub(crate) fn stats(&self) -> TimeOrder {
        TimeOrder {
            window: self.window,
            // Relaxed: each counter stands alone.
            late: self.late.load(Ordering::Relaxed),
            early: self.early.load(Ordering::Relaxed),
            unsorted: self.unsorted().all,
        }
    }

    /// Returns the packets delivered out of order since the last call.
    pub(crate) fn news(&self) -> Option<Unsorted> {
        self.unsorted().news.take()
    }

    fn add(&self, unsorted: Unsorted) {
        let mut disorder = self.unsorted();
        let Disorder { all, news } = &mut *disorder;
        for sum in [all, news] {
            *sum = Some(sum.map_or(unsorted, |sum| sum.and(unsorted)));
        }
    }

    fn unsorted(&self) -> MutexGuard<'_, Disorder> {
        self.unsorted.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[derive(Debug)]
struct Look {
    /// Number of runs left.
    runs: usize,
    /// `None` while it continues.
    ended: Option<Instant>,
    /// Whether it is due early.
    early: bool,
    /// Whether a lull came after it.
    calm: bool,
}

/// Packets of one queue with ascending timestamps.
#[derive(Debug)]
struct Run {
    part: Part,
    lane: Arc<Lane>,
    /// Key of its first packet.
    key: Key,
    /// Timestamp of its last packet.
    last: u64,
    look: u64,
}

/// Position in the order: the timestamp, and for equal ones the number of the run.
type Key = (u64, u64);

impl Merge {
    /// Makes an empty merge. `window` is the longest time from a packet's timestamp until it can be taken.
    pub(crate) fn new(window: Duration) -> Self {
        Self {
            window,
            runs: BinaryHeap::new(),
            looks: VecDeque::new(),
            first_look: 0,
            looked: None,
            counted: false,
            in_order: false,
            settled: false,
            found: 0,
            newest: 0,
            rushed: 0,
            rush: None,
            counts: Arc::new(OrderCounts {
                window,
                late: AtomicU64::new(0),
                early: AtomicU64::new(0),
                unsorted: Mutex::default(),
            }),
        }
    }

    /// Uses lulls: all queues are written by the kernel's programs, and each packet has a time of its own.
    pub(crate) fn counted(self) -> Self {
        Self { counted: true, ..self }
    }

    /// Holds nothing back: there is one queue, which is in order.
    pub(crate) fn in_order(self) -> Self {
        Self { in_order: true, ..self }
    }

    /// Delivers packets as they come once a pool is more than half in use because sorting takes time, until nothing waits:
    /// none must be lost for that.
    pub(crate) fn giving_up(self) -> Self {
        Self { rush: Some(Rush::default()), ..self }
    }

    /// Returns the number of runs taken from the queues so far.
    pub(crate) fn found(&self) -> u64 {
        self.found
    }

    /// Takes everything from the queues.
    pub(crate) fn look(&mut self, outlets: &mut [Outlet], clock: impl Fn() -> Instant) -> Result<(), Error> {
        self.looked = Some(clock());
        for outlet in outlets {
            loop {
                let ready = outlet.ready()?;
                if ready.bytes == 0 {
                    break;
                }
                outlet.take()?.into_iter().for_each(|chunk| self.put(chunk));
                // The next chunk was filled after this look started.
                if !ready.closed {
                    break;
                }
            }
        }
        if let Some(look) = self.looks.back_mut() {
            look.ended.get_or_insert_with(clock);
        }
        Ok(())
    }

    /// Adds a chunk, which belongs to the next look.
    pub(crate) fn put(&mut self, chunk: Chunk) {
        let (mut part, lane) = chunk.hold_back();
        loop {
            let ascent = Ascent::of(part.as_ref());
            let Some((bytes, records)) = ascent.end else {
                return self.push(part, lane, &ascent);
            };
            let records = records.min(part.records());
            self.push(part.take_first(bytes, records), Arc::clone(&lane), &ascent);
        }
    }

    fn push(&mut self, part: Part, lane: Arc<Lane>, &Ascent { begin, last, .. }: &Ascent) {
        match self.looks.back_mut() {
            Some(look) if look.ended.is_none() => look.runs += 1,
            _ => self.looks.push_back(Look { runs: 1, ended: None, early: false, calm: false }),
        }
        let look = self.first_look + self.looks.len() as u64 - 1;
        self.found += 1;
        self.runs.push(Reverse(Run { part, lane, key: (begin, self.found), last, look }));
    }

    /// Whether there are packets to deliver.
    pub(crate) fn is_due(&self) -> bool {
        self.looks.front().is_some_and(|look| look.early || self.is_in_time(look))
    }

    fn is_in_time(&self, look: &Look) -> bool {
        self.settled
            || look.calm
            || self.in_order && look.ended.is_some()
            || look.ended.zip(self.looked).is_some_and(|(ended, looked)| looked >= ended + self.window)
    }

    /// Returns when the oldest packets are due; `None` if there are none.
    pub(crate) fn due(&self) -> Option<Instant> {
        self.looks.front().and_then(|look| Some(look.ended? + self.window))
    }

    /// Makes the oldest packets due early if a pool is more than half in use: it must not lose packets because others
    /// are held back.
    pub(crate) fn relieve(&mut self, outlets: &[Outlet]) {
        let is_filling = |outlet: &Outlet| {
            let fill = outlet.gauge().fill();
            fill.free < fill.open + fill.ready + fill.held
        };
        if !self.is_due()
            && let Some(look) = self.looks.front_mut()
        {
            look.early = outlets.iter().any(is_filling);
        }
    }

    /// Makes the packets of a look due if there are few, and a lull follows. `at_rest` returns the records that the writer of
    /// a queue has written, if it is between two packets.
    ///
    /// # Errors
    ///
    /// Those of [`look`](Self::look).
    pub(crate) fn lull(
        &mut self,
        outlets: &mut [Outlet],
        at_rest: impl Fn(&Outlet) -> Option<u64>,
        clock: impl Fn() -> Instant,
    ) -> Result<(), Error> {
        let held = || self.runs.iter().map(|Reverse(run)| run.part.len()).sum::<usize>();
        let (1, Some(ended)) = (self.looks.len(), self.looks.front().and_then(|look| look.ended)) else {
            return Ok(());
        };
        if !self.counted || held() > FEW {
            return Ok(());
        }
        while clock() < ended + VISIBLE {
            spin_loop();
        }
        let Some(written) = outlets.iter().map(at_rest).collect::<Option<Vec<_>>>() else { return Ok(()) };
        self.look(outlets, clock)?;
        let calm = outlets.iter().zip(written).all(|(outlet, written)| outlet.taken() >= written);
        if let Some(look) = self.looks.front_mut() {
            look.calm = calm;
        }
        Ok(())
    }

    /// Returns the next packets, if any are due.
    pub(crate) fn next(&mut self) -> Option<Chunk> {
        let look = self.looks.front()?;
        let in_time = self.is_in_time(look);
        if !in_time && !look.early {
            return None;
        }
        let Reverse(mut run) = self.runs.pop()?;
        let limit = self.runs.peek().map(|Reverse(run)| run.key);
        let is_next = |timestamp| limit.is_none_or(|limit| (timestamp, run.key.1) <= limit);
        let late = run.key.0 < self.newest;
        let first = if is_next(run.last) && !late {
            self.newest = run.last;
            None
        } else {
            self.cut(&run, is_next)
        };
        let chunk = match first {
            None => {
                self.used_up(run.look);
                Chunk::new(run.part, run.lane)
            }
            Some(Cut { bytes, records, rest }) => {
                let first = run.part.take_first(bytes, records.min(run.part.records()));
                let lane = Arc::clone(&run.lane);
                run.key.0 = rest;
                self.runs.push(Reverse(run));
                Chunk::new(first, lane)
            }
        };
        if !in_time {
            self.counts.early.fetch_add(chunk.len() as u64, Ordering::Relaxed);
        }
        if let Some(rush) = &mut self.rush {
            rush.sorted += chunk.bytes().len();
        }
        Some(chunk)
    }

    /// Counts the late ones among the first packets of a run that are next. Returns where those end; `None`: all are next.
    fn cut(&mut self, run: &Run, is_next: impl Fn(u64) -> bool) -> Option<Cut> {
        let mut timestamps = Timestamps::new(run.part.as_ref());
        let (mut bytes, mut records, mut late, mut rest) = (0, 0, 0, None);
        // If memory was overwritten, the user of the chunk finds out. What follows stays with it.
        while let Some(timestamp) = timestamps.next() {
            if !is_next(timestamp) {
                rest = Some(timestamp);
                break;
            }
            late += u64::from(timestamp < self.newest);
            self.newest = self.newest.max(timestamp);
            (bytes, records) = (timestamps.offset(), records + 1);
        }
        // Chunks can be as short as one packet: none pays for a counter that does not change.
        if late > 0 {
            let first = run.key.0;
            let count = if first < self.rushed { &self.counts.early } else { &self.counts.late };
            count.fetch_add(late, Ordering::Relaxed);
            self.counts.add(Unsorted::new(late, first, self.newest));
        }
        rest.filter(|_| records > 0).map(|rest| Cut { bytes, records, rest })
    }

    /// Returns the next chunk as it came, if packets come faster than they are sorted.
    ///
    /// # Errors
    ///
    /// Those of [`look`](Self::look).
    pub(crate) fn rushed(&mut self, outlets: &mut [Outlet]) -> Result<Option<Chunk>, Error> {
        let is_due = self.is_due();
        let Some(rush) = &mut self.rush else { return Ok(None) };
        if !rush.on {
            if is_due && rush.sorted < STRIDE {
                return Ok(None);
            }
            rush.sorted = 0;
            rush.on = outlets.iter().any(|outlet| is_rushed(outlet.gauge().fill()));
            if !rush.on {
                return Ok(None);
            }
        }
        if let Some(Reverse(run)) = self.runs.pop() {
            self.used_up(run.look);
            return Ok(Some(self.unsorted(Chunk::new(run.part, run.lane))));
        }
        for _ in 0..outlets.len() {
            let outlet = &mut outlets[rush.turn % outlets.len()];
            rush.turn += 1;
            if outlet.ready()?.closed
                && let Some(chunk) = outlet.take()?
            {
                return Ok(Some(self.unsorted(chunk)));
            }
        }
        rush.on = false;
        Ok(None)
    }

    /// Counts a chunk that is delivered as it came.
    fn unsorted(&mut self, chunk: Chunk) -> Chunk {
        let packets = chunk.len() as u64;
        self.counts.early.fetch_add(packets, Ordering::Relaxed);
        let bytes = chunk.bytes();
        if let (Some(first), Some(last)) = (Timestamps::new(bytes).next(), Timestamps::last(bytes)) {
            let newest = self.newest.max(last);
            // Only a program's queue is certainly in order within itself.
            if first < self.newest || !self.counted {
                self.counts.add(Unsorted::new(packets, first, newest));
            }
            (self.newest, self.rushed) = (newest, newest);
        }
        chunk
    }

    /// Returns the next of the remaining packets, when nothing more arrives.
    pub(crate) fn rest(&mut self, outlets: &mut [Outlet]) -> Result<Option<Chunk>, Error> {
        if !self.settled || self.runs.is_empty() {
            self.look(outlets, Instant::now)?;
            self.settled = true;
        }
        Ok(self.next())
    }

    /// Notes that a run of `look` is used up.
    fn used_up(&mut self, look: u64) {
        if let Ok(place) = usize::try_from(look - self.first_look) {
            self.looks[place].runs -= 1;
        }
        while self.looks.front().is_some_and(|look| look.runs == 0) {
            self.looks.pop_front();
            self.first_look += 1;
        }
    }

    /// Returns the counters of the order.
    pub(crate) fn counts(&self) -> &Arc<OrderCounts> {
        &self.counts
    }
}

/// Whether sorting takes too long: a pool is more than half in use, and not only because packets are held back for the
/// window, since chunks wait that nobody has taken meanwhile.
fn is_rushed(fill: Fill) -> bool {
    let used = fill.open + fill.ready + fill.held;
    fill.free < used && fill.ready * WAITING > fill.free + used
}

/// The first packets of a run.
struct Cut {
    bytes: usize,
    records: u32,
    /// Timestamp of the packet that follows.
    rest: u64,
}

/// The part of some records with ascending timestamps.
struct Ascent {
    /// The first timestamp.
    begin: u64,
    /// The last one.
    last: u64,
    /// Bytes and records before the first timestamp that goes back.
    end: Option<(usize, u32)>,
}

impl Ascent {
    fn of(bytes: &[u8]) -> Self {
        let mut timestamps = Timestamps::new(bytes);
        let begin = timestamps.next().unwrap_or(0);
        let (mut last, mut end, mut count) = (begin, timestamps.offset(), 1);
        while let Some(timestamp) = timestamps.next() {
            if timestamp < last {
                return Self { begin, last, end: Some((end, count)) };
            }
            (last, end, count) = (timestamp, timestamps.offset(), count + 1);
        }
        Self { begin, last, end: None }
    }
}

impl PartialEq for Run {
    fn eq(&self, other: &Self) -> bool {
        self.key == other.key
    }
}

impl Eq for Run {}

impl PartialOrd for Run {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Run {
    fn cmp(&self, other: &Self) -> std::cmp::Ordering {
        self.key.cmp(&other.key)
    }
}

#[cfg(test)]
mod tests;
