//! ATA over Ethernet (AoEr11, The Brantley Coile Company).

use crate::Printer;
use crate::base::bytes::{Bytes, Cut};
use crate::base::text::put;

/// Lengths of the headers: common, and of each command.
const HEADER: usize = 10;
const ATA: usize = 12;
const QUERY: usize = 8;
const MASK: usize = 4;
const DIRECTIVE: usize = 8;
const RESERVE: usize = 2;
const ADDRESS: usize = 6;
/// The longest configuration string.
const LONGEST: usize = 1024;

const FLAGS: [(u8, &str); 4] = [(8, "Response"), (4, "Error"), (2, "MBZ-1"), (1, "MBZ-0")];
const ERROR: u8 = 4;
/// From 1.
const ERRORS: [&str; 6] = [
    "Unrecognized command code",
    "Bad argument parameter",
    "Device unavailable",
    "Config string present",
    "Unsupported version",
    "Target is reserved",
];
const COMMANDS: [&str; 4] =
    ["Issue ATA Command", "Query Config Information", "MAC Mask List", "Reserve/Release"];
const ATA_FLAGS: [(u8, &str); 8] = [
    (0x80, "MBZ-7"),
    (0x40, "Ext48"),
    (0x20, "MBZ-5"),
    (0x10, "Device"),
    (8, "MBZ-3"),
    (4, "MBZ-2"),
    (2, "Async"),
    (1, "Write"),
];
const QUERIES: [&str; 5] = [
    "read config string",
    "test config string",
    "test config string prefix",
    "set config string",
    "force set config string",
];
const MASK_COMMANDS: [&str; 2] = ["Read Mac Mask List", "Edit Mac Mask List"];
/// From 1.
const MASK_ERRORS: [&str; 3] = ["Unspecified Error", "Bad DCmd directive", "Mask list full"];
const DIRECTIVES: [&str; 3] =
    ["No Directive", "Add mac address to mask list", "Delete mac address from mask list"];
const RESERVATIONS: [&str; 3] = ["Read reserve list", "Set reserve list", "Force set reserve list"];

