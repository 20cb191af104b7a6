//! Capture files as a source of packets.
//!
//! A [`Reader`] reads pcap and pcapng in either byte order, with timestamps of any resolution, from a file, a pipe or
//! standard input. The data may be compressed with gzip, zstd or lz4. The format is detected from the first bytes, not
//! from the name.
//!
//! ```no_run
//! # fn main() -> Result<(), weir::reader::ReadError> {
//! let mut reader = weir::reader::Reader::open("old.pcap.gz".as_ref())?;
//! while let Some(packet) = reader.next_packet()? {
//!     println!("{} {} bytes", packet.timestamp, packet.data.len());
//! }
//! # Ok(())
//! # }
//! ```
//!
//! If a file is truncated or damaged, all intact packets are returned, followed by a single error that says where and
//! why the file ends ([`ReadError`]); after that the reader is at its end. A file that is still being written is read
//! up to its last complete block.
//!
//! - `input`: from a path to uncompressed bytes; `stream`: whether reading would wait; `unpack`: decompressing ahead; `follow`: a file that grows.
//! - `window`: the part of the file in memory; `fetch`: reads ahead in a large file.
//! - `packet_filter`: which packets match a filter.
//! - `meter`: the progress of reading.
//! - `order`: whether a file is in order of time; `merge`: several files in order of time; `repair`: the intact parts
//!   of a damaged file.
//! - [`weir_savefile::decode`]: what the bytes mean.

mod error;
mod fetch;
mod follow;
mod input;
mod item;
mod known;
mod merge;
mod meter;
mod order;
mod packet_filter;
mod repair;
mod stream;
mod sums;
mod unpack;
mod window;

use std::collections::BTreeSet;
use std::fmt;
use std::fs::File;
use std::io::Read;
use std::ops::Range;
use std::path::Path;

use weir_savefile::decode::{self, Decoder, Found, PacketAt, Plain, Step};
pub use weir_savefile::decode::{Doubt, Fault, Header, TimeUnit, to_copy};
pub use weir_savefile::options::append_comment;
use weir_savefile::pcap;
use weir_savefile::record::Record;
pub use weir_savefile::{ByteOrder, Notes};

pub use self::error::{Oddity, ReadError, ReadReason, Warning};
use self::fetch::Fetch;
use self::follow::Follow;
#[cfg(feature = "live")]
pub(crate) use self::input::unpacked;
use self::input::{Input, Sparing};
pub use self::item::{FileFormat, FileKind, Item};
use self::known::Known;
pub use self::known::{InterfaceStatistics, Section};
pub use self::merge::{MOST_HELD, Merge};
pub use self::meter::Meter;
pub use self::order::{FileLane, LaneOrder};
use self::packet_filter::PacketFilter;
pub use self::repair::{Further, Joined, RepairError, Repaired, repair, repair_stream};
use self::stream::{Any, Stream};
use self::window::{Supply, Window};
pub use crate::codec::CompressionKind;
use crate::filter::FileFilter;
use crate::format::Format;
use crate::{Direction, FileInterface, Packet};

/// A reader of one capture file. See the [module](self).
pub struct Reader {
    name: String,
    size: Option<u64>,
    compression: CompressionKind,
    meter: Meter,
    window: Window,
    decoder: Decoder,
    known: Known,
    /// The position in the window of the last item found.
    place: usize,
    packets: u64,
    /// A packet has been found.
    begun: bool,
    /// The filter; `None`: all packets are returned.
    filter: Option<PacketFilter>,
    /// Losses recorded in packets that the filter rejected before the last match.
    lost: u64,
    /// Number of interfaces already reported as [`Item::Interface`].
    named: u32,
    pauses: Pauses,
    over: bool,
}

/// Whether the reader says that it is about to wait.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Pauses {
    Unwanted,
    Wanted,
    /// It has said so.
    Said,
}

/// Consecutive packets of one interface and queue, as stored in the file, in order of time.
#[derive(Debug, Clone, Copy)]
pub struct Run<'a> {
    /// The records with their headers.
    pub bytes: &'a [u8],
    /// Number of packets.
    pub packets: u64,
    /// The number of the interface.
    pub interface: u32,
    /// The queue that received the packets.
    pub queue: u32,
    /// Timestamp of the first packet.
    pub first: u64,
    /// Timestamp of the last packet.
    pub last: u64,
}

