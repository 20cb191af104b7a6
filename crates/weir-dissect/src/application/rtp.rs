//! RTP and RTCP (RFC 3550), which have no ports of their own.

use crate::Printer;
use crate::base::bytes::{Bytes, Cut};
use crate::base::text::put;

const HEADER: usize = 12;
/// Length of the header of version 1.
const HEADER_1: usize = 8;
/// The type of H.261 video, whose header is printed, too.
const VIDEO: u8 = 31;

const SENDER: u8 = 200;
const RECEIVER: u8 = 201;
const DESCRIPTION: u8 = 202;
const GOODBYE: u8 = 203;
/// Length of one report about a source.
const REPORT: usize = 24;

impl Printer<'_> {
    pub(crate) fn rtp(&mut self, bytes: Bytes<'_>) -> Result<(), Cut> {
        self.protocol = "rtp";
        self.facts.protocol = Some("rtp");
        self.text("udp/rtp");
        for needed in [HEADER_1, HEADER] {
            if bytes.len < needed {
                put!(self, ", length {} < {needed}", bytes.len);
                return Ok(());
            }
        }
        let (first, second) = (bytes.u8(0)?, bytes.u8(1)?);
        let old = first >> 6 == 1;
        let (header, extended, marked, kind) = match old {
            true => (HEADER_1, false, second & 0x40 != 0, second & 0x3f),
            false => (HEADER, first & 0x10 != 0, second & 0x80 != 0, second & 0x7f),
        };
        let (sequence, time, source) = (bytes.u16(2)?, bytes.u32(4)?, bytes.u32(8)?);
        put!(self, "{} {} c{kind} ", if old { "v1" } else { "" }, bytes.len - header);
        if extended {
            self.text("+");
        }
        if marked {
            self.text("*");
        }
        put!(self, " {sequence} {time}");
        if self.options.verbose > 0 {
            put!(self, " {source}");
            if kind == VIDEO && bytes.len >= HEADER + 2 {
                put!(self, " 0x{:04x}", bytes.u16(HEADER)?);
            }
        }
        Ok(())
    }

    /// Prints each of the packets in a datagram.
    pub(crate) fn rtcp(&mut self, bytes: Bytes<'_>) -> Result<(), Cut> {
        self.protocol = "rtcp";
        self.facts.protocol = Some("rtcp");
        let mut rest = bytes;
        while rest.len > 0 {
            let (first, kind) = (rest.u8(0)?, rest.u8(1)?);
            let len = (usize::from(rest.u16(2)?) + 1) * 4;
            match kind {
                SENDER | RECEIVER => {
                    self.text(if kind == SENDER { " sr" } else { " rr" });
                    if len > rest.len {
                        put!(self, " [{len}]");
                    }
                    self.rtcp_report(kind, usize::from(first & 0x1f), rest)?;
                }
                DESCRIPTION | GOODBYE => {
                    put!(self, " {} {len}", if kind == GOODBYE { "bye" } else { "sdes" });
                    self.rtcp_source(rest.from(4))?;
                }
                _ => put!(self, " type-0x{kind:x} {len}"),
            }
            rest = rest.from(len);
        }
        Ok(())
    }

    fn rtcp_report(&mut self, kind: u8, count: usize, bytes: Bytes<'_>) -> Result<(), Cut> {
        self.rtcp_source(bytes.from(4))?;
        let mut at = 8;
        if kind == SENDER {
            let fraction = bytes.u32(12)?;
            self.text(" @");
            self.hundredths(u64::from(bytes.u32(8)?) << 32 | u64::from(fraction), 32);
            put!(self, " {} {}p {}b", bytes.u32(16)?, bytes.u32(20)?, bytes.u32(24)?);
            at = 28;
        }
        for _ in 0..count {
            let report = bytes.from(at);
            report.get(0, REPORT)?;
            self.rtcp_source(report)?;
            put!(self, " {}l {}s {}j @", report.u24(5)?, report.u32(8)?, report.u32(12)?);
            self.hundredths(report.u32(16)?.into(), 16);
            self.text("+");
            self.hundredths(report.u32(20)?.into(), 16);
            at += REPORT;
        }
        Ok(())
    }

    fn rtcp_source(&mut self, bytes: Bytes<'_>) -> Result<(), Cut> {
        if self.options.verbose > 0 {
            put!(self, " {}", bytes.u32(0)?);
        }
        Ok(())
    }

    /// Prints seconds with `bits` bits after the point, rounded to hundredths.
    fn hundredths(&mut self, number: u64, bits: u32) {
        let rounded = (u128::from(number) * 100 + (1 << (bits - 1))) >> bits;
        put!(self, "{}.{:02}", rounded / 100, rounded % 100);
    }
}
