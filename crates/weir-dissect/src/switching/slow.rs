//! Slow protocols (IEEE 802.3): LACP (IEEE 802.1AX) and its markers; of OAM, only the name.

use crate::Printer;
use crate::base::bytes::{Bytes, Cut};
use crate::base::text::put;

const LACP: u8 = 1;
const MARKER: u8 = 2;

const STATES: [(u8, &str); 8] = [
    (1, "Activity"),
    (2, "Timeout"),
    (4, "Aggregation"),
    (8, "Synchronization"),
    (16, "Collecting"),
    (32, "Distributing"),
    (64, "Default"),
    (128, "Expired"),
];

impl Printer<'_> {
    pub(crate) fn slow(&mut self, bytes: Bytes<'_>) -> Result<(), Cut> {
        self.protocol = "slow";
        self.facts.protocol = Some("slow");
        let subtype = bytes.u8(0)?;
        let name = match subtype {
            LACP => "LACP",
            MARKER => "MARKER",
            3 => {
                put!(self, "OAM, length {}", bytes.len);
                return Ok(());
            }
            _ => {
                put!(self, "unknown ({subtype}), length {}", bytes.len);
                self.rows("\n\t", bytes.data);
                return Ok(());
            }
        };
        let verbose = self.options.verbose > 0;
        if bytes.len < 2 {
            self.text(if verbose { "\n\t\t packet is too short" } else { " (packet is too short)" });
            return Ok(());
        }
        match bytes.u8(1)? {
            1 => put!(self, "{name}v1, length {}", bytes.len),
            version => {
                put!(self, "{name} version {version} packet not supported");
                return Ok(());
            }
        }
        if verbose { self.slow_fields(subtype, bytes.from(2)) } else { Ok(()) }
    }

    fn slow_fields(&mut self, subtype: u8, mut rest: Bytes<'_>) -> Result<(), Cut> {
        while rest.len > 0 {
            if rest.len < 2 {
                self.text("\n\t\t packet is too short");
                return Ok(());
            }
            let (kind, len) = (rest.u8(0)?, usize::from(rest.u8(1)?));
            // The length of what is known; the end has none.
            let (name, right) = match (subtype, kind) {
                (_, 0) => ("Terminator", len),
                (LACP, 1) => ("Actor Information", 20),
                (LACP, 2) => ("Partner Information", 20),
                (LACP, 3) => ("Collector Information", 16),
                (MARKER, 1) => ("Marker Information", 16),
                _ => ("Unknown", len),
            };
            put!(self, "\n\t{name} TLV (0x{kind:02x}), length {len}");
            if kind == 0 {
                return Ok(());
            }
            if len < 2 {
                self.text("\n\t    ERROR: illegal length - should be >= 2");
                return Ok(());
            }
            if len > rest.len {
                self.text("\n\t\t packet is too short");
                return Ok(());
            }
            rest.get(0, len)?;
            if len != right {
                put!(self, "\n\t    ERROR: illegal length - should be {right}");
                if self.options.verbose > 1 {
                    self.rows("\n\t  ", rest.from(2).first(len - 2).data);
                }
                return Ok(());
            }
            let value = rest.from(2).first(len - 2);
            let known = self.slow_field(subtype, kind, value)?;
            if !known || self.options.verbose > 1 {
                self.rows("\n\t  ", value.data);
            }
            rest = rest.from(len);
        }
        Ok(())
    }

    /// Prints a value; returns whether it is known.
    fn slow_field(&mut self, subtype: u8, kind: u8, value: Bytes<'_>) -> Result<bool, Cut> {
        match (subtype, kind) {
            (LACP, 1 | 2) => {
                self.text("\n\t  System ");
                self.mac(value.mac(2)?);
                put!(self, ", System Priority {}, Key {}", value.u16(0)?, value.u16(8)?);
                put!(self, ", Port {}, Port Priority {}", value.u16(12)?, value.u16(10)?);
                self.text("\n\t  State Flags [");
                self.flag_names(value.u8(14)?, &STATES);
                self.text("]");
            }
            (LACP, 3) => put!(self, "\n\t  Max Delay {}", value.u16(0)?),
            (MARKER, 1) => {
                self.text("\n\t  Request System ");
                self.mac(value.mac(2)?);
                put!(self, ", Request Port {}", value.u16(0)?);
                put!(self, ", Request Transaction ID 0x{:08x}", value.u32(8)?);
            }
            _ => return Ok(false),
        }
        Ok(true)
    }
}
