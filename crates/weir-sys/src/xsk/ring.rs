//! The two rings, seen from this process.
//!
//! Partners of the orderings are the letters at the head of the kernel's net/xdp/xsk_queue.h: a producer stores its
//! index with release (B) after the entries, a consumer loads it with acquire (C) before them; a consumer stores its
//! index with release (D) after it has read the entries, and the producer overwrites them only after it has seen that
//! index (A).

use std::io;
use std::os::fd::AsFd;
use std::sync::atomic::Ordering::{Acquire, Relaxed, Release};
use std::sync::atomic::{AtomicU32, AtomicU64};

use rustix::net::xdp::{XdpRingFlags, XdpRingOffset};

use super::mapping::Mapping;

/// Memory of one ring. Indices count for ever and wrap; an index's entry is its low bits.
#[derive(Debug)]
pub(super) struct Ring {
    mapping: Mapping,
    // Byte offsets, X1.
    producer: usize,
    consumer: usize,
    flags: usize,
    entries: usize,
    mask: u32,
}

impl Ring {
    /// Maps a ring of `entries` (a power of two) of `entry` bytes each.
    pub(super) fn map(
        socket: impl AsFd,
        page: u64,
        at: &XdpRingOffset,
        entries: u32,
        entry: usize,
    ) -> io::Result<Self> {
        let wrong = || io::Error::new(io::ErrorKind::InvalidData, "the kernel's offsets make no sense");
        let length =
            usize::try_from(at.desc).ok().and_then(|desc| desc.checked_add(entries as usize * entry));
        let mapping = Mapping::shared(socket, page, length.ok_or_else(wrong)?)?;
        Self::new(mapping, at, entries, entry).ok_or_else(wrong)
    }

    /// Establishes X1; `None` where the offsets do not allow it.
    fn new(mapping: Mapping, at: &XdpRingOffset, entries: u32, entry: usize) -> Option<Self> {
        let inside = |offset: u64, bytes: usize, align: usize| {
            let offset = usize::try_from(offset).ok()?;
            let fits = offset.checked_add(bytes)? <= mapping.len();
            (fits && offset.is_multiple_of(align)).then_some(offset)
        };
        let producer = inside(at.producer, 4, 4)?;
        let consumer = inside(at.consumer, 4, 4)?;
        let flags = inside(at.flags?, 4, 4)?;
        let first = inside(at.desc, (entries as usize).checked_mul(entry)?, 8)?;
        let mask = entries.is_power_of_two().then(|| entries - 1)?;
        Some(Self { mapping, producer, consumer, flags, entries: first, mask })
    }

    fn len(&self) -> u32 {
        self.mask + 1
    }

    /// `offset` is one of `producer`, `consumer` and `flags`.
    fn word(&self, offset: usize) -> &AtomicU32 {
        // SAFETY: Inside of the mapping by X1.
        let word = unsafe { self.mapping.base().add(offset) };
        // SAFETY: Mapped as long as `self`, aligned by X1, and by X2 never touched but by whole words.
        unsafe { AtomicU32::from_ptr(word.cast()) }
    }

    /// The 64-bit word `word` of entry `index`; an entry has `words` of them.
    fn slot(&self, index: u32, words: usize, word: usize) -> &AtomicU64 {
        debug_assert!(word < words, "word {word} of {words}");
        let offset = self.entries + ((index & self.mask) as usize * words + word) * 8;
        // SAFETY: Inside of the mapping by X1: the index is masked, and `words` is the entry size given to `new`.
        let slot = unsafe { self.mapping.base().add(offset) };
        // SAFETY: As in `word`.
        unsafe { AtomicU64::from_ptr(slot.cast()) }
    }
}

/// Empty frames, on their way to the kernel. This process is its only producer.
#[derive(Debug)]
pub(super) struct FillRing {
    ring: Ring,
    /// What the producer word holds, or will with the next `publish`.
    produced: u32,
}

