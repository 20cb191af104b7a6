//! OpenFlow: messages, and what those of all versions have in common.

mod codes;
mod v10;
mod v13;

use crate::Printer;
use crate::application::openflow::codes::{Bits, Invalid, RESERVED, VERSIONS};
use crate::base::bytes::{Bytes, Cut, until_zero};
use crate::base::hex::Dump;
use crate::base::names;
use crate::base::text::put;

/// Length of the header.
const HEADER: usize = 8;

const VERSION_10: u8 = 1;
const VERSION_13: u8 = 4;

impl Printer<'_> {
    pub(crate) fn openflow(&mut self, bytes: Bytes<'_>) -> Result<(), Cut> {
        self.protocol = "openflow";
        self.facts.protocol = Some("openflow");
        self.text(": OpenFlow");
        let mut rest = bytes;
        while rest.len > 0 {
            let version = rest.u8(0)?;
            self.text("\n\tversion ");
            match VERSIONS.get(usize::from(version).wrapping_sub(1)) {
                Some(name) => self.text(name),
                None => put!(self, "unknown (0x{version:02x})"),
            }
            let ends = |at: usize| rest.len < at;
            if ends(2) {
                return self.openflow_ends();
            }
            let kind = rest.u8(1)?;
            match message(version, kind) {
                Some(name) => put!(self, ", type {name}"),
                None => put!(self, ", type unknown (0x{kind:02x})"),
            }
            if ends(4) {
                return self.openflow_ends();
            }
            let len = rest.u16(2)?;
            put!(self, ", length {len}");
            let short = usize::from(len) < HEADER;
            self.text(if short { " (too short!)" } else { "" });
            if ends(HEADER) {
                return self.openflow_ends();
            }
            put!(self, ", xid 0x{:08x}", rest.u32(4)?);
            if short {
                return self.invalid(rest);
            }
            // A message can end in a later segment.
            let size = usize::from(len) - HEADER;
            let body = Bytes { len: size, ..rest.from(HEADER).first(size) };
            let fits = match version {
                VERSION_10 => v10::fits(kind, size),
                VERSION_13 => v13::fits(kind, size),
                _ => true,
            };
            let right = match version {
                _ if !fits => Err(Invalid),
                VERSION_10 if self.options.verbose > 0 => self.openflow10(kind, body)?,
                VERSION_13 if self.options.verbose > 0 => self.openflow13(kind, body)?,
                _ => Ok(()),
            };
            self.text(if right.is_err() { " (invalid)" } else { "" });
            // tcpdump says nothing of the rest of a request for unknown statistics.
            let unread = version == VERSION_10 && kind == 16 && matches!(body.u16(0), Ok(6..=0xfffe));
            if !unread || self.options.verbose == 0 {
                body.get(0, size)?;
            }
            rest = rest.from(len.into());
        }
        Ok(())
    }

    fn openflow_ends(&mut self) -> Result<(), Cut> {
        self.text(" (end of TCP payload)");
        Ok(())
    }

    /// Prints bits with the names of those that have one.
    pub(crate) fn openflow_bits(&mut self, value: u32, names: &Bits) {
        let allowed = names.iter().filter(|(_, name)| *name != RESERVED);
        let known = allowed.fold(0, |known, (bit, _)| known | bit);
        if value & known != 0 {
            self.text(" (");
            self.flag_names(value, names);
            self.text(")");
        }
        self.text(if value & !known != 0 { " (bogus)" } else { "" });
    }

    /// Prints a field of bits on a line of its own; spaces in front of the name indent it.
    pub(crate) fn openflow_field(&mut self, name: &str, value: u32, names: &Bits) {
        put!(self, "\n\t {name} 0x{value:08x}");
        self.openflow_bits(value, names);
    }

    /// Prints data that a message carries.
    pub(crate) fn openflow_data(&mut self, data: Bytes<'_>) -> Result<(), Cut> {
        if data.len == 0 {
            return Ok(());
        }
        put!(self, "\n\t data ({} octets)", data.len);
        if self.options.verbose > 1 {
            Dump::HexAscii.indented("\n\t  ", data.data, self.line);
        }
        data.get(0, data.len).map(drop)
    }

    /// Prints a frame that a message carries.
    pub(crate) fn openflow_frame(&mut self, data: Bytes<'_>) -> Result<(), Cut> {
        if data.len == 0 {
            return Ok(());
        }
        put!(self, "\n\t data ({} octets)", data.len);
        if self.options.verbose < 3 {
            return data.get(0, data.len).map(drop);
        }
        self.text(", frame decoding below\n");
        let options = self.options;
        self.options.verbose = 0;
        let printed = self.nested(|printer| printer.ethernet(data));
        self.options = options;
        printed?;
        self.protocol = "openflow";
        Ok(())
    }

    /// Prints text that ends with a zero or after `len` bytes, and a quote.
    pub(crate) fn openflow_text(&mut self, before: &str, bytes: Bytes<'_>, len: usize) -> Result<(), Cut> {
        self.text(before);
        let text = bytes.first(len).data;
        let short = until_zero(text);
        self.harmless(short);
        if text.len() < len && short.len() == text.len() {
            return Err(Cut);
        }
        self.text("'");
        bytes.get(0, len).map(drop)
    }

    pub(crate) fn openflow_mac(&mut self, what: &str, address: [u8; 6]) {
        self.text(what);
        self.mac(address);
    }

    pub(crate) fn openflow_vendor(&mut self, what: &str, vendor: u32) {
        let name = match vendor {
            0x005c_16c7 => "Big Switch Networks",
            0x0074_8771 => "Infoblox Inc",
            0x4f4e_4600 => "ONF Extensions",
            0xff00_0001 => "Budapest University of Technology and Economics",
            0xff00_0002 => "NoviFlow",
            0xff00_0003 => "L3+ Extensions, Vendor Neutral",
            0xff00_0004 => "L4-L7 Extensions",
            0xff00_0005 => "Wireless and Mobility Extensions",
            0xff00_0006 => "Forwarding Abstractions Extensions",
            0xff00_0007 => "Optical Transport Extensions",
            0xff00_0008 => "Network Benchmarking Lab, NCTU",
            0xff00_0009 => "Mobile Packet Core Extensions",
            0xff00_000a => "MPLS-TP OpenFlow Extensions for SPTN",
            _ => match names::organization(vendor) {
                "Unknown" => "unknown",
                name => name,
            },
        };
        put!(self, "{what}0x{vendor:08x} ({name})");
    }

    /// Prints an error's type and code, and the data of the message that caused it.
    pub(crate) fn openflow_error(&mut self, body: Bytes<'_>, errors: &[(&str, &[&str])]) -> Result<(), Cut> {
        let kind = body.u16(0)?;
        let known = errors.get(usize::from(kind));
        match known {
            Some((name, _)) => put!(self, "\n\t type {name}"),
            None if kind == 0xffff && errors.len() > 6 => self.text("\n\t type EXPERIMENTER"),
            None => put!(self, "\n\t type invalid (0x{kind:04x})"),
        }
        let code = body.u16(2)?;
        match known.and_then(|(_, codes)| codes.get(usize::from(code))) {
            Some(name) => put!(self, ", code {name}"),
            None => put!(self, ", code invalid (0x{code:04x})"),
        }
        self.openflow_data(body.from(4))
    }

    /// Prints a name, or that `value` has none.
    pub(crate) fn openflow_name(&mut self, names: &[&str], value: u16) {
        match names.get(usize::from(value)) {
            Some(name) => self.text(name),
            None => put!(self, "invalid (0x{value:04x})"),
        }
    }
}

