//! A producer in this process: the Rust counterpart of the kernel program in `crates/weir-bpf/bpf/pool/writer.h`. Sources
//! that get their packets in user space use it, and tests use it in place of the kernel.

use crate::layout::Commit;
use crate::pool::{Pool, Ring};
use crate::sync::{Arc, Ordering};

/// The only producer of a queue.
#[derive(Debug)]
pub struct Producer {
    pool: Arc<Pool>,
    queue: u32,
    /// Chunks opened, in total and from the warm ring.
    opened: u64,
    warm: u64,
    open: Option<Open>,
}

#[derive(Debug)]
struct Open {
    chunk: u32,
    offset: u32,
    records: u32,
}

impl Producer {
    pub(crate) fn new(pool: Arc<Pool>, queue: u32) -> Self {
        Self { pool, queue, opened: 0, warm: 0, open: None }
    }

    /// Returns the rest of the open chunk, which has room for at least one record of the largest size. Opens the next
    /// chunk if none is open; returns `None` if there is no empty one. Nobody sees what is written here before
    /// [`Producer::commit`].
    #[cfg(not(loom))]
    pub fn room(&mut self) -> Option<&mut [u8]> {
        self.open()?;
        let open = self.open.as_ref()?;
        let shape = self.pool.shape();
        let at = open.chunk as usize * shape.stride() as usize + open.offset as usize;
        // SAFETY: R4, and R1 because the slice borrows `&mut self`; the chunk is in range by R5.
        Some(unsafe { self.pool.data.write(at, (shape.stride() - open.offset) as usize) })
    }

    /// Publishes the first `bytes` of what [`Producer::room`] returned, which are one whole record.
    ///
    /// # Panics
    ///
    /// If no chunk is open or it has fewer bytes: the caller did not ask for room.
    pub fn commit(&mut self, bytes: u32) {
        let shape = self.pool.shape();
        let open = self.open.as_mut().expect("room was asked for");
        open.offset += bytes;
        open.records += 1;
        assert!(open.offset <= shape.stride(), "a record of {bytes} bytes runs out of its chunk");
        let commit =
            Commit { bytes: open.offset, records: open.records, closed: open.offset >= shape.limit() };
        // Release, paired with the load in `Pool::progress`.
        self.pool.set_progress_commit(open.chunk, commit, Ordering::Release);
        if commit.closed {
            self.open = None;
        }
    }

    /// Opens the next chunk unless one is open.
    pub(crate) fn open(&mut self) -> Option<u32> {
        if let Some(open) = &self.open {
            return Some(open.chunk);
        }
        let (chunk, from_warm) = match self.pool.offered(self.queue, Ring::Warm, self.warm) {
            Some(chunk) => (chunk, 1),
            None => (self.pool.offered(self.queue, Ring::Cold, self.opened - self.warm)?, 0),
        };
        self.pool.set_progress_commit(
            chunk,
            Commit { bytes: 0, records: 0, closed: false },
            Ordering::Relaxed,
        );
        // Release, paired with the load in `Pool::progress`: the commit word is reset before the position declares it
        // valid.
        self.pool.set_progress_position(chunk, self.opened, Ordering::Release);
        self.opened += 1;
        self.warm += from_warm;
        self.pool.set_opened(self.queue, self.opened, self.warm, chunk);
        self.open = Some(Open { chunk, offset: 0, records: 0 });
        Some(chunk)
    }

    /// Returns where the next record goes, for loom's model of the data.
    #[cfg(loom)]
    pub(crate) fn place(&mut self) -> Option<usize> {
        self.open()?;
        let open = self.open.as_ref()?;
        Some(open.chunk as usize * self.pool.shape().stride() as usize + open.offset as usize)
    }

    #[cfg(loom)]
    pub(crate) fn pool(&self) -> &Pool {
        &self.pool
    }
}
