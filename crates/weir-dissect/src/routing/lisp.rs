//! The control messages of LISP (RFC 6833): registrations of addresses behind locators. Of others, only the name is printed.

use std::net::IpAddr;

use crate::Printer;
use crate::base::bytes::{Bytes, Cut};
use crate::base::text::put;

/// Lengths of the header, and of the fields in front of addresses in records and locators.
const HEADER: usize = 16;
const RECORD: usize = 12;
const LOCATOR: usize = 8;
/// Lengths of the numbers of a router and of its site at the end.
const ROUTER: usize = 16;
const SITE: usize = 8;

const REGISTER: u8 = 3;
const NOTIFY: u8 = 4;

const REGISTER_FLAGS: [(u32, &str); 5] = [
    (0x0800_0000, "P-Proxy-Map-Reply"),
    (0x0400_0000, "S-LISP-SEC-Capable"),
    (0x0200_0000, "I-xTR-ID-Present"),
    (0x0100_0000, "R-Build-For-RTR"),
    (0x100, "M-Want-Map-Notify"),
];
const NOTIFY_FLAGS: [(u32, &str); 2] = [(0x0800_0000, "I-xTR-ID-Present"), (0x0400_0000, "R-Build-For-RTR")];
const LOCATOR_FLAGS: [(u16, &str); 3] = [(4, "Local-Locator"), (2, "RLoc-Probed"), (1, "Reachable")];
const KEYS: [&str; 3] = ["None", "SHA1", "SHA256"];
const ACTIONS: [&str; 4] = ["No-Action", "Natively-Forward", "Send-Map-Request", "Drop"];

impl Printer<'_> {
    pub(crate) fn lisp(&mut self, bytes: Bytes<'_>) -> Result<(), Cut> {
        self.protocol = "lisp";
        self.facts.protocol = Some("lisp");
        let kind = bytes.get(0, HEADER)?[0] >> 4;
        match kind {
            0 => self.text("LISP-Reserved"),
            1 => self.text("LISP-Map-Request"),
            2 => self.text("LISP-Map-Reply"),
            REGISTER => self.text("LISP-Map-Register"),
            NOTIFY => self.text("LISP-Map-Notify"),
            8 => self.text("LISP-Encapsulated-Contol-Message"),
            _ => put!(self, "unknown-type-{kind}"),
        }
        self.text(",");
        match kind {
            REGISTER => self.lisp_records(bytes, &REGISTER_FLAGS, 0x0200_0000),
            NOTIFY => self.lisp_records(bytes, &NOTIFY_FLAGS, 0x0800_0000),
            _ => Ok(()),
        }
    }

    /// `named`: the flag that says that the numbers of router and site follow.
    fn lisp_records(&mut self, bytes: Bytes<'_>, flags: &[(u32, &str)], named: u32) -> Result<(), Cut> {
        let verbose = self.options.verbose > 0;
        let first = bytes.u32(0)?;
        let count = first & 0xff;
        if verbose {
            self.text(" flags [");
            self.flag_names(first, flags);
            self.text("],\n   ");
        }
        put!(self, " {count} record(s),");
        let (key, size) = (bytes.u16(12)?, usize::from(bytes.u16(14)?));
        if verbose {
            let name = KEYS.get(usize::from(key)).unwrap_or(&"unknown-type");
            put!(self, " Authentication {name},");
            let data = bytes.from(HEADER).first(size).data;
            self.rows("\n    Authentication-Data: ", data);
            if data.len() < size {
                return Err(Cut);
            }
        }
        let mut rest = bytes.from(HEADER + size);
        if count == 0 {
            self.text(" (invalid)");
            return Ok(());
        }
        for _ in 0..count {
            if rest.len == 0 {
                break;
            }
            if !self.lisp_record(&mut rest)? {
                return Ok(());
            }
        }
        if first & named != 0 {
            // What is cut off is not there, as in tcpdump.
            if rest.data.len() < ROUTER + SITE {
                self.text(" (invalid)");
                return Ok(());
            }
            self.rows("\n    xTR-ID: ", rest.get(0, ROUTER)?);
            put!(self, "\n    SITE-ID: {}", rest.u64(ROUTER)?);
        } else {
            self.rows("\n    Data: ", rest.data);
        }
        Ok(())
    }

    /// Returns whether another one can follow.
    fn lisp_record(&mut self, rest: &mut Bytes<'_>) -> Result<bool, Cut> {
        let verbose = self.options.verbose > 0;
        let head = rest.first(RECORD);
        head.get(0, RECORD)?;
        let (locators, len, flags, version) = (head.u8(4)?, head.u8(5)?, head.u16(6)?, head.u16(8)?);
        if verbose {
            let authority = if flags & 0x1000 != 0 { "" } else { "Non-" };
            let action = ACTIONS.get(usize::from(flags >> 13)).unwrap_or(&"unknown");
            put!(self, "\n      Record TTL {}, {authority}Authoritative, {action}", head.u32(0)?);
            put!(self, ", Map Version: {},", version & 0xfff);
        } else {
            self.text("\n");
        }
        let Some(address) = lisp_address(head.u16(10)?, rest, RECORD)? else { return Ok(false) };
        self.text(" EID ");
        self.address(address);
        put!(self, "/{len}, {locators} locator(s)");
        for _ in 0..locators {
            self.lisp_locator(rest)?;
        }
        Ok(true)
    }

    fn lisp_locator(&mut self, rest: &mut Bytes<'_>) -> Result<(), Cut> {
        let verbose = self.options.verbose > 0;
        let head = rest.first(LOCATOR);
        head.get(0, LOCATOR)?;
        self.text(if verbose { "\n       " } else { "" });
        match lisp_address(head.u16(6)?, rest, LOCATOR)? {
            Some(address) => {
                self.text(" LOC ");
                self.address(address);
            }
            None => *rest = rest.from(LOCATOR),
        }
        if verbose {
            put!(self, "\n          Priority/Weight {}/{}", head.u8(0)?, head.u8(1)?);
            put!(self, ", Multicast Priority/Weight {}/{}, flags [", head.u8(2)?, head.u8(3)?);
            self.flag_names(head.u16(4)?, &LOCATOR_FLAGS);
            self.text("],");
        }
        Ok(())
    }
}

/// Reads an address after `head` bytes, and skips both; `None` if it is of an unknown family.
fn lisp_address(family: u16, rest: &mut Bytes<'_>, head: usize) -> Result<Option<IpAddr>, Cut> {
    let (address, len) = match family {
        1 => (rest.ip4(head)?.into(), 4),
        2 => (rest.ip6(head)?.into(), 16),
        _ => return Ok(None),
    };
    *rest = rest.from(head + len);
    Ok(Some(address))
}
