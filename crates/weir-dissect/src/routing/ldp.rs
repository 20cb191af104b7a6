//! LDP (RFC 5036): who speaks, and about how much.

use crate::Printer;
use crate::base::bytes::{Bytes, Cut};
use crate::base::text::put;

/// Lengths of the headers of a unit and of a message in it.
const UNIT: usize = 10;
const MESSAGE: usize = 8;
/// Where the bytes that the length counts begin.
const COUNTED: usize = 4;

impl Printer<'_> {
    /// Prints the first unit; with `-v`, all of them.
    pub(crate) fn ldp(&mut self, bytes: Bytes<'_>) -> Result<(), Cut> {
        self.protocol = "ldp";
        self.facts.protocol = Some("ldp");
        let mut rest = bytes;
        while rest.len > UNIT + MESSAGE {
            let (version, len) = (rest.u16(0)?, rest.u16(2)?);
            if version != 1 {
                return Ok(());
            }
            let verbose = self.options.verbose > 0;
            self.text(if verbose { "\n\tLDP, Label-Space-ID: " } else { "LDP, Label-Space-ID: " });
            self.ip4_address(rest.ip4(4)?);
            put!(self, ":{}, pdu-length: {len}", rest.u16(8)?);
            if !verbose {
                return Ok(());
            }
            rest = rest.from(COUNTED + usize::from(len));
        }
        Ok(())
    }
}
