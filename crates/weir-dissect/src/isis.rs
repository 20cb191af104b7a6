//! IS-IS (ISO 10589): the kind of message and who sends it.

use crate::Printer;
use crate::bytes::{Bytes, Cut};
use crate::text::put;

/// The first byte of a message (its network layer identifier).
pub(crate) const ISIS: u8 = 0x83;
/// Length of the header that all messages have.
const HEADER: usize = 8;

impl Printer<'_> {
    pub(crate) fn isis(&mut self, bytes: Bytes<'_>) -> Result<(), Cut> {
        self.protocol = "isis";
        self.facts.protocol = Some("isis");
        match self.options.link {
            true => self.text("OSI NLPID IS-IS (0x83): "),
            false => self.text("IS-IS, "),
        }
        bytes.get(0, HEADER)?;
        let kind = bytes.u8(4)? & 0x1f;
        let rest = bytes.from(HEADER);
        match kind {
            15 | 16 => {
                put!(self, "L{} Lan IIH, src-id ", kind - 14);
                self.system(rest, 1)?;
                self.text(", lan-id ");
                self.system(rest, 12)?;
                put!(self, ".{:02x}, prio {}", rest.u8(18)?, rest.u8(11)?);
            }
            17 => {
                self.text("p2p IIH, src-id ");
                self.system(rest, 1)?;
            }
            18 | 20 => {
                put!(self, "L{} LSP, lsp-id ", kind / 2 - 8);
                self.system(rest, 4)?;
                put!(self, ".{:02x}-{:02x}", rest.u8(10)?, rest.u8(11)?);
                put!(self, ", seq 0x{:08x}, lifetime {:5}s", rest.u32(12)?, rest.u16(2)?);
            }
            24..=27 => {
                let (level, name) = if kind < 26 { (kind - 23, "CSNP") } else { (kind - 25, "PSNP") };
                put!(self, "L{level} {name}, src-id ");
                self.system(rest, 2)?;
                put!(self, ".{:02x}", rest.u8(8)?);
            }
            _ => put!(self, "unknown PDU-Type {kind}"),
        }
        put!(self, ", length {}", bytes.len);
        Ok(())
    }

    /// Prints the identifier of a system.
    fn system(&mut self, bytes: Bytes<'_>, at: usize) -> Result<(), Cut> {
        for (number, byte) in bytes.get(at, 6)?.iter().enumerate() {
            put!(self, "{}{byte:02x}", if matches!(number, 2 | 4) { "." } else { "" });
        }
        Ok(())
    }
}
