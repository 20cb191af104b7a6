//! ICMPv6 (RFC 4443), neighbour discovery (RFC 4861) and multicast listeners (RFC 2710, RFC 3810).

mod neighbour_options;
mod node_information;
mod renumbering;

use weir_packet::protocol::{ICMPV6, TCP, UDP};

use crate::Printer;
use crate::base::bytes::{Bytes, Cut};
use crate::base::checksum;
use crate::base::segment::Around;
use crate::base::text::put;
use crate::network::igmp::group_record;

impl Printer<'_> {
    pub(crate) fn icmp6(&mut self, around: Around, bytes: Bytes<'_>) -> Result<(), Cut> {
        self.protocol = "icmp6";
        self.facts.protocol = Some("icmp6");
        if bytes.len == 0 {
            self.text("ICMP6, length 0 (invalid)");
            return Ok(());
        }
        let kind = bytes.u8(0)?;
        if self.options.verbose > 0 && !around.fragment && bytes.whole() {
            let given = bytes.u16(2)?;
            let right = checksum::right(around.source, around.destination, ICMPV6, bytes.data, 2);
            match given == right {
                true => self.text("[icmp6 sum ok] "),
                false => put!(self, "[bad icmp6 cksum 0x{given:04x} -> 0x{right:04x}!] "),
            }
        }
        self.text("ICMP6, ");
        match name(kind) {
            Some(name) => self.text(name),
            None => put!(self, "unknown icmp6 type ({kind})"),
        }
        let verbose = self.options.verbose > 0;
        if verbose && matches!(kind, 133..=137 | 145 | 147) {
            put!(self, ", length {}", bytes.len);
        }
        let code = bytes.u8(1)?;
        let mut options = bytes.first(0);
        match kind {
            1 if code > 4 => return self.unreachable6(code, bytes),
            1 => self.unreachable6(code, bytes)?,
            2 => put!(self, ", mtu {}", bytes.u32(4)?),
            3 => match code {
                0 => {
                    let destination = bytes.ip6(8 + 24)?;
                    self.text(" for ");
                    self.ip6_address(destination);
                }
                1 => self.text(" (reassembly)"),
                _ => put!(self, ", unknown code ({code})"),
            },
            4 => {
                let octet = bytes.u32(4)?;
                bytes.get(8, 40)?;
                match code {
                    0 => put!(self, ", erroneous - octet {octet}"),
                    1 => put!(self, ", next header - octet {octet}"),
                    2 => put!(self, ", option - octet {octet}"),
                    3 => put!(self, ", incomplete header chain - octet {octet}"),
                    _ => put!(self, ", code-#{code}"),
                }
            }
            128 | 129 => {
                let (id, sequence) = (bytes.u16(4)?, bytes.u16(6)?);
                put!(self, ", id {id}, seq {sequence}");
            }
            130 if bytes.len >= 28 => self.listener_query(bytes)?,
            130 if bytes.len != 24 => put!(self, " unknown-version (len {}) ", bytes.len),
            130..=132 => {
                if let Ok(address) = bytes.ip6(8) {
                    put!(self, "max resp delay: {} addr: ", bytes.u16(4)?);
                    self.ip6_address(address);
                }
            }
            133 => options = bytes.from(8),
            134 => {
                if verbose {
                    bytes.get(0, 16)?;
                    self.router_advertisement(bytes)?;
                }
                options = bytes.from(16);
            }
            135 => {
                options = bytes.from(24);
                let target = bytes.ip6(8)?;
                self.text(", who has ");
                self.ip6_address(target);
            }
            136 => {
                options = bytes.from(24);
                let (flags, target) = (bytes.u8(4)?, bytes.ip6(8)?);
                self.text(", tgt is ");
                self.ip6_address(target);
                if verbose {
                    self.text(", Flags [");
                    self.flag_names(flags, &[(0x80, "router"), (0x40, "solicited"), (0x20, "override")]);
                    self.text("]");
                }
            }
            137 => {
                options = bytes.from(40);
                let (target, destination) = (bytes.ip6(8)?, bytes.ip6(24)?);
                self.text(", ");
                self.ip6_address(destination);
                self.text(" to ");
                self.ip6_address(target);
            }
            143 if bytes.len < 8 => put!(self, " [invalid len {}]", bytes.len),
            143 => {
                let count = bytes.u16(6)?;
                put!(self, ", {count} group record(s)");
                if verbose {
                    self.listener_records(count, bytes)?;
                }
            }
            138 => self.router_renumbering(code, bytes),
            139 => self.node_query(bytes)?,
            140 => self.node_reply(bytes)?,
            141 | 142 => {}
            144 | 146 => put!(self, ", id 0x{:04x}", bytes.u16(4)?),
            145 if verbose => self.home_agents(bytes)?,
            147 if verbose => {
                self.mobile_prefix(bytes)?;
                options = bytes.from(8);
            }
            145 | 147 => {}
            #[cfg(feature = "routing")]
            155 => self.rpl(code, bytes)?,
            _ => {
                put!(self, ", length {}", bytes.len);
                if self.options.verbose < 2 {
                    self.rows("\n\t", bytes.data);
                }
                return Ok(());
            }
        }
        if verbose {
            return self.neighbour_options(options);
        }
        put!(self, ", length {}", bytes.len);
        Ok(())
    }

    /// Prints the answer to a search for home agents (RFC 6275, section 6.6).
    fn home_agents(&mut self, bytes: Bytes<'_>) -> Result<(), Cut> {
        put!(self, ", id 0x{:04x}", bytes.u16(4)?);
        let mut rest = bytes.from(8);
        while rest.len > 0 {
            let agent = rest.ip6(0)?;
            self.text(", ");
            self.ip6_address(agent);
            rest = rest.from(16);
        }
        Ok(())
    }

    /// Prints an advertisement of prefixes (RFC 6275, section 6.8).
    fn mobile_prefix(&mut self, bytes: Bytes<'_>) -> Result<(), Cut> {
        put!(self, ", id 0x{:04x}", bytes.u16(4)?);
        let flags = bytes.u16(6)? >> 8;
        if flags & 0xc0 != 0 {
            self.text(" ");
        }
        self.text(if flags & 0x80 != 0 { "M" } else { "" });
        self.text(if flags & 0x40 != 0 { "O" } else { "" });
        Ok(())
    }

    /// Prints a query of version 2 (RFC 3810, section 5.1).
    fn listener_query(&mut self, bytes: Bytes<'_>) -> Result<(), Cut> {
        let verbose = self.options.verbose > 0;
        self.text(" v2");
        if verbose {
            put!(self, " [max resp delay={}]", floating(bytes.u16(4)?, 12));
        }
        self.text(" [gaddr ");
        self.ip6_address(bytes.ip6(8)?);
        if verbose {
            let flags = bytes.u8(24)?;
            if flags & 8 != 0 {
                self.text(" sflag");
            }
            if flags & 7 != 0 {
                put!(self, " robustness={}", flags & 7);
            }
            put!(self, " qqi={}", floating(bytes.u8(25)?.into(), 4));
        }
        let sources = usize::from(bytes.u16(26)?);
        if bytes.len < 28 + sources * 16 {
            self.text(" [invalid number of sources]");
        } else if sources > 0 {
            if self.options.verbose < 2 {
                put!(self, ", {sources} source(s)");
            }
            self.sources(sources, bytes.from(28), 16)?;
        }
        self.text("]");
        Ok(())
    }

    fn listener_records(&mut self, count: u16, bytes: Bytes<'_>) -> Result<(), Cut> {
        let mut at = 8;
        for _ in 0..count {
            if bytes.len < at + 20 {
                self.text(" [invalid number of groups]");
                return Ok(());
            }
            let (kind, sources, group) = (bytes.u8(at)?, usize::from(bytes.u16(at + 2)?), bytes.ip6(at + 4)?);
            self.text(" [gaddr ");
            self.ip6_address(group);
            match group_record(kind) {
                Some(name) => put!(self, " {name}"),
                None => put!(self, "  [v2-report-#{kind}]"),
            }
            if bytes.len < at + 20 + sources * 16 {
                put!(self, " [invalid number of sources {sources}]");
                return Ok(());
            }
            if self.options.verbose < 2 {
                put!(self, ", {sources} source(s)");
            }
            self.sources(sources, bytes.from(at + 20), 16)?;
            self.text("]");
            at += 20 + sources * 16;
        }
        Ok(())
    }

    fn unreachable6(&mut self, code: u8, bytes: Bytes<'_>) -> Result<(), Cut> {
        match code {
            0 => self.text(", unreachable route"),
            1 => self.text(",  unreachable prohibited"),
            2 => self.text(", beyond scope"),
            3 => self.text(", unreachable address"),
            4 => self.text(", unreachable port"),
            _ => {
                put!(self, ", unknown unreach code ({code})");
                if self.options.verbose < 2 {
                    self.rows("\n\t", bytes.data);
                }
                return Ok(());
            }
        }
        let subject = bytes.ip6(8 + 24)?;
        let port = match code {
            4 => Some((bytes.u8(8 + 6)?, bytes.u16(8 + 40 + 2)?)),
            _ => None,
        };
        self.text(if port.is_some() { ", " } else { " " });
        self.ip6_address(subject);
        match port {
            Some((TCP, port)) => self.named_port("tcp", port),
            Some((UDP, port)) => self.named_port("udp", port),
            Some((next, port)) => put!(self, " protocol {next} port {port} unreachable"),
            None if code == 2 => {
                self.text(", source address ");
                self.ip6_address(bytes.ip6(8 + 8)?);
            }
            None => {}
        }
        Ok(())
    }
}

