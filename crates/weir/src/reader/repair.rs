//! What is whole of a damaged file, as a new file.
//!
//! Blocks and records are copied as they stand, byte for byte: order, resolution and options stay what they were. Only
//! a section header loses what it says of the section's length, which need not be true any more.

use std::fs::File;
use std::io::{self, BufWriter, Read, Write};
use std::ops::Range;
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::Path;

use weir_savefile::decode::{
    Decoder, Fault, Format, Found, Header, MAGIC, Plausible, Step, Times, begins_file, section_without_length,
};

use weir_savefile::pcap::Resolution;

use super::window::{Supply, Window};
use super::{Compression, ReadError, ReadReason, input, unopened};

/// Ranges of lost bytes that are told one by one.
const MOST_RANGES: usize = 1000;
/// Bytes that a search looks at before it lets go of them.
const PASS: usize = 64 << 10;

/// What [`repair`] found. Positions are bytes from the start of the capture, uncompressed.
#[derive(Debug, Clone, Default)]
pub struct Repaired {
    /// Packets saved.
    pub packets: u64,
    /// Bytes saved: of the new file.
    pub bytes: u64,
    /// What could not be made sense of, in order; the first thousand ranges.
    pub lost: Vec<Range<u64>>,
    /// Bytes of all ranges.
    pub lost_bytes: u64,
    /// Further pcap files that begin inside of this one, in order; the first thousand.
    pub further: Vec<Further>,
    /// Why the input ended before its end: compressed data that are cut off or damaged, or an error of the system.
    pub ended: Option<ReadReason>,
}

/// A pcap file that begins inside of another: two were put together.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Further {
    /// Where its header is.
    pub position: u64,
    /// `LINKTYPE_` number.
    pub link_type: u16,
    /// What became of its packets.
    pub packets: Joined,
}

/// What becomes of the packets of a [`Further`] file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Joined {
    /// They follow those in front.
    Whole,
    /// The same, but their nanoseconds are cut to the microseconds of the first file.
    CutTimes,
    /// They are lost: a pcap file has one link type.
    LeftOut,
}

/// Why a file could not be repaired.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum RepairError {
    /// The input cannot be read, or is no capture file.
    #[error(transparent)]
    Read(#[from] ReadError),
    /// There is a file of this name; it is not touched.
    #[error("{name} is there already, and a repaired file never takes the place of another")]
    Exists {
        /// The output.
        name: String,
    },
    /// The input is cut off before anything is whole.
    #[error("{name}: nothing in it is whole, so there is nothing to save")]
    Nothing {
        /// The input.
        name: String,
    },
    /// The output cannot be written.
    #[error("{name} cannot be written: {source}")]
    Write {
        /// The output.
        name: String,
        /// The system's words.
        source: io::Error,
    },
}

/// Copies everything that is whole from `input` to a new file `output`. Where something is damaged, it looks for the
/// next place that makes sense. `-` is standard input and standard output.
///
/// pcapng says of each block how long it is, twice, so that the next good block is found with certainty. pcap does not:
/// there the next three records in a row that make sense and are of about the time of those in front are taken, or eight
/// that are of about the same time. Zeros are no records. Where the header of another pcap file stands its records follow,
/// written as the first file writes its own.
///
/// # Errors
///
/// The input is no capture file or has nothing whole in it; the output is there already or cannot be written. Damage is
/// no error.
pub fn repair(input: &Path, output: &Path) -> Result<Repaired, RepairError> {
    let (name, opened) = input::open(input);
    let file = match opened {
        Ok((file, _)) => file,
        Err(reason) => return Err(unopened(name, reason).into()),
    };
    let failed = |source: io::Error| {
        let name = output.display().to_string();
        match source.kind() {
            io::ErrorKind::AlreadyExists => RepairError::Exists { name },
            _ => RepairError::Write { name, source },
        }
    };
    if output == Path::new("-") {
        return repair_stream(Box::new(file), &name, &mut io::stdout().lock(), failed);
    }
    if output.symlink_metadata().is_ok() {
        return Err(failed(io::ErrorKind::AlreadyExists.into()));
    }
    repair_stream(Box::new(file), &name, &mut Late { path: output, file: None }, failed)
}

