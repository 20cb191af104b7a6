//! The table: packets in, flows out.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, TryReserveError};
use std::hash::BuildHasher;

use foldhash::fast::RandomState;

use crate::counted::Counted;
use crate::counts::Counts;
use crate::entry::Entry;
use crate::flow::{EndReason, Flow, Rank};
use crate::fragments::Fragments;
use crate::losses::Losses;
use crate::names::{AllNames, PACKETS};
use crate::seen::{Key, Observation, Part, Seen, Unseen, flag};
use crate::settings::Settings;
use crate::wheel::Wheel;

const NONE: u32 = u32::MAX;
/// Packets whose flows are looked for together.
const BATCH: usize = 32;
/// How long a connection that was closed waits for its last packets.
const CLOSING: u64 = 1_000_000_000;
/// How long a flow that is over waits for packets that come late: those of several queues are not in order. So the flows are
/// the same whoever hands over the packets.
const LATE: u64 = 100_000_000;
/// How far the packets' clock may go back without beginning anew.
const BACK: u64 = 10_000_000_000;

/// Flows that have not ended. It has the size that was asked for, and takes 188 bytes for a flow, names apart.
///
/// Flows are handed out as they end, by the time of the packets: each [`add`](Self::add) ends those that are over.
#[derive(Debug)]
pub struct Table {
    settings: Settings,
    idle: u64,
    active: u64,
    hasher: RandomState,
    /// The first entry of each place.
    places: Vec<u32>,
    entries: Vec<Entry>,
    /// The last of the entries without a flow; `chain` leads to the others.
    free: u32,
    wheel: Wheel,
    /// Time of the latest packet.
    now: u64,
    fragments: Fragments,
    names: AllNames,
    losses: Losses,
    counts: Counts,
}

impl Table {
    /// Makes a table. All of its memory is reserved at once; 12 bytes of each flow are used from the beginning.
    ///
    /// # Errors
    ///
    /// There is not so much memory.
    pub fn new(settings: &Settings) -> Result<Self, TryReserveError> {
        let flows = settings.flows.clamp(1, MOST);
        let (mut places, mut entries) = (Vec::new(), Vec::new());
        places.try_reserve_exact(flows as usize)?;
        places.resize(flows as usize, NONE);
        entries.try_reserve_exact(flows as usize)?;
        let [idle, active] = [settings.idle, settings.active]
            .map(|time| u64::try_from(time.as_nanos()).unwrap_or(u64::MAX).max(1));
        Ok(Self {
            settings: settings.clone(),
            idle,
            active,
            hasher: RandomState::default(),
            places,
            entries,
            free: NONE,
            wheel: Wheel::new(flows, idle.max(active))?,
            now: 0,
            fragments: Fragments::default(),
            names: AllNames::default(),
            losses: Losses::default(),
            counts: Counts::default(),
        })
    }

    /// Adds a packet to its flow. Flows that have ended by its time are handed out.
    #[inline]
    pub fn add(&mut self, observation: &Observation<'_>, ended: &mut impl FnMut(Flow)) {
        let seen = Seen::of(observation, &self.settings);
        let place = seen.as_ref().map_or(0, |seen| self.place(&seen.key));
        self.put(observation, seen, place, ended);
    }

