//! EAPOL (IEEE 802.1X), of which only the kind of message is printed.

use crate::Printer;
use crate::bytes::{Bytes, Cut};
use crate::text::put;

impl Printer<'_> {
    pub(crate) fn eapol(&mut self, bytes: Bytes<'_>) -> Result<(), Cut> {
        self.protocol = "eap";
        self.facts.protocol = Some("eapol");
        let (version, kind, len) = (bytes.u8(0)?, bytes.u8(1)?, bytes.u16(2)?);
        let name = match kind {
            0 => "EAP packet",
            1 => "EAPOL start",
            2 => "EAPOL logoff",
            3 => "EAPOL key",
            4 => "Encapsulated ASF alert",
            _ => "unknown",
        };
        put!(self, "{name} ({kind}) v{version}, len {len}");
        Ok(())
    }
}
