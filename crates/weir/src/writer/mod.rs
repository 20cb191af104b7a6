//! Writes chunks and packets to capture files.
//!
//! A pcapng file takes a chunk unchanged: the bytes go from the pool's memory to the file without being copied or
//! parsed. Only the chunk in which a file ends is parsed, to split it after a whole record. Classic pcap has a
//! different record header, so each chunk is converted, and returned to the pool before the result is written. Single
//! packets are encoded into records and written in larger pieces.
//!
//! ```text
//! chunks, packets -> Writer -> requests -> [compressed: threads] -> disk, stream
//!                      '-> files: names, open, finished; limits: when one ends
//! ```
//!
//! - `accept`: accepting chunks and packets; `interface_statistics`: counters and events of the capture; `rotation`:
//!   switching files.
//! - `options`: the options of a writer.
//! - `counts`: what these statistics count.
//! - `write_request`: what is to be written. `encode`: everything in a file except chunks; conversion to pcap.
//! - `limits`: when a file is full. `files`: all files of a run; `names`: their names; `finished`: what happens to
//!   finished files.
//! - `broker`: opens and removes files, with checks; `path_resolution`: which links are followed; `open`: turns an open
//!   file into an output.
//! - `outage`: going on when the disk is full.
//! - `rest`: files that are closed temporarily; `resume_point`: what they need to go on.
//! - `ring`: deletes the oldest files; `template`: finds the files of earlier runs that belong to the ring.
//! - `compressed`: compresses requests into frames, in threads of its own; `frame`: a single frame.
//! - `who`: lives of sockets, from which readers find out whose packets are.
//! - `disk`: a regular file, with several writes in flight. `stream`: anything else, such as a pipe; one write at a
//!   time.
//!
//! When a write fails, the writer waits for the writes in flight, counts what arrived without a gap from the start of
//! the file, and truncates the file there, after a whole record or frame. After that it only returns chunks to the
//! pool, and every call fails with the same error. With [`WriterOptions::keep_going`] a full disk is none: what follows is
//! lost, and counted, until there is room again.

mod accept;
pub(crate) mod broker;
mod compressed;
mod compression;
mod counts;
mod disk;
mod encode;
mod error;
mod files;
mod finished;
mod frame;
mod interface_statistics;
mod limits;
pub(crate) mod local_broker;
mod names;
mod open;
mod options;
mod outage;
mod path_resolution;
mod queue;
pub(crate) mod refusal;
mod rest;
mod resume_point;
mod ring;
mod rotation;
mod stream;
pub(crate) mod template;
#[cfg(test)]
mod tests;
mod who;
mod write_request;

use std::collections::BTreeMap;
use std::fmt;
use std::io;
use std::path::Path;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

pub use self::compression::Compression;
use self::counts::{Accepted, Counts};
use self::encode::Occasion;
use self::error::is_full;
pub use self::error::{Kept, WriteError};
pub use self::files::FileList;
use self::files::{Files, OutFile};
use self::limits::Clock;
pub use self::options::{Rotation, WriterOptions};
use self::outage::Outages;
pub use self::queue::DiskQueue;
use self::who::Who;
use self::write_request::{Data, Outcome, WriteRequest};
pub use crate::format::Format;
use crate::{CaptureStats, FileInterface, codec};

/// What is known to be written: whole records, without a gap from the start of each file.
///
/// The kernel has accepted the data; it may not be on disk yet.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Written {
    /// Number of packets.
    pub packets: u64,
    /// File sizes in bytes, including headers and statistics.
    pub bytes: u64,
    /// File sizes in bytes before compression.
    pub plain_bytes: u64,
    /// Number of packets by interface and queue.
    pub queues: BTreeMap<(u32, u32), u64>,
    /// Number of packets known to be lost because the disk was full, by interface and queue, with
    /// [`WriterOptions::keep_going`].
    pub lost: BTreeMap<(u32, u32), u64>,
}

impl Written {
    fn add(&mut self, outcome: &Outcome) {
        self.bytes += outcome.bytes;
        self.plain_bytes += outcome.plain;
        for run in outcome.content.runs() {
            self.packets += run.count;
            *self.queues.entry((run.interface, run.queue)).or_default() += run.count;
        }
    }
}

