//! Chains of services: the network service header (RFC 8300), and VXLAN-GPE, which can carry it.

use weir_packet::ethertype;

use crate::Printer;
use crate::base::bytes::{Bytes, Cut};
use crate::base::text::put;

const HEADER: usize = 8;
const GPE_FLAGS: [(u8, &str); 4] = [(8, "I"), (4, "P"), (2, "B"), (1, "O")];
const ETHERNET: u8 = 3;
const NSH: u8 = 4;

impl Printer<'_> {
    pub(crate) fn nsh(&mut self, bytes: Bytes<'_>) -> Result<(), Cut> {
        self.protocol = "nsh";
        self.facts.protocol = Some("nsh");
        if bytes.len < HEADER {
            put!(self, " (packet length {} < {HEADER}) (invalid)", bytes.len);
            return Ok(());
        }
        let word = bytes.u32(0)?;
        let [first, _, third, next] = word.to_be_bytes();
        let (version, time, kind) = (first >> 6, word >> 22 & 0x3f, third & 15);
        let words = (word >> 16 & 0x3f) as usize;
        let verbose = self.options.verbose;
        self.text("NSH, ");
        if verbose > 1 {
            put!(self, "ver {version}, ");
        }
        if version != 0 {
            return Ok(());
        }
        self.text(if first & 0x20 != 0 { "flags [O], " } else { "flags [none], " });
        if verbose > 2 {
            put!(self, "TTL {time}, length {words}, md type ");
            match kind {
                0 => self.text("reserved, "),
                1 | 2 => put!(self, "{kind}, "),
                15 => self.text("experimental, "),
                _ => put!(self, "unknown (0x{kind:02x}), "),
            }
        }
        if verbose > 1 {
            self.text("next-protocol ");
            self.text(match next {
                1 => "IPv4, ",
                2 => "IPv6, ",
                ETHERNET => "Ethernet, ",
                NSH => "NSH, ",
                5 => "MPLS, ",
                0xfe => "Experiment 1, ",
                0xff => "Experiment 2, ",
                _ => "",
            });
            if !matches!(next, 1..=5 | 0xfe | 0xff) {
                put!(self, "unknown (0x{next:02x}), ");
            }
        }
        if bytes.len < words * 4 {
            put!(self, " (too many headers for packet length {}) (invalid)", bytes.len);
            return Ok(());
        }
        put!(self, "service-path-id 0x{:06x}, ", bytes.u24(4)?);
        put!(self, "service-index 0x{:x}", bytes.u8(7)?);
        if words < 2 {
            self.text(" (less than two headers) (invalid)");
            return Ok(());
        }
        let context = bytes.from(HEADER).first(words * 4 - HEADER);
        if verbose > 2 && !self.nsh_context(kind, context)? {
            self.text(" (invalid)");
            return Ok(());
        }
        context.get(0, context.len)?;
        self.text(if verbose > 0 { "\n    " } else { ": " });
        self.service_payload(next, bytes.from(words * 4)).map(drop)
    }

    /// Returns whether the lengths are right.
    fn nsh_context(&mut self, kind: u8, context: Bytes<'_>) -> Result<bool, Cut> {
        match kind {
            1 if context.len != 16 => {
                self.text(" (invalid length for the MD type)");
                return Ok(false);
            }
            1 => {
                for number in 0..4 {
                    let word = context.u32(number * 4)?;
                    put!(self, "\n        Context[{number:02}]: 0x{word:08x}");
                }
            }
            2 => {
                let mut rest = context;
                while rest.len > 0 {
                    let (class, kind, len) = (rest.u16(0)?, rest.u8(2)?, usize::from(rest.u8(3)? & 0x7f));
                    put!(self, "\n        TLV Class {class}, Type {kind}, Len {len}");
                    let padded = len.next_multiple_of(4);
                    if rest.len < 4 + padded {
                        self.text(" (length too big)");
                        return Ok(false);
                    }
                    self.text(if len > 0 { "\n            Value: " } else { "" });
                    let mut before = "0x";
                    for at in 0..len {
                        put!(self, "{before}{:02x}", rest.u8(4 + at)?);
                        before = ":";
                    }
                    rest.get(4, padded)?;
                    rest = rest.from(4 + padded);
                }
            }
            _ => {}
        }
        Ok(true)
    }

    /// Prints what follows the headers; returns whether it is known.
    fn service_payload(&mut self, protocol: u8, bytes: Bytes<'_>) -> Result<bool, Cut> {
        let mut known = true;
        self.nested(|printer| match protocol {
            1 => printer.carried(ethertype::IPV4, bytes).map(drop),
            2 => printer.carried(ethertype::IPV6, bytes).map(drop),
            ETHERNET => printer.ethernet(bytes),
            _ => {
                printer.text("ERROR: unknown-next-protocol");
                known = false;
                Ok(())
            }
        })?;
        Ok(known)
    }

    /// Prints VXLAN-GPE (draft-ietf-nvo3-vxlan-gpe).
    pub(crate) fn vxlan_gpe(&mut self, bytes: Bytes<'_>) -> Result<(), Cut> {
        self.protocol = "vxlan_gpe";
        self.facts.protocol = Some("vxlan-gpe");
        self.text("VXLAN-GPE, ");
        if bytes.len < HEADER {
            put!(self, " (len {} < {HEADER}) (invalid)", bytes.len);
            return Ok(());
        }
        let flags = bytes.u8(0)?;
        self.text("flags [");
        GPE_FLAGS.iter().filter(|(bit, _)| flags & bit != 0).for_each(|(_, name)| self.text(name));
        self.text(if flags & 15 == 0 { "none], " } else { "], " });
        bytes.get(0, HEADER)?;
        let next = bytes.u8(3)?;
        put!(self, "vni {}", bytes.u24(4)?);
        self.text(if self.options.verbose > 0 { "\n    " } else { ": " });
        let inner = bytes.from(HEADER);
        if next == NSH {
            return self.nested(|printer| printer.nsh(inner));
        }
        if !self.service_payload(next, inner)? {
            self.text(" (invalid)");
        }
        Ok(())
    }
}
