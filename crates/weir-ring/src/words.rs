//! The two kinds of shared memory, in a form that loom can model: control words, which are only atomics, and chunk
//! data, which is plain bytes under R2 to R4.

#[cfg(not(loom))]
pub(crate) use mapped::{Data, Words};
#[cfg(loom)]
pub(crate) use modelled::{Data, Words};

#[cfg(not(loom))]
mod mapped {
    use std::io;

    use crate::region::Region;
    use crate::sync::AtomicU64;

    /// Control words of one map.
    #[derive(Debug)]
    pub(crate) struct Words(pub(crate) Region);

    impl Words {
        pub(crate) fn new(words: usize) -> io::Result<Self> {
            Region::anonymous(words * 8).map(Self)
        }

        pub(crate) fn get(&self, index: usize) -> &AtomicU64 {
            self.0.word(index)
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
            // SAFETY: inside the mapping, as checked above.
            let first = unsafe { self.0.base().add(at) };
            // SAFETY: initialised (mapped zeros, or written), and unchanged by the caller's contract.
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
            // SAFETY: inside the mapping, as checked above.
            let first = unsafe { self.0.base().add(at) };
            // SAFETY: exclusive by the caller's contract.
            unsafe { std::slice::from_raw_parts_mut(first, length) }
        }
    }
}

#[cfg(loom)]
mod modelled {
    use std::io;

    use loom::cell::UnsafeCell;

    use crate::sync::AtomicU64;

    /// Control words as loom's atomics.
    #[derive(Debug)]
    pub(crate) struct Words(Vec<AtomicU64>);

    impl Words {
        pub(crate) fn new(words: usize) -> io::Result<Self> {
            Ok(Self((0..words).map(|_| AtomicU64::new(0)).collect()))
        }

        pub(crate) fn get(&self, index: usize) -> &AtomicU64 {
            &self.0[index]
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
