//! Capture files as a source of packets.
//!
//! A [`Reader`] reads pcap and pcapng, of either byte order and any resolution of time stamps, plain or compressed by
//! gzip, zstd or lz4, from a file, a pipe or standard input; what it is the first bytes say, not the name.
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
//! A file that is cut off or damaged gives what is whole, then says once where and why it ends ([`ReadError`]); after
//! that it is at its end. A file that is still being written is read up to its last whole block.
//!
//! - `input`: from a path to uncompressed bytes; `unpack`: what decoders leave to do.
//! - `window`: the part of the file that is in memory; `fetch`: the next parts of a large one.
//! - `sieve`: which packets match a filter.
//! - `meter`: how far the reading is.
//! - `order`: whether a file is in the order of time; `merge`: several files in it; `repair`: what is whole of a damaged one.
//! - [`weir_savefile::decode`]: what the bytes mean.

mod error;
mod fetch;
mod input;
mod item;
mod known;
mod merge;
mod meter;
mod order;
mod repair;
mod sieve;
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
use self::input::{Input, Sparing};
pub use self::item::{Compression, FileFormat, FileKind, Item};
use self::known::Known;
pub use self::known::{InterfaceStatistics, Section};
pub use self::merge::{MOST_HELD, Merge};
pub use self::meter::Meter;
pub use self::order::{Lane, Order};
pub use self::repair::{Further, Joined, RepairError, Repaired, repair, repair_stream};
use self::sieve::Sieve;
use self::window::{Supply, Window};
use crate::filter::FileFilter;
use crate::writer::Format;
use crate::{Direction, FileInterface, Packet};

/// Reads one capture file. See the [module](self).
pub struct Reader {
    name: String,
    size: Option<u64>,
    compression: Compression,
    meter: Meter,
    window: Window,
    decoder: Decoder,
    known: Known,
    /// Where in the window that begins which was found last.
    place: usize,
    packets: u64,
    /// A packet was met.
    begun: bool,
    /// What decides which packets are given out; `None`: all are.
    sieve: Option<Sieve>,
    /// Packets lost before those that the sieve has held back in front of the one found last.
    lost: u64,
    /// Interfaces that [`Item::Interface`] has named.
    named: u32,
    over: bool,
}

/// Packets of one interface and queue that stand side by side in a file, as they stand there: in the order of time.
#[derive(Debug, Clone, Copy)]
pub struct Run<'a> {
    /// The records, each with its header.
    pub bytes: &'a [u8],
    /// How many.
    pub packets: u64,
    /// Number of their interface.
    pub interface: u32,
    /// The queue that they came on.
    pub queue: u32,
    /// The time stamp of the first.
    pub first: u64,
    /// The time stamp of the last.
    pub last: u64,
}

/// What was found last; ranges count from [`Reader::place`].
enum Seen {
    Packet(PacketAt),
    Interface,
    Statistics(Box<InterfaceStatistics>),
    /// `None`: it lies in [`Known::turned`].
    Block {
        kind: u32,
        body: Option<Range<usize>>,
    },
}

impl Reader {
    /// Opens a file and reads its header. `-` is standard input.
    ///
    /// # Errors
    ///
    /// It cannot be opened or read, or is no capture file.
    pub fn open(path: &Path) -> Result<Self, ReadError> {
        let (name, opened) = input::open(path);
        match opened {
            Ok((file, size)) => {
                // Standard input may be a file of which a part is read already.
                let named = path != Path::new("-") && size.is_some_and(|size| size >= fetch::WORTH_IT);
                let blocks = if named { file.try_clone().ok() } else { None };
                let input = input::sniff(Box::new(file), true);
                Self::begin(input, blocks, name, size)
            }
            Err(reason) => Err(unopened(name, reason)),
        }
    }

    /// The same for one of very many: a regular file takes a descriptor only while a piece of it is read, and no thread.
    ///
    /// # Errors
    ///
    /// As [`open`](Self::open).
    pub fn open_sparing(path: &Path) -> Result<Self, ReadError> {
        let (name, opened) = input::open(path);
        match opened {
            Ok((file, size)) => {
                let bytes: Box<dyn Read + Send> = match Sparing::new(path, &file) {
                    Some(sparing) => Box::new(sparing),
                    None => Box::new(file),
                };
                Self::begin(input::sniff(bytes, false), None, name, size)
            }
            Err(reason) => Err(unopened(name, reason)),
        }
    }

    /// Reads from anything; `name` is what errors call it.
    ///
    /// # Errors
    ///
    /// As [`open`](Self::open).
    pub fn from_read(input: Box<dyn Read + Send>, name: impl Into<String>) -> Result<Self, ReadError> {
        Self::begin(input::sniff(input, true), None, name.into(), None)
    }

