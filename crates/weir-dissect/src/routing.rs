//! Protocols between routers and switches of which only the kind of message is printed: EIGRP (RFC 7868),
//! PIM (RFC 7761), slow protocols (IEEE 802.3), EAPOL (IEEE 802.1X).

use crate::Printer;
use crate::bytes::{Bytes, Cut};
use crate::text::put;

impl Printer<'_> {
    pub(crate) fn eigrp(&mut self, bytes: Bytes<'_>) -> Result<(), Cut> {
        self.protocol = "eigrp";
        self.facts.protocol = Some("eigrp");
        bytes.get(0, 20)?;
        let (version, operation) = (bytes.u8(0)?, bytes.u8(1)?);
        if version != 2 {
            put!(self, "EIGRP version {version} packet not supported");
            return Ok(());
        }
        let name = match operation {
            1 => "Update",
            3 => "Query",
            4 => "Reply",
            5 => "Hello",
            6 => "IPX SAP",
            8 => "Probe",
            _ => {
                put!(self, "EIGRP unknown, type: {operation}, length: {}", bytes.len);
                return Ok(());
            }
        };
        put!(self, "EIGRP {name}, length: {}", bytes.len);
        Ok(())
    }

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

    pub(crate) fn slow(&mut self, bytes: Bytes<'_>) -> Result<(), Cut> {
        self.protocol = "slow";
        self.facts.protocol = Some("slow");
        let subtype = bytes.u8(0)?;
        if !matches!(subtype, 1 | 2) {
            match subtype {
                3 => put!(self, "OAM, length {}", bytes.len),
                _ => {
                    put!(self, "unknown ({subtype}), length {}", bytes.len);
                    self.rows("\n\t", bytes.data);
                }
            }
            return Ok(());
        }
        if bytes.len < 2 {
            self.text(" (packet is too short)");
            return Ok(());
        }
        let version = bytes.u8(1)?;
        let name = if subtype == 1 { "LACP" } else { "MARKER" };
        match version {
            1 => put!(self, "{name}v1, length {}", bytes.len),
            _ => put!(self, "{name} version {version} packet not supported"),
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
