//! Multipath TCP, an option of TCP (RFC 8684; version 0: RFC 6824), as tcpdump reads it.

use crate::Printer;
use crate::base::bytes::Bytes;
use crate::base::text::put;
use crate::transport::tcp_options::Unread;

impl Printer<'_> {
    /// Prints the option behind its name; its kind and length come first. `syn`, `ack`: flags of the segment.
    pub(crate) fn mptcp(&mut self, option: Bytes<'_>, syn: bool, ack: bool) -> Result<(), Unread> {
        let len = option.len;
        if len < 3 {
            return Err(Unread::Bad);
        }
        put!(self, " {len} ");
        let first = option.u8(2)?;
        match first >> 4 {
            0 => self.mptcp_capable(option, first, syn, ack)?,
            1 => self.mptcp_join(option, first, syn, ack)?,
            2 => self.mptcp_signal(option, syn)?,
            3 => self.mptcp_address(option, first)?,
            4 => {
                self.text("rem-addr");
                if len < 4 {
                    return Err(Unread::Bad);
                }
                self.text(" id");
                for at in 3..len {
                    put!(self, " {}", option.u8(at)?);
                }
            }
            5 => {
                self.text("prio");
                if !matches!(len, 3 | 4) {
                    return Err(Unread::Bad);
                }
                self.text(if first & 1 != 0 { " backup" } else { " non-backup" });
                if len == 4 {
                    put!(self, " id {}", option.u8(3)?);
                }
            }
            6 => {
                self.text("fail");
                if len != 12 {
                    return Err(Unread::Bad);
                }
                put!(self, " seq {}", option.u64(4)?);
            }
            7 => {
                self.text("fast-close");
                if len != 12 {
                    return Err(Unread::Bad);
                }
                put!(self, " key 0x{:x}", option.u64(4)?);
            }
            _ => self.text("unknown"),
        }
        Ok(())
    }

    fn mptcp_capable(&mut self, option: Bytes<'_>, first: u8, syn: bool, ack: bool) -> Result<(), Unread> {
        self.text("capable");
        let len = option.len;
        if !matches!((len, syn, ack), (4 | 12, true, _) | (20 | 22 | 24, false, true)) {
            return Err(Unread::Bad);
        }
        let version = first & 15;
        if version > 1 {
            put!(self, " Unknown Version ({version})");
            return Ok(());
        }
        // With a checksum behind the keys and a length, as in version 1; tcpdump 4.99 takes no version's.
        if version == 0 && len == 24 {
            return Err(Unread::Bad);
        }
        put!(self, " v{version}");
        if option.u8(3)? & 0x80 != 0 {
            self.text(" csum");
        }
        if len >= 12 {
            put!(self, " {{0x{:x}", option.u64(4)?);
            if len >= 20 {
                put!(self, ",0x{:x}", option.u64(12)?);
            }
            self.text("}");
        }
        Ok(())
    }

    fn mptcp_join(&mut self, option: Bytes<'_>, first: u8, syn: bool, ack: bool) -> Result<(), Unread> {
        self.text("join");
        let backup = if first & 1 != 0 { " backup" } else { "" };
        match (option.len, syn, ack) {
            (12, true, _) => {
                let (id, token, nonce) = (option.u8(3)?, option.u32(4)?, option.u32(8)?);
                put!(self, "{backup} id {id} token 0x{token:x} nonce 0x{nonce:x}");
            }
            (16, true, true) => {
                let (id, nonce) = (option.u8(3)?, option.u32(12)?);
                put!(self, "{backup} id {id} hmac 0x{:x} nonce 0x{nonce:x}", option.u64(4)?);
            }
            (24, _, true) => {
                self.text(" hmac 0x");
                option.get(4, 20)?.iter().for_each(|&byte| self.hex_byte(byte));
            }
            _ => return Err(Unread::Bad),
        }
        Ok(())
    }

    /// Prints a data sequence signal.
    fn mptcp_signal(&mut self, option: Bytes<'_>, syn: bool) -> Result<(), Unread> {
        self.text("dss");
        if syn || option.len < 4 {
            return Err(Unread::Bad);
        }
        let flags = option.u8(3)?;
        let mut rest = option.from(4);
        let width = |wide: bool| if wide { 8 } else { 4 };
        if flags & 0x10 != 0 {
            self.text(" fin");
        }
        if flags & 1 != 0 {
            self.text(" ack ");
            put!(self, "{}", next(&mut rest, width(flags & 2 != 0))?);
        }
        if flags & 4 != 0 {
            self.text(" seq ");
            put!(self, "{}", next(&mut rest, width(flags & 8 != 0))?);
            put!(self, " subseq {}", next(&mut rest, 4)?);
            put!(self, " len {}", next(&mut rest, 2)?);
            if rest.len >= 2 {
                put!(self, " csum 0x{:x}", next(&mut rest, 2)?);
            }
        }
        if rest.len == 0 { Ok(()) } else { Err(Unread::Bad) }
    }

    /// Prints an address that a host adds: 4 or 16 bytes, perhaps a port, and perhaps a code of 8 bytes.
    fn mptcp_address(&mut self, option: Bytes<'_>, first: u8) -> Result<(), Unread> {
        self.text("add-addr");
        let len = option.len;
        if !matches!(len, 8 | 10 | 16 | 18 | 20 | 22 | 28 | 30) {
            return Err(Unread::Bad);
        }
        // Version 0 has the address's family here, version 1 a flag that tells an echo.
        self.text(match first & 15 {
            0 => " v1",
            1 => " v1-echo",
            4 => " v0-ip4",
            6 => " v0-ip6",
            _ => " [bad version/echo]",
        });
        put!(self, " id {} ", option.u8(3)?);
        let mut at = if len < 20 {
            self.ip4_address(option.ip4(4)?);
            8
        } else {
            self.ip6_address(option.ip6(4)?);
            20
        };
        if matches!(len - at, 2 | 10) {
            put!(self, ":{}", option.u16(at)?);
            at += 2;
        }
        if len - at == 8 {
            put!(self, " hmac 0x{:x}", option.u64(at)?);
        }
        Ok(())
    }
}

/// Takes a number of so many bytes from the front.
fn next(rest: &mut Bytes<'_>, size: usize) -> Result<u64, Unread> {
    if rest.len < size {
        return Err(Unread::Bad);
    }
    let number = rest.get(0, size)?.iter().fold(0, |number, &byte| number << 8 | u64::from(byte));
    *rest = rest.from(size);
    Ok(number)
}
