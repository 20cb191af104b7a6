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
//! - `options`: what can be asked for.
//! - `piece`: what a file is put together from. `encode`: what stands in it besides the chunks; rewriting for pcap.
//! - `rotate`: when a file is full. `files`: all files of a run; `names`: what they are called; `finished`: what is done
//!   with them afterwards.
//! - `open`: from a path to an open file, or to an error that says what to do.
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
mod names;
mod open;
mod options;
mod piece;
mod rotate;
mod stream;
#[cfg(test)]
mod tests;

use std::collections::BTreeMap;
use std::fmt;
use std::io;
use std::path::Path;
use std::time::{Instant, SystemTime, UNIX_EPOCH};

use weir_savefile::pcapng;

pub(crate) use self::encode::os;
use self::encode::{Counts, Occasion};
pub use self::error::{Kept, WriteError};
pub use self::files::FileList;
use self::files::{Files, OutFile};
pub use self::options::{Compression, Format, Rotation, WriterOptions};
use self::piece::{Content, Load, Outcome, Piece};
use self::rotate::{Clock, Room};
use crate::reader::InterfaceStatistics;
use crate::{Account, Chunk, FileInterface, Packet, reader};

/// Packets that come one by one are written once they are this many bytes.
const BATCH: usize = 1 << 20;

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
            let mut buffer = self.buffer();
            encode::interface(interface, &mut buffer);
            self.put(Load::Bytes(buffer).into())?;
        }
        Ok(number)
    }

    /// Takes a chunk for the file. Its memory goes back to the pool when it is written or compressed: at once, or at one of
    /// the next calls, or at [`flush`](Self::flush).
    ///
    /// # Errors
    ///
    /// This write or one before failed.
    pub fn write(&mut self, chunk: Chunk) -> Result<(), WriteError> {
        let content = Content::of_queue(chunk.interface(), chunk.queue(), chunk.len() as u64);
        self.write_records(Load::Chunk(chunk), content)
    }

    fn write_records(&mut self, mut load: Load, mut content: Content) -> Result<(), WriteError> {
        self.usable()?;
        self.put_batch()?;
        let compressed = self.options.compression != Compression::None;
        while !load.as_ref().is_empty() {
            self.ensure_file()?;
            let cut = self.room().cut(self.options.format, compressed, load.as_ref(), content.count());
            let Some((bytes, packets)) = cut else {
                self.put_records(load, content)?;
                return self.finish_full_file();
            };
            let (first, rest) = load.split(bytes);
            self.put_records(first, content.split(packets))?;
            self.finish_full_file()?;
            load = rest;
        }
        Ok(())
    }

    fn put_records(&mut self, load: Load, content: Content) -> Result<(), WriteError> {
        let Some(resolution) = self.options.format.pcap() else {
            return self.put(Piece { load, content });
        };
        let mut buffer = self.buffer();
        let converted = encode::to_pcap(resolution, load.as_ref(), &mut buffer);
        drop(load);
        match converted {
            Ok(()) => self.put(Piece { load: Load::Bytes(buffer), content }),
            Err(malformed) => {
                self.flush()?;
                self.fail(WriteError::Malformed(malformed))
            }
        }
    }

    /// Takes one packet for the file, with direction, queue, loss and comment where the packet has them and the format a
    /// place for them. Packets are gathered to about 1 MiB before they are written.
    ///
    /// # Errors
    ///
    /// [`WriteError::Packet`]: the file cannot hold this packet; it can be written on. Else as [`write`](Self::write).
    #[inline]
    pub fn packet(&mut self, packet: &Packet<'_>) -> Result<(), WriteError> {
        self.usable()?;
        if packet.interface as usize >= self.interfaces.len() {
            return Err(WriteError::Packet {
                reason: format!(
                    "it is of interface {}, of which the file has not been told",
                    packet.interface
                ),
            });
        }
        self.ensure_file()?;
        let Load::Bytes(bytes) = &mut self.batch.load else { unreachable!("a batch is in a buffer") };
        if encode::packet(self.options.format, packet, bytes).is_none() {
            return Err(WriteError::Packet { reason: format!("{} bytes are too many", packet.data.len()) });
        }
        let size = bytes.len();
        self.batch.content.push(packet.interface, packet.queue, 1);
        let full =
            self.options.rotation.is_ring() && self.room().holds_no_more_than(size, &self.batch.content);
        if full || size >= BATCH || self.options.flush_each {
            self.put_batch()?;
        }
        if full { self.finish_full_file() } else { Ok(()) }
    }

    /// Takes packets of a file as they stand there, whose records are those of this file's format
    /// ([`Reader::is_copied_to`](reader::Reader::is_copied_to)) and whose interface has the same number here. Not for files
    /// that end with the packet that fills them.
    ///
    /// # Errors
    ///
    /// As [`write`](Self::write).
    pub fn run(&mut self, run: &reader::Run<'_>) -> Result<(), WriteError> {
        self.usable()?;
        if run.interface as usize >= self.interfaces.len() || self.options.rotation.is_ring() {
            let reason = "records cannot be copied to this file as they stand".to_owned();
            return Err(WriteError::Packet { reason });
        }
        self.ensure_file()?;
        let Load::Bytes(bytes) = &mut self.batch.load else { unreachable!("a batch is in a buffer") };
        bytes.extend_from_slice(run.bytes);
        let size = bytes.len();
        self.batch.content.push(run.interface, run.queue, run.packets);
        if size >= BATCH || self.options.flush_each { self.put_batch() } else { Ok(()) }
    }

    /// Takes any other pcapng block for the file: its type, and what stands between its lengths, in native byte order. A
    /// pcap file has no place for one.
    ///
    /// # Errors
    ///
    /// [`WriteError::Packet`]: the block is too long; the file can be written on. Else as [`write`](Self::write).
    pub fn block(&mut self, kind: u32, body: &[u8]) -> Result<(), WriteError> {
        self.usable()?;
        if self.options.format != Format::Pcapng {
            return Ok(());
        }
        self.put_batch()?;
        self.ensure_file()?;
        let mut buffer = self.buffer();
        if pcapng::append_block(&mut buffer, kind, body).is_none() {
            return Err(WriteError::Packet { reason: format!("{} bytes are too many", body.len()) });
        }
        self.put(Load::Bytes(buffer).into())
    }

    /// Takes counters of an interface as another file had them, by the number that this file knows it by. A pcap file
    /// has no place for them.
    ///
    /// # Errors
    ///
    /// As [`write`](Self::write).
    pub fn interface_statistics(&mut self, statistics: &InterfaceStatistics) -> Result<(), WriteError> {
        self.usable()?;
        if self.options.format != Format::Pcapng {
            return Ok(());
        }
        self.put_batch()?;
        self.ensure_file()?;
        let mut buffer = self.buffer();
        encode::interface_statistics(statistics, &mut buffer);
        self.put(Load::Bytes(buffer).into())
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

    /// Writes down the account as it stands (Interface Statistics Blocks): done now and then, above all after a loss,
    /// it makes a time line. A pcap file has no place for it.
    ///
    /// # Errors
    ///
    /// As [`write`](Self::write).
    pub fn statistics(&mut self, account: &Account) -> Result<(), WriteError> {
        self.usable()?;
        self.note(account);
        self.put_statistics(Occasion::Now, now())
    }

    /// Another filter came into force at `time` (nanoseconds since the Unix epoch), with the account as it stands; `None`:
    /// everything is wanted. The file says so where it is now, in Interface Statistics Blocks, and those that come after it
    /// name the filter in the descriptions of their interfaces.
    ///
    /// # Errors
    ///
    /// As [`write`](Self::write).
    pub fn filter_changed(
        &mut self,
        account: &Account,
        time: u64,
        filter: Option<&str>,
    ) -> Result<(), WriteError> {
        self.usable()?;
        for interface in &mut self.interfaces {
            interface.filter = filter.map(str::to_owned);
        }
        let said = match filter {
            Some(filter) => format!("filter changed to: {filter}"),
            None => "filter removed: every packet is wanted".to_owned(),
        };
        self.said(account, time, &said)
    }

    /// Something has happened at `time` (nanoseconds since the Unix epoch) that who reads the file is to know, with the
    /// account as it stands: a comment of Interface Statistics Blocks, where the file is now.
    ///
    /// # Errors
    ///
    /// As [`write`](Self::write).
    pub fn said(&mut self, account: &Account, time: u64, what: &str) -> Result<(), WriteError> {
        self.usable()?;
        self.note(account);
        self.put_statistics(Occasion::Event(what), time)
    }

    /// What the statistics at the end of a file are to say, should it end before the next account is told.
    pub fn note(&mut self, account: &Account) {
        let elapsed = u64::try_from(account.elapsed.as_nanos()).unwrap_or(u64::MAX);
        self.began.get_or_insert_with(|| now().saturating_sub(elapsed));
        self.counts = Some(Counts::of(account));
    }

    /// Whether the file will end in this chunk: the moment to [`note`](Self::note) an account.
    pub fn ends_with(&self, chunk: &Chunk) -> bool {
        let (bytes, packets) = (chunk.bytes().len() as u64, chunk.len() as u64);
        let room = self.room();
        self.options.rotation.is_ring() && (room.bytes <= bytes || room.packets <= packets)
    }

    /// When the present file ends by time, as far as clocks go on as they do: then [`tick`](Self::tick) has to be called.
    /// `None`: it does not.
    pub fn due(&self) -> Option<Instant> {
        self.clock.as_ref().filter(|_| !self.complete).map(Clock::due)
    }

    /// Whether that time has come.
    pub fn is_due(&self) -> bool {
        !self.complete && self.clock.as_ref().is_some_and(Clock::is_due)
    }

    /// Ends the file and begins the next one, if [it is due](Self::is_due).
    ///
    /// # Errors
    ///
    /// As [`write`](Self::write).
    pub fn tick(&mut self, account: &Account) -> Result<(), WriteError> {
        self.usable()?;
        if !self.is_due() {
            return Ok(());
        }
        self.note(account);
        let Rotation { files, .. } = self.options.rotation;
        if !self.options.rotation.is_ring()
            && files.is_some_and(|files| self.files.list.count >= files.into())
        {
            // What was captured up to now and comes after this call belongs to the last file.
            self.complete = true;
            return Ok(());
        }
        self.finish_file()?;
        self.ensure_file()?;
        if let Some(clock) = &mut self.clock {
            clock.advance();
        }
        Ok(())
    }

    /// All files that were asked for are written ([`Rotation::files`] with periods alone): nothing more should come.
    pub fn is_complete(&self) -> bool {
        self.complete
    }

    /// What is surely in the files by now.
    pub fn written(&self) -> Written {
        let mut written = self.before.clone();
        if let Some(file) = &self.file {
            written.add_file(file.output.written());
        }
        written
    }

    /// Which files there were.
    pub fn files(&self) -> &FileList {
        &self.files.list
    }

    /// What the user should know, and was not told by the last call.
    pub fn warnings(&mut self) -> Vec<String> {
        self.files.finished.warnings()
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

    #[inline]
    fn room(&self) -> Room {
        let (bytes, packets) = self.file.as_ref().map_or((0, 0), |file| (file.bytes, file.packets));
        Room::new(&self.options.rotation, bytes, packets)
    }

    fn buffer(&mut self) -> Vec<u8> {
        self.file.as_mut().map(|file| file.output.buffer()).unwrap_or_default()
    }

    /// Begins a file where none is open.
    #[inline]
    fn ensure_file(&mut self) -> Result<(), WriteError> {
        if self.file.is_some() {
            return Ok(());
        }
        match self.files.open() {
            Ok(file) => self.file = Some(file),
            Err(error) => return self.fail(error),
        }
        self.put_start()
    }

    fn put_start(&mut self) -> Result<(), WriteError> {
        let start = encode::start(&self.interfaces, &self.options)?;
        self.put(Load::Bytes(start).into())
    }

    fn finish_full_file(&mut self) -> Result<(), WriteError> {
        if self.room().is_full() { self.finish_file() } else { Ok(()) }
    }

    /// Ends the file, if one is open.
    fn finish_file(&mut self) -> Result<(), WriteError> {
        self.put_batch()?;
        if self.file.is_none() {
            return Ok(());
        }
        self.put_statistics(Occasion::End, now())?;
        let closed = self.file.as_mut().map_or(Ok(()), |file| file.output.close());
        if let Err(source) = closed {
            return self.fail_write(source);
        }
        if let Some(file) = self.file.take() {
            self.before.add_file(file.output.written());
            self.files.finish(file);
        }
        self.began = Some(now());
        self.base = self.counts.clone().unwrap_or_default();
        Ok(())
    }

    fn put_statistics(&mut self, occasion: Occasion<'_>, now: u64) -> Result<(), WriteError> {
        self.put_batch()?;
        let mut buffer = self.buffer();
        if let (Format::Pcapng, Some(counts), Some(file)) = (self.options.format, &self.counts, &self.file) {
            let base = (&self.base, self.began.unwrap_or(now));
            encode::statistics(base, (counts, now), &file.by_interface, occasion, &mut buffer);
        }
        if buffer.is_empty() { Ok(()) } else { self.put(Load::Bytes(buffer).into()) }
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
        let Some(file) = &mut self.file else { return Ok(()) };
        let put = file.put(piece);
        let put = if self.options.flush_each { put.and_then(|()| file.output.settle()) } else { put };
        put.or_else(|source| self.fail_write(source))
    }

    fn fail_write(&mut self, source: io::Error) -> Result<(), WriteError> {
        let Written { packets, bytes, .. } = self.written();
        let name = self.file.as_ref().map(|file| file.name.clone()).unwrap_or_default();
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
            .field("files", &self.files.list)
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
