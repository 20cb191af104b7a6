//! PPI, which puts facts about the capture before a packet of another link type (`LINKTYPE_PPI`).

use crate::Printer;
use crate::base::bytes::{Bytes, Cut};
use crate::base::text::put;

/// Length of the header; fields can follow it.
const HEADER: usize = 8;
const LONGEST: usize = 65_532;

/// Returns the name of a link type that is dissected.
fn name(link_type: u32) -> Option<&'static str> {
    Some(match link_type {
        0 => "NULL",
        1 => "EN10MB",
        9 => "PPP",
        12 => "RAW",
        50 => "PPP_SERIAL",
        104 => "C_HDLC",
        105 => "IEEE802_11",
        108 => "LOOP",
        113 => "LINUX_SLL",
        127 => "IEEE802_11_RADIO",
        192 => "PPI",
        228 => "IPV4",
        229 => "IPV6",
        276 => "LINUX_SLL2",
        _ => return None,
    })
}

impl Printer<'_> {
    pub(crate) fn ppi(&mut self, bytes: Bytes<'_>) -> Result<(), Cut> {
        self.protocol = "ppi";
        self.facts.protocol = Some("ppi");
        // Unlike in other headers, the lowest byte is the first.
        let (version, len, link_type) = (bytes.u8(0)?, usize::from(bytes.le16(2)?), bytes.le32(4)?);
        if !(HEADER..=LONGEST).contains(&len) {
            put!(self, " [length {len} < {HEADER} or > {LONGEST}] (invalid)");
            return Ok(());
        }
        bytes.get(0, len)?;
        self.header(len);
        let inner = bytes.from(len);
        let known = u16::try_from(link_type).ok().zip(name(link_type));
        if self.options.link || known.is_none() {
            let name = known.map_or("UNKNOWN", |(_, name)| name);
            if !self.options.quick {
                put!(self, "V.{version} DLT {name} ({link_type}) len {len}");
            } else {
                self.text(name);
            }
            put!(self, ", length {}: ", bytes.len);
        }
        match known {
            Some((link_type, _)) => self.nested(|printer| printer.link(link_type, inner)),
            None => {
                self.unknown(inner.data);
                Ok(())
            }
        }
    }
}
