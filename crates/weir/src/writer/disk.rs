//! A regular file. Every piece has its place from the moment it is taken, so several can be on their way at once.
//!
//! Pieces go through io_uring, each from its own memory. They may be over in any order; they are counted in the order
//! of their places, so that what is counted has no gap in front of it. Where io_uring is refused, and for a small piece
//! with nothing in front of it, a plain write does the same.

use std::collections::VecDeque;
use std::fmt;
use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt as _;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use weir_sys::uring::{Completion, DiskRing};

use super::error::is_full;
use super::piece::{Outcome, Piece, write_all};
use super::rest::State;
use super::ring::Ring;
use super::{Format, Output, Written};

/// Pieces in flight. Linux does the buffered writes to one file one after the other, so a few keep it busy; more would
/// only keep chunks from the pool.
const DEPTH: u16 = 4;

/// Up to here a plain write takes less time than handing the bytes to a kernel thread, which is what io_uring does for
/// files on tmpfs and ext4 (Linux 6.18, tmpfs: 4 KiB 3 us against 8 us, 64 KiB 34 us both ways).
const SMALL: usize = 32 * 1024;

pub(super) struct Disk {
    file: Arc<File>,
    /// `None`: io_uring is refused here, or all queues are in use.
    ring: Option<DiskRing<Part>>,
    /// Where it goes back to.
    queue: DiskQueue,
    /// The pieces behind `written`, in order of their places; those in flight have no outcome yet.
    pending: VecDeque<Pending>,
    /// Where the next piece goes.
    end: u64,
    format: Format,
    written: Written,
    spare: Vec<Vec<u8>>,
    /// Whose files give way where the disk is full.
    ring_of_files: Option<Arc<Ring>>,
}

/// An io_uring through which files are written, one after the other: for a process that may make none any more, since with a
/// new one it could do more than write to files that it has open. As long as one file uses it, others are written without.
#[derive(Clone)]
pub struct DiskQueue(Arc<Mutex<Option<DiskRing<Part>>>>);

impl DiskQueue {
    /// Makes it, as far as the kernel lets us; else files are written by plain calls.
    pub fn new() -> Self {
        Self(Arc::new(Mutex::new(DiskRing::new(DEPTH).ok())))
    }

    fn lock(&self) -> MutexGuard<'_, Option<DiskRing<Part>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Default for DiskQueue {
    fn default() -> Self {
        Self::new()
    }
}

impl fmt::Debug for DiskQueue {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("DiskQueue").finish_non_exhaustive()
    }
}

/// What is left to write of a piece.
struct Part {
    piece: Piece,
    from: usize,
    /// How many files had gone for room when it was handed over.
    gone: u64,
}

impl AsRef<[u8]> for Part {
    fn as_ref(&self) -> &[u8] {
        &self.piece.load.as_ref()[self.from..]
    }
}

struct Pending {
    /// Where the piece begins in the file.
    place: u64,
    outcome: Option<Outcome>,
}

impl Disk {
    /// `file`: empty.
    pub(super) fn new(file: Arc<File>, format: Format, queue: &DiskQueue) -> Self {
        let mut disk = Self::without_ring(file, format);
        disk.ring = queue.lock().take();
        disk.queue = queue.clone();
        disk
    }

    /// As where io_uring is refused.
    pub(super) fn without_ring(file: Arc<File>, format: Format) -> Self {
        Self {
            file,
            ring: None,
            queue: DiskQueue(Arc::default()),
            pending: VecDeque::new(),
            end: 0,
            format,
            written: Written::default(),
            spare: Vec::new(),
            ring_of_files: None,
        }
    }

    /// Files of this ring are deleted rather than that a write fails because the disk is full.
    pub(super) fn with_ring(mut self, ring: Option<Arc<Ring>>) -> Self {
        self.ring_of_files = ring;
        self
    }

    /// Goes on behind what is in the file.
    pub(super) fn behind(mut self, written: Written) -> Self {
        self.end = written.bytes;
        self.written = written;
        self
    }

    /// Whether the disk was full, and now is no more: a file has gone since there were `gone`, or one goes now.
    fn made_room(&self, error: &io::Error, gone: u64) -> bool {
        let gives_way = |ring: &Arc<Ring>| ring.gone().for_room > gone || ring.give_way();
        is_full(error) && self.ring_of_files.as_ref().is_some_and(gives_way)
    }

    /// Files that have gone so that this one has room.
    fn gone(&self) -> u64 {
        self.ring_of_files.as_ref().map_or(0, |ring| ring.gone().for_room)
    }

    /// Writes a piece here and now.
    fn write_now(&self, piece: &mut Piece, place: u64) -> Outcome {
        let (arrived, result) =
            write_all(piece.load.as_ref(), |rest, at| match self.file.write_at(rest, place + at as u64) {
                Err(error) if self.made_room(&error, u64::MAX) => Err(io::ErrorKind::Interrupted.into()),
                written => written,
            });
        match result {
            Ok(()) => piece.complete(),
            Err(error) => piece.cut(arrived, error, self.format),
        }
    }

    /// Hands a part of the piece at `place`, all but `from` bytes of it, to the ring, which has room for it.
    fn submit(&mut self, piece: Piece, from: usize, place: u64) {
        let part = Part { piece, from, gone: self.gone() };
        let offset = place + from as u64;
        let taken = self.ring.as_mut().is_some_and(|ring| ring.write_at(&self.file, part, offset).is_ok());
        assert!(taken, "the ring has room");
    }