/// Writes a file in order.
trait Output: Send {
    /// Accepts a request, which may be written later. After an error all intact data is counted, the rest is truncated,
    /// and the output is not used again.
    fn put(&mut self, request: WriteRequest) -> io::Result<()>;
    /// Waits until all requests are written.
    fn settle(&mut self) -> io::Result<()>;
    /// Does the same, but waits at most this long for the reader of a FIFO.
    fn settle_within(&mut self, _longest: Duration) -> io::Result<()> {
        self.settle()
    }
    /// Returns whether requests wait for the reader of a FIFO.
    fn is_behind(&self) -> bool {
        false
    }
    /// Waits like [`settle`](Self::settle), and finishes the file.
    fn close(&mut self) -> io::Result<()> {
        self.settle()
    }
    /// Waits like [`settle`](Self::settle), and returns the state needed to continue the file later; `None`: not
    /// supported.
    fn pause(&mut self) -> io::Result<Option<resume_point::ResumePoint>> {
        Ok(None)
    }
    /// Returns that state and the file's device and inode, if this stands in for the output of a closed file.
    fn resting(&mut self) -> Option<(&mut resume_point::ResumePoint, (u64, u64))> {
        None
    }
    /// Waits for the writes in flight, then empties the file. Returns whether this was possible.
    fn empty(&mut self) -> io::Result<bool> {
        Ok(false)
    }
    /// What is written, without a gap.
    fn written(&self) -> &Written;
    /// After an error: forgets all requests that are not [written](Self::written), so that others can follow what is. Returns
    /// whether this was possible.
    fn recover(&mut self) -> bool {
        false
    }
    /// After an error: leaves the file as it is, but for the end of its last frame.
    fn give_up(&mut self) {}
    /// Returns an empty buffer, recycled if possible.
    fn buffer(&mut self) -> Vec<u8>;
}

/// Writes chunks or packets to a file, a series of files, or a pipe.
///
/// Dropping a writer without calling [`finish`](Self::finish) leaves a readable file with everything accepted so far,
/// but without the closing statistics. Any call can fail: see [`WriteError`] and the module documentation.
pub struct Writer {
    options: WriterOptions,
    files: Files,
    /// `None`: the last file was full, and the next one begins with the next packet.
    file: Option<OutFile>,
    /// The interfaces described in each file.
    interfaces: Vec<FileInterface>,
    /// Single packets that are not passed on as a request yet.
    batch: WriteRequest,
    clock: Option<Clock>,
    complete: bool,
    /// What the files before the current one contain.
    before: Written,
    /// The counters of the latest account.
    counts: Option<Counts>,
    /// What all files have, or were to have.
    accepted: Accepted,
    /// The counters at the start of the current file, and when it began, in nanoseconds since the Unix epoch (for the
    /// first file, known once there is an account).
    base: Counts,
    began: Option<u64>,
    /// Packets cut at the snap length of their interface.
    cut: u64,
    /// Packets cut because no other program reads longer ones.
    too_long: u64,
    /// Offsets of the snap lengths in the current file: one per interface, or a single one in pcap.
    snap_places: Vec<u64>,
    /// The snap length in the header of a pcap file.
    pcap_snap_len: u32,
    /// A packet in the current file has no timestamp and is cut, which only the snap length shows.
    cut_simple: bool,
    /// Packets with a timestamp too late for the format.
    too_late: u64,
    outages: Outages,
    /// `None`: nothing was told of sockets.
    who: Option<Box<Who>>,
    /// The error that every call returns after a failure.
    failed: Option<WriteError>,
}

