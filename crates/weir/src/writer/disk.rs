//! A regular file. The position of each request is known when it is accepted, so several can be in flight at once.
//!
//! Requests are written with io_uring, straight from their own memory. They may complete in any order, but are counted in
//! the order of their positions, so that there is never a gap before what is counted. If io_uring is not available, and
//! for a small request with nothing in flight before it, a plain write is used.

use std::collections::VecDeque;
use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt as _;
use std::sync::Arc;

use weir_sys::uring::{Completion, DiskRing};

use super::error::is_full;
use super::queue::{DEPTH, DiskQueue, Unwritten};
use super::resume_point::ResumePoint;
use super::ring::Ring;
use super::write_request::{Outcome, WriteRequest, write_all};
use super::{Format, Output, Written};

/// Up to this size in bytes a plain write is faster than handing the data to a kernel thread, as io_uring does for
/// files on tmpfs and ext4 (Linux 6.18, tmpfs: 4 KiB take 3 us instead of 8 us, 64 KiB take 34 us either way).
const SMALL: usize = 32 * 1024;

pub(super) struct Disk {
    file: Arc<File>,
    /// `None`: io_uring is not available, or another file is using the queue.
    ring: Option<DiskRing<Unwritten>>,
    /// The queue that `ring` is returned to.
    queue: DiskQueue,
    /// The requests after `written`, ordered by position; those in flight have no outcome yet.
    pending: VecDeque<Pending>,
    /// The position of the next request.
    end: u64,
    format: Format,
    written: Written,
    spare: Vec<Vec<u8>>,
    /// The ring whose files are deleted when the disk is full.
    ring_of_files: Option<Arc<Ring>>,
}

struct Pending {
    /// The position of the request in the file.
    place: u64,
    outcome: Option<Outcome>,
}

impl Disk {
    /// `file` is empty.
    pub(super) fn new(file: Arc<File>, format: Format, queue: &DiskQueue) -> Self {
        let mut disk = Self::without_ring(file, format);
        disk.ring = queue.lock().take();
        disk.queue = queue.clone();
        disk
    }

    /// Writes without io_uring.
    pub(super) fn without_ring(file: Arc<File>, format: Format) -> Self {
        Self {
            file,
            ring: None,
            queue: DiskQueue::none(),
            pending: VecDeque::new(),
            end: 0,
            format,
            written: Written::default(),
            spare: Vec::new(),
            ring_of_files: None,
        }
    }

    /// Deletes files of this ring when the disk is full, instead of failing.
    pub(super) fn with_ring(mut self, ring: Option<Arc<Ring>>) -> Self {
        self.ring_of_files = ring;
        self
    }

    /// Continues after what the file contains.
    pub(super) fn behind(mut self, written: Written) -> Self {
        self.end = written.bytes;
        self.written = written;
        self
    }

    /// Returns whether a full disk has room again: files have been deleted since `gone` was read, or one is deleted
    /// now.
    fn made_room(&self, error: &io::Error, gone: u64) -> bool {
        let gives_way = |ring: &Arc<Ring>| ring.gone().for_room > gone || ring.give_way();
        is_full(error) && self.ring_of_files.as_ref().is_some_and(gives_way)
    }

    /// How many files were deleted to make room on the disk.
    fn gone(&self) -> u64 {
        self.ring_of_files.as_ref().map_or(0, |ring| ring.gone().for_room)
    }

    /// Writes a request synchronously.
    fn write_now(&self, request: &mut WriteRequest, place: u64) -> Outcome {
        let (arrived, result) =
            write_all(request.data.as_ref(), |rest, at| match self.file.write_at(rest, place + at as u64) {
                Err(error) if self.made_room(&error, u64::MAX) => Err(io::ErrorKind::Interrupted.into()),
                written => written,
            });
        match result {
            Ok(()) => request.complete(),
            Err(error) => request.cut(arrived, error, self.format),
        }
    }