    /// Takes what is over, waiting until that is `wait` pieces, and counts it. After a failure it waits for all: only
    /// then can the file be cut.
    fn collect(&mut self, wait: usize) -> io::Result<()> {
        if self.land(wait)? {
            while self.in_flight() > 0 {
                self.land(usize::MAX)?;
            }
        }
        self.account()
    }

    fn in_flight(&self) -> usize {
        self.ring.as_ref().map_or(0, DiskRing::in_flight)
    }

    /// Takes what is over, waiting until that is `wait` pieces. Says whether one has failed.
    fn land(&mut self, wait: usize) -> io::Result<bool> {
        let Some(ring) = &mut self.ring else {
            return Ok(false);
        };
        let completions: Vec<_> = ring.completions(wait)?.collect();
        let mut failed = false;
        for completion in completions {
            failed |= self.landed(completion);
        }
        Ok(failed)
    }

    /// Notes the outcome, or goes on where a piece was written in part. Says whether the piece has failed.
    fn landed(&mut self, completion: Completion<Part>) -> bool {
        let Completion { buffer: Part { mut piece, from, gone }, offset, result } = completion;
        let place = offset - from as u64;
        let (arrived, error) = match result {
            Ok(0) => (from, Some(io::ErrorKind::WriteZero.into())),
            Ok(written) => (from + written, None),
            Err(error) if error.kind() == io::ErrorKind::Interrupted || self.made_room(&error, gone) => {
                (from, None)
            }
            Err(error) => (from, Some(error)),
        };
        let outcome = match error {
            None if arrived < piece.load.as_ref().len() => {
                self.submit(piece, arrived, place);
                return false;
            }
            None => piece.complete(),
            Some(error) => piece.cut(arrived, error, self.format),
        };
        self.recycle(piece);
        let failed = outcome.error.is_some();
        if let Some(pending) = self.pending.iter_mut().find(|pending| pending.place == place) {
            pending.outcome = Some(outcome);
        }
        failed
    }

    /// Counts what is over up to the first piece that is not. Behind a failed piece nothing counts: the file ends there.
    fn account(&mut self) -> io::Result<()> {
        while let Some(outcome) = self.pending.front_mut().and_then(|pending| pending.outcome.take()) {
            self.pending.pop_front();
            self.written.add(&outcome);
            if let Some(error) = outcome.error {
                self.pending.clear();
                // The write's own error says more than one of cutting could.
                let _ = self.file.set_len(self.written.bytes);
                return Err(error);
            }
        }
        Ok(())
    }

    fn recycle(&mut self, piece: Piece) {
        if self.spare.len() < usize::from(DEPTH) {
            self.spare.extend(piece.into_buffer());
        }
    }
}

impl Output for Disk {
    fn put(&mut self, mut piece: Piece) -> io::Result<()> {
        self.collect(0)?;
        let len = piece.load.as_ref().len();
        let place = self.end;
        self.end += len as u64;
        if self.ring.is_none() || (len <= SMALL && self.pending.is_empty()) {
            let outcome = self.write_now(&mut piece, place);
            self.recycle(piece);
            self.pending.push_back(Pending { place, outcome: Some(outcome) });
            return self.account();
        }
        while self.ring.as_ref().is_some_and(DiskRing::is_full) {
            self.collect(1)?;
        }
        self.pending.push_back(Pending { place, outcome: None });
        self.submit(piece, 0, place);
        Ok(())
    }

    fn settle(&mut self) -> io::Result<()> {
        while self.in_flight() > 0 {
            self.collect(usize::MAX)?;
        }
        Ok(())
    }

    fn pause(&mut self) -> io::Result<Option<State>> {
        self.settle()?;
        Ok(Some(State { written: self.written.clone(), table: None }))
    }

    fn empty(&mut self) -> io::Result<bool> {
        self.settle()?;
        self.file.set_len(0)?;
        (self.end, self.written) = (0, Written::default());
        Ok(true)
    }

    fn written(&self) -> &Written {
        &self.written
    }

    fn buffer(&mut self) -> Vec<u8> {
        self.spare.pop().unwrap_or_default()
    }
}

impl Drop for Disk {
    /// A writer that was not finished leaves a file without gaps all the same.
    fn drop(&mut self) {
        let _ = self.settle();
        if let Some(ring) = self.ring.take().filter(|ring| ring.in_flight() == 0) {
            self.queue.lock().get_or_insert(ring);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::piece::Content;
    use super::*;

    /// The third of four pieces fails after the fourth was written.
    #[test]
    fn nothing_counts_behind_a_failure() {
        let file = Arc::new(tempfile::tempfile().unwrap());
        file.set_len(400).unwrap();
        let mut disk = Disk::new(Arc::clone(&file), Format::Pcapng, &DiskQueue::new());
        let content = |count| Content::of_queue(0, 0, count);
        let outcome =
            |bytes, count, error| Some(Outcome { bytes, plain: bytes, content: content(count), error });
        disk.pending = [
            Pending { place: 0, outcome: None },
            Pending { place: 100, outcome: outcome(100, 2, None) },
            Pending { place: 200, outcome: outcome(60, 3, Some(io::ErrorKind::StorageFull.into())) },
            Pending { place: 300, outcome: outcome(100, 4, None) },
        ]
        .into();
        disk.account().unwrap();
        assert_eq!(disk.written(), &Written::default(), "the first piece is on its way");

        disk.pending[0].outcome = outcome(100, 1, None);
        assert_eq!(disk.account().unwrap_err().kind(), io::ErrorKind::StorageFull);
        assert_eq!((disk.written.packets, disk.written.bytes), (1 + 2 + 3, 260));
        assert_eq!(file.metadata().unwrap().len(), 260);
    }
}
