//! The memory of one ring: three words and the entries. `ring.rs` defines who may access them.

#[cfg(not(loom))]
pub(super) use mapped::RingMemory;
#[cfg(loom)]
pub(super) use modelled::RingMemory;

#[cfg(not(loom))]
mod mapped {
    use std::io;
    use std::os::fd::AsFd;

    use rustix::net::xdp::XdpRingOffset;

    use crate::xsk::mapping::Mapping;
    use crate::xsk::sync::{AtomicU32, AtomicU64};

    /// A ring shared with the kernel. Indices increase forever and wrap; an index's low bits select the entry.
    #[derive(Debug)]
    pub(in crate::xsk) struct RingMemory {
        mapping: Mapping,
        // Byte offsets, X1.
        producer: usize,
        consumer: usize,
        flags: usize,
        entries: usize,
        mask: u32,
        /// 64-bit words per entry.
        words: usize,
    }

    impl RingMemory {
        /// Maps the ring at `page` of `socket`, with `entries` entries (a power of two) of `words` words each.
        pub(in crate::xsk) fn map(
            socket: impl AsFd,
            page: u64,
            at: &XdpRingOffset,
            entries: u32,
            words: usize,
        ) -> io::Result<Self> {
            let wrong = || io::Error::new(io::ErrorKind::InvalidData, "the kernel reported invalid offsets");
            let bytes = (entries as usize).checked_mul(8 * words).ok_or_else(wrong)?;
            let length = usize::try_from(at.desc).ok().and_then(|entries| entries.checked_add(bytes));
            let mapping = Mapping::shared(socket, page, length.ok_or_else(wrong)?)?;
            Self::new(mapping, at, entries, words).ok_or_else(wrong)
        }

        /// Checks X1; returns `None` if the offsets violate it.
        pub(in crate::xsk) fn new(
            mapping: Mapping,
            at: &XdpRingOffset,
            entries: u32,
            words: usize,
        ) -> Option<Self> {
            let inside = |offset: u64, bytes: usize, align: usize| {
                let offset = usize::try_from(offset).ok()?;
                let fits = offset.checked_add(bytes)? <= mapping.len();
                (fits && offset.is_multiple_of(align)).then_some(offset)
            };
            let producer = inside(at.producer, 4, 4)?;
            let consumer = inside(at.consumer, 4, 4)?;
            let flags = inside(at.flags?, 4, 4)?;
            let first = inside(at.desc, (entries as usize).checked_mul(8 * words)?, 8)?;
            let mask = entries.is_power_of_two().then(|| entries - 1)?;
            Some(Self { mapping, producer, consumer, flags, entries: first, mask, words })
        }

        /// Returns the number of entries.
        pub(in crate::xsk) fn len(&self) -> u32 {
            self.mask + 1
        }

        /// Returns the total of entries produced. Written by the producer.
        pub(in crate::xsk) fn producer(&self) -> &AtomicU32 {
            self.word(self.producer)
        }

        /// Returns the total of entries consumed. Written by the consumer.
        pub(in crate::xsk) fn consumer(&self) -> &AtomicU32 {
            self.word(self.consumer)
        }

        /// Returns the flags, `XDP_RING_*`. Written by the kernel.
        pub(in crate::xsk) fn flags(&self) -> &AtomicU32 {
            self.word(self.flags)
        }

        fn word(&self, offset: usize) -> &AtomicU32 {
            // SAFETY: inside the mapping by X1.
            let word = unsafe { self.mapping.base().add(offset) };
            // SAFETY: mapped as long as `self`, aligned by X1, and by X2 only accessed in whole words.
            unsafe { AtomicU32::from_ptr(word.cast()) }
        }

        /// Returns word `word` of the entry of `index`. Written by the producer.
        pub(in crate::xsk) fn slot(&self, index: u32, word: usize) -> &AtomicU64 {
            assert!(word < self.words, "word {word} of {}", self.words);
            let offset = self.entries + ((index & self.mask) as usize * self.words + word) * 8;
            // SAFETY: inside the mapping by X1: the index is masked, and the word was just checked.
            let slot = unsafe { self.mapping.base().add(offset) };
            // SAFETY: as in `word`.
            unsafe { AtomicU64::from_ptr(slot.cast()) }
        }
    }
}

#[cfg(loom)]
mod modelled {
    use crate::xsk::sync::{AtomicU32, AtomicU64};
    use std::sync::Arc;

    /// A ring shared by both sides of a model.
    #[derive(Clone, Debug)]
    pub(in crate::xsk) struct RingMemory(Arc<Words>);

    #[derive(Debug)]
    struct Words {
        producer: AtomicU32,
        consumer: AtomicU32,
        flags: AtomicU32,
        entries: Vec<AtomicU64>,
        words: usize,
    }

    impl RingMemory {
        pub(in crate::xsk) fn new(entries: u32, words: usize) -> Self {
            let all = (0..entries as usize * words).map(|_| AtomicU64::new(0)).collect();
            Self(Arc::new(Words {
                producer: AtomicU32::new(0),
                consumer: AtomicU32::new(0),
                flags: AtomicU32::new(0),
                entries: all,
                words,
            }))
        }

        pub(in crate::xsk) fn len(&self) -> u32 {
            u32::try_from(self.0.entries.len() / self.0.words).expect("a model is small")
        }

        pub(in crate::xsk) fn producer(&self) -> &AtomicU32 {
            &self.0.producer
        }

        pub(in crate::xsk) fn consumer(&self) -> &AtomicU32 {
            &self.0.consumer
        }

        pub(in crate::xsk) fn flags(&self) -> &AtomicU32 {
            &self.0.flags
        }

        pub(in crate::xsk) fn slot(&self, index: u32, word: usize) -> &AtomicU64 {
            &self.0.entries[(index & (self.len() - 1)) as usize * self.0.words + word]
        }
    }
}