    /// Submits the request at `place`, except for its first `from` bytes, to the io_uring, which has room for it.
    fn submit(&mut self, request: WriteRequest, from: usize, place: u64) {
        let unwritten = Unwritten { request, from, gone: self.gone() };
        let offset = place + from as u64;
        let taken =
            self.ring.as_mut().is_some_and(|ring| ring.write_at(&self.file, unwritten, offset).is_ok());
        assert!(taken, "the ring has room");
    }

    /// Handles completed writes, waiting for at least `wait`, and counts them. After a failure it waits for all,
    /// because the file can only be truncated then.
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

    /// Handles completed writes, waiting for at least `wait`. Returns whether one has failed.
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

    /// Records the outcome, or continues a partial write. Returns whether the request has failed.
    fn landed(&mut self, completion: Completion<Unwritten>) -> bool {
        let Completion { buffer: Unwritten { mut request, from, gone }, offset, result } = completion;
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
            None if arrived < request.data.as_ref().len() => {
                self.submit(request, arrived, place);
                return false;
            }
            None => request.complete(),
            Some(error) => request.cut(arrived, error, self.format),
        };
        self.recycle(request);
        let failed = outcome.error.is_some();
        if let Some(pending) = self.pending.iter_mut().find(|pending| pending.place == place) {
            pending.outcome = Some(outcome);
        }
        failed
    }

    /// Counts requests up to the first one in flight. Nothing counts after a failed request, where the file ends.
    fn account(&mut self) -> io::Result<()> {
        while let Some(outcome) = self.pending.front_mut().and_then(|pending| pending.outcome.take()) {
            self.pending.pop_front();
            self.written.add(&outcome);
            if let Some(error) = outcome.error {
                self.pending.clear();
                // The error of the write says more than one from truncating could.
                self.end = self.written.bytes;
                let _ = self.file.set_len(self.end);
                return Err(error);
            }
        }
        Ok(())
    }

    fn recycle(&mut self, request: WriteRequest) {
        if self.spare.len() < usize::from(DEPTH) {
            self.spare.extend(request.into_buffer());
        }
    }
}

impl Output for Disk {
    fn put(&mut self, mut request: WriteRequest) -> io::Result<()> {
        self.collect(0)?;
        let len = request.data.as_ref().len();
        let place = self.end;
        self.end += len as u64;
        if self.ring.is_none() || (len <= SMALL && self.pending.is_empty()) {
            let outcome = self.write_now(&mut request, place);
            self.recycle(request);
            self.pending.push_back(Pending { place, outcome: Some(outcome) });
            return self.account();
        }
        while self.ring.as_ref().is_some_and(DiskRing::is_full) {
            self.collect(1)?;
        }
        self.pending.push_back(Pending { place, outcome: None });
        self.submit(request, 0, place);
        Ok(())
    }

    fn settle(&mut self) -> io::Result<()> {
        while self.in_flight() > 0 {
            self.collect(usize::MAX)?;
        }
        Ok(())
    }

    fn pause(&mut self) -> io::Result<Option<ResumePoint>> {
        self.settle()?;
        Ok(Some(ResumePoint { written: self.written.clone(), around: None }))
    }

    fn empty(&mut self) -> io::Result<bool> {
        self.settle()?;
        self.file.set_len(0)?;
        (self.end, self.written) = (0, Written::default());
        Ok(true)
    }

    fn recover(&mut self) -> bool {
        self.pending.is_empty() && self.in_flight() == 0 && self.file.set_len(self.end).is_ok()
    }

    fn written(&self) -> &Written {
        &self.written
    }

    fn buffer(&mut self) -> Vec<u8> {
        self.spare.pop().unwrap_or_default()
    }
}

impl Drop for Disk {
    /// Leaves a file without gaps, even if the writer was not finished.
    fn drop(&mut self) {
        let _ = self.settle();
        if let Some(ring) = self.ring.take().filter(|ring| ring.in_flight() == 0) {
            self.queue.lock().get_or_insert(ring);
        }
    }
}

#[cfg(test)]
mod tests {
    use rustix::io::Errno;
    use weir_savefile::record::{RecordHeader, encode};