/// The last item found; ranges are relative to [`Reader::place`].
enum Seen {
    Packet(PacketAt),
    Interface,
    Statistics(Box<InterfaceStatistics>),
    /// `None`: the body is in [`Known::turned`].
    Block {
        kind: u32,
        body: Option<Range<usize>>,
    },
    Pause,
}

impl Reader {
    /// Opens a file and reads its header. `-` is standard input.
    ///
    /// # Errors
    ///
    /// The file cannot be opened or read, or is not a capture file.
    pub fn open(path: &Path) -> Result<Self, ReadError> {
        let (name, opened) = input::open(path);
        match opened {
            Ok((file, size)) => {
                // Standard input may be a file that was partly read already.
                let named = path != Path::new("-") && size.is_some_and(|size| size >= fetch::WORTH_IT);
                let blocks = if named { file.try_clone().ok() } else { None };
                let input = input::sniff(Box::new(file), true);
                Self::begin(input, blocks, name, size)
            }
            Err(reason) => Err(unopened(name, reason)),
        }
    }

    /// Opens one of very many files: a regular file has a descriptor only while a piece of it is read, and no thread.
    ///
    /// # Errors
    ///
    /// See [`open`](Self::open).
    pub fn open_sparing(path: &Path) -> Result<Self, ReadError> {
        let (name, opened) = input::open(path);
        match opened {
            Ok((file, size)) => {
                let bytes: Box<dyn Stream> = match Sparing::new(path, &file) {
                    Some(sparing) => Box::new(sparing),
                    None => Box::new(file),
                };
                Self::begin(input::sniff(bytes, false), None, name, size)
            }
            Err(reason) => Err(unopened(name, reason)),
        }
    }

    /// Opens a file that somebody is still writing, and stays with it: at its end, reading waits for more. It asks `goes_on`,
    /// some twenty times a second, and ends once that returns false. If the file is begun anew meanwhile, reading ends with
    /// [`ReadReason::Overwritten`].
    ///
    /// # Errors
    ///
    /// See [`open`](Self::open). The file must be a regular file.
    pub fn follow(path: &Path, goes_on: Box<dyn FnMut() -> bool + Send>) -> Result<Self, ReadError> {
        let (name, opened) = input::open_to_follow(path);
        match opened {
            Ok(file) => {
                Self::begin(input::sniff(Box::new(Follow::new(file, goes_on)), true), None, name, None)
            }
            Err(reason) => Err(unopened(name, reason)),
        }
    }

    /// Reads from any source; `name` is used in errors.
    ///
    /// # Errors
    ///
    /// See [`open`](Self::open).
    pub fn from_read(input: Box<dyn Read + Send>, name: impl Into<String>) -> Result<Self, ReadError> {
        Self::begin(input::sniff(Box::new(Any(input)), true), None, name.into(), None)
    }

    /// `blocks`: the same file again, if it is worth reading by blocks.
    fn begin(
        input: Result<Input, ReadReason>,
        blocks: Option<File>,
        name: String,
        size: Option<u64>,
    ) -> Result<Self, ReadError> {
        let input = match input {
            Ok(input) => input,
            Err(reason) => return Err(unopened(name, reason)),
        };
        let blocks = blocks.filter(|_| input.compression == CompressionKind::None);
        // Reading by blocks starts over at the beginning, and so does counting.
        let by_blocks = Meter::new();
        let blocks = blocks.and_then(|file| Fetch::begin(file, by_blocks.clone()));
        let mut reader = Self {
            name,
            size,
            compression: input.compression,
            meter: if blocks.is_some() { by_blocks } else { input.meter },
            window: Window::new(blocks.map_or(Supply::Stream(input.bytes), Supply::Blocks)),
            decoder: Decoder::new(),
            known: Known::default(),
            place: 0,
            packets: 0,
            begun: false,
            filter: None,
            lost: 0,
            named: 0,
            pauses: Pauses::Unwanted,
            over: false,
        };
        while reader.decoder.format().is_none() {
            reader.step()?;
            if reader.over {
                return Err(unopened(reader.name, ReadReason::Empty));
            }
        }
        Ok(reader)
    }

