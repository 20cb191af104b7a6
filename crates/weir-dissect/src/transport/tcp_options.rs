//! Options of TCP (RFC 9293, section 3.1), as tcpdump reads them: most kinds have a size of their own, and an option whose
//! length says otherwise is read all the same, with a remark.

use crate::Printer;
use crate::base::bytes::{Bytes, Cut};
use crate::base::text::put;
use crate::transport::tcp::{ACK, SYN};

/// Experiment of a shared option number: fast open (RFC 6994, RFC 7413).
const FAST_OPEN: u16 = 0xf989;

/// Why an option cannot be read.
pub(crate) enum Unread {
    /// The packet ends before it does.
    Cut,
    /// The options end before it does, or it contradicts itself. Nothing behind it is printed.
    Bad,
}

impl From<Cut> for Unread {
    fn from(_: Cut) -> Self {
        Self::Cut
    }
}

/// Returns tcpdump's name of an option.
fn name(kind: u8) -> Option<&'static str> {
    Some(match kind {
        2 => "mss",
        3 => "wscale",
        4 => "sackOK",
        5 => "sack",
        6 => "echo",
        7 => "echoreply",
        8 => "TS",
        11 => "cc",
        12 => "ccnew",
        // The echo of 12, which has an empty name there.
        13 => "",
        19 => "md5",
        20 => "scps",
        28 => "uto",
        29 => "tcp-ao",
        30 => "mptcp",
        34 => "tfo",
        254 => "exp",
        _ => return None,
    })
}

impl Printer<'_> {
    /// Prints the options; returns whether the line may go on. `peer`: the offset of numbers in selective acknowledgements.
    pub(crate) fn tcp_options(&mut self, options: Bytes<'_>, flags: u8, peer: u32) -> Result<bool, Cut> {
        let mut rest = options;
        let mut first = true;
        while rest.len > 0 {
            if !first {
                self.text(",");
            }
            match self.tcp_option(rest, flags, peer) {
                Ok(0) => break,
                Ok(len) => rest = rest.from(len),
                Err(Unread::Cut) => return Err(Cut),
                Err(Unread::Bad) => {
                    self.text(if first { "[bad opt]" } else { "[bad opt]]" });
                    return Ok(false);
                }
            }
            first = false;
        }
        Ok(true)
    }

    /// Prints the option that `rest` begins with; returns the bytes that it takes, 0 for the last one.
    fn tcp_option(&mut self, rest: Bytes<'_>, flags: u8, peer: u32) -> Result<usize, Unread> {
        let kind = rest.u8(0)?;
        match kind {
            0 => {
                self.text("eol");
                return Ok(0);
            }
            1 => {
                self.text("nop");
                return Ok(1);
            }
            _ => {}
        }
        if rest.len < 2 {
            return Err(Unread::Bad);
        }
        let len = usize::from(rest.u8(1)?);
        if len < 2 || len > rest.len {
            return Err(Unread::Bad);
        }
        let option = rest.first(len);
        match name(kind) {
            Some(name) => self.text(name),
            None => put!(self, "unknown-{kind}"),
        }
        let size = match kind {
            2 => {
                put!(self, " {}", sized(rest, 4)?.u16(2)?);
                4
            }
            3 => {
                put!(self, " {}", sized(rest, 3)?.u8(2)?);
                3
            }
            4 => 2,
            5 => {
                self.selective_acknowledgements(option, peer)?;
                len
            }
            6 | 7 | 11..=13 => {
                put!(self, " {}", sized(rest, 6)?.u32(2)?);
                6
            }
            8 => {
                let times = sized(rest, 10)?;
                let (value, echo) = (times.u32(2)?, times.u32(6)?);
                self.text(" val ");
                self.number(value);
                self.text(" ecr ");
                self.number(echo);
                10
            }
            19 => {
                let digest = sized(rest, 18)?.get(2, 16)?;
                self.text(" shared secret not supplied with -M, can't check - ");
                self.hex_bytes(digest);
                18
            }
            20 => {
                let capabilities = sized(rest, 4)?;
                put!(self, " cap {:02x} id {}", capabilities.u8(2)?, capabilities.u8(3)?);
                4
            }
            28 => {
                let value = sized(rest, 4)?.u16(2)?;
                // As in tcpdump, which takes the lowest bit, not the highest, for the unit.
                let unit = if value & 1 != 0 { 60 } else { 1 };
                put!(self, " 0x{value:x} {}", u32::from(value >> 1) * unit);
                4
            }
            29 => {
                self.authentication_option(option)?;
                len
            }
            30 => {
                self.mptcp(option, flags & SYN != 0, flags & ACK != 0)?;
                len
            }
            34 => {
                self.text(" ");
                self.fast_open(option.from(2))?;
                len
            }
            254 => {
                if len < 4 {
                    return Err(Unread::Bad);
                }
                match option.u16(2)? {
                    FAST_OPEN => {
                        self.text("-tfo");
                        self.fast_open(option.from(4))?;
                    }
                    experiment => put!(self, "-{experiment:04x}"),
                }
                len
            }
            _ => {
                if len > 2 {
                    self.text(" 0x");
                    self.hex_bytes(option.from(2).data);
                }
                len
            }
        };
        rest.get(0, size)?;
        if size != len {
            put!(self, "[len {len}]");
        }
        Ok(size)
    }

    fn selective_acknowledgements(&mut self, option: Bytes<'_>, peer: u32) -> Result<(), Cut> {
        self.text(" ");
        let len = option.len;
        if !(len - 2).is_multiple_of(8) {
            self.text("invalid sack");
            return Ok(());
        }
        put!(self, "{} ", (len - 2) / 8);
        for at in (2..len).step_by(8) {
            let (left, right) = (option.u32(at)?, option.u32(at + 4)?);
            put!(self, "{{{}:{}}}", left.wrapping_sub(peer), right.wrapping_sub(peer));
        }
        Ok(())
    }

    /// Prints the authentication option (RFC 5925, section 2.2).
    fn authentication_option(&mut self, option: Bytes<'_>) -> Result<(), Cut> {
        self.text(" ");
        if option.len < 4 {
            self.text("(invalid)");
            return Ok(());
        }
        put!(self, "keyid {} rnextkeyid {}", option.u8(2)?, option.u8(3)?);
        if option.len > 4 {
            self.text(" mac 0x");
            self.hex_bytes(option.from(4).data);
        }
        Ok(())
    }

    /// Prints the cookie of fast open (RFC 7413, section 4.1.1).
    fn fast_open(&mut self, cookie: Bytes<'_>) -> Result<(), Cut> {
        match cookie.len {
            0 => self.text(" cookiereq"),
            4 | 6 | 8 | 10 | 12 | 14 | 16 => {
                self.text(" cookie ");
                self.hex_bytes(cookie.data);
            }
            _ => self.text(" (invalid)"),
        }
        Ok(())
    }

    fn hex_bytes(&mut self, bytes: &[u8]) {
        bytes.iter().for_each(|&byte| self.hex_byte(byte));
    }
}

/// Returns the first `size` bytes of the rest of the options, if there are as many.
fn sized(rest: Bytes<'_>, size: usize) -> Result<Bytes<'_>, Unread> {
    if rest.len < size { Err(Unread::Bad) } else { Ok(rest.first(size)) }
}
