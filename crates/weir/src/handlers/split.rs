//! Keeping the order of flows while a queue is helped (`Order::Flow`).
//!
//! A queue that is too full is *divided*: whoever runs out of work claims it, takes its next chunk, finds each packet's
//! flow group, and lays the chunk out, each group a strand ([`weir_ring::Strands`]). Of strands everybody in the queue's buddy
//! group takes a part at a time, and no strand is in two hands. Once no closed chunk waits, and all that was laid out is done,
//! the queue is its home handler's again. While it is not divided no packet is looked at; so the first fragments of some
//! datagrams may not have been seen when a division begins: of its first chunks those with such fragments are done whole,
//! by one handler, after all before them and before all behind them.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use weir_ring::{Piece, Strands};

use super::desk::Desk;
use super::flow::{Place, Sorter};
use super::share::Share;
use super::team::Team;
use crate::Error;
use crate::chunk::Chunk;
use crate::patience::Woken;

/// What is known of a queue's flows.
#[derive(Debug)]
pub(super) struct Flows {
    link_type: u16,
    sorter: Sorter,
    /// Chunks that were sorted since one was not looked at.
    sorted: u32,
}

/// Parts of a chunk for each handler that may come for one: he who is slower, or is kept from his processor, takes fewer.
pub(super) const PARTS: usize = 4;
/// Chunks at the beginning of a division in which fragments may follow a first that nobody has looked at. Later ones are
/// without a first, or late, and are not worth the time in which others have to wait.
const MOST_WHOLE: u32 = 8;

impl Flows {
    pub(super) fn new(link_type: u16) -> Self {
        Self { link_type, sorter: Sorter::new(), sorted: 0 }
    }

    /// A chunk is taken as it is.
    pub(super) fn skip(&mut self) {
        self.sorted = 0;
    }

    /// Looks at each packet of `chunk`.
    fn sort(&mut self, chunk: Chunk) -> Piece<Arc<Chunk>> {
        if self.sorted == 0 {
            self.sorter.forget();
        }
        self.sorted = self.sorted.saturating_add(1);
        let mut has_orphans = false;
        let mut groups = Vec::with_capacity(chunk.len());
        for (begin, packet) in chunk.places() {
            let place = self.sorter.place(self.link_type, packet.data);
            has_orphans |= matches!(place, Place::Orphan(_));
            groups.push((begin, place.group()));
        }
        let chunk = Arc::new(chunk);
        if has_orphans && self.sorted <= MOST_WHOLE {
            Piece::whole(chunk)
        } else {
            Piece::new(chunk, &groups)
        }
    }
}

impl Desk {
    /// A part of what is laid out, for handler `seat`.
    pub(super) fn part(&self, team: &Team, seat: usize) -> Result<Option<Share>, Error> {
        let Some(strands) = self.strands() else { return Ok(None) };
        // Chunks laid out beside the one that is taken from, so that nobody waits while the packets of the next are looked at.
        let mut ahead = 1;
        loop {
            let more = strands.waiting() <= ahead && self.divide(team, strands)?;
            if let Some(taken) = strands.take(seat, self.parts()) {
                return Ok(Some(Share::of_strands(taken)));
            }
            if ahead == self.parts() && !more {
                return Ok(None);
            }
            // All of them have to wait for what others have in hand. Not without end: what is laid out looks like room.
            ahead = self.parts();
        }
    }

    /// Lays out the next closed chunk; where none waits, and all is done, ends the division. Whether there is more now.
    fn divide(&self, team: &Team, strands: &Strands<Arc<Chunk>>) -> Result<bool, Error> {
        let Some(mut stock) = self.try_claim() else { return Ok(false) };
        let (outlet, Some(flows)) = stock.both() else { return Ok(false) };
        if !self.is_divided() && self.ready_chunks() <= self.limit() {
            return Ok(false);
        }
        if self.ready_chunks() == 0 || !outlet.ready()?.closed {
            if self.is_divided() && strands.is_done() {
                self.set_divided(false);
                team.seats[self.home()].ring(Woken::News);
            }
            return Ok(false);
        }
        let Some(chunk) = outlet.take()? else { return Ok(false) };
        strands.lay_out(flows.sort(chunk));
        self.set_divided(true);
        self.lane().offloaded.fetch_add(1, Ordering::Relaxed);
        drop(stock);
        team.call(self);
        Ok(true)
    }

    /// Nobody is left to do what was laid out.
    pub(super) fn abandon(&self) {
        for (chunk, left) in self.strands().map(Strands::clear).unwrap_or_default() {
            chunk.discard(left.unwrap_or(chunk.len()) as u64);
        }
    }
}
