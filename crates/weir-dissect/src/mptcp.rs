//! Multipath TCP, an option of TCP (RFC 8684).

use crate::Printer;
use crate::bytes::{Bytes, Cut};
use crate::text::put;

const BAD: &str = "[bad opt]";

impl Printer<'_> {
    /// Prints the option; its kind and length come first. `syn`, `ack`: flags of the segment.
    pub(crate) fn mptcp(&mut self, option: Bytes<'_>, syn: bool, ack: bool) -> Result<(), Cut> {
        put!(self, "mptcp {} ", option.len);
        let (first, len) = (option.u8(2)?, option.len);
        match first >> 4 {
            0 => {
                self.text("capable");
                if !matches!((len, syn, ack), (4 | 12, true, _) | (20 | 22 | 24, false, true)) {
                    self.text(BAD);
                    return Ok(());
                }
                put!(self, " v{}", first & 15);
                if option.u8(3)? & 0x80 != 0 {
                    self.text(" csum");
                }
                if len >= 12 {
                    put!(self, " {{0x{:x}", u64_at(option, 4)?);
                    if len >= 20 {
                        put!(self, ",0x{:x}", u64_at(option, 12)?);
                    }
                    self.text("}");
                }
            }
            1 => self.mptcp_join(option, first, syn, ack)?,
            2 => self.mptcp_signal(option)?,
            3 | 4 => self.mptcp_addresses(option, first)?,
            5 => {
                self.text("prio");
                self.text(if first & 1 != 0 { " backup" } else { " non-backup" });
                if len == 4 {
                    put!(self, " id {}", option.u8(3)?);
                }
            }
            6 if len == 12 => put!(self, "fail seq {}", u64_at(option, 4)?),
            7 if len == 12 => put!(self, "fast-close key 0x{:x}", u64_at(option, 4)?),
            _ => self.text("unknown"),
        }
        Ok(())
    }

    fn mptcp_join(&mut self, option: Bytes<'_>, first: u8, syn: bool, ack: bool) -> Result<(), Cut> {
        self.text("join");
        let backup = if first & 1 != 0 { " backup" } else { "" };
        match (option.len, syn, ack) {
            (12, true, false) => {
                let (id, token, nonce) = (option.u8(3)?, option.u32(4)?, option.u32(8)?);
                put!(self, "{backup} id {id} token 0x{token:x} nonce 0x{nonce:x}");
            }
            (16, true, true) => {
                let (id, nonce) = (option.u8(3)?, option.u32(12)?);
                put!(self, "{backup} id {id} hmac 0x{:x} nonce 0x{nonce:x}", u64_at(option, 4)?);
            }
            (24, false, true) => {
                self.text(" hmac 0x");
                option.get(4, 20)?.iter().for_each(|&byte| self.hex_byte(byte));
            }
            _ => self.text(BAD),
        }
        Ok(())
    }

    /// Prints a data sequence signal.
    fn mptcp_signal(&mut self, option: Bytes<'_>) -> Result<(), Cut> {
        self.text("dss");
        let flags = option.u8(3)?;
        let mut at = 4;
        let mut sequence = |wide: bool| {
            let value = if wide { u64_at(option, at)? } else { option.u32(at)?.into() };
            at += if wide { 8 } else { 4 };
            Ok(value)
        };
        if flags & 0x10 != 0 {
            self.text(" fin");
        }
        if flags & 1 != 0 {
            put!(self, " ack {}", sequence(flags & 2 != 0)?);
        }
        if flags & 4 != 0 {
            let (from, subflow) = (sequence(flags & 8 != 0)?, sequence(false)?);
            put!(self, " seq {from} subseq {subflow} len {}", option.u16(at)?);
            at += 2;
            if option.len >= at + 2 {
                put!(self, " csum 0x{:x}", option.u16(at)?);
                at += 2;
            }
        }
        if at != option.len {
            self.text(BAD);
        }
        Ok(())
    }

    /// Prints addresses that a host adds or removes.
    fn mptcp_addresses(&mut self, option: Bytes<'_>, first: u8) -> Result<(), Cut> {
        let len = option.len;
        if first >> 4 == 4 {
            self.text("rem-addr id");
            for at in 3..len {
                put!(self, " {}", option.u8(at)?);
            }
            return Ok(());
        }
        // Version 1 has a flag instead of a version, and a code of eight bytes unless it is set.
        let echo = first & 15;
        self.text("add-addr");
        let four = matches!(len, 8 | 10 | 16 | 18);
        match echo {
            0 | 1 if !matches!(len, 8 | 10 | 16 | 18 | 20 | 22 | 28 | 30) => {
                self.text(BAD);
                return Ok(());
            }
            _ => {}
        }
        put!(self, " v{} id {} ", if four { "0-ip4" } else { "0-ip6" }, option.u8(3)?);
        let port = match four {
            true => {
                self.ip4_address(option.ip4(4)?);
                8
            }
            false => {
                self.ip6_address(option.ip6(4)?);
                20
            }
        };
        if matches!(len, 10 | 18 | 22 | 30) {
            put!(self, ":{}", option.u16(port)?);
        }
        Ok(())
    }
}

fn u64_at(bytes: Bytes<'_>, at: usize) -> Result<u64, Cut> {
    Ok(u64::from(bytes.u32(at)?) << 32 | u64::from(bytes.u32(at + 4)?))
}
