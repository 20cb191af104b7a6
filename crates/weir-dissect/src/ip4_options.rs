//! Options of IPv4 (RFC 791, RFC 2113), with `-v`.

use crate::Printer;
use crate::bytes::{Bytes, Cut};
use crate::text::put;

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
                7 => "RR",
                68 => "timestamp",
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
            if matches!(kind, 7 | 131 | 137) {
                self.route(rest.first(len))?;
            }
            rest = rest.from(len);
        }
        Ok(())
    }

    /// Prints a recorded or given route.
    fn route(&mut self, option: Bytes<'_>) -> Result<(), Cut> {
        for at in (3..option.len).step_by(4) {
            self.text(" ");
            self.ip4_address(option.ip4(at)?);
        }
        Ok(())
    }
}
