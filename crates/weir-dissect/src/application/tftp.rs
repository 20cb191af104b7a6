//! TFTP (RFC 1350, RFC 2347).

use crate::Printer;
use crate::base::bytes::{Bytes, Cut};
use crate::base::text::put;

const REQUEST: u16 = 1;
const WRITE: u16 = 2;
const DATA: u16 = 3;
const ACKNOWLEDGEMENT: u16 = 4;
const ERROR: u16 = 5;
const OPTIONS: u16 = 6;
const ERRORS: [&str; 8] =
    ["EUNDEF", "ENOTFOUND", "EACCESS", "ENOSPACE", "EBADOP", "EBADID", "EEXISTS", "ENOUSER"];

impl Printer<'_> {
    pub(crate) fn tftp(&mut self, bytes: Bytes<'_>) -> Result<(), Cut> {
        self.protocol = "tftp";
        self.facts.protocol = Some("tftp");
        put!(self, "TFTP, length {}", bytes.len);
        let operation = bytes.u16(0)?;
        self.text(", ");
        let name = ["RRQ", "WRQ", "DATA", "ACK", "ERROR", "OACK"];
        match usize::from(operation).checked_sub(1).and_then(|at| name.get(at)) {
            Some(name) => self.text(name),
            None => put!(self, "tftp-#{operation}"),
        }
        let mut rest = bytes.from(2);
        match operation {
            REQUEST | WRITE => {
                rest.u8(0)?;
                self.text(" \"");
                let name = self.string(rest);
                self.text("\"");
                rest = name?;
                while rest.len > 0 {
                    if rest.u8(0)? != 0 {
                        self.text(" ");
                    }
                    rest = self.string(rest)?;
                }
            }
            OPTIONS => {
                while rest.len > 0 {
                    if rest.u8(0)? != 0 {
                        self.text(" ");
                    }
                    rest = self.string(rest)?;
                }
            }
            DATA | ACKNOWLEDGEMENT => put!(self, " block {}", rest.u16(0)?),
            ERROR => {
                let error = rest.u16(0)?;
                match ERRORS.get(usize::from(error)) {
                    Some(name) => put!(self, " {name} \""),
                    None => put!(self, " tftp-err-#{error} \""),
                }
                rest.u8(2)?;
                let words = self.string(rest.from(2));
                self.text("\"");
                words?;
            }
            _ => {}
        }
        Ok(())
    }

    /// Prints a string that ends with a zero byte; returns what follows.
    fn string<'b>(&mut self, bytes: Bytes<'b>) -> Result<Bytes<'b>, Cut> {
        let end = bytes.data.iter().position(|&byte| byte == 0);
        self.harmless(&bytes.data[..end.unwrap_or(bytes.data.len())]);
        Ok(bytes.from(end.ok_or(Cut)? + 1))
    }
}
