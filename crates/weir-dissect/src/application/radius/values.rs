//! Values of RADIUS attributes that have a structure of their own: ARAP (RFC 2869), errors (RFC 5176), mobile IPv6
//! (RFC 5447) and locations (RFC 5580).

use crate::Printer;
use crate::base::bytes::{Bytes, Cut};
use crate::base::hex::Dump;
use crate::base::text::put;

const MOBILE: [(u64, &str); 12] = [
    (1 << 0, "MIP6_INTEGRATED"),
    (1 << 1, "LOCAL_HOME_AGENT_ASSIGNMENT"),
    (1 << 40, "PMIP6_SUPPORTED"),
    (1 << 41, "IP4_HOA_SUPPORTED"),
    (1 << 42, "LOCAL_MAG_ROUTING_SUPPORTED"),
    (1 << 43, "ASSIGN_LOCAL_IP"),
    (1 << 44, "MIP4_SUPPORTED"),
    (1 << 45, "OPTIMIZED_IDLE_MODE_MOBILITY"),
    (1 << 46, "GTPv2_SUPPORTED"),
    (1 << 47, "IP4_TRANSPORT_SUPPORTED"),
    (1 << 48, "IP4_HOA_ONLY_SUPPORTED"),
    (1 << 49, "INTER_MAG_ROUTING_SUPPORTED"),
];
const RETRANSMISSION: u16 = 0x8000;

fn cause(code: u32) -> Option<&'static str> {
    Some(match code {
        201 => "Residual Session Context Removed",
        202 => "Invalid EAP Packet (Ignored)",
        401 => "Unsupported Attribute",
        402 => "Missing Attribute",
        403 => "NAS Identification Mismatch",
        404 => "Invalid Request",
        405 => "Unsupported Service",
        406 => "Unsupported Extension",
        407 => "Invalid Attribute Value",
        501 => "Administratively Prohibited",
        502 => "Request Not Routable (Proxy)",
        503 => "Session Context Not Found",
        504 => "Session Context Not Removable",
        505 => "Other Proxy Processing Error",
        506 => "Resources Unavailable",
        507 => "Request Initiated",
        508 => "Multiple Session Selection Unsupported",
        509 => "Location Info Required",
        _ => return None,
    })
}

impl Printer<'_> {
    pub(crate) fn radius_arap_password(&mut self, value: Bytes<'_>) {
        for (at, byte) in value.data.iter().enumerate() {
            match at {
                0 => self.text("User_challenge ("),
                8 => self.text(") User_resp("),
                _ => {}
            }
            put!(self, "{byte:02X}");
        }
        self.text(")");
    }

    pub(crate) fn radius_arap_features(&mut self, value: Bytes<'_>) -> Result<(), Cut> {
        let can = if value.u8(0)? != 0 { "can" } else { "cannot" };
        put!(self, "User {can} change password, Min password length: {}", value.u8(1)?);
        for (at, name) in [(2, "created at"), (6, "expires in"), (10, "Current Time")] {
            put!(self, ", {name}: {:08X}", value.u32(at)?);
        }
        Ok(())
    }

    pub(crate) fn radius_cause(&mut self, value: Bytes<'_>) -> Result<(), Cut> {
        if value.len != 4 {
            put!(self, "Error: length {} != 4", value.len);
            return Ok(());
        }
        let code = value.u32(0)?;
        put!(self, "Error cause {code}: ");
        match cause(code) {
            Some(words) => self.text(words),
            None => put!(self, "Error-Cause {code} not known"),
        }
        Ok(())
    }

    pub(crate) fn radius_mobile(&mut self, value: Bytes<'_>) -> Result<(), Cut> {
        let features = value.u64(0)?;
        let mut before = "[";
        for (_, name) in MOBILE.iter().filter(|(bit, _)| features & bit != 0) {
            self.text(before);
            self.text(name);
            before = ", ";
        }
        self.text(if before == "[" { "[]" } else { "]" });
        Ok(())
    }

    pub(crate) fn radius_home(&mut self, value: Bytes<'_>) -> Result<(), Cut> {
        let len = value.u8(0)?;
        if len > 128 {
            put!(self, "ERROR: netmask {len} not in range (0..128)");
            return Ok(());
        }
        self.ip6_address(value.ip6(1)?);
        put!(self, "/{len}");
        Ok(())
    }

    pub(crate) fn radius_operator(&mut self, value: Bytes<'_>) -> Result<(), Cut> {
        match value.u8(0)? {
            b'0' => self.text("[TADIG] "),
            b'1' => self.text("[REALM] "),
            b'2' => self.text("[E212] "),
            b'3' => self.text("[ICC] "),
            other => put!(self, "[unknown namespace {other}] "),
        }
        self.harmless(value.from(1).data);
        Ok(())
    }

    pub(crate) fn radius_location(&mut self, value: Bytes<'_>) -> Result<(), Cut> {
        put!(self, "index {}", value.u16(0)?);
        for (at, word, names) in [(2, "code", ["Civic", "Geospatial"]), (3, "entity", ["User", "RADIUS"])] {
            let number = value.u8(at)?;
            match names.get(usize::from(number)) {
                Some(name) => put!(self, ", {word} {name}"),
                None => put!(self, ", {word} Unknown ({number})"),
            }
        }
        for (at, name) in [(4, ", sighting time "), (12, ", time to live ")] {
            self.text(name);
            self.ntp_moment(value.u64(at)?);
        }
        self.text(", method \"");
        self.harmless(value.from(20).data);
        self.text("\"");
        Ok(())
    }

    pub(crate) fn radius_location_data(&mut self, value: Bytes<'_>) -> Result<(), Cut> {
        put!(self, "index {}, location", value.u16(0)?);
        Dump::HexAscii.indented("\n\t    ", value.from(2).data, self.line);
        Ok(())
    }

    pub(crate) fn radius_location_rules(&mut self, value: Bytes<'_>) -> Result<(), Cut> {
        let flags = value.u16(0)?;
        self.text(if flags == 0 { "flags [none" } else { "flags " });
        let mut before = "[";
        for place in (0..16).filter(|place| flags & 1 << place != 0) {
            self.text(before);
            match 1 << place {
                RETRANSMISSION => self.text("Retransmission Allowed"),
                // Bits are numbered from the highest.
                _ => put!(self, "MBZ-{}", 15 - place),
            }
            before = ", ";
        }
        self.text("], retention expires ");
        self.ntp_moment(value.u64(2)?);
        let note = value.from(10);
        if note.len > 0 {
            self.text(", note well \"");
            self.harmless(note.data);
            self.text("\"");
        }
        Ok(())
    }
}
