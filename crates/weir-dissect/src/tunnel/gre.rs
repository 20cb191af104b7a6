//! GRE (RFC 2784, RFC 2890), and version 1, which PPTP uses (RFC 2637).

use weir_packet::ethertype;

use crate::Printer;
use crate::base::bytes::{Bytes, Cut};
use crate::base::text::put;
use crate::registry::ethertypes::{self, PPP};

/// What stands for OSI where GRE has an EtherType.
const OSI: u16 = 0xfe;
/// A route that consists of numbers of autonomous systems (RFC 1701).
const AUTONOMOUS_SYSTEMS: u16 = 0xfffe;
const FLAGS: [(u16, &str); 6] = [
    (0x8000, "checksum present"),
    (0x4000, "routing present"),
    (0x2000, "key present"),
    (0x1000, "sequence# present"),
    (0x0800, "source routing present"),
    (0x0080, "ack present"),
];

impl Printer<'_> {
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
            self.flag_names(flags, &FLAGS);
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
                if protocol == OSI { "GRE-OSI" } else { ethertypes::name(protocol).unwrap_or("unknown") };
            put!(self, ", proto {name} (0x{protocol:04x})");
        }
        put!(self, ", length {}", bytes.len);
        if empty {
            return Ok(());
        }
        self.text(if verbose { "\n\t" } else { ": " });
        let inner = bytes.from(at);
        let known = match version {
            0 => matches!(protocol, ethertype::IPV4 | ethertype::IPV6 | ethertype::MPLS | ethertype::BRIDGED),
            _ => protocol == PPP,
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
                ethertype::IPV4 => 4,
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
}
