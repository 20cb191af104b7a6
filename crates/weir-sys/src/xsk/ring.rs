//! The two ends of a ring that this process has: the producer of frames for the kernel, and the consumer of those that
//! come back.
//!
//! Partners of the orderings are the letters at the head of the kernel's net/xdp/xsk_queue.h: a producer stores its
//! index with release (B) after the entries, a consumer loads it with acquire (C) before them; a consumer stores its
//! index with release (D) after it has read the entries, and the producer overwrites them only after it has seen that
//! index (A).

use std::marker::PhantomData;
use std::sync::atomic::Ordering::{Acquire, Relaxed, Release};

use rustix::net::xdp::XdpRingFlags;

use super::memory::RingMemory;

/// What an entry holds.
pub(super) trait Entry: Copy {
    /// 64-bit words of it.
    const WORDS: usize;

    /// Writes it, word by word.
    fn store(self, slot: impl FnMut(usize, u64));

    /// Reads each word once (X2).
    fn load(slot: impl FnMut(usize) -> u64) -> Self;
}

/// A frame's address: an entry of the fill ring and of the completion ring (`__u64`).
impl Entry for u64 {
    const WORDS: usize = 1;

    fn store(self, mut slot: impl FnMut(usize, Self)) {
        slot(0, self);
    }

    fn load(mut slot: impl FnMut(usize) -> Self) -> Self {
        slot(0)
    }
}

/// A full frame: an entry of the receive ring and of the transmit ring (`struct xdp_desc`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Descriptor {
    /// Of the first byte, from the beginning of the memory.
    pub(super) address: u64,
    /// Bytes.
    pub(super) length: u32,
    /// `XDP_PKT_CONTD` and what is for tomorrow.
    pub(super) options: u32,
}

impl Entry for Descriptor {
    const WORDS: usize = 2;

    fn store(self, mut slot: impl FnMut(usize, u64)) {
        slot(0, self.address);
        let [a, b, c, d] = self.length.to_ne_bytes();
        let [e, f, g, h] = self.options.to_ne_bytes();
        slot(1, u64::from_ne_bytes([a, b, c, d, e, f, g, h]));
    }

    fn load(mut slot: impl FnMut(usize) -> u64) -> Self {
        let address = slot(0);
        let [a, b, c, d, e, f, g, h] = slot(1).to_ne_bytes();
        let length = u32::from_ne_bytes([a, b, c, d]);
        Self { address, length, options: u32::from_ne_bytes([e, f, g, h]) }
    }
}

/// Our end of a ring that the kernel consumes. This process is its only producer.
#[derive(Debug)]
pub(super) struct Producer<E> {
    pub(super) ring: RingMemory,
    /// What the producer word holds, or will with the next `publish`.
    pub(super) produced: u32,
    entry: PhantomData<E>,
}

impl<E: Entry> Producer<E> {
    /// Of a ring in which nothing has been yet.
    pub(super) fn new(ring: RingMemory) -> Self {
        Self { ring, produced: 0, entry: PhantomData }
    }

    /// Entries that may be set. 0 where the kernel's index makes no sense.
    pub(super) fn room(&self) -> u32 {
        self.ring.len().saturating_sub(self.waiting())
    }

    /// Entries that the kernel has not consumed; more than there are where its index makes no sense.
    pub(super) fn waiting(&self) -> u32 {
        // Acquire: pairs with (D), as (A).
        self.produced.wrapping_sub(self.ring.consumer().load(Acquire))
    }

    /// Sets the entry `ahead` of what is published, which must be below `room`.
    pub(super) fn set(&self, ahead: u32, entry: E) {
        let index = self.produced.wrapping_add(ahead);
        entry.store(|word, value| self.ring.slot(index, word).store(value, Relaxed));
    }

    /// Gives the next `count` entries, each of them set, to the kernel.
    pub(super) fn publish(&mut self, count: u32) {
        self.produced = self.produced.wrapping_add(count);
        // (B): the entries, and all that was done to the frames, come before; pairs with (C).
        self.ring.producer().store(self.produced, Release);
    }

    /// Whether the kernel waits for a call before it looks at the ring.
    ///
    /// No fence stands between publishing and this look. The kernel has none between raising the flag and looking at the
    /// ring either, so one here could not close the gap; a caller that looks again later, as each loop does, sees the
    /// flag then.
    pub(super) fn needs_wakeup(&self) -> bool {
        self.ring.flags().load(Relaxed) & XdpRingFlags::XDP_RING_NEED_WAKEUP.bits() != 0
    }
}

/// Our end of a ring that the kernel produces. This process is its only consumer.
#[derive(Debug)]
pub(super) struct Consumer<E> {
    pub(super) ring: RingMemory,
    /// What the consumer word holds.
    pub(super) consumed: u32,
    entry: PhantomData<E>,
}

impl<E: Entry> Consumer<E> {
    /// Of a ring in which nothing has been yet.
    pub(super) fn new(ring: RingMemory) -> Self {
        Self { ring, consumed: 0, entry: PhantomData }
    }

    /// Entries that may be got. Never more than the ring has, whatever the kernel's index says.
    pub(super) fn available(&self) -> u32 {
        // (C): pairs with (B). Entries and frames are read after.
        let produced = self.ring.producer().load(Acquire);
        produced.wrapping_sub(self.consumed).min(self.ring.len())
    }

    /// A copy of the entry `ahead` of the first, which must be below `available`.
    pub(super) fn get(&self, ahead: u32) -> E {
        let index = self.consumed.wrapping_add(ahead);
        E::load(|word| self.ring.slot(index, word).load(Relaxed))
    }

    /// Gives the first `count` entries back.
    pub(super) fn release(&mut self, count: u32) {
        self.consumed = self.consumed.wrapping_add(count);
        // (D): the entries were read before; pairs with (A).
        self.ring.consumer().store(self.consumed, Release);
    }
}
