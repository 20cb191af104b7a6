//! The remote procedure calls of AFS. The calls themselves are not read.

use crate::Printer;
use crate::base::bytes::{Bytes, Cut};
use crate::base::text::put;

/// Length of the header, and of the fields of an acknowledgement.
const HEADER: usize = 28;
const ACKNOWLEDGEMENT: usize = 18;
const ACK: u8 = 2;
/// Types by number.
const NAMES: [Option<&str>; 14] = [
    None,
    Some("data"),
    Some("ack"),
    Some("busy"),
    Some("abort"),
    Some("ackall"),
    Some("challenge"),
    Some("response"),
    Some("debug"),
    Some("params"),
    None,
    None,
    None,
    Some("version"),
];
const REASONS: [&str; 9] = [
    "ack requested",
    "duplicate packet",
    "out of sequence",
    "exceeds window",
    "no buffer space",
    "ping",
    "ping response",
    "delay",
    "idle",
];

impl Printer<'_> {
    pub(crate) fn rx(&mut self, bytes: Bytes<'_>) -> Result<(), Cut> {
        self.protocol = "rx";
        self.facts.protocol = Some("rx");
        if bytes.data.len() < HEADER {
            put!(self, " [|rx] ({})", bytes.len);
            return Ok(());
        }
        let kind = bytes.u8(20)?;
        match NAMES.get(usize::from(kind)).copied().flatten() {
            Some(name) => put!(self, " rx {name}"),
            None => put!(self, " rx type {kind}"),
        }
        if self.options.verbose > 0 {
            put!(self, " seq {} ser {}", bytes.u32(12)?, bytes.u32(16)?);
        }
        if kind == ACK && self.rx_acknowledgement(bytes.from(HEADER)).is_err() {
            self.text(" [|ack]");
        }
        put!(self, " ({})", bytes.len);
        Ok(())
    }

    fn rx_acknowledgement(&mut self, bytes: Bytes<'_>) -> Result<(), Cut> {
        bytes.get(0, ACKNOWLEDGEMENT)?;
        let (first, serial, reason, count) = (bytes.u32(4)?, bytes.u32(12)?, bytes.u8(16)?, bytes.u8(17)?);
        put!(self, " first {first} serial {serial} reason ");
        match REASONS.get(usize::from(reason).wrapping_sub(1)) {
            Some(name) => self.text(name),
            None => put!(self, "#{reason}"),
        }
        let marks = bytes.get(ACKNOWLEDGEMENT, count.into())?;
        for (name, wanted) in [(" acked", true), (" nacked", false)] {
            let mut before = " ";
            let mut start = 0;
            for run in marks.chunk_by(|a, b| (*a == 1) == (*b == 1)) {
                let len = u32::try_from(run.len()).unwrap_or(u32::MAX);
                let (from, to) = (first.wrapping_add(start), len - 1);
                start += len;
                if (run[0] == 1) != wanted {
                    continue;
                }
                if before == " " {
                    self.text(name);
                }
                put!(self, "{before}{from}");
                if to > 0 {
                    put!(self, "-{}", from.wrapping_add(to));
                }
                before = ",";
            }
        }
        Ok(())
    }
}
