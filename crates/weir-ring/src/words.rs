//! The two kinds of shared memory, in a form that loom can model: tables of structs, which are only atomics, and chunk
//! data, which is plain bytes under R2 to R4.

#[cfg(not(loom))]
pub(crate) use mapped::{Data, Table};
#[cfg(loom)]
pub(crate) use modelled::{Data, Table};

#[cfg(not(loom))]
mod mapped {
    use std::io;
    use std::marker::PhantomData;

    use crate::region::Region;
    use crate::shared::Shared;
    use crate::sync::AtomicU64;

    /// The entries of one map, each a `T` and the words behind it.
    #[derive(Debug)]
    pub(crate) struct Table<T> {
        region: Region,
        /// Bytes from one entry to the next.
        stride: usize,
        entry: PhantomData<T>,
    }

    impl<T: Shared> Table<T> {
        /// A table of zeros.
        pub(crate) fn new(entries: usize, words: usize) -> io::Result<Self> {
            Self::of(entries, words, Region::anonymous)
        }

        /// The table that `map` maps when told its length in bytes.
        pub(crate) fn of(
            entries: usize,
            words: usize,
            map: impl FnOnce(usize) -> io::Result<Region>,
        ) -> io::Result<Self> {
            let stride = size_of::<T>() + words * size_of::<AtomicU64>();
            Ok(Self { region: map(entries * stride)?, stride, entry: PhantomData })
        }

        pub(crate) fn get(&self, index: usize) -> &T {
            self.region.at(index * self.stride)
        }

        /// Returns a word behind an entry.
        pub(crate) fn word(&self, index: usize, word: usize) -> &AtomicU64 {
            self.region.at(index * self.stride + size_of::<T>() + word * size_of::<AtomicU64>())
        }
    }

    /// The bytes of all chunks.
    #[derive(Debug)]
    pub(crate) struct Data(pub(crate) Region);

    impl Data {
        pub(crate) fn new(bytes: usize) -> io::Result<Self> {
            Region::anonymous(bytes).map(Self)
        }

        /// # Safety
        ///
        /// Nothing may write to the range while the slice lives (R3).
        pub(crate) unsafe fn read(&self, at: usize, length: usize) -> &[u8] {
            assert!(at.checked_add(length).is_some_and(|end| end <= self.0.len()), "chunk data out of range");
            let first = self.0.base().wrapping_add(at);
            // SAFETY: inside the mapping, as checked above, initialised (mapped zeros, or written), and unchanged by the
            // caller's contract.
            unsafe { std::slice::from_raw_parts(first, length) }
        }

        /// # Safety
        ///
        /// Nothing else may read or write the range while the slice lives (R4).
        #[expect(
            clippy::mut_from_ref,
            reason = "the region is shared; the caller's contract is the exclusivity"
        )]
        pub(crate) unsafe fn write(&self, at: usize, length: usize) -> &mut [u8] {
            assert!(at.checked_add(length).is_some_and(|end| end <= self.0.len()), "chunk data out of range");
            let first = self.0.base().wrapping_add(at);
            // SAFETY: inside the mapping, as checked above, and exclusive by the caller's contract.
            unsafe { std::slice::from_raw_parts_mut(first, length) }
        }
    }
}

#[cfg(loom)]
mod modelled {
    use std::io;

    use loom::cell::UnsafeCell;

    use crate::sync::AtomicU64;

    /// The entries as loom's atomics.
    #[derive(Debug)]
    pub(crate) struct Table<T>(Vec<(T, Vec<AtomicU64>)>);

    impl<T: Default> Table<T> {
        pub(crate) fn new(entries: usize, words: usize) -> io::Result<Self> {
            let entry = |_| (T::default(), (0..words).map(|_| AtomicU64::new(0)).collect());
            Ok(Self((0..entries).map(entry).collect()))
        }

        pub(crate) fn get(&self, index: usize) -> &T {
            &self.0[index].0
        }

        pub(crate) fn word(&self, index: usize, word: usize) -> &AtomicU64 {
            &self.0[index].1[word]
        }
    }

    /// One cell per record of [`crate::layout::RECORD_MIN`] bytes. Loom reports every racing access.
    #[derive(Debug)]
    pub(crate) struct Data(Vec<UnsafeCell<u64>>);

    impl Data {
        const CELL: usize = crate::layout::RECORD_MIN as usize;

        pub(crate) fn new(bytes: usize) -> io::Result<Self> {
            Ok(Self((0..bytes / Self::CELL).map(|_| UnsafeCell::new(0)).collect()))
        }

        pub(crate) fn store(&self, at: usize, value: u64) {
            // SAFETY: loom checks the exclusivity (R4), which is the purpose of this model.
            self.0[at / Self::CELL].with_mut(|cell| unsafe { *cell = value });
        }

        pub(crate) fn load(&self, at: usize) -> u64 {
            // SAFETY: loom checks that nothing writes (R3).
            self.0[at / Self::CELL].with(|cell| unsafe { *cell })
        }
    }
}
