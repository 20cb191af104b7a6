//! A few words about TCP and UDP payloads, where tcpdump prints them and the port identifies the protocol.

use crate::Printer;
use crate::bytes::{Bytes, Cut};
use crate::text::put;

/// Request methods of HTTP (RFC 9110) and WebDAV (RFC 4918).
const METHODS: [&[u8]; 15] = [
    b"GET",
    b"HEAD",
    b"POST",
    b"PUT",
    b"DELETE",
    b"CONNECT",
    b"OPTIONS",
    b"TRACE",
    b"PATCH",
    b"PROPFIND",
    b"PROPPATCH",
    b"MKCOL",
    b"COPY",
    b"MOVE",
    b"LOCK",
];

impl Printer<'_> {
    /// Prints the payload of a TCP segment, which is not empty.
    pub(crate) fn tcp_payload(
        &mut self,
        source: u16,
        destination: u16,
        payload: Bytes<'_>,
    ) -> Result<(), Cut> {
        let either = |port| source == port || destination == port;
        if either(53) {
            // Each message follows its length. Only a whole message at the start of a segment is read.
            if payload.len > 2 && usize::from(payload.u16(0)?) + 2 <= payload.len {
                self.text(" ");
                return self.dns(payload.from(2).first(payload.u16(0)?.into()), false);
            }
        } else if either(80) || either(8080) || either(3128) {
            self.http(payload);
        }
        Ok(())
    }

    /// Prints the first line of a request or response; for other segments, only the protocol.
    fn http(&mut self, payload: Bytes<'_>) {
        self.facts.protocol = Some("http");
        self.text(": HTTP");
        let line = payload.data.split(|&byte| byte == b'\n').next().unwrap_or_default();
        let complete = line.len() < payload.data.len();
        let line = line.strip_suffix(b"\r").unwrap_or(line);
        let word = line.split(|&byte| byte == b' ').next().unwrap_or_default();
        if complete && (METHODS.contains(&word) || word.starts_with(b"HTTP/")) {
            self.text(": ");
            self.harmless(line);
        }
    }

    /// Prints BOOTP and DHCP (RFC 951, RFC 2131).
    pub(crate) fn bootp(&mut self, payload: Bytes<'_>) -> Result<(), Cut> {
        self.protocol = "bootp";
        self.facts.protocol = Some("dhcp");
        self.text("BOOTP/DHCP, ");
        let operation = payload.u8(0)?;
        match operation {
            1 => self.text("Request"),
            2 => self.text("Reply"),
            _ => put!(self, "unknown ({operation})"),
        }
        if operation == 1 && (payload.u8(1)?, payload.u8(2)?) == (1, 6) {
            self.text(" from ");
            self.mac(payload.mac(28)?);
        }
        put!(self, ", length {}", payload.len);
        Ok(())
    }

    /// Prints NTP (RFC 5905).
    pub(crate) fn ntp(&mut self, payload: Bytes<'_>) -> Result<(), Cut> {
        self.protocol = "ntp";
        self.facts.protocol = Some("ntp");
        let first = payload.u8(0)?;
        let mode = match first & 7 {
            0 => "Reserved",
            1 => "Symmetric Active",
            2 => "Symmetric Passive",
            3 => "Client",
            4 => "Server",
            5 => "Broadcast",
            6 => "Control Message",
            _ => "Private",
        };
        put!(self, "NTPv{}, {mode}, length {}", first >> 3 & 7, payload.len);
        Ok(())
    }
}
