//! Queries for the name and addresses of a node, in ICMPv6 (RFC 4620).

use crate::Printer;
use crate::base::bytes::{Bytes, Cut};
use crate::base::text::put;

/// Length of the header, with a number for the answer.
const HEADER: usize = 16;
/// What is asked for.
const NOTHING: u16 = 0;
const TYPES: u16 = 1;
const NAME: u16 = 2;
const ADDRESSES: u16 = 3;

impl Printer<'_> {
    pub(crate) fn node_query(&mut self, bytes: Bytes<'_>) -> Result<(), Cut> {
        self.text(" node information query");
        if bytes.len < HEADER {
            self.text(" ");
            self.text("[|icmp6]");
            return Ok(());
        }
        let (code, kind) = (bytes.u8(1)?, bytes.u16(4)?);
        bytes.get(0, HEADER)?;
        let verbose = self.options.verbose > 0;
        self.text(" (");
        match kind {
            NOTHING => self.text("noop"),
            TYPES => self.text("supported qtypes"),
            NAME => self.text("DNS name"),
            ADDRESSES => self.text("node addresses"),
            _ => self.text("unknown"),
        }
        match kind {
            NOTHING | TYPES if bytes.len == HEADER => {}
            NOTHING | TYPES if verbose => self.text(", invalid len"),
            NOTHING | TYPES => {}
            NAME if bytes.len == HEADER => self.text(", 03 draft"),
            _ => self.node_subject(code, bytes)?,
        }
        self.text(")");
        Ok(())
    }

    fn node_subject(&mut self, code: u8, bytes: Bytes<'_>) -> Result<(), Cut> {
        match code {
            0 => {
                self.text(", subject=");
                self.ip6_address(bytes.ip6(HEADER)?);
            }
            1 => {
                self.text(", subject=DNS name");
                self.node_name(bytes.from(HEADER))?;
            }
            2 => {
                self.text(", subject=");
                self.ip4_address(bytes.ip4(HEADER)?);
            }
            _ => self.text(", unknown subject"),
        }
        Ok(())
    }

    pub(crate) fn node_reply(&mut self, bytes: Bytes<'_>) -> Result<(), Cut> {
        self.text(" node information reply");
        bytes.get(0, HEADER)?;
        let (code, kind) = (bytes.u8(1)?, bytes.u16(4)?);
        let verbose = self.options.verbose > 0;
        self.text(" (");
        match code {
            0 if verbose => self.text("success, "),
            0 => {}
            1 => self.text("refused"),
            2 => self.text("unknown"),
            _ => {}
        }
        if code == 0 {
            match kind {
                NOTHING => self.text("noop"),
                TYPES => self.text("supported qtypes"),
                NAME => {
                    self.text("DNS name");
                    // The name comes after its time to live.
                    self.node_name(bytes.from(HEADER + 4))?;
                }
                ADDRESSES => {
                    self.text("node addresses");
                    let mut at = HEADER;
                    while at < bytes.len {
                        self.text(" ");
                        self.ip6_address(bytes.ip6(at + 4)?);
                        put!(self, "({})", bytes.u32(at)?);
                        at += 20;
                    }
                }
                _ => self.text("unknown"),
            }
        }
        self.text(")");
        Ok(())
    }

    /// Prints a name: in the form of DNS, with a second zero instead of a last dot if it is incomplete, or, in an old
    /// draft, after one length.
    fn node_name(&mut self, mut bytes: Bytes<'_>) -> Result<(), Cut> {
        self.text(", \"");
        let mut before = "";
        while bytes.len > 0 {
            let len = usize::from(bytes.u8(0)?);
            if len == 0 {
                match bytes.get(1, bytes.len - 1)? {
                    [] => self.text("."),
                    [0] => {}
                    _ => self.text("???"),
                }
                break;
            }
            self.text(before);
            before = ".";
            if len >= bytes.len {
                self.text("???");
                break;
            }
            self.harmless(bytes.get(1, len)?);
            bytes = bytes.from(1 + len);
        }
        self.text("\"");
        Ok(())
    }
}
