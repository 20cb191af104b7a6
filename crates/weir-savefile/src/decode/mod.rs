//! Capture files of any kind, from their bytes to packets.
//!
//! A [`Decoder`] is handed what lies in front of it and says what it found there: it holds no bytes and does no I/O.
//! Who calls it reads, and keeps the bytes for as long as what was found in them is needed:
//!
//! ```text
//! bytes of the file ──> Decoder::step ──> Need(n): come again with n bytes, or say that the file ends too early
//!                                    └──> Found: go on behind `used` bytes
//! ```
//!
//! Whatever the bytes are, each step goes forward or is the last, and what the decoder keeps is bounded
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
use crate::pcapng::{self, InterfaceDescription, InterfaceStatistics, SectionHeader};
use crate::record::{self, Record};

/// The longest block or packet that is taken for one, in bytes. The largest real ones are those of USB and D-Bus, which
/// come to some MiB, and lists of decryption secrets; libpcap takes 16 MiB. A length beyond is damage: to believe it
/// would mean to hold that much memory on the word of a few bytes.
pub const LONGEST_BLOCK: u32 = 32 << 20;
/// The most interfaces of one file, all sections together.
pub const MOST_INTERFACES: u32 = 65_536;
/// The most bytes that section headers and interface descriptions of one file may take.
pub const MOST_DESCRIPTIONS: usize = 16 << 20;

/// Bytes that tell the format, and the least that [`Decoder::step`] can do anything with.
pub const MAGIC: usize = 4;

/// What kind of file it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Format {
    /// Classic pcap.
    Pcap(Header),
    /// pcapng; the byte order of the section that is being read.
    Pcapng(ByteOrder),
}

/// Reads one file. See the [module](self).
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

/// What a step came to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Step<'a> {
    /// Nothing can be said before there are so many bytes, more than there were. At the end of the file: it is cut off
    /// here.
    Need(usize),
    /// Something is whole.
    Found {
        /// How many bytes it takes.
        used: usize,
        /// What it is.
        found: Found<'a>,
    },
}

/// What there is in a file. Ranges are positions in the bytes of the step.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Found<'a> {
    /// A packet.
    Packet(PacketAt),
    /// An interface: the next number, counted over all sections.
    Interface {
        /// What the file says of it.
        description: Box<InterfaceDescription<'a>>,
        /// What its time stamps count.
        time: TimeUnit,
        /// All else that it says and another file may take: options in native byte order.
        more: Vec<u8>,
        /// What of it is not to be believed.
        doubt: Option<Doubt>,
    },
    /// Counters of an interface, whose number is counted over all sections.
    Statistics(InterfaceStatistics<'a>, Option<Doubt>),
    /// A new section begins. All else that it says, as of an interface.
    Section(SectionHeader<'a>, Vec<u8>, Option<Doubt>),
    /// The header of a pcap file.
    Header(Header, Option<Doubt>),
    /// Any other block.
    Block {
        /// Block type.
        kind: u32,
        /// What is between the lengths.
        body: Range<usize>,
        /// The byte order in which it was written.
        order: ByteOrder,
    },
    /// A block that is whole, but of which the inside makes no sense. The next one can be read.
    Damaged(Fault),
}

/// A packet and where it lies.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct PacketAt {
    /// What was kept of it.
    pub data: Range<usize>,
    /// Nanoseconds since the Unix epoch; 0: none.
    pub timestamp: u64,
    /// Bytes that it had on the wire.
    pub original_len: u32,
    /// Its interface, counted over all sections.
    pub interface: u32,
    /// The queue that it came on, where the file says so; else 0.
    pub queue: u32,
    /// `epb_flags`: [`crate::record::DIRECTION`] and more.
    pub flags: Option<u32>,
    /// Packets lost between the one before and this one.
    pub dropcount: u64,
    /// All options, if they say more than the fields above: see [`Record::notes`]. Else empty.
    pub notes: Range<usize>,
    /// It is in a Simple Packet Block, which tells no time.
    pub timeless: bool,
    /// What of it is not to be believed.
    pub doubt: Option<Doubt>,
}

/// What [`Decoder::plain`] finds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Plain {
    /// How many bytes its record takes.
    pub used: usize,
    /// Where in them the packet begins.
    pub start: usize,
    /// How long it is.
    pub captured: usize,
    /// The rest, with the interface counted over all sections; the packet itself is left out.
    pub record: Record<'static>,
}

impl Default for Decoder {
    fn default() -> Self {
        Self::new()
    }
}

impl Decoder {
    /// At the start of a file of a format that is not known yet.
    pub fn new() -> Self {
        Self { state: State::Start }
    }

    /// What the file is, once its first bytes were seen.
    pub fn format(&self) -> Option<Format> {
        match &self.state {
            State::Start => None,
            State::Pcap(header) => Some(Format::Pcap(*header)),
            State::Pcapng(sections) => Some(Format::Pcapng(sections.order())),
        }
    }

    /// Looks at what `bytes`, from the present position on, begin with.
    ///
    /// # Errors
    ///
    /// Nothing behind this can be read: where the next block begins is not known.
    #[inline]
    pub fn step<'a>(&mut self, bytes: &'a [u8]) -> Result<Step<'a>, Fault> {
        match &mut self.state {
            State::Pcapng(sections) => sections.step(bytes),
            State::Pcap(header) => header.step(bytes),
            State::Start => self.start(bytes),
        }
    }

    /// The packet at the start of `bytes`, if it is one that needs no thought: whole, without notes or doubt, its
    /// time stamp in plain nanoseconds. A short cut past [`step`](Self::step), which finds the same.
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

    /// The packets at the start of `bytes` that need no thought, as long as `look` wants more: it is given each, and how many
    /// bytes its record takes. Gives the bytes of all that it said yes to. The fastest way from packet to packet: what
    /// `look` does not ask for is not computed.
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
