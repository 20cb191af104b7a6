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

use weir_ring::Strands;

use super::desk::Desk;
use super::share::Share;
use super::team::Team;
use crate::Error;
use crate::chunk::Chunk;
use crate::live::wait_strategy::Woken;

impl Team {
    /// Takes a share for a helping handler: a part if flows stay in order, otherwise a whole chunk, or what is left of
    /// one.
    pub(super) fn help(&self, desk: &Desk, seat: usize) -> Result<Option<Share>, Error> {
        if desk.strands().is_some() {
            return self.part(desk, seat);
        }
        let Some(mut stock) = desk.try_claim() else { return Ok(None) };
        if !desk.is_too_full_with(desk.ready_chunks()) || !stock.both().0.ready()?.closed {
            return Ok(None);
        }
        let chunk = stock.both().0.take()?;
        if chunk.is_some() {
            // Relaxed: an independent counter.
            desk.lane().offloaded.fetch_add(1, Ordering::Relaxed);
        }
        Ok(chunk.map(Share::from))
    }

    /// Takes a part for handler `seat`.
    pub(super) fn part(&self, desk: &Desk, seat: usize) -> Result<Option<Share>, Error> {
        let Some(strands) = desk.strands() else { return Ok(None) };
        // Lays out one chunk beyond the current one, so that nobody waits while the next is sorted.
        let mut ahead = 1;
        loop {
            let more = strands.waiting() <= ahead && self.divide(desk, strands)?;
            if let Some(taken) = strands.take(seat, desk.parts()) {
                return Ok(Some(Share::of_strands(taken)));
            }
            if ahead == desk.parts() && !more {
                return Ok(None);
            }
            // All strands are in use, so lay out more chunks, but only up to a limit: they no longer count as waiting.
            ahead = desk.parts();
        }
    }

    /// Lays out the next closed chunk. If none is waiting and everything is done, ends the division. Returns whether
    /// there is more now.
    fn divide(&self, desk: &Desk, strands: &Strands<Arc<Chunk>>) -> Result<bool, Error> {
        let Some(mut stock) = desk.try_claim() else { return Ok(false) };
        let (outlet, Some(flows)) = stock.both() else { return Ok(false) };
        if !desk.is_divided() && !desk.is_too_full_with(desk.ready_chunks()) {
            return Ok(false);
        }
        if desk.ready_chunks() == 0 || !outlet.ready()?.closed {
            if desk.is_divided() && strands.is_done() {
                desk.set_divided(false);
                self.seats[desk.home()].ring(Woken::News);
            }
            return Ok(false);
        }
        let Some(chunk) = outlet.take()? else { return Ok(false) };
        strands.lay_out(flows.sort(chunk));
        desk.set_divided(true);
        desk.lane().offloaded.fetch_add(1, Ordering::Relaxed);
        drop(stock);
        self.call(desk);
        Ok(true)
    }
}
