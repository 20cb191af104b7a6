//! MPLS (RFC 3032).

use weir_packet::ethertype;

use crate::Printer;
use crate::base::bytes::{Bytes, Cut};
use crate::base::text::put;
use crate::registry::osi;

impl Printer<'_> {
    /// The label stack does not name its payload: the first byte shows an IP version.
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
            (0, _) => ethertype::IPV4,
            (2, _) => ethertype::IPV6,
            (_, 4) => ethertype::IPV4,
            (_, 6) => ethertype::IPV6,
            _ if osi::known(first) => {
                self.text(between);
                return self.osi(rest);
            }
            _ => {
                self.unknown(rest.data);
                return Ok(());
            }
        };
        self.text(between);
        self.inner(ethertype, rest).map(drop)
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
