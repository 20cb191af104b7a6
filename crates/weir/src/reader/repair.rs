//! The intact parts of a damaged file, as a new file.
//!
//! Blocks and records are copied byte for byte, so byte order, resolution and options stay the same. Only the section
//! length in a section header is removed, since it may no longer be correct.

use std::fs::File;
use std::io::{self, BufWriter, Read, Write};
use std::ops::Range;
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::Path;

use weir_savefile::decode::{
    Decoder, Fault, Format, Found, Header, MAGIC, Plausible, Step, Times, begins_file, section_without_length,
};

use weir_savefile::pcap::Resolution;

use super::stream::Any;
use super::window::{Supply, Window};
use super::{CompressionKind, ReadError, ReadReason, input, unopened};

/// Maximum number of ranges of lost bytes to report.
const MOST_RANGES: usize = 1000;
/// Number of bytes that a search examines before it discards them.
const PASS: usize = 64 << 10;

/// The result of [`repair`]. Positions are bytes from the start of the uncompressed capture.
#[derive(Debug, Clone, Default)]
#[non_exhaustive]
pub struct Repaired {
    /// Number of packets saved.
    pub packets: u64,
    /// Size of the new file in bytes.
    pub bytes: u64,
    /// The ranges of invalid data in order; only the first thousand.
    pub lost: Vec<Range<u64>>,
    /// Total bytes in all ranges.
    pub lost_bytes: u64,
    /// Other pcap files that begin inside this one, in order; only the first thousand.
    pub further: Vec<Further>,
    /// Why the input ended early: truncated or damaged compressed data, or a read error.
    pub ended: Option<ReadReason>,
}

/// A pcap file that begins inside another, because two files were concatenated.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Further {
    /// The position of its header.
    pub position: u64,
    /// The `LINKTYPE_` number.
    pub link_type: u16,
    /// What happened to its packets.
    pub packets: Joined,
}

/// What happened to the packets of a [`Further`] file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Joined {
    /// They follow the packets before them.
    Whole,
    /// They follow, but their timestamps are cut from nanoseconds to the microseconds of the first file.
    CutTimes,
    /// They are lost, because a pcap file has only one link type.
    LeftOut,
}

/// The reason why a file could not be repaired.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum RepairError {
    /// The input cannot be read, or is not a capture file.
    #[error(transparent)]
    Read(#[from] ReadError),
    /// The output file exists; it was not changed.
    #[error("{name} already exists, and a repaired file never overwrites another")]
    Exists {
        /// The name of the output.
        name: String,
    },
    /// The input is truncated before anything intact.
    #[error("{name}: nothing in it is intact, so there is nothing to save")]
    Nothing {
        /// The name of the input.
        name: String,
    },
    /// The output cannot be written.
    #[error("{name} cannot be written: {source}")]
    Write {
        /// The name of the output.
        name: String,
        /// The error from the system.
        source: io::Error,
    },
}

/// Copies everything intact from `input` to a new file `output`, skipping damaged parts.
///
/// `-` is standard input or standard output. Each pcapng block states its length twice, so the next intact block is
/// found reliably. pcap does not: there the search looks for three valid records in a row with times close to those of
/// earlier packets, or eight with times close to each other. Zeros are not records. If the header of another pcap file
/// appears, its records follow, in the format of the first file.
///
/// # Errors
///
/// The input is not a capture file or contains nothing intact; the output exists or cannot be written. Damage is not an
/// error.
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

/// Repairs any stream. `name` is used in errors about the input; `failed` converts errors of `out`.
///
/// # Errors
///
/// See [`repair`].
pub fn repair_stream(
    input: Box<dyn Read + Send>,
    name: &str,
    out: &mut dyn Write,
    failed: impl Fn(io::Error) -> RepairError,
) -> Result<Repaired, RepairError> {
    let source =
        input::sniff(Box::new(Any(input)), true).map_err(|reason| unopened(name.to_owned(), reason))?;
    let mut rescue = Rescue {
        window: Window::new(Supply::Stream(source.bytes)),
        compression: source.compression,
        decoder: Decoder::new(),
        times: Times::default(),
        first: None,
        found: Repaired::default(),
    };
    // Data that does not begin like a capture file is not searched.
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

/// A new file, created with the first bytes written.
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

/// The next item and its size in bytes.
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
    compression: CompressionKind,
    decoder: Decoder,
    /// The times of trusted packets.
    times: Times,
    /// The header of the new file, if it is pcap.
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
                    // A damaged length may exceed the rest of the file, even though good data follows.
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

    /// Decodes the next item.
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

    /// Handles the header of a pcap file: the first one, or a further one.
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

    /// Returns whether this packet is followed by others. If not, also returns how far to skip: to a plausible place
    /// inside, as a damaged length swallows what follows, or over the whole record if it is not credible.
    fn follow(&mut self, record: usize) -> (bool, Option<usize>) {
        if self.ask(0, |decoder, bytes, ended, _| decoder.goes_on(bytes, ended)) {
            return (true, None);
        }
        let inside = (1..record).find(|place| self.is_plausible(*place));
        let credible = self.decoder.is_credible(self.window.bytes(), &self.times);
        (false, inside.or_else(|| (!credible).then_some(record)))
    }

    /// Returns whether the data at `place` is plausible.
    fn is_plausible(&mut self, place: usize) -> bool {
        self.ask(place, Decoder::plausible)
    }

    /// Answers a question about `place`, reading as much as needed.
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

    /// Skips to the next plausible place after this one. `false`: there is none.
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

    /// Reads until there are `need` bytes; `false`: the input ends before that. The reason, if any, is in `found`.
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

    /// Skips invalid data.
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
