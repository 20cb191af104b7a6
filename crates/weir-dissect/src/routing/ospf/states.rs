//! Link states of OSPF version 2 (RFC 2328), and opaque ones (RFC 3623, RFC 5250, RFC 7770).

use crate::Printer;
use crate::base::bytes::{Bytes, Cut};
use crate::base::text::put;

/// Length of the header of a link state.
pub(crate) const HEAD: usize = 20;

/// From 0.
const NAMES: [&str; 12] = [
    "unknown",
    "Router",
    "Network",
    "Summary",
    "ASBR Summary",
    "External",
    "Multicast Group",
    "NSSA",
    "unknown",
    "Link Local Opaque",
    "Area Local Opaque",
    "Domain Wide Opaque",
];
const OPAQUE: std::ops::RangeInclusive<u32> = 9..=11;
const RESTART: u8 = 3;
const INFORMATION: u8 = 4;

const ROUTER_FLAGS: [(u8, &str); 6] =
    [(1, "ABR"), (2, "ASBR"), (4, "Virtual"), (8, "Wildcard"), (16, "Nt"), (32, "Host")];

impl Printer<'_> {
    /// Prints the headers of link states.
    pub(crate) fn ospf_state_heads(&mut self, mut rest: Bytes<'_>) -> Result<(), Cut> {
        while rest.len > 0 && self.ospf_state_head(rest)?.is_some() {
            rest = rest.from(HEAD);
        }
        Ok(())
    }

    /// Prints the header of a link state; returns its type and the length of its body.
    fn ospf_state_head(&mut self, bytes: Bytes<'_>) -> Result<Option<(u8, usize)>, Cut> {
        let len = usize::from(bytes.u16(18)?);
        if len < HEAD {
            put!(self, "\n\t    Bogus length {len} < header ({HEAD})");
            return Ok(None);
        }
        let (age, options, kind, sequence) = (bytes.u16(0)?, bytes.u8(2)?, bytes.u8(3)?, bytes.u32(12)?);
        self.text("\n\t  Advertising Router ");
        self.ip4_address(bytes.ip4(8)?);
        put!(self, ", seq 0x{sequence:08x}, age {age}s, length {}", len - HEAD);
        self.ospf_state_name("\n\t    ", kind.into(), bytes.from(4), false)?;
        self.ospf_options("\n\t    Options: [", options);
        Ok(Some((kind, len - HEAD)))
    }

    /// Prints the type and the identifier of a link state. `request`: as part of a request.
    pub(crate) fn ospf_state_name(
        &mut self,
        before: &str,
        kind: u32,
        bytes: Bytes<'_>,
        request: bool,
    ) -> Result<(), Cut> {
        let name = usize::try_from(kind).ok().and_then(|at| NAMES.get(at)).unwrap_or(&"unknown");
        put!(self, "{before}{name} LSA ({kind})");
        if OPAQUE.contains(&kind) {
            let (kind, number) = (bytes.u8(0)?, bytes.u24(1)?);
            let name = match kind {
                1 => "Traffic Engineering",
                RESTART => "Graceful restart",
                INFORMATION => "Router Information",
                _ => "unknown",
            };
            let colon = if request { ":" } else { "" };
            put!(self, ", Opaque-Type{colon} {name} LSA ({kind}), Opaque-ID{colon} {number}");
            return Ok(());
        }
        self.text(", LSA-ID: ");
        self.ip4_address(bytes.ip4(0)?);
        Ok(())
    }

    /// Prints the link states of an update.
    pub(crate) fn ospf_states(&mut self, bytes: Bytes<'_>) -> Result<(), Cut> {
        let count = bytes.u32(0)?;
        put!(self, ", {count} LSA{}", if count == 1 { "" } else { "s" });
        let mut rest = bytes.from(4);
        for number in 1..=count {
            put!(self, "\n\t  LSA #{number}");
            let (kind, len) = self.ospf_state_head(rest)?.ok_or(Cut)?;
            let body = rest.from(HEAD);
            if !self.ospf_state(kind, rest, len)? {
                return Ok(());
            }
            if self.options.verbose > 1 {
                self.rows("\n\t    ", body.first(len).data);
            }
            rest = body.from(len);
        }
        Ok(())
    }

    /// Prints the body of a link state; returns whether what follows can be read.
    fn ospf_state(&mut self, kind: u8, state: Bytes<'_>, len: usize) -> Result<bool, Cut> {
        let body = state.from(HEAD);
        match kind {
            1 => return self.ospf_router(body),
            2 => {
                let mask = body.ip4(0)?;
                self.text("\n\t    Mask ");
                self.ip4_number(mask);
                self.text("\n\t    Connected Routers:");
                self.ospf_routers("\n\t      ", body.first(len).from(4))?;
            }
            3 | 4 => {
                body.get(0, 4)?;
                if kind == 3 {
                    self.text("\n\t    Mask ");
                    self.ip4_number(body.ip4(0)?);
                }
                body.get(4, 4)?;
                for at in (4..len).step_by(4) {
                    let (topology, metric) = (body.u8(at)? & 0x7f, body.u24(at + 1)?);
                    self.ospf_topology(topology);
                    put!(self, " metric {metric}");
                }
            }
            5 | 7 => self.ospf_external(body, len)?,
            6 => {
                body.get(0, 8)?;
                for at in (0..len).step_by(8) {
                    let (kind, router) = (body.u32(at)?, body.ip4(at + 4)?);
                    match kind {
                        1 => self.text("\n\t    Router Router-ID "),
                        2 => self.text("\n\t    Network Designated Router "),
                        _ => {
                            put!(self, "\n\t    unknown VertexType ({kind})");
                            break;
                        }
                    }
                    self.ip4_address(router);
                }
            }
            9..=11 => match state.u8(4)? {
                RESTART if kind == 9 => self.ospf_restart(body.first(len))?,
                INFORMATION => self.ospf_information(body.first(len))?,
                _ if self.options.verbose == 1 => self.rows("\n\t    ", body.first(len).data),
                _ => {}
            },
            _ => {}
        }
        Ok(true)
    }

    fn ospf_router(&mut self, body: Bytes<'_>) -> Result<bool, Cut> {
        let flags = body.u8(0)?;
        self.text("\n\t    Router LSA Options: [");
        self.flag_names(flags, &ROUTER_FLAGS);
        self.text("]");
        let mut rest = body.from(4);
        for _ in 0..body.u16(2)? {
            rest.get(0, 12)?;
            let kind = rest.u8(8)?;
            let (name, data) = match kind {
                1 => ("Neighbor Router-ID", "Interface Address"),
                2 => ("Neighbor Network-ID", "Interface Address"),
                3 => ("Stub Network", "Mask"),
                4 => ("Virtual Link: Neighbor Router-ID", "Interface Address"),
                _ => {
                    put!(self, "\n\t      Unknown Router Link Type ({kind})");
                    return Ok(false);
                }
            };
            put!(self, "\n\t      {name}: ");
            self.ip4_address(rest.ip4(0)?);
            put!(self, ", {data}: ");
            self.ip4_number(rest.ip4(4)?);
            self.ospf_topology(0);
            put!(self, ", metric {}", rest.u16(10)?);
            let more = usize::from(rest.u8(9)?);
            rest = rest.from(12);
            for _ in 0..more {
                rest.get(0, 4)?;
                self.ospf_topology(rest.u8(0)?);
                put!(self, ", metric {}", rest.u16(2)?);
                rest = rest.from(4);
            }
        }
        Ok(true)
    }

    fn ospf_external(&mut self, body: Bytes<'_>, len: usize) -> Result<(), Cut> {
        let mask = body.ip4(0)?;
        self.text("\n\t    Mask ");
        self.ip4_number(mask);
        body.get(4, 4)?;
        for at in (4..len).step_by(12) {
            let way = body.from(at);
            let (first, metric) = (way.u8(0)?, way.u24(1)?);
            self.ospf_topology(first & 0x7f);
            put!(self, ", type {}, metric {metric}", 1 + (first >> 7));
            for (at, name) in [(4, "forward"), (8, "tag")] {
                if way.u32(at)? != 0 {
                    put!(self, ", {name} ");
                    self.ip4_number(way.ip4(at)?);
                }
            }
        }
        Ok(())
    }

    fn ospf_topology(&mut self, topology: u8) {
        let name = ["default", "multicast", "management"].get(usize::from(topology)).unwrap_or(&"Unknown");
        put!(self, "\n\t\ttopology {name} ({topology})");
    }

    fn ospf_restart(&mut self, mut rest: Bytes<'_>) -> Result<(), Cut> {
        while rest.len > 0 {
            let (kind, len) = (rest.u16(0)?, rest.u16(2)?);
            let (name, right) = match kind {
                1 => ("Grace Period", 4),
                2 => ("Graceful restart Reason", 1),
                3 => ("IPv4 interface address", 4),
                _ => ("unknown", len),
            };
            put!(self, "\n\t    {name} TLV ({kind}), length {len}, value: ");
            let value = rest.get(4, len.into()).map(|_| rest.from(4).first(len.into()))?;
            if len != right {
                put!(self, "\n\t    Bogus length {len} != {right}");
                return Ok(());
            }
            match kind {
                1 => put!(self, "{}s", value.u32(0)?),
                2 => {
                    const REASONS: [&str; 4] =
                        ["Unknown", "Software Restart", "Software Reload/Upgrade", "Control Process Switch"];
                    let reason = value.u8(0)?;
                    let name = REASONS.get(usize::from(reason)).unwrap_or(&"Unknown");
                    put!(self, "{name} ({reason})");
                }
                3 => self.ip4_address(value.ip4(0)?),
                _ if self.options.verbose == 1 => self.rows("\n\t      ", value.data),
                _ => {}
            }
            rest = rest.from(4 + usize::from(len).next_multiple_of(4));
        }
        Ok(())
    }

    fn ospf_information(&mut self, mut rest: Bytes<'_>) -> Result<(), Cut> {
        // From the most significant bit, other than in tcpdump.
        const CAPABILITIES: [(u32, &str); 6] = [
            (1 << 31, "graceful restart capable"),
            (1 << 30, "graceful restart helper"),
            (1 << 29, "Stub router support"),
            (1 << 28, "Traffic engineering"),
            (1 << 27, "p2p over LAN"),
            (1 << 26, "path computation server"),
        ];
        while rest.len > 0 {
            let (kind, len) = (rest.u16(0)?, usize::from(rest.u16(2)?));
            let name = if kind == 1 { "Router Capabilities" } else { "unknown" };
            put!(self, "\n\t    {name} TLV ({kind}), length: {len}, value: ");
            let value = rest.get(4, len).map(|_| rest.from(4).first(len))?;
            if kind == 1 {
                if len != 4 {
                    put!(self, "\n\t    Bogus length {len} != 4");
                    return Ok(());
                }
                self.text("Capabilities: ");
                self.flag_names(value.u32(0)?, &CAPABILITIES);
            } else if self.options.verbose == 1 {
                self.rows("\n\t      ", value.data);
            }
            rest = rest.from(4 + len.next_multiple_of(4));
        }
        Ok(())
    }
}
