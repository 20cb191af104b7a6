//! ICMPv6 (RFC 4443), neighbour discovery (RFC 4861) and multicast listeners (RFC 2710, RFC 3810).

use crate::Printer;
use crate::bytes::{Bytes, Cut};
use crate::checksum;
use crate::ip::{Around, ICMP6, TCP, UDP};
use crate::text::put;

impl Printer<'_> {
    pub(crate) fn icmp6(&mut self, around: Around, bytes: Bytes<'_>) -> Result<(), Cut> {
        self.protocol = "icmp6";
        self.facts.protocol = Some("icmp6");
        let (kind, code, given) = (bytes.u8(0)?, bytes.u8(1)?, bytes.u16(2)?);
        if self.options.verbose > 0 && !around.fragment && bytes.whole() {
            let right = checksum::right(around.source, around.destination, ICMP6, bytes.data, 2);
            match given == right {
                true => self.text("[icmp6 sum ok] "),
                false => put!(self, "[bad icmp6 cksum 0x{given:04x} -> 0x{right:04x}!] "),
            }
        }
        self.text("ICMP6, ");
        let verbose = self.options.verbose > 0;
        let mut options = bytes.first(0);
        match kind {
            1 if code > 4 => return self.unreachable6(code, bytes),
            1 => self.unreachable6(code, bytes)?,
            2 => put!(self, "packet too big, mtu {}", bytes.u32(4)?),
            3 => match code {
                0 => {
                    self.text("time exceeded in-transit for ");
                    self.ip6_address(bytes.ip6(8 + 24)?);
                }
                1 => self.text("time exceeded in-transit (reassembly)"),
                _ => put!(self, "time exceeded, unknown code ({code})"),
            },
            4 => {
                let what = match code {
                    0 => "erroneous",
                    1 => "next header",
                    2 => "option",
                    _ => "code-#",
                };
                put!(self, "parameter problem, {what} - octet {}", bytes.u32(4)?);
            }
            128 | 129 => {
                let word = if kind == 128 { "request" } else { "reply" };
                put!(self, "echo {word}, id {}, seq {}", bytes.u16(4)?, bytes.u16(6)?);
            }
            130..=132 => {
                let (word, delay) = match kind {
                    130 => ("query", bytes.u16(4)?),
                    131 => ("report", bytes.u16(4)?),
                    _ => ("done", bytes.u16(4)?),
                };
                if kind == 130 && bytes.len >= 28 {
                    self.listener_query(bytes)?;
                } else {
                    put!(self, "multicast listener {word}max resp delay: {delay} addr: ");
                    self.ip6_address(bytes.ip6(8)?);
                }
            }
            133 => {
                self.text("router solicitation");
                self.early_length(bytes);
                options = bytes.from(8);
            }
            134 => {
                self.text("router advertisement");
                bytes.get(0, 16)?;
                self.early_length(bytes);
                if verbose {
                    self.router_advertisement(bytes)?;
                }
                options = bytes.from(16);
            }
            135 => {
                self.text("neighbor solicitation");
                self.early_length(bytes);
                options = bytes.from(24);
                let target = bytes.ip6(8)?;
                self.text(", who has ");
                self.ip6_address(target);
            }
            136 => {
                self.text("neighbor advertisement");
                self.early_length(bytes);
                options = bytes.from(24);
                let (flags, target) = (bytes.u8(4)?, bytes.ip6(8)?);
                self.text(", tgt is ");
                self.ip6_address(target);
                if self.options.verbose > 0 && flags & 0xe0 != 0 {
                    let words = [(0x80, "router"), (0x40, "solicited"), (0x20, "override")];
                    let mut before = ", Flags [";
                    for (bit, word) in words {
                        if flags & bit != 0 {
                            self.text(before);
                            self.text(word);
                            before = ", ";
                        }
                    }
                    self.text("]");
                }
            }
            137 => {
                self.text("redirect");
                self.early_length(bytes);
                options = bytes.from(40);
                let (target, destination) = (bytes.ip6(8)?, bytes.ip6(24)?);
                self.text(", ");
                self.ip6_address(destination);
                self.text(" to ");
                self.ip6_address(target);
            }
            143 => {
                let count = bytes.u16(6)?;
                put!(self, "multicast listener report v2, {count} group record(s)");
                if verbose {
                    self.listener_records(count, bytes)?;
                }
            }
            139 => self.node_query(bytes)?,
            140 => self.node_reply(bytes)?,
            _ => put!(self, "type-#{kind}, code-#{code}"),
        }
        if verbose {
            return self.neighbour_options(options);
        }
        put!(self, ", length {}", bytes.len);
        Ok(())
    }

    /// Prints the length where tcpdump has it with `-v`.
    fn early_length(&mut self, bytes: Bytes<'_>) {
        if self.options.verbose > 0 {
            put!(self, ", length {}", bytes.len);
        }
    }

    /// Prints a query of version 2 (RFC 3810, section 5.1).
    fn listener_query(&mut self, bytes: Bytes<'_>) -> Result<(), Cut> {
        let verbose = self.options.verbose > 0;
        self.text("multicast listener query v2");
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
        if sources > 0 {
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
            let (kind, extra, sources) =
                (bytes.u8(at)?, usize::from(bytes.u8(at + 1)?), usize::from(bytes.u16(at + 2)?));
            let group = bytes.ip6(at + 4)?;
            self.text(" [gaddr ");
            self.ip6_address(group);
            self.group_record(kind, sources);
            self.sources(sources, bytes.from(at + 20), 16)?;
            self.text("]");
            at += 20 + sources * 16 + extra * 4;
        }
        Ok(())
    }

    fn unreachable6(&mut self, code: u8, bytes: Bytes<'_>) -> Result<(), Cut> {
        self.text("destination unreachable, ");
        let subject = bytes.ip6(8 + 24)?;
        match code {
            0 => self.text("unreachable route "),
            1 => self.text(" unreachable prohibited "),
            2 => {
                self.text("beyond scope ");
                self.ip6_address(subject);
                self.text(", source address ");
                self.ip6_address(bytes.ip6(8 + 8)?);
                return Ok(());
            }
            3 => self.text("unreachable address "),
            4 => {
                let (next, port) = (bytes.u8(8 + 6)?, bytes.u16(8 + 40 + 2)?);
                self.text("unreachable port, ");
                self.ip6_address(subject);
                match next {
                    TCP => self.named_port("tcp", port),
                    UDP => self.named_port("udp", port),
                    _ => put!(self, " protocol {next} port {port} unreachable"),
                }
                return Ok(());
            }
            _ => {
                put!(self, "unknown unreach code ({code})");
                self.rows("\n\t", bytes.data);
                return Ok(());
            }
        }
        self.ip6_address(subject);
        Ok(())
    }
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
