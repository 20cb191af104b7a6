//! Ethernet's configuration testing protocol (DEC's Ethernet specification, section 8): frames that stations send back.

use crate::Printer;
use crate::base::bytes::{Bytes, Cut};
use crate::base::text::put;

const REPLY: u16 = 1;
const FORWARD: u16 = 2;

impl Printer<'_> {
    pub(crate) fn ctp(&mut self, bytes: Bytes<'_>) -> Result<(), Cut> {
        self.protocol = "loopback";
        self.facts.protocol = Some("ctp");
        self.text("Loopback");
        if bytes.len < 2 {
            return self.invalid(bytes);
        }
        let skip = bytes.le16(0)?;
        put!(self, ", skipCount {skip}");
        // The functions that are done are skipped; each has eight bytes.
        if skip & 7 != 0 {
            self.text(" (bogus)");
        }
        let rest = bytes.from(2);
        if usize::from(skip) > rest.len {
            return self.invalid(rest);
        }
        rest.get(0, skip.into())?;
        let rest = rest.from(skip.into());
        if rest.len < 2 {
            return self.invalid(rest);
        }
        let (function, rest) = (rest.le16(0)?, rest.from(2));
        let rest = match function {
            REPLY => {
                self.text(", Reply");
                if rest.len < 2 {
                    return self.invalid(rest);
                }
                put!(self, ", receipt number {}", rest.le16(0)?);
                rest.from(2)
            }
            FORWARD => {
                self.text(", Forward Data");
                if rest.len < 6 {
                    return self.invalid(rest);
                }
                let address = rest.mac(0)?;
                self.text(", forwarding address ");
                self.mac(address);
                rest.from(6)
            }
            _ => {
                put!(self, ",  invalid ({function})");
                return rest.get(0, rest.len).map(drop);
            }
        };
        put!(self, ", data ({} octets)", rest.len);
        rest.get(0, rest.len).map(drop)
    }
}