/// The same from anything to anything. `name` is what errors call the input; `failed` makes an error of one of `out`.
///
/// # Errors
///
/// As [`repair`].
pub fn repair_stream(
    input: Box<dyn Read + Send>,
    name: &str,
    out: &mut dyn Write,
    failed: impl Fn(io::Error) -> RepairError,
) -> Result<Repaired, RepairError> {
    let source = input::sniff(input, true).map_err(|reason| unopened(name.to_owned(), reason))?;
    let mut rescue = Rescue {
        window: Window::new(Supply::Stream(source.bytes)),
        compression: source.compression,
        decoder: Decoder::new(),
        times: Times::default(),
        first: None,
        found: Repaired::default(),
    };
    // What is no capture file at all is not searched for one.
    let start = rescue.more(MAGIC).and_then(|_| match Decoder::new().step(rescue.window.bytes()) {
        Err(fault @ (Fault::Magic(_) | Fault::Undocumented(_))) => Err(ReadReason::Damaged(fault)),
        _ => Ok(()),
    });
    start.map_err(|reason| unopened(name.to_owned(), reason))?;
    let mut out = BufWriter::with_capacity(1 << 20, out);
    rescue.run(&mut out).and_then(|()| out.flush()).map_err(failed)?;
    if rescue.found.bytes == 0 {
        return Err(RepairError::Nothing { name: name.to_owned() });
    }
    Ok(rescue.found)
}

/// A new file, which comes to be with the first bytes that are written.
struct Late<'a> {
    path: &'a Path,
    file: Option<File>,
}

impl Write for Late<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let file = match self.file.take() {
            Some(file) => file,
            None => File::options().write(true).create_new(true).mode(0o600).open(self.path)?,
        };
        self.file.insert(file).write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// What comes next, and how many bytes it is.
enum Next {
    Packet { bytes: usize, timestamp: u64 },
    Header { bytes: usize, header: Header },
    Section { bytes: usize },
    Other { bytes: usize },
    Lose { bytes: usize },
    Read { bytes: usize },
    Search,
}

struct Rescue {
    window: Window,
    compression: Compression,
    decoder: Decoder,
    /// When packets were that are believed.
    times: Times,
    /// The header of the new file, where it is pcap.
    first: Option<Header>,
    found: Repaired,
}

impl Rescue {
    fn run(&mut self, out: &mut dyn Write) -> io::Result<()> {
        loop {
            match self.look() {
                Next::Packet { bytes, timestamp } => {
                    let (goes_on, swallowed) = self.follow(bytes);
                    if let Some(inside) = swallowed {
                        self.lose(inside);
                        continue;
                    }
                    if goes_on {
                        self.times.learn(timestamp);
                    }
                    self.packet(bytes, out)?;
                }
                Next::Header { bytes, header } => self.header(bytes, header, out)?,
                Next::Section { bytes } => {
                    let section = section_without_length(&self.window.bytes()[..bytes]);
                    out.write_all(&section)?;
                    self.found.bytes += bytes as u64;
                    self.window.take(bytes);
                }
                Next::Other { bytes } => self.save(bytes, out)?,
                Next::Lose { bytes } => self.lose(bytes),
                Next::Read { bytes } => {
                    // A damaged length may ask for more than there is, though something good follows.
                    if !self.fill(bytes) && (self.window.bytes().is_empty() || !self.search()) {
                        return Ok(());
                    }
                }
                Next::Search => {
                    if !self.search() {
                        return Ok(());
                    }
                }
            }
        }
    }

    /// What comes next.
    fn look(&mut self) -> Next {
        if self.first.is_some() && begins_file(self.window.bytes()) {
            self.decoder = Decoder::new();
        }
        match self.decoder.step(self.window.bytes()) {
            Ok(Step::Found { used: bytes, found: Found::Packet(packet) }) => {
                Next::Packet { bytes, timestamp: packet.timestamp }
            }
            Ok(Step::Found { used: bytes, found: Found::Damaged(_) }) => Next::Lose { bytes },
            Ok(Step::Found { used: bytes, found: Found::Header(header, _) }) => {
                Next::Header { bytes, header }
            }
            Ok(Step::Found { used: bytes, found: Found::Section(..) }) => Next::Section { bytes },
            Ok(Step::Found { used: bytes, .. }) => Next::Other { bytes },
            Ok(Step::Need(bytes)) => Next::Read { bytes },
            Err(_) => Next::Search,
        }
    }

