//! RADIUS (RFC 2865, RFC 2866, RFC 5176).

mod attributes;
mod values;

use crate::Printer;
use crate::base::bytes::{Bytes, Cut};
use crate::base::text::put;

/// Length of the header.
const HEADER: usize = 20;

fn code(number: u8) -> &'static str {
    match number {
        1 => "Access-Request",
        2 => "Access-Accept",
        3 => "Access-Reject",
        4 => "Accounting-Request",
        5 => "Accounting-Response",
        11 => "Access-Challenge",
        12 => "Status-Server",
        13 => "Status-Client",
        40 => "Disconnect-Request",
        41 => "Disconnect-ACK",
        42 => "Disconnect-NAK",
        43 => "CoA-Request",
        44 => "CoA-ACK",
        45 => "CoA-NAK",
        255 => "Reserved",
        _ => "Unknown Command",
    }
}

impl Printer<'_> {
    pub(crate) fn radius(&mut self, bytes: Bytes<'_>) -> Result<(), Cut> {
        self.protocol = "radius";
        self.facts.protocol = Some("radius");
        bytes.get(0, HEADER)?;
        let (number, id, len) = (bytes.u8(0)?, bytes.u8(1)?, usize::from(bytes.u16(2)?));
        if len < HEADER {
            return Err(Cut);
        }
        let len = len.min(bytes.len);
        let name = code(number);
        if self.options.verbose == 0 {
            put!(self, "RADIUS, {name} ({number}), id: 0x{id:02x} length: {len}");
            return Ok(());
        }
        put!(self, "RADIUS, length: {len}\n\t{name} ({number}), id: 0x{id:02x}, Authenticator: ");
        bytes.get(4, 16)?.iter().for_each(|&byte| self.hex_byte(byte));
        self.radius_attributes(bytes.first(len).from(HEADER))
    }
}
