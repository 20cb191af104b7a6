//! Keeps flows in order while a queue gets help (`Order::Flow`).
//!
//! A queue that is too full is *divided*. An idle handler claims it, takes its next chunk, finds the flow group of each
//! packet, and lays the chunk out, with a strand for each group ([`weir_ring::Strands`]). All handlers of the queue's
//! group then take parts of the strands, and no two handlers have the same strand. When no closed chunk is waiting and
//! everything laid out is done, the queue returns to its home handler.
//!
//! While a queue is not divided, its packets are not parsed, so the first fragments of some datagrams may have been
//! missed when a division begins. Of the first chunks of a division, those with such fragments are therefore handled
//! whole, by one handler, after everything before and before everything after them.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use weir_ring::{Piece, Strands};

use super::desk::Desk;
use super::flow::{Place, Sorter};
use super::share::Share;
use super::team::Team;
use crate::Error;
use crate::chunk::Chunk;
use crate::live::patience::Woken;

/// The flows of a queue.
#[derive(Debug)]
pub(super) struct Flows {
    link_type: u16,
    sorter: Sorter,
    /// Number of chunks sorted since one was skipped.
    sorted: u32,
}

/// Parts of a chunk per handler that may take one: a handler that is slower, or not running, takes fewer.
pub(super) const PARTS: usize = 4;
/// Number of chunks at the start of a division that may contain later fragments of datagrams whose first one was
/// missed. Further on, the first fragment is lost or late, which does not justify making others wait.
const MOST_WHOLE: u32 = 8;

impl Flows {
    pub(super) fn new(link_type: u16) -> Self {
        Self { link_type, sorter: Sorter::new(), sorted: 0 }
    }

    /// Notes that a chunk was taken without sorting.
    pub(super) fn skip(&mut self) {
        self.sorted = 0;
    }

    /// Finds the flow group of each packet of `chunk`.
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
    /// Takes a part for handler `seat`.
    pub(super) fn part(&self, team: &Team, seat: usize) -> Result<Option<Share>, Error> {
        let Some(strands) = self.strands() else { return Ok(None) };
        // Lays out one chunk beyond the current one, so that nobody waits while the next is sorted.
        let mut ahead = 1;
        loop {
            let more = strands.waiting() <= ahead && self.divide(team, strands)?;
            if let Some(taken) = strands.take(seat, self.parts()) {
                return Ok(Some(Share::of_strands(taken)));
            }
            if ahead == self.parts() && !more {
                return Ok(None);
            }
            // All strands are in use, so lay out more chunks, but only up to a limit: they no longer count as waiting.
            ahead = self.parts();
        }
    }

    /// Lays out the next closed chunk. If none is waiting and everything is done, ends the division. Returns whether
    /// there is more now.
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

    /// Discards what was laid out, because no handler is left.
    pub(super) fn abandon(&self) {
        for (chunk, left) in self.strands().map(Strands::clear).unwrap_or_default() {
            chunk.discard(left.unwrap_or(chunk.len()) as u64);
        }
    }
}
