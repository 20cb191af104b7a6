//! Packets that netfilter logged (`LINKTYPE_NFLOG`), after their attributes.

use weir_packet::ethertype;

use crate::Printer;
use crate::base::bytes::{Bytes, Cut};
use crate::base::text::put;

const HEADER: usize = 4;
/// The attribute that contains the packet; it is the last one that is read.
const PAYLOAD: u16 = 9;

/// Address families of Linux, which are not those of other systems.
fn family(number: u8) -> Option<(&'static str, u16)> {
    match number {
        2 => Some(("IPv4", ethertype::IPV4)),
        10 => Some(("IPv6", ethertype::IPV6)),
        _ => None,
    }
}

impl Printer<'_> {
    pub(crate) fn nflog(&mut self, bytes: Bytes<'_>) -> Result<(), Cut> {
        self.protocol = "nflog";
        self.facts.protocol = Some("nflog");
        bytes.get(0, HEADER)?;
        let (number, version, group) = (bytes.u8(0)?, bytes.u8(1)?, bytes.u16(2)?);
        if version != 0 {
            put!(self, "version {version} (unknown)");
            return Ok(());
        }
        if self.options.link {
            self.nflog_header(number, group, bytes.len);
        }
        let mut at = HEADER;
        while bytes.len > at {
            // Their byte order is that of the host that captured; nearly all of them are little-endian.
            let (len, kind) = (bytes.le16(at)?, bytes.le16(at + 2)?);
            let len = usize::from(len).next_multiple_of(4);
            if len < 4 {
                return Err(Cut);
            }
            bytes.get(at, len)?;
            if kind == PAYLOAD {
                at += 4;
                break;
            }
            at += len;
        }
        self.header(at);
        let inner = bytes.from(at);
        match family(number) {
            Some((_, ethertype)) => self.carried(ethertype, inner).map(drop),
            None => {
                if !self.options.link {
                    self.nflog_header(number, group, HEADER + inner.len);
                }
                self.unknown(inner.data);
                Ok(())
            }
        }
    }

    fn nflog_header(&mut self, number: u8, group: u16, len: usize) {
        put!(self, "version 0, resource ID {group}, ");
        match (family(number), self.options.quick) {
            (Some((name, _)), true) => self.text(name),
            (None, true) => put!(self, "Unknown NFLOG (0x{number:02x})"),
            (known, false) => put!(self, "family {} ({number})", known.map_or("Unknown", |(name, _)| name)),
        }
        put!(self, ", length {len}: ");
    }
}
