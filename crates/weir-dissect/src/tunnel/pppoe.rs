//! PPPoE (RFC 2516).

use weir_packet::ethertype;

use crate::Printer;
use crate::base::bytes::{Bytes, Cut};
use crate::base::text::put;

impl Printer<'_> {
    pub(crate) fn pppoe(&mut self, ethertype: u16, bytes: Bytes<'_>) -> Result<(), Cut> {
        self.protocol = "pppoe";
        self.facts.protocol = Some("pppoe");
        self.text("PPPoE ");
        let (code, session, len) = (bytes.u8(1)?, bytes.u16(2)?, usize::from(bytes.u16(4)?));
        match code {
            0 => {}
            0x07 => self.text("PADO"),
            0x09 => self.text("PADI"),
            0x19 => self.text("PADR"),
            0x65 => self.text("PADS"),
            0xa7 => self.text("PADT"),
            _ => put!(self, "code 0x{code:02x}"),
        }
        if session != 0 {
            put!(self, " [ses 0x{session:x}]");
        }
        let inner = bytes.from(6).first(len);
        if ethertype == ethertype::PPPOE {
            self.text(" ");
            return self.nested(|printer| printer.ppp(inner));
        }
        let mut rest = inner;
        while rest.len > 0 {
            let (kind, len) = (rest.u16(0)?, usize::from(rest.u16(2)?));
            self.pppoe_tag(kind, rest.from(4).first(len))?;
            if kind == 0 {
                break;
            }
            rest = rest.from(4 + len);
        }
        Ok(())
    }

    fn pppoe_tag(&mut self, kind: u16, value: Bytes<'_>) -> Result<(), Cut> {
        let name = match kind {
            0 => "EOL",
            0x0101 => "Service-Name",
            0x0102 => "AC-Name",
            0x0103 => "Host-Uniq",
            0x0104 => "AC-Cookie",
            0x0105 => "Vendor-Specific",
            0x0110 => "Relay-Session-ID",
            0x0201 => "Service-Name-Error",
            0x0202 => "AC-System-Error",
            0x0203 => "Generic-Error",
            _ => "Unknown",
        };
        put!(self, " [{name}");
        if value.len > 0 {
            let data = value.get(0, value.len)?;
            if data.iter().all(|byte| (0x20..0x7f).contains(byte)) {
                self.text(" \"");
                self.harmless(data);
                self.text("\"");
            } else {
                self.text(" 0x");
                data.iter().for_each(|&byte| self.hex_byte(byte));
            }
        }
        self.text("]");
        Ok(())
    }
}
