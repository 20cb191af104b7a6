//! RIP (RFC 1058, RFC 2453) and RIPng (RFC 2080).

use crate::Printer;
use crate::bytes::{Bytes, Cut};
use crate::text::put;

/// Length of a route.
const ROUTE: usize = 20;
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
