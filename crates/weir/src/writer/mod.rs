//! Chunks into capture files.
//!
//! A pcapng file takes a chunk as it is: the bytes go from the pool's memory to the file, neither copied nor looked at.
//! Only the chunk in which a file ends is looked at, to be divided behind a whole record. Classic pcap has another record
//! header, so there each chunk is rewritten, and given back before its bytes are out. Packets that come one by one are put
//! together into records of their own, and written when there is a piece of them.
//!
//! ```text
//! chunks, packets -> Writer -> pieces -> [compressed: threads] -> disk, stream
//!                      '-> files: names, open, finished; rotate: when one ends
//! ```
//!
//! - `take`: what a writer takes; `told`: what it is told of the capture; `turn`: from one file to the next.
//! - `options`: what can be asked for.
//! - `piece`: what a file is put together from. `encode`: what stands in it besides the chunks; rewriting for pcap.
//! - `rotate`: when a file is full. `files`: all files of a run; `names`: what they are called; `finished`: what is done
//!   with them afterwards.
//! - `keeper`: who opens and removes files, and what is refused; `way`: which links lead there; `open`: from an open file to an
//!   output.
//! - `rest`: files that are closed for a while.
//! - `ring`: the files of which the oldest go; `template`: which files of earlier runs are among them.
//! - `compressed`: frames instead of pieces, by threads of its own; `frame`: one of them.
//! - `disk`: a regular file; several writes in flight. `stream`: everything else, such as a pipe; one write at a time.
//!
//! When a write fails, the writer lets those in flight come to their end, counts what arrived from the start of the
//! file without a gap, and cuts the file there, behind a whole record or frame. From then on it takes chunks only to give
//! them back, and answers each with the same error.

mod compressed;
mod disk;
mod encode;
mod error;
mod files;
mod finished;
mod frame;
mod keeper;
mod names;
mod open;
mod options;
mod piece;
mod rest;
mod ring;
mod rotate;
mod stream;
mod take;
mod template;
#[cfg(test)]
mod tests;
mod told;
mod turn;
mod way;

use std::collections::BTreeMap;
use std::fmt;
use std::io;
use std::path::Path;
use std::time::{SystemTime, UNIX_EPOCH};

pub use self::disk::DiskQueue;
use self::encode::Counts;
pub(crate) use self::encode::os;
pub use self::error::{Kept, WriteError};
pub use self::files::FileList;
use self::files::{Files, OutFile};
pub use self::keeper::{Handed, Here, Keeper, Opening, Refusal, can_run};
pub use self::options::{Compression, Format, Rotation, WriterOptions};
use self::piece::{Load, Outcome, Piece};
use self::rotate::Clock;
pub use self::template::{Found, Template};
use crate::{Account, FileInterface};

/// What is surely in the files: whole records, in each file without a gap from its start on. The kernel has it; it need
/// not be on the disk yet.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Written {
    /// Packets.
    pub packets: u64,
    /// Bytes of the files, headers and statistics included.
    pub bytes: u64,
    /// The same before compression.
    pub plain_bytes: u64,
    /// Packets by interface and queue.
    pub queues: BTreeMap<(u32, u32), u64>,
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

/// Takes pieces of the file in their order.
trait Output: Send {
    /// Takes one piece; it need not be written yet. After an error everything that was good is counted, the rest is cut
    /// off, and the output is not used again.
    fn put(&mut self, piece: Piece) -> io::Result<()>;
    /// Waits until all pieces are written.
    fn settle(&mut self) -> io::Result<()>;
    /// The same, and nothing comes any more.
    fn close(&mut self) -> io::Result<()> {
        self.settle()
    }
    /// Waits as well, and gives what the output that goes on with the file has to know; `None`: none can.
    fn pause(&mut self) -> io::Result<Option<rest::State>> {
        Ok(None)
    }
    /// That, and which file it is, where this stands for the output of a closed one.
    fn resting(&mut self) -> Option<(&mut rest::State, (u64, u64))> {
        None
    }
    /// Empties the file, after what is in flight has come to its end: nothing was put. Says whether it could.
    fn empty(&mut self) -> io::Result<bool> {
        Ok(false)
    }
    /// What is written without a gap.
    fn written(&self) -> &Written;
    /// An empty buffer, if possible one that has been used before.
    fn buffer(&mut self) -> Vec<u8>;
}

/// Writes chunks or packets to a file, to one file after the other, or to a pipe.
///
/// Dropping it without [`finish`](Self::finish) leaves a readable file with all that was taken, without the closing
/// statistics. Each call can fail: see [`WriteError`] and the module's text.
pub struct Writer {
    options: WriterOptions,
    files: Files,
    /// `None`: the last one is full, and the next begins with the next packet.
    file: Option<OutFile>,
    /// What each file is told of.
    interfaces: Vec<FileInterface>,
    /// Packets that came one by one and are not a piece yet.
    batch: Piece,
    clock: Option<Clock>,
    complete: bool,
    /// What is in the files before the present one.
    before: Written,
    /// The last account that was told.
    counts: Option<Counts>,
    /// What the accounts of the present file are counted from, and since when: nanoseconds since the Unix epoch, known of
    /// the first file from the first account on.
    base: Counts,
    began: Option<u64>,
    /// Packets that were cut at the snap length of their interface.
    cut: u64,
    /// Packets that were cut because no other program reads any that are so long.
    too_long: u64,
    /// Where the present file names snap lengths: of its interfaces, or its only one.
    snap_places: Vec<u64>,
    /// That of a pcap file.
    pcap_snap_len: u32,
    /// The present file has a packet without a time that is cut at the snap length, as only that tells.
    cut_simple: bool,
    /// Packets that are later than any time that the format holds.
    too_late: u64,
    /// What every call answers after a failure.
    failed: Option<WriteError>,
}