impl Writer {
    /// Creates the file, or truncates an existing one, and writes its header.
    ///
    /// `-` is standard output. A file that another program is writing is refused. `interfaces` are all interfaces that
    /// chunks will come from, indexed by their number.
    ///
    /// # Errors
    ///
    /// The file cannot be created or written, its format cannot hold these interfaces, or the options contradict each
    /// other.
    pub fn create(
        path: &Path,
        interfaces: &[FileInterface],
        options: &WriterOptions,
    ) -> Result<Self, WriteError> {
        // Fails before the file is touched.
        encode::start(interfaces, options)?;
        let compression = options.compression.kind();
        if !codec::has(compression) {
            return Err(WriteError::NoCodec(compression));
        }
        let mut files = Files::new(path, options)?;
        let file = match files.open() {
            Err(error) if options.keep_going && error.is_full() => None,
            opened => Some(opened?),
        };
        Self::begin(files, file, interfaces, options)
    }

    /// `file`: `None` if the disk is full.
    fn begin(
        files: Files,
        file: Option<OutFile>,
        interfaces: &[FileInterface],
        options: &WriterOptions,
    ) -> Result<Self, WriteError> {
        let mut writer = Self {
            options: options.clone(),
            files,
            file,
            interfaces: interfaces.to_vec(),
            batch: WriteRequest::default(),
            clock: Clock::new(&options.rotation),
            complete: false,
            before: Written::default(),
            counts: None,
            accepted: Accepted::default(),
            base: Counts::default(),
            began: None,
            cut: 0,
            too_long: 0,
            snap_places: Vec::new(),
            pcap_snap_len: 0,
            cut_simple: false,
            too_late: 0,
            outages: Outages::default(),
            who: None,
            failed: None,
        };
        if writer.file.is_some() {
            writer.put_start()?
        } else {
            writer.outages.open()
        }
        Ok(writer)
    }

    /// Adds an interface to this file and all that follow, and returns the number by which packets refer to it.
    ///
    /// # Errors
    ///
    /// [`WriteError::LinkTypes`]: a pcap file has another link type; the writer can still be used.
    pub fn interface(&mut self, interface: &FileInterface) -> Result<u32, WriteError> {
        self.usable()?;
        let number = u32::try_from(self.interfaces.len()).expect("fewer interfaces than fit into memory");
        self.interfaces.push(interface.clone());
        if self.options.format != Format::Pcapng {
            if let Err(error) = encode::one_link_type(&self.interfaces) {
                self.interfaces.pop();
                return Err(error);
            }
        } else if self.file.is_some() {
            self.put_batch()?;
            self.describe()?;
        }
        Ok(number)
    }

    /// Waits until everything accepted so far is written, so that the pool has its memory back.
    ///
    /// Call this before waiting for packets when a capture has none to deliver; otherwise the pool has to do without
    /// these chunks in the meantime.
    ///
    /// # Errors
    ///
    /// See [`write`](Self::write).
    pub fn flush(&mut self) -> Result<(), WriteError> {
        self.usable()?;
        self.put_batch()?;
        self.settle()
    }

    /// Does what [`flush`](Self::flush) does, but waits at most this long for the reader of a FIFO;
    /// [`is_behind`](Self::is_behind) tells whether it has everything.
    ///
    /// # Errors
    ///
    /// See [`write`](Self::write).
    pub fn flush_within(&mut self, longest: Duration) -> Result<(), WriteError> {
        self.usable()?;
        self.put_batch()?;
        let settled = self.file.as_mut().map_or(Ok(()), |file| file.output.settle_within(longest));
        settled.or_else(|source| self.fail_write(source))
    }

    /// Returns whether the reader of a FIFO has not taken yet what was accepted. Whoever must not wait keeps further chunks,
    /// and calls [`flush_within`](Self::flush_within) now and then.
    pub fn is_behind(&self) -> bool {
        self.file.as_ref().is_some_and(|file| file.output.is_behind())
    }

    /// Returns what is known to be written so far.
    pub fn written(&self) -> Written {
        let mut written = self.before.clone();
        if let Some(file) = &self.file {
            written.add_file(file.output.written());
        }
        written.lost.clone_from(self.outages.lost());
        written
    }

    /// Returns the size of the current file in bytes before compression, including data not written yet.
    pub fn size(&self) -> u64 {
        self.file.as_ref().map_or(0, |file| file.bytes) + self.batch.data.as_ref().len() as u64
    }

    /// Returns which files were written.
    pub fn files(&self) -> FileList {
        self.files.list()
    }

