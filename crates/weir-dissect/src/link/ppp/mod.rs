//! PPP (RFC 1661) and what it carries, in a frame of its own or in HDLC's (RFC 1662).

mod control;
mod options;

use crate::Printer;
use crate::base::bytes::{Bytes, Cut};
use crate::base::text::put;
use crate::registry::ppp::name;

const ADDRESS: u8 = 0xff;
const CONTROL: u8 = 3;

impl Printer<'_> {
    /// Prints `LINKTYPE_PPP`, whose frames have four bytes at least.
    pub(crate) fn ppp_frame(&mut self, bytes: Bytes<'_>) -> Result<(), Cut> {
        self.protocol = "ppp";
        self.facts.protocol = Some("ppp");
        bytes.get(0, 4)?;
        self.ppp(bytes)
    }

    /// Prints PPP, with or without HDLC's address and control fields, with a protocol field of one or two bytes.
    pub(crate) fn ppp(&mut self, bytes: Bytes<'_>) -> Result<(), Cut> {
        self.protocol = "ppp";
        self.facts.protocol = Some("ppp");
        if bytes.len < 2 {
            self.truncated();
            return Ok(());
        }
        let framing = if matches!((bytes.u8(0)?, bytes.u8(1)?), (ADDRESS, CONTROL)) { 2 } else { 0 };
        let first = bytes.u8(framing)?;
        let (protocol, len) = match first & 1 {
            1 => (u16::from(first), framing + 1),
            _ => (bytes.u16(framing)?, framing + 2),
        };
        if self.facts.source.is_none() {
            self.header(len);
        }
        if self.options.link {
            match name(protocol) {
                Some(name) => put!(self, "{name} (0x{protocol:04x}), length {}: ", bytes.len),
                None => {
                    put!(self, "unknown (0x{protocol:04x}), length {}", bytes.len);
                    return Ok(());
                }
            }
        }
        self.ppp_content(protocol, bytes.from(len))
    }

    /// Prints `LINKTYPE_PPP_HDLC`: PPP in HDLC's frame, or Cisco's HDLC.
    pub(crate) fn ppp_serial(&mut self, bytes: Bytes<'_>) -> Result<(), Cut> {
        self.protocol = "ppp_hdlc";
        self.facts.protocol = Some("ppp");
        let (address, control) = (bytes.u8(0)?, bytes.u8(1)?);
        if matches!(address, 0x0f | 0x8f) {
            return self.cisco_hdlc(bytes);
        }
        if self.options.link {
            put!(self, "{address:02x} {control:02x} {} ", bytes.len);
        }
        if address != ADDRESS {
            bytes.get(2, 2)?;
            put!(self, "unknown addr {:02x}; ctrl {:02x}", bytes.u8(2)?, bytes.u8(3)?);
            return Ok(());
        }
        let protocol = bytes.u16(2)?;
        self.header(4);
        match name(protocol) {
            Some(name) => put!(self, "{name}: "),
            None => put!(self, "unknown PPP protocol (0x{protocol:04x}): "),
        }
        self.ppp_content(protocol, bytes.from(4))
    }

    /// Prints a fragment of a multilink bundle (RFC 1990), with short sequence numbers.
    pub(crate) fn multilink(&mut self, bytes: Bytes<'_>) -> Result<(), Cut> {
        self.text(if self.options.link { "" } else { "MLPPP, " });
        let Ok(word) = bytes.u16(0) else {
            self.text("[|mlppp]");
            return Ok(());
        };
        let flags = match word >> 14 {
            0 => "none",
            1 => "end",
            2 => "begin",
            _ => "begin, end",
        };
        put!(self, "seq 0x{:03x}, Flags [{flags}], length {}", word & 0xfff, bytes.len);
        Ok(())
    }

    /// Prints a name and password (RFC 1334).
    pub(crate) fn pap(&mut self, bytes: Bytes<'_>) -> Result<(), Cut> {
        self.text("PAP, ");
        let Some(rest) = self.ppp_password("pap", bytes, &["Auth-Req", "Auth-ACK", "Auth-NACK"])? else {
            return Ok(());
        };
        let code = bytes.u8(0)?;
        let labels: &[&str] = match code {
            1 => &[", Peer ", ", Name "],
            2 | 3 => &[", Msg "],
            _ => return Ok(()),
        };
        let mut rest = rest;
        for label in labels {
            let Some(value) = length_first(&mut rest)? else { return Ok(()) };
            self.text(label);
            self.captured(value)?;
        }
        Ok(())
    }

    /// Prints a challenge and what follows (RFC 1994).
    pub(crate) fn chap(&mut self, bytes: Bytes<'_>) -> Result<(), Cut> {
        const NAMES: [&str; 4] = ["Challenge", "Response", "Success", "Fail"];
        self.text("CHAP, ");
        let Some(mut rest) = self.ppp_password("chap", bytes, &NAMES)? else { return Ok(()) };
        match bytes.u8(0)? {
            1 | 2 => {
                let Some(value) = length_first(&mut rest)? else { return Ok(()) };
                self.text(", Value ");
                value.data.iter().for_each(|&byte| self.hex_byte(byte));
                value.get(0, value.len)?;
                self.text(", Name ");
            }
            3 | 4 => self.text(", Msg "),
            _ => return Ok(()),
        }
        self.captured(rest)
    }

    /// Prints text, as much as was captured.
    fn captured(&mut self, text: Bytes<'_>) -> Result<(), Cut> {
        self.harmless(text.data);
        text.get(0, text.len).map(drop)
    }

    /// Prints the header of a message; returns what it contains.
    fn ppp_password<'a>(
        &mut self,
        protocol: &str,
        bytes: Bytes<'a>,
        names: &[&str],
    ) -> Result<Option<Bytes<'a>>, Cut> {
        if bytes.len < 4 {
            put!(self, "[|{protocol}]");
            return Ok(None);
        }
        let (code, id) = (bytes.u8(0)?, bytes.u8(1)?);
        let name = names.get(usize::from(code).wrapping_sub(1)).unwrap_or(&"unknown");
        put!(self, "{name} (0x{code:02x}), id {id}");
        let len = usize::from(bytes.u16(2)?);
        if protocol == "pap" && !(4..=bytes.len).contains(&len) {
            match len < 4 {
                true => put!(self, ", length {len} < PAP header length"),
                false => put!(self, ", length {len} > packet size"),
            }
            return Ok(None);
        }
        let message = bytes.sized(len);
        Ok(Some(message.from(4)))
    }
}

/// Takes a value after a byte with its length; `None` if there is none that is whole.
fn length_first<'a>(rest: &mut Bytes<'a>) -> Result<Option<Bytes<'a>>, Cut> {
    if rest.len == 0 {
        return Ok(None);
    }
    let len = usize::from(rest.u8(0)?);
    if rest.len < 1 + len {
        return Ok(None);
    }
    let value = rest.from(1).first(len);
    *rest = rest.from(1 + len);
    Ok(Some(value))
}
