//! Signalling of frame relay (Q.933): which circuits there are, and whether the link is there.

use crate::Printer;
use crate::base::bytes::{Bytes, Cut};
use crate::base::text::put;

/// Bit of an element that has one byte only.
const SINGLE: u8 = 0x80;
/// The codeset of national variants.
const NATIONAL: u8 = 5;

/// Returns the name of a message.
fn message(kind: u8) -> Option<&'static str> {
    Some(match kind {
        0x00 => "ESC to National",
        0x01 => "Alert",
        0x02 => "Call proceeding",
        0x03 => "Progress",
        0x05 => "Setup",
        0x07 => "Connect",
        0x0f => "Connect ACK",
        0x45 => "Disconnect",
        0x46 => "Restart",
        0x4d => "Release",
        0x4e => "Restart ACK",
        0x5a => "Release Complete",
        0x75 => "Status Enquiry",
        0x7d => "Status Reply",
        _ => return None,
    })
}

/// Returns the name of an element in the codesets that are read.
fn element(kind: u8) -> Option<&'static str> {
    Some(match kind {
        0x01 => "ANSI Report Type",
        0x03 | 0x19 => "ANSI Link Verify",
        0x07 => "ANSI PVC Status",
        0x51 => "CCITT Report Type",
        0x53 => "CCITT Link Verify",
        0x57 => "CCITT PVC Status",
        _ => return None,
    })
}

/// Returns the codeset that an element shifts to, and whether it stays.
fn shift(kind: u8) -> Option<(u8, bool)> {
    (kind & 0xf0 == 0x90).then_some((kind & 7, kind & 8 == 0))
}

impl Printer<'_> {
    pub(crate) fn q933(&mut self, bytes: Bytes<'_>) -> Result<(), Cut> {
        self.protocol = "q.933";
        self.facts.protocol = Some("q.933");
        let link = self.options.link;
        self.text(if link { "" } else { "Q.933" });
        let Ok((reference, kind, mut at, first)) = q933_head(bytes) else {
            self.text(if link { "" } else { ", " });
            put!(self, "length {}", bytes.len);
            return Err(Cut);
        };
        // The codeset of the next element, and the one to return to after it.
        let (mut codeset, mut back) = (0, None);
        let mut national = false;
        if let Some((set, stays)) = first.and_then(shift) {
            at += 1;
            codeset = set;
            national = stays && set == NATIONAL;
            back = (!stays).then_some(0);
        }
        self.text(if link { "" } else { ", " });
        put!(self, "{}, codeset {codeset}", if national { "ANSI" } else { "CCITT" });
        if reference.len() > 1 || reference.len() == 1 && bytes.u8(at)? != 0 {
            self.text(", Call Ref: 0x");
            reference.iter().for_each(|&byte| self.hex_byte(byte));
        }
        let verbose = self.options.verbose > 0;
        match (message(kind), verbose) {
            (Some(name), false) => put!(self, ", {name}"),
            (None, false) => put!(self, ", unknown message 0x{kind:02x}"),
            (name, true) => {
                put!(self, ", {} (0x{kind:02x}), length {}", name.unwrap_or("unknown message"), bytes.len);
            }
        }
        let read = self.q933_elements(bytes.from(at), codeset, &mut back);
        if !verbose && read != Ok(false) {
            put!(self, ", length {}", bytes.len);
        }
        read.map(drop)
    }

    /// Returns whether the end was reached, rather than an element that has no length.
    fn q933_elements(
        &mut self,
        mut bytes: Bytes<'_>,
        mut codeset: u8,
        back: &mut Option<u8>,
    ) -> Result<bool, Cut> {
        let verbose = self.options.verbose;
        while bytes.len > 0 {
            let before = back.take();
            let kind = bytes.u8(0)?;
            if kind & SINGLE != 0 {
                codeset = match shift(kind) {
                    Some((set, stays)) => {
                        *back = (!stays).then_some(codeset);
                        set
                    }
                    None => before.unwrap_or(codeset),
                };
                bytes = bytes.from(1);
                continue;
            }
            let len = usize::from(bytes.u8(1)?);
            let known = matches!(codeset, 0 | NATIONAL).then(|| element(kind)).flatten();
            if verbose > 0 {
                put!(self, "\n\t{} IE (0x{kind:02x}), length {len}: ", known.unwrap_or("unknown"));
            }
            if kind == 0 || len == 0 {
                return Ok(false);
            }
            let value = bytes.get(2, len)?;
            if known.is_some() {
                self.q933_element(kind, value);
                if verbose > 1 {
                    self.rows("\n\t  ", value);
                }
            } else if verbose > 0 {
                self.rows("\n\t", value);
            }
            bytes = bytes.from(2 + len);
            codeset = before.unwrap_or(codeset);
        }
        Ok(true)
    }

    fn q933_element(&mut self, kind: u8, value: &[u8]) {
        let verbose = self.options.verbose > 0;
        if matches!(kind, 0x01 | 0x51) {
            let name = match value[0] {
                0 => "Full Status",
                1 => "Link verify",
                2 => "Async PVC Status",
                _ => "unknown",
            };
            if verbose {
                put!(self, "{name} ({})", value[0]);
            }
            return;
        }
        self.text(if verbose { "" } else { ", " });
        match (kind, value) {
            (0x07 | 0x57, _) => match circuit(value) {
                Some((circuit, status)) => {
                    let new = if status & 8 != 0 { "New, " } else { "" };
                    let active = if status & 2 != 0 { "Active" } else { "Inactive" };
                    put!(self, "DLCI {circuit}: status {new}{active}");
                }
                None => self.text("Invalid DLCI in PVC STATUS IE"),
            },
            (_, [sent, received, ..]) => put!(self, "TX Seq: {sent:3}, RX Seq: {received:3}"),
            _ => self.text("Invalid LINK VERIFY IE"),
        }
    }
}

/// Returns the call reference, the kind of the message, the place after them, and the first element.
#[expect(clippy::type_complexity, reason = "read in one place")]
fn q933_head(bytes: Bytes<'_>) -> Result<(&[u8], u8, usize, Option<u8>), Cut> {
    let len = usize::from(bytes.u8(0)? & 15);
    let at = 2 + len;
    let (reference, kind) = (bytes.get(1, len)?, bytes.u8(at - 1)?);
    let first = if bytes.len > at { Some(bytes.u8(at)?) } else { None };
    Ok((reference, kind, at, first))
}

/// Returns the number of a circuit, whose last byte has the highest bit set, and the status after it.
fn circuit(value: &[u8]) -> Option<(u32, u8)> {
    let (status, number) = value.split_last()?;
    let (last, others) = number.split_last()?;
    if !(2..=4).contains(&number.len())
        || last & SINGLE == 0
        || status & SINGLE == 0
        || others.iter().any(|byte| byte & SINGLE != 0)
    {
        return None;
    }
    let circuit = u32::from(number[0] & 0x3f) << 4 | u32::from(number[1] & 0x78) >> 3;
    let circuit = match number {
        [_, _, third] => circuit << 6 | u32::from(third & 0x7e) >> 1,
        [_, _, third, fourth] => circuit << 13 | u32::from(third & 0x7f) | u32::from(fourth & 0x7e) >> 1,
        _ => circuit,
    };
    Some((circuit, *status))
}
