//! Pragmatic general multicast (RFC 3208).

use crate::Printer;
use crate::base::bytes::{Bytes, Cut};
use crate::base::segment::Around;
use crate::base::text::put;

/// Length of the header.
const HEADER: usize = 16;
/// Flag: options follow.
const OPTIONS: u8 = 1;

impl Printer<'_> {
    pub(crate) fn pgm(&mut self, around: Around, bytes: Bytes<'_>) -> Result<(), Cut> {
        self.protocol = "pgm";
        self.facts.protocol = Some("pgm");
        let (Ok(source), Ok(destination)) = (bytes.u16(0), bytes.u16(2)) else {
            if !around.shown {
                self.addresses(around.source, around.destination);
            }
            self.text("[|pgm]");
            return Ok(());
        };
        self.ports(around, source, destination);
        let len = bytes.u16(14)?;
        put!(self, "PGM, length {len}");
        if self.options.verbose == 0 {
            return Ok(());
        }
        self.text(" 0x");
        bytes.get(8, 6)?.iter().for_each(|&byte| self.hex_byte(byte));
        self.text(" ");
        let options = bytes.u8(5)? & OPTIONS != 0;
        let kind = bytes.u8(4)?;
        let body = bytes.from(HEADER);
        match kind {
            0 => {
                put!(self, "SPM seq {} trail {} lead {}", body.u32(0)?, body.u32(4)?, body.u32(8)?);
                self.text(" nla ");
                self.ip4_address(body.ip4(16)?);
            }
            2 => put!(self, "POLR seq {} round {}", body.u32(0)?, body.u16(4)?),
            4 | 5 => {
                let name = if kind == 4 { "ODATA" } else { "RDATA" };
                put!(self, "{name} trail {} seq {}", body.u32(4)?, body.u32(0)?);
            }
            8..=10 => {
                let name = ["NAK", "NNAK", "NCF"][usize::from(kind - 8)];
                let (source, group) = (body.ip4(8)?, body.ip4(16)?);
                put!(self, "{name} (");
                self.ip4_address(source);
                self.text(" -> ");
                self.ip4_address(group);
                put!(self, "), seq [{}]", body.u32(0)?);
            }
            12 => self.text("SPMR"),
            _ => put!(self, "UNKNOWN type 0x{kind:02x}"),
        }
        if !options {
            put!(self, " [{}]", bytes.len);
        }
        Ok(())
    }
}
