//! LLDP (IEEE 802.1AB) with `-v`: every field of the announcement. Those of organizations are in `organizations` and
//! `bridges`.

use crate::Printer;
use crate::base::bytes::{Bytes, Cut, until_zero};
use crate::base::text::put;

const END: u16 = 0;
const CHASSIS: u16 = 1;
const PORT: u16 = 2;
const TIME: u16 = 3;
const PORT_DESCRIPTION: u16 = 4;
pub(crate) const SYSTEM_NAME: u16 = 5;
const SYSTEM_DESCRIPTION: u16 = 6;
const CAPABILITIES: u16 = 7;
const MANAGEMENT: u16 = 8;
const ORGANIZATION: u16 = 127;

/// What identifies a chassis or a port.
enum Identifier {
    Text,
    Mac,
    Network,
}

const SYSTEM_CAPABILITIES: [(u16, &str); 8] = [
    (1, "Other"),
    (2, "Repeater"),
    (4, "Bridge"),
    (8, "WLAN AP"),
    (16, "Router"),
    (32, "Telephone"),
    (64, "Docsis"),
    (128, "Station Only"),
];

/// Subtypes from 1, and what identifies the chassis.
const CHASSIS_NAMES: [(&str, Identifier); 7] = [
    ("Chassis component", Identifier::Text),
    ("Interface alias", Identifier::Text),
    ("Port component", Identifier::Text),
    ("MAC address", Identifier::Mac),
    ("Network address", Identifier::Network),
    ("Interface name", Identifier::Text),
    ("Local", Identifier::Text),
];
/// The same for the port.
const PORT_NAMES: [(&str, Identifier); 7] = [
    ("Interface alias", Identifier::Text),
    ("Port component", Identifier::Text),
    ("MAC address", Identifier::Mac),
    ("Network Address", Identifier::Network),
    ("Interface Name", Identifier::Text),
    ("Agent circuit ID", Identifier::Text),
    ("Local", Identifier::Text),
];

impl Printer<'_> {
    pub(crate) fn lldp_fields(&mut self, bytes: Bytes<'_>) -> Result<(), Cut> {
        let mut rest = bytes;
        while rest.len >= 2 {
            let header = rest.u16(0)?;
            let (kind, len) = (header >> 9, usize::from(header & 0x1ff));
            let name = match kind {
                END => "End",
                CHASSIS => "Chassis ID",
                PORT => "Port ID",
                TIME => "Time to Live",
                PORT_DESCRIPTION => "Port Description",
                SYSTEM_NAME => "System Name",
                SYSTEM_DESCRIPTION => "System Description",
                CAPABILITIES => "System Capabilities",
                MANAGEMENT => "Management Address",
                ORGANIZATION => "Organization specific",
                _ => "Unknown",
            };
            put!(self, "\n\t{name} TLV ({kind}), length {len}");
            if kind == END {
                break;
            }
            rest.get(2, len)?;
            let value = rest.from(2).first(len);
            let known = self.lldp_field(kind, value)?;
            if !known || self.options.verbose > 1 {
                self.rows("\n\t  ", value.data);
            }
            rest = rest.from(2 + len);
        }
        Ok(())
    }

    /// Prints a value; returns whether it is known.
    fn lldp_field(&mut self, kind: u16, value: Bytes<'_>) -> Result<bool, Cut> {
        match kind {
            CHASSIS | PORT => {
                let number = value.u8(0)?;
                let names = if kind == CHASSIS { &CHASSIS_NAMES } else { &PORT_NAMES };
                let Some((name, what)) = names.get(usize::from(number).wrapping_sub(1)) else {
                    put!(self, "\n\t  Subtype Unknown ({number}): ");
                    return Ok(false);
                };
                put!(self, "\n\t  Subtype {name} ({number}): ");
                self.lldp_identifier(what, value.from(1))?;
            }
            TIME => put!(self, ": TTL {}s", value.u16(0)?),
            PORT_DESCRIPTION | SYSTEM_NAME => {
                self.text(": ");
                self.harmless(until_zero(value.data));
            }
            SYSTEM_DESCRIPTION => {
                self.text("\n\t  ");
                self.harmless(until_zero(value.data));
            }
            CAPABILITIES => {
                for (title, at) in [("System  Capabilities", 0), ("Enabled Capabilities", 2)] {
                    put!(self, "\n\t  {title} ");
                    self.lldp_bits(value.u16(at)?, &SYSTEM_CAPABILITIES);
                    put!(self, " (0x{:04x})", value.u16(at)?);
                }
            }
            MANAGEMENT => self.lldp_management(value)?,
            ORGANIZATION => return self.lldp_organization(value),
            _ => return Ok(false),
        }
        Ok(true)
    }

    fn lldp_identifier(&mut self, what: &Identifier, value: Bytes<'_>) -> Result<(), Cut> {
        match what {
            Identifier::Text => self.harmless(until_zero(value.data)),
            Identifier::Mac => self.mac(value.mac(0)?),
            Identifier::Network => self.lldp_address(value)?,
        }
        Ok(())
    }

    /// Prints an address after the number of its family.
    fn lldp_address(&mut self, value: Bytes<'_>) -> Result<(), Cut> {
        match (value.u8(0)?, value.len) {
            (1, 5..) => {
                self.text("AFI IPv4 (1): ");
                self.ip4_address(value.ip4(1)?);
            }
            (2, 17..) => {
                self.text("AFI IPv6 (2): ");
                self.ip6_address(value.ip6(1)?);
            }
            (6, 7..) => {
                self.text("AFI 802 (6): ");
                self.mac(value.mac(1)?);
            }
            (family, _) => put!(self, "AFI Unknown ({family}), no AF printer !"),
        }
        Ok(())
    }

    fn lldp_management(&mut self, value: Bytes<'_>) -> Result<(), Cut> {
        let len = usize::from(value.u8(0)?);
        put!(self, "\n\t  Management Address length {len}, ");
        self.lldp_address(value.from(1).first(len))?;
        let rest = value.from(1 + len);
        let numbering = rest.u8(0)?;
        let name = match numbering {
            2 => "Interface Index",
            3 => "System Port Number",
            _ => "Unknown",
        };
        put!(self, "\n\t  {name} Interface Numbering ({numbering}): {}", rest.u32(1)?);
        let object = usize::from(rest.u8(5)?);
        if object > 0 {
            put!(self, "\n\t  OID length {object}");
            self.harmless(rest.get(6, object)?);
        }
        Ok(())
    }

    /// Prints the names of the bits that are set.
    pub(crate) fn lldp_bits(&mut self, bits: u16, names: &[(u16, &str)]) {
        self.text("[");
        let mut before = "";
        for (bit, name) in names {
            if bits & bit != 0 {
                self.text(before);
                self.text(name);
                before = ", ";
            }
        }
        self.text(if before.is_empty() { "none]" } else { "]" });
    }
}