/// Returns the name of a message.
fn message(version: u8, kind: u8) -> Option<&'static str> {
    let names: &[&str] = match version {
        VERSION_10 => &[
            "HELLO",
            "ERROR",
            "ECHO_REQUEST",
            "ECHO_REPLY",
            "VENDOR",
            "FEATURES_REQUEST",
            "FEATURES_REPLY",
            "GET_CONFIG_REQUEST",
            "GET_CONFIG_REPLY",
            "SET_CONFIG",
            "PACKET_IN",
            "FLOW_REMOVED",
            "PORT_STATUS",
            "PACKET_OUT",
            "FLOW_MOD",
            "PORT_MOD",
            "STATS_REQUEST",
            "STATS_REPLY",
            "BARRIER_REQUEST",
            "BARRIER_REPLY",
            "QUEUE_GET_CONFIG_REQUEST",
            "QUEUE_GET_CONFIG_REPLY",
        ],
        VERSION_13 => &[
            "HELLO",
            "ERROR",
            "ECHO_REQUEST",
            "ECHO_REPLY",
            "EXPERIMENTER",
            "FEATURES_REQUEST",
            "FEATURES_REPLY",
            "GET_CONFIG_REQUEST",
            "GET_CONFIG_REPLY",
            "SET_CONFIG",
            "PACKET_IN",
            "FLOW_REMOVED",
            "PORT_STATUS",
            "PACKET_OUT",
            "FLOW_MOD",
            "GROUP_MOD",
            "PORT_MOD",
            "TABLE_MOD",
            "MULTIPART_REQUEST",
            "MULTIPART_REPLY",
            "BARRIER_REQUEST",
            "BARRIER_REPLY",
            "QUEUE_GET_CONFIG_REQUEST",
            "QUEUE_GET_CONFIG_REPLY",
            "ROLE_REQUEST",
            "ROLE_REPLY",
            "GET_ASYNC_REQUEST",
            "GET_ASYNC_REPLY",
            "SET_ASYNC",
            "METER_MOD",
        ],
        _ => &[],
    };
    names.get(usize::from(kind)).copied()
}
