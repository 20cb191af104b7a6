//! DHCP and NTP.

use crate::Printer;
use crate::bytes::{Bytes, Cut};
use crate::text::put;

impl Printer<'_> {
    /// Prints BOOTP and DHCP (RFC 951, RFC 2131).
    pub(crate) fn bootp(&mut self, payload: Bytes<'_>) -> Result<(), Cut> {
        self.protocol = "bootp";
        self.facts.protocol = Some("dhcp");
        self.text("BOOTP/DHCP, ");
        let operation = payload.u8(0)?;
        match operation {
            1 => self.text("Request"),
            2 => self.text("Reply"),
            _ => put!(self, "unknown (0x{operation:02x})"),
        }
        if operation == 1 && (payload.u8(1)?, payload.u8(2)?) == (1, 6) {
            let mac = payload.mac(28)?;
            self.text(" from ");
            self.mac(mac);
        }
        put!(self, ", length {}", payload.len);
        Ok(())
    }

    /// Prints NTP (RFC 5905).
    pub(crate) fn ntp(&mut self, payload: Bytes<'_>) -> Result<(), Cut> {
        self.protocol = "ntp";
        self.facts.protocol = Some("ntp");
        let first = payload.u8(0)?;
        // Version 2 had no private mode.
        let mode = match first & 7 {
            7 if first >> 3 & 7 == 2 => "Reserved",
            0 => "Reserved",
            1 => "Symmetric Active",
            2 => "Symmetric Passive",
            3 => "Client",
            4 => "Server",
            5 => "Broadcast",
            6 => "Control Message",
            _ => "Private",
        };
        put!(self, "NTPv{}, {mode}, length {}", first >> 3 & 7, payload.len);
        Ok(())
    }
}