/// Returns the name of a message.
fn name(kind: u8) -> Option<&'static str> {
    Some(match kind {
        1 => "destination unreachable",
        2 => "packet too big",
        3 => "time exceeded in-transit",
        4 => "parameter problem",
        128 => "echo request",
        129 => "echo reply",
        130 => "multicast listener query",
        131 => "multicast listener report",
        132 => "multicast listener done",
        133 => "router solicitation",
        134 => "router advertisement",
        135 => "neighbor solicitation",
        136 => "neighbor advertisement",
        137 => "redirect",
        138 => "router renumbering",
        139 => "who-are-you request",
        140 => "who-are-you reply",
        141 => "inverse neighbor solicitation",
        142 => "inverse neighbor advertisement",
        143 => "multicast listener report v2",
        144 => "ha discovery request",
        145 => "ha discovery reply",
        146 => "mobile router solicitation",
        147 => "mobile router advertisement",
        155 => "RPL",
        200 => "mtrace response",
        201 => "mtrace message",
        _ => return None,
    })
}

/// Returns the value of a floating-point number with `bits` bits of mantissa, a leading one, and three of exponent before
/// them.
fn floating(number: u16, bits: u32) -> u32 {
    let number = u32::from(number);
    let large = 1 << (bits + 3);
    match number {
        _ if number < large => number,
        _ => (number & ((1 << bits) - 1) | 1 << bits) << ((number >> bits & 7) + 3),
    }
}
