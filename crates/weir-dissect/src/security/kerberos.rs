//! Kerberos: every field of version 4, and of version 5 (RFC 4120) only the version.

use crate::Printer;
use crate::base::bytes::{Bytes, Cut};
use crate::base::text::put;

/// First bytes of requests and replies of version 5: the tags `[APPLICATION 10]` and `[APPLICATION 11]`.
const VERSION5: std::ops::RangeInclusive<u8> = 0x6a..=0x6b;
const ERRORS: [&str; 11] = [
    "OK",
    "NAME_EXP",
    "SERVICE_EXP",
    "AUTH_EXP",
    "PKT_VER",
    "NAME_MAST_KEY_VER",
    "SERV_MAST_KEY_VER",
    "BYTE_ORDER",
    "PRINCIPAL_UNKNOWN",
    "PRINCIPAL_NOT_UNIQUE",
    "NULL_KEY",
];
/// Minutes in a unit of a ticket's lifetime.
const LIFETIME: u32 = 5;

fn name(kind: u8) -> Option<&'static str> {
    Some(match kind {
        1 => "KDC_REQUEST",
        2 => "KDC_REPLY",
        3 => "APPL_REQUEST",
        4 => "APPL_REQUEST_MUTUAL",
        5 => "ERR_REPLY",
        6 => "PRIVATE",
        7 => "SAFE",
        8 => "APPL_ERR",
        63 => "DIE",
        _ => return None,
    })
}

impl Printer<'_> {
    pub(crate) fn kerberos(&mut self, bytes: Bytes<'_>) -> Result<(), Cut> {
        self.protocol = "krb";
        self.facts.protocol = Some("kerberos");
        match bytes.u8(0)? {
            version @ 1..=3 => put!(self, " v{version}"),
            4 => {
                self.text(" v4");
                return self.kerberos4(bytes);
            }
            first if VERSION5.contains(&first) => self.text(" v5"),
            _ => {}
        }
        Ok(())
    }

    fn kerberos4(&mut self, bytes: Bytes<'_>) -> Result<(), Cut> {
        let second = bytes.u8(1)?;
        let (kind, little) = (second >> 1, second & 1 != 0);
        let number = |value: u16| if little { value.swap_bytes() } else { value };
        self.text(if little { " le " } else { " be " });
        match name(kind) {
            Some(name) => self.text(name),
            // As in tcpdump: the number without the order of the bytes, but not shifted.
            None => put!(self, "#{}", second & !1),
        }
        self.text(": ");
        let rest = bytes.from(2);
        match kind {
            1 => {
                let rest = self.principal(rest)?;
                put!(self, " {}min ", u32::from(rest.u8(4)?) * LIFETIME);
                let rest = self.terminated(rest.from(5))?;
                self.text(".");
                self.terminated(rest)?;
            }
            2 => {
                let rest = self.principal(rest)?;
                put!(self, " ({})", number(rest.u16(10)?));
            }
            3 => {
                put!(self, "v{} ", rest.u8(0)?);
                let rest = self.terminated(rest.from(1))?;
                put!(self, " ({})", rest.u8(0)?);
                put!(self, " ({})", rest.u8(1)?);
            }
            5 => {
                let rest = self.principal(rest)?;
                let error = number(rest.u16(4)?);
                match ERRORS.get(usize::from(error)) {
                    Some(name) => put!(self, " {name} "),
                    None => put!(self, " #{error} "),
                }
                self.terminated(rest.from(8))?;
            }
            _ => self.text("(unknown)"),
        }
        Ok(())
    }

    /// Prints a name, an instance and a realm; returns what follows.
    fn principal<'a>(&mut self, bytes: Bytes<'a>) -> Result<Bytes<'a>, Cut> {
        let rest = self.terminated(bytes)?;
        self.text(".");
        let rest = self.terminated(rest)?;
        self.text("@");
        self.terminated(rest)
    }

    /// Prints text that ends with a zero; returns what follows.
    fn terminated<'a>(&mut self, bytes: Bytes<'a>) -> Result<Bytes<'a>, Cut> {
        let end = bytes.data.iter().position(|byte| *byte == 0);
        self.harmless(&bytes.data[..end.unwrap_or(bytes.data.len())]);
        end.map(|end| bytes.from(end + 1)).ok_or(Cut)
    }
}