    use super::super::write_request::{Content, Data};
    use super::super::{Kept, WriteError};
    use super::*;

    /// The third of four requests fails after the fourth was written.
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
        assert_eq!(disk.written(), &Written::default(), "the first request is on its way");

        disk.pending[0].outcome = outcome(100, 1, None);
        assert_eq!(disk.account().unwrap_err().kind(), io::ErrorKind::StorageFull);
        assert_eq!((disk.written.packets, disk.written.bytes), (1 + 2 + 3, 260));
        assert_eq!(file.metadata().unwrap().len(), 260);
    }
    /// What becomes of a request of two records, written up to within the second one, with which the io_uring ends like this: the
    /// outcome, what is counted, what is in the file, and the request.
    fn landing(result: io::Result<usize>) -> (io::Result<()>, Written, Vec<u8>, Vec<u8>) {
        let file = Arc::new(tempfile::tempfile().unwrap());
        let mut bytes = vec![0; 256];
        let mut len = 0;
        for _ in 0..2 {
            len += encode(&mut bytes[len..], &RecordHeader::default(), &[&[7; 60]]).unwrap();
        }
        bytes.truncate(len);
        let mut disk = Disk::new(Arc::clone(&file), Format::Pcapng, &DiskQueue::new());
        let from = len / 2 + 8;
        let arrived = from + *result.as_ref().unwrap_or(&0);
        file.write_all_at(&bytes[..arrived.min(len)], 0).unwrap();
        disk.end = len as u64;
        disk.pending.push_back(Pending { place: 0, outcome: None });
        let request = WriteRequest { data: Data::Bytes(bytes.clone()), content: Content::of_queue(0, 3, 2) };
        let failed = disk.landed(Completion {
            buffer: Unwritten { request, from, gone: 0 },
            offset: from as u64,
            result,
        });
        let outcome = if failed { disk.account() } else { disk.settle().and_then(|()| disk.account()) };
        let mut there = vec![0; usize::try_from(file.metadata().unwrap().len()).unwrap()];
        file.read_exact_at(&mut there, 0).unwrap();
        (outcome, disk.written().clone(), there, bytes)
    }

    #[test]
    fn what_a_completion_leaves_out_is_written_next() {
        if let Err(error) = weir_sys::uring::available() {
            return weir_skip::this_test(format!("io_uring: {error}"));
        }
        let interrupted = || Err(io::ErrorKind::Interrupted.into());
        for result in [Ok(1), Ok(40), interrupted()] {
            let (outcome, written, there, all) = landing(result);
            outcome.unwrap();
            assert!(there == all);
            assert_eq!((written.packets, written.bytes), (2, all.len() as u64));
        }
    }

    #[test]
    fn a_completion_with_an_error_ends_the_file_behind_its_last_whole_record() {
        const ROOM: &str = ". Free some space, or choose another place";
        for (result, says, remedy) in [
            (Err(Errno::IO), "cannot write to f: Input/output error (os error 5); ", ""),
            (Err(Errno::NOSPC), "no space left for f: No space left on device (os error 28); ", ROOM),
            (Err(Errno::DQUOT), "no space left for f: Disk quota exceeded (os error 122); ", ROOM),
            (
                Err(Errno::FBIG),
                "f cannot grow further: File too large (os error 27); ",
                "Raise the limit (`ulimit -f`) or write smaller files",
            ),
            (Ok(0), "cannot write to f: ", ""),
        ] {
            let (outcome, written, there, all) = landing(result.map_err(io::Error::from));
            assert!(there == all[..all.len() / 2], "{says}");
            assert_eq!((written.packets, written.bytes), (1, there.len() as u64), "{says}");
            let kept = Kept { packets: written.packets, bytes: written.bytes };
            let said = WriteError::from_write("f", outcome.unwrap_err(), kept).to_string();
            assert!(said.starts_with(says) && said.contains("1 packet") && said.ends_with(remedy), "{said}");
        }
    }
}
