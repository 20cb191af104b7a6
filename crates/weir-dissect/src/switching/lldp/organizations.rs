//! Fields of LLDP that organizations define: IEEE 802.1 and 802.3, and media endpoints (ANSI/TIA-1057).

use crate::Printer;
use crate::base::bytes::{Bytes, Cut, until_zero};
use crate::base::names;
use crate::base::text::put;

const BRIDGES: u32 = 0x80c2;
const ETHERNET: u32 = 0x120f;
const MEDIA: u32 = 0x12bb;

const SUPPORTED: [(u16, &str); 2] = [(1, "supported"), (2, "enabled")];
const PROTOCOL_VLAN: [(u16, &str); 2] = [(2, "supported"), (4, "enabled")];
const POWER: [(u16, &str); 4] = [(1, "PSE"), (2, "supported"), (4, "enabled"), (8, "can be controlled")];
/// Modes that a port advertises, as bits of RFC 3636; the slowest first.
const MODES: [(u16, &str); 16] = [
    (32768, "unknown"),
    (16384, "10BASE-T hdx"),
    (8192, "10BASE-T fdx"),
    (4096, "100BASE-T4"),
    (2048, "100BASE-TX hdx"),
    (1024, "100BASE-TX fdx"),
    (512, "100BASE-T2 hdx"),
    (256, "100BASE-T2 fdx"),
    (128, "PAUSE for fdx"),
    (64, "Asym PAUSE for fdx"),
    (32, "Sym PAUSE for fdx"),
    (16, "Asym and Sym PAUSE for fdx"),
    (8, "1000BASE-{X LX SX CX} hdx"),
    (4, "1000BASE-{X LX SX CX} fdx"),
    (2, "1000BASE-T hdx"),
    (1, "1000BASE-T fdx"),
];
const MEDIA_CAPABILITIES: [(u16, &str); 6] = [
    (1, "LLDP-MED capabilities"),
    (2, "network policy"),
    (4, "location identification"),
    (8, "extended power via MDI-PSE"),
    (16, "extended power via MDI-PD"),
    (32, "Inventory"),
];