    /// Adds packets, one after the other, as [`add`](Self::add) does. It is faster: what is kept of their flows comes from memory for several
    /// at a time.
    #[expect(single_use_lifetimes, reason = "`impl Iterator` takes no anonymous one")]
    pub fn add_all<'a>(
        &mut self,
        mut packets: impl Iterator<Item = Observation<'a>>,
        ended: &mut impl FnMut(Flow),
    ) {
        let mut batch = Vec::with_capacity(BATCH);
        loop {
            batch.extend(packets.by_ref().take(BATCH).map(|observation| {
                let seen = Seen::of(&observation, &self.settings);
                let place = seen.as_ref().map_or(0, |seen| self.place(&seen.key));
                (observation, seen, place)
            }));
            if batch.is_empty() {
                return;
            }
            self.touch(batch.iter().map(|(.., place)| *place));
            for (observation, seen, place) in batch.drain(..) {
                self.put(&observation, seen, place, ended);
            }
        }
    }

    /// Reads what is at these places, so that it is in the caches. The loads do not depend on one another, so the processor waits for
    /// several at once.
    fn touch(&self, places: impl Iterator<Item = usize>) {
        let mut found = [NONE; BATCH];
        for (index, place) in found.iter_mut().zip(places) {
            *index = self.places[place];
        }
        let entries = found.iter().filter_map(|index| self.entries.get(*index as usize));
        let read = entries.fold(0, |sum, entry| sum ^ u64::from(entry.key.ports[0]) ^ entry.packets[1]);
        std::hint::black_box(read);
    }

    #[inline]
    fn put(
        &mut self,
        observation: &Observation<'_>,
        seen: Result<Seen, Unseen>,
        mut place: usize,
        ended: &mut impl FnMut(Flow),
    ) {
        self.counts.packets += 1;
        self.advance(observation.time, ended);
        let mut seen = match seen {
            Ok(seen) => seen,
            Err(Unseen::NotIp) => return self.counts.not_ip += 1,
            Err(Unseen::Cut) => return self.counts.cut += 1,
        };
        match seen.part {
            Part::Whole => {}
            Part::First(datagram) => self.fragments.keep(datagram, seen.ports()),
            Part::Later(datagram) => match self.fragments.ports(&datagram) {
                Some(ports) => {
                    seen.set_ports(ports);
                    place = self.place(&seen.key);
                }
                None => self.counts.orphans += 1,
            },
        }
        self.counts.bytes += seen.bytes;
        let mut index = self.find(place, &seen.key);
        if index != NONE
            && let Some(reason) = self.is_over(index, &seen, observation.time)
        {
            self.end(index, reason, ended);
            index = NONE;
        }
        if index == NONE {
            let entry = Entry::new(&seen, observation.time, observation.interface);
            index = self.begin(place, entry, ended);
        }
        self.count(index, &seen, observation);
    }

    /// Adds packets that others have counted: of a flow that has ended, or whose own packets are older, they may begin another one. The
    /// table's time does not go on.
    pub fn add_counted(&mut self, counted: &Counted, ended: &mut impl FnMut(Flow)) {
        let (key, from) = counted.key(&self.settings);
        self.counts.packets += counted.packets;
        self.counts.bytes += counted.bytes;
        let place = self.place(&key);
        let mut index = self.find(place, &key);
        if index != NONE {
            let (deadline, reason) = self.deadline(index);
            if counted.first >= deadline {
                self.end(index, reason, ended);
                index = NONE;
            }
        }
        if index == NONE {
            index = self.begin(place, Entry::counted(key, from, counted), ended);
        }
        let entry = &mut self.entries[index as usize];
        let before = entry.packets[0] + entry.packets[1];
        entry.add_counted(from, counted);
        self.counts.in_table += counted.packets;
        if before < PACKETS && before + counted.packets >= PACKETS {
            self.names.end(index);
        }
    }

    /// Notes that packets of an interface were lost: later than one time, and not later than the other, by the packets' clock. Flows say
    /// how many that were meanwhile ([`Flow::lost`]).
    pub fn lost(&mut self, interface: u16, after: u64, until: u64, packets: u64) {
        if packets > 0 {
            self.losses.add(interface, after, until, packets);
        }
    }

    /// Hands out the flows that are over at this time, though no packet says so. A time that is before the latest packet's
    /// changes nothing.
    pub fn end_until(&mut self, time: u64, ended: &mut impl FnMut(Flow)) {
        if time > self.now {
            self.advance(time, ended);
        }
    }

    /// Hands out all flows.
    pub fn end_all(&mut self, ended: &mut impl FnMut(Flow)) {
        while let Some((index, _)) = self.wheel.pop_first() {
            let entry = &self.entries[index as usize];
            let reason = if entry.is_closed() { EndReason::Closed } else { EndReason::Forced };
            self.take(index, reason, ended);
        }
    }

    /// Returns what became of all packets.
    pub fn counts(&self) -> Counts {
        self.counts
    }

    /// Shows the flows that have not ended, in no order; their reason means nothing yet.
    pub fn for_each(&self, mut show: impl FnMut(Flow)) {
        for place in &self.places {
            let mut index = *place;
            while index != NONE {
                show(self.shown(index));
                index = self.entries[index as usize].chain;
            }
        }
    }

    /// Shows the flows that have not ended and rank highest, at most so many, the highest first; their reason means nothing yet.
    pub fn busiest(&self, most: usize, rank: Rank) -> Vec<Flow> {
        // The lowest of those that are kept is on top.
        let mut kept: BinaryHeap<Reverse<(u64, u32)>> = BinaryHeap::with_capacity(most.min(1 << 16));
        for place in &self.places {
            let mut index = *place;
            while index != NONE {
                let entry = &self.entries[index as usize];
                let ranked = Reverse((entry.rank(rank), index));
                if kept.len() < most {
                    kept.push(ranked);
                } else if let Some(mut lowest) = kept.peek_mut()
                    && ranked < *lowest
                {
                    *lowest = ranked;
                }
                index = entry.chain;
            }
        }
        kept.into_sorted_vec().into_iter().map(|Reverse((_, index))| self.shown(index)).collect()
    }

    #[cfg(test)]
    pub(crate) fn names(&self) -> &AllNames {
        &self.names
    }

    /// Returns a flow that has not ended.
    fn shown(&self, index: u32) -> Flow {
        let entry = &self.entries[index as usize];
        let names = self.names.get(index).filter(|_| entry.has_names());
        entry.flow(EndReason::Forced, names.map(|names| Box::new(names.clone())), self.lost_during(entry))
    }

    /// Returns how many packets were lost during a flow.
    fn lost_during(&self, entry: &Entry) -> u64 {
        let interface = (!self.settings.across_interfaces).then_some(entry.interface);
        self.losses.between(interface, entry.first, entry.last)
    }

    /// Moves on to this time.
    #[inline]
    fn advance(&mut self, time: u64, ended: &mut impl FnMut(Flow)) {
        if time <= self.now {
            if self.now - time > self.idle.max(self.active).max(BACK) {
                self.restart(time, ended);
            }
            return;
        }
        self.now = time;
        let tick = self.wheel.tick(time.saturating_sub(LATE));
        if self.wheel.is_due(tick) {
            self.end_before(tick, ended);
        }
    }

    /// Looks at the flows whose slot is over.
    fn end_before(&mut self, tick: u64, ended: &mut impl FnMut(Flow)) {
        while let Some(index) = self.wheel.pop_before(tick) {
            let (deadline, reason) = self.deadline(index);
            if self.wheel.tick(deadline) < tick {
                self.take(index, reason, ended);
            } else {
                self.wheel.insert(index, deadline);
            }
        }
    }

    /// The packets' clock has gone back: begins anew there.
    #[cold]
    fn restart(&mut self, time: u64, ended: &mut impl FnMut(Flow)) {
        self.end_all(ended);
        self.losses.clear();
        self.now = time;
        self.wheel.restart(self.wheel.tick(time.saturating_sub(LATE)));
        self.counts.restarts += 1;
    }

    /// When a flow is over, and why.
    fn deadline(&self, index: u32) -> (u64, EndReason) {
        let entry = &self.entries[index as usize];
        let idle = entry.last.saturating_add(self.idle);
        let active = entry.first.saturating_add(self.active);
        let (deadline, reason) =
            if active < idle { (active, EndReason::Active) } else { (idle, EndReason::Idle) };
        if entry.is_closed() {
            (deadline.min(entry.last.saturating_add(CLOSING)), EndReason::Closed)
        } else {
            (deadline, reason)
        }
    }

    /// Why a packet that would belong to this flow begins another.
    fn is_over(&self, index: u32, seen: &Seen, time: u64) -> Option<EndReason> {
        let (deadline, reason) = self.deadline(index);
        let entry = &self.entries[index as usize];
        // A SYN from before that comes late is of the connection that was closed.
        let opens = || seen.tcp.is_some_and(|tcp| tcp.flags & flag::SYN != 0) && time > entry.last;
        (time >= deadline || entry.is_closed() && opens()).then_some(reason)
    }

    fn place(&self, key: &Key) -> usize {
        let hash = u128::from(self.hasher.hash_one(key));
        usize::try_from((hash * self.places.len() as u128) >> 64).expect("below the number of places")
    }

    fn find(&self, place: usize, key: &Key) -> u32 {
        let mut index = self.places[place];
        while index != NONE {
            let entry = &self.entries[index as usize];
            if entry.key == *key {
                break;
            }
            index = entry.chain;
        }
        index
    }

    fn begin(&mut self, place: usize, mut entry: Entry, ended: &mut impl FnMut(Flow)) -> u32 {
        if self.free == NONE && self.entries.len() == self.places.len() {
            self.make_room(ended);
        }
        entry.chain = self.places[place];
        let index = self.free;
        let index = if index == NONE {
            self.entries.push(entry);
            u32::try_from(self.entries.len() - 1).expect("fewer than 2^32")
        } else {
            self.free = self.entries[index as usize].chain;
            self.entries[index as usize] = entry;
            index
        };
        self.places[place] = index;
        self.counts.flows += 1;
        let (deadline, _) = self.deadline(index);
        self.wheel.insert(index, deadline);
        index
    }

    /// Ends the flow that has been silent longest, to a thousandth of the longest timeout.
    #[cold]
    fn make_room(&mut self, ended: &mut impl FnMut(Flow)) {
        while let Some((index, tick)) = self.wheel.pop_first() {
            let entry = &self.entries[index as usize];
            let silent_until = entry.last.saturating_add(self.idle);
            if entry.is_closed() {
                return self.take(index, EndReason::Closed, ended);
            }
            if self.wheel.tick(silent_until) <= tick {
                return self.take(index, EndReason::NoRoom, ended);
            }
            self.wheel.insert(index, silent_until);
        }
    }

    #[inline]
    fn count(&mut self, index: u32, seen: &Seen, observation: &Observation<'_>) {
        let entry = &mut self.entries[index as usize];
        let was_closed = entry.is_closed();
        entry.add(seen, observation.time);
        self.counts.in_table += 1;
        let packets = entry.packets[0] + entry.packets[1];
        if self.settings.names && packets <= PACKETS {
            if self.names.read(index, seen.from, observation, self.settings.inner) {
                entry.set_names();
            }
            if packets == PACKETS {
                self.names.end(index);
            }
        }
        if entry.is_closed() && !was_closed {
            // The deadline comes nearer.
            self.wheel.remove(index);
            let (deadline, _) = self.deadline(index);
            self.wheel.insert(index, deadline);
        }
    }

    fn end(&mut self, index: u32, reason: EndReason, ended: &mut impl FnMut(Flow)) {
        self.wheel.remove(index);
        self.take(index, reason, ended);
    }

    /// Hands out a flow that the wheel no longer has.
    fn take(&mut self, index: u32, reason: EndReason, ended: &mut impl FnMut(Flow)) {
        let entry = &self.entries[index as usize];
        let names = if entry.has_names() { self.names.take(index) } else { None };
        let packets = entry.packets[0] + entry.packets[1];
        if packets < PACKETS {
            self.names.end(index);
        }
        let entry = &self.entries[index as usize];
        let flow = entry.flow(reason, names, self.lost_during(entry));
        self.unchain(index);
        self.entries[index as usize].chain = self.free;
        self.free = index;
        self.counts.flows -= 1;
        self.counts.in_table -= packets;
        self.counts.exported += packets;
        self.counts.ended[usize::from(reason.number()) - 1] += 1;
        ended(flow);
    }

    fn unchain(&mut self, index: u32) {
        let entry = &self.entries[index as usize];
        let place = self.place(&entry.key);
        let next = entry.chain;
        let mut at = self.places[place];
        if at == index {
            self.places[place] = next;
            return;
        }
        while self.entries[at as usize].chain != index {
            at = self.entries[at as usize].chain;
        }
        self.entries[at as usize].chain = next;
    }
}

/// Room for the links of the wheel.
const MOST: u32 = 1 << 31;
