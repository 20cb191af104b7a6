//! IEEE 802.2 logical link control, and SNAP.

use crate::Printer;
use crate::base::bytes::{Bytes, Cut};
use crate::base::names;
use crate::base::text::put;
use crate::registry::ethertypes::{self, LARGEST_LENGTH};
use crate::registry::llc;

/// Bridges (IEEE 802.1H), which tcpdump calls Cisco's: EtherTypes follow as behind 0.
const BRIDGES: u32 = 0xf8;
const SNAP: u8 = 0xaa;
/// Control field of unnumbered information.
const INFORMATION: u8 = 0x03;
const EXCHANGE: u8 = 0xaf;
/// Poll and final bit of an unnumbered frame, and of the others.
const POLL: u8 = 0x10;
const POLL_NUMBERED: u16 = 0x100;

fn flags(response: bool, poll: bool) -> &'static str {
    match (response, poll) {
        (false, false) => "Command",
        (true, false) => "Response",
        (false, true) => "Poll",
        (true, true) => "Final",
    }
}

impl Printer<'_> {
    /// `ends`: source and destination of the frame, if they have not been printed.
    pub(crate) fn llc(&mut self, bytes: Bytes<'_>, ends: Option<([u8; 6], [u8; 6])>) -> Result<(), Cut> {
        self.protocol = "llc";
        self.facts.protocol = Some("llc");
        let (Ok(destination), Ok(source), Ok(first)) = (bytes.u8(0), bytes.u8(1), bytes.u8(2)) else {
            self.text(" [|llc]");
            self.dumped(bytes.data);
            return Ok(());
        };
        let numbered = first & 3 != 3;
        let control = if numbered { u16::from_be_bytes([bytes.u8(3)?, first]) } else { first.into() };
        if self.options.link {
            let group = if destination & 1 != 0 { "Group" } else { "Individual" };
            let response = if source & 1 != 0 { "Response" } else { "Command" };
            let name = |byte| llc::name(byte).unwrap_or("Unknown");
            let (to, from) = (name(destination), name(source));
            put!(self, "LLC, dsap {to} (0x{:02x}) {group}, ", destination & !1);
            put!(self, "ssap {from} (0x{:02x}) {response}, ctrl 0x", source & !1);
            match numbered {
                true => put!(self, "{control:04x}: "),
                false => put!(self, "{control:02x}: "),
            }
        }
        let same = destination & !1 == source & !1 && first == INFORMATION;
        if same && destination & !1 == SNAP {
            self.header(if bytes.get(0, 8).is_ok() { 8 } else { 0 });
            if !self.snap(bytes.from(3), ends)? {
                self.unknown(bytes.data);
            }
            return Ok(());
        }
        self.header(3);
        if same && self.access_point(destination & !1, bytes.from(3))? {
            return Ok(());
        }
        if !self.options.link {
            self.points(destination, source, ends);
        }
        self.llc_control(bytes, control, source & 1 != 0)
    }

    fn points(&mut self, destination: u8, source: u8, ends: Option<([u8; 6], [u8; 6])>) {
        if let Some((from, _)) = ends {
            self.mac(from);
            self.text(" ");
        }
        let same = destination & !1 == source & !1;
        if !same {
            match llc::name(source) {
                Some(name) => put!(self, "{name} "),
                None => put!(self, "Unknown SSAP 0x{:02x} ", source & !1),
            }
        }
        if !same || ends.is_some() {
            self.text("> ");
        }
        if let Some((_, to)) = ends {
            self.mac(to);
            self.text(" ");
        }
        match llc::name(destination) {
            Some(name) => put!(self, "{name} "),
            None => put!(self, "Unknown DSAP 0x{:02x} ", destination & !1),
        }
    }

    fn llc_control(&mut self, bytes: Bytes<'_>, control: u16, response: bool) -> Result<(), Cut> {
        let len = bytes.len;
        let [low, _] = control.to_le_bytes();
        if low & 3 == 3 {
            let kind = low & !POLL;
            self.text("Unnumbered, ");
            match kind {
                INFORMATION => self.text("ui"),
                0x0f => self.text("dm"),
                0x43 => self.text("disc"),
                0x63 => self.text("ua"),
                0x6f => self.text("sabme"),
                0x87 => self.text("frmr"),
                EXCHANGE => self.text("xid"),
                0xe3 => self.text("test"),
                _ => put!(self, "{kind:02x}"),
            }
            put!(self, ", Flags [{}], length {len}", flags(response, low & POLL != 0));
            let rest = bytes.from(3);
            if kind == EXCHANGE && rest.len == 0 {
                return Ok(());
            }
            if kind == EXCHANGE && rest.u8(0)? == 0x81 {
                if let Ok(values) = rest.get(1, 2) {
                    put!(self, ": {:02x} {:02x}", values[0], values[1]);
                } else {
                    self.truncated();
                    self.dumped(rest.data);
                }
                return Ok(());
            }
            self.unknown(bytes.data);
            return Ok(());
        }
        let flags = flags(response, control & POLL_NUMBERED != 0);
        let receive = control >> 9;
        if low & 1 == 0 {
            let send = low >> 1;
            put!(self, "Information, send seq {send}, rcv seq {receive}, Flags [{flags}], length {len}");
            self.unknown(bytes.data);
        } else {
            let name = ["Receiver Ready", "Receiver not Ready", "Reject", "?"][usize::from(low >> 2 & 3)];
            put!(self, "Supervisory, {name}, rcv seq {receive}, Flags [{flags}], length {len}");
        }
        Ok(())
    }

    /// Prints what an organisation's number and a type identify. Returns whether it is known.
    pub(crate) fn snap(&mut self, bytes: Bytes<'_>, ends: Option<([u8; 6], [u8; 6])>) -> Result<bool, Cut> {
        self.protocol = "snap";
        let (organization, kind) = (bytes.u24(0)?, bytes.u16(3)?);
        let inner = bytes.from(5);
        let owner = names::organization(organization);
        let known = llc::snap(organization, kind);
        let name = match organization {
            0 | BRIDGES | 0x80007 => ethertypes::name(kind),
            _ => known.map(|(name, _)| name),
        };
        let word = if organization == 0 { "ethertype" } else { "pid" };
        let about = |printer: &mut Self| {
            if organization != 0 || printer.options.link {
                put!(printer, "oui {owner} (0x{organization:06x}), ");
            }
            put!(printer, "{word} ");
            put!(printer, "{} (0x{kind:04x}), length {}: ", name.unwrap_or("Unknown"), inner.len);
        };
        if self.options.link {
            about(self);
        }
        let is_type = matches!(organization, 0 | BRIDGES) && kind > LARGEST_LENGTH;
        if is_type && self.carried(kind, inner)? {
            return Ok(true);
        }
        if let Some((_, Some(read))) = known {
            return read(self, inner).map(|()| true);
        }
        if !self.options.link {
            if let Some((from, to)) = ends {
                self.ends(from, to);
                self.text(" ");
            }
            self.text("SNAP, ");
            about(self);
        }
        Ok(false)
    }
}