    /// `blocks`: the same file once more, where reading it by blocks is worth it.
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
        let blocks = blocks.filter(|_| input.compression == Compression::None);
        // By blocks the file is read, and counted, from its start once more.
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
            sieve: None,
            lost: 0,
            named: 0,
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

    /// Gives out from now on only packets that match. What was lost before others, the next one that matches says.
    ///
    /// The filter is compiled at once for the interfaces that the file describes in front of its first packet, as far as
    /// that was read: executable memory is not needed for them later.
    #[must_use]
    pub fn filter(mut self, filter: FileFilter) -> Self {
        let link_types = self.link_types();
        filter.expect(link_types.iter().map(|&(link_type, _)| link_type));
        for (link_type, order) in link_types {
            // What is wrong is told with the first packet.
            let _made = filter.program(link_type, order != ByteOrder::NATIVE);
        }
        self.sieve = Some(Sieve::new(filter));
        self
    }

    /// Those of the first interfaces, with their byte orders: of the known ones, and of those that what was read describes in
    /// front of the next packet.
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

    /// The interfaces that are known by now, each at the place that its number says. pcapng may describe more while it
    /// is read; the numbers run on from section to section.
    pub fn interfaces(&self) -> &[FileInterface] {
        &self.known.interfaces
    }

    /// What the time stamps of an interface count in the file; [`Packet::timestamp`] is in nanoseconds always.
    pub fn time_unit(&self, interface: u32) -> Option<TimeUnit> {
        Some(self.known.details.get(interface as usize)?.time)
    }

    /// Bytes of the frame check sequence with which the packets of an interface end, where the file says so.
    pub fn fcs_len(&self, interface: u32) -> Option<u8> {
        self.known.interfaces.get(interface as usize)?.fcs_len
    }

    /// The sections that have begun by now; none in a pcap file.
    pub fn sections(&self) -> &[Section] {
        &self.known.sections
    }

    /// What kind of file it is.
    pub fn format(&self) -> FileFormat {
        let kind = match self.decoder.format() {
            Some(decode::Format::Pcap(header)) => FileKind::Pcap(header),
            // `begin` has seen to it that it is known.
            Some(decode::Format::Pcapng(_)) | None => FileKind::Pcapng,
        };
        let byte_order = order(&self.decoder);
        FileFormat { kind, byte_order, resolution: self.time_unit(0), compression: self.compression }
    }

    /// As errors call the file.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Bytes of the file that are read: of a compressed one the compressed bytes, which are read a little ahead.
    pub fn position(&self) -> u64 {
        match self.compression {
            Compression::None => self.window.position(),
            _ => self.meter.taken(),
        }
    }

    /// How far the reading is, to be looked at from elsewhere meanwhile.
    pub fn meter(&self) -> Meter {
        self.meter.clone()
    }

    /// Bytes of the file when it was opened; `None`: a pipe or the like.
    pub fn size(&self) -> Option<u64> {
        self.size
    }

    /// Packets given out so far.
    pub fn packets(&self) -> u64 {
        self.packets
    }

    /// Packets that did not match the filter.
    pub fn filtered(&self) -> u64 {
        self.sieve.as_ref().map_or(0, |sieve| sieve.filtered)
    }

    /// What was odd so far, but did not end the reading.
    pub fn warnings(&self) -> &[Warning] {
        &self.known.warnings
    }