impl FillRing {
    /// An entry is one address: `__u64`.
    const WORDS: usize = 1;
    /// Bytes of an entry.
    pub(super) const ENTRY: usize = Self::WORDS * 8;

    pub(super) fn new(ring: Ring) -> Self {
        Self { ring, produced: 0 }
    }

    /// Entries that may be set. 0 where the kernel's index makes no sense.
    pub(super) fn room(&self) -> u32 {
        // Acquire: pairs with (D), as (A).
        let consumed = self.ring.word(self.ring.consumer).load(Acquire);
        self.ring.len().saturating_sub(self.produced.wrapping_sub(consumed))
    }

    /// Puts an address into the entry `ahead` of what is published, which must be below `room`.
    pub(super) fn set(&self, ahead: u32, address: u64) {
        self.ring.slot(self.produced.wrapping_add(ahead), Self::WORDS, 0).store(address, Relaxed);
    }

    /// Gives the next `count` entries, each of them set, to the kernel.
    pub(super) fn publish(&mut self, count: u32) {
        self.produced = self.produced.wrapping_add(count);
        // (B): the addresses, and all reads of the frames, come before; pairs with (C).
        self.ring.word(self.ring.producer).store(self.produced, Release);
    }

    /// Whether the kernel waits for a call before it takes frames.
    pub(super) fn needs_wakeup(&self) -> bool {
        self.ring.word(self.ring.flags).load(Relaxed) & XdpRingFlags::XDP_RING_NEED_WAKEUP.bits() != 0
    }
}

/// Full frames, on their way to us. This process is its only consumer.
#[derive(Debug)]
pub(super) struct ReceiveRing {
    ring: Ring,
    /// What the consumer word holds.
    consumed: u32,
}

impl ReceiveRing {
    /// An entry is a `struct xdp_desc`: `__u64` address, `__u32` length, `__u32` options.
    const WORDS: usize = 2;
    /// Bytes of an entry.
    pub(super) const ENTRY: usize = Self::WORDS * 8;

    pub(super) fn new(ring: Ring) -> Self {
        Self { ring, consumed: 0 }
    }

    /// Entries that may be got. Never more than the ring has, whatever the kernel's index says.
    pub(super) fn available(&self) -> u32 {
        // (C): pairs with (B). Entries and frames are read after.
        let produced = self.ring.word(self.ring.producer).load(Acquire);
        produced.wrapping_sub(self.consumed).min(self.ring.len())
    }

    /// Address and length in the entry `ahead`, which must be below `available`. Options tell of packets in several
    /// frames, which only a socket bound with XDP_USE_SG gets.
    pub(super) fn get(&self, ahead: u32) -> (u64, u32) {
        let index = self.consumed.wrapping_add(ahead);
        let address = self.ring.slot(index, Self::WORDS, 0).load(Relaxed);
        let rest = self.ring.slot(index, Self::WORDS, 1).load(Relaxed).to_ne_bytes();
        (address, u32::from_ne_bytes([rest[0], rest[1], rest[2], rest[3]]))
    }

    /// Gives the first `count` entries back.
    pub(super) fn release(&mut self, count: u32) {
        self.consumed = self.consumed.wrapping_add(count);
        // (D): the entries were read before; pairs with (A).
        self.ring.word(self.ring.consumer).store(self.consumed, Release);
    }
}

#[cfg(test)]
mod tests {
    //! The kernel's side is played by the test, well-behaved and hostile.

    use super::*;

    const ENTRIES: u32 = 8;
    const AT: XdpRingOffset = XdpRingOffset { producer: 0, consumer: 64, flags: Some(128), desc: 192 };

    fn ring(entry: usize) -> Ring {
        Ring::new(Mapping::anonymous(4096).unwrap(), &AT, ENTRIES, entry).unwrap()
    }

