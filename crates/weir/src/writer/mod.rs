//! Chunks into a capture file.
//!
//! A pcapng file takes a chunk as it is: the bytes go from the pool's memory to the file, neither copied nor looked at.
//! Classic pcap has another record header, so there each chunk is rewritten, and given back before its bytes are out.
//!
//! Packets that come one by one are put together into records of their own, and written when there is a piece of them.
//!
//! - `encode`: what stands in the file besides the chunks, and the rewriting for pcap.
//! - `open`: from a path to an open file, or to an error that says what to do.
//! - `disk`: a regular file; several writes in flight.
//! - `stream`: everything else, such as a pipe; one write at a time.
//!
//! When a write fails, the writer lets those in flight come to their end, counts what arrived from the start of the
//! file without a gap, and cuts the file there, behind a whole record. From then on it takes chunks only to give them
//! back, and answers each with the same error.

mod disk;
mod encode;
mod error;
mod open;
mod piece;
mod stream;
#[cfg(test)]
mod tests;

use std::collections::BTreeMap;
use std::fmt;
use std::io;
use std::path::Path;
use std::time::{SystemTime, UNIX_EPOCH};

use weir_savefile::pcap::Resolution;
use weir_savefile::pcapng;

pub use self::error::{Kept, WriteError};
use self::piece::{Content, Load, Piece};
use crate::{Account, Chunk, FileInterface, Packet};

/// Packets that come one by one are written once they are this many bytes.
const BATCH: usize = 1 << 20;

/// What kind of file a [`Writer`] writes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Format {
    /// pcapng: several interfaces, losses and statistics in the file.
    #[default]
    Pcapng,
    /// Classic pcap: packets of one link type, nothing else.
    Pcap {
        /// Whether time stamps keep their nanoseconds; else microseconds, which older readers want.
        nanoseconds: bool,
    },
}

impl Format {
    /// What a pcap file of this format counts time in; `None`: it is no pcap file.
    fn pcap(self) -> Option<Resolution> {
        match self {
            Self::Pcapng => None,
            Self::Pcap { nanoseconds: true } => Some(Resolution::Nano),
            Self::Pcap { nanoseconds: false } => Some(Resolution::Micro),
        }
    }
}

/// How to write.
#[derive(Debug, Clone, Default)]
pub struct WriterOptions {
    /// What kind of file.
    pub format: Format,
    /// Whether [`Writer::write`] comes back only when the chunk is in the file, so that who follows the file sees it.
    pub flush_each: bool,
    /// A text at the start of the file (pcapng only).
    pub comment: Option<String>,
    /// Name and version of the program that captures, at the start of the file (pcapng only).
    pub user_application: String,
}

/// What is surely in the file: whole records, without a gap, from its start on. The kernel has it; it need not be on
/// the disk yet.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Written {
    /// Packets.
    pub packets: u64,
    /// Bytes of the file, headers and statistics included.
    pub bytes: u64,
    /// Packets by interface and queue.
    pub queues: BTreeMap<(u32, u32), u64>,
}

