//! IS-IS (ISO 10589): messages. What they carry is in `fields`.

mod fields;

use crate::Printer;
use crate::base::bytes::{Bytes, Cut};
use crate::base::text::put;

/// Length of the header that all messages have.
const HEADER: usize = 8;
/// Where the part of a link state begins that its checksum covers, and where in that part the checksum is.
const COVERED: usize = 12;
const CHECKSUM: usize = 12;

/// A kind of message.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Kind {
    Lan,
    PointToPoint,
    States,
    Complete,
    Partial,
}

use Kind::{Complete, Lan, Partial, PointToPoint, States};

/// Returns the name of a type of message, the length of its header, and its kind.
fn known(kind: u8) -> Option<(&'static str, usize, Kind)> {
    Some(match kind {
        15 => ("L1 Lan IIH", 27, Lan),
        16 => ("L2 Lan IIH", 27, Lan),
        17 => ("p2p IIH", 20, PointToPoint),
        18 => ("L1 LSP", 27, States),
        20 => ("L2 LSP", 27, States),
        24 => ("L1 CSNP", 33, Complete),
        25 => ("L2 CSNP", 33, Complete),
        26 => ("L1 PSNP", 17, Partial),
        27 => ("L2 PSNP", 17, Partial),
        _ => return None,
    })
}

