//! OSPF version 3 (RFC 5340), for IPv6.

use std::net::Ipv6Addr;

use crate::Printer;
use crate::base::bytes::{Bytes, Cut};
use crate::base::text::put;
use crate::routing::ospf::states::HEAD;

/// Length of the header.
const HEADER: usize = 16;

const OPTIONS: [(u32, &str); 9] = [
    (0x001, "V6"),
    (0x002, "External"),
    (0x004, "Deprecated"),
    (0x008, "NSSA"),
    (0x010, "Router"),
    (0x020, "Demand Circuit"),
    (0x100, "AFs Support"),
    (0x200, "LLS"),
    (0x400, "Authentication Trailer"),
];
const DESCRIPTION_FLAGS: [(u8, &str); 4] = [(4, "Init"), (2, "More"), (1, "Master"), (16, "IPv6 MTU")];
const ROUTER_FLAGS: [(u8, &str); 5] =
    [(1, "ABR"), (2, "External"), (4, "Virtual-Link Endpoint"), (8, "Deprecated"), (16, "NSSA Translator")];
const PREFIX_OPTIONS: [(u8, &str); 6] = [
    (1, "No Unicast"),
    (2, "Local address"),
    (4, "Deprecated"),
    (8, "Propagate"),
    (16, "Down"),
    (32, "N-bit"),
];
const EXTERNAL_FLAGS: [(u8, &str); 3] = [(4, "External"), (FORWARDED, "Forwarding"), (TAGGED, "Tag")];
const FORWARDED: u8 = 2;
const TAGGED: u8 = 1;

/// From 0.
const NAMES: [&str; 12] = [
    "Unknown",
    "Router",
    "Network",
    "Inter-Area Prefix",
    "Inter-Area Router",
    "External",
    "Deprecated",
    "NSSA",
    "Link",
    "Intra-Area Prefix",
    "Intra-Area TE",
    "Grace",
];
const SCOPES: [&str; 4] = ["Link Local", "Area Local", "Domain Wide", "Unknown"];

