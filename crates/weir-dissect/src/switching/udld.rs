//! Cisco's detection of links that carry only one direction (UDLD, RFC 5171).

use crate::Printer;
use crate::base::bytes::{Bytes, Cut, until_zero};
use crate::base::text::put;

/// Lengths of the header, and of the type and length in front of each value.
const HEADER: usize = 4;
const ITEM: usize = 4;

const ECHO: u16 = 3;
const MESSAGE_INTERVAL: u16 = 4;
const TIMEOUT_INTERVAL: u16 = 5;
const SEQUENCE_NUMBER: u16 = 7;
/// From 1.
const ITEMS: [&str; 7] = [
    "Device-ID TLV",
    "Port-ID TLV",
    "Echo TLV",
    "Message Interval TLV",
    "Timeout Interval TLV",
    "Device Name TLV",
    "Sequence Number TLV",
];
const CODES: [&str; 4] = ["Reserved", "Probe message", "Echo message", "Flush message"];
const FLAGS: [(u8, &str); 8] = [
    (1, "RT"),
    (2, "RSY"),
    (4, "MBZ-2"),
    (8, "MBZ-3"),
    (0x10, "MBZ-4"),
    (0x20, "MBZ-5"),
    (0x40, "MBZ-6"),
    (0x80, "MBZ-7"),
];

impl Printer<'_> {
    pub(crate) fn udld(&mut self, bytes: Bytes<'_>) -> Result<(), Cut> {
        self.protocol = "udld";
        self.facts.protocol = Some("udld");
        if bytes.len < HEADER {
            return self.invalid(bytes);
        }
        let first = bytes.u8(0)?;
        let code = first & 0x1f;
        let name = CODES.get(usize::from(code)).unwrap_or(&CODES[0]);
        let flags = bytes.u8(1)?;
        put!(self, "UDLDv{}, Code {name} ({code:x}), Flags [", first >> 5);
        self.flag_names(flags, &FLAGS);
        put!(self, "] (0x{flags:02x}), length {}", bytes.len);
        if self.options.verbose == 0 {
            return bytes.get(0, bytes.len).map(drop);
        }
        put!(self, "\n\tChecksum 0x{:04x} (unverified)", bytes.u16(2)?);
        let mut rest = bytes.from(HEADER);
        while rest.len > 0 {
            if rest.len < ITEM {
                return self.invalid(rest);
            }
            let (kind, len) = (rest.u16(0)?, rest.u16(2)?);
            let name = ITEMS.get(usize::from(kind).wrapping_sub(1));
            put!(self, "\n\t{} (0x{kind:04x}) TLV, length {len}", name.unwrap_or(&"Unknown"));
            // The length is that of the header and at least one byte.
            let len = usize::from(len);
            if len <= ITEM || len > rest.len {
                return self.invalid(rest);
            }
            let value = rest.from(ITEM).first(len - ITEM);
            match (kind, value.len) {
                (MESSAGE_INTERVAL | TIMEOUT_INTERVAL, 1) => put!(self, ", {}s", value.u8(0)?),
                (SEQUENCE_NUMBER, 4) => put!(self, ", {}", value.u32(0)?),
                (MESSAGE_INTERVAL | TIMEOUT_INTERVAL | SEQUENCE_NUMBER, _) => return self.invalid(rest),
                _ if name.is_some() => {
                    self.text(", ");
                    self.harmless(if kind == ECHO { value.data } else { until_zero(value.data) });
                    value.get(0, value.len)?;
                }
                _ => drop(value.get(0, value.len)?),
            }
            rest = rest.from(len);
        }
        Ok(())
    }
}
