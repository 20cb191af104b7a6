//! ISAKMP and IKE (RFC 2408, RFC 7296), and ESP in UDP (RFC 3948). Payloads are in `isakmp` and `ike2`.

use std::collections::VecDeque;
use std::net::IpAddr;

use crate::Printer;
use crate::base::bytes::Cut;
use crate::base::segment::Segment;
use crate::base::text::put;

/// Length of the header.
const HEADER: usize = 28;
/// Exchanges that are remembered.
const REMEMBERED: usize = 32;

const ENCRYPTED: u8 = 1;
/// Letters for the flags of version 1 and 2.
const FLAGS1: [(u8, &str); 2] = [(ENCRYPTED, "E"), (2, "C")];
const FLAGS2: [(u8, &str); 3] = [(8, "I"), (16, "V"), (32, "R")];

/// Who began the last exchanges: in version 1, messages do not tell.
#[derive(Debug, Default)]
pub(crate) struct Exchanges(VecDeque<([u8; 8], IpAddr, IpAddr)>);

impl Exchanges {
    /// Returns the letter of the sender: `I`, `R`, or `?` if the first message was not seen.
    fn side(&mut self, cookie: [u8; 8], first: bool, source: IpAddr, destination: IpAddr) -> &'static str {
        let known = |(known, ..): &&([u8; 8], IpAddr, IpAddr)| *known == cookie;
        if first && self.0.iter().find(known).is_none() {
            self.0.truncate(REMEMBERED - 1);
            self.0.push_front((cookie, source, destination));
        }
        match self.0.iter().find(known) {
            Some((_, initiator, responder)) if (source, destination) == (*initiator, *responder) => "I",
            Some((_, initiator, responder)) if (destination, source) == (*initiator, *responder) => "R",
            _ => "?",
        }
    }
}

fn exchange(kind: u8) -> Option<&'static str> {
    Some(match kind {
        0 => "none",
        1 => "base",
        2 => "ident",
        3 => "auth",
        4 => "agg",
        5 => "inf",
        32 => "oakley-quick",
        33 => "oakley-newgroup",
        34 => "ikev2_init",
        35 => "ikev2_auth",
        36 => "child_sa",
        37 => "inf2",
        _ => return None,
    })
}

impl Printer<'_> {
    pub(crate) fn ike(&mut self, segment: Segment<'_>) -> Result<(), Cut> {
        self.protocol = "isakmp";
        self.facts.protocol = Some("isakmp");
        let bytes = segment.payload;
        let cookie = bytes.get(0, 8)?;
        bytes.get(0, HEADER)?;
        let first = bytes.get(8, 8)? == [0; 8];
        let (next, version, kind, flags, message) =
            (bytes.u8(16)?, bytes.u8(17)?, bytes.u8(18)?, bytes.u8(19)?, bytes.u32(20)?);
        self.text("isakmp");
        if self.options.verbose > 0 {
            put!(self, " {}.{} msgid {message:08x}", version >> 4, version & 15);
            if self.options.verbose > 1 {
                self.text(" cookie ");
                self.isakmp_hex(cookie);
                self.text("->");
                self.isakmp_hex(bytes.get(8, 8)?);
            }
        }
        self.text(":");
        let letters = match version >> 4 {
            1 => {
                let cookie = cookie.try_into().unwrap_or_default();
                let around = segment.around;
                let side = self.exchanges.side(cookie, first, around.source, around.destination);
                put!(self, " phase {} {side} ", if message == 0 { "1" } else { "2/others" });
                FLAGS1.as_slice()
            }
            2 => {
                self.text(if message == 0 { " parent_sa " } else { " child_sa  " });
                FLAGS2.as_slice()
            }
            _ => return Ok(()),
        };
        match exchange(kind) {
            Some(name) => self.text(name),
            None => put!(self, "#{kind}"),
        }
        if flags != 0 {
            self.text("[");
            letters.iter().filter(|(bit, _)| flags & bit != 0).for_each(|(_, letter)| self.text(letter));
            self.text("]");
        }
        if self.options.verbose > 0 {
            self.text(":");
            if version >> 4 == 1 && flags & ENCRYPTED != 0 {
                self.text(" [encrypted ");
                self.isakmp_name(next);
                self.text("]");
            } else {
                let _ends_early = self.isakmp_payloads(next, bytes.from(HEADER), 0, 1);
            }
            let len = bytes.u32(24)? as usize;
            if len != bytes.len {
                put!(self, " (len mismatch: isakmp {len}/ip {})", bytes.len);
            }
        }
        Ok(())
    }

    /// Prints what port 4500 carries: ESP, or IKE after four zeros where ESP has its index.
    pub(crate) fn ike_or_esp(&mut self, segment: Segment<'_>) -> Result<(), Cut> {
        self.protocol = "isakmp_rfc3948";
        self.facts.protocol = Some("esp");
        let bytes = segment.payload;
        if bytes.len == 1 && bytes.u8(0)? == 0xff {
            self.text("isakmp-nat-keep-alive");
            return Ok(());
        }
        if bytes.u32(0)? == 0 {
            self.text("NONESP-encap: ");
            return self.ike(Segment { payload: bytes.from(4), ..segment });
        }
        self.text("UDP-encap: ");
        self.esp(bytes)
    }
}