impl Written {
    fn add(&mut self, content: &Content, bytes: u64) {
        self.bytes += bytes;
        for run in content.runs() {
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
    /// What is written without a gap.
    fn written(&self) -> &Written;
    /// An empty buffer, if possible one that has been used before.
    fn buffer(&mut self) -> Vec<u8>;
}

/// Writes chunks to a file or a pipe.
///
/// Dropping it without [`finish`](Self::finish) leaves a readable file with all that was taken, without the closing
/// statistics.
pub struct Writer {
    output: Box<dyn Output>,
    /// As errors call the output.
    name: String,
    format: Format,
    flush_each: bool,
    /// What the file has been told of.
    interfaces: Vec<FileInterface>,
    /// Packets that came one by one and are not a piece yet.
    batch: Piece,
    /// When the capture began, nanoseconds since the Unix epoch; known from the first account on.
    began: Option<u64>,
    /// What every call answers after a failure.
    failed: Option<WriteError>,
}

impl Writer {
    /// Creates the file, or empties the one that is there, and writes its start. `-` is standard output.
    ///
    /// `interfaces`: all that chunks will come from, each at the place that its number says.
    ///
    /// # Errors
    ///
    /// The file cannot be created or written, or its format cannot hold these interfaces.
    pub fn create(
        path: &Path,
        interfaces: &[FileInterface],
        options: &WriterOptions,
    ) -> Result<Self, WriteError> {
        let start = encode::start(interfaces, options)?;
        let (output, name) = open::open(path, options.format)?;
        Self::begin(output, name, start, interfaces, options)
    }

    fn begin(
        output: Box<dyn Output>,
        name: String,
        start: Vec<u8>,
        interfaces: &[FileInterface],
        options: &WriterOptions,
    ) -> Result<Self, WriteError> {
        let mut writer = Self {
            output,
            name,
            format: options.format,
            flush_each: options.flush_each,
            interfaces: interfaces.to_vec(),
            batch: Piece::default(),
            began: None,
            failed: None,
        };
        writer.put(Load::Bytes(start).into())?;
        Ok(writer)
    }

    /// Tells the file of another interface; gives the number by which packets name it.
    ///
    /// # Errors
    ///
    /// [`WriteError::LinkTypes`]: a pcap file that has another link type; it can be written on. Else as
    /// [`write`](Self::write).
    pub fn interface(&mut self, interface: &FileInterface) -> Result<u32, WriteError> {
        self.usable()?;
        let number = u32::try_from(self.interfaces.len()).expect("fewer interfaces than fit into memory");
        self.interfaces.push(interface.clone());
        if self.format == Format::Pcapng {
            self.put_batch()?;
            let mut buffer = self.output.buffer();
            encode::interface(interface, &mut buffer);
            self.put(Load::Bytes(buffer).into())?;
        } else if let Err(error) = encode::one_link_type(&self.interfaces) {
            self.interfaces.pop();
            return Err(error);
        }
        Ok(number)
    }

    /// Takes a chunk for the file. Its memory goes back to the pool when it is written: at once, or at one of the next
    /// calls, or at [`flush`](Self::flush).
    ///
    /// # Errors
    ///
    /// This write or one before failed: see the module's text.
    pub fn write(&mut self, chunk: Chunk) -> Result<(), WriteError> {
        let content = Content::of_queue(chunk.interface(), chunk.queue(), chunk.len() as u64);
        self.write_records(Load::Chunk(chunk), content)
    }

    fn write_records(&mut self, load: Load, content: Content) -> Result<(), WriteError> {
        self.usable()?;
        if load.as_ref().is_empty() {
            return Ok(());
        }
        self.put_batch()?;
        let Some(resolution) = self.format.pcap() else {
            return self.put(Piece { load, content });
        };
        let mut buffer = self.output.buffer();
        let converted = encode::to_pcap(resolution, load.as_ref(), &mut buffer);
        drop(load);
        match converted {
            Ok(()) => self.put(Piece { load: Load::Bytes(buffer), content }),
            Err(malformed) => {
                self.flush()?;
                self.fail(|_| WriteError::Malformed(malformed))
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
        let Load::Bytes(bytes) = &mut self.batch.load else { unreachable!("a batch is in a buffer") };
        if encode::packet(self.format, packet, bytes).is_none() {
            return Err(WriteError::Packet { reason: format!("{} bytes are too many", packet.data.len()) });
        }
        let full = bytes.len() >= BATCH;
        self.batch.content.push(packet.interface, packet.queue);
        if full || self.flush_each { self.put_batch() } else { Ok(()) }
    }

    /// Takes any other pcapng block for the file: its type, and what stands between its lengths, in native byte order. A
    /// pcap file has no place for one.
    ///
    /// # Errors
    ///
    /// [`WriteError::Packet`]: the block is too long; the file can be written on. Else as [`write`](Self::write).
    pub fn block(&mut self, kind: u32, body: &[u8]) -> Result<(), WriteError> {
        self.usable()?;
        if self.format != Format::Pcapng {
            return Ok(());
        }
        self.put_batch()?;
        let mut buffer = self.output.buffer();
        if pcapng::append_block(&mut buffer, kind, body).is_none() {
            return Err(WriteError::Packet { reason: format!("{} bytes are too many", body.len()) });
        }
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
        match self.output.settle() {
            Ok(()) => Ok(()),
            Err(source) => self.fail(|writer| writer.classify(source)),
        }
    }

    /// Writes down the account as it stands (Interface Statistics Blocks): done now and then, above all after a loss,
    /// it makes a time line. A pcap file has no place for it.
    ///
    /// # Errors
    ///
    /// As [`write`](Self::write).
    pub fn statistics(&mut self, account: &Account) -> Result<(), WriteError> {
        self.write_statistics(account, false)
    }

    fn write_statistics(&mut self, account: &Account, last: bool) -> Result<(), WriteError> {
        self.usable()?;
        if self.format != Format::Pcapng {
            return Ok(());
        }
        self.put_batch()?;
        let now = nanoseconds(SystemTime::now());
        let elapsed = u64::try_from(account.elapsed.as_nanos()).unwrap_or(u64::MAX);
        let began = *self.began.get_or_insert_with(|| now.saturating_sub(elapsed));
        let mut buffer = self.output.buffer();
        encode::statistics(account, began, now, last, &mut buffer);
        self.put(Load::Bytes(buffer).into())
    }

    /// What is surely in the file by now.
    pub fn written(&self) -> Written {
        self.output.written().clone()
    }

    /// Writes the last account, waits until everything is in the file and closes it. It does not wait for the disk
    /// itself (no `fsync`).
    ///
    /// The error is that of the first call that failed, if one did.
    pub fn finish(mut self, account: &Account) -> (Written, Result<(), WriteError>) {
        let result = self.write_statistics(account, true).and_then(|()| self.flush());
        (self.written(), result)
    }

    /// No call has failed so far.
    #[inline]
    fn usable(&self) -> Result<(), WriteError> {
        self.failed.clone().map_or(Ok(()), Err)
    }

    fn put_batch(&mut self) -> Result<(), WriteError> {
        if self.batch.load.as_ref().is_empty() {
            return Ok(());
        }
        let next = Load::Bytes(self.output.buffer()).into();
        let batch = std::mem::replace(&mut self.batch, next);
        self.put(batch)
    }

    fn put(&mut self, piece: Piece) -> Result<(), WriteError> {
        let put = self.output.put(piece);
        match if self.flush_each { put.and_then(|()| self.output.settle()) } else { put } {
            Ok(()) => Ok(()),
            Err(source) => self.fail(|writer| writer.classify(source)),
        }
    }

    fn classify(&self, source: io::Error) -> WriteError {
        let Written { packets, bytes, .. } = *self.output.written();
        WriteError::from_write(&self.name, source, Kept { packets, bytes })
    }

    /// From here on every call gives this error.
    fn fail(&mut self, error: impl FnOnce(&Self) -> WriteError) -> Result<(), WriteError> {
        let error = error(self);
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
            .field("name", &self.name)
            .field("format", &self.format)
            .field("written", self.output.written())
            .field("failed", &self.failed)
            .finish_non_exhaustive()
    }
}

/// Since the Unix epoch.
fn nanoseconds(time: SystemTime) -> u64 {
    let since = time.duration_since(UNIX_EPOCH).unwrap_or_default();
    u64::try_from(since.as_nanos()).unwrap_or(u64::MAX)
}