    /// What comes next; `None` at the end.
    ///
    /// # Errors
    ///
    /// The file ends too early, is damaged, or cannot be read: once, after everything that is whole. Also where all was
    /// read, but for blocks that had to be left out.
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
            Seen::Block { kind, body } => self.block(kind, body),
        }))
    }

    /// The next packet; what stands before it is skipped, but for what [`interfaces`](Self::interfaces) and
    /// [`sections`](Self::sections) keep. `None` at the end. The fastest way through a file.
    ///
    /// # Errors
    ///
    /// As [`next`](Self::next).
    #[inline]
    pub fn next_packet(&mut self) -> Result<Option<Packet<'_>>, ReadError> {
        if let Some(plain) = self.plain() {
            return Ok(Some(self.plain_view(&plain)));
        }
        self.some_packet()
    }

    /// Whether records may be copied to a file of this format as they stand ([`next_run`](Self::next_run)).
    pub fn is_copied_to(&self, format: Format) -> bool {
        match self.decoder.format() {
            Some(decode::Format::Pcap(header)) => {
                format.pcap() == Some(header.variant.resolution) && header.is_usual()
            }
            Some(decode::Format::Pcapng(order)) => format == Format::Pcapng && order == ByteOrder::NATIVE,
            None => false,
        }
    }

    /// The next packets, as many as need no thought and stand side by side; `None`: what comes next has to be asked for by
    /// [`next`](Self::next). The fastest way through a file, and from it to one of the same format.
    pub fn next_run(&mut self) -> Option<Run<'_>> {
        // Records of later sections count interfaces from their section's first.
        if self.named < self.known.count() || self.known.sections.len() > 1 || !self.pass_over() {
            return None;
        }
        let (mut run, mut passed_over, mut last) = (None, 0, 0);
        let (sieve, interfaces) = (&mut self.sieve, &self.known.interfaces);
        let mut longest = 0;
        let length = self.decoder.plain_while(self.window.bytes(), |record, used| {
            let (lane, _, packets) = run.get_or_insert_with(|| {
                longest = longest_of(&interfaces[record.interface as usize]);
                ((record.interface, record.queue), record.timestamp, 0)
            });
            // What is longer than the file says is for a writer to look at.
            if *lane != (record.interface, record.queue) || record.data.len() > longest {
                return false;
            }
            let wanted = sieve.as_mut().map_or(Some(true), |sieve| sieve.wants(record));
            // What was lost before others is not in the record.
            let takes = wanted == Some(true)
                && !sieve.as_ref().is_some_and(|sieve| sieve.has_lost(lane.0))
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

    /// A packet of any kind, after anything else.
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

    /// Takes the next packet, if it is already there and needs no thought.
    #[expect(clippy::inline_always, reason = "what it gives is as long as a call takes to hand over")]
    #[inline(always)]
    fn plain(&mut self) -> Option<Plain> {
        if !self.pass_over() {
            return None;
        }
        let plain = self.decoder.plain(self.window.bytes())?;
        self.place = self.window.take(plain.used);
        self.packets += 1;
        if let Some(sieve) = &mut self.sieve {
            self.lost = sieve.take_lost(plain.record.interface);
        }
        Some(plain)
    }

    /// Goes past packets that need no thought and are not wanted; `false`: to one that needs some, as the first one does.
    #[inline]
    fn pass_over(&mut self) -> bool {
        self.begun && (self.sieve.is_none() || self.sift())
    }

    fn sift(&mut self) -> bool {
        let Some(sieve) = &mut self.sieve else { return true };
        let mut wanted = None;
        let passed = self.decoder.plain_while(self.window.bytes(), |record, _| {
            wanted = sieve.wants(record);
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

    /// Goes on until there is something to give out.
    fn advance(&mut self) -> Result<Option<Seen>, ReadError> {
        while !self.over {
            if let Some(seen) = self.step()? {
                return Ok(Some(seen));
            }
            self.pass_over();
        }
        Ok(None)
    }

    /// One step of the decoder; `None`: nothing to give out, or the end.
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
            Ok(Step::Need(need)) => return self.more(need).map(|()| None),
            Err(fault) => return Err(self.fail(ReadReason::Damaged(fault))),
        };
        let seen = self.known.keep(self.window.bytes(), found, self.window.position());
        self.place = self.window.take(used);
        Ok(seen)
    }

    /// Whether the packet that is next is to be given out.
    fn wants(&mut self, packet: &PacketAt) -> Result<bool, ReadError> {
        let Some(sieve) = &mut self.sieve else { return Ok(true) };
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
        let wanted = match sieve.wants(&asked) {
            Some(wanted) => wanted,
            None => {
                let order = order(&self.decoder);
                match sieve.prepare(packet.interface, &self.known.interfaces, order) {
                    Ok(true) => self.known.warn(Oddity::NeverMatches, self.window.position()),
                    Ok(false) => {}
                    Err(error) => {
                        let reason =
                            ReadReason::Filter { interface: packet.interface, error: Box::new(error) };
                        return Err(self.fail(reason));
                    }
                }
                sieve.wants(&asked).expect("it was just made ready")
            }
        };
        self.lost = if wanted { sieve.take_lost(packet.interface) } else { 0 };
        Ok(wanted)
    }

    /// Reads on. Where there is no more: the end, or what is missing to it.
    #[cold]
    fn more(&mut self, need: usize) -> Result<(), ReadError> {
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
            Err(error) => Err(self.fail(input::explain(self.compression, error))),
        }
    }

    /// Everything was read; says so if something had to be left out.
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
            compressed: (self.compression != Compression::None).then(|| self.position()),
            packets: self.packets + self.filtered(),
            reason,
        }
    }

    /// The block that was found last.
    fn block(&self, kind: u32, body: Option<Range<usize>>) -> Item<'_> {
        let body = match body {
            Some(body) => &self.window.since(self.place)[body],
            None => &self.known.turned,
        };
        Item::Block { kind, body }
    }

    /// The packet that was found last.
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

/// The most bytes that a packet of an interface has, and that every program reads.
fn longest_of(interface: &FileInterface) -> usize {
    let longest = pcap::longest_packet(interface.link_type);
    if interface.snap_len == 0 { longest as usize } else { interface.snap_len.min(longest) as usize }
}

/// The byte order of what comes next.
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
