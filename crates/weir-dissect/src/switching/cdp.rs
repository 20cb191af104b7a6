//! CDP, Cisco's announcements to neighbours. With `-v`, every field.

use crate::Printer;
use crate::base::bytes::{Bytes, Cut};
use crate::base::text::put;

const DEVICE: u16 = 1;

/// What a value is.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Form {
    Unread,
    /// In quotes.
    Text,
    Version,
    Addresses,
    /// Addresses in a field that has at least the number of them.
    Management,
    Prefixes,
    Capabilities,
    Number,
    Duplex,
    Voice,
    /// In units of 1/1000 W.
    Power,
    Size,
    Byte,
    Location,
}

use Form::*;

/// From 0.
const FIELDS: [(&str, Form); 24] = [
    ("unknown field type", Unread),
    ("Device-ID", Text),
    ("Address", Addresses),
    ("Port-ID", Text),
    ("Capability", Capabilities),
    ("Version String", Version),
    ("Platform", Text),
    ("Prefixes", Prefixes),
    ("Protocol-Hello option", Unread),
    ("VTP Management Domain", Text),
    ("Native VLAN ID", Number),
    ("Duplex", Duplex),
    ("unknown field type", Unread),
    ("unknown field type", Unread),
    ("ATA-186 VoIP VLAN assignment", Voice),
    ("ATA-186 VoIP VLAN request", Voice),
    ("power consumption", Power),
    ("MTU", Size),
    ("AVVID trust bitmap", Byte),
    ("AVVID untrusted ports CoS", Byte),
    ("System Name", Text),
    ("System Object ID (not decoded)", Unread),
    ("Management Addresses", Management),
    ("Physical Location", Location),
];
const CAPABILITIES: [(u32, &str); 7] = [
    (1, "Router"),
    (2, "Transparent Bridge"),
    (4, "Source Route Bridge"),
    (8, "L2 Switch"),
    (16, "L3 capable"),
    (32, "IGMP snooping"),
    (64, "L1 capable"),
];

