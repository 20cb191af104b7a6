//! IPv6 and its extension headers (RFC 8200).

use std::net::Ipv6Addr;

use weir_packet::protocol::{AUTHENTICATION, DESTINATION, FRAGMENT, HOP_BY_HOP, ROUTING, SCTP, TCP, UDP};

use crate::Printer;
use crate::base::bytes::{Bytes, Cut};
use crate::base::segment::Around;
use crate::base::text::put;
use crate::registry::protocols;

impl Printer<'_> {
    pub(crate) fn ip6(&mut self, bytes: Bytes<'_>) -> Result<(), Cut> {
        self.protocol = "ip6";
        self.facts.protocol = Some("ip6");
        let first = bytes.u32(0)?;
        bytes.get(0, 40)?;
        if !self.options.link {
            self.text("IP6 ");
        }
        if first >> 28 != 6 {
            put!(self, "version error: {} != 6", first >> 28);
            return Ok(());
        }
        let (mut len, next, hops) = (usize::from(bytes.u16(4)?), bytes.u8(6)?, bytes.u8(7)?);
        // A jumbogram has its length in an option.
        if len == 0 {
            len = bytes.len - 40;
        }
        if bytes.len < len + 40 {
            put!(self, "truncated-ip6 - {} bytes missing!", len + 40 - bytes.len);
        }
        let (source, destination) = (bytes.ip6(8)?.into(), bytes.ip6(24)?.into());
        self.facts.source.get_or_insert(source);
        self.facts.destination.get_or_insert(destination);
        self.facts.ttl.get_or_insert(hops);
        if self.options.verbose > 0 {
            self.text("(");
            let (class, flow) = (first >> 20 & 0xff, first & 0xf_ffff);
            if class != 0 {
                put!(self, "class 0x{class:02x}, ");
            }
            if flow != 0 {
                put!(self, "flowlabel 0x{flow:05x}, ");
            }
            let name = protocols::name(next).unwrap_or("unknown");
            put!(self, "hlim {hops}, next-header {name} ({next}) payload length: {len}) ");
        }
        let around = Around { source, destination, ttl: hops, fragment: false, shown: false };
        self.extensions(next, around, bytes.from(40).first(len))
    }

    /// Prints the extension headers, then the payload.
    fn extensions(&mut self, mut next: u8, mut around: Around, mut bytes: Bytes<'_>) -> Result<(), Cut> {
        if !matches!(next, TCP | UDP | SCTP) {
            self.addresses(around.source, around.destination);
            around.shown = true;
        }
        loop {
            let len = match next {
                HOP_BY_HOP | DESTINATION => {
                    let (name, protocol) =
                        if next == DESTINATION { ("DSTOPT ", "dstopt") } else { ("HBH ", "hbhopt") };
                    self.protocol = protocol;
                    let len = (usize::from(bytes.u8(1)?) + 1) * 8;
                    bytes.get(0, len)?;
                    self.text(name);
                    if self.options.verbose > 0 {
                        self.ip6_options(bytes.from(2).first(len - 2))?;
                        self.text(" ");
                    }
                    len
                }
                ROUTING => {
                    let (len, last) = self.routing(bytes)?;
                    // Checksums are those of the last destination.
                    around.destination = last.map_or(around.destination, Into::into);
                    len
                }
                FRAGMENT => {
                    self.protocol = "frag6";
                    let offset = usize::from(bytes.u16(2)? & !7);
                    let more = bytes.u16(2)? & 1 != 0;
                    let id = bytes.u32(4)?;
                    let rest = bytes.len.saturating_sub(8);
                    match self.options.verbose > 0 {
                        true => put!(self, "frag (0x{id:08x}:{offset}|{rest}) "),
                        false => put!(self, "frag ({offset}|{rest})"),
                    }
                    around.fragment |= more;
                    if offset > 0 {
                        // tcpdump ends the line of a later fragment without a space.
                        if self.options.verbose > 0 {
                            self.line.pop();
                        }
                        self.facts.later_fragment |= self.depth == 0;
                        self.facts.ip_protocol.get_or_insert(bytes.u8(0)?);
                        return Ok(());
                    }
                    if self.options.verbose == 0 {
                        self.text(" ");
                    }
                    8
                }
                AUTHENTICATION => return self.authentication(around, bytes),
                _ => return self.ip_payload(next, around, bytes),
            };
            next = bytes.u8(0)?;
            bytes = bytes.from(len);
        }
    }

    fn ip6_options(&mut self, mut rest: Bytes<'_>) -> Result<(), Cut> {
        while rest.len > 0 {
            let kind = rest.u8(0)?;
            if kind == 0 {
                self.text("(pad1)");
                rest = rest.from(1);
                continue;
            }
            let len = usize::from(rest.u8(1)?) + 2;
            match kind {
                1 => self.text("(padn)"),
                5 => put!(self, "(rtalert: 0x{:04x}) ", rest.u16(2)?),
                0xc2 => put!(self, "(jumbo: {}) ", rest.u32(2)?),
                0xc9 => {
                    let home = rest.ip6(2)?;
                    self.text("(homeaddr: ");
                    self.ip6_address(home);
                    self.text(")");
                }
                _ => put!(self, "(opt_type 0x{kind:02x}: len={})", len - 2),
            }
            rest = rest.from(len);
        }
        Ok(())
    }

    /// Prints a routing header; returns its length, and the last destination if it is not the current one.
    fn routing(&mut self, bytes: Bytes<'_>) -> Result<(usize, Option<Ipv6Addr>), Cut> {
        self.protocol = "rt6";
        let (len, kind, left) = (bytes.u8(1)?, bytes.u8(2)?, bytes.u8(3)?);
        let size = (usize::from(len) + 1) * 8;
        bytes.get(0, size)?;
        let deprecated = if kind == 0 { " [Deprecated]" } else { "" };
        put!(self, "RT6 (len={len}, type={kind}{deprecated}, segleft={left}");
        if self.options.verbose > 0 && matches!(kind, 0 | 2) {
            put!(self, ", rsv=0x{:x}", bytes.u32(4)?);
        }
        if kind == 4 {
            put!(self, ", last-entry={}", bytes.u8(4)?);
            if self.options.verbose > 0 {
                put!(self, ", flags=0x{:x}", bytes.u8(5)?);
            }
            put!(self, ", tag={:x}", bytes.u16(6)?);
        }
        if matches!(kind, 0 | 2 | 4) {
            for number in 0..(size - 8) / 16 {
                put!(self, ", [{number}]");
                self.ip6_address(bytes.ip6(8 + number * 16)?);
            }
        }
        self.text(") ");
        // Type 4 has its segments in reverse order.
        let last = match kind {
            0 | 2 if left > 0 && size >= 24 => Some(bytes.ip6(size - 16)?),
            4 if left > 0 && size >= 24 => Some(bytes.ip6(8)?),
            _ => None,
        };
        Ok((size, last))
    }
}
