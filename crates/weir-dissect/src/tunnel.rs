//! Encapsulated packets: GRE, VXLAN, Geneve, MPLS, PPPoE.

use crate::Printer;
use crate::bytes::{Bytes, Cut};
use crate::isis::ISIS;
use crate::names;
use crate::text::put;

impl Printer<'_> {
    /// Prints GRE (RFC 2784, RFC 2890) and version 1, used by PPTP (RFC 2637).
    pub(crate) fn gre(&mut self, bytes: Bytes<'_>) -> Result<(), Cut> {
        self.protocol = "gre";
        self.facts.protocol = Some("gre");
        let (flags, protocol) = (bytes.u16(0)?, bytes.u16(2));
        let version = flags & 7;
        put!(self, "GREv{version}");
        if version > 1 {
            put!(self, ", unknown-version, length {}", bytes.len);
            return Ok(());
        }
        let protocol = protocol?;
        let mut at = 4;
        if flags & 0xc000 != 0 && version == 0 {
            // The checksum and, with routing (RFC 1701), an offset share four bytes.
            bytes.get(at, 4)?;
            if self.options.verbose > 0 && flags & 0x8000 != 0 {
                put!(self, ", sum 0x{:x}", bytes.u16(at)?);
            }
            put!(self, ", off 0x{:x}", bytes.u16(at + 2)?);
            at += 4;
        }
        if flags & 0x2000 != 0 {
            match version {
                0 => put!(self, ", key=0x{:x}", bytes.u32(at)?),
                _ => put!(self, ", call {}", bytes.u16(at + 2)?),
            }
            at += 4;
        }
        if flags & 0x1000 != 0 {
            put!(self, ", seq {}", bytes.u32(at)?);
            at += 4;
        }
        if version == 1 && flags & 0x80 != 0 {
            put!(self, ", ack {}", bytes.u32(at)?);
            at += 4;
        }
        if self.options.link {
            put!(self, ", proto {} (0x{protocol:04x})", names::ethertype(protocol).unwrap_or("unknown"));
        }
        put!(self, ", length {}: ", bytes.len);
        let inner = bytes.from(at);
        if version == 0 && flags & 0x4000 != 0 {
            self.text("source-routed");
            return Ok(());
        }
        if !self.inner(protocol, inner)? {
            put!(self, "gre-proto-0x{protocol:x}");
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

    /// Prints VXLAN (RFC 7348). tcpdump breaks the line before the inner packet; weir prints one line per packet.
    pub(crate) fn vxlan(&mut self, bytes: Bytes<'_>) -> Result<(), Cut> {
        self.protocol = "vxlan";
        self.facts.protocol = Some("vxlan");
        self.text("VXLAN");
        let flags = bytes.u8(0)?;
        put!(self, ", flags [{}] (0x{flags:02x}), ", if flags & 8 != 0 { "I" } else { "." });
        put!(self, "vni {}: ", bytes.u24(4)?);
        bytes.get(0, 8)?;
        self.nested(|printer| printer.ethernet(bytes.from(8)))
    }

    /// Prints Geneve (RFC 8926).
    pub(crate) fn geneve(&mut self, bytes: Bytes<'_>) -> Result<(), Cut> {
        self.protocol = "geneve";
        self.facts.protocol = Some("geneve");
        let (first, flags, protocol) = (bytes.u8(0)?, bytes.u8(1)?, bytes.u16(2)?);
        self.text("Geneve");
        if first >> 6 != 0 {
            put!(self, " ERROR: unknown-version {}", first >> 6);
            return Ok(());
        }
        let letters = match flags >> 6 {
            0 => "none",
            1 => "C",
            2 => "O",
            _ => "OC",
        };
        put!(self, ", Flags [{letters}], vni 0x{:x}", bytes.u24(4)?);
        if self.options.link {
            put!(self, ", proto {} (0x{protocol:04x})", names::ethertype(protocol).unwrap_or("unknown"));
        }
        let options = usize::from(first & 0x3f) * 4;
        if options > 0 {
            put!(self, ", options [{options} bytes]");
            bytes.get(8, options)?;
        }
        self.text(": ");
        if !self.inner(protocol, bytes.from(8 + options))? {
            put!(self, "geneve-proto-0x{protocol:x}");
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
