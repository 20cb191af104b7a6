//! The spanning tree protocols (IEEE 802.1D, 802.1w, 802.1s).

use crate::Printer;
use crate::base::bytes::{Bytes, Cut, until_zero};
use crate::base::text::put;

/// Kinds of BPDU.
const CONFIGURATION: u8 = 0;
const RAPID: u8 = 2;
const CHANGE: u8 = 0x80;
/// Versions.
const MULTIPLE: u8 = 3;

/// Length of a configuration, and of a multiple spanning tree without further trees.
const CONFIGURATION_LEN: usize = 35;
const MULTIPLE_LEN: usize = 102;
/// Where what the length of version 3 counts begins, and the length of a tree in it.
const COUNTED: usize = 38;
const INSTANCE: usize = 16;

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
        if bytes.u16(0)? != 0 {
            put!(self, "unknown STP version, length {}", bytes.len);
            return Ok(());
        }
        let version = bytes.u8(2)?;
        self.text("STP ");
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
        let kind = bytes.u8(3)?;
        match kind {
            CONFIGURATION => self.text(", Config"),
            RAPID => self.text(", Rapid STP"),
            CHANGE => {
                self.text(", Topology Change");
                return Ok(());
            }
            _ => {
                put!(self, ", Unknown BPDU Type (0x{kind:02x})");
                return Ok(());
            }
        }
        // A rapid one has the length of version 1 as well.
        if bytes.len < CONFIGURATION_LEN + usize::from(version == 2 && kind == RAPID) {
            self.text(" (invalid)");
            return Ok(());
        }
        match (version, kind) {
            (0, RAPID) => Ok(()),
            (MULTIPLE.., RAPID) => self.multiple(bytes),
            _ => self.configuration(version, bytes),
        }
    }

    /// Prints the priority and the address of a bridge.
    fn bridge(&mut self, what: &str, bytes: Bytes<'_>, at: usize) -> Result<(), Cut> {
        let (priority, address) = (bytes.u16(at)?, bytes.mac(at + 2)?);
        put!(self, "{what}{priority:04x}.");
        self.mac(address);
        Ok(())
    }

    /// Prints the four times, in units of 1/256 s.
    fn times(&mut self, bytes: Bytes<'_>) -> Result<(), Cut> {
        bytes.get(27, 8)?;
        let names = ["\n\tmessage-age ", ", max-age ", ", hello-time ", ", forwarding-delay "];
        for (number, name) in names.into_iter().enumerate() {
            let time = f64::from(bytes.u16(27 + number * 2)?) / 256.0;
            put!(self, "{name}{time:.2}s");
        }
        Ok(())
    }

    fn configuration(&mut self, version: u8, bytes: Bytes<'_>) -> Result<(), Cut> {
        let flags = bytes.u8(4)?;
        self.text(", Flags [");
        self.flag_names(flags, &FLAGS);
        self.text("]");
        let port = bytes.u16(25)?;
        self.bridge(", bridge-id ", bytes, 17)?;
        put!(self, ".{port:04x}, length {}", bytes.len);
        if self.options.verbose == 0 {
            return Ok(());
        }
        self.times(bytes)?;
        self.bridge("\n\troot-id ", bytes, 5)?;
        put!(self, ", root-pathcost {}", bytes.u32(13)?);
        if version == 2 {
            put!(self, ", port-role {}", ROLES[usize::from(flags >> 2 & 3)]);
        }
        Ok(())
    }

    fn multiple(&mut self, bytes: Bytes<'_>) -> Result<(), Cut> {
        if bytes.len < MULTIPLE_LEN || bytes.u8(35)? != 0 {
            self.text(" (invalid)");
            return Ok(());
        }
        let rest = usize::from(bytes.u16(36)?);
        let instances = bytes.from(MULTIPLE_LEN).first(rest.saturating_sub(MULTIPLE_LEN - COUNTED));
        if bytes.len < COUNTED + rest {
            self.text(" (invalid)");
            return Ok(());
        }
        let flags = bytes.u8(4)?;
        self.text(", CIST Flags [");
        self.flag_names(flags, &FLAGS);
        put!(self, "], length {}", bytes.len);
        if self.options.verbose == 0 {
            return Ok(());
        }
        put!(self, "\n\tport-role {}", ROLES[usize::from(flags >> 2 & 3)]);
        self.bridge(", CIST root-id ", bytes, 5)?;
        put!(self, ", CIST ext-pathcost {}", bytes.u32(13)?);
        self.bridge("\n\tCIST regional-root-id ", bytes, 17)?;
        put!(self, ", CIST port-id {:04x},", bytes.u16(25)?);
        self.times(bytes)?;
        put!(self, "\n\tv3len {}, MCID Name ", bytes.u16(36)?);
        let name = bytes.from(39).first(32);
        self.harmless(until_zero(name.data));
        name.get(0, 32)?;
        let (revision, digest) = (bytes.u16(71)?, bytes.get(73, 16)?);
        put!(self, ", rev {revision},\n\t\tdigest ");
        digest.iter().for_each(|&byte| self.hex_byte(byte));
        self.text(", ");
        put!(self, "CIST int-root-pathcost {},", bytes.u32(89)?);
        self.bridge("\n\tCIST bridge-id ", bytes, 93)?;
        self.text(", ");
        put!(self, "CIST remaining-hops {}", bytes.u8(101)?);
        self.instances(instances)
    }

    /// Prints the trees beside the common one.
    fn instances(&mut self, mut rest: Bytes<'_>) -> Result<(), Cut> {
        while rest.len >= INSTANCE {
            let (flags, root) = (rest.u8(0)?, rest.u16(1)?);
            put!(self, "\n\tMSTI {}, Flags [", root & 0xfff);
            self.flag_names(flags, &FLAGS);
            put!(self, "], port-role {}", ROLES[usize::from(flags >> 2 & 3)]);
            let cost = rest.u32(9)?;
            self.bridge("\n\t\tMSTI regional-root-id ", rest, 1)?;
            put!(self, ", pathcost {cost}");
            let (bridge, port, hops) = (rest.u8(13)? >> 4, rest.u8(14)? >> 4, rest.u8(15)?);
            put!(self, "\n\t\tMSTI bridge-prio {bridge}, port-prio {port}, hops {hops}");
            rest = rest.from(INSTANCE);
        }
        Ok(())
    }
}
