//! SCTP (RFC 9260).

use crate::Printer;
use crate::bytes::{Bytes, Cut};
use crate::ip::Around;
use crate::text::put;

/// Most chunks in a line; a packet can contain hundreds.
const SHOWN: usize = 16;

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
            let (kind, flags, len) = (rest.u8(0)?, rest.u8(1)?, usize::from(rest.u16(2)?));
            // A line for each chunk with -vv.
            let before = match (self.options.verbose > 1, number) {
                (true, _) => "\n\t",
                (false, 1) => " (",
                (false, _) => ", (",
            };
            put!(self, "{before}{number}) [{}] ", name(kind));
            if len < 4 {
                put!(self, "[bad chunk length {len}]");
                return Ok(());
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
                if flags & 2 != 0 {
                    self.text("(B)");
                }
                if flags & 1 != 0 {
                    self.text("(E)");
                }
                if flags & 3 != 0 {
                    self.text(" ");
                }
                put!(self, "[TSN: {}] [SID: {}] ", chunk.u32(4)?, chunk.u16(8)?);
                put!(self, "[SSEQ {}] [PPID 0x{:x}] ", chunk.u16(10)?, chunk.u32(12)?);
                if self.options.verbose > 1 {
                    self.text("[Payload:");
                    self.unknown(chunk.from(16).data);
                    self.text("]");
                }
            }
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

fn name(kind: u8) -> &'static str {
    match kind {
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
        13 => "CWR",
        14 => "SHUTDOWN COMPLETE",
        _ => "Unknown chunk type",
    }
}
