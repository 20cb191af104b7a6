//! VXLAN (RFC 7348).

use crate::Printer;
use crate::base::bytes::{Bytes, Cut};
use crate::base::text::put;

impl Printer<'_> {
    /// The inner packet has a line of its own.
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
}
