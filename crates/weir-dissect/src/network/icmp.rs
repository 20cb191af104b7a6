//! ICMP (RFC 792 and successors).

use weir_packet::protocol::{TCP, UDP};

use crate::Printer;
use crate::base::bytes::{Bytes, Cut};
use crate::base::checksum;
use crate::base::text::put;

impl Printer<'_> {
    pub(crate) fn icmp(&mut self, bytes: Bytes<'_>, fragment: bool) -> Result<(), Cut> {
        self.protocol = "icmp";
        self.facts.protocol = Some("icmp");
        let (kind, code) = (bytes.u8(0)?, bytes.u8(1)?);
        let start = self.line.len();
        self.text("ICMP ");
        if self.icmp_words(kind, code, bytes).is_err() {
            // Half a message is of little use: show only that it is truncated.
            self.line.truncate(start);
            return Err(Cut);
        }
        put!(self, ", length {}", bytes.len);
        if self.options.verbose > 0 && !fragment && bytes.whole() && checksum::sum(&[bytes.data]) != 0xffff {
            let given = bytes.u16(2)?;
            let right = !checksum::sum(&[&bytes.data[..2], &bytes.data[4..]]);
            put!(self, " (wrong icmp cksum {given:x} (->{right:x})!)");
        }
        if self.options.verbose > 0 && matches!(kind, 3..=5 | 11 | 12) && bytes.len > 8 {
            self.text("\n\t");
            // The message quotes another packet, whose ports and other fields are not its own.
            let (own, segments) = (self.facts, self.segments.take());
            let result = self.nested(|printer| printer.ip4(bytes.from(8)));
            (self.facts, self.segments) = (own, segments);
            return result;
        }
        Ok(())
    }

    fn icmp_words(&mut self, kind: u8, code: u8, bytes: Bytes<'_>) -> Result<(), Cut> {
        match kind {
            0 | 8 => {
                let word = if kind == 8 { "request" } else { "reply" };
                put!(self, "echo {word}, id {}, seq {}", bytes.u16(4)?, bytes.u16(6)?);
            }
            3 => self.icmp_unreachable(code, bytes)?,
            4 => self.text("source quench"),
            5 => {
                let word = match code {
                    0 => "redirect {} to net",
                    1 => "redirect {} to host",
                    2 => "redirect-tos {} to net",
                    3 => "redirect-tos {} to host",
                    _ => "",
                };
                let (before, behind) = word.split_once("{}").unwrap_or((word, ""));
                match word {
                    "" => put!(self, "redirect-#{code} "),
                    _ => self.text(before),
                }
                self.ip4_address(bytes.ip4(24)?);
                self.text(if word.is_empty() { " to" } else { behind });
                self.text(" ");
                self.ip4_address(bytes.ip4(4)?);
            }
            9 => {
                let (count, words, lifetime) = (bytes.u8(4)?, bytes.u8(5)?, bytes.u16(6)?);
                self.text("router advertisement lifetime ");
                match lifetime {
                    0..60 => put!(self, "{lifetime}"),
                    60..3600 => put!(self, "{}:{:02}", lifetime / 60, lifetime % 60),
                    _ => put!(self, "{}:{:02}:{:02}", lifetime / 3600, lifetime / 60 % 60, lifetime % 60),
                }
                put!(self, " {count}:");
                if words != 2 {
                    put!(self, " [size {words}]");
                    return Ok(());
                }
                for entry in 0..usize::from(count) {
                    self.text(" {");
                    self.ip4_address(bytes.ip4(8 + entry * 8)?);
                    put!(self, " {}}}", bytes.u32(12 + entry * 8)?);
                }
            }
            10 => self.text("router solicitation"),
            11 => match code {
                0 => self.text("time exceeded in-transit"),
                1 => self.text("ip reassembly time exceeded"),
                _ => put!(self, "time exceeded-#{code}"),
            },
            12 => match code {
                0 => put!(self, "parameter problem - octet {}", bytes.u8(4)?),
                _ => put!(self, "parameter problem - code {code}"),
            },
            13 => put!(self, "time stamp query id {} seq {}", bytes.u16(4)?, bytes.u16(6)?),
            14 => {
                put!(self, "time stamp reply id {} seq {}: org ", bytes.u16(4)?, bytes.u16(6)?);
                self.milliseconds(bytes.u32(8)?);
                self.text(", recv ");
                self.milliseconds(bytes.u32(12)?);
                self.text(", xmit ");
                self.milliseconds(bytes.u32(16)?);
            }
            15 => self.text("information request"),
            16 => self.text("information reply"),
            17 => self.text("address mask request"),
            18 => put!(self, "address mask is 0x{:08x}", bytes.u32(8)?),
            _ => put!(self, "type-#{kind}"),
        }
        Ok(())
    }

    /// Prints milliseconds since midnight as a time of day.
    fn milliseconds(&mut self, time: u32) {
        let seconds = time / 1000;
        put!(self, "{:02}:{:02}:{:02}.{:03}", seconds / 3600, seconds / 60 % 60, seconds % 60, time % 1000);
    }

    /// Prints the packet that did not arrive. The message quotes at least its IP header (RFC 792).
    fn icmp_unreachable(&mut self, code: u8, bytes: Bytes<'_>) -> Result<(), Cut> {
        let subject = bytes.ip4(24)?;
        let (before, behind) = match code {
            0 => ("net ", " unreachable"),
            1 => ("host ", " unreachable"),
            2 => {
                self.ip4_address(subject);
                put!(self, " protocol {} unreachable", bytes.u8(17)?);
                return Ok(());
            }
            3 => return self.icmp_port(bytes),
            4 => {
                self.ip4_address(subject);
                self.text(" unreachable - need to frag");
                if let mtu @ 1.. = bytes.u16(6)? {
                    put!(self, " (mtu {mtu})");
                }
                return Ok(());
            }
            5 => ("", " unreachable - source route failed"),
            6 => ("net ", " unreachable - unknown"),
            7 => ("host ", " unreachable - unknown"),
            8 => ("", " unreachable - source host isolated"),
            9 => ("net ", " unreachable - admin prohibited"),
            10 => ("host ", " unreachable - admin prohibited"),
            11 => ("net ", " unreachable - tos prohibited"),
            12 => ("host ", " unreachable - tos prohibited"),
            13 => ("host ", " unreachable - admin prohibited filter"),
            14 => ("host ", " unreachable - host precedence violation"),
            15 => ("host ", " unreachable - precedence cutoff"),
            _ => {
                self.ip4_address(subject);
                put!(self, " unreachable - #{code}");
                return Ok(());
            }
        };
        self.text(before);
        self.ip4_address(subject);
        self.text(behind);
        Ok(())
    }

    fn icmp_port(&mut self, bytes: Bytes<'_>) -> Result<(), Cut> {
        let header = usize::from(bytes.u8(8)? & 15) * 4;
        let (protocol, port) = (bytes.u8(17)?, bytes.u16(8 + header + 2)?);
        self.ip4_address(bytes.ip4(24)?);
        match protocol {
            TCP => self.named_port("tcp", port),
            UDP => self.named_port("udp", port),
            _ => put!(self, " protocol {protocol} port {port}"),
        }
        self.text(" unreachable");
        Ok(())
    }

    pub(crate) fn named_port(&mut self, protocol: &str, port: u16) {
        put!(self, " {protocol} port ");
        self.port(protocol, port);
    }
}
