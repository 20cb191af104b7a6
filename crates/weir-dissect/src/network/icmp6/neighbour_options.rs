//! Options of neighbour discovery (RFC 4861, RFC 8106, RFC 4191), with `-v`.

use crate::Printer;
use crate::base::bytes::{Bytes, Cut};
use crate::base::text::put;

/// Router preferences, by their two bits (RFC 4191).
const PREFERENCES: [&str; 4] = ["medium", "high", "rsv", "low"];

/// Most names of one option: compression lets a small option name many long ones.
const MOST_NAMES: usize = 32;

impl Printer<'_> {
    pub(crate) fn router_advertisement(&mut self, bytes: Bytes<'_>) -> Result<(), Cut> {
        let (hops, flags, lifetime) = (bytes.u8(4)?, bytes.u8(5)?, bytes.u16(6)?);
        put!(self, "\n\thop limit {hops}, Flags [");
        let names = [(0x80, "managed"), (0x40, "other stateful"), (0x20, "home agent"), (0x02, "ipv6 only")];
        self.flag_names(flags, &names);
        put!(self, "], pref {}, router lifetime {lifetime}s", PREFERENCES[usize::from(flags >> 3 & 3)]);
        put!(self, ", reachable time {}ms, retrans timer {}ms", bytes.u32(8)?, bytes.u32(12)?);
        Ok(())
    }

    pub(crate) fn neighbour_options(&mut self, mut rest: Bytes<'_>) -> Result<(), Cut> {
        while !rest.data.is_empty() {
            let (kind, words) = (rest.u8(0)?, rest.u8(1)?);
            let len = usize::from(words) * 8;
            if len == 0 {
                return Err(Cut);
            }
            rest.get(0, len)?;
            let name = match kind {
                1 => "source link-address",
                2 => "destination link-address",
                3 => "prefix info",
                4 => "redirected header",
                5 => "mtu",
                7 => "advertisement interval",
                8 => "homeagent information",
                24 => "route info",
                25 => "rdnss",
                31 => "dnssl",
                _ => "unknown",
            };
            put!(self, "\n\t  {name} option ({kind}), length {len} ({words}): ");
            let known = self.neighbour_option(kind, rest.first(len))?;
            if !known && self.options.verbose == 1 {
                // tcpdump stops here.
                return Ok(());
            }
            if self.options.verbose > 1 {
                self.rows("\n\t    ", rest.get(2, len - 2)?);
            }
            rest = rest.from(len);
        }
        Ok(())
    }

    /// Returns whether it is an option that is dissected.
    fn neighbour_option(&mut self, kind: u8, option: Bytes<'_>) -> Result<bool, Cut> {
        match kind {
            1 | 2 => {
                for (at, byte) in option.from(2).data.iter().enumerate() {
                    put!(self, "{}{byte:02x}", if at == 0 { "" } else { ":" });
                }
            }
            3 => {
                let (len, flags) = (option.u8(2)?, option.u8(3)?);
                self.ip6_address(option.ip6(16)?);
                put!(self, "/{len}{}, Flags [", if option.len == 32 { "" } else { "badlen" });
                self.flag_names(flags, &[(0x80, "onlink"), (0x40, "auto"), (0x20, "router")]);
                self.text("], valid time ");
                self.lifetime(option.u32(4)?, "s");
                self.text(", pref. time ");
                self.lifetime(option.u32(8)?, "s");
            }
            4 => self.rows("\n\t    ", option.data),
            5 => put!(self, " {}", option.u32(4)?),
            24 => {
                let (len, flags) = (option.u8(2)?, option.u8(3)?);
                let mut prefix = [0; 16];
                let given = option.from(8).data;
                let size = given.len().min(16);
                prefix[..size].copy_from_slice(&given[..size]);
                self.text(" ");
                self.ip6_address(prefix.into());
                put!(self, "/{len}, pref={}, lifetime=", PREFERENCES[usize::from(flags >> 3 & 3)]);
                self.lifetime(option.u32(4)?, "s");
            }
            25 => {
                put!(self, " lifetime {}s,", option.u32(4)?);
                for at in (8..option.len).step_by(16) {
                    self.text(" addr: ");
                    self.ip6_address(option.ip6(at)?);
                }
            }
            31 => {
                put!(self, " lifetime {}s, domain(s):", option.u32(4)?);
                let mut at = 8;
                let mut shown = 0;
                while at < option.len && option.u8(at)? != 0 {
                    shown += 1;
                    if shown > MOST_NAMES {
                        self.text(" ...");
                        break;
                    }
                    self.text(" ");
                    at = self.domain_end(option, at)?;
                }
            }
            7 => put!(self, " {}ms", option.u32(4)?),
            8 => put!(self, " preference {}, lifetime {}", option.u16(4)?, option.u16(6)?),
            // With -vv, every option is dumped.
            _ => {
                if self.options.verbose == 1 {
                    self.rows("\n\t  ", option.from(2).data);
                }
                return Ok(false);
            }
        }
        Ok(true)
    }

    fn lifetime(&mut self, seconds: u32, unit: &str) {
        match seconds {
            u32::MAX => self.text("infinity"),
            _ => put!(self, "{seconds}{unit}"),
        }
    }
}
