//! Capture files of any format, decoded from bytes to packets.
//!
//! A [`Decoder`] is given the bytes at the current position and returns what they hold. It keeps no bytes and does no
//! I/O: the caller reads the file, and keeps the bytes for as long as it needs what was found in them.
//!
//! ```text
//! bytes of the file ──> Decoder::step ──> Need(n): call again with n bytes, or report a truncated file
//!                                    └──> Found: continue after `used` bytes
//! ```
//!
//! Whatever the input, every step either advances or is the last, and the decoder's memory is bounded
//! ([`MOST_INTERFACES`], [`MOST_DESCRIPTIONS`]).

mod block;
mod classic;
mod fault;
mod foreign;
mod plausible;
mod sections;
mod time;

use std::ops::Range;

pub use self::classic::{Header, Variant, begins_file};
pub use self::fault::{Doubt, Fault};
pub use self::foreign::{to_copy, to_native};
pub use self::plausible::{Plausible, Times, section_without_length};
use self::sections::Sections;
pub use self::time::TimeUnit;
use crate::ByteOrder;
pub use crate::pcap::LONGEST_BLOCK;
use crate::pcapng::{self, InterfaceDescription, InterfaceStatistics, SectionHeader};
use crate::record::{self, Record};

/// Most interfaces in one file, over all sections.
pub const MOST_INTERFACES: u32 = 65_536;
/// Most bytes that section headers and interface descriptions of one file may take.
pub const MOST_DESCRIPTIONS: usize = 16 << 20;

/// Length of the bytes that identify the format. [`Decoder::step`] needs at least these.
pub const MAGIC: usize = 4;

/// The format of a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Format {
    /// Classic pcap.
    Pcap(Header),
    /// pcapng, with the byte order of the current section.
    Pcapng(ByteOrder),
}

/// A decoder for one file. See the [module](self).
#[derive(Debug, Clone)]
pub struct Decoder {
    state: State,
}

#[derive(Debug, Clone)]
enum State {
    Start,
    Pcap(Header),
    Pcapng(Sections),
}

/// The result of a step.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Step<'a> {
    /// More bytes are needed, this many in total. At the end of the file, it is truncated here.
    Need(usize),
    /// A whole item was found.
    Found {
        /// Length of the item in bytes.
        used: usize,
        /// The item.
        found: Found<'a>,
    },
}

/// An item in a file. Ranges are positions in the bytes that were passed to the step.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Found<'a> {
    /// A packet.
    Packet(PacketAt),
    /// An interface. Interfaces are numbered from 0 over all sections.
    Interface {
        /// Its description in the file.
        description: Box<InterfaceDescription<'a>>,
        /// Unit of its timestamps.
        time: TimeUnit,
        /// Other options that may be copied to another file, in native byte order.
        more: Vec<u8>,
        /// A field that cannot be trusted.
        doubt: Option<Doubt>,
    },
    /// Counters of an interface, which is numbered over all sections.
    Statistics(InterfaceStatistics<'a>, Option<Doubt>),
    /// The start of a section, with other options that may be copied and any doubt, as for an interface.
    Section(SectionHeader<'a>, Vec<u8>, Option<Doubt>),
    /// The header of a pcap file.
    Header(Header, Option<Doubt>),
    /// Any other block.
    Block {
        /// Block type.
        kind: u32,
        /// Position of the body, between the two lengths.
        body: Range<usize>,
        /// Byte order of its writer.
        order: ByteOrder,
    },
    /// A whole block with invalid contents. The next block can be read.
    Damaged(Fault),
}

/// A packet and its position.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct PacketAt {
    /// The captured bytes.
    pub data: Range<usize>,
    /// Nanoseconds since the Unix epoch; 0 if there is no timestamp.
    pub timestamp: u64,
    /// Length on the wire.
    pub original_len: u32,
    /// Its interface, numbered over all sections.
    pub interface: u32,
    /// The receive queue, or 0 if the file does not name it.
    pub queue: u32,
    /// `epb_flags`: [`crate::record::DIRECTION`] and other bits.
    pub flags: Option<u32>,
    /// Packets lost between the previous packet and this one.
    pub dropcount: u64,
    /// All options, if they say more than the fields above (see [`Record::notes`]); otherwise empty.
    pub notes: Range<usize>,
    /// Whether it is in a Simple Packet Block, which has no timestamp.
    pub timeless: bool,
    /// A field that cannot be trusted.
    pub doubt: Option<Doubt>,
}

