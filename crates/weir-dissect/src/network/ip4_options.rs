//! Options of IPv4 (RFC 791, RFC 2113), with `-v`.

use crate::Printer;
use crate::base::bytes::{Bytes, Cut};
use crate::base::text::put;

const ROUTE: u8 = 7;
const TIMESTAMPS: u8 = 68;

impl Printer<'_> {
    pub(crate) fn ip4_options(&mut self, mut rest: Bytes<'_>) -> Result<(), Cut> {
        let mut before = "";
        while rest.len > 0 {
            self.text(before);
            before = ",";
            let kind = rest.u8(0)?;
            let name = match kind {
                0 => "EOL",
                1 => "NOP",
                ROUTE => "RR",
                TIMESTAMPS => "timestamp",
                130 => "security",
                131 => "LSRR",
                137 => "SSRR",
                148 => "RA",
                _ => "",
            };
            match name {
                "" => put!(self, "unknown {kind}"),
                _ => self.text(name),
            }
            let len = match kind {
                0 => return Ok(()),
                1 => 1,
                _ => usize::from(rest.u8(1)?),
            };
            if len == 0 || kind > 1 && len < 2 || len > rest.len {
                put!(self, " [bad length {len}]");
                return Ok(());
            }
            let option = rest.first(len);
            match kind {
                TIMESTAMPS => self.timestamps(option)?,
                ROUTE | 131 | 137 => self.route(option)?,
                148 => self.router_alert(option)?,
                _ => {}
            }
            rest = rest.from(len);
        }
        Ok(())
    }

    /// Prints a recorded or given route. A comma marks where the next router continues.
    fn route(&mut self, option: Bytes<'_>) -> Result<(), Cut> {
        let len = option.len;
        if len < 3 {
            put!(self, " [bad length {len}]");
            return Ok(());
        }
        if !(len + 1).is_multiple_of(4) {
            put!(self, " [bad length {len}]");
        }
        let next = usize::from(option.u8(2)?);
        if next < 4 || next % 4 != 0 {
            put!(self, " [bad ptr {next}]");
        }
        for at in (3..len).step_by(4) {
            self.text(" ");
            self.ip4_address(option.ip4(at)?);
            if next > at + 1 {
                self.text(",");
            }
        }
        Ok(())
    }

    fn router_alert(&mut self, option: Bytes<'_>) -> Result<(), Cut> {
        match option.len {
            4 if option.u16(2)? == 0 => {}
            0..4 => put!(self, " [bad length {}]", option.len),
            _ => put!(self, " value {}", option.u16(2)?),
        }
        Ok(())
    }

    /// Prints timestamps, a caret before the next one to be filled in, and how many routers found no space.
    fn timestamps(&mut self, option: Bytes<'_>) -> Result<(), Cut> {
        let len = option.len;
        if len < 4 {
            put!(self, "[bad length {len}]");
            return Ok(());
        }
        self.text(" TS{");
        let flags = option.u8(3)?;
        let size = if flags & 15 == 0 { 4 } else { 8 };
        if !(len - 4).is_multiple_of(size) {
            put!(self, "[bad length {len}]");
        }
        let next = usize::from(option.u8(2)?);
        if next < 5 || (next - 5) % size != 0 {
            put!(self, "[bad ptr {next}]");
        }
        match flags & 15 {
            0 => self.text("TSONLY"),
            1 => self.text("TS+ADDR"),
            3 => self.text("PRESPEC"),
            kind => {
                put!(self, "[bad ts type {kind}]}}");
                return Ok(());
            }
        }
        let mut before = " ";
        let mut at = 4;
        while at < len {
            if next == at + 1 {
                before = " ^ ";
            }
            self.text(before);
            before = " ";
            put!(self, "{}@", option.u32(at + size - 4)?);
            if size == 8 {
                self.ip4_address(option.ip4(at)?);
            }
            at += size;
        }
        if next == len + 1 {
            self.text(" ^ ");
        }
        match flags >> 4 {
            0 => self.text("}"),
            missed => put!(self, " [{missed} hops not recorded]}} "),
        }
        Ok(())
    }
}
