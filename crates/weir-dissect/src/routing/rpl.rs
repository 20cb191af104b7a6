//! RPL, the routing protocol of lossy networks, in ICMPv6 (RFC 6550).

use crate::Printer;
use crate::base::bytes::{Bytes, Cut};
use crate::base::text::put;

const SECURE: u8 = 0x80;
const SOLICITATION: u8 = 0;
const INFORMATION: u8 = 1;
const ADVERTISEMENT: u8 = 2;
const ACKNOWLEDGEMENT: u8 = 3;
/// Length of an information object without options.
const INFORMATION_LEN: usize = 24;

impl Printer<'_> {
    /// `bytes`: all of ICMPv6.
    pub(crate) fn rpl(&mut self, code: u8, bytes: Bytes<'_>) -> Result<(), Cut> {
        if code & SECURE != 0 {
            self.text(", (SEC) [worktodo]");
            return Ok(());
        }
        self.text(", (CLR)");
        match code {
            SOLICITATION => self.text("DODAG Information Solicitation"),
            INFORMATION => self.text("DODAG Information Object"),
            ADVERTISEMENT => self.text("Destination Advertisement Object"),
            ACKNOWLEDGEMENT => self.text("Destination Advertisement Object Ack"),
            _ => put!(self, "RPL message, unknown code {code}"),
        }
        let message = bytes.from(4);
        match code {
            _ if self.options.verbose == 0 => Ok(()),
            INFORMATION => self.rpl_information(message),
            ADVERTISEMENT | ACKNOWLEDGEMENT => self.rpl_destination(code == ACKNOWLEDGEMENT, message),
            _ => Ok(()),
        }
    }

    fn rpl_information(&mut self, bytes: Bytes<'_>) -> Result<(), Cut> {
        if bytes.len < INFORMATION_LEN {
            put!(self, " [length {} < {INFORMATION_LEN}] (invalid)", bytes.len);
            return Ok(());
        }
        bytes.get(0, INFORMATION_LEN)?;
        let (instance, rank, flags) = (bytes.u8(0)?, bytes.u16(2)?, bytes.u8(4)?);
        self.text(" [dagid:");
        self.ip6_number(bytes.ip6(8)?);
        put!(self, ",seq:{},instance:{instance},rank:{rank},", bytes.u8(5)?);
        if flags & 0x80 != 0 {
            self.text("grounded,");
        }
        match flags >> 3 & 7 {
            0 => self.text("mop:nonstoring"),
            1 => self.text("mop:storing"),
            2 => self.text("mop:nonstoring-multicast"),
            3 => self.text("mop:storing-multicast"),
            mode => put!(self, "mop:mop{mode}"),
        }
        put!(self, ",prf:{}]", flags & 7);
        self.rpl_options(bytes.from(INFORMATION_LEN))
    }

    fn rpl_destination(&mut self, acknowledgement: bool, bytes: Bytes<'_>) -> Result<(), Cut> {
        // tcpdump asks for the identifier of an advertisement even if there is none.
        bytes.get(0, if acknowledgement { 4 } else { 20 })?;
        let (instance, flags) = (bytes.u8(0)?, bytes.u8(1)?);
        // Whether an identifier of the graph follows.
        let identified = flags & if acknowledgement { 0x80 } else { 0x40 } != 0;
        let identifier = if identified { Some(bytes.ip6(4)?) } else { None };
        self.text(" [dagid:");
        match identifier {
            Some(identifier) => self.ip6_number(identifier),
            None => self.text("<elided>"),
        }
        let sequence = bytes.u8(if acknowledgement { 2 } else { 3 })?;
        put!(self, ",seq:{sequence},instance:{instance}");
        if acknowledgement {
            put!(self, ",status:{}]", bytes.u8(3)?);
        } else {
            if flags & 0x80 != 0 {
                self.text(",acK");
            }
            if identifier.is_some() {
                self.text(",Dagid");
            }
            put!(self, ",{flags:02x}]");
        }
        self.rpl_options(bytes.from(if identifier.is_some() { 20 } else { 4 }))
    }

    fn rpl_options(&mut self, mut rest: Bytes<'_>) -> Result<(), Cut> {
        while self.options.verbose > 1 && rest.len > 0 {
            let kind = rest.u8(0)?;
            if kind == 0 {
                self.text(" opt:pad1");
                rest = rest.from(1);
                continue;
            }
            let len = usize::from(rest.u8(1)?) + 2;
            match kind {
                1 => self.text(" opt:padN"),
                2 => self.text(" opt:metrics"),
                3 => self.text(" opt:routinginfo"),
                4 => self.text(" opt:config"),
                5 => self.text(" opt:rpltarget"),
                6 => self.text(" opt:transitinfo"),
                8 => self.text(" opt:destprefix"),
                _ => put!(self, " opt:subopt:{kind}"),
            }
            put!(self, " len:{len} ");
            let value = rest.get(2, len - 2)?;
            if self.options.verbose > 2 {
                self.rows(" ", value);
            }
            rest = rest.from(len);
        }
        Ok(())
    }
}
