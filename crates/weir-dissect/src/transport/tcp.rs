//! TCP (RFC 9293).

use weir_packet::Endpoint;
use weir_packet::protocol::TCP;

use crate::Printer;
use crate::base::bytes::{Bytes, Cut};
use crate::base::checksum;
use crate::base::segment::{Around, Segment};
use crate::base::streams::Relative;
use crate::base::text::put;
use crate::registry::applications;

const FIN: u8 = 1;
pub(crate) const SYN: u8 = 2;
const RST: u8 = 4;
pub(crate) const ACK: u8 = 16;
const URG: u8 = 32;

/// The letters for TCP flags, lowest bit first.
const LETTERS: &[u8; 8] = b"FSRP.UEW";

impl Printer<'_> {
    pub(crate) fn tcp(&mut self, around: Around, bytes: Bytes<'_>) -> Result<(), Cut> {
        self.protocol = "tcp";
        self.facts.protocol = Some("tcp");
        let (Ok(source), Ok(destination)) = (bytes.u16(0), bytes.u16(2)) else {
            if !around.shown {
                self.addresses(around.source, around.destination);
            }
            self.text("[|tcp]");
            return Ok(());
        };
        self.ports(around, source, destination);
        bytes.get(0, 20)?;
        let header = usize::from(bytes.u8(12)? >> 4) * 4;
        if header < 20 {
            let excess = bytes.len.saturating_sub(header);
            if self.options.quick {
                put!(self, "tcp {excess} [bad hdr length {header} - too short, < 20]")
            } else {
                put!(self, "[bad hdr length {header} - too short, < 20]");
            }
            return Ok(());
        }
        let (sequence, acknowledgement) = (bytes.u32(4)?, bytes.u32(8)?);
        let (flags, window) = (bytes.u8(13)?, bytes.u16(14)?);
        let facts = &mut self.facts;
        if facts.tcp_flags.is_none() {
            facts.tcp_flags = Some(flags);
            facts.tcp_sequence = Some(sequence);
            facts.tcp_acknowledgement = (flags & ACK != 0).then_some(acknowledgement);
            facts.tcp_window = Some(window);
        }
        if bytes.len < header {
            let missing = bytes.len;
            put!(self, "[bad hdr length {header} - too long, > {missing}]");
            return Ok(());
        }
        let payload = bytes.from(header);
        self.facts.payload_len.get_or_insert(payload.len);
        let segment = Segment { protocol: TCP, around, source, destination, payload };
        let first = sequence.wrapping_add((flags & SYN != 0).into());
        self.read_segment(&segment, Some(first).filter(|_| !around.fragment));
        if self.options.quick {
            self.text("tcp ");
            self.size(payload.len);
            return Ok(());
        }
        let end = |address, port| Endpoint { address, port };
        let (from, to) = (end(around.source, source), end(around.destination, destination));
        let (relative, peer) = if self.options.absolute || flags & ACK == 0 {
            (Relative::default(), 0)
        } else {
            self.streams.relative(from, to, flags & SYN != 0, sequence, acknowledgement)
        };
        self.text("Flags [");
        self.flags(flags);
        self.text("]");
        if self.options.verbose > 0 && !self.options.unverified && !around.fragment && bytes.whole() {
            let (given, right) =
                (bytes.u16(16)?, checksum::right(around.source, around.destination, TCP, bytes.data, 16));
            put!(self, ", cksum 0x{given:04x} ");
            match given == right {
                true => self.text("(correct)"),
                false => put!(self, "(incorrect -> 0x{right:04x})"),
            }
        }
        if payload.len > 0 || flags & (SYN | FIN | RST) != 0 || self.options.verbose > 1 {
            let sequence = sequence.wrapping_sub(relative.sequence);
            self.text(", seq ");
            self.number(sequence);
            if payload.len > 0 {
                self.text(":");
                let len = u32::try_from(payload.len).unwrap_or(u32::MAX);
                self.number(sequence.wrapping_add(len));
            }
        }
        if flags & ACK != 0 {
            self.text(", ack ");
            self.number(acknowledgement.wrapping_sub(relative.acknowledgement));
        }
        self.text(", win ");
        self.number(window);
        if flags & URG != 0 {
            self.text(", urg ");
            self.number(bytes.u16(18)?);
        }
        if header > 20 {
            self.text(", options [");
            if !self.tcp_options(bytes.from(20).first(header - 20), flags, peer)? {
                return Ok(());
            }
            self.text("]");
        }
        self.text(", length ");
        self.size(payload.len);
        if payload.len == 0 {
            return Ok(());
        }
        // As in tcpdump, ports of TCP mean nothing if the caller named a payload, even one that is not for TCP.
        if self.options.payload.is_some() {
            return self.named_segment(&segment);
        }
        match applications::reader(&segment) {
            Some(read) => read(self, segment),
            None => Ok(()),
        }
    }

    fn flags(&mut self, flags: u8) {
        if flags == 0 {
            return self.text("none");
        }
        for (bit, letter) in LETTERS.iter().enumerate() {
            if flags >> bit & 1 != 0 {
                self.line.push(*letter);
            }
        }
    }
}
