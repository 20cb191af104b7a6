//! Keeping the order of flows while a queue is helped (`Order::Flow`).
//!
//! A queue that is too full is *divided*: whoever runs out of work claims it, takes its next chunk, finds each packet's
//! flow group, and gives every member the records of its groups, in their order. Which groups are whose says a table. When
//! the table changes a line is drawn: nothing behind it is begun before everything in front of it is done, so no packet
//! of a group is in flight when the group moves. Once no closed chunk waits the queue is its home handler's again, behind a
//! line. While it is not divided no packet is looked at.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use weir_ring::{Turn, Turns};

use super::flow::{GROUPS, Sorter};
use super::share::{Owed, Share};
use super::team::{Desk, Team};
use crate::Error;
use crate::chunk::Chunk;
use crate::patience::Woken;

/// What is known of a queue's flows.
#[derive(Debug)]
pub(super) struct Flows {
    link_type: u16,
    turns: Turns,
    sorter: Sorter,
    /// `None`: not divided.
    table: Option<Table>,
}

/// Who does which flow groups.
#[derive(Debug)]
struct Table {
    /// Handlers.
    members: Vec<usize>,
    /// By flow group: a position in `members`.
    owner: [u8; GROUPS],
    /// Chunks divided by it.
    age: u32,
}

/// Chunks before a table may be changed because a member has too much: a line costs time.
const YOUNG: u32 = 8;
/// Chunks that another member may be behind by.
const BEHIND: u64 = 4;
/// A table has this many members at most, as many as a `u8` counts.
const MOST_MEMBERS: usize = 256;

impl Flows {
    pub(super) fn new(link_type: u16) -> Self {
        Self { link_type, turns: Turns::new(), sorter: Sorter::new(), table: None }
    }

    /// Whether the home handler may take chunks as they are.
    pub(super) fn is_whole(&self) -> bool {
        self.table.is_none() && self.turns.line_is_passed()
    }

    pub(super) fn is_divided(&self) -> bool {
        self.table.is_some()
    }

    /// For a whole chunk.
    pub(super) fn turn(&mut self) -> Turn {
        self.turns.give()
    }

    /// Handler `from` goes, and `to` has what it had. What `from` was given goes to `to` as well.
    pub(super) fn inherit(&mut self, from: usize, to: usize) {
        self.turns.draw_line();
        if let Some(table) = &mut self.table {
            // Once or twice in it: two positions of one handler do no harm.
            table.members.iter_mut().filter(|member| **member == from).for_each(|member| *member = to);
        }
    }

    /// Each record's place in `chunk` with its flow group, and how many each group has.
    fn sort(&mut self, chunk: &Chunk) -> (Vec<(u32, u8)>, [u32; GROUPS]) {
        let mut counts = [0; GROUPS];
        let mut records = Vec::with_capacity(chunk.len());
        for (place, packet) in chunk.places() {
            let group = self.sorter.group(self.link_type, packet.data);
            counts[usize::from(group)] += 1;
            records.push((place, group));
        }
        (records, counts)
    }
}

impl Table {
    /// Divides flow groups so that each member has as little to do as the others: the largest first, each to whom has least.
    fn new(mut members: Vec<usize>, team: &Team, counts: &[u32; GROUPS]) -> Self {
        members.truncate(MOST_MEMBERS);
        let mut work: Vec<u64> = members.iter().map(|&member| team.seats[member].owed()).collect();
        let mut groups: Vec<usize> = (0..GROUPS).collect();
        groups.sort_unstable_by_key(|&group| std::cmp::Reverse(counts[group]));
        let mut owner = [0; GROUPS];
        for group in groups {
            let least = (0..work.len()).min_by_key(|&position| work[position]).unwrap_or(0);
            // One packet more, so that groups not seen yet are divided as well.
            work[least] += u64::from(counts[group]) + 1;
            owner[group] = u8::try_from(least).expect("there are no more members");
        }
        Self { members, owner, age: 0 }
    }

    /// Whether handler `seat` has nothing to do while another one is far behind.
    fn is_lopsided(&self, team: &Team, seat: usize, packets: usize) -> bool {
        let behind = |&member: &usize| team.seats[member].owed() > BEHIND * packets as u64;
        self.age >= YOUNG && team.seats[seat].owed() == 0 && self.members.iter().any(behind)
    }
}

impl Desk {
    /// Divides the next closed chunk, or ends the division where none waits. `joins`: the handler `seat` may become a member.
    /// Whether something has changed.
    pub(super) fn divide(&self, team: &Team, seat: usize, joins: bool) -> Result<bool, Error> {
        let Some(mut stock) = self.try_claim() else { return Ok(false) };
        let (outlet, Some(flows)) = stock.both() else { return Ok(false) };
        let ready = self.ready_chunks();
        let member = flows.table.as_ref().is_some_and(|table| table.members.contains(&seat));
        if !(member || joins && ready > self.limit()) {
            return Ok(false);
        }
        if ready == 0 || !outlet.ready()?.closed {
            flows.table = None;
            flows.turns.draw_line();
            self.set_divided(false);
            team.seats[self.home()].ring(Woken::News);
            return Ok(true);
        }
        let Some(chunk) = outlet.take()? else { return Ok(false) };
        let (records, counts) = flows.sort(&chunk);
        let table = match flows.table.take() {
            Some(table) if member && !table.is_lopsided(team, seat, records.len()) => table,
            old => {
                let mut members = old.map_or_else(|| vec![self.home()], |table| table.members);
                members.push(seat);
                members.sort_unstable();
                members.dedup();
                members.retain(|&member| team.seats[member].is_running());
                flows.turns.draw_line();
                Table::new(members, team, &counts)
            }
        };
        self.set_divided(true);
        self.lane().offloaded.fetch_add(1, Ordering::Relaxed);
        let mut lists: Vec<Vec<u32>> = vec![Vec::new(); table.members.len()];
        for (place, group) in records {
            lists[usize::from(table.owner[usize::from(group)])].push(place);
        }
        let chunk = Arc::new(chunk);
        for (&member, list) in table.members.iter().zip(lists).filter(|(_, list)| !list.is_empty()) {
            let to = &team.seats[member];
            let owed = Owed::new(to, list.len() as u64);
            to.give(self.number(), Share::of_records(&chunk, list, flows.turns.give(), owed));
        }
        flows.table = Some(Table { age: table.age.saturating_add(1), ..table });
        Ok(true)
    }
}