impl Printer<'_> {
    pub(crate) fn aoe(&mut self, bytes: Bytes<'_>) -> Result<(), Cut> {
        self.protocol = "aoe";
        self.facts.protocol = Some("aoe");
        put!(self, "AoE length {}", bytes.len);
        if bytes.len == 0 {
            return self.invalid(bytes);
        }
        let first = bytes.u8(0)?;
        put!(self, ", Ver {}", first >> 4);
        if first >> 4 != 1 {
            return Ok(());
        }
        if bytes.len < HEADER {
            return self.invalid(bytes);
        }
        self.text(", Flags: [");
        self.flag_names(first & 15, &FLAGS);
        self.text("]");
        if self.options.verbose == 0 {
            return Ok(());
        }
        let error = bytes.u8(1)?;
        if first & ERROR != 0 {
            self.text("\n\tError: ");
            match ERRORS.get(usize::from(error).wrapping_sub(1)) {
                Some(name) => self.text(name),
                None => put!(self, "Invalid ({error})"),
            }
        }
        put!(self, "\n\tMajor: 0x{:04x}", bytes.u16(2)?);
        put!(self, ", Minor: 0x{:02x}", bytes.u8(4)?);
        let command = bytes.u8(5)?;
        self.text(", Command: ");
        self.aoe_name(&COMMANDS, command.into(), command);
        put!(self, ", Tag: 0x{:08x}", bytes.u32(6)?);
        let rest = bytes.from(HEADER);
        match command {
            0 => self.aoe_ata(rest),
            1 => self.aoe_query(rest),
            2 => self.aoe_mask(rest),
            3 => self.aoe_reserve(rest),
            _ => Ok(()),
        }
    }

    /// Prints a name, or that `byte` has none.
    fn aoe_name(&mut self, names: &[&str], index: usize, byte: u8) {
        match names.get(index) {
            Some(name) => self.text(name),
            None => put!(self, "Unknown (0x{byte:02x})"),
        }
    }

    fn aoe_ata(&mut self, bytes: Bytes<'_>) -> Result<(), Cut> {
        if bytes.len < ATA {
            return self.invalid(bytes);
        }
        let flags = bytes.u8(0)?;
        self.text("\n\tAFlags: [");
        self.flag_names(flags, &ATA_FLAGS);
        self.text("]");
        put!(self, ", Err/Feature: {}", bytes.u8(1)?);
        put!(self, ", Sector Count: {}", bytes.u8(2)?);
        put!(self, ", Cmd/Status: {}", bytes.u8(3)?);
        for number in 0..6 {
            let before = if number == 0 { "\n\t" } else { ", " };
            put!(self, "{before}lba{number}: {}", bytes.u8(4 + number)?);
        }
        bytes.get(0, ATA)?;
        let data = bytes.from(ATA);
        if data.len > 0 {
            put!(self, "\n\tData: {} bytes", data.len);
        }
        Ok(())
    }

    fn aoe_query(&mut self, bytes: Bytes<'_>) -> Result<(), Cut> {
        if bytes.len < QUERY {
            return self.invalid(bytes);
        }
        put!(self, "\n\tBuffer Count: {}", bytes.u16(0)?);
        put!(self, ", Firmware Version: {}", bytes.u16(2)?);
        put!(self, ", Sector Count: {}", bytes.u8(4)?);
        let both = bytes.u8(5)?;
        put!(self, ", AoE: {}, CCmd: ", both >> 4);
        // tcpdump's words, without the number.
        self.text(QUERIES.get(usize::from(both & 15)).unwrap_or(&"Unknown (0x02x)"));
        let len = usize::from(bytes.u16(6)?);
        let rest = bytes.from(QUERY);
        if len > LONGEST || len > rest.len {
            return self.invalid(rest);
        }
        if len > 0 {
            put!(self, "\n\tConfig String (length {len}): ");
            self.harmless(rest.first(len).data);
            rest.get(0, len)?;
        }
        Ok(())
    }

    fn aoe_mask(&mut self, bytes: Bytes<'_>) -> Result<(), Cut> {
        if bytes.len < MASK {
            return self.invalid(bytes);
        }
        let command = bytes.u8(1)?;
        self.text("\n\tMCmd: ");
        self.aoe_name(&MASK_COMMANDS, command.into(), command);
        let error = bytes.u8(2)?;
        self.text(", MError: ");
        self.aoe_name(&MASK_ERRORS, usize::from(error).wrapping_sub(1), error);
        let count = bytes.u8(3)?;
        put!(self, ", Dir Count: {count}");
        let rest = bytes.from(MASK);
        if usize::from(count) * DIRECTIVE > rest.len {
            return self.invalid(rest);
        }
        for at in (0..usize::from(count)).map(|number| number * DIRECTIVE) {
            let directive = rest.u8(at + 1)?;
            self.text("\n\t DCmd: ");
            self.aoe_name(&DIRECTIVES, directive.into(), directive);
            let address = rest.mac(at + 2)?;
            self.text(", Ethernet Address: ");
            self.mac(address);
        }
        Ok(())
    }

    fn aoe_reserve(&mut self, bytes: Bytes<'_>) -> Result<(), Cut> {
        if bytes.len < RESERVE || !(bytes.len - RESERVE).is_multiple_of(ADDRESS) {
            return self.invalid(bytes);
        }
        let command = bytes.u8(0)?;
        self.text("\n\tRCmd: ");
        self.aoe_name(&RESERVATIONS, command.into(), command);
        let count = bytes.u8(1)?;
        put!(self, ", NMacs: {count}");
        let rest = bytes.from(RESERVE);
        if usize::from(count) * ADDRESS != rest.len {
            return self.invalid(rest);
        }
        for number in 0..usize::from(count) {
            let address = rest.mac(number * ADDRESS)?;
            put!(self, "\n\tEthernet Address {number}: ");
            self.mac(address);
        }
        Ok(())
    }
}