/// A packet found by [`Decoder::plain`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Plain {
    /// Length of its record in bytes.
    pub used: usize,
    /// Offset of the packet in the record.
    pub start: usize,
    /// Captured length.
    pub captured: usize,
    /// The other fields, with the interface numbered over all sections. The packet's bytes are left out.
    pub record: Record<'static>,
}

impl Default for Decoder {
    fn default() -> Self {
        Self::new()
    }
}

impl Decoder {
    /// Creates a decoder for the start of a file of unknown format.
    pub fn new() -> Self {
        Self { state: State::Start }
    }

    /// Returns the format of the file, once its first bytes have been read.
    pub fn format(&self) -> Option<Format> {
        match &self.state {
            State::Start => None,
            State::Pcap(header) => Some(Format::Pcap(*header)),
            State::Pcapng(sections) => Some(Format::Pcapng(sections.order())),
        }
    }

    /// Decodes the item at the current position. `bytes`: the file from this position on.
    ///
    /// # Errors
    ///
    /// Nothing after this can be read, because the start of the next block is unknown.
    #[inline]
    pub fn step<'a>(&mut self, bytes: &'a [u8]) -> Result<Step<'a>, Fault> {
        match &mut self.state {
            State::Pcapng(sections) => sections.step(bytes),
            State::Pcap(header) => header.step(bytes),
            State::Start => self.start(bytes),
        }
    }

    /// Returns the packet at the start of `bytes` if it is plain: whole, without notes or doubts, its timestamp in
    /// nanoseconds. A fast path for packets that [`step`](Self::step) would find as well.
    #[inline]
    pub fn plain(&self, bytes: &[u8]) -> Option<Plain> {
        let (start, (record, used)) = match &self.state {
            State::Pcapng(sections) => (record::HEAD, sections.plain(bytes)?),
            State::Pcap(header) => (header.variant.record_header_len(), header.plain(bytes)?),
            State::Start => return None,
        };
        let captured = record.data.len();
        Some(Plain { used, start, captured, record: Record { data: &[], notes: &[], ..record } })
    }

    /// Passes the plain packets at the start of `bytes` and the lengths of their records to `look` until it returns
    /// false. Returns the total length of the accepted records. This is the fastest way through a file: fields that
    /// `look` does not use are not computed.
    #[inline]
    pub fn plain_while<'a>(&self, bytes: &'a [u8], look: impl FnMut(&Record<'a>, usize) -> bool) -> usize {
        match &self.state {
            State::Pcapng(sections) => walk(bytes, |rest| sections.plain(rest), look),
            State::Pcap(header) => match header.usual() {
                Some(usual) => walk(bytes, |rest| usual.plain(rest), look),
                None => walk(bytes, |rest| header.plain(rest), look),
            },
            State::Start => 0,
        }
    }

    #[cold]
    fn start<'a>(&mut self, bytes: &'a [u8]) -> Result<Step<'a>, Fault> {
        let Some(magic) = bytes.first_chunk::<MAGIC>() else {
            return Ok(Step::Need(MAGIC));
        };
        if *magic == pcapng::SECTION_HEADER.to_ne_bytes() {
            let mut sections = Sections::new();
            let step = sections.step(bytes)?;
            if let Step::Found { .. } = step {
                self.state = State::Pcapng(sections);
            }
            return Ok(step);
        }
        let variant = classic::variant(*magic)?;
        let Some((header, doubt)) = Header::read(variant, bytes)? else {
            return Ok(Step::Need(variant.header_len()));
        };
        self.state = State::Pcap(header);
        Ok(Step::Found { used: variant.header_len(), found: Found::Header(header, doubt) })
    }
}

/// See [`Decoder::plain_while`].
#[inline(always)]
fn walk<'a>(
    bytes: &'a [u8],
    plain: impl Fn(&'a [u8]) -> Option<(Record<'a>, usize)>,
    mut look: impl FnMut(&Record<'a>, usize) -> bool,
) -> usize {
    let mut at = 0;
    while let Some((record, used)) = plain(&bytes[at..])
        && look(&record, used)
    {
        at += used;
    }
    at
}
