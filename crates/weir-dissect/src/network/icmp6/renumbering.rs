//! Renumbering of routers (RFC 2894), in ICMPv6.

use crate::Printer;
use crate::base::bytes::{Bytes, Cut};
use crate::base::text::put;

const HEADER: usize = 16;
const COMMAND: u8 = 0;
/// Lengths of the two parts of a command.
const MATCH: usize = 24;
const USE: usize = 32;
/// Test, result requested, all interfaces, site, processed before.
const FLAGS: [(u8, &str); 5] = [(0x80, "T"), (0x40, "R"), (0x20, "A"), (0x10, "S"), (8, "P")];

impl Printer<'_> {
    pub(crate) fn router_renumbering(&mut self, code: u8, bytes: Bytes<'_>) {
        if self.renumbering(code, bytes).is_err() {
            self.truncated();
        }
    }

    fn renumbering(&mut self, code: u8, bytes: Bytes<'_>) -> Result<(), Cut> {
        bytes.get(0, HEADER)?;
        match code {
            COMMAND => self.text(", command"),
            1 => self.text(", result"),
            255 => self.text(", sequence number reset"),
            _ => put!(self, ", code-#{code}"),
        }
        put!(self, ", seq={}", bytes.u32(4)?);
        if self.options.verbose > 0 {
            let flags = bytes.u8(9)?;
            self.text("[");
            FLAGS.iter().filter(|(bit, _)| flags & bit != 0).for_each(|(_, name)| self.text(name));
            self.text(if flags != 0 { "," } else { "" });
            put!(self, "seg={},maxdelay={}]", bytes.u8(8)?, bytes.u16(10)?);
        }
        match code {
            COMMAND => self.renumbering_command(bytes.from(HEADER)),
            _ => Ok(()),
        }
    }

    /// Prints what is done with which prefixes, and the new ones.
    fn renumbering_command(&mut self, bytes: Bytes<'_>) -> Result<(), Cut> {
        let verbose = self.options.verbose;
        let before = if verbose > 1 { "\n\t" } else { " " };
        bytes.get(0, MATCH)?;
        self.text(before);
        self.text("match(");
        match bytes.u8(0)? {
            1 => self.text("add,"),
            2 => self.text("change,"),
            3 => self.text("setglobal,"),
            other => put!(self, "#{other},"),
        }
        if verbose > 0 {
            put!(self, "ord={},min={},max={},", bytes.u8(2)?, bytes.u8(4)?, bytes.u8(5)?);
        }
        self.ip6_address(bytes.ip6(8)?);
        put!(self, "/{})", bytes.u8(3)?);
        let len = usize::from(bytes.u8(1)?) * 8;
        if len < MATCH {
            return Err(Cut);
        }
        let mut at = MATCH;
        while at < len {
            let part = bytes.from(at);
            part.get(0, USE)?;
            self.text(before);
            self.renumbering_use(part)?;
            at += USE;
        }
        Ok(())
    }

    fn renumbering_use(&mut self, part: Bytes<'_>) -> Result<(), Cut> {
        let flags = part.u8(12)?;
        self.text("use(");
        self.text(if flags & 0x80 != 0 { "V" } else { "" });
        self.text(if flags & 0x40 != 0 { "P" } else { "" });
        self.text(if flags != 0 { "," } else { "" });
        if self.options.verbose > 0 {
            put!(self, "mask=0x{:x},raflags=0x{:x},", part.u8(2)?, part.u8(3)?);
            for (name, at) in [("vltime", 4), ("pltime", 8)] {
                match part.u32(at)? {
                    u32::MAX => put!(self, "{name}=infty,"),
                    time => put!(self, "{name}={time},"),
                }
            }
        }
        self.ip6_address(part.ip6(16)?);
        put!(self, "/{}/{})", part.u8(0)?, part.u8(1)?);
        Ok(())
    }
}
