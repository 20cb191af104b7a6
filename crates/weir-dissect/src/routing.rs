//! Protocols between routers and switches of which only the kind of message is printed: PIM
//! (RFC 7761) and EAPOL (IEEE 802.1X).

use crate::Printer;
use crate::bytes::{Bytes, Cut};
use crate::text::put;

impl Printer<'_> {
    pub(crate) fn pim(&mut self, bytes: Bytes<'_>) -> Result<(), Cut> {
        const NAMES: [&str; 11] = [
            "Hello",
            "Register",
            "Register Stop",
            "Join / Prune",
            "Bootstrap",
            "Assert",
            "Graft",
            "Graft ACK",
            "Candidate RP Advertisement",
            "Prune-Refresh",
            "DF Election",
        ];
        self.protocol = "pim";
        self.facts.protocol = Some("pim");
        let first = bytes.u8(0)?;
        match first >> 4 {
            2 => {
                let name = NAMES.get(usize::from(first & 15)).unwrap_or(&"Unknown Type");
                put!(self, "PIMv2, {name}, length {}", bytes.len);
            }
            version => put!(self, "PIMv{version}, length {}", bytes.len),
        }
        Ok(())
    }

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
