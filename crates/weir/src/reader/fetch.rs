//! Reads the blocks of a file with two threads.
//!
//! Reading a file from the page cache mostly means copying it. A second thread reads ahead; if the next block is not
//! there yet, the reader does not wait but reads the next unclaimed block itself.

use std::collections::BTreeMap;
use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt as _;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread;

use super::Meter;

/// Size of a block in bytes.
const BLOCK: usize = 512 << 10;
/// Space before a block, for the rest of the previous one.
pub(super) const HEADROOM: usize = 64 << 10;
/// Number of blocks being read or ready, besides the one in use.
const AHEAD: usize = 4;
/// Files of at least this size are worth a thread.
pub(super) const WORTH_IT: u64 = 8 << 20;

/// The blocks of a file, in order.
pub(super) struct Fetch {
    shared: Arc<Shared>,
    /// The number of the next block to return.
    wanted: u64,
    /// The end of the file, once a block was short. The file may grow; anything further is read as it arrives.
    end: Option<u64>,
    meter: Meter,
}

/// A block: [`HEADROOM`], then `bytes` bytes of the file.
pub(super) struct Block {
    pub(super) buffer: Vec<u8>,
    pub(super) bytes: usize,
}

struct Shared {
    file: File,
    state: Mutex<BlockQueue>,
    /// Signals a change of `state`.
    changed: Condvar,
}

struct BlockQueue {
    /// The first block that no thread is reading.
    next: u64,
    /// Finished blocks by number.
    ready: BTreeMap<u64, io::Result<Block>>,
    spare: Vec<Vec<u8>>,
    /// The reader has stopped.
    over: bool,
}

impl Fetch {
    /// Starts reading a file from the beginning, counting bytes in `meter`. `None`: a thread could not be started.
    pub(super) fn begin(file: File, meter: Meter) -> Option<Self> {
        let spare = (0..AHEAD).map(|_| vec![0; HEADROOM + BLOCK]).collect();
        let state = BlockQueue { next: 0, ready: BTreeMap::new(), spare, over: false };
        let shared = Arc::new(Shared { file, state: Mutex::new(state), changed: Condvar::new() });
        let helper = Arc::clone(&shared);
        thread::Builder::new().name("read-ahead".to_owned()).spawn(move || helper.read_ahead()).ok()?;
        Some(Self { shared, wanted: 0, end: None, meter })
    }

    /// Returns the next block in exchange for a used buffer. An empty block is the end.
    pub(super) fn next(&mut self, used: Vec<u8>) -> io::Result<Block> {
        if let Some(end) = self.end {
            return self.grown(used, end);
        }
        let mut state = self.shared.lock();
        state.spare.push(used);
        self.shared.changed.notify_one();
        let result = loop {
            if let Some(result) = state.ready.remove(&self.wanted) {
                break result;
            }
            state = match state.spare.pop() {
                Some(buffer) => self.shared.read_next(state, buffer),
                None => self.shared.changed.wait(state).unwrap_or_else(PoisonError::into_inner),
            };
        };
        drop(state);
        let block = result?;
        if block.bytes < BLOCK {
            self.end = Some(self.wanted * BLOCK as u64 + block.bytes as u64);
            self.shared.stop();
        }
        self.wanted += 1;
        self.meter.take(block.bytes);
        Ok(block)
    }

    /// Returns what was appended to the file since its end was found.
    fn grown(&mut self, buffer: Vec<u8>, end: u64) -> io::Result<Block> {
        let block = self.shared.read(buffer, end)?;
        self.end = Some(end + block.bytes as u64);
        self.meter.take(block.bytes);
        Ok(block)
    }
}

impl Drop for Fetch {
    fn drop(&mut self) {
        self.shared.stop();
    }
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, BlockQueue> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn stop(&self) {
        self.lock().over = true;
        self.changed.notify_all();
    }

    fn read_ahead(&self) {
        let mut state = self.lock();
        while !state.over {
            state = match state.spare.pop() {
                Some(buffer) => self.read_next(state, buffer),
                None => self.changed.wait(state).unwrap_or_else(PoisonError::into_inner),
            };
        }
    }

    /// Reads the first unclaimed block; the state is unlocked meanwhile.
    fn read_next<'a>(
        &'a self,
        mut state: MutexGuard<'a, BlockQueue>,
        buffer: Vec<u8>,
    ) -> MutexGuard<'a, BlockQueue> {
        let number = state.next;
        state.next += 1;
        drop(state);
        let result = self.read(buffer, number * BLOCK as u64);
        let mut state = self.lock();
        state.ready.insert(number, result);
        self.changed.notify_one();
        state
    }

    /// Reads a block from `offset`, or less at the end of the file.
    fn read(&self, mut buffer: Vec<u8>, offset: u64) -> io::Result<Block> {
        if buffer.capacity() > 2 * (HEADROOM + BLOCK) {
            buffer = Vec::new(); // it has grown for a large packet
        }
        buffer.resize(HEADROOM + BLOCK, 0);
        let room = &mut buffer[HEADROOM..];
        let mut bytes = 0;
        while bytes < BLOCK {
            match self.file.read_at(&mut room[bytes..], offset + bytes as u64) {
                Ok(0) => break,
                Ok(more) => bytes += more,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
        Ok(Block { buffer, bytes })
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write as _;

    use super::*;

    fn number_of(block: &Block) -> &[u8] {
        &block.buffer[HEADROOM..HEADROOM + block.bytes]
    }

    #[test]
    fn blocks_come_in_order_and_what_is_added_comes_behind() {
        let mut file = tempfile::tempfile().unwrap();
        let bytes: Vec<u8> = (0..10 * BLOCK + 77).map(|at| u8::try_from(at / 1000 % 251).unwrap()).collect();
        file.write_all(&bytes).unwrap();
        let mut fetch = Fetch::begin(file.try_clone().unwrap(), Meter::new()).unwrap();
        let (mut all, mut buffer) = (Vec::new(), Vec::new());
        loop {
            let block = fetch.next(buffer).unwrap();
            if block.bytes == 0 {
                break;
            }
            all.extend_from_slice(number_of(&block));
            buffer = block.buffer;
        }
        assert!(all == bytes);
        assert_eq!(fetch.meter.taken(), bytes.len() as u64);
        file.write_all(b"more").unwrap();
        assert_eq!(number_of(&fetch.next(Vec::new()).unwrap()), b"more");
        assert_eq!(fetch.next(Vec::new()).unwrap().bytes, 0);
    }

    #[test]
    fn an_error_comes_at_its_place_and_the_helper_ends() {
        let directory = File::open("/").unwrap();
        let mut fetch = Fetch::begin(directory, Meter::new()).unwrap();
        assert!(fetch.next(Vec::new()).is_err());
        let shared = Arc::downgrade(&fetch.shared);
        drop(fetch);
        while shared.strong_count() > 0 {
            thread::yield_now();
        }
    }
}
