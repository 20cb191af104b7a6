//! The process's ends of rings: the producer of frames for the kernel, and the consumer of frames that come back.
//!
//! The letters name the partners of the orderings, as in the head of the kernel's net/xdp/xsk_queue.h. A producer
//! stores its index with release (B) after the entries, and a consumer loads it with acquire (C) before them. A
//! consumer stores its index with release (D) after reading the entries, and the producer overwrites them only after it
//! has seen that index (A).

use std::marker::PhantomData;
use std::sync::atomic::Ordering::{Acquire, Relaxed, Release};

use rustix::net::xdp::XdpRingFlags;

use super::memory::RingMemory;

/// The contents of an entry.
pub(super) trait Entry: Copy {
    /// 64-bit words per entry.
    const WORDS: usize;

    /// Writes the entry, word by word.
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
    /// Offset of the first byte in the memory.
    pub(super) address: u64,
    /// Length in bytes.
    pub(super) length: u32,
    /// `XDP_PKT_CONTD`, and bits reserved for the future.
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
    /// The value of the producer word, now or after the next `publish`.
    pub(super) produced: u32,
    entry: PhantomData<E>,
}

impl<E: Entry> Producer<E> {
    /// Creates the end of an unused ring.
    pub(super) fn new(ring: RingMemory) -> Self {
        Self { ring, produced: 0, entry: PhantomData }
    }

    /// Returns the number of entries that may be set; 0 if the kernel's index makes no sense.
    pub(super) fn room(&self) -> u32 {
        self.ring.len().saturating_sub(self.waiting())
    }

    /// Returns the number of entries that the kernel has not consumed; more than the ring has if its index makes no
    /// sense.
    pub(super) fn waiting(&self) -> u32 {
        // Acquire: pairs with (D), as (A).
        self.produced.wrapping_sub(self.ring.consumer().load(Acquire))
    }

    /// Sets the entry `ahead` places after the published ones. `ahead` must be below `room`.
    pub(super) fn set(&self, ahead: u32, entry: E) {
        let index = self.produced.wrapping_add(ahead);
        entry.store(|word, value| self.ring.slot(index, word).store(value, Relaxed));
    }

    /// Gives the next `count` entries, all of them set, to the kernel.
    pub(super) fn publish(&mut self, count: u32) {
        self.produced = self.produced.wrapping_add(count);
        // (B): follows the entries and all accesses to the frames; pairs with (C).
        self.ring.producer().store(self.produced, Release);
    }

    /// Returns whether the kernel waits for a call before it checks the ring.
    ///
    /// There is no fence between publishing and this check. The kernel has none between setting the flag and checking
    /// the ring, either, so a fence here could not close the gap. A caller that checks again later, as every loop does,
    /// sees the flag then.
    pub(super) fn needs_wakeup(&self) -> bool {
        self.ring.flags().load(Relaxed) & XdpRingFlags::XDP_RING_NEED_WAKEUP.bits() != 0
    }
}

/// Our end of a ring that the kernel produces. This process is its only consumer.
#[derive(Debug)]
pub(super) struct Consumer<E> {
    pub(super) ring: RingMemory,
    /// The value of the consumer word.
    pub(super) consumed: u32,
    entry: PhantomData<E>,
}

impl<E: Entry> Consumer<E> {
    /// Creates the end of an unused ring.
    pub(super) fn new(ring: RingMemory) -> Self {
        Self { ring, consumed: 0, entry: PhantomData }
    }

    /// Returns the number of entries available. Never more than the ring has, whatever the kernel's index says.
    pub(super) fn available(&self) -> u32 {
        // (C): pairs with (B). Entries and frames are read afterwards.
        let produced = self.ring.producer().load(Acquire);
        produced.wrapping_sub(self.consumed).min(self.ring.len())
    }

    /// Returns a copy of the entry `ahead` places after the first. `ahead` must be below `available`.
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
