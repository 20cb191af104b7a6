//! LLDP (IEEE 802.1AB): devices that introduce themselves.

mod bridges;
mod fields;
mod organizations;

use crate::Printer;
use crate::base::bytes::{Bytes, Cut, until_zero};
use crate::base::text::put;
use crate::switching::lldp::fields::SYSTEM_NAME;

/// LLDP: the end.
const END: u16 = 0;

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
                self.harmless(until_zero(value));
            }
            rest = rest.from(2 + len);
        }
        Ok(())
    }
}
