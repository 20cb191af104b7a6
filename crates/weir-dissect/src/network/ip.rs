//! IP payloads by protocol number, and what IPv4 and IPv6 have in common.

use std::net::IpAddr;

use weir_packet::protocol::{AUTHENTICATION, ICMP, ICMPV6, NOTHING, SCTP, TCP, UDP};

use crate::Printer;
use crate::base::bytes::{Bytes, Cut};
use crate::base::names;
use crate::base::segment::Around;
use crate::base::text::put;
use crate::registry::payload::Payload;
use crate::registry::protocols;

impl Printer<'_> {
    /// Prints the payload of an IP packet, after the extension headers. Protocols with ports print the addresses
    /// themselves; for all others, they have been printed already.
    pub(crate) fn ip_payload(&mut self, protocol: u8, around: Around, bytes: Bytes<'_>) -> Result<(), Cut> {
        self.facts.ip_protocol.get_or_insert(protocol);
        match protocol {
            ICMP => self.icmp(bytes, around.fragment),
            2 => self.igmp(bytes),
            4 => self.nested(|printer| printer.ip4(bytes)),
            TCP => self.tcp(around, bytes),
            UDP => self.udp(around, bytes),
            41 => self.nested(|printer| printer.ip6(bytes)),
            47 => self.nested(|printer| printer.gre(bytes)),
            50 => self.esp(bytes),
            AUTHENTICATION => self.authentication(around, bytes),
            ICMPV6 => self.icmp6(around, bytes),
            NOTHING => {
                self.text("no next header");
                Ok(())
            }
            88 => self.eigrp(bytes),
            89 => self.ospf(bytes, around.source.is_ipv6()),
            103 => self.pim(around, bytes),
            112 if self.options.payload == Some(Payload::Carp) => self.carp(around, bytes),
            112 => self.vrrp(around, bytes),
            113 => self.pgm(around, bytes),
            SCTP => self.sctp(around, bytes),
            46 | 108 => {
                let name = names::ip_protocol(protocol).unwrap_or_default();
                put!(self, "{name}, length {}", bytes.len);
                self.facts.protocol = Some(name);
                Ok(())
            }
            _ => {
                self.text(" ");
                self.ip_protocol(protocol);
                put!(self, " {}", bytes.len);
                Ok(())
            }
        }
    }

    /// Prints the name of a protocol that is not dissected, or its number.
    pub(crate) fn ip_protocol(&mut self, protocol: u8) {
        match protocols::keyword(protocol).filter(|_| self.resolve.is_some()) {
            Some(name) => self.text(name),
            None => put!(self, "ip-proto-{protocol}"),
        }
    }

    /// Prints `a > b: `, unless the protocol prints the addresses with its ports.
    pub(crate) fn addresses(&mut self, source: IpAddr, destination: IpAddr) {
        self.address(source);
        self.text(" > ");
        self.address(destination);
        self.text(": ");
    }

    /// Prints `a.1 > b.2: `, or only the ports if an earlier header has printed the addresses.
    pub(crate) fn ports(&mut self, around: Around, source: u16, destination: u16) {
        self.facts.source_port.get_or_insert(source);
        self.facts.destination_port.get_or_insert(destination);
        if !around.shown {
            self.address(around.source);
            self.text(".");
        }
        self.port(self.protocol, source);
        self.text(" > ");
        if !around.shown {
            self.address(around.destination);
            self.text(".");
        }
        self.port(self.protocol, destination);
        self.text(": ");
    }

    /// Prints ESP (RFC 4303), of which only the header is readable.
    pub(crate) fn esp(&mut self, bytes: Bytes<'_>) -> Result<(), Cut> {
        self.protocol = "esp";
        self.facts.protocol = Some("esp");
        let (index, sequence) = (bytes.u32(0)?, bytes.u32(4)?);
        put!(self, "ESP(spi=0x{index:08x},seq=0x{sequence:x}), length {}", bytes.len);
        Ok(())
    }

    /// Prints the authentication header (RFC 4302).
    pub(crate) fn authentication(&mut self, around: Around, bytes: Bytes<'_>) -> Result<(), Cut> {
        self.protocol = "ah";
        let (next, words) = (bytes.u8(0)?, usize::from(bytes.u8(1)?));
        let (index, sequence) = (bytes.u32(4)?, bytes.u32(8)?);
        let len = (words + 2) * 4;
        let value = bytes.get(12, len.saturating_sub(12))?;
        self.text("AH(");
        if self.options.verbose > 0 {
            put!(self, "length={words}({len}-bytes),");
        }
        put!(self, "spi=0x{index:08x},seq=0x{sequence:x},icv=0x");
        value.iter().for_each(|&byte| self.hex_byte(byte));
        self.text("): ");
        self.nested(|printer| {
            printer.ip_payload(next, Around { shown: true, ..around }, bytes.from(len.max(12)))
        })
    }
}
