//! What is whole of a damaged file, as a new file.
//!
//! Blocks and records are copied as they stand, byte for byte: order, resolution and options stay what they were. Only
//! a section header loses what it says of the section's length, which need not be true any more.

use std::fs::File;
use std::io::{self, BufWriter, Read, Write};
use std::ops::Range;
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::Path;

use weir_savefile::decode::{Decoder, Fault, Format, Found, MAGIC, Plausible, Step, section_without_length};

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
    /// Why the input ended before its end: compressed data that are cut off or damaged, or an error of the system.
    pub ended: Option<ReadReason>,
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
/// there the next three records in a row that make sense are taken.
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
    let source = input::sniff(input).map_err(|reason| unopened(name.to_owned(), reason))?;
    let mut rescue = Rescue {
        window: Window::new(Supply::Stream(source.bytes)),
        compression: source.compression,
        decoder: Decoder::new(),
        last: None,
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
    /// Time stamp of the last packet.
    last: Option<u64>,
    found: Repaired,
}

impl Rescue {
    fn run(&mut self, out: &mut dyn Write) -> io::Result<()> {
        loop {
            match self.look() {
                Next::Packet { bytes, timestamp } => {
                    if let Some(inside) = self.swallowed(bytes) {
                        self.lose(inside);
                        continue;
                    }
                    self.found.packets += 1;
                    self.last = Some(timestamp);
                    self.save(bytes, out)?;
                }
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
        match self.decoder.step(self.window.bytes()) {
            Ok(Step::Found { used: bytes, found: Found::Packet(packet) }) => {
                Next::Packet { bytes, timestamp: packet.timestamp }
            }
            Ok(Step::Found { used: bytes, found: Found::Damaged(_) }) => Next::Lose { bytes },
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

    /// Where in a record of pcap the file makes sense again, if the record is none: a damaged length swallows what
    /// follows. Asked only where what follows makes no sense.
    fn swallowed(&mut self, record: usize) -> Option<usize> {
        let pcap = matches!(self.decoder.format(), Some(Format::Pcap(_)));
        if !pcap || self.is_plausible(0) {
            return None;
        }
        let inside = (1..record).find(|place| self.is_plausible(*place));
        let doubtful = self.decoder.doubtful(self.window.bytes());
        inside.or_else(|| doubtful.then_some(record))
    }

    /// Whether a place in the window makes sense; reads as far as it takes to say so.
    fn is_plausible(&mut self, place: usize) -> bool {
        let mut ended = false;
        loop {
            match self.decoder.plausible(&self.window.bytes()[place..], ended, self.last) {
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