impl Printer<'_> {
    pub(crate) fn cdp(&mut self, bytes: Bytes<'_>) -> Result<(), Cut> {
        self.protocol = "cdp";
        self.facts.protocol = Some("cdp");
        if bytes.len < 4 {
            put!(self, " (packet length {} < 4) (invalid)", bytes.len);
            return Ok(());
        }
        put!(self, "CDPv{}, ttl: {}s", bytes.u8(0)?, bytes.u8(1)?);
        if self.options.verbose > 0 {
            put!(self, ", checksum: 0x{:04x} (unverified), length {}", bytes.u16(2)?, bytes.len);
            return self.cdp_fields(bytes.from(4));
        }
        let mut rest = bytes.from(4);
        while rest.len > 0 {
            let (kind, len) = (rest.u16(0)?, usize::from(rest.u16(2)?));
            if len < 4 || len > rest.len {
                self.text(" (invalid)");
                return Ok(());
            }
            let value = rest.get(4, len - 4)?;
            if kind == DEVICE {
                self.text(", Device-ID '");
                self.harmless(value);
                self.text("'");
            } else {
                self.rows("\n\t  ", value);
            }
            rest = rest.from(len);
        }
        put!(self, ", length {}", bytes.len);
        Ok(())
    }

    fn cdp_fields(&mut self, mut rest: Bytes<'_>) -> Result<(), Cut> {
        while rest.len > 0 {
            if rest.len < 4 {
                put!(self, " (remaining packet length {} < 4) (invalid)", rest.len);
                return Ok(());
            }
            let (kind, len) = (rest.u16(0)?, usize::from(rest.u16(2)?));
            let field = FIELDS.get(usize::from(kind));
            let (name, form) = field.unwrap_or(&FIELDS[0]);
            put!(self, "\n\t{name} (0x{kind:02x})");
            if len < 4 {
                put!(self, ", TLV length: {len} bytes (too short) (invalid)");
                return Ok(());
            }
            let size = len - 4;
            put!(self, ", value length: {size} byte{}: ", if size == 1 { "" } else { "s" });
            if len > rest.len {
                self.text(" (invalid)");
                return Ok(());
            }
            let value = rest.from(4).first(size);
            let known = self.cdp_field(*form, value)?;
            if !known && *form != Unread {
                self.text(" (malformed TLV)");
            }
            if !known && (*form != Unread || field.is_none()) {
                self.rows("\n\t  ", value.data);
            }
            rest.get(0, len)?;
            rest = rest.from(len);
        }
        Ok(())
    }

    /// Prints a value; returns whether it has its form.
    fn cdp_field(&mut self, form: Form, value: Bytes<'_>) -> Result<bool, Cut> {
        match (form, value.len) {
            (Text, _) => {
                self.text("'");
                self.harmless(value.data);
                // The rest was not captured.
                self.text(if value.whole() { "'" } else { "" });
            }
            (Version, _) => {
                for line in value.data.split(|byte| *byte == b'\n') {
                    self.text("\n\t  ");
                    self.harmless(line);
                }
            }
            (Addresses, _) | (Management, 4..) => self.cdp_addresses(value)?,
            (Prefixes, len) if !len.is_multiple_of(5) => put!(self, " [length {len} is not a multiple of 5]"),
            (Prefixes, len) => {
                put!(self, " IPv4 Prefixes ({}):", len / 5);
                for at in (0..len).step_by(5) {
                    let (address, bits) = (value.ip4(at)?, value.u8(at + 4)?);
                    self.text(" ");
                    self.ip4_number(address);
                    put!(self, "/{bits}");
                }
            }
            (Capabilities, 4) => {
                put!(self, "(0x{:08x}): ", value.u32(0)?);
                self.flag_names(value.u32(0)?, &CAPABILITIES);
            }
            (Number, 2) => put!(self, "{}", value.u16(0)?),
            (Duplex, 1) => self.text(if value.u8(0)? == 0 { "half" } else { "full" }),
            (Voice, 3) => put!(self, "app {}, vlan {}", value.u8(0)?, value.u16(1)?),
            (Voice, 2) => put!(self, "unknown 0x{:04x}", value.u16(0)?),
            (Power, 1..=3) => {
                let power = match value.len {
                    1 => value.u8(0)?.into(),
                    2 => value.u16(0)?.into(),
                    _ => value.u24(0)?,
                };
                put!(self, "{:.2}W", f64::from(power) / 1000.0);
            }
            (Size, 4) => put!(self, "{} bytes", value.u32(0)?),
            (Byte, 1) => put!(self, "0x{:02x}", value.u8(0)?),
            (Location, 1..) => {
                put!(self, "0x{:02x}", value.u8(0)?);
                if value.len > 1 {
                    self.text("/");
                    self.harmless(value.from(1).data);
                }
            }
            _ => return Ok(false),
        }
        Ok(true)
    }

    fn cdp_addresses(&mut self, value: Bytes<'_>) -> Result<(), Cut> {
        /// Of IPv4 and IPv6: how the protocol is given, in how many bytes, and the number of bytes of an address.
        const IP4: &[u8] = &[1, 1, 0xcc, 0, 4];
        const IP6: &[u8] = &[2, 8, 0xaa, 0xaa, 3, 0, 0, 0, 0x86, 0xdd, 0, 16];
        if value.len < 4 {
            self.text(" (not enough space for num)");
            return Ok(());
        }
        let count = value.u32(0)?;
        let mut rest = value.from(4);
        for left in (1..=count).rev() {
            let before = if left < count { " " } else { "" };
            if rest.len < 2 {
                self.text(" (not enough space for PT+PL)");
                return Ok(());
            }
            let (kind, len) = (rest.u8(0)?, usize::from(rest.u8(1)?));
            if rest.len < len + 4 {
                self.text(" (not enough space for P+AL)");
                return Ok(());
            }
            let size = usize::from(rest.u16(2 + len)?);
            if rest.len < len + 4 + size {
                self.text(" (not enough space for A)");
                return Ok(());
            }
            let address = rest.from(4 + len);
            address.get(0, size)?;
            match rest.get(0, 4 + len)? {
                IP4 => {
                    put!(self, "{before}IPv4 ({left}) ");
                    self.ip4_address(address.ip4(0)?);
                }
                IP6 => {
                    put!(self, "{before}IPv6 ({left}) ");
                    self.ip6_address(address.ip6(0)?);
                }
                _ => {
                    put!(self, "{before}pt=0x{kind:02x}, pl={len}, pb=");
                    rest.get(2, len)?.iter().for_each(|byte| put!(self, " {byte:02x}"));
                    put!(self, ", al={size}, a=");
                    address.get(0, size)?.iter().for_each(|byte| put!(self, " {byte:02x}"));
                }
            }
            rest = address.from(size);
        }
        Ok(())
    }
}