    /// Returns the warnings since the last call.
    pub fn warnings(&mut self) -> Vec<String> {
        let news = self.outage_news();
        self.files.warnings().into_iter().chain(news).collect()
    }

    /// Calls [`close`](Self::close), and returns what was written in total.
    pub fn finish(mut self, account: &CaptureStats) -> (Written, Result<(), WriteError>) {
        let result = self.close(account);
        (self.written(), result)
    }

    /// Writes the final statistics, waits until everything is written, closes the file, and waits until all finished
    /// files are processed. Every later write fails.
    ///
    /// # Errors
    ///
    /// The error of the first call that failed, if any; otherwise [`WriteError::Sync`].
    pub fn close(&mut self, account: &CaptureStats) -> Result<(), WriteError> {
        let result = self.usable().and_then(|()| {
            self.set_stats(account);
            if self.outages.is_open() {
                self.go_on()?;
            }
            self.finish_file(Occasion::Close)
        });
        let seen_to = self.files.finished.wait();
        let result = result.and(seen_to);
        self.failed.get_or_insert(WriteError::Finished);
        result
    }

    /// Fails if an earlier call has failed.
    #[inline]
    fn usable(&self) -> Result<(), WriteError> {
        match &self.failed {
            None => Ok(()),
            Some(error) => Err(error.clone()),
        }
    }

    fn buffer(&mut self) -> Vec<u8> {
        self.file.as_mut().map(|file| file.output.buffer()).unwrap_or_default()
    }

    fn put_batch(&mut self) -> Result<(), WriteError> {
        if self.batch.data.as_ref().is_empty() {
            return Ok(());
        }
        let next = Data::Bytes(self.buffer()).into();
        let batch = std::mem::replace(&mut self.batch, next);
        self.put(batch)
    }

    fn put(&mut self, request: WriteRequest) -> Result<(), WriteError> {
        if self.outages.is_open() {
            self.outages.lose_all(&request.content);
            return Ok(());
        }
        self.wake()?;
        if self.outages.ends_with(&request.content) {
            self.put_behind_outage(request)
        } else {
            self.put_request(request)
        }
    }

    fn put_request(&mut self, request: WriteRequest) -> Result<(), WriteError> {
        let Some(file) = &mut self.file else { return Ok(()) };
        let put = file.put(request);
        let settle = |()| file.output.settle_within(Duration::ZERO);
        let put = if self.options.flush_each { put.and_then(settle) } else { put };
        put.or_else(|source| self.fail_write(source))
    }

    fn settle(&mut self) -> Result<(), WriteError> {
        let settled = self.file.as_mut().map_or(Ok(()), |file| file.output.settle());
        settled.or_else(|source| self.fail_write(source))
    }

    /// Handles an error of the output. If the disk is full and the writer is to go on, this returns `Ok`, and an outage has begun.
    fn fail_write(&mut self, source: io::Error) -> Result<(), WriteError> {
        if self.options.keep_going && is_full(&source) && self.open_outage() {
            return Ok(());
        }
        if let Some(file) = &mut self.file {
            file.output.give_up();
        }
        let Written { packets, bytes, .. } = self.written();
        let file = self.file.as_ref();
        let name = file.map(|file| file.name.clone()).unwrap_or_default();
        if let Some(file) = file.filter(|file| file.created && file.output.written().bytes == 0) {
            self.files.discard(&file.path);
        }
        self.fail(WriteError::from_write(&name, source, Kept { packets, bytes }))
    }

    /// Makes every later call return this error.
    fn fail(&mut self, error: WriteError) -> Result<(), WriteError> {
        self.failed = Some(error.clone());
        Err(error)
    }
}

impl Drop for Writer {
    fn drop(&mut self) {
        if self.failed.is_none() {
            let _ = self.put_batch();
        }
    }
}

impl fmt::Debug for Writer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Writer")
            .field("options", &self.options)
            .field("files", &self.files())
            .field("written", &self.written())
            .field("failed", &self.failed)
            .finish_non_exhaustive()
    }
}

/// Returns the time in nanoseconds since the Unix epoch.
fn now() -> u64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    u64::try_from(since.as_nanos()).unwrap_or(u64::MAX)
}
