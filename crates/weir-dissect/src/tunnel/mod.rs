//! Encapsulated packets: GRE, VXLAN, Geneve, MPLS, PPPoE.

mod l2tp;
mod nsh;
mod pptp;

use crate::Printer;
use crate::base::bytes::{Bytes, Cut};
use crate::base::names;
use crate::base::text::put;
use crate::routing::isis::ISIS;

/// What stands for OSI where GRE has an EtherType.
const OSI: u16 = 0xfe;
/// A route that consists of numbers of autonomous systems (RFC 1701).
const AUTONOMOUS_SYSTEMS: u16 = 0xfffe;
const GRE_FLAGS: [(u16, &str); 6] = [
    (0x8000, "checksum present"),
    (0x4000, "routing present"),
    (0x2000, "key present"),
    (0x1000, "sequence# present"),
    (0x0800, "source routing present"),
    (0x0080, "ack present"),
];
const GENEVE_FLAGS: [(u8, &str); 8] =
    [(0x80, "O"), (0x40, "C"), (0x20, "R1"), (0x10, "R2"), (8, "R3"), (4, "R4"), (2, "R5"), (1, "R6")];

impl Printer<'_> {
    /// Prints GRE (RFC 2784, RFC 2890) and version 1, used by PPTP (RFC 2637).
    pub(crate) fn gre(&mut self, bytes: Bytes<'_>) -> Result<(), Cut> {
        self.protocol = "gre";
        self.facts.protocol = Some("gre");
        let (flags, protocol) = (bytes.u16(0)?, bytes.u16(2));
        let version = flags & 7;
        put!(self, "GREv{version}");
        if version > 1 {
            self.text(" ERROR: unknown-version");
            return Ok(());
        }
        let verbose = self.options.verbose > 0;
        if verbose {
            self.text(", Flags [");
            self.flag_names(flags, &GRE_FLAGS);
            self.text("]");
        }
        let protocol = protocol?;
        let mut at = 4;
        if flags & 0xc000 != 0 && version == 0 {
            // The checksum and, with routing (RFC 1701), an offset share four bytes.
            let sum = bytes.u16(at)?;
            if verbose {
                put!(self, ", sum 0x{sum:x}");
            }
            put!(self, ", off 0x{:x}", bytes.u16(at + 2)?);
            at += 4;
        }
        if flags & 0x2000 != 0 {
            match version {
                0 => put!(self, ", key=0x{:x}", bytes.u32(at)?),
                _ => put!(self, ", call {}", bytes.u32(at)? & 0xffff),
            }
            at += 4;
        }
        let sequence = flags & 0x1000 != 0;
        if sequence {
            put!(self, ", seq {}", bytes.u32(at)?);
            at += 4;
        }
        if version == 0 && flags & 0x4000 != 0 {
            at += self.source_routes(bytes.from(at))?;
        }
        if version == 1 && flags & 0x80 != 0 {
            put!(self, ", ack {}", bytes.u32(at)?);
            at += 4;
        }
        let empty = version == 1 && !sequence;
        if empty {
            self.text(", no-payload");
        }
        if self.options.link {
            let name =
                if protocol == OSI { "GRE-OSI" } else { names::ethertype(protocol).unwrap_or("unknown") };
            put!(self, ", proto {name} (0x{protocol:04x})");
        }
        put!(self, ", length {}", bytes.len);
        if empty {
            return Ok(());
        }
        self.text(if verbose { "\n\t" } else { ": " });
        let inner = bytes.from(at);
        let known = match version {
            0 => matches!(protocol, names::IP4 | names::IP6 | names::MPLS | names::ETHERNET),
            _ => protocol == names::PPP,
        };
        if !(known && self.inner(protocol, inner)?) {
            put!(self, "gre-proto-0x{protocol:x}");
        }
        Ok(())
    }

    /// Prints the routes of a packet (RFC 1701) and returns their length.
    fn source_routes(&mut self, bytes: Bytes<'_>) -> Result<usize, Cut> {
        let mut at = 0;
        loop {
            let (family, offset, len) = (bytes.u16(at)?, bytes.u8(at + 2)?, bytes.u8(at + 3)?);
            at += 4;
            if len == 0 {
                return Ok(at);
            }
            let size = match family {
                names::IP4 => 4,
                AUTONOMOUS_SYSTEMS => 2,
                _ => 0,
            };
            match size {
                4 => self.text(", (rtaf=ip"),
                2 => self.text(", (rtaf=asn"),
                _ => put!(self, ", (rtaf=0x{family:x})"),
            }
            let len = usize::from(len);
            if size > 0 {
                let printed = self.source_route(size, offset.into(), bytes.from(at).first(len), len);
                self.text(")");
                printed?;
            }
            if bytes.len < at + len {
                return Err(Cut);
            }
            at += len;
        }
    }

    /// Prints the addresses or numbers of a route, with a star before the next one.
    fn source_route(&mut self, size: usize, offset: usize, bytes: Bytes<'_>, len: usize) -> Result<(), Cut> {
        if !offset.is_multiple_of(size) {
            put!(self, ", badoffset={offset}");
        } else if !len.is_multiple_of(size) {
            put!(self, ", badlength={len}");
        } else if offset >= len {
            put!(self, ", badoff/len={offset}/{len}");
        } else {
            for at in (0..len).step_by(size) {
                let star = if at == offset { "*" } else { "" };
                match size {
                    4 => {
                        let address = bytes.ip4(at)?;
                        put!(self, " {star}{address}");
                    }
                    _ => put!(self, " {star}{:x}", bytes.u16(at)?),
                }
            }
        }
        Ok(())
    }

    fn inner(&mut self, ethertype: u16, bytes: Bytes<'_>) -> Result<bool, Cut> {
        let mut known = false;
        self.nested(|printer| {
            known = printer.carried(ethertype, bytes)?;
            Ok(())
        })?;
        Ok(known || self.depth == crate::DEEPEST)
    }

    /// Prints VXLAN (RFC 7348). The inner packet has a line of its own.
    pub(crate) fn vxlan(&mut self, bytes: Bytes<'_>) -> Result<(), Cut> {
        self.protocol = "vxlan";
        self.facts.protocol = Some("vxlan");
        self.text("VXLAN");
        if bytes.len < 8 {
            self.text(" (invalid)");
            return Ok(());
        }
        let flags = bytes.u8(0)?;
        put!(self, ", flags [{}] (0x{flags:02x}), ", if flags & 8 != 0 { "I" } else { "invalid" });
        put!(self, "vni {}", bytes.u24(4)?);
        self.text("\n");
        bytes.get(0, 8)?;
        self.nested(|printer| printer.ethernet(bytes.from(8)))
    }

    /// Prints Geneve (RFC 8926).
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
        for (bit, name) in GENEVE_FLAGS {
            self.text(if flags & bit != 0 { name } else { "" });
        }
        self.text(if flags == 0 { "none]" } else { "]" });
        put!(self, ", vni 0x{:x}", bytes.u24(4)?);
        let reserved = bytes.u8(7)?;
        if reserved != 0 {
            put!(self, ", rsvd 0x{reserved:x}");
        }
        if self.options.link {
            put!(self, ", proto {} (0x{protocol:04x})", names::ethertype(protocol).unwrap_or("unknown"));
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

    /// Prints MPLS (RFC 3032). The label stack does not name its payload; the first byte shows an IP version.
    pub(crate) fn mpls(&mut self, bytes: Bytes<'_>) -> Result<(), Cut> {
        self.protocol = "mpls";
        self.facts.protocol = Some("mpls");
        self.text("MPLS");
        let between = if self.options.verbose > 0 { "\n\t" } else { " " };
        let mut rest = bytes;
        let mut before = " ";
        let label = loop {
            if rest.len == 0 {
                self.text(" (invalid)");
                return Ok(());
            }
            let entry = rest.u32(0)?;
            let (label, class, bottom, ttl) = (entry >> 12, entry >> 9 & 7, entry & 0x100 != 0, entry & 0xff);
            put!(self, "{before}(label {label}");
            before = between;
            if let Some(name) = reserved_label(label).filter(|_| self.options.verbose > 0) {
                put!(self, " ({name})");
            }
            put!(self, ", tc {class}{}, ttl {ttl})", if bottom { ", [S]" } else { "" });
            rest = rest.from(4);
            if bottom {
                break label;
            }
        };
        if rest.len == 0 {
            return Ok(());
        }
        // Explicit null labels name the next protocol; for all others it is guessed, as routers do.
        let first = rest.u8(0)?;
        let ethertype = match (label, first >> 4) {
            (0, _) => names::IP4,
            (2, _) => names::IP6,
            (_, 4) => names::IP4,
            (_, 6) => names::IP6,
            _ if first == ISIS => {
                self.text(between);
                return self.isis(rest);
            }
            _ => {
                self.unknown(rest.data);
                return Ok(());
            }
        };
        self.text(between);
        self.inner(ethertype, rest).map(drop)
    }

    /// Prints PPPoE (RFC 2516).
    pub(crate) fn pppoe(&mut self, ethertype: u16, bytes: Bytes<'_>) -> Result<(), Cut> {
        self.protocol = "pppoe";
        self.facts.protocol = Some("pppoe");
        self.text("PPPoE ");
        let (code, session, len) = (bytes.u8(1)?, bytes.u16(2)?, usize::from(bytes.u16(4)?));
        match code {
            0 => {}
            0x07 => self.text("PADO"),
            0x09 => self.text("PADI"),
            0x19 => self.text("PADR"),
            0x65 => self.text("PADS"),
            0xa7 => self.text("PADT"),
            _ => put!(self, "code 0x{code:02x}"),
        }
        if session != 0 {
            put!(self, " [ses 0x{session:x}]");
        }
        let inner = bytes.from(6).first(len);
        if ethertype == names::PPPOE_SESSION {
            self.text(" ");
            return self.nested(|printer| printer.ppp(inner));
        }
        let mut rest = inner;
        while rest.len > 0 {
            let (kind, len) = (rest.u16(0)?, usize::from(rest.u16(2)?));
            self.pppoe_tag(kind, rest.from(4).first(len))?;
            if kind == 0 {
                break;
            }
            rest = rest.from(4 + len);
        }
        Ok(())
    }

    fn pppoe_tag(&mut self, kind: u16, value: Bytes<'_>) -> Result<(), Cut> {
        let name = match kind {
            0 => "EOL",
            0x0101 => "Service-Name",
            0x0102 => "AC-Name",
            0x0103 => "Host-Uniq",
            0x0104 => "AC-Cookie",
            0x0105 => "Vendor-Specific",
            0x0110 => "Relay-Session-ID",
            0x0201 => "Service-Name-Error",
            0x0202 => "AC-System-Error",
            0x0203 => "Generic-Error",
            _ => "Unknown",
        };
        put!(self, " [{name}");
        if value.len > 0 {
            let data = value.get(0, value.len)?;
            if data.iter().all(|byte| (0x20..0x7f).contains(byte)) {
                self.text(" \"");
                self.harmless(data);
                self.text("\"");
            } else {
                self.text(" 0x");
                data.iter().for_each(|&byte| self.hex_byte(byte));
            }
        }
        self.text("]");
        Ok(())
    }
}

/// Returns the name of a reserved label (RFC 3032, section 2.1).
fn reserved_label(label: u32) -> Option<&'static str> {
    match label {
        0 => Some("IPv4 explicit NULL"),
        1 => Some("router alert"),
        2 => Some("IPv6 explicit NULL"),
        3 => Some("implicit NULL"),
        _ => None,
    }
}