impl Writer {
    /// Creates the file, or empties the one that is there, and writes its start. `-` is standard output. A file that
    /// somebody else writes to is refused.
    ///
    /// `interfaces`: all that chunks will come from, each at the place that its number says.
    ///
    /// # Errors
    ///
    /// The file cannot be created or written, its format cannot hold these interfaces, or the options contradict each other.
    pub fn create(
        path: &Path,
        interfaces: &[FileInterface],
        options: &WriterOptions,
    ) -> Result<Self, WriteError> {
        // Before the file is touched.
        encode::start(interfaces, options)?;
        let mut files = Files::new(path, options)?;
        let file = files.open()?;
        Self::begin(files, file, interfaces, options)
    }

    fn begin(
        files: Files,
        file: OutFile,
        interfaces: &[FileInterface],
        options: &WriterOptions,
    ) -> Result<Self, WriteError> {
        let mut writer = Self {
            options: options.clone(),
            files,
            file: Some(file),
            interfaces: interfaces.to_vec(),
            batch: Piece::default(),
            clock: Clock::new(&options.rotation),
            complete: false,
            before: Written::default(),
            counts: None,
            base: Counts::default(),
            began: None,
            cut: 0,
            too_long: 0,
            snap_places: Vec::new(),
            pcap_snap_len: 0,
            cut_simple: false,
            too_late: 0,
            failed: None,
        };
        writer.put_start()?;
        Ok(writer)
    }

    /// Tells the file, and all that follow it, of another interface; gives the number by which packets name it.
    ///
    /// # Errors
    ///
    /// [`WriteError::LinkTypes`]: a pcap file that has another link type; it can be written on.
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
            self.snap_places.push(self.size() + encode::DESCRIPTION_SNAP);
            let mut buffer = self.buffer();
            encode::interface(interface, &mut buffer);
            self.put(Load::Bytes(buffer).into())?;
        }
        Ok(number)
    }

    /// Waits until everything that was taken is in the file, so that the pool has its memory back. For a capture that
    /// has nothing to hand out: call this before waiting for packets, or chunks stay away from the pool meanwhile.
    ///
    /// # Errors
    ///
    /// As [`write`](Self::write).
    pub fn flush(&mut self) -> Result<(), WriteError> {
        self.usable()?;
        self.put_batch()?;
        let settled = self.file.as_mut().map_or(Ok(()), |file| file.output.settle());
        settled.or_else(|source| self.fail_write(source))
    }

    /// What is surely in the files by now.
    pub fn written(&self) -> Written {
        let mut written = self.before.clone();
        if let Some(file) = &self.file {
            written.add_file(file.output.written());
        }
        written
    }

    /// Bytes of the present file, with what was taken and is not written yet, before compression.
    pub fn size(&self) -> u64 {
        self.file.as_ref().map_or(0, |file| file.bytes) + self.batch.load.as_ref().len() as u64
    }

    /// Which files there were.
    pub fn files(&self) -> FileList {
        self.files.list()
    }

    /// What the user should know, and was not told by the last call.
    pub fn warnings(&mut self) -> Vec<String> {
        self.files.warnings()
    }

    /// [`close`](Self::close), and what is written in the end.
    pub fn finish(mut self, account: &Account) -> (Written, Result<(), WriteError>) {
        let result = self.close(account);
        (self.written(), result)
    }

    /// Writes the last account, waits until everything is in the file, closes it, and waits until the last finished file is
    /// seen to. Every later call that writes fails.
    ///
    /// # Errors
    ///
    /// That of the first call that failed, if one did; else [`WriteError::Sync`].
    pub fn close(&mut self, account: &Account) -> Result<(), WriteError> {
        let result = self.usable().and_then(|()| {
            self.note(account);
            self.finish_file()
        });
        let seen_to = self.files.finished.wait();
        let result = result.and(seen_to);
        self.failed.get_or_insert(WriteError::Finished);
        result
    }

    /// No call has failed so far.
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
        if self.batch.load.as_ref().is_empty() {
            return Ok(());
        }
        let next = Load::Bytes(self.buffer()).into();
        let batch = std::mem::replace(&mut self.batch, next);
        self.put(batch)
    }

    fn put(&mut self, piece: Piece) -> Result<(), WriteError> {
        self.wake()?;
        let Some(file) = &mut self.file else { return Ok(()) };
        let put = file.put(piece);
        let put = if self.options.flush_each { put.and_then(|()| file.output.settle()) } else { put };
        put.or_else(|source| self.fail_write(source))
    }

    fn fail_write(&mut self, source: io::Error) -> Result<(), WriteError> {
        let Written { packets, bytes, .. } = self.written();
        let file = self.file.as_ref();
        let name = file.map(|file| file.name.clone()).unwrap_or_default();
        if let Some(file) = file.filter(|file| file.created && file.output.written().bytes == 0) {
            self.files.discard(&file.path);
        }
        self.fail(WriteError::from_write(&name, source, Kept { packets, bytes }))
    }

    /// From here on every call gives this error.
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

/// Nanoseconds since the Unix epoch.
fn now() -> u64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    u64::try_from(since.as_nanos()).unwrap_or(u64::MAX)
}
