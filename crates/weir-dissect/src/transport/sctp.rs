//! SCTP (RFC 9260).

use crate::Printer;
use crate::base::bytes::{Bytes, Cut};
use crate::base::segment::Around;
use crate::base::text::put;

/// Length of the header of a chunk.
const HEADER: usize = 4;
/// Most chunks in a line; a packet can contain hundreds.
const SHOWN: usize = 16;

/// Protocols that chunks carry, from 1 (IANA, SCTP payload protocol identifiers).
#[rustfmt::skip]
const PAYLOADS: [&str; 27] = [
    "ISDN Q.921", "M2UA", "M3UA", "SUA", "M2PA", "V5.2", "H.248", "BICC", "TALI", "DUA", "ASAP", "ENRP", "H.323",
    "Q.IPC", "SIMCO", "DDPSC", "DDPSSC", "S1AP", "RUA", "HNBAP", "ForCES HP", "ForCES MP", "ForCES LP", "SBc-AP",
    "NBAP", "", "X2AP",
];

impl Printer<'_> {
    pub(crate) fn sctp(&mut self, around: Around, bytes: Bytes<'_>) -> Result<(), Cut> {
        self.protocol = "sctp";
        self.facts.protocol = Some("sctp");
        bytes.get(0, 12)?;
        self.ports(around, bytes.u16(0)?, bytes.u16(2)?);
        self.text("sctp");
        let mut rest = bytes.from(12);
        let mut number = 0;
        while rest.len > 0 {
            number += 1;
            if number > SHOWN {
                self.text(", ...");
                return Ok(());
            }
            // A line for each chunk with -vv.
            let before = match (self.options.verbose > 1, number) {
                (true, _) => "\n\t",
                (false, 1) => " (",
                (false, _) => ", (",
            };
            if rest.len < HEADER {
                put!(self, "{before}{number}) [chunk descriptor cut off at end of packet]");
                return Ok(());
            }
            let (kind, flags, len) = (rest.u8(0)?, rest.u8(1)?, usize::from(rest.u16(2)?));
            if len < HEADER {
                put!(self, "{before}{number}) [Bad chunk length {len}, < size of chunk descriptor]");
                return Ok(());
            }
            rest.get(0, len)?;
            put!(self, "{before}{number}) ");
            match name(kind) {
                Some(name) => put!(self, "[{name}] "),
                None => put!(self, "[Unknown chunk type: 0x{kind:x}] "),
            }
            self.chunk(kind, flags, rest.first(len))?;
            // Chunks are padded to four bytes.
            rest = rest.from(len.next_multiple_of(4));
        }
        Ok(())
    }

    fn chunk(&mut self, kind: u8, flags: u8, chunk: Bytes<'_>) -> Result<(), Cut> {
        match kind {
            0 => {
                let marks = [(4, "(U)"), (2, "(B)"), (1, "(E)")];
                marks.iter().filter(|(bit, _)| flags & bit != 0).for_each(|(_, mark)| self.text(mark));
                if flags & 7 != 0 {
                    self.text(" ");
                }
                if self.too_short(chunk, 16) {
                    return Ok(());
                }
                put!(self, "[TSN: {}] [SID: {}] ", chunk.u32(4)?, chunk.u16(8)?);
                let protocol = chunk.u32(12)?;
                put!(self, "[SSEQ {}] ", chunk.u16(10)?);
                match payload(protocol) {
                    Some(name) => put!(self, "[PPID {name}] "),
                    None => put!(self, "[PPID 0x{protocol:x}] "),
                }
                if self.options.verbose > 1 {
                    self.text("[Payload:");
                    self.unknown(chunk.from(16).data);
                    self.text("]");
                }
            }
            1..=3 if self.too_short(chunk, if kind == 3 { 16 } else { 20 }) => {}
            1 | 2 => {
                put!(self, "[init tag: {}] [rwnd: {}] ", chunk.u32(4)?, chunk.u32(8)?);
                put!(self, "[OS: {}] [MIS: {}] ", chunk.u16(12)?, chunk.u16(14)?);
                put!(self, "[init TSN: {}] ", chunk.u32(16)?);
            }
            3 => {
                put!(self, "[cum ack {}] [a_rwnd {}] ", chunk.u32(4)?, chunk.u32(8)?);
                let (gaps, doubles) = (chunk.u16(12)?, chunk.u16(14)?);
                put!(self, "[#gap acks {gaps}] [#dup tsns {doubles}] ");
                self.gaps(chunk.u32(4)?, gaps.into(), doubles.into(), chunk.from(16))?;
            }
            _ => {}
        }
        Ok(())
    }

    /// Returns whether a chunk ends before its fields do, and says so.
    fn too_short(&mut self, chunk: Bytes<'_>, len: usize) -> bool {
        if chunk.len < len {
            put!(self, "bogus chunk length {}]", chunk.len);
        }
        chunk.len < len
    }

    /// Prints what has arrived beyond a gap, and what has arrived twice.
    fn gaps(&mut self, acknowledged: u32, gaps: usize, doubles: usize, bytes: Bytes<'_>) -> Result<(), Cut> {
        for number in 0..gaps {
            let (start, end) = (bytes.u16(number * 4)?, bytes.u16(number * 4 + 2)?);
            let number = number + 1;
            let absolute = |offset: u16| acknowledged.wrapping_add(offset.into());
            put!(self, "\n\t\t[gap ack block #{number}: start = {}, ", absolute(start));
            put!(self, "end = {}] ", absolute(end));
        }
        for number in 0..doubles {
            put!(self, "\n\t\t[dup TSN #{}: {}] ", number + 1, bytes.u32((gaps + number) * 4)?);
        }
        Ok(())
    }
}

fn name(kind: u8) -> Option<&'static str> {
    Some(match kind {
        0 => "DATA",
        1 => "INIT",
        2 => "INIT ACK",
        3 => "SACK",
        4 => "HB REQ",
        5 => "HB ACK",
        6 => "ABORT",
        7 => "SHUTDOWN",
        8 => "SHUTDOWN ACK",
        9 => "OP ERR",
        10 => "COOKIE ECHO",
        11 => "COOKIE ACK",
        12 => "ECN ECHO",
        13 => "ECN CWR",
        14 => "SHUTDOWN COMPLETE",
        0xc0 => "FOR CUM TSN",
        0xc1 => "REL CTRL",
        _ => return None,
    })
}

/// Returns the name of the protocol that a chunk carries.
fn payload(protocol: u32) -> Option<&'static str> {
    let at = usize::try_from(protocol).ok()?.checked_sub(1)?;
    PAYLOADS.get(at).copied().filter(|name| !name.is_empty())
}
