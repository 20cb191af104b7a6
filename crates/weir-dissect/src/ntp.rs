//! NTP (RFC 5905).

use crate::Printer;
use crate::bytes::{Bytes, Cut};
use crate::text::put;

impl Printer<'_> {
    pub(crate) fn ntp(&mut self, payload: Bytes<'_>) -> Result<(), Cut> {
        self.protocol = "ntp";
        self.facts.protocol = Some("ntp");
        let first = payload.u8(0)?;
        let (version, mode) = (first >> 3 & 7, first & 7);
        let name = match mode {
            0 => "Reserved",
            1 => "Symmetric Active",
            2 => "Symmetric Passive",
            3 => "Client",
            4 => "Server",
            5 => "Broadcast",
            6 => "Control Message",
            // Version 2 had no private mode.
            _ if version == 2 => "Reserved",
            _ => "Private",
        };
        put!(self, "NTPv{version}, {name}, length {}", payload.len);
        Ok(())
    }
}