    /// From now on, returns only packets that match the filter. Losses before other packets are reported with the next
    /// match.
    ///
    /// The filter is compiled at once for the interfaces described before the first packet, if that part of the file
    /// has been read; they need no executable memory later.
    #[must_use]
    pub fn filter(mut self, filter: FileFilter) -> Self {
        let link_types = self.link_types();
        filter.expect(link_types.iter().map(|&(link_type, _)| link_type));
        for (link_type, order) in link_types {
            // An error is reported with the first packet.
            let _made = filter.program(link_type, order != ByteOrder::NATIVE);
        }
        self.filter = Some(PacketFilter::new(filter));
        self
    }

    /// From now on, [`next`](Self::next) returns [`Item::Pause`] before it waits for more input, so that what was read so far
    /// can be shown.
    #[must_use]
    pub fn pausing(mut self) -> Self {
        self.pauses = Pauses::Wanted;
        self
    }

    /// Returns the link types and byte orders of the first interfaces: those already known, and those described before
    /// the next packet, in the part of the file that was read.
    fn link_types(&self) -> BTreeSet<(u16, ByteOrder)> {
        const MOST: usize = 16;
        let mut decoder = self.decoder.clone();
        let known = self.known.interfaces.iter().map(|interface| (interface.link_type, order(&decoder)));
        let mut types: BTreeSet<_> = known.take(MOST).collect();
        let mut at = 0;
        while types.len() < MOST
            && let Ok(Step::Found { used, found }) = decoder.step(&self.window.bytes()[at..])
            && !matches!(found, Found::Packet(_))
        {
            if let Found::Interface { description, .. } = found {
                types.insert((description.link_type, order(&decoder)));
            }
            at += used;
        }
        types
    }

    /// Returns the interfaces known so far, indexed by their number. A pcapng file may describe more later; numbering
    /// continues across sections.
    pub fn interfaces(&self) -> &[FileInterface] {
        &self.known.interfaces
    }

    /// Returns the resolution of an interface's timestamps in the file; [`Packet::timestamp`] is always in nanoseconds.
    pub fn time_unit(&self, interface: u32) -> Option<TimeUnit> {
        Some(self.known.details.get(interface as usize)?.time)
    }

    /// Returns the length in bytes of the frame check sequence at the end of an interface's packets, if the file says
    /// so.
    pub fn fcs_len(&self, interface: u32) -> Option<u8> {
        self.known.interfaces.get(interface as usize)?.fcs_len
    }

    /// Returns the sections that have begun so far; a pcap file has none.
    pub fn sections(&self) -> &[Section] {
        &self.known.sections
    }

    /// Returns the format of the file.
    pub fn format(&self) -> FileFormat {
        let kind = match self.decoder.format() {
            Some(decode::Format::Pcap(header)) => FileKind::Pcap(header),
            // `begin` makes sure that this is known.
            Some(decode::Format::Pcapng(_)) | None => FileKind::Pcapng,
        };
        let byte_order = order(&self.decoder);
        FileFormat { kind, byte_order, resolution: self.time_unit(0), compression: self.compression }
    }

    /// Returns the file's name as used in errors.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Returns the position in the file in bytes; in a compressed file, in compressed bytes, which are read slightly
    /// ahead.
    pub fn position(&self) -> u64 {
        match self.compression {
            CompressionKind::None => self.window.position(),
            _ => self.meter.taken(),
        }
    }

    /// Returns the progress of reading, to be watched from elsewhere.
    pub fn meter(&self) -> Meter {
        self.meter.clone()
    }

    /// Returns the size of the file in bytes when it was opened; `None`: not a regular file.
    pub fn size(&self) -> Option<u64> {
        self.size
    }

    /// Returns the number of packets returned so far.
    pub fn packets(&self) -> u64 {
        self.packets
    }

    /// Returns the number of packets that did not match the filter.
    pub fn filtered(&self) -> u64 {
        self.filter.as_ref().map_or(0, |filter| filter.filtered)
    }

