//! PPP's control protocols: LCP (RFC 1661), IPCP (RFC 1332), IPV6CP (RFC 5072), CCP (RFC 1962) and others.

use crate::Printer;
use crate::base::bytes::{Bytes, Cut};
use crate::base::names;
use crate::base::text::put;
use crate::registry::ppp;

/// Length of the header of a message, which all protocols have in common.
const HEADER: usize = 4;
const CODES: [&str; 16] = [
    "Vendor-Extension",
    "Conf-Request",
    "Conf-Ack",
    "Conf-Nack",
    "Conf-Reject",
    "Term-Request",
    "Term-Ack",
    "Code-Reject",
    "Prot-Reject",
    "Echo-Request",
    "Echo-Reply",
    "Disc-Req",
    "Ident",
    "Time-Rem",
    "Reset-Req",
    "Reset-Ack",
];

impl Printer<'_> {
    pub(crate) fn ppp_control(
        &mut self,
        protocol: u16,
        name: &'static str,
        bytes: Bytes<'_>,
    ) -> Result<(), Cut> {
        put!(self, "{name}, ");
        if bytes.len < HEADER {
            put!(self, "[|{name}]");
            return Ok(());
        }
        let (Ok(code), Ok(id)) = (bytes.u8(0), bytes.u8(1)) else {
            put!(self, "[|{name}]");
            return Ok(());
        };
        let word = CODES.get(usize::from(code)).unwrap_or(&"Unknown Opcode");
        // The length is that with the protocol's number.
        put!(self, "{word} (0x{code:02x}), id {id}, length {}", bytes.len + 2);
        if self.options.verbose == 0 {
            return Ok(());
        }
        let len = usize::from(bytes.u16(2)?);
        if len < HEADER {
            put!(self, "\n\tencoded length {len} (< {HEADER}))");
            return Ok(());
        }
        if len > bytes.len {
            put!(self, "\n\tencoded length {len} (> packet length {}))", bytes.len);
            return Ok(());
        }
        put!(self, "\n\tencoded length {len} (=Option(s) length {})", len - HEADER);
        if len == HEADER {
            return Ok(());
        }
        if self.options.verbose > 1 {
            self.ppp_rows("\n\t", protocol, bytes.get(0, HEADER)?);
        }
        if matches!(code, 1..=4) {
            return self.ppp_options(protocol, name, bytes.from(HEADER), len - HEADER);
        }
        if self.ppp_message(protocol, code, bytes.first(len)).is_err() {
            put!(self, "[|{name}]");
        }
        Ok(())
    }

    /// Dumps the number of the protocol and bytes of the message.
    fn ppp_rows(&mut self, indent: &str, protocol: u16, data: &[u8]) {
        let whole = [&protocol.to_be_bytes()[..], data].concat();
        self.rows(indent, &whole);
    }

    fn ppp_message(&mut self, protocol: u16, code: u8, bytes: Bytes<'_>) -> Result<(), Cut> {
        let rest = bytes.from(HEADER);
        match code {
            0 if rest.len >= 7 => {
                put!(self, "\n\t  Magic-Num 0x{:08x}", rest.u32(0)?);
                let number = rest.u24(4)?;
                put!(self, " Vendor: {} ({number})", names::organization(number));
            }
            8 if rest.len >= 2 => {
                let rejected = rest.u16(0)?;
                let name = ppp::name(rejected).unwrap_or("unknown");
                put!(self, "\n\t  Rejected {name} Protocol (0x{rejected:04x})");
                if rest.len > 2 {
                    self.text("\n\t  Rejected Packet");
                    self.rows("\n\t    ", rest.from(2).data);
                }
            }
            9..=11 if rest.len >= 4 => {
                put!(self, "\n\t  Magic-Num 0x{:08x}", rest.u32(0)?);
                if rest.len > 4 {
                    self.text("\n\t  -----trailing data-----");
                    self.rows("\n\t  ", rest.from(4).data);
                }
            }
            12 if rest.len > 4 => {
                put!(self, "\n\t  Magic-Num 0x{:08x}", rest.u32(0)?);
                self.text("\n\t  Message\n\t    ");
                self.harmless(rest.from(4).data);
                if !rest.whole() {
                    return Err(Cut);
                }
            }
            13 if rest.len >= 8 => {
                put!(self, "\n\t  Magic-Num 0x{:08x}", rest.u32(0)?);
                put!(self, ", Seconds-Remaining {}s", rest.u32(4)?);
            }
            14.. if self.options.verbose < 2 => {
                self.ppp_rows("\n\t  ", protocol, bytes.data);
            }
            _ => {}
        }
        Ok(())
    }
}