impl Printer<'_> {
    pub(crate) fn isis(&mut self, bytes: Bytes<'_>) -> Result<(), Cut> {
        self.protocol = "isis";
        self.facts.protocol = Some("isis");
        if self.options.link {
            self.text("OSI NLPID IS-IS (0x83): ");
        }
        bytes.get(0, HEADER)?;
        if !self.options.link {
            self.text("IS-IS");
        }
        if !self.isis_readable(bytes)? {
            self.rows("\n\t", bytes.data);
            return Ok(());
        }
        if !self.options.link {
            self.text(", ");
        }
        let kind = bytes.u8(4)? & 0x1f;
        match self.options.verbose {
            0 => self.isis_short(kind, bytes),
            _ => self.isis_long(kind, bytes),
        }
    }

    /// Prints why a message cannot be read; returns whether it can.
    fn isis_readable(&mut self, bytes: Bytes<'_>) -> Result<bool, Cut> {
        let (head, version, size) = (usize::from(bytes.u8(1)?), bytes.u8(2)?, bytes.u8(3)?);
        if head < HEADER {
            put!(self, "fixed header length {head} < minimum header size {HEADER}");
        } else if head > bytes.len {
            put!(self, "fixed header length {head} > packet length {}", bytes.len);
        } else if version != 1 {
            put!(self, "version {version} packet not supported");
        } else if !matches!(size, 0 | 6) {
            put!(self, "system ID length of {size} is not supported");
        } else if bytes.u8(5)? != 1 {
            put!(self, "version {} packet not supported", bytes.u8(5)?);
        } else if bytes.u8(7)? == 255 {
            self.text("bad packet -- 255 areas");
        } else {
            return Ok(true);
        }
        Ok(false)
    }

    /// Prints who sends what.
    fn isis_short(&mut self, number: u8, bytes: Bytes<'_>) -> Result<(), Cut> {
        let Some((name, len, kind)) = known(number) else {
            put!(self, "unknown PDU-Type {number}, length {}", bytes.len);
            return Ok(());
        };
        self.text(name);
        if !self.isis_header(len, bytes)? {
            return Ok(());
        }
        let rest = bytes.from(HEADER);
        match kind {
            Lan => {
                self.text(", src-id ");
                self.isis_system(rest.get(1, 6)?);
                self.text(", lan-id ");
                self.isis_system(rest.get(12, 7)?);
                put!(self, ", prio {}", rest.u8(11)?);
            }
            PointToPoint => {
                self.text(", src-id ");
                self.isis_system(rest.get(1, 6)?);
            }
            States => {
                self.text(", lsp-id ");
                self.isis_system(rest.get(4, 8)?);
                put!(self, ", seq 0x{:08x}, lifetime {:5}s", rest.u32(12)?, rest.u16(2)?);
            }
            Complete | Partial => {
                self.text(", src-id ");
                self.isis_system(rest.get(2, 7)?);
            }
        }
        put!(self, ", length {}", bytes.len);
        Ok(())
    }

    /// Returns whether the header has its length.
    fn isis_header(&mut self, len: usize, bytes: Bytes<'_>) -> Result<bool, Cut> {
        let given = usize::from(bytes.u8(1)?);
        if given != len {
            put!(self, ", bogus fixed header length {given} should be {len}");
            self.rows("\n\t", bytes.data);
            return Ok(false);
        }
        bytes.get(0, len)?;
        Ok(true)
    }

    /// Prints every field.
    fn isis_long(&mut self, number: u8, bytes: Bytes<'_>) -> Result<(), Cut> {
        let (version, size, areas) = (bytes.u8(5)?, bytes.u8(3)?, bytes.u8(7)?);
        let message = known(number);
        put!(self, "length {}\n\t", bytes.len);
        match message {
            Some((name, ..)) => self.text(name),
            None => put!(self, "unknown, type {number}"),
        }
        put!(self, ", hlen: {}, v: {}, pdu-v: {version}", bytes.u8(1)?, bytes.u8(2)?);
        let most = if areas == 0 { 3 } else { areas };
        put!(self, ", sys-id-len: 6 ({size}), max-area: {most} ({areas})");
        let more = self.options.verbose > 1;
        let Some((_, len, kind)) = message else {
            self.rows("\n\t  ", bytes.from(HEADER).data);
            self.rows("\n\t", bytes.data);
            return Ok(());
        };
        if more && usize::from(bytes.u8(1)?) == len {
            self.rows("\n\t", bytes.first(HEADER).data);
        }
        if !self.isis_header(len, bytes)? {
            return Ok(());
        }
        let rest = bytes.from(HEADER);
        let given = usize::from(rest.u16(match kind {
            Lan | PointToPoint => 9,
            _ => 0,
        })?);
        match kind {
            Lan | PointToPoint => self.isis_hello(kind, rest, given)?,
            States => self.isis_states(bytes, given)?,
            Complete | Partial => {
                self.text("\n\t  source-id:    ");
                self.isis_system(rest.get(2, 7)?);
                put!(self, ", PDU length: {given}");
            }
        }
        if kind == Complete {
            self.text("\n\t  start lsp-id: ");
            self.isis_system(rest.get(9, 8)?);
            self.text("\n\t  end lsp-id:   ");
            self.isis_system(rest.get(17, 8)?);
        }
        if given < len {
            put!(self, " [packet length {given} < {len}] (invalid)");
            return Ok(());
        }
        if more {
            self.rows("\n\t  ", rest.first(len - HEADER).data);
        }
        self.isis_fields(bytes.first(given).from(len))
    }

    fn isis_hello(&mut self, kind: Kind, rest: Bytes<'_>, given: usize) -> Result<(), Cut> {
        self.text("\n\t  source-id: ");
        self.isis_system(rest.get(1, 6)?);
        let space = if kind == Lan { "  " } else { " " };
        put!(self, ",{space}holding time: {}s, Flags: [", rest.u16(7)?);
        match rest.u8(0)? {
            1 => self.text("Level 1 only"),
            2 => self.text("Level 2 only"),
            3 => self.text("Level 1, Level 2"),
            other => put!(self, "unknown circuit type 0x{other:02x}"),
        }
        if kind == PointToPoint {
            put!(self, "]\n\t  circuit-id: 0x{:02x}, PDU length: {given}", rest.u8(11)?);
            return Ok(());
        }
        self.text("]\n\t  lan-id:    ");
        self.isis_system(rest.get(12, 7)?);
        put!(self, ", Priority: {}, PDU length: {given}", rest.u8(11)?);
        Ok(())
    }

    fn isis_states(&mut self, bytes: Bytes<'_>, given: usize) -> Result<(), Cut> {
        let rest = bytes.from(HEADER);
        self.text("\n\t  lsp-id: ");
        self.isis_system(rest.get(4, 8)?);
        put!(self, ", seq: 0x{:08x}, lifetime: {:5}s", rest.u32(12)?, rest.u16(2)?);
        let checksum = rest.u16(16)?;
        put!(self, "\n\t  chksum: 0x{checksum:04x}");
        let covered = bytes.first(given).from(COVERED);
        if checksum == 0 || covered.data.len() <= CHECKSUM + 2 || !covered.whole() {
            self.text(" (unverified)");
        } else {
            match right_checksum(covered.data) {
                right if right == checksum => self.text(" (correct)"),
                right => put!(self, " (incorrect should be 0x{right:04x})"),
            }
        }
        put!(self, ", PDU length: {given}, Flags: [ ");
        let flags = rest.u8(18)?;
        if flags & 4 != 0 {
            self.text("Overload bit set, ");
        }
        if flags & 0x78 != 0 {
            let names = [(8, "default "), (16, "delay "), (32, "expense "), (64, "error ")];
            names.iter().filter(|(bit, _)| flags & bit != 0).for_each(|(_, name)| self.text(name));
            self.text("ATT bit set, ");
        }
        if flags & 0x80 != 0 {
            self.text("P bit set, ");
        }
        let level = ["Unused 0x0 (invalid)", "L1 IS", "Unused 0x2 (invalid)", "L2 IS"];
        put!(self, "{} ]", level[usize::from(flags & 3)]);
        Ok(())
    }

    /// Prints the identifier of a system, of a node in it, or of a link state.
    pub(crate) fn isis_system(&mut self, bytes: &[u8]) {
        for (at, byte) in bytes.iter().enumerate() {
            self.text(match at {
                2 | 4 | 6 => ".",
                7 => "-",
                _ => "",
            });
            self.hex_byte(*byte);
        }
    }
}

/// Returns the correct checksum (ISO 8473) of what it covers, including itself.
fn right_checksum(data: &[u8]) -> u16 {
    let (mut sum, mut sums) = (0_u64, 0_u64);
    for (at, byte) in data.iter().enumerate() {
        if !(CHECKSUM..CHECKSUM + 2).contains(&at) {
            sum += u64::from(*byte);
        }
        sums += sum;
    }
    let after = (data.len() - CHECKSUM - 1) as u64;
    let (sum, sums) = (sum % 255, sums % 255);
    let first = (after * sum + 255 - sums) % 255;
    let second = (sums + 255 * (after + 1) - (after + 1) * sum) % 255;
    let byte = |value: u64| u8::try_from(if value == 0 { 255 } else { value }).unwrap_or(0);
    u16::from_be_bytes([byte(first), byte(second)])
}
