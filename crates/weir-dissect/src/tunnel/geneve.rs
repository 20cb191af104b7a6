//! Geneve (RFC 8926).

use crate::Printer;
use crate::base::bytes::{Bytes, Cut};
use crate::base::text::put;
use crate::registry::ethertypes;

const FLAGS: [(u8, &str); 8] =
    [(0x80, "O"), (0x40, "C"), (0x20, "R1"), (0x10, "R2"), (8, "R3"), (4, "R4"), (2, "R5"), (1, "R6")];

impl Printer<'_> {
    pub(crate) fn geneve(&mut self, bytes: Bytes<'_>) -> Result<(), Cut> {
        self.protocol = "geneve";
        self.facts.protocol = Some("geneve");
        self.text("Geneve");
        if bytes.len < 8 {
            put!(self, " [length {} < 8] (invalid)", bytes.len);
            return Ok(());
        }
        bytes.get(0, 8)?;
        let (first, flags, protocol) = (bytes.u8(0)?, bytes.u8(1)?, bytes.u16(2)?);
        if first >> 6 != 0 {
            put!(self, " ERROR: unknown-version {}", first >> 6);
            return Ok(());
        }
        self.text(", Flags [");
        for (bit, name) in FLAGS {
            self.text(if flags & bit != 0 { name } else { "" });
        }
        self.text(if flags == 0 { "none]" } else { "]" });
        put!(self, ", vni 0x{:x}", bytes.u24(4)?);
        let reserved = bytes.u8(7)?;
        if reserved != 0 {
            put!(self, ", rsvd 0x{reserved:x}");
        }
        if self.options.link {
            put!(self, ", proto {} (0x{protocol:04x})", ethertypes::name(protocol).unwrap_or("unknown"));
        }
        let options = usize::from(first & 0x3f) * 4;
        if bytes.len < 8 + options {
            put!(self, " truncated-geneve - {} bytes missing", 8 + options - bytes.len);
            return Ok(());
        }
        bytes.get(8, options)?;
        let verbose = self.options.verbose > 0;
        if options > 0 {
            self.text(", options [");
            match verbose {
                true => self.geneve_options(bytes.from(8).first(options))?,
                false => put!(self, "{options} bytes"),
            }
            self.text("]");
        }
        self.text(if verbose { "\n\t" } else { ": " });
        if !self.inner(protocol, bytes.from(8 + options))? {
            put!(self, "geneve-proto-0x{protocol:x}");
        }
        Ok(())
    }

    fn geneve_options(&mut self, mut rest: Bytes<'_>) -> Result<(), Cut> {
        let mut before = "";
        while rest.len > 0 {
            let (class, kind, len) = (rest.u16(0)?, rest.u8(2)?, 4 + usize::from(rest.u8(3)? & 0x1f) * 4);
            let name = match class {
                ..0x100 => "Standard",
                0x100 => "Linux",
                0x101 => "Open vSwitch",
                0x102 => "Open Virtual Networking (OVN)",
                0x103 => "In-band Network Telemetry (INT)",
                0x104 => "VMware",
                0xfff0.. => "Experimental",
                _ => "Unknown",
            };
            let critical = if kind & 0x80 != 0 { "(C)" } else { "" };
            put!(self, "{before}class {name} (0x{class:x}) type 0x{kind:x}{critical} len {len}");
            if len > rest.len {
                self.text(" [bad length]");
                return Ok(());
            }
            if self.options.verbose > 1 && len > 4 {
                self.text(" data");
                for at in (4..len).step_by(4) {
                    put!(self, " {:08x}", rest.u32(at)?);
                }
            }
            rest = rest.from(len);
            before = ", ";
        }
        Ok(())
    }
}
