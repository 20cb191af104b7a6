//! Packets of all queues in the order of their time stamps, for one thread.
//!
//! ```text
//!  queues   a *look* takes what is there       heap of runs, the oldest packet on top
//!  0 ----.                                      .------------------.
//!  1 -----+--> parts, cut where stamps go back -+-> due? -> cut off up to the next run -> Chunk
//!  2 ----'                                      '------------------'
//! ```
//!
//! When is it sure that nothing older can come? A source stamps a packet at most a *window* before it can be taken. So
//! what a look did not find was stamped later than a window before it; hence all that an earlier look had found by then
//! is older. Packets of a look are *due* once another has begun a window after it ended, however quiet some queues are. What is
//! handed out is the oldest packet of all, as long as any that is due is left: what goes before it is older still.
//!
//! Clocks of both sides are never compared: a wall clock that is set makes packets late, and holds none back.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};
use std::sync::Arc;
use std::time::{Duration, Instant};

use weir_ring::Part;
use weir_savefile::record::Records;

use crate::Error;
use crate::account::TimeOrder;
use crate::chunk::{Chunk, Lane};
use crate::outlet::Outlet;

/// What was taken from the queues and not handed out.
#[derive(Debug)]
pub(crate) struct Merge {
    window: Duration,
    runs: BinaryHeap<Reverse<Run>>,
    /// Those looks of which runs are left, the first one's number, and when the last look of all began.
    looks: VecDeque<Look>,
    first_look: u64,
    looked: Option<Instant>,
    /// Nothing arrives any more.
    settled: bool,
    /// Runs that were put in so far.
    found: u64,
    /// The largest time stamp that was handed out.
    newest: u64,
    late: u64,
    early: u64,
}

#[derive(Debug)]
struct Look {
    /// Runs that are left.
    runs: usize,
    /// `None`: it goes on.
    ended: Option<Instant>,
    /// It is due before its time.
    early: bool,
}

/// Packets of one queue whose time stamps do not go back.
#[derive(Debug)]
struct Run {
    part: Part,
    lane: Arc<Lane>,
    /// Of its first packet.
    key: Key,
    look: u64,
}

/// The place in the order of time: a time stamp, and when it is the same, which run was found first.
type Key = (u64, u64);

impl Merge {
    /// `window`: how long after its time stamp a packet can be taken, at most.
    pub(crate) fn new(window: Duration) -> Self {
        Self {
            window,
            runs: BinaryHeap::new(),
            looks: VecDeque::new(),
            first_look: 0,
            looked: None,
            settled: false,
            found: 0,
            newest: 0,
            late: 0,
            early: 0,
        }
    }

    /// Takes what is in the queues.
    pub(crate) fn look(&mut self, outlets: &mut [Outlet], clock: impl Fn() -> Instant) -> Result<(), Error> {
        self.looked = Some(clock());
        for outlet in outlets {
            loop {
                let ready = outlet.ready()?;
                if ready.bytes == 0 {
                    break;
                }
                outlet.take()?.into_iter().for_each(|chunk| self.put(chunk));
                // What is in the next chunk came after this look began.
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

    /// Takes a chunk, which belongs to the next look.
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
            _ => self.looks.push_back(Look { runs: 1, ended: None, early: false }),
        }
        let look = self.first_look + self.looks.len() as u64 - 1;
        self.found += 1;
        self.runs.push(Reverse(Run { part, lane, key: (timestamp, self.found), look }));
    }

    /// Whether there are packets to be handed out.
    pub(crate) fn is_due(&self) -> bool {
        self.looks.front().is_some_and(|look| look.early || self.is_in_time(look))
    }

    fn is_in_time(&self, look: &Look) -> bool {
        self.settled
            || look.ended.zip(self.looked).is_some_and(|(ended, looked)| looked >= ended + self.window)
    }

    /// When the oldest packets will be due. `None`: there are none.
    pub(crate) fn due(&self) -> Option<Instant> {
        self.looks.front().and_then(|look| Some(look.ended? + self.window))
    }

    /// Has the oldest packets go before their time where a pool is more than half in use: it must not lose packets because
    /// others are held back.
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

    /// The packets that come next, if any are due.
    pub(crate) fn next(&mut self) -> Option<Chunk> {
        let look = self.looks.front()?;
        let in_time = self.is_in_time(look);
        if !in_time && !look.early {
            return None;
        }
        let Reverse(mut run) = self.runs.pop()?;
        let limit = self.runs.peek().map(|Reverse(run)| run.key);
        let mut records = Records::new(run.part.as_ref());
        let (mut bytes, mut count, mut rest) = (0, 0, None);
        // Where memory was overwritten, who walks the chunk finds out: what is behind goes with it.
        while let Some(Ok(record)) = records.next() {
            if limit.is_some_and(|limit| (record.timestamp, run.key.1) > limit) {
                rest = Some(record.timestamp);
                break;
            }
            self.late += u64::from(record.timestamp < self.newest);
            self.newest = self.newest.max(record.timestamp);
            self.early += u64::from(!in_time);
            (bytes, count) = (records.offset(), count + 1);
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

    /// What is left, when nothing arrives any more.
    pub(crate) fn rest(&mut self, outlets: &mut [Outlet]) -> Result<Option<Chunk>, Error> {
        if !self.settled || self.runs.is_empty() {
            self.look(outlets, Instant::now)?;
            self.settled = true;
        }
        Ok(self.next())
    }

    /// A run of `look` is gone.
    fn used_up(&mut self, look: u64) {
        if let Ok(place) = usize::try_from(look - self.first_look) {
            self.looks[place].runs -= 1;
        }
        while self.looks.front().is_some_and(|look| look.runs == 0) {
            self.looks.pop_front();
            self.first_look += 1;
        }
    }

    /// What has become of the order.
    pub(crate) fn account(&self) -> TimeOrder {
        TimeOrder { window_seconds: self.window.as_secs_f64(), late: self.late, early: self.early }
    }
}

/// How far records go without going back in time.
struct Ascent {
    /// The first time stamp.
    begin: u64,
    /// Bytes and records up to the first that goes back.
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
