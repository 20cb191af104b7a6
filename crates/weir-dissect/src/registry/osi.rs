//! ISO's numbers of network protocols (NLPID, ISO/IEC TR 9577): their names, and what they lead to. ISO's own protocols
//! begin with their number.

use weir_packet::ethertype;

use crate::Printer;
use crate::base::bytes::{Bytes, Cut};
use crate::base::text::put;

pub(crate) const SNAP: u8 = 0x80;
const ISIS: u8 = 0x83;

/// Returns the name of a protocol of ISO's list.
pub(crate) fn name(number: u8) -> &'static str {
    match number {
        0x08 => "Q.933",
        0x09 => "LMI",
        0x80 => "SNAP",
        0x81 => "CLNP",
        0x82 => "ES-IS",
        0x83 => "IS-IS",
        0x84 => "CONS",
        0x85 => "IDRP",
        0x8a => "X25 ES-IS",
        0x8e => "IPv6",
        0xb1 => "FRF.15",
        0xc1 => "ISIS_SPB",
        0xcc => "IPv4",
        0xcf => "PPP",
        _ => "unknown",
    }
}

/// Returns whether there is a parser for a protocol of ISO.
pub(crate) fn known(number: u8) -> bool {
    cfg!(feature = "routing") && number == ISIS
}

impl Printer<'_> {
    /// Prints a protocol of ISO, which its first byte identifies.
    pub(crate) fn osi(&mut self, bytes: Bytes<'_>) -> Result<(), Cut> {
        let number = bytes.u8(0)?;
        #[cfg(feature = "routing")]
        if number == ISIS {
            return self.isis(bytes);
        }
        match self.options.link {
            true => put!(self, "OSI NLPID Unknown (0x{number:02x}): "),
            false => put!(self, "OSI NLPID 0x{number:02x} unknown, "),
        }
        put!(self, "length: {}", bytes.len);
        self.rows("\n\t", bytes.data);
        Ok(())
    }

    /// Prints what a number in front of it identifies in frame relay (RFC 2427), if it is known.
    pub(crate) fn frame_relay_payload(&mut self, bytes: Bytes<'_>) -> Result<bool, Cut> {
        let inner = bytes.from(1);
        match bytes.u8(0)? {
            0x08 => self.q933(inner)?,
            0x81..=0x83 => self.osi(bytes)?,
            0x8e => self.carried(ethertype::IPV6, inner).map(drop)?,
            0xb1 => self.frame_relay_fragment(inner)?,
            0xcc => self.carried(ethertype::IPV4, inner).map(drop)?,
            0xcf => self.nested(|printer| printer.ppp(inner))?,
            _ => return Ok(false),
        }
        Ok(true)
    }
}
