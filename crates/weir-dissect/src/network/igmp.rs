//! IGMP (RFC 1112, RFC 2236, RFC 3376).

use crate::Printer;
use crate::base::bytes::{Bytes, Cut};
use crate::base::checksum;
use crate::base::text::put;

/// The response time that most queries have, in tenths of a second.
const USUAL_TIME: u8 = 100;

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
        self.text(if matches!(kind, 0x11 | 0x12 | 0x16 | 0x17 | 0x22) { "igmp " } else { "igmp-" });
        match kind {
            0x11 => {
                put!(self, "query v{version}");
                let group = bytes.ip4(4)?;
                self.igmp_response_time(version, bytes.u8(1)?);
                let sources = if version == 3 { bytes.u16(10)? } else { 0 };
                if !group.is_unspecified() {
                    self.text(" [gaddr ");
                    self.ip4_address(group);
                    if sources > 0 && self.options.verbose < 2 {
                        put!(self, ", {sources} source(s)");
                    }
                    if sources > 0 {
                        self.sources(sources.into(), bytes.from(12), 4)?;
                    }
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
            // The header and one record at least.
            0x22 if bytes.len < 16 => put!(self, "v3 report [invalid len {}]", bytes.len),
            0x22 => {
                let count = bytes.u16(6)?;
                put!(self, "v3 report, {count} group record(s)");
                if self.options.verbose > 0 {
                    self.igmp_records(count, bytes)?;
                }
            }
            _ => self.number(kind),
        }
        if self.options.verbose > 0 && bytes.whole() && checksum::sum(&[bytes.data]) != 0xffff {
            put!(self, " bad igmp cksum {:x}!", bytes.u16(2)?);
        }
        Ok(())
    }

    fn igmp_records(&mut self, count: u16, bytes: Bytes<'_>) -> Result<(), Cut> {
        let mut at = 8;
        for _ in 0..count {
            let (kind, extra, sources) =
                (bytes.u8(at)?, usize::from(bytes.u8(at + 1)?), usize::from(bytes.u16(at + 2)?));
            let group = bytes.ip4(at + 4)?;
            self.text(" [gaddr ");
            self.ip4_address(group);
            self.group_record(kind, sources);
            self.sources(sources, bytes.from(at + 8), 4)?;
            self.text("]");
            at += 8 + (sources + extra) * 4;
        }
        Ok(())
    }

    /// Prints what a host says about the sources of a group, and their number; with `-vv`, [`Self::sources`] lists them.
    fn group_record(&mut self, kind: u8, sources: usize) {
        match group_record(kind) {
            Some(name) => put!(self, " {name}"),
            None => put!(self, " [v3-report-#{kind}]"),
        }
        if self.options.verbose < 2 {
            put!(self, ", {sources} source(s)");
        }
    }

    /// Lists addresses of `size` bytes, with `-vv`.
    pub(crate) fn sources(&mut self, count: usize, bytes: Bytes<'_>, size: usize) -> Result<(), Cut> {
        if self.options.verbose < 2 {
            return Ok(());
        }
        self.text(" {");
        for number in 0..count {
            let source = match size {
                4 => bytes.ip4(number * 4)?.into(),
                _ => bytes.ip6(number * 16)?.into(),
            };
            self.text(" ");
            self.address(source);
        }
        self.text(" }");
        Ok(())
    }

    /// Prints the most tenths of a second until a report, unless they are the usual ones. In version 3, large ones are
    /// floating-point numbers (RFC 3376, section 4.1.1).
    fn igmp_response_time(&mut self, version: u8, code: u8) {
        if version == 1 || code == USUAL_TIME {
            return;
        }
        self.text(" [max resp time ");
        let tenths = match code {
            0x80.. => u32::from(code & 15 | 16) << ((code >> 4 & 7) + 3),
            _ => u32::from(code),
        };
        match tenths {
            _ if version == 2 => put!(self, "{code}"),
            0..600 => put!(self, "{}.{}s", tenths / 10, tenths % 10),
            600.. => put!(self, "{}m{}s", tenths / 600, tenths / 10 % 60),
        }
        self.text("]");
    }
}

/// Returns the name of a group record, which tells a change or the current state (RFC 3376, section 4.2.12).
pub(crate) fn group_record(kind: u8) -> Option<&'static str> {
    ["is_in", "is_ex", "to_in", "to_ex", "allow", "block"].get(usize::from(kind).wrapping_sub(1)).copied()
}
