//! LLDP (IEEE 802.1AB) and CDP: devices that introduce themselves.

use crate::Printer;
use crate::bytes::{Bytes, Cut};
use crate::lldp::SYSTEM_NAME;
use crate::text::put;

/// LLDP: the end.
const END: u16 = 0;
/// CDP: the name of the device.
const DEVICE: u16 = 1;

impl Printer<'_> {
    /// Prints the length, and without `-v` the system's name.
    pub(crate) fn lldp(&mut self, bytes: Bytes<'_>) -> Result<(), Cut> {
        self.protocol = "lldp";
        self.facts.protocol = Some("lldp");
        put!(self, "LLDP, length {}", bytes.len);
        if self.options.verbose > 0 {
            return self.lldp_fields(bytes);
        }
        let mut rest = bytes;
        while rest.len >= 2 {
            let header = rest.u16(0)?;
            let (kind, len) = (header >> 9, usize::from(header & 0x1ff));
            if kind == END {
                break;
            }
            let value = rest.get(2, len)?;
            if kind == SYSTEM_NAME {
                self.text(": ");
                self.harmless(value);
            }
            rest = rest.from(2 + len);
        }
        Ok(())
    }

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
            return Ok(());
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
}