    /// Returns the warnings so far.
    pub fn warnings(&self) -> &[Warning] {
        &self.known.warnings
    }

    /// Returns the next item; `None` at the end.
    ///
    /// # Errors
    ///
    /// The file is truncated, damaged, or cannot be read. This is reported once, after everything intact. It is also an
    /// error if the whole file was read but blocks had to be skipped.
    #[expect(clippy::should_implement_trait, reason = "what is given out borrows from the reader")]
    pub fn next(&mut self) -> Result<Option<Item<'_>>, ReadError> {
        if self.named < self.known.count() {
            self.named += 1;
            return Ok(Some(Item::Interface(self.named - 1)));
        }
        if let Some(plain) = self.plain() {
            return Ok(Some(Item::Packet(self.plain_view(&plain))));
        }
        let Some(seen) = self.advance()? else { return Ok(None) };
        Ok(Some(match seen {
            Seen::Packet(packet) => Item::Packet(self.view(&packet)),
            Seen::Interface => {
                self.named = self.known.count();
                Item::Interface(self.named - 1)
            }
            Seen::Statistics(statistics) => Item::Statistics(*statistics),
            Seen::Block { kind, body } => Item::Block { kind, body: self.body(body) },
            Seen::Pause => Item::Pause,
        }))
    }

    /// Returns the next packet, or `None` at the end. Anything else is skipped, although
    /// [`interfaces`](Self::interfaces) and [`sections`](Self::sections) are updated. This is the fastest way to read
    /// packets.
    ///
    /// # Errors
    ///
    /// See [`next`](Self::next).
    #[inline]
    pub fn next_packet(&mut self) -> Result<Option<Packet<'_>>, ReadError> {
        if let Some(plain) = self.plain() {
            return Ok(Some(self.plain_view(&plain)));
        }
        self.some_packet()
    }

    /// Returns whether records can be copied unchanged to a file of this format ([`next_run`](Self::next_run)).
    pub fn is_copied_to(&self, format: Format) -> bool {
        match self.decoder.format() {
            Some(decode::Format::Pcap(header)) => {
                format.pcap() == Some(header.variant.resolution) && header.is_usual()
            }
            Some(decode::Format::Pcapng(order)) => format == Format::Pcapng && order == ByteOrder::NATIVE,
            None => false,
        }
    }

    /// Returns the next consecutive packets that need no special handling; `None`: call [`next`](Self::next) for what
    /// comes next. This is the fastest way to read a file, or to copy it to one of the same format.
    pub fn next_run(&mut self) -> Option<Run<'_>> {
        // Records in later sections count interfaces from the start of their section.
        if self.named < self.known.count() || self.known.sections.len() > 1 || !self.pass_over() {
            return None;
        }
        let (mut run, mut passed_over, mut last) = (None, 0, 0);
        let (filter, interfaces) = (&mut self.filter, &self.known.interfaces);
        let mut longest = 0;
        let length = self.decoder.plain_while(self.window.bytes(), |record, used| {
            let (lane, _, packets) = run.get_or_insert_with(|| {
                longest = longest_of(&interfaces[record.interface as usize]);
                ((record.interface, record.queue), record.timestamp, 0)
            });
            // The writer has to handle packets longer than the file declares.
            if *lane != (record.interface, record.queue) || record.data.len() > longest {
                return false;
            }
            let wanted = filter.as_mut().map_or(Some(true), |filter| filter.wants(record));
            // Losses before rejected packets are not in the record.
            let takes = wanted == Some(true)
                && !filter.as_ref().is_some_and(|filter| filter.has_lost(lane.0))
                && record.timestamp >= last;
            if takes {
                *packets += 1;
                last = record.timestamp;
            }
            if wanted == Some(false) {
                passed_over = used;
            }
            takes
        });
        let ((interface, queue), first, packets) = run.filter(|(.., packets)| *packets > 0)?;
        self.place = self.window.take(length);
        self.window.take(passed_over);
        self.packets += packets;
        Some(Run { bytes: &self.window.since(self.place)[..length], packets, interface, queue, first, last })
    }

    /// Returns the next packet of any kind, skipping everything else.
    #[inline(never)]
    fn some_packet(&mut self) -> Result<Option<Packet<'_>>, ReadError> {
        loop {
            let seen = self.advance()?;
            self.named = self.known.count();
            match seen {
                Some(Seen::Packet(packet)) => return Ok(Some(self.view(&packet))),
                Some(_) => {}
                None => return Ok(None),
            }
        }
    }

    /// Takes the next packet, if it is in memory and needs no special handling.
    #[expect(clippy::inline_always, reason = "what it gives is as long as a call takes to hand over")]
    #[inline(always)]
    fn plain(&mut self) -> Option<Plain> {
        if !self.pass_over() {
            return None;
        }
        let plain = self.decoder.plain(self.window.bytes())?;
        self.place = self.window.take(plain.used);
        self.packets += 1;
        if let Some(filter) = &mut self.filter {
            self.lost = filter.take_lost(plain.record.interface);
        }
        Some(plain)
    }

    /// Skips packets that do not match; `false`: the next item needs special handling, as the first packet does.
    #[inline]
    fn pass_over(&mut self) -> bool {
        self.begun && (self.filter.is_none() || self.skip_rejected())
    }

    fn skip_rejected(&mut self) -> bool {
        let Some(filter) = &mut self.filter else { return true };
        let mut wanted = None;
        let passed = self.decoder.plain_while(self.window.bytes(), |record, _| {
            wanted = filter.wants(record);
            wanted == Some(false)
        });
        self.window.take(passed);
        wanted == Some(true)
    }

    #[inline]
    fn plain_view(&self, plain: &Plain) -> Packet<'_> {
        let Plain { record, start, captured, .. } = *plain;
        Packet {
            data: &self.window.since(self.place)[start..start + captured],
            timestamp: record.timestamp,
            original_len: record.original_len,
            interface: record.interface,
            queue: record.queue,
            direction: record.flags.and_then(Direction::of_flags),
            lost_before: record.dropcount + self.lost,
            comment: None,
            notes: Notes::default(),
        }
    }

    /// Continues until there is an item to return.
    fn advance(&mut self) -> Result<Option<Seen>, ReadError> {
        while !self.over {
            if let Some(seen) = self.step()? {
                return Ok(Some(seen));
            }
            self.pass_over();
        }
        Ok(None)
    }

    /// Decodes one item; `None`: nothing to return, or the end.
    fn step(&mut self) -> Result<Option<Seen>, ReadError> {
        let (used, found) = match self.decoder.step(self.window.bytes()) {
            Ok(Step::Found { used, found: Found::Packet(packet) }) => {
                if let Some(doubt) = packet.doubt {
                    self.known.warn(Oddity::Doubt(doubt), self.window.position());
                }
                if !self.begun {
                    self.begun = true;
                    self.meter.begin(packet.timestamp);
                }
                let wanted = self.wants(&packet)?;
                self.place = self.window.take(used);
                if !wanted {
                    return Ok(None);
                }
                self.packets += 1;
                return Ok(Some(Seen::Packet(packet)));
            }
            Ok(Step::Found { used, found }) => (used, found),
            Ok(Step::Need(need)) => {
                if self.pauses == Pauses::Wanted && self.window.would_wait() {
                    self.pauses = Pauses::Said;
                    return Ok(Some(Seen::Pause));
                }
                return self.more(need).map(|()| None);
            }
            Err(fault) => {
                if !self.window.again() {
                    return Err(self.fail(ReadReason::Damaged(fault)));
                }
                return Ok((self.pauses != Pauses::Unwanted).then_some(Seen::Pause));
            }
        };
        let seen = self.known.keep(self.window.bytes(), found, self.window.position());
        self.place = self.window.take(used);
        Ok(seen)
    }

    /// Returns whether the next packet matches.
    fn wants(&mut self, packet: &PacketAt) -> Result<bool, ReadError> {
        let Some(filter) = &mut self.filter else { return Ok(true) };
        let asked = Record {
            data: &self.window.bytes()[packet.data.clone()],
            timestamp: packet.timestamp,
            dropcount: packet.dropcount,
            interface: packet.interface,
            original_len: packet.original_len,
            queue: packet.queue,
            flags: packet.flags,
            notes: &[],
        };
        let wanted = match filter.wants(&asked) {
            Some(wanted) => wanted,
            None => {
                let order = order(&self.decoder);
                match filter.prepare(packet.interface, &self.known.interfaces, order) {
                    Ok(true) => self.known.warn(Oddity::NeverMatches, self.window.position()),
                    Ok(false) => {}
                    Err(error) => {
                        let reason =
                            ReadReason::Filter { interface: packet.interface, error: Box::new(error) };
                        return Err(self.fail(reason));
                    }
                }
                filter.wants(&asked).expect("it was just made ready")
            }
        };
        self.lost = if wanted { filter.take_lost(packet.interface) } else { 0 };
        Ok(wanted)
    }

    /// Reads more of the file. At the end of the file, ends the reading, or fails if something is missing.
    #[cold]
    fn more(&mut self, need: usize) -> Result<(), ReadError> {
        if self.pauses == Pauses::Said {
            self.pauses = Pauses::Wanted;
        }
        match self.window.fill(need) {
            Ok(true) => Ok(()),
            Ok(false) => {
                let missing = need.saturating_sub(self.window.bytes().len()) as u64;
                if self.window.bytes().is_empty() {
                    self.end()
                } else {
                    Err(self.fail(ReadReason::Cut { missing }))
                }
            }
            Err(error) => Err(match input::explain(self.compression, error) {
                // Of a packet that began before.
                ReadReason::Overwritten { unread } if self.compression == CompressionKind::None => {
                    let unread = unread + self.window.bytes().len() as u64;
                    self.fail(ReadReason::Overwritten { unread })
                }
                reason => self.fail(reason),
            }),
        }
    }

    /// Ends the reading; fails if blocks were skipped.
    fn end(&mut self) -> Result<(), ReadError> {
        self.over = true;
        match self.known.left_out {
            None => Ok(()),
            Some((fault, first, blocks)) => Err(self.fail(ReadReason::LeftOut { blocks, first, fault })),
        }
    }

    fn fail(&mut self, reason: ReadReason) -> ReadError {
        self.over = true;
        self.named = self.known.count();
        ReadError {
            file: self.name.clone(),
            position: Some(self.window.position()),
            compressed: (self.compression != CompressionKind::None).then(|| self.position()),
            packets: self.packets + self.filtered(),
            reason,
        }
    }

    /// Returns the body of the block found last.
    fn body(&self, body: Option<Range<usize>>) -> &[u8] {
        match body {
            Some(body) => &self.window.since(self.place)[body],
            None => &self.known.turned,
        }
    }

    /// Returns the packet found last.
    #[inline]
    fn view(&self, packet: &PacketAt) -> Packet<'_> {
        let bytes = self.window.since(self.place);
        let notes = match packet.timeless {
            true => Notes::of_no_time(),
            false => Notes::new(order(&self.decoder), &bytes[packet.notes.clone()]),
        };
        Packet {
            data: &bytes[packet.data.clone()],
            timestamp: packet.timestamp,
            original_len: packet.original_len,
            interface: packet.interface,
            queue: packet.queue,
            direction: packet.flags.and_then(Direction::of_flags),
            lost_before: packet.dropcount + self.lost,
            comment: notes.comments().last(),
            notes,
        }
    }
}

impl fmt::Debug for Reader {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Reader")
            .field("name", &self.name)
            .field("format", &self.format())
            .field("packets", &self.packets)
            .field("position", &self.position())
            .finish_non_exhaustive()
    }
}

/// Returns the maximum packet length of an interface that every program can read.
fn longest_of(interface: &FileInterface) -> usize {
    let longest = pcap::longest_packet(interface.link_type);
    if interface.snap_len == 0 { longest as usize } else { interface.snap_len.min(longest) as usize }
}

/// Returns the current byte order.
fn order(decoder: &Decoder) -> ByteOrder {
    match decoder.format() {
        Some(decode::Format::Pcap(header)) => header.variant.order,
        Some(decode::Format::Pcapng(order)) => order,
        None => ByteOrder::NATIVE,
    }
}

fn unopened(file: String, reason: ReadReason) -> ReadError {
    ReadError { file, position: None, compressed: None, packets: 0, reason }
}
