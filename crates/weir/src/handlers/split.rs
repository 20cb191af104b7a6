//! Keeping the order of flows while a queue is helped (`Order::Flow`).
//!
//! A queue that is too full is *divided*: whoever runs out of work claims it, takes its next chunk, finds each packet's
//! flow group, and gives every member the records of its groups, in their order. Which groups are whose says a table. When
//! the table changes a line is drawn: nothing behind it is begun before everything in front of it is done, so no packet
//! of a group is in flight when the group moves. Once no closed chunk waits the queue is its home handler's again, behind a
//! line. While it is not divided no packet is looked at; so the first fragments of some datagrams may not have been seen when a
//! division begins: of its first chunks those with such fragments go to the home handler whole, between two lines.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use weir_ring::{Turn, Turns};

use super::desk::Desk;
use super::flow::{GROUPS, Place, Sorter};
use super::seat::Pace;
use super::share::{Owed, Share};
use super::team::Team;
use crate::Error;
use crate::chunk::Chunk;
use crate::patience::Woken;

/// What is known of a queue's flows.
#[derive(Debug)]
pub(super) struct Flows {
    link_type: u16,
    turns: Turns,
    sorter: Sorter,
    /// Chunks that were sorted since one was not looked at.
    sorted: u32,
    /// `None`: not divided.
    table: Option<Table>,
}

/// What is in a chunk.
struct Sorted {
    /// Where each record begins, and its flow group.
    records: Vec<(u32, u8)>,
    /// Packets of each group.
    counts: [u32; GROUPS],
    /// There are fragments of which nobody knows the flow.
    has_orphans: bool,
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
    /// What members had done when it was made.
    paces: Vec<(usize, Pace)>,
}

/// Chunks before a table may be changed because a member has too much: a line costs time.
const YOUNG: u32 = 8;
/// Shares of a chunk that another member may be behind by.
const BEHIND: u64 = 4;
/// Chunks at the beginning of a division in which fragments may follow a first that nobody has looked at. Later ones are
/// without a first, or late, and are not worth the time that lines cost.
const MOST_WHOLE: u32 = 8;
/// A table has this many members at most, as many as a `u8` counts.
const MOST_MEMBERS: usize = 256;

impl Flows {
    pub(super) fn new(link_type: u16) -> Self {
        Self { link_type, turns: Turns::new(), sorter: Sorter::new(), sorted: 0, table: None }
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
        self.sorted = 0;
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

    /// Looks at each packet of `chunk`.
    fn sort(&mut self, chunk: &Chunk) -> Sorted {
        if self.sorted == 0 {
            self.sorter.forget();
        }
        self.sorted = self.sorted.saturating_add(1);
        let mut sorted =
            Sorted { records: Vec::with_capacity(chunk.len()), counts: [0; GROUPS], has_orphans: false };
        for (begin, packet) in chunk.places() {
            let place = self.sorter.place(self.link_type, packet.data);
            sorted.has_orphans |= matches!(place, Place::Orphan(_));
            sorted.counts[usize::from(place.group())] += 1;
            sorted.records.push((begin, place.group()));
        }
        sorted
    }

    /// Whether that chunk is better not divided.
    fn must_stay_whole(&self, sorted: &Sorted) -> bool {
        sorted.has_orphans && self.sorted <= MOST_WHOLE
    }
}

impl Table {
    fn new(mut members: Vec<usize>, before: Option<&Self>, team: &Team, counts: &[u32; GROUPS]) -> Self {
        members.truncate(MOST_MEMBERS);
        let owner = owners(counts, &speeds(&members, before, team));
        let paces = members.iter().map(|&member| (member, team.seats[member].pace())).collect();
        Self { members, owner, age: 0, paces }
    }

    /// Whether handler `seat` has nothing to do while another one is far behind.
    fn is_lopsided(&self, team: &Team, seat: usize, packets: usize) -> bool {
        let most = BEHIND * packets as u64 / self.members.len() as u64;
        let behind = |&member: &usize| team.seats[member].owed() > most;
        self.age >= YOUNG && team.seats[seat].owed() == 0 && self.members.iter().any(behind)
    }
}

/// How fast each of `members` was while the table `before` held; of whom it cannot be told is as fast as the others.
fn speeds(members: &[usize], before: Option<&Table>, team: &Team) -> Vec<f64> {
    let paces = before.map_or(&[][..], |table| &table.paces);
    let speed = |member: &usize| {
        let (_, pace) = paces.iter().find(|(one, _)| one == member)?;
        team.seats[*member].pace().speed_since(*pace)
    };
    let known: Vec<Option<f64>> = members.iter().map(speed).collect();
    let told = known.iter().flatten().count().max(1);
    let mean = known.iter().flatten().sum::<f64>() / told as f64;
    known.into_iter().map(|speed| speed.unwrap_or(if mean > 0.0 { mean } else { 1.0 })).collect()
}

/// Divides flow groups so that all members take as long, each at its speed: the largest first, each to who is done with it
/// first. What members have still to do counts for nothing: behind the line all begin at once.
fn owners(counts: &[u32; GROUPS], speeds: &[f64]) -> [u8; GROUPS] {
    let mut work = vec![0; speeds.len()];
    let mut groups: Vec<usize> = (0..GROUPS).collect();
    groups.sort_unstable_by_key(|&group| std::cmp::Reverse(counts[group]));
    let mut owner = [0; GROUPS];
    for group in groups {
        // One packet more, so that groups not seen yet are divided as well.
        let packets = u64::from(counts[group]) + 1;
        let end = |&position: &usize| (work[position] + packets) as f64 / speeds[position];
        let first = (0..work.len()).min_by(|one, other| end(one).total_cmp(&end(other))).unwrap_or(0);
        work[first] += packets;
        owner[group] = u8::try_from(first).expect("there are no more members");
    }
    owner
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
        let sorted = flows.sort(&chunk);
        if flows.must_stay_whole(&sorted) {
            let home = &team.seats[self.home()];
            flows.turns.draw_line();
            let mut share = Share::of_chunk(chunk, flows.turns.give());
            flows.turns.draw_line();
            share.pass_on(home);
            home.give(self.number(), share);
            return Ok(true);
        }
        let Sorted { records, counts, .. } = sorted;
        let table = match flows.table.take() {
            Some(table) if member && !table.is_lopsided(team, seat, records.len()) => table,
            old => {
                let mut members =
                    old.as_ref().map_or_else(|| vec![self.home()], |table| table.members.clone());
                members.push(seat);
                members.sort_unstable();
                members.dedup();
                members.retain(|&member| team.seats[member].is_running());
                flows.turns.draw_line();
                Table::new(members, old.as_ref(), team, &counts)
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_member_gets_as_much_as_it_is_fast() {
        let mut counts = [0; GROUPS];
        counts[..64].fill(10);
        let packets = |speeds: &[f64]| {
            let owner = owners(&counts, speeds);
            let of =
                |member: usize| (0..64).filter(|&group| usize::from(owner[group]) == member).count() * 10;
            (0..speeds.len()).map(of).collect::<Vec<_>>()
        };
        assert_eq!(packets(&[1.0, 1.0]), [320, 320]);
        assert_eq!(packets(&[3.0, 1.0]), [480, 160]);
        assert_eq!(packets(&[1e-5, 1e-5, 2e-5]), [160, 160, 320]);
    }
}
