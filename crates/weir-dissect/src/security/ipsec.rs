//! IPsec: ESP (RFC 4303), of which only the header is readable, and the authentication header (RFC 4302).

use crate::Printer;
use crate::base::bytes::{Bytes, Cut};
use crate::base::segment::Around;
use crate::base::text::put;

impl Printer<'_> {
    pub(crate) fn esp(&mut self, bytes: Bytes<'_>) -> Result<(), Cut> {
        self.protocol = "esp";
        self.facts.protocol = Some("esp");
        let (index, sequence) = (bytes.u32(0)?, bytes.u32(4)?);
        put!(self, "ESP(spi=0x{index:08x},seq=0x{sequence:x}), length {}", bytes.len);
        Ok(())
    }

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
