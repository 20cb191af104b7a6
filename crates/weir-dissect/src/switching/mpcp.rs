//! Control frames of Ethernet: pauses (IEEE 802.3, clause 31), and the multipoint control protocol of passive optical networks
//! (clause 64). Reports are only counted.

use crate::Printer;
use crate::base::bytes::{Bytes, Cut};
use crate::base::text::put;

/// Length of the opcode and the time.
const HEADER: usize = 6;
const GRANT: usize = 6;

const PAUSE: u16 = 1;
const GATE: u16 = 2;
const REPORT: u16 = 3;
const REQUEST: u16 = 4;
const REGISTER: u16 = 5;
const ACKNOWLEDGEMENT: u16 = 6;

const GRANTS: u8 = 7;
const DISCOVERY: u8 = 8;
const GATE_FLAGS: [(u8, &str); 5] = [
    (DISCOVERY, "Discovery"),
    (0x10, "Force Grant #1"),
    (0x20, "Force Grant #2"),
    (0x40, "Force Grant #3"),
    (0x80, "Force Grant #4"),
];

const REQUEST_FLAGS: [(u8, &str); 2] = [(1, "Register"), (3, "De-Register")];
const REGISTER_FLAGS: [(u8, &str); 4] = [(1, "Re-Register"), (2, "De-Register"), (3, "ACK"), (4, "NACK")];

impl Printer<'_> {
    pub(crate) fn mpcp(&mut self, bytes: Bytes<'_>) -> Result<(), Cut> {
        self.protocol = "mpcp";
        self.facts.protocol = Some("MPCP");
        let (opcode, time) = (bytes.u16(0)?, bytes.u32(2)?);
        let name = match opcode {
            PAUSE => "Pause",
            GATE => "Gate",
            REPORT => "Report",
            REQUEST => "Register Request",
            REGISTER => "Register",
            ACKNOWLEDGEMENT => "Register ACK",
            _ => "Unknown",
        };
        put!(self, "MPCP, Opcode {name}");
        if name == "Unknown" {
            put!(self, " ({opcode})");
        }
        if opcode != PAUSE {
            put!(self, ", Timestamp {time} ticks");
        }
        put!(self, ", length {}", bytes.len);
        if self.options.verbose == 0 {
            return Ok(());
        }
        let rest = bytes.from(HEADER);
        match opcode {
            PAUSE => {}
            GATE => self.mpcp_gate(rest)?,
            REPORT => put!(self, "\n\tTotal Queue-Sets {}", rest.u8(0)?),
            REQUEST => {
                let (flags, pending) = (rest.u8(0)?, rest.u8(1)?);
                self.mpcp_flags("\n\t", flags, &REQUEST_FLAGS);
                put!(self, ", Pending-Grants {pending}");
            }
            REGISTER => {
                let (port, flags) = (rest.u16(0)?, rest.u8(2)?);
                let (time, pending) = (rest.u16(3)?, rest.u8(5)?);
                put!(self, "\n\tAssigned-Port {port}");
                self.mpcp_flags(", ", flags, &REGISTER_FLAGS);
                put!(self, "\n\tSync-Time {time} ticks, Echoed-Pending-Grants {pending}");
            }
            ACKNOWLEDGEMENT => {
                let (flags, port, time) = (rest.u8(0)?, rest.u16(1)?, rest.u16(3)?);
                put!(self, "\n\tEchoed-Assigned-Port {port}");
                self.mpcp_flags(", ", flags, &[(1, "ACK")]);
                put!(self, "\n\tEchoed-Sync-Time {time} ticks");
            }
            _ => self.rows("\n\t", bytes.data),
        }
        Ok(())
    }

    /// Prints the names of all values whose bits are set.
    fn mpcp_flags(&mut self, before: &str, flags: u8, names: &[(u8, &str)]) {
        put!(self, "{before}Flags [ ");
        let mut comma = "";
        for (_, name) in names.iter().filter(|(value, _)| flags & value == *value) {
            put!(self, "{comma}{name}");
            comma = ", ";
        }
        self.text(if comma.is_empty() { "Reserved ]" } else { " ]" });
    }

    fn mpcp_gate(&mut self, bytes: Bytes<'_>) -> Result<(), Cut> {
        let first = bytes.u8(0)?;
        put!(self, "\n\tGrant Numbers {}, Flags [ ", first & GRANTS);
        match first & !GRANTS {
            0 => self.text("?"),
            flags => self.flag_names(flags, &GATE_FLAGS),
        }
        self.text(" ]");
        let mut rest = bytes.from(1);
        for number in 1..=first & GRANTS {
            let (start, duration) = (rest.u32(0)?, rest.u16(4)?);
            put!(self, "\n\tGrant #{number}, Start-Time {start} ticks, duration {duration} ticks");
            rest = rest.from(GRANT);
        }
        put!(self, "\n\tSync-Time {} ticks", rest.u16(0)?);
        Ok(())
    }
}
