//! RIP (RFC 1058, RFC 2453) and RIPng (RFC 2080).

use crate::Printer;
use crate::base::bytes::{Bytes, Cut};
use crate::base::text::put;

/// Length of a route.
const ROUTE: usize = 20;
/// Address families.
const INTERNET: u16 = 2;
const AUTHENTICATION: u16 = 0xffff;
/// Kinds of authentication (RFC 2453, RFC 4822).
const TRAILER: u16 = 1;
const PASSWORD: u16 = 2;
const DIGEST: u16 = 3;
/// The metric that asks for all routes.
const INFINITY: u8 = 16;

impl Printer<'_> {
    pub(crate) fn rip(&mut self, bytes: Bytes<'_>) -> Result<(), Cut> {
        self.protocol = "rip";
        self.facts.protocol = Some("rip");
        bytes.get(0, 4)?;
        let (command, version) = (bytes.u8(0)?, bytes.u8(1)?);
        let verbose = self.options.verbose > 0;
        put!(self, "{}RIPv{version}", if verbose { "\n\t" } else { "" });
        if version == 0 {
            self.rows("\n\t", bytes.data);
            return Ok(());
        }
        let name = match command {
            1 => "Request",
            2 => "Response",
            3 => "Trace on",
            4 => "Trace off",
            5 => "Poll",
            6 => "Poll Entry",
            _ => "unknown command",
        };
        match name {
            "unknown command" => put!(self, ", {name} ({command}), length: {}", bytes.len),
            _ => put!(self, ", {name}, length: {}", bytes.len),
        }
        if !verbose {
            return Ok(());
        }
        let routes = bytes.from(4);
        let count = routes.len / ROUTE;
        match (command, version) {
            (1 | 2, 1) => {
                put!(self, ", routes: {count}");
                for number in 0..count {
                    self.rip1_route(routes.from(number * ROUTE).first(ROUTE))?;
                }
            }
            (1 | 2, 2) => {
                put!(self, ", routes: {count} or less");
                for number in 0..count {
                    self.rip2_route(number == 0, routes.from(number * ROUTE).first(ROUTE))?;
                }
            }
            (1 | 2, _) => self.text(", unknown version"),
            (5 | 6, _) => {}
            _ if self.options.verbose == 1 => self.rows("\n\t", bytes.data),
            _ => {}
        }
        if matches!((command, version), (1 | 2, 1 | 2)) && !routes.len.is_multiple_of(ROUTE) {
            return Err(Cut);
        }
        // With -vv, the whole message.
        if self.options.verbose > 1 {
            self.rows("\n\t", bytes.data);
        }
        Ok(())
    }

    fn rip1_route(&mut self, route: Bytes<'_>) -> Result<(), Cut> {
        let (family, address, metric) = (route.u16(0)?, route.ip4(4)?, route.u32(16)?);
        // The rest has to be zero.
        let rest = [route.get(2, 2)?, route.get(8, 8)?].concat().iter().any(|&byte| byte != 0);
        match family {
            0 | INTERNET if rest => self.rows("\n\t  ", route.data),
            0 | INTERNET => {
                self.text(if family == 0 { "\n\t  AFI 0, " } else { "\n\t  " });
                self.ip4_address(address);
                put!(self, ", metric: {metric}");
            }
            _ => {
                put!(self, "\n\t AFI Unknown ({family}), ");
                self.rows("\n\t  ", route.from(4).data);
            }
        }
        Ok(())
    }

    fn rip2_route(&mut self, first: bool, route: Bytes<'_>) -> Result<(), Cut> {
        let (family, tag, metric) = (route.u16(0)?, route.u16(2)?, route.u32(16)?);
        match (family, tag) {
            (AUTHENTICATION, PASSWORD) if first => {
                self.text("\n\t  Simple Text Authentication data: ");
                let password = route.get(4, 16)?;
                self.harmless(password.split(|&byte| byte == 0).next().unwrap_or_default());
            }
            (AUTHENTICATION, DIGEST) if first => {
                put!(self, "\n\t  Auth header: Packet Len {}, ", route.u16(4)?);
                put!(self, "Key-ID {}, Auth Data Len {}", route.u8(6)?, route.u8(7)?);
                put!(self, ", SeqNo {}, MBZ {}, MBZ {}", route.u32(8)?, route.u32(12)?, metric);
            }
            (AUTHENTICATION, TRAILER) => {
                self.text("\n\t  Auth trailer:");
                self.rows("\n\t  ", route.from(4).data);
            }
            (0 | INTERNET, _) => {
                self.text(if family == 0 { "\n\t  AFI 0, " } else { "\n\t  AFI IPv4, " });
                let (address, mask, next) = (route.ip4(4)?, route.u32(8)?, route.ip4(12)?);
                let address = address.to_string();
                put!(self, "{address:>15}/");
                match mask.leading_ones() {
                    len if mask.count_ones() == len => put!(self, "{len:<2}"),
                    _ => self.text("-1"),
                }
                put!(self, ", tag 0x{tag:04x}, metric: {metric}, next-hop: ");
                match next.is_unspecified() {
                    true => self.text("self"),
                    false => self.ip4_address(next),
                }
            }
            _ => {
                put!(self, "\n\t  AFI Unknown ({family})");
                self.rows("\n\t  ", route.from(4).data);
            }
        }
        Ok(())
    }

    pub(crate) fn ripng(&mut self, bytes: Bytes<'_>) -> Result<(), Cut> {
        self.protocol = "ripng";
        self.facts.protocol = Some("ripng");
        bytes.get(0, 4)?;
        let (command, version) = (bytes.u8(0)?, bytes.u8(1)?);
        if version != 1 {
            put!(self, " [vers {version}] (invalid)");
            return Ok(());
        }
        let routes = bytes.from(4);
        let name = match command {
            1 => " ripng-req",
            2 => " ripng-resp",
            _ => {
                put!(self, " ripng-{command} ?? {} (invalid)", bytes.len);
                return Ok(());
            }
        };
        let count = routes.len / ROUTE;
        let all = count == 1 && routes.u8(19)? == INFINITY && routes.ip6(0)?.is_unspecified();
        match command == 1 && all {
            true => put!(self, "{name} dump"),
            false => {
                put!(self, "{name} {count}:");
                for number in 0..count {
                    self.ripng_route(routes.from(number * ROUTE), command == 2)?;
                }
            }
        }
        Ok(())
    }

    fn ripng_route(&mut self, route: Bytes<'_>, response: bool) -> Result<(), Cut> {
        let (prefix, tag, len, metric) = (route.ip6(0)?, route.u16(16)?, route.u8(18)?, route.u8(19)?);
        self.text(if self.options.verbose > 1 { "\n\t" } else { " " });
        self.ip6_address(prefix);
        put!(self, "/{len}");
        if tag != 0 {
            put!(self, " [{tag}]");
        }
        if response {
            put!(self, " ({metric})");
        }
        Ok(())
    }
}
