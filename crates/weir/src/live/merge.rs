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

use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};
use std::hint::spin_loop;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use weir_ring::Part;
use weir_savefile::record::Records;

use crate::Error;
use crate::account::TimeOrder;
use crate::chunk::{Chunk, Lane};
use crate::live::outlet::Outlet;

/// Bytes of records for which a lull is looked for. With more, packets soon arrive all the time.
const FEW: usize = 4096;
/// Time after which every processor is taken to see that another has counted a packet, which waits in a store buffer until then.
/// Where it is too short, packets count as late.
const VISIBLE: Duration = Duration::from_micros(5);

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
    counts: Arc<OrderCounts>,
}

/// Counters of the order. The merge writes them, any thread may read them.
#[derive(Debug)]
pub(crate) struct OrderCounts {
    window: Duration,
    late: AtomicU64,
    early: AtomicU64,
}

impl OrderCounts {
    /// Returns the counters for the account.
    pub(crate) fn account(&self) -> TimeOrder {
        TimeOrder {
            window_seconds: self.window.as_secs_f64(),
            // Relaxed: each counter stands alone.
            late: self.late.load(Ordering::Relaxed),
            early: self.early.load(Ordering::Relaxed),
        }
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
            counts: Arc::new(OrderCounts { window, late: AtomicU64::new(0), early: AtomicU64::new(0) }),
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
                return self.push(part, lane, ascent.begin);
            };
            let records = records.min(part.records());
            self.push(part.take_first(bytes, records), Arc::clone(&lane), ascent.begin);
        }
    }

    fn push(&mut self, part: Part, lane: Arc<Lane>, timestamp: u64) {
        match self.looks.back_mut() {
            Some(look) if look.ended.is_none() => look.runs += 1,
            _ => self.looks.push_back(Look { runs: 1, ended: None, early: false, calm: false }),
        }
        let look = self.first_look + self.looks.len() as u64 - 1;
        self.found += 1;
        self.runs.push(Reverse(Run { part, lane, key: (timestamp, self.found), look }));
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
        let mut records = Records::new(run.part.as_ref());
        let (mut bytes, mut count, mut late, mut rest) = (0, 0, 0, None);
        // If memory was overwritten, the user of the chunk finds out. What follows stays with it.
        while let Some(Ok(record)) = records.next() {
            if limit.is_some_and(|limit| (record.timestamp, run.key.1) > limit) {
                rest = Some(record.timestamp);
                break;
            }
            late += u64::from(record.timestamp < self.newest);
            self.newest = self.newest.max(record.timestamp);
            (bytes, count) = (records.offset(), count + 1);
        }
        // Chunks can be as short as one packet: none pays for a counter that does not change.
        if late > 0 {
            self.counts.late.fetch_add(late, Ordering::Relaxed);
        }
        if !in_time {
            self.counts.early.fetch_add(count.into(), Ordering::Relaxed);
        }
        let Some(timestamp) = rest.filter(|_| count > 0) else {
            self.used_up(run.look);
            return Some(Chunk::new(run.part, run.lane));
        };
        let first = run.part.take_first(bytes, count.min(run.part.records()));
        let lane = Arc::clone(&run.lane);
        run.key.0 = timestamp;
        self.runs.push(Reverse(run));
        Some(Chunk::new(first, lane))
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

/// The part of some records with ascending timestamps.
struct Ascent {
    /// The first timestamp.
    begin: u64,
    /// Bytes and records before the first timestamp that goes back.
    end: Option<(usize, u32)>,
}

impl Ascent {
    fn of(bytes: &[u8]) -> Self {
        let mut records = Records::new(bytes);
        let (mut begin, mut last, mut end, mut count) = (None, 0, 0, 0);
        while let Some(Ok(record)) = records.next() {
            if record.timestamp < last {
                return Self { begin: begin.unwrap_or(0), end: Some((end, count)) };
            }
            begin.get_or_insert(record.timestamp);
            (last, end, count) = (record.timestamp, records.offset(), count + 1);
        }
        Self { begin: begin.unwrap_or(0), end: None }
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
