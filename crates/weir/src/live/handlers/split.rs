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

use super::share::Share;
use super::work_queue::WorkQueue;
use super::worker_group::WorkerGroup;
use crate::Error;
use crate::chunk::Chunk;
use crate::live::wait::strategy::Woken;

impl WorkerGroup {
    /// Takes a share for a helping handler: a part if flows stay in order, otherwise a whole chunk, or what is left of
    /// one.
    pub(super) fn help(&self, queue: &WorkQueue, number: usize) -> Result<Option<Share>, Error> {
        if queue.strands().is_some() {
            return self.part(queue, number);
        }
        let Some(mut contents) = queue.try_claim() else { return Ok(None) };
        if !queue.is_too_full_with(queue.ready_chunks()) || !contents.both().0.ready()?.closed {
            return Ok(None);
        }
        let chunk = contents.both().0.take()?;
        if chunk.is_some() {
            // Relaxed: an independent counter.
            queue.lane().offloaded.fetch_add(1, Ordering::Relaxed);
        }
        Ok(chunk.map(Share::from))
    }

    /// Takes a part for handler `number`.
    pub(super) fn part(&self, queue: &WorkQueue, number: usize) -> Result<Option<Share>, Error> {
        let Some(strands) = queue.strands() else { return Ok(None) };
        // Lays out one chunk beyond the current one, so that nobody waits while the next is sorted.
        let mut ahead = 1;
        loop {
            let more = strands.waiting() <= ahead && self.divide(queue, strands)?;
            if let Some(taken) = strands.take(number, queue.parts()) {
                return Ok(Some(Share::of_strands(taken)));
            }
            if ahead == queue.parts() && !more {
                return Ok(None);
            }
            // All strands are in use, so lay out more chunks, but only up to a limit: they no longer count as waiting.
            ahead = queue.parts();
        }
    }

    /// Lays out the next closed chunk. If none is waiting and everything is done, ends the division. Returns whether
    /// there is more now.
    fn divide(&self, queue: &WorkQueue, strands: &Strands<Arc<Chunk>>) -> Result<bool, Error> {
        let Some(mut contents) = queue.try_claim() else { return Ok(false) };
        let (outlet, Some(flows)) = contents.both() else { return Ok(false) };
        if !queue.is_divided() && !queue.is_too_full_with(queue.ready_chunks()) {
            return Ok(false);
        }
        if queue.ready_chunks() == 0 || !outlet.ready()?.closed {
            if queue.is_divided() && strands.is_done() {
                queue.set_divided(false);
                self.workers[queue.home()].ring(Woken::News);
            }
            return Ok(false);
        }
        let Some(chunk) = outlet.take()? else { return Ok(false) };
        strands.lay_out(flows.sort(chunk));
        queue.set_divided(true);
        queue.lane().offloaded.fetch_add(1, Ordering::Relaxed);
        drop(contents);
        self.call(queue);
        Ok(true)
    }
}