impl Printer<'_> {
    /// Prints a value; returns whether it is known.
    pub(crate) fn lldp_organization(&mut self, value: Bytes<'_>) -> Result<bool, Cut> {
        let organization = value.u24(0)?;
        let name = names::organization(organization);
        put!(self, ": OUI {name} (0x{organization:06x})");
        let number = value.u8(3)?;
        let field = value.from(4);
        match organization {
            BRIDGES => self.lldp_bridge(number, field),
            ETHERNET => self.lldp_ethernet(number, field),
            MEDIA => self.lldp_media(number, field),
            _ => Ok(false),
        }
    }

    fn lldp_subtype(&mut self, number: u8, names: &[&str]) {
        let name = names.get(usize::from(number).wrapping_sub(1)).unwrap_or(&"unknown");
        put!(self, "\n\t  {name} Subtype ({number})");
    }

    fn lldp_bridge(&mut self, number: u8, field: Bytes<'_>) -> Result<bool, Cut> {
        let names = [
            "Port VLAN Id",
            "Port and Protocol VLAN ID",
            "VLAN name",
            "Protocol Identity",
            "unknown",
            "unknown",
            "Link aggregation",
            "Congestion Notification",
            "ETS Configuration",
            "ETS Recommendation",
            "Priority Flow Control Configuration",
            "Application Priority",
            "EVB",
            "CDCP",
        ];
        self.lldp_subtype(number, &names);
        match number {
            1 => put!(self, "\n\t    port vlan id (PVID): {}", field.u16(0)?),
            2 => {
                let flags = field.u8(0)?;
                put!(self, "\n\t    port and protocol vlan id (PPVID): {}, flags ", field.u16(1)?);
                self.lldp_bits(flags.into(), &PROTOCOL_VLAN);
                put!(self, " (0x{flags:02x})");
            }
            3 => {
                put!(self, "\n\t    vlan id (VID): {}\n\t    vlan name: ", field.u16(0)?);
                let len = field.u8(2)?.into();
                self.harmless(until_zero(field.get(3, len)?));
            }
            4 => {
                self.text("\n\t    protocol identity: ");
                let len = field.u8(0)?.into();
                self.harmless(until_zero(field.get(1, len)?));
            }
            _ => return self.lldp_data_center(number, field),
        }
        Ok(true)
    }

    fn lldp_ethernet(&mut self, number: u8, field: Bytes<'_>) -> Result<bool, Cut> {
        let names = ["MAC/PHY configuration/status", "Power via MDI", "Link aggregation", "Max frame size"];
        self.lldp_subtype(number, &names);
        match number {
            1 => {
                let (status, modes, unit) = (field.u8(0)?, field.u16(1)?, field.u16(3)?);
                self.text("\n\t    autonegotiation ");
                self.lldp_bits(status.into(), &SUPPORTED);
                put!(self, " (0x{status:02x})\n\t    PMD autoneg capability ");
                self.lldp_bits(modes, &MODES);
                put!(self, " (0x{modes:04x})\n\t    MAU type {} (0x{unit:04x})", medium(unit));
            }
            2 => {
                let (support, pair, class) = (field.u8(0)?, field.u8(1)?, field.u8(2)?);
                self.text("\n\t    MDI power support ");
                self.lldp_bits(support.into(), &POWER);
                let pair = ["unknown", "signal", "spare"].get(usize::from(pair)).unwrap_or(&"unknown");
                put!(self, ", power pair {pair}, power class ");
                match class {
                    1..=5 => put!(self, "class{}", class - 1),
                    _ => self.text("unknown"),
                }
            }
            3 => {
                self.text("\n\t    aggregation status ");
                self.lldp_bits(field.u8(0)?.into(), &SUPPORTED);
                put!(self, ", aggregation port ID {}", field.u32(1)?);
            }
            4 => put!(self, "\n\t    MTU size {}", field.u16(0)?),
            _ => return Ok(false),
        }
        Ok(true)
    }

    fn lldp_media(&mut self, number: u8, field: Bytes<'_>) -> Result<bool, Cut> {
        const INVENTORY: u8 = 5;
        let names = [
            "LLDP-MED Capabilities",
            "Network policy",
            "Location identification",
            "Extended power-via-MDI",
            "Inventory - hardware revision",
            "Inventory - firmware revision",
            "Inventory - software revision",
            "Inventory - serial number",
            "Inventory - manufacturer name",
            "Inventory - model name",
            "Inventory - asset ID",
        ];
        let details = [
            "Hardware revision",
            "Firmware revision",
            "Software revision",
            "Serial number",
            "Manufacturer name",
            "Model name",
            "Asset ID",
        ];
        self.lldp_subtype(number, &names);
        match number {
            1 => {
                let (capabilities, device) = (field.u16(0)?, field.u8(2)?);
                self.text("\n\t    Media capabilities ");
                self.lldp_bits(capabilities, &MEDIA_CAPABILITIES);
                let name = match device {
                    1 => "endpoint class 1",
                    2 => "endpoint class 2",
                    3 => "endpoint class 3",
                    4 => "network connectivity",
                    _ => "unknown",
                };
                put!(self, " (0x{capabilities:04x})\n\t    Device type [{name}] (0x{device:02x})");
            }
            2 => {
                let (application, policy) = (field.u8(0)?, field.u24(1)?);
                let name = match application {
                    1 => "voice",
                    2 => "voice signaling",
                    3 => "guest voice",
                    4 => "guest voice signaling",
                    5 => "softphone voice",
                    6 => "video conferencing",
                    7 => "streaming video",
                    8 => "video signaling",
                    _ => "unknown",
                };
                put!(self, "\n\t    Application type [{name}] (0x{application:02x}), Flags [");
                if policy & 0x80_0000 != 0 {
                    self.text("Unknown, ");
                }
                self.text(if policy & 0x40_0000 != 0 { "Tagged]" } else { "Untagged]" });
                let (vlan, priority, service) = (policy >> 9 & 0xfff, policy >> 6 & 7, policy & 63);
                put!(self, "\n\t    Vlan id {vlan}, L2 priority {priority}, DSCP value {service}");
            }
            INVENTORY..=11 => {
                put!(self, "\n\t  {} ", details[usize::from(number - INVENTORY)]);
                self.harmless(until_zero(field.data));
            }
            _ => return Ok(false),
        }
        Ok(true)
    }
}

/// Types of medium attachment units (RFC 3636) that are common.
fn medium(unit: u16) -> &'static str {
    match unit {
        10 => "10BASET hdx",
        11 => "10BASET fdx",
        15 => "100BASETX hdx",
        16 => "100BASETX fdx",
        17 => "100BASEFX hdx",
        18 => "100BASEFX fdx",
        29 => "1000BASET hdx",
        30 => "1000BASET fdx",
        _ => "unknown",
    }
}
