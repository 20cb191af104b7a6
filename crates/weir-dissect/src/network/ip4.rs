//! IPv4 (RFC 791).

use weir_packet::protocol::{SCTP, TCP, UDP};

use crate::Printer;
use crate::base::bytes::{Bytes, Cut};
use crate::base::checksum;
use crate::base::segment::Around;
use crate::base::text::put;
use crate::registry::protocols;

impl Printer<'_> {
    pub(crate) fn ip4(&mut self, bytes: Bytes<'_>) -> Result<(), Cut> {
        self.protocol = "ip";
        self.facts.protocol = Some("ip");
        let first = bytes.u8(0)?;
        let version = first >> 4;
        if version != 4 {
            let wrong = if version == 6 { ", wrong link-layer encapsulation" } else { "" };
            put!(self, "IP{version}{wrong} (invalid)");
            return Ok(());
        }
        if !self.options.link {
            self.text("IP ");
        }
        let header = usize::from(first & 15) * 4;
        if bytes.len < 20 {
            return Err(Cut);
        }
        if header < 20 {
            put!(self, "bad-hlen {header}");
            return Ok(());
        }
        let mut len = usize::from(bytes.u16(2)?);
        // Packets awaiting segmentation by the network card have a length of 0.
        if len == 0 {
            len = bytes.len;
        }
        if bytes.len < len {
            put!(self, "truncated-ip - {} bytes missing! ", len - bytes.len);
        }
        if len < header {
            put!(self, "bad-len {len}");
            return Ok(());
        }
        // What is missing counts: the lengths of the payload are those in the header.
        bytes.get(0, 20)?;
        let bytes = bytes.sized(len);
        let (id, fragment, ttl, protocol) = (bytes.u16(4)?, bytes.u16(6)?, bytes.u8(8)?, bytes.u8(9)?);
        let offset = usize::from(fragment & 0x1fff) * 8;
        let more = fragment & 0x2000 != 0;
        if self.options.verbose > 0 {
            let tos = bytes.u8(1)?;
            put!(self, "(tos 0x{tos:x}{}, ttl {ttl}, id {id}, offset {offset}", congestion(tos));
            let flags = match fragment >> 13 {
                0 => "none",
                1 => "+",
                2 => "DF",
                3 => "+, DF",
                4 => "rsvd",
                _ => "rsvd, ...",
            };
            let name = protocols::name(protocol).unwrap_or("unknown");
            put!(self, ", flags [{flags}], proto {name} ({protocol}), length {len}");
            if header > 20 {
                self.text(", options (");
                self.ip4_options(bytes.from(20).first(header - 20))?;
                self.text(")");
            }
            if !self.options.unverified
                && let Ok(head) = bytes.get(0, header)
                && checksum::sum(&[head]) != 0xffff
            {
                let (given, right) = (bytes.u16(10)?, !checksum::sum(&[&head[..10], &head[12..]]));
                put!(self, ", bad cksum {given:x} (->{right:x})!");
            }
            self.text(")\n    ");
        }
        let (source, destination) = (bytes.ip4(12)?.into(), bytes.ip4(16)?.into());
        self.facts.source.get_or_insert(source);
        self.facts.destination.get_or_insert(destination);
        self.facts.ttl.get_or_insert(ttl);
        if offset > 0 {
            self.facts.later_fragment |= self.depth == 0;
            self.facts.ip_protocol.get_or_insert(protocol);
            self.addresses(source, destination);
            self.ip_protocol(protocol);
            return Ok(());
        }
        if !matches!(protocol, TCP | UDP | SCTP) {
            self.addresses(source, destination);
        }
        let around = Around { source, destination, ttl, fragment: more, shown: false };
        self.ip_payload(protocol, around, bytes.from(header))
    }
}

/// Returns explicit congestion notification (RFC 3168) as tcpdump appends it to the type of service.
fn congestion(tos: u8) -> &'static str {
    match tos & 3 {
        1 => ",ECT(1)",
        2 => ",ECT(0)",
        3 => ",CE",
        _ => "",
    }
}
