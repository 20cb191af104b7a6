//! The spanning tree protocols (IEEE 802.1D, 802.1w, 802.1s).

use crate::Printer;
use crate::bytes::{Bytes, Cut};
use crate::text::put;

/// Kinds of BPDU.
const CONFIGURATION: u8 = 0;
const RAPID: u8 = 2;
const CHANGE: u8 = 0x80;
/// Versions.
const MULTIPLE: u8 = 3;

/// Length of a configuration, and where the fields of a multiple spanning tree begin.
const CONFIGURATION_LEN: usize = 35;
const MULTIPLE_LEN: usize = 102;

const FLAGS: [(u8, &str); 6] = [
    (0x01, "Topology change"),
    (0x02, "Proposal"),
    (0x10, "Learn"),
    (0x20, "Forward"),
    (0x40, "Agreement"),
    (0x80, "Topology change ACK"),
];
const ROLES: [&str; 4] = ["Unknown", "Alternate", "Root", "Designated"];

impl Printer<'_> {
    pub(crate) fn stp(&mut self, bytes: Bytes<'_>) -> Result<(), Cut> {
        self.protocol = "stp";
        self.facts.protocol = Some("stp");
        if bytes.len < 4 {
            self.text(" (invalid)");
            return Ok(());
        }
        let (protocol, version, kind) = (bytes.u16(0)?, bytes.u8(2)?, bytes.u8(3)?);
        self.text("STP ");
        if protocol != 0 {
            put!(self, "unknown protocol (0x{protocol:04x})");
            return Ok(());
        }
        match version {
            0 => self.text("802.1d"),
            2 => self.text("802.1w"),
            3 => self.text("802.1s"),
            4 => self.text("802.1aq"),
            _ => {
                put!(self, "Unknown STP protocol (0x{version:02x})");
                return Ok(());
            }
        }
        match kind {
            CONFIGURATION => self.text(", Config"),
            RAPID => self.text(", Rapid STP"),
            CHANGE => {
                self.text(", Topology Change");
                return Ok(());
            }
            _ => {
                put!(self, ", Unknown (0x{kind:02x})");
                return Ok(());
            }
        }
        if bytes.len < CONFIGURATION_LEN {
            self.text(" (invalid)");
            return Ok(());
        }
        match (version, kind) {
            (MULTIPLE, RAPID) if bytes.len >= MULTIPLE_LEN => self.multiple(bytes),
            _ => self.configuration(kind, bytes),
        }
    }

    /// Prints the priority and the address of a bridge.
    fn bridge(&mut self, bytes: Bytes<'_>, at: usize) -> Result<(), Cut> {
        put!(self, "{:04x}.", bytes.u16(at)?);
        self.mac(bytes.mac(at + 2)?);
        Ok(())
    }

    /// Prints the four times, in units of 1/256 s.
    fn times(&mut self, bytes: Bytes<'_>) -> Result<(), Cut> {
        let names = ["message-age ", ", max-age ", ", hello-time ", ", forwarding-delay "];
        for (number, name) in names.into_iter().enumerate() {
            let time = f64::from(bytes.u16(27 + number * 2)?) / 256.0;
            put!(self, "{name}{time:.2}s");
        }
        Ok(())
    }

    fn configuration(&mut self, kind: u8, bytes: Bytes<'_>) -> Result<(), Cut> {
        let flags = bytes.u8(4)?;
        self.text(", Flags [");
        self.flag_names(flags, &FLAGS);
        self.text("], bridge-id ");
        self.bridge(bytes, 17)?;
        put!(self, ".{:04x}, length {}", bytes.u16(25)?, bytes.len);
        if self.options.verbose == 0 {
            return Ok(());
        }
        self.text("\n\t");
        self.times(bytes)?;
        self.text("\n\troot-id ");
        self.bridge(bytes, 5)?;
        put!(self, ", root-pathcost {}", bytes.u32(13)?);
        if kind == RAPID {
            put!(self, ", port-role {}", ROLES[usize::from(flags >> 2 & 3)]);
        }
        Ok(())
    }

    fn multiple(&mut self, bytes: Bytes<'_>) -> Result<(), Cut> {
        let flags = bytes.u8(4)?;
        self.text(", CIST Flags [");
        self.flag_names(flags, &FLAGS);
        put!(self, "], length {}", bytes.len);
        if self.options.verbose == 0 {
            return Ok(());
        }
        put!(self, "\n\tport-role {}, CIST root-id ", ROLES[usize::from(flags >> 2 & 3)]);
        self.bridge(bytes, 5)?;
        put!(self, ", CIST ext-pathcost {}\n\tCIST regional-root-id ", bytes.u32(13)?);
        self.bridge(bytes, 17)?;
        put!(self, ", CIST port-id {:04x},\n\t", bytes.u16(25)?);
        self.times(bytes)?;
        put!(self, "\n\tv3len {}, MCID Name ", bytes.u16(36)?);
        let name = bytes.get(39, 32)?;
        self.harmless(name.split(|&byte| byte == 0).next().unwrap_or_default());
        put!(self, ", rev {},\n\t\tdigest ", bytes.u16(71)?);
        bytes.get(73, 16)?.iter().for_each(|&byte| self.hex_byte(byte));
        put!(self, ", CIST int-root-pathcost {},\n\tCIST bridge-id ", bytes.u32(89)?);
        self.bridge(bytes, 93)?;
        put!(self, ", CIST remaining-hops {}", bytes.u8(101)?);
        Ok(())
    }
}
