//! Frame relay (`LINKTYPE_FRELAY`): the header of Q.922, and what it carries (RFC 2427).

use crate::Printer;
use crate::base::bytes::{Bytes, Cut};
use crate::base::text::put;
use crate::registry::ethertypes::{self, LARGEST_LENGTH};
use crate::registry::osi::{self, SNAP};

/// Unnumbered information.
const CONTROL: u8 = 3;
/// The bit in the last byte of an address.
const LAST: u8 = 1;
/// Command or response, and congestion, discard eligible and control: bits of the first, second and last byte.
const FLAGS: [(u32, &str); 5] = [
    (0x0200_0000, "C!"),
    (0x0002_0000, "DE"),
    (0x0004_0000, "BECN"),
    (0x0008_0000, "FECN"),
    (0x0000_0002, "sdlcore"),
];
/// Bits of a fragment.
pub(crate) const FRAGMENT_FLAGS: [(u8, &str); 3] = [(0x80, "Begin"), (0x40, "End"), (0x20, "Control")];

/// An address, which has two to four bytes.
struct Address {
    circuit: u32,
    flags: u32,
    len: usize,
}

impl Address {
    /// Returns `None` if the address has no end where it can have one.
    fn read(bytes: Bytes<'_>) -> Result<Option<Self>, Cut> {
        let first = bytes.u8(0)?;
        if first & LAST != 0 {
            return Ok(None);
        }
        let second = bytes.u8(1)?;
        let mut circuit = u32::from(first & 0xfc) << 2 | u32::from(second >> 4);
        let mut flags = u32::from(first & 2) << 24 | u32::from(second & 0x0e) << 16;
        if second & LAST != 0 {
            return Ok(Some(Self { circuit, flags, len: 2 }));
        }
        let mut len = 3;
        let mut last = bytes.u8(2)?;
        if last & LAST == 0 {
            circuit = circuit << 7 | u32::from(last >> 1);
            len = 4;
            last = bytes.u8(3)?;
            if last & LAST == 0 {
                return Ok(None);
            }
        }
        flags |= u32::from(last & 2);
        circuit = circuit << 6 | u32::from(last >> 2);
        Ok(Some(Self { circuit, flags, len }))
    }
}

impl Printer<'_> {
    pub(crate) fn frame_relay(&mut self, bytes: Bytes<'_>) -> Result<(), Cut> {
        self.protocol = "fr";
        self.facts.protocol = Some("frame-relay");
        bytes.get(0, 4)?;
        let Some(address) = Address::read(bytes)? else {
            self.text("Q.922, invalid address");
            return Ok(());
        };
        let control = bytes.u8(address.len)?;
        if control != CONTROL && address.circuit != 0 {
            // Cisco has an EtherType there.
            if let Ok(ethertype) = bytes.u16(address.len) {
                if self.options.link {
                    self.frame_relay_header(&address, address.len, ethertype, bytes.len);
                }
                let inner = bytes.from(address.len + 2);
                if ethertype > LARGEST_LENGTH && self.carried(ethertype, inner)? {
                    self.header(address.len + 2);
                    return Ok(());
                }
            }
            put!(self, "UI {control:02x}! ");
        }
        let padded = bytes.u8(address.len + 1)? == 0;
        match (padded, address.len) {
            (true, 2 | 4) => self.text("Pad! "),
            (false, 3) => self.text("No pad! "),
            _ => {}
        }
        let header = address.len + if padded { 3 } else { 2 };
        let number = bytes.u8(header - 1)?;
        if self.options.link {
            self.frame_relay_header(&address, address.len, number.into(), bytes.len);
        }
        self.header(header);
        let inner = bytes.from(header);
        if number == SNAP {
            if !self.snap(inner, None)? {
                if !self.options.link {
                    self.frame_relay_header(&address, header, number.into(), bytes.len);
                }
                self.unknown(bytes.data);
                bytes.get(0, bytes.len)?;
            }
            return Ok(());
        }
        if self.frame_relay_payload(bytes.from(header - 1))? {
            return Ok(());
        }
        if !self.options.link {
            self.frame_relay_header(&address, address.len, number.into(), bytes.len);
        }
        self.dumped(inner.data);
        inner.get(0, inner.len).map(drop)
    }

    fn frame_relay_header(&mut self, address: &Address, header: usize, protocol: u16, len: usize) {
        let circuit = address.circuit;
        if self.options.quick {
            put!(self, "Q.922, DLCI {circuit}, length {len}: ");
            return;
        }
        put!(self, "Q.922, hdr-len {header}, DLCI {circuit}, Flags [");
        self.flag_names(address.flags, &FLAGS);
        match u8::try_from(protocol) {
            Ok(number) => put!(self, "], NLPID {} (0x{number:02x})", osi::name(number)),
            Err(_) => {
                let name = ethertypes::name(protocol).unwrap_or("unknown");
                put!(self, "], cisco-ethertype {name} (0x{protocol:04x})");
            }
        }
        put!(self, ", length {len}: ");
    }

    /// Prints the header of a fragment (FRF.15).
    pub(crate) fn frame_relay_fragment(&mut self, bytes: Bytes<'_>) -> Result<(), Cut> {
        let (first, second) = (bytes.u8(0)?, bytes.u8(1)?);
        put!(self, "FRF.15, seq 0x{:03x}, Flags [", u16::from(first & 0x1e) << 7 | u16::from(second));
        self.flag_names(first, &FRAGMENT_FLAGS);
        let ends = if first & 1 != 0 { "Interface" } else { "End-to-End" };
        put!(self, "],{ends} Fragmentation, length {}", bytes.len);
        Ok(())
    }
}