    fn save(&mut self, bytes: usize, out: &mut dyn Write) -> io::Result<()> {
        let place = self.window.take(bytes);
        out.write_all(&self.window.since(place)[..bytes])?;
        self.found.bytes += bytes as u64;
        Ok(())
    }

    /// The header of a pcap file: the first, or that of a further one.
    fn header(&mut self, bytes: usize, header: Header, out: &mut dyn Write) -> io::Result<()> {
        let Some(first) = self.first else {
            self.first = Some(header);
            return self.save(bytes, out);
        };
        let packets = match (first.variant.resolution, header.variant.resolution) {
            _ if !first.may_hold(&header, 0) => Joined::LeftOut,
            (Resolution::Micro, Resolution::Nano) => Joined::CutTimes,
            _ => Joined::Whole,
        };
        let further = Further { position: self.window.position(), link_type: header.link_type, packets };
        if self.found.further.len() < MOST_RANGES {
            self.found.further.push(further);
        }
        match packets {
            Joined::LeftOut => self.lose(bytes),
            _ => drop(self.window.take(bytes)),
        }
        Ok(())
    }

    fn packet(&mut self, bytes: usize, out: &mut dyn Write) -> io::Result<()> {
        let (Some(first), Some(Format::Pcap(header))) = (self.first, self.decoder.format()) else {
            self.found.packets += 1;
            return self.save(bytes, out);
        };
        if !first.may_hold(&header, bytes - header.variant.record_header_len()) {
            self.lose(bytes);
            return Ok(());
        }
        self.found.packets += 1;
        if first.is_alike(&header) {
            return self.save(bytes, out);
        }
        let record = first.adopt(&header, &self.window.bytes()[..bytes]);
        self.window.take(bytes);
        self.found.bytes += record.len() as u64;
        out.write_all(&record)
    }

    /// Whether a packet leads to others, and if not, and it is none either, where the file makes sense again: a damaged
    /// length swallows what follows.
    fn follow(&mut self, record: usize) -> (bool, Option<usize>) {
        if self.ask(0, |decoder, bytes, ended, _| decoder.goes_on(bytes, ended)) {
            return (true, None);
        }
        let inside = (1..record).find(|place| self.is_plausible(*place));
        let credible = self.decoder.is_credible(self.window.bytes(), &self.times);
        (false, inside.or_else(|| (!credible).then_some(record)))
    }

    /// Whether a place in the window makes sense.
    fn is_plausible(&mut self, place: usize) -> bool {
        self.ask(place, Decoder::plausible)
    }

    /// Asks about a place in the window; reads as far as it takes to answer.
    fn ask(&mut self, place: usize, ask: impl Fn(&Decoder, &[u8], bool, &Times) -> Plausible) -> bool {
        let mut ended = false;
        loop {
            match ask(&self.decoder, &self.window.bytes()[place..], ended, &self.times) {
                Plausible::Yes => return true,
                Plausible::No => return false,
                Plausible::Need(_) if ended => return false,
                Plausible::Need(bytes) => ended = !self.fill(place + bytes),
            }
        }
    }

    /// Goes to the next place that makes sense, behind this one. `false`: there is none.
    fn search(&mut self) -> bool {
        let mut place = 1;
        loop {
            if place >= PASS {
                self.lose(place);
                place = 0;
            }
            if !self.fill(place + 1) {
                self.lose(self.window.bytes().len());
                return false;
            }
            if self.is_plausible(place) {
                self.lose(place);
                return true;
            }
            place += 1;
        }
    }

    /// `false`: the input ends before that, or gives no more; then it says why in `found`.
    fn fill(&mut self, need: usize) -> bool {
        match self.more(need) {
            Ok(filled) => filled,
            Err(reason) => {
                self.found.ended.get_or_insert(reason);
                false
            }
        }
    }

    fn more(&mut self, need: usize) -> Result<bool, ReadReason> {
        self.window.fill(need).map_err(|error| input::explain(self.compression, error))
    }

    /// Passes bytes that make no sense.
    fn lose(&mut self, bytes: usize) {
        let start = self.window.position();
        self.window.take(bytes);
        let range = start..start + bytes as u64;
        self.found.lost_bytes += bytes as u64;
        let lost = &mut self.found.lost;
        let room = bytes > 0 && lost.len() < MOST_RANGES;
        match lost.last_mut() {
            Some(last) if last.end == range.start => last.end = range.end,
            _ if room => lost.push(range),
            _ => {}
        }
    }
}