impl Printer<'_> {
    /// Prints what follows the header. Link states are for `-vv`.
    pub(crate) fn ospf3_message(&mut self, kind: u8, bytes: Bytes<'_>) -> Result<(), Cut> {
        let message = bytes.get(0, HEADER).map(|_| bytes.from(HEADER))?;
        let more = self.options.verbose > 1;
        match kind {
            1 => {
                self.ospf3_options("\n\tOptions [", message.u32(4)?);
                let (hello, dead) = (message.u16(8)?, message.u16(10)?);
                put!(self, "\n\t  Hello Timer {hello}s, Dead Timer {dead}s, Interface-ID ");
                self.ip4_number(message.ip4(0)?);
                put!(self, ", Priority {}", message.u8(4)?);
                self.ospf_designated(message.from(12))?;
                if more {
                    self.text("\n\t  Neighbor List:");
                    self.ospf_routers("\n\t    ", message.from(20))?;
                }
            }
            2 => {
                self.ospf3_options("\n\tOptions [", message.u32(0)?);
                let flags = message.u8(7)?;
                self.text(", DD Flags [");
                self.flag_names(flags, &DESCRIPTION_FLAGS);
                self.text("]");
                let (mtu, sequence) = (message.u16(4)?, message.u32(8)?);
                put!(self, ", MTU {mtu}, DD-Sequence 0x{sequence:08x}");
                if more {
                    self.ospf3_heads(message.from(12))?;
                }
            }
            3 if more => {
                for at in (0..message.len).step_by(12) {
                    let request = message.get(at, 12).map(|_| message.from(at))?;
                    self.text("\n\t  Advertising Router ");
                    self.ip4_address(request.ip4(8)?);
                    self.ospf3_name(request.u16(2)?, request.ip4(4)?);
                }
            }
            4 if more => {
                let count = message.u32(0)?;
                let mut rest = message.from(4);
                for _ in 0..count {
                    if rest.len == 0 {
                        break;
                    }
                    let (kind, len) = self.ospf3_head(rest)?;
                    let body = rest.from(HEAD);
                    self.ospf3_state(kind, body, len.checked_sub(HEAD).ok_or(Cut)?)?;
                    rest = rest.from(len);
                }
            }
            5 if more => self.ospf3_heads(message)?,
            _ => {}
        }
        Ok(())
    }

    /// Prints options, in the lower 24 bits.
    fn ospf3_options(&mut self, before: &str, options: u32) {
        self.text(before);
        self.flag_names(options, &OPTIONS);
        self.text("]");
    }

    /// Prints the headers of link states.
    fn ospf3_heads(&mut self, bytes: Bytes<'_>) -> Result<(), Cut> {
        for at in (0..bytes.len).step_by(HEAD) {
            self.ospf3_head(bytes.from(at))?;
        }
        Ok(())
    }

    /// Prints the header of a link state; returns its type and its length.
    fn ospf3_head(&mut self, bytes: Bytes<'_>) -> Result<(u16, usize), Cut> {
        let (age, kind, sequence, len) = (bytes.u16(0)?, bytes.u16(2)?, bytes.u32(12)?, bytes.u16(18)?);
        self.text("\n\t  Advertising Router ");
        self.ip4_address(bytes.ip4(8)?);
        put!(self, ", seq 0x{sequence:08x}, age {age}s, length {}", usize::from(len).saturating_sub(HEAD));
        self.ospf3_name(kind, bytes.ip4(4)?);
        Ok((kind, len.into()))
    }

    /// Prints the type and the identifier of a link state.
    fn ospf3_name(&mut self, kind: u16, id: std::net::Ipv4Addr) {
        let number = kind & 0x1fff;
        let name = NAMES.get(usize::from(number)).unwrap_or(&"Unknown");
        put!(self, "\n\t    {name} LSA ({number}), {} Scope", SCOPES[usize::from(kind >> 13 & 3)]);
        if kind & 0x8000 != 0 {
            self.text(", transitive");
        }
        self.text(", LSA-ID ");
        self.ip4_number(id);
    }

    fn ospf3_state(&mut self, kind: u16, bytes: Bytes<'_>, len: usize) -> Result<(), Cut> {
        let body = bytes.first(len);
        match kind {
            0x2001 => self.ospf3_router(body)?,
            0x2002 => {
                self.ospf3_options("\n\t      Options [", body.u32(0)?);
                self.text("\n\t      Connected Routers:");
                self.ospf_routers("\n\t\t", body.from(4))?;
            }
            0x2003 => {
                put!(self, ", metric {}", body.u24(1)?);
                self.ospf3_prefix(body.from(4))?;
            }
            0x4005 => self.ospf3_external(body)?,
            8 => {
                self.ospf3_options("\n\t      Options [", body.u32(0)?);
                body.get(0, 24)?;
                put!(self, "\n\t      Priority {}, Link-local address ", body.u8(0)?);
                self.ip6_address(body.ip6(4)?);
                let count = body.u32(20)?;
                put!(self, ", Prefixes {count}:");
                self.ospf3_prefixes(count, body.from(24))?;
            }
            0x2009 => {
                body.get(0, 12)?;
                self.ospf3_name(body.u16(2)?, body.ip4(4)?);
                let count = body.u16(0)?.into();
                put!(self, "\n\t      Prefixes {count}:");
                self.ospf3_prefixes(count, body.from(12))?;
            }
            _ => self.rows("\n\t      ", body.data),
        }
        Ok(())
    }

    fn ospf3_router(&mut self, body: Bytes<'_>) -> Result<(), Cut> {
        self.ospf3_options("\n\t      Options [", body.u32(0)?);
        self.text(", RLA-Flags [");
        self.flag_names(body.u8(0)?, &ROUTER_FLAGS);
        self.text("]");
        for at in (4..body.len).step_by(16) {
            let link = body.get(at, 16).map(|_| body.from(at))?;
            let kind = link.u8(0)?;
            let name = match kind {
                1 => "Neighbor Router-ID",
                2 => "Neighbor Network-ID",
                4 => "Virtual Link: Neighbor Router-ID",
                _ => {
                    put!(self, "\n\t      Unknown Router Links Type 0x{kind:02x}");
                    return Ok(());
                }
            };
            put!(self, "\n\t      {name} ");
            self.ip4_address(link.ip4(12)?);
            self.text("\n\t      Neighbor Interface-ID ");
            self.ip4_number(link.ip4(8)?);
            self.text(", Interface ");
            self.ip4_number(link.ip4(4)?);
            put!(self, ", metric {}", link.u16(2)?);
        }
        Ok(())
    }

    fn ospf3_external(&mut self, body: Bytes<'_>) -> Result<(), Cut> {
        let (flags, metric) = (body.u8(0)?, body.u24(1)?);
        self.text("\n\t     Flags [");
        self.flag_names(flags, &EXTERNAL_FLAGS);
        put!(self, "] metric {metric}");
        let referred = body.u16(6)?;
        let mut at = 4 + self.ospf3_prefix(body.from(4))?;
        if flags & FORWARDED != 0 {
            let address = body.ip6(at)?;
            self.text(" forward ");
            self.ip6_address(address);
            at += 16;
        }
        if flags & TAGGED != 0 {
            let tag = body.ip4(at)?;
            self.text(" tag ");
            self.ip4_number(tag);
            at += 4;
        }
        if referred != 0 {
            let state = body.ip4(at)?;
            self.text(" RefLSID: ");
            self.ip4_number(state);
        }
        Ok(())
    }

    fn ospf3_prefixes(&mut self, count: u32, bytes: Bytes<'_>) -> Result<(), Cut> {
        let mut at = 0;
        for _ in 0..count {
            at += self.ospf3_prefix(bytes.from(at))?;
        }
        Ok(())
    }

    /// Prints a prefix; returns the number of bytes that it has.
    fn ospf3_prefix(&mut self, bytes: Bytes<'_>) -> Result<usize, Cut> {
        let (bits, options, metric) = (bytes.u8(0)?, bytes.u8(1)?, bytes.u16(2)?);
        let len = usize::from(bits).div_ceil(32) * 4;
        if len > 16 {
            put!(self, " bogus prefixlen /{bits}");
            return Err(Cut);
        }
        let mut prefix = [0; 16];
        prefix[..len].copy_from_slice(bytes.get(4, len)?);
        self.text("\n\t\t");
        self.ip6_address(Ipv6Addr::from(prefix));
        put!(self, "/{bits}");
        if options != 0 {
            self.text(", Options [");
            self.flag_names(options, &PREFIX_OPTIONS);
            self.text("]");
        }
        put!(self, ", metric {metric}");
        Ok(4 + len)
    }
}
