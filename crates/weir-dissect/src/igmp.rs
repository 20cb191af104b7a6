//! IGMP (RFC 1112, RFC 2236, RFC 3376).

use crate::Printer;
use crate::bytes::{Bytes, Cut};
use crate::text::put;

impl Printer<'_> {
    pub(crate) fn igmp(&mut self, bytes: Bytes<'_>) -> Result<(), Cut> {
        self.protocol = "igmp";
        self.facts.protocol = Some("igmp");
        if self.options.quick {
            self.text("igmp");
            return Ok(());
        }
        let kind = bytes.u8(0)?;
        let version = match kind {
            0x11 if bytes.len >= 12 => 3,
            0x11 if bytes.u8(1)? > 0 => 2,
            0x11 | 0x12 => 1,
            0x22 => 3,
            _ => 2,
        };
        self.text("igmp ");
        match kind {
            0x11 => {
                put!(self, "query v{version}");
                let group = bytes.ip4(4)?;
                if !group.is_unspecified() {
                    self.text(" [gaddr ");
                    self.ip4_address(group);
                    self.text("]");
                }
            }
            0x12 | 0x16 => {
                put!(self, "v{version} report ");
                self.ip4_address(bytes.ip4(4)?);
            }
            0x17 => {
                self.text("leave ");
                self.ip4_address(bytes.ip4(4)?);
            }
            0x22 => put!(self, "v3 report, {} group record(s)", bytes.u16(6)?),
            _ => put!(self, "type-#{kind:x}"),
        }
        Ok(())
    }
}