    #[test]
    fn offsets_outside_of_the_mapping_are_refused() {
        let refused = |at: XdpRingOffset, entries, entry| {
            assert!(Ring::new(Mapping::anonymous(4096).unwrap(), &at, entries, entry).is_none(), "{at:?}");
        };
        refused(XdpRingOffset { producer: 4096, ..AT }, ENTRIES, 8);
        refused(XdpRingOffset { consumer: u64::MAX - 3, ..AT }, ENTRIES, 8);
        refused(XdpRingOffset { producer: 2, ..AT }, ENTRIES, 8);
        refused(XdpRingOffset { flags: None, ..AT }, ENTRIES, 8);
        refused(XdpRingOffset { desc: 4096 - 8 * 8 + 8, ..AT }, ENTRIES, 8);
        refused(XdpRingOffset { desc: 196, ..AT }, ENTRIES, 8);
        refused(AT, 7, 8);
        refused(AT, 0, 8);
        refused(AT, 512, 8);
    }

    #[test]
    fn frames_go_to_the_kernel_in_order_across_the_wrap_of_the_index() {
        let mut fill = FillRing::new(ring(FillRing::ENTRY));
        fill.produced = u32::MAX - 2;
        fill.ring.word(fill.ring.consumer).store(fill.produced, Relaxed);
        for round in 0..5 {
            let first = fill.produced;
            assert_eq!(fill.room(), ENTRIES);
            for n in 0..ENTRIES {
                fill.set(n, u64::from(round * 100 + n));
            }
            fill.publish(ENTRIES);
            assert_eq!(fill.room(), 0);
            let produced = fill.ring.word(fill.ring.producer).load(Acquire);
            assert_eq!(produced, first.wrapping_add(ENTRIES));
            for n in 0..ENTRIES {
                let address = fill.ring.slot(first.wrapping_add(n), 1, 0).load(Relaxed);
                assert_eq!(address, u64::from(round * 100 + n));
            }
            fill.ring.word(fill.ring.consumer).store(produced, Release);
        }
    }

    #[test]
    fn descriptors_come_in_order_across_the_wrap_of_the_index() {
        let mut received = ReceiveRing::new(ring(ReceiveRing::ENTRY));
        received.consumed = u32::MAX - 4;
        let mut produced = received.consumed;
        received.ring.word(received.ring.producer).store(produced, Relaxed);
        assert_eq!(received.available(), 0);
        for n in 0..ENTRIES {
            received.ring.slot(produced, 2, 0).store(u64::from(n) << 11, Relaxed);
            let rest = [60 + n, 0xffff_ffff].map(u32::to_ne_bytes).concat();
            received.ring.slot(produced, 2, 1).store(u64::from_ne_bytes(rest.try_into().unwrap()), Relaxed);
            produced = produced.wrapping_add(1);
        }
        received.ring.word(received.ring.producer).store(produced, Release);
        assert_eq!(received.available(), ENTRIES);
        for n in 0..ENTRIES {
            assert_eq!(received.get(n), (u64::from(n) << 11, 60 + n));
        }
        received.release(ENTRIES);
        assert_eq!(received.available(), 0);
        assert_eq!(received.ring.word(received.ring.consumer).load(Acquire), produced);
    }

    #[test]
    fn wild_indices_never_exceed_the_ring() {
        let fill = FillRing::new(ring(FillRing::ENTRY));
        let received = ReceiveRing::new(ring(ReceiveRing::ENTRY));
        for wild in [1, 9, 1 << 31, u32::MAX] {
            fill.ring.word(fill.ring.consumer).store(wild, Relaxed);
            assert!(fill.room() <= ENTRIES, "{wild}");
            received.ring.word(received.ring.producer).store(wild, Relaxed);
            assert!(received.available() <= ENTRIES, "{wild}");
        }
    }

    #[test]
    fn the_kernel_can_ask_to_be_woken() {
        let fill = FillRing::new(ring(FillRing::ENTRY));
        assert!(!fill.needs_wakeup());
        fill.ring.word(fill.ring.flags).store(XdpRingFlags::XDP_RING_NEED_WAKEUP.bits(), Relaxed);
        assert!(fill.needs_wakeup());
    }
}
